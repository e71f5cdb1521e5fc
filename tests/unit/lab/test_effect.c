/* SPDX-License-Identifier: Apache-2.0 */
/* Differences that are smaller than the smallest of interest. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "common/base/rng.h"
#include "tests/unit/lab/made.h"

/* Regret has no range, so equal replicates bound nothing; differences of `unpaired` are 2 + {-16, 0, 0, 16}, with
 * 2.18 * 2.92 to each side at one point, and Bonferroni's 2.75 * 2.92 at three. */
static void test_effects_that_are_smaller_than_of_interest(void **state) {
  static const struct judged judged[] = {
      {"series: two, below: one, at: 100, smallest: 8.4", CV_LAB_NO_EFFECT,
       "paired, 0.7 standard errors in 16 replicates; the difference is at most 8.37, smaller than 8.4"},
      {"series: two, above: one, at: 100, smallest: 8.4", CV_LAB_NO_EFFECT, "0.7 standard errors the wrong way"},
      {"series: two, below: one, at: 100, smallest: 8.3", CV_LAB_UNDECIDED,
       "2.2 are needed; the difference is at most 8.37, not smaller than 8.3: about 17 replicates may do"},
      {"series: two, below: one, smallest: 8.4", CV_LAB_UNDECIDED, "3 of 3 comparisons are undecided"},
      {"series: two, below: one, smallest: 10.1", CV_LAB_NO_EFFECT,
       "3 of 3 comparisons show no effect, the largest possible: "},
      /* a share of the lower end of one, 100 - 2.54 * 2.07 = 94.8; the difference is at most 2 + 2.54 * 2.92 = 9.41 */
      {"series: two, below: one, at: 100, smallest: 10%", CV_LAB_NO_EFFECT, "smaller than 10 % (9.48)"},
      {"series: two, below: one, at: 100, smallest: 9.5%", CV_LAB_UNDECIDED, "not smaller than 9.5 % (9)"},
      {"series: one, trend: falls, smallest: 5", CV_LAB_FAILS, ""},
      {"series: one, trend: rises, smallest: 5", CV_LAB_HOLDS, ""},
  };
  judge_all(HEAD(BY_PARAMETER), "", unpaired, judged, CV_COUNT(judged));
  static const struct judged equal[] = {
      {"series: two, below: one, smallest: 1000", CV_LAB_UNDECIDED,
       "too few replicates differ, 0 of 16, to bound the difference"},
  };
  judge_all(HEAD(BY_PARAMETER), "", alike, equal, CV_COUNT(equal));
}

/* Accuracies: one and two differ by .1 in one replicate of 16 at the first point, in none at the second, and in all at
 * the third. */
static double rarely(size_t series, size_t point, uint64_t replicate) {
  double differs = point == 0 ? replicate == 3 : point == 1 ? 0 : 1 + (double)(replicate % 2);
  return .5 + .02 * (double)(replicate % 4) - (series == 0 ? 0 : .1 * differs);
}

/* 1 - .02275^(1/16) = .211; if one replicate differs the limit is .307; with half of the tail .244 and .343. */
static void test_effects_of_few_differing_replicates_are_bounded_exactly(void **state) {
  static const char metrics[] = "  metrics: [accuracy, pulls]\n";
  static const struct judged judged[] = {
      {"series: two, below: one, at: 200, smallest: .22", CV_LAB_NO_EFFECT,
       "equal in all 16 replicates; the difference is at most 0.211, smaller than 0.22"},
      {"series: two, below: one, at: 200, smallest: .1", CV_LAB_UNDECIDED,
       "the difference is at most 0.211, not smaller than 0.1: about 34 replicates may do"},
      {"series: two, below: one, at: 100, smallest: .31", CV_LAB_NO_EFFECT,
       "different in only 1 of 16; the difference is at"},
      {"series: two, below: one, at: 100, smallest: .29", CV_LAB_UNDECIDED,
       "different in only 1 of 16; the difference is at"},
      {"series: two, below: one, to: 200, smallest: .37", CV_LAB_NO_EFFECT, "2 of 2 comparisons show no effect"},
      {"series: two, below: one, to: 200, smallest: .31", CV_LAB_UNDECIDED, "1 of 2 comparisons are undecided"},
      {"series: two, below: one, from: 200, smallest: .3", CV_LAB_NO_EFFECT, "2 of 2 comparisons show no effect"},
      {"series: two, above: one, from: 200, smallest: .1", CV_LAB_FAILS, "1 of 2 comparisons fail"},
      {"series: one, trend: rises, smallest: .22", CV_LAB_NO_EFFECT, "1 of 3 comparisons show no effect"},
      {"series: two, trend: rises, to: 200, smallest: .31", CV_LAB_NO_EFFECT, "different in only 1 of 16"},
  };
  judge_all(HEAD(BY_PARAMETER), metrics, rarely, judged, CV_COUNT(judged));
  static const struct judged medians[] = {
      {"series: two, below: one, at: 200, smallest: .5", CV_LAB_UNDECIDED,
       "too few replicates differ, 0 of 16, to bound the difference"},
  };
  judge_all(HEAD(BY_PARAMETER), "  metrics: [accuracy, pulls]\n  statistic: median-of-means\n", rarely, medians,
            CV_COUNT(medians));
}

/* Differences of two from one, equal to half a unit in all replicates: 1.6, .4, .8. */
static double slight(size_t series, size_t point, uint64_t replicate) {
  static const double differ[] = {1.6, .4, .8};
  return 100 + 8 * (double)(replicate % 2) + (series == 0 ? 0 : differ[point] + (replicate % 4 < 2 ? .5 : -.5));
}

/* Seen as clearly as may be, a difference that is smaller than the smallest of interest is none; the standard error of
 * each is .5/sqrt(15) = .129, 2.18 of which are .28. */
static void test_a_difference_that_is_seen_may_be_too_small(void **state) {
  static const struct judged judged[] = {
      {"series: two, above: one, at: 200, smallest: 1", CV_LAB_NO_EFFECT,
       "paired, 3.1 standard errors in 16 replicates; the difference is at most 0.682, smaller than 1"},
      {"series: one, above: two, at: 200, smallest: 1", CV_LAB_NO_EFFECT, "3.1 standard errors the wrong way"},
      {"series: two, above: one, at: 400, smallest: .9", CV_LAB_UNDECIDED,
       "6.2 standard errors in 16 replicates; the difference is at most 1.08, but may be smaller than 0.9: about"},
      {"series: two, above: one, at: 400, smallest: .6", CV_LAB_UNDECIDED, "but may be smaller than 0.6: about 32 rep"},
      {"series: two, above: one, at: 400, smallest: .5", CV_LAB_HOLDS, "6.2 standard errors in 16 replicates"},
      {"series: one, above: two, at: 400, smallest: .5", CV_LAB_FAILS, "the wrong way in 16 replicates"},
      {"series: one, above: two, at: 400, smallest: .9", CV_LAB_FAILS, "the wrong way in 16 replicates"},
      {"series: two, above: one, smallest: 1", CV_LAB_UNDECIDED, "1 of 3 comparisons are undecided"},
      {"series: two, above: one, smallest: 1.3", CV_LAB_NO_EFFECT, "2 of 3 comparisons show no effect"},
      {"series: two, above: one, average: true, smallest: 1.3", CV_LAB_NO_EFFECT, "on average over 3 comparisons"},
      /* without one it is 1 % of one, 1.04 */
      {"series: two, above: one, at: 100", CV_LAB_HOLDS, ""},
      {"series: two, above: one, at: 200", CV_LAB_NO_EFFECT, "smaller than 1 % (1.0"},
      {"series: two, below: one, at: 200", CV_LAB_NO_EFFECT, "smaller than 1 % (1.0"},
      {"series: two, above: one, at: 200, factor: 1", CV_LAB_HOLDS, ""},
      {"series: two, above: one, at: 200, by_median: true", CV_LAB_UNDECIDED, "; 8 agree"},
      /* a step of a trend that is clearly wrong, but smaller than of interest, does not refute it */
      {"series: two, trend: falls, smallest: .3", CV_LAB_FAILS, "expected not more"},
      {"series: two, trend: falls, smallest: .5", CV_LAB_HOLDS, ""},
      {"series: two, trend: falls", CV_LAB_NO_EFFECT, "smaller than 1 %"},
  };
  judge_all(HEAD(BY_PARAMETER), "", slight, judged, CV_COUNT(judged));
}

static void test_the_answer_names_the_difference(void **state) {
  static const char *const good[][2] = {{"8.4", "no effect larger than 8.4"}, {"10%", "no effect larger than 10 %"}};
  for (size_t i = 0; i < CV_COUNT(good); i++) {
    struct made made;
    struct cv_lab_claim claim;
    char text[400];
    (void)snprintf(text, sizeof(text),
                   "    - {says: x, metric: regret, series: two, below: one, at: 100, smallest: %s}\n", good[i][0]);
    make(&made, HEAD(BY_PARAMETER), "", text, unpaired);
    cv_lab_claim_judge(&made.dataset, 0, &claim);
    assert_string_equal(claim.answer, good[i][1]);
    drop(&made);
  }
}

static struct cv_rng_seeded chance;

/* The difference is as large as the smallest of interest: in 2.3 % of the runs it is wrongly called smaller. */
static double just_of_interest(size_t series, size_t point, uint64_t replicate) {
  return cv_rng_normal(&chance.rng) + (series == 0 ? 1.1 : 0);
}

static void test_an_effect_of_interest_is_seldom_missed(void **state) {
  enum { RUNS = 1000 };
  size_t missed = 0;
  cv_rng_seeded_init(&chance, 6, CV_RNG_SCORE, 0, 0);
  for (size_t run = 0; run < RUNS; run++) {
    struct made made;
    struct cv_lab_claim claim;
    make(&made, HEAD(BY_PARAMETER), "",
         "    - {says: so it is, metric: regret, series: two, below: one, at: 100, smallest: 1.1}\n", just_of_interest);
    cv_lab_claim_judge(&made.dataset, 0, &claim);
    missed += claim.verdict == CV_LAB_NO_EFFECT;
    drop(&made);
  }
  assert_in_range(missed, 9, 37); /* 22.75 and three deviations */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_effects_that_are_smaller_than_of_interest),
      cmocka_unit_test(test_effects_of_few_differing_replicates_are_bounded_exactly),
      cmocka_unit_test(test_a_difference_that_is_seen_may_be_too_small),
      cmocka_unit_test(test_the_answer_names_the_difference),
      cmocka_unit_test(test_an_effect_of_interest_is_seldom_missed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
