/* SPDX-License-Identifier: Apache-2.0 */
/* Parked arms: what is decided stays right, whatever is parked when, and the ranking ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "tests/support/mechanism.h"
#include "thirdparty/policy/ranking.h"
#include "thirdparty/policy/step.h"

enum { ARMS_MAX = 10 };

/* ---- the ranking of all arms, from scratch ---- */

/* The class of `arm` among all. */
static uint32_t class_of(const double *mean, uint32_t arms, double alpha, uint32_t arm) {
  uint32_t left = (1U << arms) - 1;
  for (uint32_t l = 1;; l++) {
    double best = -1;
    for (uint32_t i = 0; i < arms; i++) {
      best = left >> i & 1 ? fmax(best, mean[i]) : best;
    }
    if (mean[arm] >= best - alpha - 1e-12) {
      return l;
    }
    for (uint32_t i = 0; i < arms; i++) {
      left &= mean[i] >= best - alpha - 1e-12 ? ~(1U << i) : ~0U;
    }
  }
}

/* Whatever is told of an arm is true among all arms, also among those that are parked. */
static bool is_right(const double *mean, uint32_t arms, double alpha, const struct cv_standing *standing) {
  bool right = true;
  for (uint32_t i = 0; i < arms; i++) {
    uint32_t class = class_of(mean, arms, alpha, i), first = standing[i].rank_class;
    uint32_t last = cv_standing_is_decided(&standing[i]) ? first : standing[i].rank_last;
    right = right && (first == 0 || (class >= first && class <= last));
  }
  return right;
}

/* ---- intervals that always hold ---- */

struct toy {
  struct cv_ranking ranking;
  struct cv_policy_step step;
  struct cv_standing standing[ARMS_MAX];
  uint32_t arms;
  double alpha, mean[ARMS_MAX];
  struct cv_rng_seeded rng;
  bool exhausts;
};

static double unit(struct toy *toy) {
  return cv_rng_unit(&toy->rng.rng);
}

/* Means on a grid, so that many items tie and many lie exactly on boundaries. */
static void toy_init(struct toy *toy, uint64_t seed) {
  static const double alphas[] = {0, 0.1, 0.2, 0.25};
  *toy = (struct toy){0};
  cv_rng_seeded_init(&toy->rng, seed, 1, 0, 0);
  toy->arms = 1 + (uint32_t)cv_rng_below(&toy->rng.rng, ARMS_MAX);
  toy->alpha = alphas[cv_rng_below(&toy->rng.rng, CV_COUNT(alphas))];
  toy->exhausts = unit(toy) < 0.5;
  for (uint32_t i = 0; i < toy->arms; i++) {
    toy->mean[i] = 0.05 * (double)cv_rng_below(&toy->rng.rng, 21);
  }
  assert_int_equal(cv_ranking_init(toy->alpha, false, toy->arms, &toy->ranking), CV_OK);
  assert_int_equal(cv_policy_step_reserve(&toy->step, 2 * (size_t)toy->arms, toy->arms), CV_OK);
  toy->ranking.parks = true;
  toy->ranking.doubt = 0.3 * unit(toy);
  toy->ranking.limit = 1 + cv_rng_below(&toy->rng.rng, 200000);
}

static void toy_fini(struct toy *toy) {
  cv_ranking_fini(&toy->ranking);
  cv_policy_step_fini(&toy->step);
}

/* Any interval that holds the mean, though not within the one before. */
static void toy_release(struct toy *toy, uint32_t i) {
  struct cv_ranked *arm = &toy->ranking.arm[i];
  uint64_t more = 100 + arm->tokens / 2;
  arm->tokens += more;
  arm->next = 100;
  toy->ranking.asked += more;
  arm->radius = unit(toy) * 8 / sqrt((double)arm->tokens);
  arm->mean = toy->mean[i] + (2 * unit(toy) - 1) * 0.999 * arm->radius;
  arm->noisy_mean = arm->mean;
}

/* A step of releases, ends of data, and decisions. True at the end. */
static bool toy_step(struct toy *toy) {
  bool is_first = toy->ranking.arm[0].tokens == 0 && !toy->ranking.arm[0].is_exhausted;
  for (uint32_t i = 0; i < toy->arms; i++) {
    struct cv_ranked *arm = &toy->ranking.arm[i];
    if (!arm->is_exhausted && (is_first || unit(toy) < 0.5)) {
      toy_release(toy, i);
    }
    if (toy->exhausts && unit(toy) < 0.03) {
      cv_ranking_exhaust(&toy->ranking, i);
      arm->tokens = is_first && unit(toy) < 0.5 ? 0 : arm->tokens;
    }
  }
  toy->step.decisions = 0;
  bool all_settled = true;
  bool is_finished = cv_ranking_decide(&toy->ranking, &toy->step);
  for (uint32_t i = 0; i < toy->arms; i++) {
    cv_ranking_standing(&toy->ranking, i, &toy->standing[i]);
    assert_true(cv_standing_is_plausible(&toy->standing[i], toy->arms));
    assert_true(!is_finished || toy->standing[i].rank_class > 0);
    assert_false(toy->standing[i].contradicts);
    all_settled = all_settled && toy->ranking.arm[i].rank_class > 0;
  }
  /* While nothing was parked the intervals alone say what was settled. */
  for (uint32_t i = 0; i < toy->arms && is_finished && all_settled; i++) {
    assert_int_equal(toy->standing[i].rank_class, toy->ranking.arm[i].rank_class);
    cv_ranking_close(&toy->ranking);
    cv_ranking_standing(&toy->ranking, i, &toy->standing[i]);
    assert_int_equal(toy->standing[i].rank_class, toy->ranking.arm[i].rank_class);
    assert_true(cv_standing_is_decided(&toy->standing[i]));
  }
  return is_finished;
}

static void nothing_that_is_told_is_wrong_whatever_is_parked_when(void **state) {
  enum { RUNS = 20000 };
  uint32_t finished = 0, boundary = 0, used_up = 0, decided = 0;
  for (uint64_t seed = 0; seed < RUNS; seed++) {
    struct toy toy;
    bool is_finished = false;
    toy_init(&toy, seed);
    for (int step = 0; step < 40 && !is_finished; step++) {
      struct cv_standing before[ARMS_MAX];
      memcpy(before, toy.standing, sizeof(before));
      is_finished = toy_step(&toy);
      if (!is_right(toy.mean, toy.arms, toy.alpha, toy.standing)) {
        fail_msg("run %d, step %d", (int)seed, step);
      }
      for (uint32_t i = 0; i < toy.arms; i++) {
        assert_true(!cv_standing_is_decided(&before[i]) || before[i].rank_class == toy.standing[i].rank_class);
      }
    }
    finished += is_finished;
    for (uint32_t i = 0; i < toy.arms; i++) {
      boundary += toy.standing[i].held == CV_HELD_BOUNDARY;
      used_up += toy.standing[i].held == CV_HELD_USED_UP;
      decided += cv_standing_is_decided(&toy.standing[i]);
    }
    toy_fini(&toy);
  }
  /* All kinds must have come up. */
  assert_true(finished > RUNS / 2 && boundary > RUNS / 10 && used_up > RUNS / 10 && decided > RUNS);
}

/* ---- tokens ---- */

/* A campaign of coins behind the broker's mechanism. */
struct crowd {
  struct cv_spec spec;
  struct cv_policy *policy;
  struct cv_policy_step step;
  struct cv_mechanism_law law;
  struct cv_mechanism *counter[ARMS_MAX];
  struct cv_rng_seeded rng;
  uint64_t plan, number, tokens, releases[ARMS_MAX], all[ARMS_MAX];
  uint64_t rows[ARMS_MAX]; /* the most tokens of an arm; 0: no limit */
  const double *mean;
};

static void crowd_init(struct crowd *c, const char *policy, const double *mean, uint32_t arms, double alpha,
                       uint64_t tokens, uint64_t seed) {
  *c = (struct crowd){.mean = mean,
                      .spec = {.arms = arms, .epsilon_micro = 1000000, .tokens_per_worker = 1, .tokens = tokens}};
  (void)snprintf(c->spec.policy.name, sizeof(c->spec.policy.name), "%s", policy);
  (void)snprintf(c->spec.privatizer.name, sizeof(c->spec.privatizer.name), "none");
  (void)snprintf(c->spec.mechanism.name, sizeof(c->spec.mechanism.name), "segments");
  const struct cv_param *bad;
  assert_int_equal(cv_params_set_number(&c->spec.policy.params, "alpha", alpha), CV_OK);
  assert_int_equal(cv_params_set_number(&c->spec.policy.params, "tokens_per_round", 500), CV_OK);
  assert_int_equal(cv_policy_check(&c->spec.policy, &bad, NULL), CV_OK);
  assert_int_equal(cv_policy_fits(&c->spec, NULL), CV_OK);
  assert_int_equal(cv_policy_new(&c->spec, seed, &c->policy), CV_OK);
  cv_rng_seeded_init(&c->rng, seed, 3, 0, 0);
  c->law = mechanism_law("segments", c->spec.epsilon_micro, 1 << 10);
  for (uint32_t i = 0; i < arms; i++) {
    c->counter[i] = mechanism_new(&c->law);
  }
}

static void crowd_fini(struct crowd *c) {
  cv_policy_free(c->policy);
  cv_policy_step_fini(&c->step);
  for (uint32_t i = 0; i < c->spec.arms; i++) {
    cv_mechanism_free(c->counter[i]);
  }
}

static void crowd_answer(struct crowd *c, const struct cv_want *want) {
  uint32_t arm = want->arm, tokens = want->tokens;
  bool is_last = c->rows[arm] > 0 && c->all[arm] + tokens >= c->rows[arm];
  tokens = is_last ? (uint32_t)(c->rows[arm] - c->all[arm]) : tokens;
  int64_t sum = 0;
  for (uint32_t i = 0; i < tokens; i++) {
    sum += cv_rng_unit(&c->rng.rng) < c->mean[arm] ? CV_GRID : 0;
  }
  c->all[arm] += tokens;
  c->tokens += tokens;
  if (tokens > 0) {
    struct cv_release release = {.number = ++c->number, .plan = c->plan, .arm = arm, .tokens = c->all[arm]};
    cv_mechanism_draw(c->counter[arm], &c->rng.rng);
    release.noisy_sum = cv_mechanism_release(c->counter[arm], sum);
    cv_mechanism_noise(&c->law, ++c->releases[arm], &release.noise);
    cv_policy_apply(c->policy, &release);
  }
  if (is_last) {
    assert_true(cv_policy_exhaust(c->policy, arm));
  }
}

/* As the broker: a plan that asks for more than is left is refused, and the campaign ends. True if it is complete. */
static bool crowd_run(struct crowd *c) {
  for (;;) {
    uint64_t asked = 0;
    assert_int_equal(cv_policy_step(c->policy, ++c->plan, &c->step), CV_OK);
    for (size_t i = 0; i < c->step.wants; i++) {
      asked += c->step.want[i].tokens;
    }
    if (c->step.done || c->tokens + asked > c->spec.tokens) {
      return c->step.done;
    }
    for (size_t i = 0; i < c->step.wants; i++) {
      crowd_answer(c, &c->step.want[i]);
    }
  }
}

static void standings_of(const struct crowd *c, struct cv_standing *ret) {
  for (uint32_t i = 0; i < c->spec.arms; i++) {
    cv_policy_standing(c->policy, i, &ret[i]);
  }
}

static const char *const policies[] = {"ppar-kl", "ppar"};

/* Items .8, .65 and .5 lie exactly alpha below the best of their classes. Each of them may open a class of its own, so
 * that those below move; .75 is in the second class with .8 and without it. */
static void the_ladder_completes_and_names_its_boundaries(void **state) {
  static const double ladder[] = {0.9, 0.9, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45};
  static const uint32_t first[] = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4}, last[] = {0, 0, 2, 0, 3, 3, 4, 4, 5, 5};
  enum { SEEDS = 12 };
  for (size_t p = 0; p < CV_COUNT(policies); p++) {
    uint32_t wrong = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
      struct crowd c;
      struct cv_standing standing[ARMS_MAX];
      crowd_init(&c, policies[p], ladder, 10, 0.1, 1000000, seed);
      assert_true(crowd_run(&c));
      standings_of(&c, standing);
      wrong += !is_right(ladder, 10, 0.1, standing);
      for (uint32_t i = 0; i < 10; i++) {
        bool is_boundary = i == 2 || i == 5 || i == 8;
        assert_int_equal(standing[i].rank_class, first[i]);
        assert_int_equal(standing[i].held, last[i] == 0 ? CV_HELD_NO : is_boundary ? CV_HELD_BOUNDARY : CV_HELD_OPEN);
        assert_in_range(standing[i].rank_last, last[i], i == 9 ? last[i] + 1 : last[i]);
        assert_true(c.all[i] < 400000);
      }
      crowd_fini(&c);
    }
    assert_int_equal(wrong, 0);
  }
}

/* Alpha 0: both of the tied pair are in classes 2 or 3, and the item below them is in the third or the fourth. A run in
 * which delta lets the pair be told apart is no such run. */
static void a_tied_pair_is_on_a_boundary(void **state) {
  static const double mean[] = {0.5, 0.9, 0.5, 0.1};
  enum { SEEDS = 20 };
  for (size_t p = 0; p < CV_COUNT(policies); p++) {
    uint32_t wrong = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
      struct crowd c;
      struct cv_standing standing[ARMS_MAX];
      crowd_init(&c, policies[p], mean, 4, 0, 200000, seed);
      assert_true(crowd_run(&c));
      standings_of(&c, standing);
      bool is_pair_told_apart = cv_standing_is_decided(&standing[0]) || cv_standing_is_decided(&standing[2]);
      wrong += is_pair_told_apart;
      assert_true(standing[1].rank_class == 1 && standing[1].held == CV_HELD_NO);
      assert_int_equal(standing[3].rank_class, is_pair_told_apart ? 4 : 3);
      assert_int_equal(standing[3].rank_last, is_pair_told_apart ? 0 : 4);
      assert_int_equal(standing[3].held, is_pair_told_apart ? CV_HELD_NO : CV_HELD_OPEN);
      for (uint32_t i = 0; i <= 2 && !is_pair_told_apart; i += 2) {
        assert_int_equal(standing[i].held, CV_HELD_BOUNDARY);
        assert_true(standing[i].rank_class == 2 && standing[i].rank_last == 3);
      }
      crowd_fini(&c);
    }
    assert_true(wrong <= SEEDS / 10);
  }
}

/* Boundaries everywhere, data that run out, limits of all sizes, and delta .1: fewer than that may err. */
static void errs_less_often_than_delta(void **state) {
  enum { SEEDS = 200, ARMS = 6 };
  for (size_t p = 0; p < CV_COUNT(policies); p++) {
    uint32_t wrong = 0, complete = 0, parked = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
      struct crowd c;
      struct cv_standing standing[ARMS_MAX];
      struct cv_rng_seeded rng;
      double mean[ARMS];
      cv_rng_seeded_init(&rng, seed, 4, 0, 0);
      for (uint32_t i = 0; i < ARMS; i++) {
        mean[i] = 0.1 * (double)cv_rng_below(&rng.rng, 11);
      }
      crowd_init(&c, policies[p], mean, ARMS, 0.2, UINT64_C(10000) << cv_rng_below(&rng.rng, 5), seed);
      for (uint32_t i = 0; i < ARMS && seed % 2 == 0; i++) {
        c.rows[i] = cv_rng_unit(&rng.rng) < 0.3 ? 1 + cv_rng_below(&rng.rng, 20000) : 0;
      }
      complete += crowd_run(&c);
      standings_of(&c, standing);
      wrong += !is_right(mean, ARMS, 0.2, standing);
      for (uint32_t i = 0; i < ARMS; i++) {
        parked += standing[i].held != CV_HELD_NO;
      }
      crowd_fini(&c);
    }
    assert_true(wrong < SEEDS / 10);
    assert_true(complete > SEEDS * 3 / 4 && parked > SEEDS / 2);
  }
}

/* An arm without one more token does not end the ranking of the others, which are told as far as they do not depend on
 * it: the first class has no room above it, and each one below may be one lower. */
static void one_arm_without_data_does_not_block_the_others(void **state) {
  static const double mean[] = {0.95, 0.9, 0.5, 0.45, 0.1};
  static const uint32_t first[] = {1, 1, 2, 2, 3}, last[] = {0, 0, 3, 3, 4};
  for (size_t p = 0; p < CV_COUNT(policies); p++) {
    for (uint32_t arm = 0; arm < 5; arm++) {
      struct crowd c;
      struct cv_standing standing[ARMS_MAX];
      crowd_init(&c, policies[p], mean, 5, 0.2, 1000000, 3);
      c.rows[arm] = 7;
      assert_true(crowd_run(&c));
      standings_of(&c, standing);
      assert_true(is_right(mean, 5, 0.2, standing));
      for (uint32_t i = 0; i < 5; i++) {
        if (i == arm) {
          assert_int_equal(standing[i].held, CV_HELD_USED_UP);
          assert_in_range(standing[i].rank_last, standing[i].rank_class + 2, 4);
          continue;
        }
        assert_int_equal(standing[i].rank_class, first[i]);
        assert_int_equal(standing[i].held, last[i] == 0 ? CV_HELD_NO : CV_HELD_OPEN);
        assert_in_range(standing[i].rank_last, last[i], i == 4 ? 5 : last[i]);
      }
      assert_int_equal(c.all[arm], 7);
      crowd_fini(&c);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_that_is_told_is_wrong_whatever_is_parked_when),
      cmocka_unit_test(the_ladder_completes_and_names_its_boundaries),
      cmocka_unit_test(a_tied_pair_is_on_a_boundary),
      cmocka_unit_test(errs_less_often_than_delta),
      cmocka_unit_test(one_arm_without_data_does_not_block_the_others),
  };
  return cmocka_run_group_tests_name("parking", tests, NULL, NULL);
}
