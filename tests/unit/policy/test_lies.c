/* SPDX-License-Identifier: Apache-2.0 */
/* How many lies a ranking bears, against lies: sums that are changed by so many tokens, and crowds with liars. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "tests/support/mechanism.h"
#include "thirdparty/policy/confidence.h"
#include "thirdparty/policy/policy.h"

enum { ARMS = 4 };

static void set_spec(struct cv_spec *spec, const char *policy, double alpha, const char *radius, uint64_t lies) {
  *spec = (struct cv_spec){.arms = ARMS, .epsilon_micro = 4000000, .tokens_per_worker = 1, .tokens = 1 << 30};
  (void)snprintf(spec->policy.name, sizeof(spec->policy.name), "%s", policy);
  (void)snprintf(spec->privatizer.name, sizeof(spec->privatizer.name), "none");
  (void)snprintf(spec->mechanism.name, sizeof(spec->mechanism.name), "segments");
  struct cv_params *params = &spec->policy.params;
  const struct cv_param *bad;
  struct cv_why why;
  assert_int_equal(cv_params_set_number(params, "alpha", alpha), CV_OK);
  assert_int_equal(cv_params_set_number(params, "delta", .01), CV_OK);
  assert_int_equal(cv_params_set_number(params, "lies", (double)lies), CV_OK);
  if (radius != NULL) {
    assert_int_equal(cv_params_set_text(params, "radius", radius), CV_OK);
    assert_int_equal(cv_params_set_number(params, "tokens_per_round", 200), CV_OK);
  }
  assert_int_equal(cv_policy_check(&spec->policy, &bad, &why), CV_OK);
}

/* ---- one release of each arm ---- */

struct found {
  uint32_t rank_class[ARMS];
  struct cv_policy_lies lies[ARMS];
};

/* What a policy decides from these sums, in whole tokens of 1. */
static struct found decide(const struct cv_spec *spec, const uint64_t *tokens, const int64_t *sum) {
  struct cv_policy *policy;
  struct cv_policy_step step = {0};
  struct found found;
  assert_int_equal(cv_policy_new(spec, 1, &policy), CV_OK);
  cv_policy_count_lies(policy);
  assert_int_equal(cv_policy_step(policy, 1, &step), CV_OK);
  for (uint32_t i = 0; i < ARMS; i++) {
    const struct cv_release release = {
        .number = i + 1, .plan = 1, .arm = i, .tokens = tokens[i], .noisy_sum = sum[i] * CV_GRID};
    cv_policy_apply(policy, &release);
  }
  assert_int_equal(cv_policy_step(policy, 2, &step), CV_OK);
  for (uint32_t i = 0; i < ARMS; i++) {
    struct cv_standing standing;
    cv_policy_standing(policy, i, &standing);
    found.rank_class[i] = standing.rank_class;
    found.lies[i] = cv_policy_lies(policy, i);
  }
  cv_policy_step_fini(&step);
  cv_policy_free(policy);
  return found;
}

/* Whether the arms that bear more than m lies have the same class if m tokens, spread over two arms, are other ones,
 * without any allowance. */
static bool stands(const struct cv_spec *spec, const uint64_t *tokens, const int64_t *sum, const struct found *found,
                   int64_t m) {
  for (uint32_t at = 0; at < ARMS * ARMS * 4; at++) {
    uint32_t a = at % ARMS, b = at / ARMS % ARMS;
    int64_t up = at / (ARMS * ARMS) % 2 == 0 ? 1 : -1, part = at / (ARMS * ARMS) / 2 == 0 ? m : m / 2;
    int64_t other[ARMS];
    for (uint32_t i = 0; i < ARMS; i++) {
      other[i] = sum[i] + (i == a ? up * part : 0) - (i == b ? up * (m - part) : 0);
    }
    struct found again = decide(spec, tokens, other);
    for (uint32_t i = 0; i < ARMS; i++) {
      if (found->rank_class[i] > 0 && found->lies[i].safe > (uint64_t)m &&
          again.rank_class[i] != found->rank_class[i]) {
        return false;
      }
    }
  }
  return true;
}

/* A class stands below its number; and at the least of them one does not, if all items were asked equally often. */
static void a_class_stands_below_its_number_of_lies(void **state) {
  static const char *const radius[] = {"sound", "printed", NULL};
  struct cv_rng_seeded rng;
  uint32_t ranked = 0, tight = 0;
  cv_rng_seeded_init(&rng, 7, 1, 0, 0);
  for (uint32_t run = 0; run < 300; run++) {
    struct cv_spec spec, plain;
    uint32_t kind = run % 60 == 0 ? 2 : run % 2; /* the last is the slowest */
    bool is_equal = run / 2 % 2 == 0;
    uint64_t tokens[ARMS];
    int64_t sum[ARMS];
    const char *policy = radius[kind] == NULL ? "ppar-kl" : "ppar";
    uint64_t allowed = kind == 1 ? 0 : run / 4 % 2 * 50;
    set_spec(&spec, policy, .1, radius[kind], allowed);
    set_spec(&plain, policy, .1, radius[kind], 0);
    for (uint32_t i = 0; i < ARMS; i++) {
      tokens[i] = is_equal ? 4000 : 2000 + cv_rng_below(&rng.rng, 8000);
      sum[i] = (int64_t)(cv_rng_unit(&rng.rng) * (double)tokens[i]);
    }
    struct found found = decide(&spec, tokens, sum);
    uint64_t least = CV_LIES_NEVER;
    for (uint32_t i = 0; i < ARMS; i++) {
      assert_true((found.lies[i].safe > 0) == (found.rank_class[i] > 0));
      assert_true(found.lies[i].turn >= found.lies[i].safe);
      least = found.lies[i].safe > 0 && found.lies[i].safe < least ? found.lies[i].safe : least;
      for (int64_t m = 1; found.rank_class[i] > 0 && m < 4000; m *= 3) {
        assert_true(stands(&plain, tokens, sum, &found, m));
      }
      if (found.lies[i].safe > spec.arms && found.lies[i].safe != CV_LIES_NEVER) {
        assert_true(stands(&plain, tokens, sum, &found, (int64_t)found.lies[i].safe - 1));
      }
      ranked += found.rank_class[i] > 0;
    }
    bool has_number = least != CV_LIES_NEVER && is_equal && kind < 2 && allowed == 0;
    for (uint32_t i = 0; i < ARMS && has_number; i++) {
      found.lies[i].safe = CV_LIES_NEVER; /* so that stands() looks at all */
    }
    tight += has_number && stands(&plain, tokens, sum, &found, (int64_t)least);
  }
  assert_true(ranked > 300);
  assert_int_equal(tight, 0);
}

/* ---- crowds with liars ---- */

/* Runs a campaign of coins with these means, whose first `liars` tokens of the last arm are all 1; true if every arm
 * gets the class that its mean has. */
static bool is_right(const struct cv_spec *spec, const double *mean, const uint32_t *truth, uint64_t liars,
                     uint64_t seed, uint64_t *ret_tokens) {
  struct cv_policy *policy;
  struct cv_policy_step step = {0};
  struct cv_rng_seeded rng;
  struct cv_mechanism_law law = mechanism_law("segments", spec->epsilon_micro, 1 << 10);
  struct cv_mechanism *counter[ARMS];
  uint64_t tokens[ARMS] = {0}, releases[ARMS] = {0}, number = 0, plan = 0;
  cv_rng_seeded_init(&rng, seed, 2, 0, 0);
  assert_int_equal(cv_policy_new(spec, seed, &policy), CV_OK);
  for (uint32_t i = 0; i < ARMS; i++) {
    counter[i] = mechanism_new(&law);
  }
  *ret_tokens = 0;
  for (assert_int_equal(cv_policy_step(policy, ++plan, &step), CV_OK); !step.done && *ret_tokens < 3000000;
       assert_int_equal(cv_policy_step(policy, ++plan, &step), CV_OK)) {
    for (size_t w = 0; w < step.wants; w++) {
      uint32_t arm = step.want[w].arm;
      int64_t sum = 0;
      for (uint32_t i = 0; i < step.want[w].tokens; i++) {
        bool lies = arm == ARMS - 1 && tokens[arm] + i < liars;
        sum += cv_rng_unit(&rng.rng) < mean[arm] || lies ? CV_GRID : 0;
      }
      tokens[arm] += step.want[w].tokens;
      *ret_tokens += step.want[w].tokens;
      struct cv_release release = {.number = ++number, .plan = plan, .arm = arm, .tokens = tokens[arm]};
      cv_mechanism_draw(counter[arm], &rng.rng);
      release.noisy_sum = cv_mechanism_release(counter[arm], sum);
      cv_mechanism_noise(&law, ++releases[arm], &release.noise);
      cv_policy_apply(policy, &release);
    }
  }
  bool right = step.done;
  for (uint32_t i = 0; i < ARMS; i++) {
    struct cv_standing standing;
    cv_policy_standing(policy, i, &standing);
    right = right && standing.rank_class == truth[i];
    cv_mechanism_free(counter[i]);
  }
  cv_policy_step_fini(&step);
  cv_policy_free(policy);
  return right;
}

/* The last arm belongs to class 2; at first all that answer about it lie. */
static void liars_within_the_allowance_turn_no_class(void **state) {
  static const char *const policy[] = {"ppar", "ppar-kl"};
  static const double mean[ARMS] = {.9, .88, .3, .7};
  static const uint32_t truth[ARMS] = {1, 1, 3, 2};
  enum { RUNS = 40, LIARS = 900 };
  for (size_t p = 0; p < CV_COUNT(policy); p++) {
    uint32_t right_with = 0, right_without = 0, right_flooded = 0;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
      struct cv_spec bearing, plain;
      uint64_t tokens;
      set_spec(&bearing, policy[p], .1, p == 0 ? "sound" : NULL, LIARS);
      set_spec(&plain, policy[p], .1, p == 0 ? "sound" : NULL, 0);
      right_with += is_right(&bearing, mean, truth, LIARS, seed, &tokens);
      right_flooded += is_right(&bearing, mean, truth, tokens, seed, &tokens);
      right_without += is_right(&plain, mean, truth, LIARS, seed, &tokens);
    }
    assert_int_equal(right_with, RUNS);
    assert_int_equal(right_flooded, 0);
    assert_true(right_without < RUNS / 4);
  }
}

/* ---- the limits of ppar-kl ---- */

/* A token less moves a limit no further than a token more, however many: the limit is convex in the sum. */
static void limits_are_convex_in_the_sum(void **state) {
  static const double units[] = {0, .1, 1, 4};
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 3, 1, 0, 0);
  for (uint32_t run = 0; run < 2000; run++) {
    double unit = units[run % CV_COUNT(units)], tokens = 50 + cv_rng_unit(&rng.rng) * 20000;
    struct cv_noise noise = {.groups = unit > 0, .group = {{.scale = 1, .count = 1 + run % 5}}};
    struct cv_noisy_sum at = {
        .tokens = tokens, .sum = tokens * cv_rng_unit(&rng.rng) - 1, .unit = unit, .noise = &noise};
    struct cv_noisy_sum more = at, less = at;
    struct cv_look look;
    struct cv_mixture mixture;
    double lies = 1 + cv_rng_unit(&rng.rng) * tokens;
    more.sum += 1;
    less.sum -= lies;
    cv_look_init(unit, noise.group[0].count, &look);
    cv_mixture_init(unit, &mixture);
    double by_look = cv_look_low(&look, &at, 6), by_mixture = cv_mixture_low(&mixture, &at, 6);
    assert_true(by_look - cv_look_low(&look, &less, 6) <= lies * (cv_look_low(&look, &more, 6) - by_look) + 1e-9);
    assert_true(by_mixture - cv_mixture_low(&mixture, &less, 6) <=
                lies * (cv_mixture_low(&mixture, &more, 6) - by_mixture) * (1 + 1e-6) + 1e-9);
  }
}

static void lies_need_the_sound_radius(void **state) {
  struct cv_spec spec;
  struct cv_why why;
  set_spec(&spec, "ppar", .1, "printed", 5);
  assert_int_equal(cv_policy_fits(&spec, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "policy ppar can bear lies only with radius sound, not printed");
  set_spec(&spec, "ppar", .1, "sound", 5);
  assert_int_equal(cv_policy_fits(&spec, &why), CV_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_class_stands_below_its_number_of_lies),
      cmocka_unit_test(liars_within_the_allowance_turn_no_class),
      cmocka_unit_test(limits_are_convex_in_the_sum),
      cmocka_unit_test(lies_need_the_sound_radius),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
