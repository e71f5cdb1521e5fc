/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim [--runs N] [--from M] [--jobs J] [--progress] [--must] [--calm]
 * sim --seed N [--trace]
 * sim --soak N, at most 250
 *
 * Runs the seeds M .. M + N - 1, each of which gives a world, and counts the events that they reached (tally.h). A
 * seed that fails is printed with its last events; --seed runs it again, --trace prints all its events. Exit status 1
 * if a seed failed or, with --must, if an event was never reached that ten thousand seeds reach; 2 for usage.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/config/standard.h"
#include "tests/sim/tally.h"
#include "tests/sim/world.h"

enum { JOBS_MAX = 64, PROGRESS_S = 10, SOAK_MAX = 250 /* a campaign has one byte of keys and seen places */ };

struct options {
  uint64_t from, runs;
  uint64_t soak;
  unsigned jobs;
  bool calm, trace, progress, must;
};

/* The results of one job, in memory that all jobs share. */
struct share {
  struct tallies tallies;
  uint64_t runs;
  bool failed;
};

static struct world world;
static struct share *shares;

static void on_abort(int number) {
  (void)snprintf(world.failure, sizeof(world.failure), "ended by signal %d", number);
  world_tell(&world);
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

static void tell_scenario(const struct scenario *scenario) {
  char words[1024];
  scenario_tell(scenario, words, sizeof(words));
  (void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)scenario->seed, words);
}

static bool run_one(const struct options *options, uint64_t seed) {
  memset(&world, 0, sizeof(world));
  world.verbose = options->trace;
  scenario_draw(seed, options->calm, &world.scenario);
  if (options->trace) {
    tell_scenario(&world.scenario);
  }
  bool ok = world_run(&world, seed);
  if (!ok) {
    world_tell(&world);
    (void)fprintf(stderr, "play it again: sim --seed %llu --trace\n", (unsigned long long)seed);
  } else if (options->trace) {
    (void)fprintf(stderr, "seed %llu holds: %llu events, %u faults, %llu ms\n", (unsigned long long)seed,
                  (unsigned long long)world.events, world.faults, (unsigned long long)world.now_ms);
  }
  world_fini(&world);
  return ok;
}

static bool any_failed(const struct options *options) {
  for (unsigned job = 0; job < options->jobs; job++) {
    if (shares[job].failed) {
      return true;
    }
  }
  return false;
}

/*
 * N campaigns of one kind, one after another: memory may grow by what is kept of each campaign, its plans and its
 * releases, here and in both daemons, but not with steps, tokens or commits.
 */
static bool soak(enum kind kind, uint64_t campaigns) {
  enum { KEPT = 20, PLAN = 3, CACHES = 200 }; /* allocations for a campaign, a plan, and until all caches are full */
  tallies = &shares[kind].tallies;
  memset(&world, 0, sizeof(world));
  scenario_soak(kind, (uint32_t)campaigns, &world.scenario);
  bool ok = world_run(&world, world.scenario.seed);
  uint64_t plans = tallies->of[TALLY_PLANS], steps = tallies->of[TALLY_EVENTS], late = campaigns - campaigns / 4;
  int64_t grown = world.live_late - world.live_early;
  int64_t most = CACHES + (int64_t)(late * KEPT + PLAN * plans * late / campaigns);
  if (!ok) {
    world_tell(&world);
  }
  world_fini(&world);
  (void)printf(
      "%llu campaigns with policy %s, %llu steps, %llu tokens: %lld allocations more after the first quarter; expected "
      "at "
      "most %lld\n",
      (unsigned long long)campaigns, world.scenario.policy, (unsigned long long)steps,
      (unsigned long long)tallies->of[TALLY_ACCEPTED], (long long)grown, (long long)most);
  return ok && grown <= most;
}

/* Runs every jobs-th seed; stops after one has failed. */
static void run_share(const struct options *options, unsigned job) {
  tallies = &shares[job].tallies;
  for (uint64_t i = job; i < options->runs && !any_failed(options); i += options->jobs) {
    shares[job].failed = !run_one(options, options->from + i);
    shares[job].runs++;
  }
}

static uint64_t runs_done(const struct options *options) {
  uint64_t runs = 0;
  for (unsigned job = 0; job < options->jobs; job++) {
    runs += shares[job].runs;
  }
  return runs;
}

static void on_alarm(int number) {
}

/* One child process for each job; prints their progress now and then. */
static bool run_all(const struct options *options) {
  bool ok = true;
  unsigned left = 0;
  for (unsigned job = 0; job < options->jobs; job++) {
    pid_t child = fork();
    if (child == 0) {
      run_share(options, job);
      _exit(shares[job].failed ? 1 : 0);
    }
    ok = ok && child > 0;
    left += child > 0;
  }
  const struct sigaction action = {.sa_handler = on_alarm};
  (void)sigaction(SIGALRM, &action, NULL);
  while (left > 0) {
    int status;
    (void)alarm(options->progress ? PROGRESS_S : 0);
    if (wait(&status) > 0) {
      left--;
      ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    } else if (errno == EINTR) {
      (void)fprintf(stderr, "%llu of %llu schedules\n", (unsigned long long)runs_done(options),
                    (unsigned long long)options->runs);
    }
  }
  return ok;
}

/* The counts are of checks that passed: a failed check ends its world. */
static void print_sum(const struct options *options, const struct tallies *all, double seconds, bool ok) {
  (void)printf(
      "%llu schedules from seed %llu, %.0f s: %llu crashes survived, %llu frames fuzzed, %llu inputs refused; ",
      (unsigned long long)runs_done(options), (unsigned long long)options->from, seconds,
      (unsigned long long)all->of[TALLY_RESTARTS], (unsigned long long)all->of[TALLY_FUZZED],
      (unsigned long long)(all->of[TALLY_REFUSED_TOKEN] + all->of[TALLY_REFUSED_FRAME] + all->of[TALLY_REFUSED_STREAM] +
                           all->of[TALLY_REFUSED_ORDER]));
  (void)(ok ? printf("of %llu acknowledged tokens 0 lost, 0 counted twice; of %llu releases 0 drawn again\n",
                     (unsigned long long)all->of[TALLY_ACCEPTED], (unsigned long long)all->of[TALLY_RELEASES])
            : printf("FAILED\n"));
}

static bool finish(const struct options *options, double seconds, bool ok) {
  struct tallies all = {{0}};
  for (unsigned job = 0; job < options->jobs; job++) {
    for (int i = 0; i < TALLY_COUNT; i++) {
      all.of[i] += shares[job].tallies.of[i];
    }
  }
  unsigned missing = options->runs > 1 ? tally_print(&all) : 0;
  print_sum(options, &all, seconds, ok);
  return ok && (missing == 0 || !options->must);
}

static void usage(void) {
  (void)fprintf(stderr,
                "usage: sim [--runs N] [--from N] [--jobs N] [--progress] [--must] [--calm]\n"
                "       sim --seed N [--trace]\n"
                "       sim --soak N, at most %d\n",
                SOAK_MAX);
  exit(2);
}

static uint64_t number(const char *text) {
  char *end;
  errno = 0;
  uint64_t n = strtoull(text, &end, 10);
  if (errno != 0 || *end != '\0' || end == text || *text == '-') {
    (void)fprintf(stderr, "sim: \"%s\" is not a number\n", text);
    usage();
  }
  return n;
}

static void read_options(int argc, char **argv, struct options *ret) {
  static const struct option names[] = {
      {"seed", required_argument, NULL, 's'}, {"runs", required_argument, NULL, 'r'},
      {"from", required_argument, NULL, 'f'}, {"jobs", required_argument, NULL, 'j'},
      {"calm", no_argument, NULL, 'c'},       {"trace", no_argument, NULL, 't'},
      {"soak", required_argument, NULL, 'k'}, {"progress", no_argument, NULL, 'p'},
      {"must", no_argument, NULL, 'm'},       {NULL, 0, NULL, 0},
  };
  struct options options = {.from = 1, .runs = 100, .jobs = 1};
  for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    switch (c) {
      case 's':
        options.from = number(optarg);
        options.runs = 1;
        break;
      case 'r':
        options.runs = number(optarg);
        break;
      case 'f':
        options.from = number(optarg);
        break;
      case 'j':
        options.jobs = (unsigned)number(optarg);
        break;
      case 'k':
        options.soak = number(optarg);
        break;
      case 'c':
        options.calm = true;
        break;
      case 't':
        options.trace = true;
        break;
      case 'p':
        options.progress = true;
        break;
      case 'm':
        options.must = true;
        break;
      default:
        usage();
    }
  }
  if (options.jobs == 0 || options.jobs > JOBS_MAX || options.soak > SOAK_MAX || optind < argc) {
    usage();
  }
  *ret = options;
}

static int run(int argc, char **argv) {
  struct options options;
  struct timespec start, end;
  read_options(argc, argv, &options);
  shares = mmap(NULL, JOBS_MAX * sizeof(*shares), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CV_REQUIRE(shares != MAP_FAILED);
  (void)signal(SIGABRT, on_abort);
  (void)signal(SIGSEGV, on_abort);
  disk_register();
  if (options.soak > 0) {
    bool holds = true;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
      holds = soak((enum kind)kind, options.soak) && holds;
    }
    return holds ? 0 : 1;
  }
  (void)clock_gettime(CLOCK_MONOTONIC, &start);
  bool ok;
  if (options.jobs > 1) {
    ok = run_all(&options);
  } else {
    run_share(&options, 0);
    ok = !shares[0].failed;
  }
  (void)clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
  return finish(&options, seconds, ok) ? 0 : 1;
}

int main(int argc, char **argv) {
  cv_standard_open();
  return cv_standard_close("sim", run(argc, argv));
}
