/* SPDX-License-Identifier: Apache-2.0 */
/* A bandit's policy that receives releases by hand: prefix sums as mechanism `none` gives them. */
#ifndef CV_TESTS_HAND_H
#define CV_TESTS_HAND_H

#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "thirdparty/policy/policy.h"

enum { HAND_ARMS = 32 };

struct hand {
  struct cv_spec spec;
  struct cv_policy *policy;
  struct cv_policy_step step;
  uint64_t plan, number;
  uint64_t tokens[HAND_ARMS];
  int64_t sum[HAND_ARMS];
};

/* A spec with the policy's defaults; the caller may add parameters and a privatizer before hand_start(). */
static inline struct hand hand_of(const char *policy, uint32_t arms, uint64_t tokens) {
  struct hand h = {.spec = {.arms = arms, .tokens_per_worker = 1, .tokens = tokens}};
  (void)snprintf(h.spec.policy.name, sizeof(h.spec.policy.name), "%s", policy);
  (void)snprintf(h.spec.privatizer.name, sizeof(h.spec.privatizer.name), "none");
  (void)snprintf(h.spec.mechanism.name, sizeof(h.spec.mechanism.name), "none");
  return h;
}

static inline void hand_set(struct cv_choice *choice, const char *key, double value) {
  assert_int_equal(cv_params_set_number(&choice->params, key, value), CV_OK);
}

static inline void hand_privatize(struct hand *h, const char *name, const char *key, double value) {
  (void)snprintf(h->spec.privatizer.name, sizeof(h->spec.privatizer.name), "%s", name);
  hand_set(&h->spec.privatizer, key, value);
}

/* Randomized response that keeps both bits of an arm with one probability each. */
static inline void hand_keep(struct hand *h, const double *keep) {
  for (uint32_t i = 0; i < h->spec.arms; i++) {
    char key[16];
    (void)snprintf(key, sizeof(key), "p00.%u", i + 1);
    hand_privatize(h, "randomized-response", key, keep[i]);
    (void)snprintf(key, sizeof(key), "p11.%u", i + 1);
    hand_privatize(h, "randomized-response", key, keep[i]);
  }
}

static inline void hand_start(struct hand *h, uint64_t seed) {
  const struct cv_param *bad;
  struct cv_why why = {.text = ""};
  h->spec.thirdparty_trusted = strcmp(h->spec.privatizer.name, "none") == 0;
  assert_int_equal(cv_policy_check(&h->spec.policy, &bad, &why), CV_OK);
  if (cv_policy_fits(&h->spec, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_int_equal(cv_policy_new(&h->spec, seed, &h->policy), CV_OK);
}

static inline void hand_end(struct hand *h) {
  cv_policy_free(h->policy);
  cv_policy_step_fini(&h->step);
}

static inline void hand_step(struct hand *h) {
  assert_int_equal(cv_policy_step(h->policy, ++h->plan, &h->step), CV_OK);
}

/* This many further tokens of an arm with this sum, in grid units. */
static inline void hand_feed(struct hand *h, uint32_t arm, uint64_t tokens, int64_t sum) {
  h->tokens[arm] += tokens;
  h->sum[arm] += sum;
  const struct cv_release release = {
      .number = ++h->number, .plan = h->plan, .arm = arm, .tokens = h->tokens[arm], .noisy_sum = h->sum[arm]};
  cv_policy_apply(h->policy, &release);
}

/* Saves the policy, frees it and loads it into a new one, which must save the same bytes. */
static inline void hand_reload(struct hand *h, uint64_t seed) {
  struct cv_buf saved = {0}, again = {0};
  cv_policy_save(h->policy, &saved);
  cv_policy_free(h->policy);
  assert_int_equal(cv_policy_new(&h->spec, seed, &h->policy), CV_OK);
  struct cv_reader reader = cv_reader_over(saved.data, saved.len);
  assert_int_equal(cv_policy_load(h->policy, &reader), CV_OK);
  cv_policy_save(h->policy, &again);
  assert_int_equal(again.len, saved.len);
  assert_memory_equal(again.data, saved.data, saved.len);
  for (size_t cut = 0; cut < saved.len; cut += 1 + cut / 3) {
    struct cv_policy *other;
    assert_int_equal(cv_policy_new(&h->spec, seed, &other), CV_OK);
    reader = cv_reader_over(saved.data, cut);
    assert_int_not_equal(cv_policy_load(other, &reader), CV_OK);
    cv_policy_free(other);
  }
  cv_buf_fini(&saved);
  cv_buf_fini(&again);
}

/* The message of the launcher and the third-party about a campaign that does not suit its policy. */
static inline void hand_refused(const struct hand *h, const char *line) {
  struct cv_why why = {.text = ""};
  assert_int_equal(cv_policy_fits(&h->spec, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, line);
}

/* The policy's state with one of its last numbers replaced, at each place in the last `bytes` bytes: always refused. */
static inline void hand_refuses(struct hand *h, size_t bytes, const double *nonsense, size_t n) {
  struct cv_buf saved = {0};
  cv_policy_save(h->policy, &saved);
  for (size_t at = saved.len - bytes; at < saved.len; at += 8) {
    for (size_t i = 0; i < n; i++) {
      struct cv_buf bad = {0};
      cv_buf_put(&bad, saved.data, at);
      cv_buf_put_f64(&bad, nonsense[i]);
      cv_buf_put(&bad, saved.data + at + 8, saved.len - at - 8);
      struct cv_reader reader = cv_reader_over(bad.data, bad.len);
      assert_int_not_equal(cv_policy_load(h->policy, &reader), CV_OK);
      cv_buf_fini(&bad);
    }
  }
  cv_buf_fini(&saved);
}

#endif
