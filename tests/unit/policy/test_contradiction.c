/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a mean that contradict each other are told, of the arm that they are of, and are not forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <stdio.h>

#include "common/base/grid.h"
#include "thirdparty/policy/policy.h"

enum { ARMS = 3, CHANGED = 1 };

struct ranked {
  struct cv_spec spec;
  struct cv_policy *policy;
  struct cv_policy_step step;
  uint64_t plan, number;
};

static struct cv_policy *make(const struct cv_spec *spec) {
  struct cv_policy *policy;
  assert_int_equal(cv_policy_new(spec, 7, &policy), CV_OK);
  return policy;
}

static void ranked_init(struct ranked *at, const char *policy, const char *boundary) {
  *at = (struct ranked){.spec = {.arms = ARMS, .tokens_per_worker = 1, .tokens = UINT64_C(1) << 40}};
  at->spec.thirdparty_trusted = true;
  (void)snprintf(at->spec.policy.name, sizeof(at->spec.policy.name), "%s", policy);
  (void)snprintf(at->spec.privatizer.name, sizeof(at->spec.privatizer.name), "none");
  (void)snprintf(at->spec.mechanism.name, sizeof(at->spec.mechanism.name), "none");
  const struct cv_param *bad;
  assert_int_equal(cv_params_set_number(&at->spec.policy.params, "alpha", 0.01), CV_OK);
  assert_int_equal(cv_params_set_text(&at->spec.policy.params, "boundary", boundary), CV_OK);
  assert_int_equal(cv_policy_check(&at->spec.policy, &bad, NULL), CV_OK);
  assert_int_equal(cv_policy_fits(&at->spec, NULL), CV_OK);
  at->policy = make(&at->spec);
}

static void ranked_fini(struct ranked *at) {
  cv_policy_free(at->policy);
  cv_policy_step_fini(&at->step);
}

/* A release of every arm: so many tokens in all, of this mean. */
static void release(struct ranked *at, uint64_t tokens, const double *mean) {
  assert_int_equal(cv_policy_step(at->policy, ++at->plan, &at->step), CV_OK);
  for (uint32_t i = 0; i < ARMS; i++) {
    struct cv_release one = {.number = ++at->number, .plan = at->plan, .arm = i, .tokens = tokens};
    one.noisy_sum = (int64_t)(mean[i] * (double)tokens * (double)CV_GRID);
    cv_policy_apply(at->policy, &one);
  }
  assert_int_equal(cv_policy_step(at->policy, at->plan + 1, &at->step), CV_OK);
}

static void expect_contradictions(const struct cv_policy *policy, bool of_changed) {
  for (uint32_t i = 0; i < ARMS; i++) {
    struct cv_standing standing;
    cv_policy_standing(policy, i, &standing);
    assert_int_equal(standing.contradicts, of_changed && i == CHANGED);
  }
}

static void expect_kept(const struct ranked *at) {
  struct cv_buf saved = {0};
  cv_policy_save(at->policy, &saved);
  struct cv_policy *loaded = make(&at->spec);
  struct cv_reader in = cv_reader_over(saved.data, saved.len);
  assert_int_equal(cv_policy_load(loaded, &in), CV_OK);
  expect_contradictions(loaded, true);
  cv_policy_free(loaded);
  cv_buf_fini(&saved);
}

/* The scores of one item change after a while; those of the others do not. */
static void a_mean_that_changes_is_told(void **state) {
  static const double before[] = {0.5, 0.9, 0.45}, still[] = {0.502, 0.899, 0.451}, after[] = {0.5, 0.2, 0.45};
  static const char *const policies[] = {"ppar", "ppar-kl"};
  for (size_t p = 0; p < CV_COUNT(policies); p++) {
    struct ranked at;
    ranked_init(&at, policies[p], "feed");
    release(&at, 1000, before);
    expect_contradictions(at.policy, false);
    release(&at, 4000, still);
    expect_contradictions(at.policy, false);
    release(&at, 100000, after);
    expect_contradictions(at.policy, true);
    expect_kept(&at);
    /* Also after answers that agree again. */
    release(&at, 200000, after);
    expect_contradictions(at.policy, true);
    ranked_fini(&at);
  }
}

/* A mean that no scores can have, as when answers are counted twice. */
static void a_mean_outside_the_scores_is_told(void **state) {
  static const double beyond[] = {0.5, 1.5, 0.45};
  struct ranked at;
  ranked_init(&at, "ppar", "feed");
  release(&at, 1000, beyond);
  expect_contradictions(at.policy, true);
  ranked_fini(&at);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_mean_that_changes_is_told),
      cmocka_unit_test(a_mean_outside_the_scores_is_told),
  };
  return cmocka_run_group_tests_name("contradiction", tests, NULL, NULL);
}
