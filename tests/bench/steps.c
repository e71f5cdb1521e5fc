/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of a policy's step between two plans, and how it grows with the arms: every policy of the table with default
 * parameters at K = 1,000 and K = 10,000, on a graph if the policy uses one (each arm joined to the next two). The last
 * column is the growth of the slowest step; K log K grows by 13.3. Each campaign is played five times, and the fastest
 * run counts, since all do the same.
 *
 * Two more cases are slow on purpose: a full ranking in which all arms are separated in one step, and dpu with
 * thousands of hires in a plan.
 */
#include <time.h>

#include "tests/support/play.h"

enum { STEPS = 100, AGAIN = 5 };

struct slow {
  const char *key; /* a parameter, or NULL */
  double value;
  bool apart; /* arms that one release separates */
};

struct times {
  double mean, most; /* microseconds of CPU */
  uint64_t steps;
};

static double microseconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void set_apart(struct play *play) {
  for (uint32_t i = 0; i < play->spec.arms; i++) {
    play->mean[i] = 1 - (double)i / (double)play->spec.arms;
  }
}

/* With enough tokens to settle every arm. */
static void settle_all(struct play *play, struct cv_policy *policy, uint64_t plan) {
  for (uint32_t i = 0; i < play->spec.arms; i++) {
    const struct cv_release release = {.number = i + 1,
                                       .plan = plan,
                                       .arm = i,
                                       .tokens = UINT64_C(1) << 40,
                                       .noisy_sum = (int64_t)(play->mean[i] * 0x1p60)};
    cv_policy_apply(policy, &release);
  }
}

static struct times run(struct play *play, const struct slow *slow) {
  struct cv_policy_step step = {0};
  struct times times = {0};
  struct cv_release *release = play_array(play->spec.arms, sizeof(*release));
  if (slow->key != NULL) {
    CV_REQUIRE(cv_params_set_number(&play->spec.policy.params, slow->key, slow->value) == CV_OK);
  }
  struct cv_policy *policy = play_policy(play, 1);
  if (slow->apart) {
    set_apart(play);
  }
  for (uint64_t plan = 1; plan <= STEPS && !step.done; plan++) {
    double start = microseconds();
    CV_REQUIRE(cv_policy_step(policy, plan, &step) == CV_OK);
    double took = microseconds() - start;
    times.mean += took;
    times.most = fmax(times.most, took);
    times.steps++;
    if (slow->apart) {
      settle_all(play, policy, plan);
    } else {
      play_plan(play, plan, &step, release);
      for (size_t i = 0; i < step.wants; i++) {
        cv_policy_apply(policy, &release[i]);
      }
    }
  }
  times.mean /= (double)times.steps;
  free(release);
  cv_policy_step_fini(&step);
  cv_policy_free(policy);
  return times;
}

/* The first mechanism and privatizer that fit the policy, with a graph if it uses one. */
static bool begin(struct play *play, const struct cv_policy_class *class, uint32_t arms) {
  for (size_t way = 12; way < 24; way++) {
    if (class->kind == CV_POLICY_GRAPH && play_init(play, class, way, arms, 1)) {
      return true;
    }
  }
  for (size_t way = 0; way < PLAY_WAYS; way++) {
    if (play_init(play, class, way, arms, 1)) {
      return true;
    }
  }
  return false;
}

static void measure(const struct cv_policy_class *class, const struct slow *slow) {
  static const uint32_t sizes[] = {1000, 10000};
  struct times times[CV_COUNT(sizes)] = {0};
  char label[40];
  for (size_t i = 0; i < CV_COUNT(sizes); i++) {
    for (int again = 0; again < AGAIN; again++) {
      struct play play;
      CV_REQUIRE(begin(&play, class, sizes[i]));
      struct times found = run(&play, slow);
      times[i].mean = again == 0 ? found.mean : fmin(times[i].mean, found.mean);
      times[i].most = again == 0 ? found.most : fmin(times[i].most, found.most);
      play_fini(&play);
    }
  }
  (void)snprintf(label, sizeof(label), "%s%s%s", class->name,
                 slow->apart         ? ", all apart"
                 : slow->key != NULL ? ", "
                                     : "",
                 slow->apart || slow->key == NULL ? "" : slow->key);
  (void)printf("%-20s %9.0f %9.0f %10.0f %9.0f %7.1f\n", label, times[0].mean, times[0].most, times[1].mean,
               times[1].most, times[1].most / times[0].most);
}

int main(void) {
  static const struct slow usual = {0};
  static const struct slow apart = {.key = "alpha", .value = 0, .apart = true};
  static const struct slow many = {.key = "pulls", .value = 4096};
  (void)printf("microseconds a step   K = 1,000               K = 10,000\n");
  (void)printf("policy                    mean   slowest       mean   slowest  growth\n");
  for (size_t i = 0; cv_policy_at(i) != NULL; i++) {
    measure(cv_policy_at(i), &usual);
  }
  measure(cv_policy_find("ppar"), &apart);
  measure(cv_policy_find("dpu"), &many);
  return 0;
}
