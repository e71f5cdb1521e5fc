/* SPDX-License-Identifier: Apache-2.0 */
/* Specs, releases, plans and standings, which the schemas rank and order share: random ones, their bounds, their
 * equality. */
#ifndef CV_TESTS_RECORDS_H
#define CV_TESTS_RECORDS_H

#include "common/base/result.h"
#include "common/base/spec.h"
#include "tests/unit/codec/codec_test.h"

static inline uint64_t *random_numbers(struct cv_rng *rng, uint32_t n) {
  uint64_t *number = calloc(n, sizeof(*number));
  assert_non_null(number);
  for (uint32_t i = 0; i < n; i++) {
    number[i] = random_u64(rng);
  }
  return number;
}

static inline void random_spec(struct cv_rng *rng, struct cv_spec *ret) {
  *ret = (struct cv_spec){.arms = (uint32_t)cv_rng_below(rng, 50),
                          .epsilon_micro = random_u64(rng),
                          .tokens_per_worker = random_u32(rng),
                          .thirdparty_trusted = cv_rng_below(rng, 2) == 0,
                          .tokens = random_u64(rng),
                          .deadline_ms = random_u64(rng),
                          .idle_ms = random_u64(rng)};
  random_name(rng, ret->name, sizeof(ret->name));
  if (ret->arms > 0 && cv_rng_below(rng, 2) == 0) {
    struct cv_names names = {0};
    char text[CV_ITEM_BYTES];
    for (uint32_t i = 0; i < ret->arms; i++) {
      random_name(rng, text, sizeof(text));
      cv_names_add(&names, text);
    }
    assert_int_equal(cv_names_take(&names, &ret->names), CV_OK);
  }
  if (ret->arms > 0 && cv_rng_below(rng, 2) == 0) {
    ret->budget_micro = random_u64(rng);
    ret->cost_micro = random_numbers(rng, ret->arms);
    ret->worker = cv_rng_below(rng, 2) == 0 ? random_numbers(rng, ret->arms) : NULL;
  }
  ret->edges = (uint32_t)cv_rng_below(rng, 5);
  if (ret->edges > 0) {
    ret->edge = calloc(ret->edges, sizeof(*ret->edge));
    assert_non_null(ret->edge);
    for (uint32_t i = 0; i < ret->edges; i++) {
      ret->edge[i] = (struct cv_edge){.a = random_u32(rng), .b = random_u32(rng)};
    }
  }
  random_choice(rng, &ret->policy);
  random_choice(rng, &ret->mechanism);
  random_choice(rng, &ret->privatizer);
  random_scale(rng, &ret->scale);
}

static inline void random_release(struct cv_rng *rng, struct cv_release *ret) {
  *ret = (struct cv_release){.number = 1 + random_u64(rng) / 2,
                             .plan = random_u64(rng),
                             .arm = (uint32_t)cv_rng_below(rng, CV_ARMS_MAX),
                             .tokens = random_u64(rng),
                             .noisy_sum = (int64_t)random_u64(rng) * (cv_rng_below(rng, 2) == 0 ? 1 : -1),
                             .noise.groups = (uint32_t)cv_rng_below(rng, CV_NOISE_GROUPS_MAX + 1)};
  for (uint32_t i = 0; i < ret->noise.groups; i++) {
    ret->noise.group[i] = (struct cv_noise_group){.scale = cv_rng_unit(rng) * 100, .count = random_u32(rng)};
  }
}

static inline void random_plan(struct cv_rng *rng, struct cv_plan *ret) {
  *ret = (struct cv_plan){.number = 1 + random_u64(rng) / 2, .wants = (uint32_t)cv_rng_below(rng, 40)};
  ret->want = calloc(ret->wants + 1, sizeof(*ret->want));
  assert_non_null(ret->want);
  for (uint32_t i = 0; i < ret->wants; i++) {
    ret->want[i] = (struct cv_want){.arm = i * 101 % CV_ARMS_MAX, .tokens = random_u32(rng)};
  }
}

static inline void random_standings(struct cv_rng *rng, uint32_t *ret_n, struct cv_standing **ret) {
  uint32_t n = (uint32_t)cv_rng_below(rng, 40);
  struct cv_standing *standing = calloc(n + 1, sizeof(*standing));
  assert_non_null(standing);
  for (uint32_t i = 0; i < n; i++) {
    standing[i] = (struct cv_standing){.arm = (uint32_t)cv_rng_below(rng, CV_ARMS_MAX),
                                       .rank_class = (uint32_t)cv_rng_below(rng, 20),
                                       .tokens = random_u64(rng),
                                       .mean = cv_rng_normal(rng),
                                       .radius = cv_rng_unit(rng)};
  }
  *ret_n = n;
  *ret = standing;
}

static inline void assert_spec_bounded(const struct cv_spec *spec) {
  assert_true(text_is_bounded(spec->name, CV_NAME_BYTES));
  assert_in_range(spec->arms, 0, CV_ARMS_MAX);
  for (uint32_t i = 0; spec->names != NULL && i < spec->arms; i++) {
    assert_true(text_is_bounded(spec->names[i], CV_ITEM_BYTES));
  }
  assert_in_range(spec->edges, 0, CV_EDGES_MAX);
  assert_true((spec->edge != NULL) == (spec->edges > 0));
  assert_true(choice_is_bounded(&spec->policy) && choice_is_bounded(&spec->mechanism) &&
              choice_is_bounded(&spec->privatizer));
}

static inline void assert_release_bounded(const struct cv_release *release) {
  assert_in_range(release->number, 1, UINT64_MAX);
  assert_in_range(release->arm, 0, CV_ARMS_MAX - 1);
  assert_in_range(release->noise.groups, 0, CV_NOISE_GROUPS_MAX);
  for (uint32_t i = 0; i < release->noise.groups; i++) {
    assert_true(isfinite(release->noise.group[i].scale) && release->noise.group[i].scale >= 0);
  }
}

static inline void assert_plan_bounded(const struct cv_plan *plan) {
  bool seen[CV_ARMS_MAX] = {0};
  assert_in_range(plan->number, 1, UINT64_MAX);
  assert_in_range(plan->wants, 0, CV_ARMS_MAX);
  for (uint32_t i = 0; i < plan->wants; i++) {
    assert_in_range(plan->want[i].arm, 0, CV_ARMS_MAX - 1);
    assert_false(seen[plan->want[i].arm]);
    seen[plan->want[i].arm] = true;
  }
}

static inline void assert_standings_bounded(const struct cv_standing *standing, uint32_t n) {
  assert_in_range(n, 0, CV_ARMS_MAX);
  for (uint32_t i = 0; i < n; i++) {
    assert_in_range(standing[i].arm, 0, CV_ARMS_MAX - 1);
    assert_true(isfinite(standing[i].mean) && isfinite(standing[i].radius) && standing[i].radius >= 0);
  }
}

/* The stored form has every field. */
static inline void assert_specs_equal(const struct cv_spec *a, const struct cv_spec *b) {
  struct cv_buf first = {0}, second = {0};
  cv_spec_encode(a, &first);
  cv_spec_encode(b, &second);
  assert_int_equal(first.len, second.len);
  assert_memory_equal(first.data, second.data, first.len);
  cv_buf_fini(&first);
  cv_buf_fini(&second);
}

static inline void assert_releases_equal(const struct cv_release *a, const struct cv_release *b) {
  assert_true(a->number == b->number && a->plan == b->plan && a->arm == b->arm && a->tokens == b->tokens &&
              a->noisy_sum == b->noisy_sum);
  assert_int_equal(a->noise.groups, b->noise.groups);
  for (uint32_t i = 0; i < a->noise.groups; i++) {
    assert_true(a->noise.group[i].scale == b->noise.group[i].scale);
    assert_int_equal(a->noise.group[i].count, b->noise.group[i].count);
  }
}

static inline void assert_plans_equal(const struct cv_plan *a, const struct cv_plan *b) {
  assert_int_equal(a->number, b->number);
  assert_int_equal(a->wants, b->wants);
  for (uint32_t i = 0; i < a->wants; i++) {
    assert_memory_equal(&a->want[i], &b->want[i], sizeof(a->want[i]));
  }
}

static inline void assert_standings_equal(const struct cv_standing *a, uint32_t a_n, const struct cv_standing *b,
                                          uint32_t b_n) {
  assert_int_equal(a_n, b_n);
  for (uint32_t i = 0; i < a_n; i++) {
    assert_memory_equal(&a[i], &b[i], sizeof(a[i]));
  }
}

#endif
