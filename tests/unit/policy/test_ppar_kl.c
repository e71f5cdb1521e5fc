/* SPDX-License-Identifier: Apache-2.0 */
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
#include "tests/support/near.h"
#include "thirdparty/policy/policy.h"

enum { ARMS_MAX = 12 };

/* A campaign in this process: coins of these means, behind the broker's mechanism. */
struct crowd {
  struct cv_spec spec;
  struct cv_policy *policy;
  struct cv_policy_step step;
  struct cv_mechanism_law law;
  struct cv_mechanism *counter[ARMS_MAX];
  struct cv_rng_seeded rng;
  const double *mean;
  uint64_t plan, number, tokens, releases[ARMS_MAX], all[ARMS_MAX], shown[ARMS_MAX];
};

static void set_spec(struct cv_spec *spec, uint32_t arms, double alpha, double delta, const char *scores,
                     const char *mechanism) {
  *spec = (struct cv_spec){.arms = arms, .epsilon_micro = 1000000, .tokens_per_worker = 1, .tokens = 1 << 30};
  (void)snprintf(spec->policy.name, sizeof(spec->policy.name), "ppar-kl");
  (void)snprintf(spec->privatizer.name, sizeof(spec->privatizer.name), "none");
  (void)snprintf(spec->mechanism.name, sizeof(spec->mechanism.name), "%s", mechanism);
  struct cv_params *params = &spec->policy.params;
  const struct cv_param *bad;
  struct cv_why why;
  assert_int_equal(cv_params_set_number(params, "alpha", alpha), CV_OK);
  assert_int_equal(cv_params_set_number(params, "delta", delta), CV_OK);
  assert_int_equal(cv_params_set_number(params, "tokens_per_round", 1), CV_OK);
  assert_int_equal(cv_params_set_text(params, "scores", scores), CV_OK);
  assert_int_equal(cv_policy_check(&spec->policy, &bad, &why), CV_OK);
}

static void crowd_init(struct crowd *c, const struct cv_spec *spec, const double *mean, uint64_t seed) {
  *c = (struct crowd){.spec = *spec, .mean = mean};
  assert_int_equal(cv_policy_fits(&c->spec, NULL), CV_OK);
  assert_int_equal(cv_policy_new(&c->spec, seed, &c->policy), CV_OK);
  cv_rng_seeded_init(&c->rng, seed, 3, 0, 0);
  c->law = mechanism_law(spec->mechanism.name, spec->epsilon_micro, 1 << 10);
  for (uint32_t i = 0; i < spec->arms; i++) {
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
  uint32_t arm = want->arm;
  int64_t sum = 0;
  for (uint32_t i = 0; i < want->tokens; i++) {
    sum += cv_rng_unit(&c->rng.rng) < c->mean[arm] ? CV_GRID : 0;
  }
  struct cv_release release = {.number = ++c->number, .plan = c->plan, .arm = arm};
  uint64_t n = ++c->releases[arm];
  c->all[arm] += want->tokens;
  c->tokens += want->tokens;
  c->shown[arm] = mechanism_tokens(&c->law, n, c->shown[arm], want->tokens, c->all[arm]);
  release.tokens = c->shown[arm];
  cv_mechanism_draw(c->counter[arm], &c->rng.rng);
  release.noisy_sum = cv_mechanism_release(c->counter[arm], sum);
  cv_mechanism_noise(&c->law, n, &release.noise);
  cv_policy_apply(c->policy, &release);
}

static void crowd_step(struct crowd *c) {
  assert_int_equal(cv_policy_step(c->policy, ++c->plan, &c->step), CV_OK);
}

/* Until all is decided or the crowd has given `limit` tokens. */
static void crowd_run(struct crowd *c, uint64_t limit) {
  crowd_step(c);
  while (!c->step.done && c->tokens < limit) {
    for (size_t i = 0; i < c->step.wants; i++) {
      crowd_answer(c, &c->step.want[i]);
    }
    crowd_step(c);
  }
}

static struct cv_standing standing_of(const struct crowd *c, uint32_t arm) {
  struct cv_standing standing;
  cv_policy_standing(c->policy, arm, &standing);
  return standing;
}

/* The best of what is left and all within alpha of it, again and again. */
static void true_classes(const double *mean, uint32_t arms, double alpha, uint32_t *ret) {
  uint32_t left = arms;
  memset(ret, 0, arms * sizeof(*ret));
  for (uint32_t l = 1; left > 0; l++) {
    double best = -1;
    for (uint32_t i = 0; i < arms; i++) {
      best = ret[i] == 0 ? fmax(best, mean[i]) : best;
    }
    for (uint32_t i = 0; i < arms; i++) {
      if (ret[i] == 0 && mean[i] >= best - alpha) {
        ret[i] = l;
        left--;
      }
    }
  }
}

static bool is_wrong(const struct crowd *c, double alpha) {
  uint32_t truth[ARMS_MAX];
  true_classes(c->mean, c->spec.arms, alpha, truth);
  for (uint32_t i = 0; i < c->spec.arms; i++) {
    uint32_t found = standing_of(c, i).rank_class;
    if (found != 0 && found != truth[i]) {
      return true;
    }
  }
  return false;
}

static const struct {
  const char *mechanism, *scores;
} ways[] = {
    {"segments", "independent"},       {"segments", "reacting"},  {"segments", "without-replacement"},
    {"none", "independent"},           {"none", "reacting"},      {"none", "without-replacement"},
    {"doubling", "independent"},       {"hybrid", "independent"}, {"hybrid", "without-replacement"},
    {"binary-honaker", "independent"}, {"kary", "independent"},
};

/* Right, and complete, in every way that there is; delta is .5, and yet the gaps are so clear that hardly any run may
 * err: an interval is at least five times as sure in practice. */
static void ranks_rightly_in_every_way(void **state) {
  static const double mean[] = {0.95, 0.1, 0.9, 0.5, 0.45, 0.8};
  enum { RUNS = 20 };
  for (size_t w = 0; w < CV_COUNT(ways); w++) {
    int wrong = 0;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
      struct cv_spec spec;
      struct crowd c;
      set_spec(&spec, 6, 0.2, 0.5, ways[w].scores, ways[w].mechanism);
      crowd_init(&c, &spec, mean, seed);
      crowd_run(&c, 2000000);
      assert_true(c.step.done);
      wrong += is_wrong(&c, 0.2);
      crowd_fini(&c);
    }
    assert_in_range(wrong, 0, 4);
  }
}

/* Items exactly on a boundary, and as much doubt as is allowed: what is settled is still mostly right. */
static void errs_less_often_than_delta_where_items_lie_on_boundaries(void **state) {
  static const double mean[] = {0.8, 0.7, 0.7, 0.6, 0.5, 0.4};
  enum { RUNS = 150 };
  static const double delta = 0.8;
  for (size_t w = 0; w < CV_COUNT(ways); w += 1 + (w == 0) * 2) {
    int wrong = 0;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
      struct cv_spec spec;
      struct crowd c;
      set_spec(&spec, 6, 0.1, delta, ways[w].scores, ways[w].mechanism);
      crowd_init(&c, &spec, mean, 100 + seed);
      crowd_run(&c, 20000);
      wrong += is_wrong(&c, 0.1);
      crowd_fini(&c);
    }
    assert_true(wrong < delta * RUNS);
  }
}

/* Three quarters of the answers are kept: the ranking is of the scores, not of the tokens. */
static void randomized_response_is_undone(void **state) {
  static const double answers[] = {0.7, 0.3, 0.5}; /* of scores .9, .1, .5 */
  static const double mean[] = {0.9, 0.1, 0.5};
  for (int reversed = 0; reversed < 2; reversed++) {
    struct cv_spec spec;
    struct crowd c;
    static const double tokens[] = {0.3, 0.7, 0.5};
    set_spec(&spec, 3, 0.2, 0.1, "independent", "none");
    (void)snprintf(spec.privatizer.name, sizeof(spec.privatizer.name), "randomized-response");
    double kept = reversed ? 0.25 : 0.75;
    assert_int_equal(cv_params_set_number(&spec.privatizer.params, "p00", kept), CV_OK);
    assert_int_equal(cv_params_set_number(&spec.privatizer.params, "p11", kept), CV_OK);
    crowd_init(&c, &spec, reversed ? tokens : answers, 5);
    crowd_run(&c, 1000000);
    assert_true(c.step.done);
    for (uint32_t i = 0; i < 3; i++) {
      struct cv_standing standing = standing_of(&c, i);
      assert_int_equal(standing.rank_class, i == 0 ? 1 : i == 1 ? 3 : 2);
      assert_true(fabs(standing.mean - mean[i]) <= standing.radius);
    }
    crowd_fini(&c);
  }
}

/* The first three lengths of an arm follow from the campaign alone, whatever the releases are. */
static void the_first_lengths_do_not_depend_on_releases(void **state) {
  static const double even[] = {0.5, 0.45, 0.5, 0.48}, apart[] = {0.55, 0.5, 0.45, 0.4};
  uint64_t length[2][3] = {{0}};
  for (int which = 0; which < 2; which++) {
    struct cv_spec spec;
    struct crowd c;
    uint64_t looks[ARMS_MAX] = {0}, tokens[ARMS_MAX] = {0};
    set_spec(&spec, 4, 0.05, 0.1, "independent", "segments");
    crowd_init(&c, &spec, which == 0 ? even : apart, 9);
    crowd_step(&c);
    assert_int_equal(c.step.wants, 4); /* every arm once */
    while (!c.step.done && c.tokens < 200000) {
      for (size_t i = 0; i < c.step.wants; i++) {
        uint32_t arm = c.step.want[i].arm;
        uint64_t n = looks[arm]++;
        tokens[arm] += c.step.want[i].tokens;
        if (n < 3) {
          assert_true(length[which][n] == 0 || length[which][n] == tokens[arm]);
          length[which][n] = tokens[arm];
        }
        crowd_answer(&c, &c.step.want[i]);
      }
      crowd_step(&c);
    }
    crowd_fini(&c);
  }
  for (int n = 0; n < 3; n++) {
    assert_true(length[0][n] > 0);
    assert_int_equal(length[0][n], length[1][n]);
  }
  assert_int_equal(length[0][1], ceil(1.5 * (double)length[0][0]));
  assert_int_equal(length[0][2], ceil(1.5 * (double)length[0][1]));
}

/* K = 2, alpha = .1, delta = .1, epsilon 1: the look's level is ln(4/(.04 x .4/.88)); the first length takes an arm of
 * .9 below one of 1 with 1.6 to spare. */
static void the_first_length_by_hand(void **state) {
  static const double mean[] = {0.5, 0.5};
  struct cv_spec spec;
  struct crowd c;
  set_spec(&spec, 2, 0.1, 0.1, "independent", "segments");
  crowd_init(&c, &spec, mean, 1);
  crowd_step(&c);
  double level = log(4 / (0.04 * 0.4 / 0.88)), divergence = 1 - log(1 + 0.9 * (exp(1) - 1));
  assert_int_equal(c.step.want[0].tokens, ceil((level - log(2) + 1.6) / divergence));
  crowd_fini(&c);
}

static struct cv_release bare(uint64_t number, uint32_t arm, uint64_t tokens, double mean, uint32_t noises) {
  return (struct cv_release){.number = number,
                             .arm = arm,
                             .tokens = tokens,
                             .noisy_sum = (int64_t)(mean * (double)tokens * (double)CV_GRID),
                             .noise = {.groups = noises > 0, .group = {{.scale = 1, .count = noises}}}};
}

/* What was excluded once stays excluded: an interval never widens, even if a later release says otherwise. */
static void an_interval_never_widens(void **state) {
  static const double mean[] = {0.5, 0.5};
  struct cv_spec spec;
  struct crowd c;
  set_spec(&spec, 2, 0.1, 0.1, "independent", "segments");
  crowd_init(&c, &spec, mean, 1);
  struct cv_release first = bare(1, 0, 100000, 0.5, 1), wild = bare(2, 0, 150000, 0.9, 2);
  cv_policy_apply(c.policy, &first);
  struct cv_standing before = standing_of(&c, 0);
  assert_true(before.radius < 0.02 && fabs(before.mean - 0.5) < 0.01);
  cv_policy_apply(c.policy, &wild);
  struct cv_standing after = standing_of(&c, 0);
  assert_true(after.mean + after.radius <= before.mean + before.radius + 1e-9);
  assert_true(after.mean - after.radius >= before.mean - before.radius - 1e-9);
  assert_true(after.radius >= 0);
  crowd_fini(&c);
}

static void a_repeated_release_changes_nothing(void **state) {
  static const double mean[] = {0.5, 0.5};
  struct cv_spec spec;
  struct crowd c;
  struct cv_buf before = {0}, after = {0};
  set_spec(&spec, 2, 0.1, 0.1, "independent", "doubling");
  crowd_init(&c, &spec, mean, 1);
  struct cv_release release = bare(1, 0, 5000, 0.5, 1);
  cv_policy_apply(c.policy, &release);
  cv_policy_save(c.policy, &before);
  release.number = 2;
  cv_policy_apply(c.policy, &release);
  cv_policy_save(c.policy, &after);
  assert_int_equal(before.len, after.len);
  assert_memory_equal(before.data, after.data, before.len);
  cv_buf_fini(&before);
  cv_buf_fini(&after);
  crowd_fini(&c);
}

static void more_arms_in_a_plan_are_different_arms(void **state) {
  static const double mean[] = {0.5, 0.49, 0.48, 0.47, 0.46, 0.45, 0.44, 0.43};
  struct cv_spec spec;
  struct crowd c;
  set_spec(&spec, 8, 0.01, 0.1, "independent", "segments");
  assert_int_equal(cv_params_set_number(&spec.policy.params, "arms_per_plan", 4), CV_OK);
  crowd_init(&c, &spec, mean, 2);
  crowd_step(&c);
  size_t most = 0;
  while (c.tokens < 300000) {
    bool named[8] = {false};
    for (size_t i = 0; i < c.step.wants; i++) {
      assert_false(named[c.step.want[i].arm]);
      named[c.step.want[i].arm] = true;
      crowd_answer(&c, &c.step.want[i]);
    }
    crowd_step(&c);
    assert_in_range(c.step.wants, 1, 4);
    most = c.step.wants > most ? c.step.wants : most;
  }
  assert_in_range(most, 2, 4);
  crowd_fini(&c);
}

/* The operator's smallest release: no plan asks for less. */
static void no_plan_asks_for_less_than_a_round(void **state) {
  static const double mean[] = {0.5, 0.45, 0.5, 0.48};
  struct cv_spec spec;
  struct crowd c;
  set_spec(&spec, 4, 0.05, 0.1, "independent", "segments");
  assert_int_equal(cv_params_set_number(&spec.policy.params, "tokens_per_round", 5000), CV_OK);
  crowd_init(&c, &spec, mean, 9);
  crowd_step(&c);
  while (!c.step.done && c.tokens < 400000) {
    for (size_t i = 0; i < c.step.wants; i++) {
      assert_true(c.step.want[i].tokens >= 5000);
      crowd_answer(&c, &c.step.want[i]);
    }
    crowd_step(&c);
  }
  crowd_fini(&c);
}

static void assert_refused(const char *mechanism, const char *privatizer, const char *scores, const char *expected) {
  struct cv_spec spec;
  struct cv_why why = {.text = ""};
  set_spec(&spec, 2, 0.1, 0.1, scores, mechanism);
  (void)snprintf(spec.privatizer.name, sizeof(spec.privatizer.name), "%s", privatizer);
  assert_int_equal(cv_policy_fits(&spec, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, expected);
}

static void what_the_proof_does_not_cover_is_refused(void **state) {
  assert_refused(
      "batch", "none", "independent",
      "policy ppar-kl needs the sum of all tokens of an item; expected mechanism hybrid or none or binary or "
      "binary-honaker or kary or segments or doubling or per-item or hybrid-printed or kary-blocks, not batch");
  assert_refused("segments", "laplace", "independent",
                 "policy ppar-kl needs tokens between 0 and 1; expected another privatizer than laplace");
  assert_refused("doubling", "none", "without-replacement",
                 "policy ppar-kl without replacement needs a new release for every plan; expected another mechanism "
                 "than doubling");
  assert_refused("hybrid", "none", "reacting",
                 "policy ppar-kl with reacting scores needs fresh noise in each release; expected mechanism none or "
                 "segments or doubling or per-item, not hybrid");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_rightly_in_every_way),
      cmocka_unit_test(errs_less_often_than_delta_where_items_lie_on_boundaries),
      cmocka_unit_test(randomized_response_is_undone),
      cmocka_unit_test(the_first_lengths_do_not_depend_on_releases),
      cmocka_unit_test(the_first_length_by_hand),
      cmocka_unit_test(an_interval_never_widens),
      cmocka_unit_test(a_repeated_release_changes_nothing),
      cmocka_unit_test(more_arms_in_a_plan_are_different_arms),
      cmocka_unit_test(no_plan_asks_for_less_than_a_round),
      cmocka_unit_test(what_the_proof_does_not_cover_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
