/* SPDX-License-Identifier: Apache-2.0 */
/* klucb-cf, ucb-cf, ts-cf, kl-local and posterior-quantile. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>

#include "common/base/rng.h"
#include "tests/support/near.h"
#include "tests/unit/policy/hand.h"
#include "thirdparty/policy/arms.h"
#include "thirdparty/policy/beta.h"
#include "thirdparty/policy/kl.h"
#include "thirdparty/policy/posterior.h"

static const char *const names[] = {"klucb-cf", "ucb-cf", "ts-cf", "kl-local", "posterior-quantile"};

static void each_arm_is_pulled_once_then_one_at_a_time(void **state) {
  for (size_t n = 0; n < CV_COUNT(names); n++) {
    struct hand h = hand_of(names[n], 4, 10);
    hand_start(&h, 1);
    hand_step(&h);
    assert_int_equal(h.step.wants, 4);
    for (uint32_t i = 0; i < 4; i++) {
      assert_int_equal(h.step.want[i].arm, i);
      assert_int_equal(h.step.want[i].tokens, 1);
      hand_feed(&h, i, 1, i == 2 ? CV_GRID : 0);
    }
    for (int pulls = 4; pulls < 10; pulls++) {
      hand_step(&h);
      assert_false(h.step.done);
      assert_int_equal(h.step.wants, 1);
      assert_int_equal(h.step.want[0].tokens, 1);
      hand_feed(&h, h.step.want[0].arm, 1, 0);
    }
    hand_step(&h);
    assert_true(h.step.done); /* the limit of tokens */
    assert_int_equal(h.step.wants, 0);
    hand_end(&h);
  }
}

static void rounds_are_cut_at_the_horizon(void **state) {
  struct hand h = hand_of("klucb-cf", 3, 1000);
  hand_set(&h.spec.policy, "tokens_per_round", 8);
  hand_set(&h.spec.policy, "horizon", 20);
  hand_start(&h, 1);
  hand_step(&h);
  assert_int_equal(h.step.wants, 3);
  assert_int_equal(h.step.want[0].tokens, 8);
  assert_int_equal(h.step.want[1].tokens, 8);
  assert_int_equal(h.step.want[2].tokens, 4);
  hand_feed(&h, 0, 8, 0);
  hand_step(&h);
  assert_int_equal(h.step.wants, 2); /* arms without tokens are still asked for */
  hand_end(&h);
}

/*
 * t = 20, ten tokens of each arm, six of them ones. Arm 1 is kept with .6, arm 2 with .9, arm 3 is inverted with .9:
 * UCB-CF's radius is sqrt(ln 20/20) = .38702, so the indices are (.98702-.4)/.2 = 2.935 and (.98702-.1)/.8 = 1.109.
 */
static void the_index_is_taken_back_through_the_corruption(void **state) {
  static const double keep[] = {0.6, 0.9};
  struct hand h = hand_of("ucb-cf", 2, 1000);
  hand_keep(&h, keep);
  hand_start(&h, 1);
  hand_step(&h);
  hand_feed(&h, 0, 10, 6 * CV_GRID);
  hand_feed(&h, 1, 10, 6 * CV_GRID);
  hand_step(&h);
  assert_int_equal(h.step.want[0].arm, 0);
  struct cv_standing standing;
  cv_policy_standing(h.policy, 0, &standing);
  assert_near(standing.mean, (0.6 - 0.4) / 0.2, 1e-9);
  assert_int_equal(standing.tokens, 10);
  hand_end(&h);
  /* Arm 1 inverted: six ones of ten are (.6-.9)/(-.8) = .375, its index (.6-.387-.9)/(-.8) = .859. */
  static const double turned[] = {0.1, 0.9};
  for (size_t n = 0; n < CV_COUNT(names); n++) {
    h = hand_of(names[n], 2, 1000);
    hand_keep(&h, turned);
    hand_start(&h, 1);
    hand_step(&h);
    hand_feed(&h, 0, 400, 100 * CV_GRID); /* few ones are many, here */
    hand_feed(&h, 1, 400, 100 * CV_GRID);
    hand_step(&h);
    assert_int_equal(h.step.want[0].arm, 0);
    hand_end(&h);
  }
}

/* The indices again, from the formulas in the paper's boxes, with the divergence inverted by bisection. */
static double furthest(double p, double bound, bool up) {
  double near = p, far = up ? 1 : 0;
  for (int i = 0; i < 100; i++) {
    double q = (near + far) / 2;
    *(cv_kl(p, q) <= bound ? &near : &far) = q;
  }
  return near;
}

static double naive_index(size_t name, const struct hand *h, uint32_t arm, double keep, struct cv_rng *rng) {
  double t = 0, n = (double)h->tokens[arm], ones = (double)h->sum[arm] / (double)CV_GRID, f = 0, q = 0;
  for (uint32_t i = 0; i < h->spec.arms; i++) {
    t += (double)h->tokens[i];
  }
  bool up = keep > 0.5;
  switch (name) {
    case 0:
      f = t < 3 ? 0 : log(t) + 3 * log(log(t));
      q = furthest(ones / n, f / n, up);
      break;
    case 1:
      q = ones / n + (up ? 1 : -1) * sqrt(log(t) / 2 / n);
      break;
    case 2:
      q = cv_draw_beta(rng, ones + 1, n - ones + 1);
      break;
    case 4:
      f = h->spec.arms * pow(n, 0.6) / (double)h->spec.tokens;
      return cv_posterior_upper(ones, n - ones, (struct cv_feedback){.offset = 1 - keep, .slope = 2 * keep - 1},
                                fmin(0.5, f));
    default:
      f = log((double)h->spec.tokens / (h->spec.arms * sqrt(n)));
      q = furthest(ones / n, f > 0 ? f / n : 0, up);
  }
  double index = (q - (1 - keep)) / (2 * keep - 1);
  return name == 3 && index > 1 ? 1 : index;
}

static void compare(size_t name, const struct hand *h, const double *keep, uint64_t seed) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, seed, CV_RNG_POLICY, h->plan, 0);
  double best = -1e300, chosen = 0;
  for (uint32_t i = 0; i < h->spec.arms; i++) {
    double index = naive_index(name, h, i, keep[i], &rng.rng);
    best = index > best ? index : best;
    chosen = i == h->step.want[0].arm ? index : chosen;
  }
  assert_near(chosen, best, 1e-9);
}

static void equals_the_naive_one_step_by_step(void **state) {
  for (uint64_t seed = 1; seed <= 120; seed++) {
    size_t name = seed % CV_COUNT(names);
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, seed, 99, 0, 0);
    struct hand h = hand_of(names[name], 2 + (uint32_t)cv_rng_below(&rng.rng, 6), 400);
    double keep[HAND_ARMS], lambda[HAND_ARMS];
    for (uint32_t i = 0; i < h.spec.arms; i++) {
      keep[i] = floor(100 * (0.6 + 0.39 * cv_rng_unit(&rng.rng))) / 100;
      keep[i] = seed % 3 == 0 && i % 2 == 0 ? 1 - keep[i] : keep[i];
      lambda[i] = cv_rng_unit(&rng.rng);
    }
    hand_keep(&h, keep);
    hand_start(&h, seed);
    hand_step(&h);
    for (uint64_t pulls = 0; !h.step.done;) {
      for (size_t i = 0; i < h.step.wants; i++, pulls++) {
        uint32_t arm = h.step.want[i].arm;
        hand_feed(&h, arm, 1, cv_rng_unit(&rng.rng) < lambda[arm] ? CV_GRID : 0);
      }
      hand_reload(&h, seed);
      hand_step(&h);
      assert_int_equal(h.step.done, pulls == 400);
      if (!h.step.done) {
        compare(name, &h, keep, seed);
      }
    }
    hand_end(&h);
  }
}

/* The KL policies' choice with every index computed at every step: the exact arm, including ties. */
static uint32_t plain_choice(bool local, const struct hand *h, const struct cv_feedback *feedback, uint64_t seed) {
  struct cv_rng_seeded rng;
  struct cv_highest highest = {0};
  double t = (double)h->number, k = h->spec.arms;
  double time = log(t) <= 0 ? 0 : fmax(0, log(t) + 3 * log(log(t)));
  cv_rng_seeded_init(&rng, seed, CV_RNG_POLICY, h->plan, 0);
  for (uint32_t i = 0; i < h->spec.arms; i++) {
    double n = (double)h->tokens[i], mean = (double)h->sum[i] / (double)CV_GRID / n;
    double f = local ? fmax(0, log((double)h->spec.tokens / (k * sqrt(n)))) : time;
    double q = feedback[i].slope > 0 ? cv_kl_upper(mean, f / n) : cv_kl_lower(mean, f / n);
    double index = (q - feedback[i].offset) / feedback[i].slope;
    cv_highest_offer(&highest, i, local ? fmin(index, 1) : index, &rng.rng);
  }
  return highest.arm;
}

/* Scores of few values or of many, arms that are equal, arms that always or never give a one. */
static int64_t score_of(uint64_t seed, uint32_t arm, struct cv_rng *rng) {
  double mean = seed % 4 == 0 ? 0.5 : arm % 5 == 4 ? arm % 2 : 0.3 + 0.05 * (double)(arm % 4);
  return seed % 3 == 0 ? (int64_t)(mean * (double)cv_rng_below(rng, CV_GRID)) : cv_rng_unit(rng) < mean ? CV_GRID : 0;
}

static void what_is_remembered_changes_no_choice(void **state) {
  for (uint64_t seed = 1; seed <= 48; seed++) {
    struct cv_rng_seeded rng;
    struct cv_feedback feedback[HAND_ARMS];
    struct cv_local law;
    double keep[HAND_ARMS];
    bool local = seed % 2 == 0;
    struct hand h = hand_of(local ? "kl-local" : "klucb-cf", 2 + (uint32_t)seed % 11, 2500);
    for (uint32_t i = 0; i < h.spec.arms; i++) {
      keep[i] = seed % 5 == 0 ? 0.8 : 0.55 + 0.1 * (i % 4);
      keep[i] = seed % 7 == 0 && i % 2 == 0 ? 1 - keep[i] : keep[i];
    }
    if (seed % 6 != 1) {
      hand_keep(&h, keep);
    }
    assert_int_equal(cv_local_init(&h.spec.privatizer, h.spec.arms, &law, NULL), CV_OK);
    for (uint32_t i = 0; i < h.spec.arms; i++) {
      feedback[i] = cv_local_feedback(&law, i);
    }
    cv_rng_seeded_init(&rng, seed, 97, 0, 0);
    hand_start(&h, seed);
    for (hand_step(&h); !h.step.done; hand_step(&h)) {
      if (h.step.wants == 1) {
        assert_int_equal(h.step.want[0].arm, plain_choice(local, &h, feedback, seed));
      }
      for (size_t i = 0; i < h.step.wants; i++) {
        hand_feed(&h, h.step.want[i].arm, 1, score_of(seed, h.step.want[i].arm, &rng.rng));
      }
    }
    assert_int_equal(h.number, 2500);
    hand_end(&h);
  }
}

static void break_ties(const char *name) {
  int chosen[3] = {0};
  struct hand h = hand_of(name, 3, 1000000);
  hand_start(&h, 5);
  hand_step(&h);
  for (uint32_t i = 0; i < 3; i++) {
    hand_feed(&h, i, 10, 5 * CV_GRID);
  }
  for (int i = 0; i < 3000; i++) {
    hand_step(&h);
    uint32_t arm = h.step.want[0].arm;
    chosen[arm]++;
    h.plan--;
    hand_step(&h);
    assert_int_equal(h.step.want[0].arm, arm); /* the same plan, the same draw */
  }
  for (int i = 0; i < 3; i++) {
    assert_in_range(chosen[i], 900, 1100); /* four standard deviations */
  }
  hand_end(&h);
}

static void ties_are_broken_by_the_plans_stream(void **state) {
  break_ties("ucb-cf");
  break_ties("posterior-quantile");
}

/* Mean regret over `runs` runs of Bernoulli arms behind randomized response. */
static double regret_of(const char *name, const double *mean, const double *keep, uint64_t horizon, int runs) {
  double regret = 0;
  for (int run = 1; run <= runs; run++) {
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, (uint64_t)run, 98, 0, 0);
    struct hand h = hand_of(name, 2, horizon);
    hand_keep(&h, keep);
    hand_start(&h, (uint64_t)run);
    for (hand_step(&h); !h.step.done; hand_step(&h)) {
      for (size_t i = 0; i < h.step.wants; i++) {
        uint32_t arm = h.step.want[i].arm;
        double lambda = 1 - keep[arm] + (2 * keep[arm] - 1) * mean[arm];
        regret += mean[0] - mean[arm];
        hand_feed(&h, arm, 1, cv_rng_unit(&rng.rng) < lambda ? CV_GRID : 0);
      }
    }
    hand_end(&h);
  }
  return regret / runs;
}

/* The paper's scenario 1: means .9 and .6, T = 10^4. The lower bound for each is more than an index without the
 * correction could reach; the upper one is twice the measured regret. */
static void the_papers_scenario(void **state) {
  static const double mean[] = {0.9, 0.6}, figure_a[] = {0.6, 0.9}, mirrored[] = {0.9, 0.6}, turned[] = {0.4, 0.1};
  double klucb = regret_of("klucb-cf", mean, figure_a, 10000, 25);
  assert_true(klucb > 5 && klucb < 22);
  assert_true(regret_of("ucb-cf", mean, figure_a, 10000, 25) > klucb);
  double again = regret_of("klucb-cf", mean, turned, 10000, 25);
  assert_true(again > 5 && again < 22); /* inverting all bits changes nothing */
  double local = regret_of("kl-local", mean, mirrored, 10000, 25),
         printed = regret_of("klucb-cf", mean, mirrored, 10000, 25);
  print_message("# regret: klucb-cf %.1f and %.1f, mirrored %.1f, kl-local %.1f\n", klucb, again, printed, local);
  assert_true(printed > 300 && printed < 900);
  assert_true(local < printed / 2);
  double posterior = regret_of("posterior-quantile", mean, mirrored, 10000, 25);
  again = regret_of("posterior-quantile", mean, turned, 10000, 25);
  print_message("# posterior-quantile, mirrored %.1f, inverted %.1f\n", posterior, again);
  assert_true(posterior < local && again < 15);
}

static void campaigns_that_do_not_suit_are_refused(void **state) {
  struct hand h = hand_of("klucb-cf", 2, 10);
  (void)snprintf(h.spec.mechanism.name, sizeof(h.spec.mechanism.name), "hybrid");
  hand_refused(&h, "policy klucb-cf needs the exact sum of each pull; expected mechanism none, not hybrid");
  h = hand_of("ts-cf", 2, 10);
  hand_privatize(&h, "laplace", "epsilon", 1);
  hand_refused(&h, "policy ts-cf cannot work with privatizer laplace; expected none or randomized-response");
  struct cv_choice choice = {.name = "ucb-cf"};
  const struct cv_param *bad;
  struct cv_why why;
  hand_set(&choice, "tokens_per_round", 0);
  assert_int_equal(cv_policy_check(&choice, &bad, &why), CV_ERR_INVALID);
  assert_string_equal(bad->key, "tokens_per_round");
  choice.params.count = 0;
  hand_set(&choice, "alpha", 0);
  assert_int_equal(cv_policy_check(&choice, &bad, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "unknown key \"alpha\""));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_arm_is_pulled_once_then_one_at_a_time),
      cmocka_unit_test(rounds_are_cut_at_the_horizon),
      cmocka_unit_test(the_index_is_taken_back_through_the_corruption),
      cmocka_unit_test(equals_the_naive_one_step_by_step),
      cmocka_unit_test(what_is_remembered_changes_no_choice),
      cmocka_unit_test(ties_are_broken_by_the_plans_stream),
      cmocka_unit_test(the_papers_scenario),
      cmocka_unit_test(campaigns_that_do_not_suit_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
