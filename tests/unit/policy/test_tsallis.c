/* SPDX-License-Identifier: Apache-2.0 */
/* tsallis-inf: its core, and the policy step by step under each kind of privacy. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "tests/support/near.h"
#include "tests/unit/policy/hand.h"
#include "thirdparty/policy/tsallis.h"

/* sum of w_i L_i - (2/r) sum of sqrt(w_i), which the weights minimize. */
static double objective(const struct cv_tsallis *core, const double *w, double rate) {
  double value = 0;
  for (uint32_t i = 0; i < core->arms; i++) {
    value += w[i] * core->loss[i] - 2 / rate * sqrt(w[i]);
  }
  return value;
}

/* The condition of a stationary point, L_i - 1/(r sqrt(w_i)) equal for all i; no transfer between two arms helps. */
static void check_optimum(const struct cv_tsallis *core, double rate) {
  double sum = 0, x = core->loss[0] - 1 / (rate * sqrt(core->weight[0])), w[16];
  for (uint32_t i = 0; i < core->arms; i++) {
    double scale = fabs(core->loss[i]) + fabs(x) + 1 / rate;
    assert_near(core->loss[i] - 1 / (rate * sqrt(core->weight[i])), x, 1e-10 * scale);
    sum += w[i] = core->weight[i];
  }
  assert_near(sum, 1, 1e-9);
  double best = objective(core, w, rate);
  for (uint32_t i = 0; i < core->arms; i++) {
    for (uint32_t j = 0; j < core->arms; j++) {
      double moved = i == j ? 0 : 0.1 * w[i];
      w[i] -= moved;
      w[j] += moved;
      assert_true(objective(core, w, rate) >= best - 1e-9 * (fabs(best) + 1));
      w[i] += moved;
      w[j] -= moved;
    }
  }
}

/* Chances sum to 1, and no loss within the bound moves a weight by more than the analysis admits. */
static void check_chances(const struct cv_tsallis *core, double rate, double bound) {
  double sum = 0;
  for (uint32_t i = 0; i < core->arms; i++) {
    assert_true(rate * sqrt(core->weight[i]) * bound / core->chance[i] <= 0.5 + 1e-9);
    assert_true(core->chance[i] >= core->weight[i] / 2);
    sum += core->chance[i];
  }
  assert_near(sum, 1, 1e-12);
}

static void weights_are_the_optimum(void **state) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 5, 1, 0, 0);
  for (uint32_t k = 1; k <= 16; k += 3) {
    for (int spread = -2; spread <= 9; spread++) {
      for (int share = 0; share < 4; share++) {
        struct cv_tsallis core;
        double bound = 0.5 + 3 * cv_rng_unit(&rng.rng), rate = pow(0.1, share) / (4 * bound * sqrt(k));
        assert_int_equal(cv_tsallis_init(k, &core), CV_OK);
        for (uint32_t i = 0; i < k; i++) {
          core.loss[i] = (cv_rng_unit(&rng.rng) - 0.5) * pow(10, spread);
        }
        cv_tsallis_weigh(&core, rate, bound);
        check_optimum(&core, rate);
        check_chances(&core, rate, bound);
        cv_tsallis_fini(&core);
      }
    }
  }
}

/* K = 2, r = 1, L = (0, 1.5): at x = -1.0845 the weights are 1/x^2 = .8502 and 1/(1.5 - x)^2 = .1497. */
static void two_arms_by_hand(void **state) {
  struct cv_tsallis core;
  assert_int_equal(cv_tsallis_init(2, &core), CV_OK);
  assert_near(core.chance[0], 0.5, 0);
  core.loss[1] = 1.5;
  cv_tsallis_weigh(&core, 1, 0.01);
  double x = -1 / sqrt(core.weight[0]);
  assert_near(core.weight[1], 1 / ((1.5 - x) * (1.5 - x)), 1e-12);
  assert_near(core.weight[0] + core.weight[1], 1, 1e-12);
  assert_near(x, -1.0845, 1e-4);
  assert_near(core.chance[0], core.weight[0], 1e-12);
  cv_tsallis_fini(&core);
}

/* Over the draw of the arm, each estimate grows by that arm's loss on average, also where the floor applies. */
static void estimates_are_unbiased(void **state) {
  static const double loss[] = {-3, 0.5, 2, -0.25};
  double mean[4] = {0};
  struct cv_tsallis core;
  assert_int_equal(cv_tsallis_init(4, &core), CV_OK);
  core.loss[1] = 500;
  core.loss[2] = 40;
  cv_tsallis_weigh(&core, 0.04, 3);
  assert_true(core.chance[1] > 2 * core.weight[1]);
  for (uint32_t arm = 0; arm < 4; arm++) {
    double chance = core.chance[arm], before[4];
    memcpy(before, core.loss, sizeof(before));
    cv_tsallis_lose(&core, arm, loss[arm]);
    for (uint32_t i = 0; i < 4; i++) {
      mean[i] += chance * (core.loss[i] - before[i]);
    }
  }
  for (uint32_t i = 0; i < 4; i++) {
    assert_near(mean[i], loss[i], 1e-10);
  }
  cv_tsallis_fini(&core);
}

static void draws_have_their_chances(void **state) {
  enum { DRAWS = 100000 };
  struct cv_tsallis core;
  struct cv_rng_seeded rng;
  int drawn[4] = {0};
  cv_rng_seeded_init(&rng, 2, 1, 0, 0);
  assert_int_equal(cv_tsallis_init(4, &core), CV_OK);
  core.loss[1] = 30;
  core.loss[2] = 10;
  cv_tsallis_weigh(&core, 0.1, 0.5);
  for (int i = 0; i < DRAWS; i++) {
    drawn[cv_tsallis_draw(&core, &rng.rng)]++;
  }
  for (uint32_t i = 0; i < 4; i++) {
    double p = core.chance[i];
    assert_near((double)drawn[i] / DRAWS, p, 4 * sqrt(p * (1 - p) / DRAWS));
  }
  assert_true(drawn[0] > 2 * drawn[1]);
  cv_tsallis_fini(&core);
}

/* The laws of tsallis_inf.c by hand: s^2, the b of the first choice and its growth, and an inverted token. */
struct law {
  const char *privatizer, *mechanism;
  double epsilon;
  uint32_t batch, expected; /* batch: parameter, expected: pulls of a choice */
  double square, bound, spread, offset, slope, noise;
};

/* A bit that is kept with 3/4: offset 1/4, slope 1/2, inverted tokens -1/2 and 3/2. */
static const struct law laws[] = {
    {"none", "none", 0, 0, 1, 0.25, 0.5, 0, 0, 1, 0},
    {"laplace", "none", 0.5, 0, 1, 8.25, 0.5, 2, 0, 1, 2},
    {"laplace", "none", 2, 5, 5, 0.25 + 0.5 / 5, 0.5, 0.5, 0, 1, 0.5},
    {"randomized-response", "none", 0, 0, 1, 1, 1, 0, 0.25, 0.5, 0},
    {"randomized-response", "none", 0, 6, 6, 0.375, 1, 0, 0.25, 0.5, 0},
    {"none", "batch", 0.1, 0, 28, 0.25 + 2 / 7.84, 0.5, 1 / 2.8, 0, 1, 10},
    {"none", "batch", 0.5, 3, 3, 0.25 + 2 / 2.25, 0.5, 1 / 1.5, 0, 1, 2},
    {"none", "batch", 9, 0, 1, 0.25 + 2 / 81.0, 0.5, 1 / 9.0, 0, 1, 1 / 9.0},
};

static struct hand hand_of_law(const struct law *law, uint32_t k) {
  struct hand h = hand_of("tsallis-inf", k, 600);
  hand_set(&h.spec.policy, "tau", law->batch);
  (void)snprintf(h.spec.mechanism.name, sizeof(h.spec.mechanism.name), "%s", law->mechanism);
  if (law->slope < 1) {
    hand_privatize(&h, law->privatizer, "p00", 0.75);
    hand_privatize(&h, law->privatizer, "p11", 0.75);
  } else if (strcmp(law->privatizer, "none") != 0) {
    hand_privatize(&h, law->privatizer, "epsilon", law->epsilon);
  } else {
    h.spec.epsilon_micro = (uint64_t)llround(law->epsilon * 1e6);
  }
  return h;
}

/* A release of mechanism batch sums its plan alone. */
static void feed(struct hand *h, const struct law *law, uint32_t arm, uint64_t tokens, int64_t sum) {
  if (strcmp(law->mechanism, "none") == 0) {
    hand_feed(h, arm, tokens, sum);
    return;
  }
  const struct cv_release release = {.number = ++h->number,
                                     .plan = h->plan,
                                     .arm = arm,
                                     .tokens = tokens,
                                     .noisy_sum = sum,
                                     .noise = {1, {{.scale = 1, .count = 1}}}};
  cv_policy_apply(h->policy, &release);
}

static void weigh_by_law(struct cv_tsallis *core, const struct law *law, uint64_t n) {
  double b = law->bound + law->spread * log((double)n), cap = 1 / (4 * b * sqrt(core->arms));
  cv_tsallis_weigh(core, fmin(1 / sqrt(2 * law->square * (double)n), cap), b);
}

static double laplace(struct cv_rng *rng) {
  return log(cv_rng_unit(rng) + 1e-9) - log(cv_rng_unit(rng) + 1e-9);
}

/* The policy's arms, drawn by a core of the test's own that is fed as the table says; reloaded after every release. */
static uint32_t play(const struct law *law, uint32_t k, uint64_t seed) {
  struct cv_rng_seeded rng, stream;
  struct cv_tsallis core;
  struct hand h = hand_of_law(law, k);
  uint64_t pulls = 0, n = 1;
  uint32_t limited = 0;
  cv_rng_seeded_init(&rng, seed, 97, 0, 0);
  assert_int_equal(cv_tsallis_init(k, &core), CV_OK);
  weigh_by_law(&core, law, 1);
  hand_start(&h, seed);
  for (hand_step(&h); !h.step.done; hand_step(&h)) {
    cv_rng_seeded_init(&stream, seed, CV_RNG_POLICY, h.plan, 0);
    uint32_t arm = cv_tsallis_draw(&core, &stream.rng);
    uint64_t asked = 600 - pulls < law->expected ? 600 - pulls : law->expected;
    assert_int_equal(h.step.wants, 1);
    assert_int_equal(h.step.want[0].arm, arm);
    assert_int_equal(h.step.want[0].tokens, asked);
    double exact = law->offset + law->slope * cv_rng_unit(&rng.rng);
    int64_t sum = llround((exact * (double)asked + law->noise * laplace(&rng.rng)) * (double)CV_GRID);
    double b = law->bound + law->spread * log((double)n);
    double loss = 0.5 - ((double)sum / (double)CV_GRID / (double)asked - law->offset) / law->slope;
    limited += fabs(loss) > b;
    cv_tsallis_lose(&core, arm, fmax(-b, fmin(b, loss)));
    weigh_by_law(&core, law, ++n);
    feed(&h, law, arm, asked, sum);
    hand_reload(&h, seed);
    pulls += asked;
  }
  assert_int_equal(pulls, 600);
  cv_tsallis_fini(&core);
  hand_end(&h);
  return limited;
}

static void equals_the_table_step_by_step(void **state) {
  uint32_t limited = 0;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    for (size_t i = 0; i < CV_COUNT(laws); i++) {
      limited += play(&laws[i], 2 + (uint32_t)(seed + i) % 4, seed);
    }
  }
  assert_in_range(limited, 1, 400);
}

/* The best arm changes after a fifth, when the others have little weight. Arm 0 is the best overall from 16/45 on, and
 * is found under every law. */
static void a_new_best_arm_is_found(void **state) {
  for (size_t i = 0; i < CV_COUNT(laws); i++) {
    struct cv_rng_seeded rng;
    struct hand h = hand_of_law(&laws[i], 4);
    uint64_t good[2] = {0}, pulls = 0;
    h.spec.tokens = 200000;
    cv_rng_seeded_init(&rng, i, 3, 0, 0);
    hand_start(&h, 3);
    for (hand_step(&h); !h.step.done; hand_step(&h)) {
      uint32_t arm = h.step.want[0].arm, tokens = h.step.want[0].tokens, half = pulls >= 40000;
      double gain = arm == (half ? 0 : 2) ? 0.9 : arm == 2 ? 0 : 0.1;
      double noise = laws[i].noise * laplace(&rng.rng);
      feed(&h, &laws[i], arm, tokens,
           llround(((laws[i].offset + laws[i].slope * gain) * tokens + noise) * (double)CV_GRID));
      good[half] += arm == (half ? 0 : 2) ? tokens : 0;
      pulls += tokens;
    }
    assert_true(good[0] > 30000 && good[1] > 90000);
    hand_end(&h);
  }
}

static void intervals_hold_the_noise(void **state) {
  struct cv_standing local, central;
  struct hand h = hand_of_law(&laws[1], 2), g = hand_of_law(&laws[6], 2);
  hand_start(&h, 1);
  hand_start(&g, 1);
  hand_step(&h);
  hand_step(&g);
  feed(&h, &laws[1], 0, 1, CV_GRID);
  feed(&g, &laws[6], 0, 3, 6 * CV_GRID / 4);
  cv_policy_standing(h.policy, 0, &local);
  cv_policy_standing(g.policy, 0, &central);
  /* One Laplace of scale 2 exceeds 2 ln 20 with probability .05; three tokens share one. */
  assert_near(local.radius, sqrt(log(40) / 2) + 2 * log(20), 1e-9);
  assert_near(central.radius, sqrt(log(40) / 6) + 2 * log(20) / 3, 1e-9);
  assert_near(central.mean, 0.5, 1e-9);
  assert_int_equal(central.tokens, 3);
  hand_end(&h);
  hand_end(&g);
}

static void campaigns_that_do_not_suit_are_refused(void **state) {
  struct hand h = hand_of("tsallis-inf", 2, 10);
  hand_refused(&h, "policy tsallis-inf receives exact gains; expected third_party: trusted");
  (void)snprintf(h.spec.mechanism.name, sizeof(h.spec.mechanism.name), "hybrid");
  hand_refused(&h,
               "policy tsallis-inf needs exact sums or fresh sums with one noise; expected none or batch, not hybrid");
  (void)snprintf(h.spec.mechanism.name, sizeof(h.spec.mechanism.name), "batch");
  hand_privatize(&h, "laplace", "epsilon", 1);
  hand_refused(&h,
               "policy tsallis-inf takes noise from one party; expected privatizer none or mechanism none, not "
               "laplace and batch");
}

/* A state of the right length with numbers that no run produces. */
static void a_state_with_nonsense_is_refused(void **state) {
  static const double nonsense[] = {(double)NAN, (double)INFINITY, 1e16, -1e16};
  struct hand h = hand_of("tsallis-inf", 2, 1000);
  hand_start(&h, 1);
  hand_step(&h);
  hand_feed(&h, 0, 1, CV_GRID);
  /* choices, of which there is one; the estimates */
  hand_refuses(&h, 24, nonsense, CV_COUNT(nonsense));
  hand_end(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_are_the_optimum),          cmocka_unit_test(two_arms_by_hand),
      cmocka_unit_test(estimates_are_unbiased),           cmocka_unit_test(draws_have_their_chances),
      cmocka_unit_test(equals_the_table_step_by_step),    cmocka_unit_test(a_new_best_arm_is_found),
      cmocka_unit_test(intervals_hold_the_noise),         cmocka_unit_test(campaigns_that_do_not_suit_are_refused),
      cmocka_unit_test(a_state_with_nonsense_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
