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

/* ---- the rankings that delta covers, from scratch ---- */

/* The class of `arm` in the ranking of the arms of `set` alone. */
static uint32_t class_among(const double *mean, uint32_t arms, double alpha, uint32_t set, uint32_t arm) {
  for (uint32_t l = 1;; l++) {
    double best = -1;
    for (uint32_t i = 0; i < arms; i++) {
      best = set >> i & 1 ? fmax(best, mean[i]) : best;
    }
    if (mean[arm] >= best - alpha - 1e-12) {
      return l;
    }
    for (uint32_t i = 0; i < arms; i++) {
      set &= mean[i] >= best - alpha - 1e-12 ? ~(1U << i) : ~0U;
    }
  }
}

/* The arms that truly remain for class l: all but those that are settled or parked above it. */
static uint32_t remaining(const struct cv_standing *standing, uint32_t arms, uint32_t l) {
  uint32_t set = 0;
  for (uint32_t i = 0; i < arms; i++) {
    set |= standing[i].rank_class == 0 || standing[i].rank_class >= l ? 1U << i : 0;
  }
  return set;
}

static uint32_t used_up_in(const struct cv_standing *standing, uint32_t arms, uint32_t l) {
  uint32_t set = 0;
  for (uint32_t i = 0; i < arms; i++) {
    set |= standing[i].held == CV_HELD_USED_UP && standing[i].rank_class == l ? 1U << i : 0;
  }
  return set;
}

/* An arm that is settled in class l is in the first class of what remains, without arms that were used up there. A
 * parked arm is in a class that was told, in the ranking of what remains and of any part of it. */
static bool is_right(const double *mean, uint32_t arms, double alpha, const struct cv_standing *standing,
                     struct cv_rng *rng) {
  bool right = true;
  for (uint32_t i = 0; i < arms; i++) {
    uint32_t l = standing[i].rank_class;
    uint32_t set = l == 0 ? 0 : remaining(standing, arms, l) & ~used_up_in(standing, arms, l);
    if (cv_standing_is_decided(&standing[i])) {
      right = right && class_among(mean, arms, alpha, set, i) == 1;
    } else if (l > 0) {
      uint32_t span = standing[i].rank_last - l;
      right = right && class_among(mean, arms, alpha, set | 1U << i, i) <= 1 + span;
      uint32_t part = (uint32_t)cv_rng_below(rng, 1U << arms);
      right = right && class_among(mean, arms, alpha, (set & part) | 1U << i, i) <= 1 + span;
    }
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

/* Any interval that holds the mean, not even within the one before. */
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
  bool is_finished = cv_ranking_decide(&toy->ranking, &toy->step);
  for (uint32_t i = 0; i < toy->arms; i++) {
    cv_ranking_standing(&toy->ranking, i, &toy->standing[i]);
    assert_true(cv_standing_is_plausible(&toy->standing[i], toy->arms));
    assert_true(!is_finished || toy->standing[i].rank_class > 0);
  }
  return is_finished;
}

static void nothing_that_is_decided_is_wrong_whatever_is_parked_when(void **state) {
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
      if (!is_right(toy.mean, toy.arms, toy.alpha, toy.standing, &toy.rng.rng)) {
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

/* The ladder of the README: items .8, .65 and .5 lie exactly alpha below the best of their classes. */
static void the_ladder_completes_and_names_its_boundaries(void **state) {
  static const double ladder[] = {0.9, 0.9, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45};
  static const uint32_t class[] = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4};
  enum { SEEDS = 12 };
  for (size_t p = 0; p < CV_COUNT(policies); p++) {
    uint32_t wrong = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
      struct crowd c;
      struct cv_standing standing[ARMS_MAX];
      crowd_init(&c, policies[p], ladder, 10, 0.1, 1000000, seed);
      assert_true(crowd_run(&c));
      standings_of(&c, standing);
      wrong += !is_right(ladder, 10, 0.1, standing, &c.rng.rng);
      for (uint32_t i = 0; i < 10; i++) {
        bool is_boundary = i == 2 || i == 5 || i == 8;
        assert_int_equal(standing[i].rank_class, class[i]);
        assert_int_equal(standing[i].held, is_boundary ? CV_HELD_BOUNDARY : CV_HELD_NO);
        assert_int_equal(standing[i].rank_last, is_boundary ? class[i] + 1 : 0);
        assert_true(c.all[i] < 400000);
      }
      crowd_fini(&c);
    }
    assert_int_equal(wrong, 0);
  }
}

/* Alpha 0: both of the tied pair are in classes 2 or 3, and the class below is the third one that is opened. A run in
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
      assert_true(standing[3].rank_class == (is_pair_told_apart ? 4 : 3) && standing[3].held == CV_HELD_NO);
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
      wrong += !is_right(mean, ARMS, 0.2, standing, &rng.rng);
      for (uint32_t i = 0; i < ARMS; i++) {
        parked += standing[i].held != CV_HELD_NO;
      }
      crowd_fini(&c);
    }
    assert_true(wrong < SEEDS / 10);
    assert_true(complete > SEEDS * 3 / 4 && parked > SEEDS / 2);
  }
}

/* An arm without one more token costs the others nothing: they are ranked without it. */
static void one_arm_without_data_does_not_block_the_others(void **state) {
  static const double mean[] = {0.95, 0.9, 0.5, 0.45, 0.1};
  for (size_t p = 0; p < CV_COUNT(policies); p++) {
    for (uint32_t arm = 0; arm < 5; arm++) {
      struct crowd c;
      struct cv_standing standing[ARMS_MAX];
      crowd_init(&c, policies[p], mean, 5, 0.2, 1000000, 3);
      c.rows[arm] = 7;
      assert_true(crowd_run(&c));
      standings_of(&c, standing);
      assert_true(is_right(mean, 5, 0.2, standing, &c.rng.rng));
      for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(standing[i].held, i == arm ? CV_HELD_USED_UP : CV_HELD_NO);
      }
      assert_int_equal(c.all[arm], 7);
      crowd_fini(&c);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_that_is_decided_is_wrong_whatever_is_parked_when),
      cmocka_unit_test(the_ladder_completes_and_names_its_boundaries),
      cmocka_unit_test(a_tied_pair_is_on_a_boundary),
      cmocka_unit_test(errs_less_often_than_delta),
      cmocka_unit_test(one_arm_without_data_does_not_block_the_others),
  };
  return cmocka_run_group_tests_name("parking", tests, NULL, NULL);
}
