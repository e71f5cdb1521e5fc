/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim [--seed N] [--runs N] [--from M] [--jobs J] [--calm] [--verbose]
 *
 * Runs the seeds M .. M + N - 1 (or one), each a world of its own. A seed that fails is printed with its last events;
 * --seed plays it again, --verbose with all its events. Exit status 1 if one failed.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/world.h"

struct options {
  uint64_t from, runs;
  unsigned jobs;
  bool calm, verbose;
};

static struct world world;

static void on_abort(int number) {
  (void)snprintf(world.failure, sizeof(world.failure), "ended by signal %d", number);
  world_tell(&world);
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

static bool run_one(const struct options *options, uint64_t seed) {
  memset(&world, 0, sizeof(world));
  world.verbose = options->verbose;
  scenario_draw(seed, options->calm, &world.scenario);
  bool ok = world_run(&world, seed);
  if (!ok) {
    world_tell(&world);
  } else if (options->verbose) {
    (void)fprintf(stderr, "seed %llu: %llu events, %u faults, %llu ms\n", (unsigned long long)seed,
                  (unsigned long long)world.events, world.faults, (unsigned long long)world.now_ms);
  }
  world_fini(&world);
  return ok;
}

/* Every jobs-th seed; stops at the first that fails. */
static bool run_share(const struct options *options, unsigned job) {
  for (uint64_t i = job; i < options->runs; i += options->jobs) {
    if (!run_one(options, options->from + i)) {
      return false;
    }
  }
  return true;
}

static bool run_all(const struct options *options) {
  bool ok = true;
  for (unsigned job = 0; job < options->jobs; job++) {
    pid_t child = fork();
    if (child == 0) {
      _exit(run_share(options, job) ? 0 : 1);
    }
    ok = ok && child > 0;
  }
  int status;
  while (wait(&status) > 0) {
    ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return ok;
}

static void read_options(int argc, char **argv, struct options *ret) {
  static const struct option names[] = {
      {"seed", required_argument, NULL, 's'},
      {"runs", required_argument, NULL, 'r'},
      {"from", required_argument, NULL, 'f'},
      {"jobs", required_argument, NULL, 'j'},
      {"calm", no_argument, NULL, 'c'},
      {"verbose", no_argument, NULL, 'v'},
      {NULL, 0, NULL, 0},
  };
  struct options options = {.from = 1, .runs = 100, .jobs = 1};
  for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    switch (c) {
      case 's':
        options.from = strtoull(optarg, NULL, 10);
        options.runs = 1;
        break;
      case 'r':
        options.runs = strtoull(optarg, NULL, 10);
        break;
      case 'f':
        options.from = strtoull(optarg, NULL, 10);
        break;
      case 'j':
        options.jobs = (unsigned)strtoul(optarg, NULL, 10);
        break;
      case 'c':
        options.calm = true;
        break;
      case 'v':
        options.verbose = true;
        break;
      default:
        (void)fprintf(stderr, "usage: sim [--seed N | --runs N --from N] [--jobs N] [--calm] [--verbose]\n");
        exit(2);
    }
  }
  options.jobs = options.jobs == 0 ? 1 : options.jobs;
  *ret = options;
}

int main(int argc, char **argv) {
  struct options options;
  struct timespec start, end;
  read_options(argc, argv, &options);
  (void)signal(SIGABRT, on_abort);
  (void)signal(SIGSEGV, on_abort);
  disk_register();
  (void)clock_gettime(CLOCK_MONOTONIC, &start);
  bool ok = options.jobs > 1 ? run_all(&options) : run_share(&options, 0);
  (void)clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
  (void)printf("%llu seeds from %llu: %s, %.1f s, %.0f a minute\n", (unsigned long long)options.runs,
               (unsigned long long)options.from, ok ? "all held" : "FAILED", seconds,
               60 * (double)options.runs / seconds);
  return ok ? 0 : 1;
}
