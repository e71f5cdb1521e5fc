/* SPDX-License-Identifier: Apache-2.0 */
/* exp3, dp-exp3-lap and exp3-tau. */
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
#include "thirdparty/policy/exp3.h"

/* Equation 2.1 as printed. */
struct naive {
  uint32_t k;
  long double gamma, g[HAND_ARMS];
};

static long double naive_probability(const struct naive *x, uint32_t arm) {
  long double highest = 0, sum = 0;
  for (uint32_t i = 0; i < x->k; i++) {
    highest = x->g[i] > highest ? x->g[i] : highest;
  }
  for (uint32_t i = 0; i < x->k; i++) {
    sum += expl(x->gamma / x->k * (x->g[i] - highest));
  }
  return (1 - x->gamma) * expl(x->gamma / x->k * (x->g[arm] - highest)) / sum + x->gamma / x->k;
}

/* K = 2, g = 1/2: after a gain of 1 of arm 1 at p = 1/2, G = 2, and p_1 = e^.5/(e^.5 + 1)/2 + 1/4. */
static void one_step_by_hand(void **state) {
  struct cv_exp3 core;
  assert_int_equal(cv_exp3_init(2, 0.5, 1, &core), CV_OK);
  assert_near(cv_exp3_probability(&core, 0), 0.5, 1e-15);
  cv_exp3_gain(&core, 0, 1);
  assert_near(cv_exp3_probability(&core, 0), exp(0.5) / (exp(0.5) + 1) / 2 + 0.25, 1e-15);
  assert_near(cv_exp3_probability(&core, 0) + cv_exp3_probability(&core, 1), 1, 1e-15);
  cv_exp3_fini(&core);
  /* K ln K/((e-1) T) at K = 4, T = 1000. */
  assert_int_equal(cv_exp3_init(4, 0, 1000, &core), CV_OK);
  assert_near(core.gamma, sqrt(4 * log(4) / (1.718281828459045 * 1000)), 1e-12);
  cv_exp3_fini(&core);
  assert_int_equal(cv_exp3_init(4, 0, 2, &core), CV_OK);
  assert_near(core.gamma, 1, 0);
  cv_exp3_fini(&core);
}

static void the_core_equals_the_naive_one(void **state) {
  static const double gammas[] = {0.001, 0.05, 0.5, 1};
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 1, 1, 0, 0);
  for (uint32_t k = 1; k <= 9; k += 2) {
    for (size_t g = 0; g < CV_COUNT(gammas); g++) {
      struct cv_exp3 core;
      struct naive x = {.k = k, .gamma = (long double)gammas[g]};
      assert_int_equal(cv_exp3_init(k, gammas[g], 1, &core), CV_OK);
      for (int t = 0; t < 3000; t++) {
        /* Mostly one arm, so that weights leave the range of a double; then another. */
        uint32_t arm = cv_rng_below(&rng.rng, 8) > 0 ? (t / 1000) % k : (uint32_t)cv_rng_below(&rng.rng, k);
        double gain = cv_rng_unit(&rng.rng);
        assert_near(cv_exp3_probability(&core, arm), (double)naive_probability(&x, arm), 1e-11);
        x.g[arm] += (long double)gain / naive_probability(&x, arm);
        cv_exp3_gain(&core, arm, gain);
      }
      cv_exp3_fini(&core);
    }
  }
}

/* Weights far beyond the range of a double: an arm without weight catches up. */
static void nothing_is_lost_far_out(void **state) {
  struct cv_exp3 core;
  assert_int_equal(cv_exp3_init(3, 0.01, 1, &core), CV_OK);
  for (int t = 0; t < 400000; t++) {
    cv_exp3_gain(&core, 0, 1);
  }
  assert_true(core.exponent[0] > 1000); /* e^1000 does not fit a double */
  assert_true(cv_exp3_probability(&core, 1) >= 0.01 / 3 && cv_exp3_probability(&core, 1) < 0.01 / 3 + 1e-12);
  for (int t = 0; t < 5000; t++) {
    cv_exp3_gain(&core, 1, 1);
    double p = cv_exp3_probability(&core, 1);
    assert_true(p > 0 && p <= 1);
  }
  assert_true(cv_exp3_probability(&core, 1) > 0.99);
  cv_exp3_fini(&core);
}

static void draws_have_their_probabilities(void **state) {
  enum { DRAWS = 100000 };
  struct cv_exp3 core;
  struct cv_rng_seeded rng;
  int drawn[5] = {0};
  cv_rng_seeded_init(&rng, 2, 1, 0, 0);
  assert_int_equal(cv_exp3_init(5, 0.2, 1, &core), CV_OK);
  for (int i = 0; i < 60; i++) {
    cv_exp3_gain(&core, (uint32_t)(i % 4), 0.3 * (i % 4));
  }
  for (int i = 0; i < DRAWS; i++) {
    drawn[cv_exp3_draw(&core, &rng.rng)]++;
  }
  for (uint32_t i = 0; i < 5; i++) {
    double p = cv_exp3_probability(&core, i);
    assert_near((double)drawn[i] / DRAWS, p, 4 * sqrt(p * (1 - p) / DRAWS));
  }
  assert_true(drawn[3] > 2 * drawn[4]);
  cv_exp3_fini(&core);
}

/*
 * The policies again: arms drawn by a core of the test's own, gains computed anew from Algorithm 1 and section 3.2. A
 * token of dp-exp3-lap has noise of scale 4 in it, so that with b = ln 600/.5 = 12.8 some are ignored.
 */
static void equals_the_naive_one_step_by_step(void **state) {
  static const char *const names[] = {"exp3", "dp-exp3-lap", "exp3-tau"};
  uint32_t ignored = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    size_t name = seed % 3;
    struct cv_rng_seeded rng, stream;
    struct cv_exp3 core;
    uint32_t k = 2 + (uint32_t)seed % 5, tau = 1;
    struct hand h = hand_of(names[name], k, 600);
    if (name == 1) {
      hand_privatize(&h, "laplace", "epsilon", 0.5);
    } else if (name == 2) {
      tau = seed % 2 == 0 ? 7 : (uint32_t)fmax(1, round(pow(7 * k * log(k) / 600, -1.0 / 3)));
      hand_set(&h.spec.policy, "tau", seed % 2 == 0 ? 7 : 0);
    }
    cv_rng_seeded_init(&rng, seed, 97, 0, 0);
    assert_int_equal(cv_exp3_init(k, 0, 600.0 / tau, &core), CV_OK);
    hand_start(&h, seed);
    uint64_t pulls = 0;
    for (hand_step(&h); !h.step.done; hand_step(&h)) {
      cv_rng_seeded_init(&stream, seed, CV_RNG_POLICY, h.plan, 0);
      uint32_t arm = cv_exp3_draw(&core, &stream.rng);
      assert_int_equal(h.step.wants, 1);
      assert_int_equal(h.step.want[0].arm, arm);
      uint64_t asked = 600 - pulls < tau ? 600 - pulls : tau;
      assert_int_equal(h.step.want[0].tokens, asked);
      double noise = name == 1 ? 4 * (log(cv_rng_unit(&rng.rng) + 1e-9) - log(cv_rng_unit(&rng.rng) + 1e-9)) : 0;
      int64_t sum = llround((cv_rng_unit(&rng.rng) * (double)asked + noise) * (double)CV_GRID);
      double mean = (double)sum / (double)CV_GRID / (double)asked, b = name == 1 ? log(600) / 0.5 : 0;
      if (mean >= -b && mean <= b + 1) {
        cv_exp3_gain(&core, arm, (mean + b) / (2 * b + 1));
      } else {
        ignored++;
      }
      hand_feed(&h, arm, asked, sum);
      hand_reload(&h, seed);
      pulls += asked;
    }
    assert_int_equal(pulls, 600);
    cv_exp3_fini(&core);
    hand_end(&h);
  }
  assert_in_range(ignored, 100, 4000);
}

static void the_best_arm_is_found(void **state) {
  static const char *const names[] = {"exp3", "dp-exp3-lap", "exp3-tau"};
  for (size_t n = 0; n < CV_COUNT(names); n++) {
    struct hand h = hand_of(names[n], 4, 200000);
    if (n == 1) {
      hand_privatize(&h, "laplace", "epsilon", 2);
    }
    hand_start(&h, 3);
    for (hand_step(&h); !h.step.done; hand_step(&h)) {
      uint32_t arm = h.step.want[0].arm, tokens = h.step.want[0].tokens;
      hand_feed(&h, arm, tokens, (arm == 2 ? 9 : 1) * CV_GRID / 10 * tokens);
    }
    assert_true(h.tokens[2] > 140000);
    hand_end(&h);
  }
}

static void campaigns_that_do_not_suit_are_refused(void **state) {
  struct hand h = hand_of("exp3", 2, 10);
  hand_refused(&h, "policy exp3 receives exact gains; expected third_party: trusted");
  h = hand_of("exp3-tau", 2, 10);
  hand_privatize(&h, "laplace", "epsilon", 1);
  hand_refused(&h, "policy exp3-tau cannot work with privatizer laplace; expected none");
  h = hand_of("dp-exp3-lap", 2, 10);
  hand_refused(&h, "policy dp-exp3-lap cannot work with privatizer none; expected laplace");
  hand_privatize(&h, "laplace", "epsilon", 1);
  (void)snprintf(h.spec.mechanism.name, sizeof(h.spec.mechanism.name), "per-item");
  hand_refused(&h, "policy dp-exp3-lap needs the exact sum of each pull; expected mechanism none, not per-item");
}

/* A state of the right length with numbers that no run produces. */
static void a_state_with_nonsense_is_refused(void **state) {
  static const double nonsense[] = {-1, (double)NAN, (double)INFINITY, 1e16};
  struct hand h = hand_of("exp3", 2, 1000);
  hand_start(&h, 1);
  hand_step(&h);
  hand_feed(&h, 0, 1, CV_GRID);
  hand_refuses(&h, 24, nonsense, CV_COUNT(nonsense));
  hand_end(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_step_by_hand),
      cmocka_unit_test(the_core_equals_the_naive_one),
      cmocka_unit_test(nothing_is_lost_far_out),
      cmocka_unit_test(draws_have_their_probabilities),
      cmocka_unit_test(equals_the_naive_one_step_by_step),
      cmocka_unit_test(the_best_arm_is_found),
      cmocka_unit_test(campaigns_that_do_not_suit_are_refused),
      cmocka_unit_test(a_state_with_nonsense_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
