/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of classes: every ranking that the intervals allow is within them, and they are not wider than need be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "common/base/rng.h"
#include "thirdparty/policy/spans.h"

enum { ARMS_MAX = 7 };

/* The classes of known means, as the paper's greedy ranking has them. */
static void rank(const double *mean, uint32_t arms, double alpha, uint32_t *ret_class) {
  uint32_t left = arms;
  memset(ret_class, 0, arms * sizeof(*ret_class));
  for (uint32_t number = 1; left > 0; number++) {
    double best = -1;
    for (uint32_t i = 0; i < arms; i++) {
      best = ret_class[i] == 0 ? fmax(best, mean[i]) : best;
    }
    for (uint32_t i = 0; i < arms; i++) {
      if (ret_class[i] == 0 && mean[i] >= best - alpha) {
        ret_class[i] = number;
        left--;
      }
    }
  }
}

/* Multiples of 1/64 are exact, and so are their differences: no case depends on rounding. */
static double grid(struct cv_rng *rng, double most) {
  return floor(64 * most * cv_rng_unit(rng)) / 64;
}

static void draw_intervals(struct cv_rng *rng, struct cv_spans *spans) {
  double widest = cv_rng_unit(rng) < 0.5 ? 0.2 : 1;
  for (uint32_t i = 0; i < spans->arms; i++) {
    spans->low[i] = grid(rng, 1);
    spans->high[i] = fmin(1, spans->low[i] + grid(rng, cv_rng_unit(rng) < 0.3 ? widest : 0.1));
  }
}

/* Means within the intervals, often at the ends. */
static void draw_means(struct cv_rng *rng, const struct cv_spans *spans, double *ret) {
  for (uint32_t i = 0; i < spans->arms; i++) {
    double at = cv_rng_unit(rng), wide = spans->high[i] - spans->low[i];
    ret[i] = at < 0.3 ? spans->low[i] : at < 0.6 ? spans->high[i] : spans->low[i] + grid(rng, wide + 1. / 64);
    ret[i] = fmin(ret[i], spans->high[i]);
  }
}

/* Every ranking that can be is within the spans; the first class is reached, and the last one nearly always is. */
static void spans_hold_every_ranking_that_can_be(void **state) {
  static const double alphas[] = {0, 1. / 64, 6. / 64, 13. / 64, 0.5};
  enum { CASES = 4000, DRAWS = 600 };
  uint64_t arms = 0, first_missed = 0, last_missed = 0, wide = 0;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    struct cv_rng_seeded rng;
    struct cv_spans spans;
    uint32_t least[ARMS_MAX], most[ARMS_MAX] = {0}, class[ARMS_MAX];
    double mean[ARMS_MAX], alpha;
    cv_rng_seeded_init(&rng, seed, 1, 0, 0);
    alpha = alphas[cv_rng_below(&rng.rng, CV_COUNT(alphas))];
    assert_int_equal(cv_spans_init(1 + (uint32_t)cv_rng_below(&rng.rng, ARMS_MAX), &spans), CV_OK);
    draw_intervals(&rng.rng, &spans);
    cv_spans_find(&spans, alpha);
    memset(least, 0xff, sizeof(least));
    for (int draw = 0; draw < DRAWS; draw++) {
      draw_means(&rng.rng, &spans, mean);
      rank(mean, spans.arms, alpha, class);
      for (uint32_t i = 0; i < spans.arms; i++) {
        if (class[i] < spans.span[i].first || class[i] > spans.span[i].last) {
          fail_msg("case %d: arm %u is in class %u, not in %u to %u", (int)seed, i, class[i], spans.span[i].first,
                   spans.span[i].last);
        }
        least[i] = class[i] < least[i] ? class[i] : least[i];
        most[i] = class[i] > most[i] ? class[i] : most[i];
      }
    }
    for (uint32_t i = 0; i < spans.arms; i++) {
      assert_true(spans.span[i].first >= 1 && spans.span[i].last <= spans.arms);
      arms++;
      first_missed += spans.span[i].first != least[i];
      last_missed += spans.span[i].last != most[i];
      wide += spans.span[i].last > spans.span[i].first;
    }
    cv_spans_fini(&spans);
  }
  /* Draws miss a few rankings, and the last class is a bound. */
  print_message("# %d arms, %d wide; first not seen %d, last not seen %d\n", (int)arms, (int)wide, (int)first_missed,
                (int)last_missed);
  assert_true(wide > arms / 4 && first_missed < arms / 100 && last_missed < arms / 25);
}

static void find(struct cv_spans *spans, uint32_t arms, const double (*ends)[2], double alpha) {
  assert_int_equal(cv_spans_init(arms, spans), CV_OK);
  for (uint32_t i = 0; i < arms; i++) {
    spans->low[i] = ends[i][0];
    spans->high[i] = ends[i][1];
  }
  cv_spans_find(spans, alpha);
}

static void expect(struct cv_spans *spans, uint32_t i, uint32_t first, uint32_t last) {
  assert_int_equal(spans->span[i].first, first);
  assert_int_equal(spans->span[i].last, last);
}

/* Three items of which two have hardly any rows: none has a class. */
static void nothing_is_known_next_to_wide_intervals(void **state) {
  static const double ends[][2] = {{0, 0.69}, {0.34, 1}, {0.04, 1}};
  struct cv_spans spans;
  find(&spans, 3, ends, 0.1);
  for (uint32_t i = 0; i < 3; i++) {
    expect(&spans, i, 1, 3);
  }
  cv_spans_fini(&spans);
}

/* Many items of one class count once for those below; one wide interval can open one class, not several. */
static void one_wide_interval_moves_the_others_by_one_class(void **state) {
  enum { TOP = 50, ARMS = TOP + 4 };
  double ends[ARMS][2];
  struct cv_spans spans;
  for (uint32_t i = 0; i < TOP; i++) {
    ends[i][0] = 0.88 + 0.0001 * i;
    ends[i][1] = 0.92 + 0.0001 * i;
  }
  for (uint32_t i = TOP; i < ARMS; i++) {
    ends[i][0] = i == ARMS - 1 ? 0.2 : 0.09;
    ends[i][1] = i == ARMS - 1 ? 0.7 : 0.11;
  }
  find(&spans, ARMS, (const double(*)[2])ends, 0.1);
  expect(&spans, 0, 1, 1);
  expect(&spans, TOP - 1, 1, 1);
  expect(&spans, TOP, 2, 3);
  expect(&spans, ARMS - 2, 2, 3);
  expect(&spans, ARMS - 1, 2, 2);
  cv_spans_fini(&spans);
}

/* The highest interval reaches below its class, but no mean in it can leave the class. */
static void the_highest_arm_is_measured_by_the_next_one(void **state) {
  static const double ends[][2] = {{0.80, 0.95}, {0.86, 0.88}, {0.5, 0.6}};
  struct cv_spans spans;
  find(&spans, 3, ends, 0.1);
  expect(&spans, 0, 1, 1);
  expect(&spans, 1, 1, 1);
  expect(&spans, 2, 2, 2);
  cv_spans_fini(&spans);
}

/* Alpha 0 is the whole order: as many classes as there can be arms above. */
static void with_alpha_0_each_overlap_is_one_class(void **state) {
  static const double ends[][2] = {{0.8, 0.9}, {0.5, 0.62}, {0.6, 0.7}, {0.1, 0.2}};
  struct cv_spans spans;
  find(&spans, 4, ends, 0);
  expect(&spans, 0, 1, 1);
  expect(&spans, 1, 2, 3);
  expect(&spans, 2, 2, 3);
  expect(&spans, 3, 3, 4); /* two equal means would share a class */
  cv_spans_fini(&spans);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spans_hold_every_ranking_that_can_be),
      cmocka_unit_test(nothing_is_known_next_to_wide_intervals),
      cmocka_unit_test(one_wide_interval_moves_the_others_by_one_class),
      cmocka_unit_test(the_highest_arm_is_measured_by_the_next_one),
      cmocka_unit_test(with_alpha_0_each_overlap_is_one_class),
  };
  return cmocka_run_group_tests_name("spans", tests, NULL, NULL);
}
