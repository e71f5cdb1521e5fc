/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-made datasets with known summaries, rows and verdicts. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "lab/experiment/check.h"
#include "lab/experiment/read.h"
#include "lab/judge/claim.h"
#include "lab/judge/summary.h"
#include "lab/judge/terms.h"
#include "tests/support/near.h"
#include "tests/unit/lab/made.h"

/* Half of the replicates are 1 above, half 1 below: 100, 110, 120 of one, 10 less of two; pairs are 10 apart. */
static double paired(size_t series, size_t point, uint64_t replicate) {
  double chance = replicate % 2 == 0 ? 1 : -1;
  return 100 + 10 * (double)point - (series == 0 ? 0 : 10) + chance;
}
static double missing(size_t series, size_t point, uint64_t replicate) {
  return series == 1 && point == 2 ? (double)NAN : paired(series, point, replicate);
}
static double single(size_t series, size_t point, uint64_t replicate) {
  return replicate == 3 ? paired(series, point, replicate) : (double)NAN;
}

static void test_summaries_and_comparisons(void **state) {
  struct made made;
  make(&made, HEAD(BY_PARAMETER), "", "", unpaired);
  struct cv_lab_summary one = cv_lab_summarise(&made.dataset, 0, 1, 0);
  double se = 8 / sqrt(15); /* 16 numbers 8 from their mean */
  assert_near(one.mean, 110, 1e-12);
  assert_near(one.se, se, 1e-12);
  assert_near(one.high - one.low, 2 * se, 1e-12);
  /* differences are 2 + {-16, 0, 0, 16} */
  struct cv_lab_summary difference = cv_lab_compare(&made.dataset, 0, 1, 1, 1, 1, 1);
  assert_near(difference.mean, 2, 1e-12);
  assert_near(difference.se, 8 * sqrt(2. / 15), 1e-12);
  /* for the same series at two points the noise is the same: 120 - 2 * 100 - noise */
  difference = cv_lab_compare(&made.dataset, 0, 2, 0, 0, 2, 0);
  assert_near(difference.mean, -80, 1e-12);
  assert_near(difference.se, se, 1e-12);
  drop(&made);
}

static void test_root_mean_squares_are_compared_as_such(void **state) {
  struct made made;
  make(&made, HEAD(BY_PARAMETER), "  statistic: root-mean-square\n", "", unpaired);
  struct cv_lab_summary one = cv_lab_summarise(&made.dataset, 0, 0, 0);
  assert_near(one.mean, sqrt(100 * 100 + 64), 1e-10);
  struct cv_lab_summary difference = cv_lab_compare(&made.dataset, 0, 0, 1, 0, 1, 0);
  assert_near(difference.mean, sqrt(100 * 100 + 64) - sqrt(98 * 98 + 64), 1e-10);
  assert_true(difference.se > 2.7 && difference.se < 3.1); /* 2.92 of the means */
  drop(&made);
}

static double log_of(double x) {
  return log(x);
}

/* Arm b shows .6 * .9 + .4 * .1 = .58, and would show .82 if it were as good as a. */
static double bound(double pulls) {
  return .3 * log_of(pulls) / (.58 * log(.58 / .82) + .42 * log(.42 / .18));
}

static void test_rows_are_in_order_and_lines_are_calculated(void **state) {
  struct made made;
  struct cv_lab_result result = {0};
  make(&made, HEAD(BY_PULLS), "", "", missing);
  assert_int_equal(cv_lab_dataset_rows(&made.dataset, &result), CV_OK);
  assert_int_equal(result.rows, 3 + 2 + 3 + 3 + 3 + 2 + 3);
  const struct cv_lab_row *row = &result.row[0];
  assert_string_equal(row->series, "one");
  assert_string_equal(row->metric, "regret");
  assert_near(row->x, 100, 0);
  assert_near(row->mean, 100, 1e-12);
  assert_near(row->se, 1 / sqrt(15), 1e-12);
  assert_near(row->low, 100 - 1 / sqrt(15), 1e-12);
  assert_int_equal(row->n, REPLICATES);
  row = &result.row[6]; /* after one's three points and two of two */
  assert_string_equal(row->series, "bound");
  assert_near(row->x, 200, 0);
  assert_near(row->mean, bound(200), 1e-9);
  assert_true(isnan(row->se));
  assert_int_equal(row->n, 0);
  for (size_t i = 11; i < result.rows; i++) {
    assert_string_equal(result.row[i].metric, "pulls");
    assert_string_not_equal(result.row[i].series, "bound");
  }
  cv_lab_result_fini(&result);
  drop(&made);
}

static void test_a_line_follows_the_limit_of_tokens_of_its_point(void **state) {
  struct made made;
  struct cv_lab_summary found;
  make(&made, HEAD(BY_PARAMETER), "", "", paired);
  for (size_t point = 0; point < POINTS; point++) {
    assert_int_equal(cv_lab_found(&made.dataset, 2, point, 0, &found), CV_OK);
    assert_near(found.mean, bound(made.experiment.x[point]), 1e-9);
  }
  assert_int_equal(cv_lab_found(&made.dataset, 2, 0, 1, &found), CV_OK);
  assert_true(isnan(found.mean));
  drop(&made);
}

/* se is 1/sqrt(15) = .258, and of 15 degrees 2.18 of them are needed: .563 */
static void test_verdicts_of_what_is_compared(void **state) {
  static const struct judged judged[] = {
      {"series: one, least: 99", CV_LAB_HOLDS,
       "all 3 comparisons hold, the closest: at T = 100 one has 100 ± 0.26, "
       "expected at least 99; 3.9 standard errors in 16 replicates"},
      {"series: one, least: 99.5, at: 100", CV_LAB_UNDECIDED,
       "at T = 100 one has 100 ± 0.26, expected at least 99.5; 1.9 standard errors in 16 replicates, 2.2 are "
       "needed: about 21 replicates may do"},
      {"series: one, least: 109.5", CV_LAB_FAILS, "1 of 3 comparisons fail, most clearly: at T = 100 one has"},
      {"series: one, most: 110, at: 100", CV_LAB_HOLDS, "expected at most 110"},
      {"series: one, most: 110", CV_LAB_FAILS, "at T = 400 one has 120"},
      {"series: one, equals: 100.2, within: 2, at: first", CV_LAB_HOLDS, ""},
      {"series: one, equals: 103, within: 1, at: 100", CV_LAB_FAILS, "expected at least 102"},
      {"series: two, below: one", CV_LAB_HOLDS, "equal in all 16 replicates"},
      {"series: two, above: one", CV_LAB_FAILS, "3 of 3 comparisons fail"},
      {"series: two, below: one, factor: 0.9, to: 200", CV_LAB_FAILS, "expected less than 0.9 times that"},
      {"series: two, below: one, factor: 0.95, at: 100", CV_LAB_HOLDS, ""},
      {"series: one, approaches: two, within: 0.2", CV_LAB_HOLDS, ""},
      {"series: one, near: two, within: 0.05, from: 200", CV_LAB_FAILS, "expected less than 1.05 times that"},
      {"series: one, near: two, within: 0.2", CV_LAB_HOLDS, "all 6 comparisons hold"},
      {"series: one, above: bound", CV_LAB_HOLDS, "bound (asymptotic) has"},
      {"series: one, approaches: bound, within: 0.1, at: last", CV_LAB_FAILS, "expected less than 1.1 times that"},
      {"series: bound, below: [one, two]", CV_LAB_HOLDS, "all 6 comparisons hold"},
      {"series: one, trend: rises", CV_LAB_HOLDS,
       "at T = 400 one has 120 ± 0.26, at T = 100 one has 100 ± 0.26, expected more"},
      {"series: one, trend: falls", CV_LAB_FAILS, "3 of 3 comparisons fail"},
      {"series: one, growth: constant", CV_LAB_FAILS, "expected less than 1.1 times that"},
      {"series: one, growth: x", CV_LAB_HOLDS, ""},
      {"series: one, growth: constant, within: 0.3", CV_LAB_HOLDS, ""},
      {"series: one, growth: x-two-thirds, within: 0", CV_LAB_HOLDS, ""},
      /* from 120 at the last point down to 100 at a quarter of x, where 1/x would allow 480 */
      {"series: one, growth: 1/x", CV_LAB_HOLDS, "at T = 100 one has 100 ± 0.26, at T = 400 one has 120"},
      {"series: one, growth: 1/x-squared, within: 0", CV_LAB_HOLDS, "less than 16 times that"},
      /* 100, 110, 120 at 100, 200, 400 grow more slowly than a root, whose tenfold growth would be 120 to 200 */
      {"series: one, order: sqrt-x", CV_LAB_FAILS, "2 of 4 comparisons fail, most clearly: at T = 400 one has 120"},
      {"series: one, order: constant", CV_LAB_FAILS, "expected less than 1.1 times that"},
      {"series: one, order: constant, within: .21", CV_LAB_HOLDS, "all 4 comparisons hold"},
      {"series: one, order: log-x, within: .2", CV_LAB_HOLDS, "all 4 comparisons hold"},
  };
  judge_all(HEAD(BY_PARAMETER), "", paired, judged, CV_COUNT(judged));
}

static void test_what_chance_can_do_is_not_judged(void **state) {
  static const struct judged judged[] = {
      {"series: two, below: one, at: 100", CV_LAB_UNDECIDED, "paired, 0.7 standard errors in 16 replicates"},
      {"series: one, below: two, at: 100", CV_LAB_UNDECIDED, "0.7 standard errors the wrong way"},
  };
  judge_all(HEAD(BY_PARAMETER), "", unpaired, judged, CV_COUNT(judged));
}

static void test_what_is_missing_is_not_judged(void **state) {
  static const struct judged judged[] = {
      {"series: two, below: one", CV_LAB_UNDECIDED,
       "two has no number, one has 120 ± 0.26, expected less; there are no"},
      {"series: two, trend: rises", CV_LAB_UNDECIDED, "there are no values"},
      {"series: two, least: 100, at: 100", CV_LAB_FAILS, ""},
  };
  judge_all(HEAD(BY_PARAMETER), "", missing, judged, CV_COUNT(judged));
  static const struct judged one[] = {
      {"series: one, least: 5", CV_LAB_UNDECIDED, "1 replicate is too few to estimate the error"},
  };
  judge_all(HEAD(BY_PARAMETER), "", single, one, CV_COUNT(one));
}

static void test_replicates_that_are_all_alike(void **state) {
  static const struct judged judged[] = {
      {"series: one, least: 100", CV_LAB_HOLDS, "equal in all 16 replicates"},
      {"series: one, below: two", CV_LAB_UNDECIDED, "equal in all 16 replicates"},
      {"series: one, below: two, factor: 0.9", CV_LAB_FAILS, "equal in all 16 replicates"},
      {"series: one, approaches: two, within: 0", CV_LAB_HOLDS, ""},
  };
  judge_all(HEAD(BY_PARAMETER), "", alike, judged, CV_COUNT(judged));
}

/* Of one 13, 12 and 3 of the 16 replicates are .01 to .16 of two, the others ten times it and more, so that its mean is
 * always above; the last of two's replicates equals one's, at the last point. */
static double heavy(size_t series, size_t point, uint64_t replicate) {
  static const uint64_t low[] = {13, 12, 3};
  double one = (double)(replicate + 1) * (replicate < low[point] ? 1 : 100);
  return series == 0 || (point == 2 && replicate == 15) ? one : 100;
}

/* Of 16 tosses 13 heads or more have probability .0106 and 12 have .0384; 14, for a third of .0228, .0021. */
static void test_medians_are_judged_by_the_sign_test(void **state) {
  static const struct judged judged[] = {
      {"series: one, below: two, at: 100", CV_LAB_UNDECIDED, "one has "},
      {"series: one, below: two, at: 100, by_median: true", CV_LAB_HOLDS,
       "at T = 100 one over two: median ratio 0.085 (0.0475 to 0.122) over 16 pairs, expected less than 1; 13 agree"},
      {"series: one, below: two, at: 200, by_median: true", CV_LAB_UNDECIDED,
       "expected less than 1; 12 agree, 13 are needed: about 21 replicates may do"},
      {"series: one, below: two, at: 400, by_median: true", CV_LAB_FAILS, "; 3 agree"},
      {"series: one, below: two, by_median: true", CV_LAB_UNDECIDED, "2 of 3 comparisons are undecided, the worst: "},
      {"series: two, above: one, at: 100, factor: 10, by_median: true", CV_LAB_UNDECIDED,
       "two over one: median ratio 11.8 (8.17 to 21.2) over 16 pairs, expected more than 10; 9 agree, 13 are needed"},
      {"series: two, above: one, at: 100, factor: 7, by_median: true", CV_LAB_HOLDS, "; 13 agree"},
      {"series: two, above: one, at: 100, factor: 40, by_median: true", CV_LAB_FAILS, "; 2 agree"},
      {"series: one, most: 13, at: 100, by_median: true", CV_LAB_HOLDS,
       "at T = 100 one has median 8.5 (4.75 to 12.2) over 16 replicates, expected at most 13; 13 agree"},
      {"series: one, most: 12, at: 100, by_median: true", CV_LAB_UNDECIDED, "; 12 agree, 13 are needed"},
      {"series: one, least: 4, at: 100, by_median: true", CV_LAB_HOLDS, "; 13 agree"},
      {"series: one, equals: 9, within: 5, at: 100, by_median: true", CV_LAB_HOLDS, "all 2 comparisons hold"},
      {"series: two, most: 100, at: 200, by_median: true", CV_LAB_HOLDS, "; 16 agree"},
      {"series: one, near: two, within: 0.1, at: 100, by_median: true", CV_LAB_FAILS, "1 of 2 comparisons fail"},
      {"series: one, below: bound, at: 400, by_median: true", CV_LAB_FAILS,
       "one over bound (asymptotic): median ratio "},
      {"series: one, trend: rises, by_median: true", CV_LAB_UNDECIDED,
       "at T = 400 one over at T = 100 one: median ratio 100 "},
  };
  judge_all(HEAD(BY_PARAMETER), "", heavy, judged, CV_COUNT(judged));
  /* By default a claim is about the median in an experiment of medians, and otherwise about the means. */
  static const struct judged medians[] = {
      {"series: one, below: two, at: 100", CV_LAB_HOLDS, "; 13 agree"},
      {"series: one, most: 13, at: 100", CV_LAB_HOLDS, "; 13 agree"},
      {"series: one, below: two, at: 100, by_median: false", CV_LAB_UNDECIDED, "paired, "},
      {"series: two, above: bound, at: 100, by_median: false", CV_LAB_HOLDS, "two has 100"},
  };
  judge_all(HEAD(BY_PARAMETER), "  statistic: median\n", heavy, medians, CV_COUNT(medians));
}

/* Equality is what a claim of no less allows, and what a claim of less denies. */
static void test_ties_in_the_sign_test(void **state) {
  static const struct judged judged[] = {
      {"series: one, below: two, by_median: true", CV_LAB_FAILS, "expected less than 1; 0 agree"},
      {"series: one, approaches: two, within: 0, by_median: true", CV_LAB_HOLDS, "; 16 agree"},
      {"series: one, least: 100, by_median: true", CV_LAB_HOLDS, "; 16 agree"},
      {"series: bound, below: one, by_median: true", CV_LAB_HOLDS, "; 16 agree"},
      {"series: bound, most: 100, by_median: true", CV_LAB_HOLDS, "bound (asymptotic) has "},
  };
  judge_all(HEAD(BY_PARAMETER), "", alike, judged, CV_COUNT(judged));
}

static double around_nothing(size_t series, size_t point, uint64_t replicate) {
  return series == 0 ? (double)replicate : (double)replicate - 3;
}

/* A ratio to 0 or less says nothing, so the reason has differences; nor do missing values count. */
static void test_medians_of_what_has_no_ratio(void **state) {
  static const struct judged judged[] = {
      {"series: one, above: two, at: 100, by_median: true", CV_LAB_HOLDS,
       "one minus two: median difference 3 (3 to 3) over 16 pairs, expected more; 16 agree"},
      {"series: one, above: two, at: 100, factor: 2, by_median: true", CV_LAB_UNDECIDED,
       "expected more than 2 times that; 6 agree, 13 are needed"},
  };
  judge_all(HEAD(BY_PARAMETER), "", around_nothing, judged, CV_COUNT(judged));
  static const struct judged none[] = {
      {"series: one, above: two, by_median: true", CV_LAB_UNDECIDED, "median ratio of none; there are no values"},
      {"series: one, above: two, to: 200, by_median: true", CV_LAB_HOLDS, "all 2 comparisons hold"},
  };
  judge_all(HEAD(BY_PARAMETER), "", missing, none, CV_COUNT(none));
  static const struct judged one[] = {
      {"series: one, least: 5, at: 100, by_median: true", CV_LAB_UNDECIDED,
       "over 1 replicates, expected at least 5; 1 agree, too few of them to judge"},
  };
  judge_all(HEAD(BY_PARAMETER), "", single, one, CV_COUNT(one));
}

/* Of 16 tosses of a coin with .6 heads, 13 heads or more have probability .0651 and 14 have .0183; of one with .95
 * heads, 12 or fewer have .0070, and with .9, .0684. */
static void test_claims_about_a_share_of_the_runs(void **state) {
  static const struct judged judged[] = {
      {"series: one, below: two, at: 100, in_runs: 50%", CV_LAB_HOLDS, "expected less than 1; 13 agree"},
      {"series: one, below: two, at: 100, in_runs: 60%", CV_LAB_UNDECIDED,
       "expected less than 1 in 60 % of them; 13 agree, 14 are needed"},
      {"series: one, below: two, at: 200, in_runs: 95%", CV_LAB_FAILS, "in 95 % of them; 12 agree"},
      {"series: one, below: two, at: 200, in_runs: 90%", CV_LAB_UNDECIDED, "too few of them to judge"},
  };
  judge_all(HEAD(BY_PARAMETER), "", heavy, judged, CV_COUNT(judged));
}

/* One is 1 below the others at the first point and 3 above them at the two others; its three deviations of .5 cancel in
 * half of the replicates only. */
static double mostly(size_t series, size_t point, uint64_t replicate) {
  double chance = (replicate >> point) % 2 == 0 ? .5 : -.5;
  return 100 + (series == 0 ? chance + (point == 0 ? -1 : 3) : 0);
}

/* The average of one is 100 + 5/3; its deviation is that of three coins of 1/6, and n = 16. */
static void test_averages_of_comparisons(void **state) {
  static const struct judged judged[] = {
      {"series: one, above: two", CV_LAB_FAILS, "1 of 3 comparisons fail"},
      {"series: one, above: two, average: true", CV_LAB_HOLDS,
       "on average over 3 comparisons one has 101.7 ± 0.075, two has 100, expected more; paired, 22.4 standard errors "
       "in "
       "16 replicates"},
      {"series: one, above: two, at: [100, 200], average: true, smallest: .5", CV_LAB_HOLDS,
       "on average over 2 comparisons one has 101"},
      {"series: one, below: [two, \"two, b\"], average: true", CV_LAB_FAILS,
       "on average over 6 comparisons one has 101.7 ± 0.075, two has 100, expected less"},
      {"series: [one, two], least: 100.5, average: true", CV_LAB_HOLDS,
       "on average over 6 comparisons all has 100.8 ± 0.037, expected at least 100.5"},
      {"series: [one, two], trend: rises, average: true", CV_LAB_HOLDS,
       "on average over 2 comparisons at T = 400 all has 101.5"},
      {"series: one, above: two, average: true, in_runs: 70%", CV_LAB_HOLDS, "; 16 agree"},
  };
  judge_all(HEAD(BY_PARAMETER), "", mostly, judged, CV_COUNT(judged));
  static const struct judged none = {"series: one, above: two, average: true", CV_LAB_UNDECIDED, "there are no values"};
  judge_all(HEAD(BY_PARAMETER), "", missing, &none, 1);
}

/* 50, 40 and 30 of one, two and "two, b", with deviations of 1, 1 and 2. */
static double apart(size_t series, size_t point, uint64_t replicate) {
  double chance = replicate % 2 == 0 ? 1 : -1;
  return 50 - (series == 0 ? 0 : series == 1 ? 10 : 20) + (series == 3 ? 2 : 1) * chance;
}

static void test_differences_of_differences(void **state) {
  static const struct judged judged[] = {
      {"series: one, above: two, at: 100, minus: [\"two, b\", one]", CV_LAB_HOLDS,
       "at T = 100 one minus two, b has 20 ± 0.26, two minus one has -10, expected more; paired, more than 100.0 "
       "standard "
       "errors in 16 replicates"},
      {"series: one, below: two, minus: [\"two, b\", one]", CV_LAB_FAILS, "3 of 3 comparisons fail"},
      {"series: one, above: two, minus: [one, two]", CV_LAB_UNDECIDED, "equal in all 16 replicates"},
  };
  judge_all(HEAD(BY_PARAMETER), "", apart, judged, CV_COUNT(judged));
}

static void test_few_squares_are_not_judged(void **state) {
  static const struct judged judged[] = {
      {"series: one, least: 1", CV_LAB_UNDECIDED, "16 replicates are too few to estimate the error"},
  };
  judge_all(HEAD(BY_PARAMETER), "  statistic: root-mean-square\n", paired, judged, CV_COUNT(judged));
}

static void test_of_a_run_the_last_moment_counts(void **state) {
  static const struct judged judged[] = {
      {"series: one, least: 115", CV_LAB_HOLDS, "at pulls = 400 one has 120"},
      {"series: one, least: 115, at: all", CV_LAB_FAILS, "2 of 3 comparisons fail"},
      {"series: one, trend: rises", CV_LAB_HOLDS, ""},
  };
  judge_all(HEAD(BY_PULLS), "", paired, judged, CV_COUNT(judged));
}

/* Series "gap, epsilon .1" is compared with "dp-se, epsilon .1" alone. */
static void test_cells_of_a_grid_are_compared_with_each_other(void **state) {
  static const struct judged judged[] = {
      {"series: two, above: one, smallest: .5", CV_LAB_HOLDS, "all 6 comparisons hold"},
      {"series: one, at: 100, least: 89.5", CV_LAB_FAILS, "1 of 2 comparisons fail"},
  };
  static const char head[] =
      "campaign: made\nitems: {synthetic: {count: 2}}\npolicy: {name: ppar, alpha: 0.1}\n"
      "privacy: {mechanism: hybrid, epsilon: 1}\nlimits: {tokens: 400}\nexperiment:\n  x: " BY_PARAMETER
      "\n  series:\n    - {name: one}\n    - {name: two}\n  grid: {privacy.epsilon: [0.5, 1]}\n";
  struct made made;
  make(&made, head, "", "", paired);
  assert_string_equal(made.experiment.one[1].name, "two, epsilon 0.5");
  assert_string_equal(made.experiment.one[2].name, "one, epsilon 1");
  drop(&made);
  for (size_t i = 0; i < CV_COUNT(judged); i++) {
    struct cv_lab_claim claim;
    char text[400];
    (void)snprintf(text, sizeof(text), "    - {says: so it is, metric: regret, %s}\n", judged[i].claim);
    make(&made, head, "", text, paired);
    for (uint64_t replicate = 0; replicate < REPLICATES; replicate++) {
      for (size_t setting = 0; setting < POINTS; setting++) {
        const double shift = 2 * (double)(replicate % 2);
        const double piece[] = {10 + shift, 10, 11 + shift, 11, 100 + shift, 100, 101 + shift, 101};
        cv_lab_dataset_put(&made.dataset, setting, replicate, piece);
      }
    }
    cv_lab_claim_judge(&made.dataset, 0, &claim);
    if (claim.verdict != judged[i].verdict || strstr(claim.reason, judged[i].reason) == NULL) {
      fail_msg("%s: %s: %s", judged[i].claim, cv_lab_verdict_text(claim.verdict), claim.reason);
    }
    drop(&made);
  }
}

/* With noise alone a claim fails as seldom as at one point: 2.3 % of the time, however many points there are. */
static struct cv_rng_seeded chance;
static double no_difference(size_t series, size_t point, uint64_t replicate) {
  return cv_rng_normal(&chance.rng);
}

static void test_many_points_are_no_reason_to_fall(void **state) {
  enum { RUNS = 600 };
  size_t fallen = 0, held = 0;
  cv_rng_seeded_init(&chance, 5, CV_RNG_SCORE, 0, 0);
  for (size_t run = 0; run < RUNS; run++) {
    struct made made;
    struct cv_lab_claim claim;
    make(&made, HEAD(BY_PARAMETER), "",
         "    - {says: so it is, metric: regret, series: one, below: [two, \"two, b\"]}\n", no_difference);
    cv_lab_claim_judge(&made.dataset, 0, &claim);
    fallen += claim.verdict == CV_LAB_FAILS;
    held += claim.verdict == CV_LAB_HOLDS;
    drop(&made);
  }
  /* without a correction about 13 % of six comparisons would fail; 2.3 % of 600 are 14, and 26 is three deviations
   * above */
  assert_in_range(fallen, 2, 26);
  assert_int_equal(held, 0);
}

static void test_messages_about_bad_claims(void **state) {
  static const struct {
    const char *claim, *message;
  } bad[] = {
      {"just so", "15:7: a claim is \"just so\"; expected says and what it compares"},
      {"{says: x, series: one, metric: regrets, least: 1}",
       "15:38: unknown metric \"regrets\"; did you mean \"regret\"?"},
      {"{says: x, series: on, metric: regret, least: 1}", "15:25: unknown series \"on\"; did you mean \"one\"?"},
      {"{says: x, series: one, metric: regret, below: quite}",
       "15:53: unknown series \"quite\"; expected one, two, bound or two, b"},
      {"{says: x, series: one, metric: regret, below: one}",
       "15:53: series \"one\" is compared with itself; expected another series"},
      {"{says: x, series: one, metric: regret}",
       "15:7: the claim has no comparison; expected least, most, equals, below, above, approaches, near, trend, "
       "growth, order or reason"},
      {"{says: x, series: one, metric: regret, least: 1, most: 2}",
       "15:56: the claim has least and most; expected one of them"},
      {"{series: one, metric: regret, least: 1}", "15:7: the claim has no \"says\"; expected a sentence"},
      {"{says: x, series: one, least: 1}", "15:7: the claim names no metric; expected one of the experiment's"},
      {"{says: x, metric: regret, least: 1}", "15:7: the claim names no series; expected one of the experiment's"},
      {"{says: x, series: one, metric: regret, lest: 1}",
       "15:46: unknown key \"lest\" in a claim; did you mean \"least\"?"},
      {"{says: x, series: one, metric: regret, least: much}", "15:53: least is \"much\"; expected a number"},
      {"{says: x, series: one, metric: regret, equals: 1}",
       "15:46: equals needs \"within\"; expected the allowed difference"},
      {"{says: x, series: one, metric: regret, least: 1, factor: 2}", "15:56: least takes no \"factor\""},
      {"{says: x, series: one, metric: regret, least: 1, at: 300}",
       "15:60: the experiment has no point at \"300\"; it has 3, from 100 to 400"},
      {"{says: x, series: one, metric: regret, least: 1, at: 100, to: 200}",
       "15:56: \"at\" cannot be combined with \"from\" or \"to\"; expected one or the other"},
      {"{says: x, series: one, metric: regret, least: 1, from: 500}",
       "15:62: no point of x lies in this range; expected a part of 100 to 400"},
      {"{says: x, series: one, metric: regret, trend: up}", "15:53: unknown trend \"up\"; expected falls or rises"},
      {"{says: x, series: one, metric: regret, trend: rises, at: 100}",
       "15:46: trend needs at least two points of x; found 1"},
      {"{says: x, reason: because, series: one}",
       "15:34: unknown key \"series\" in a claim with a reason; expected says, reason, by, quote or where"},
      {"{says: x, by: you, series: one, metric: regret, least: 1}",
       "15:21: unknown author \"you\"; expected paper or us"},
      {"{says: x, by: paper, series: one, metric: regret, least: 1}",
       "15:21: a claim of the paper; expected its short name in experiment.source"},
      {"{says: x, quote: y, series: one, metric: regret, least: 1}",
       "15:17: a claim of our own has \"quote\"; expected experiment.source, the paper's short name"},
      {"{says: x, series: one, metric: regret, least: 1, smallest: 1}",
       "15:56: least takes no \"smallest\"; expected it where a difference is claimed: below, above or trend"},
      {"{says: x, series: one, metric: regret, below: two, factor: 2, smallest: 1}",
       "15:69: \"smallest\" cannot be combined with \"factor\""},
      {"{says: x, series: one, metric: regret, below: two, smallest: 0}",
       "15:68: smallest is \"0\"; expected a number above 0, or a percentage such as 2%"},
      {"{says: x, series: one, metric: regret, below: two, smallest: -1%}",
       "15:68: smallest is \"-1%\"; expected a number above 0, or a percentage such as 2%"},
      {"{says: x, series: one, metric: regret, below: two, smallest: \"%\"}",
       "15:68: smallest is \"%\"; expected a number above 0, or a percentage such as 2%"},
      {"{says: x, series: one, metric: regret, below: two, by_median: yes}",
       "15:69: unknown value of by_median \"yes\"; expected false or true"},
      {"{says: x, series: one, metric: regret, below: two, by_median: true, smallest: 1}",
       "15:75: the claim is about a median, whose effects are not bounded; expected \"smallest\" with \"by_median: "
       "false\""},
      {"{says: x, series: one, metric: regret, below: two, in_runs: 100%}",
       "15:67: in_runs is \"100%\"; expected less than 100%"},
      {"{says: x, series: one, metric: regret, below: two, in_runs: 90%, by_median: true}",
       "15:58: \"in_runs\" cannot be combined with \"by_median\", which means 50%; expected one of them"},
      {"{says: x, series: one, metric: regret, below: two, in_runs: 90%, smallest: 1}",
       "15:72: the claim is about a share of the runs, whose effects are not bounded; expected \"smallest\" without "
       "\"in_runs\""},
      {"{says: x, series: one, metric: regret, growth: log-x, average: true}",
       "15:61: growth has no average; expected a claim about means"},
      {"{says: x, series: one, metric: regret, below: bound, average: true}",
       "15:60: series \"bound\" is a formula; expected average of series that are run"},
      {"{says: x, series: one, metric: regret, below: two, minus: one}",
       "15:65: minus is \"one\"; expected two series, one to subtract from either side of the comparison"},
      {"{says: x, series: one, metric: regret, below: two, minus: [bound, one]}",
       "15:58: series \"bound\" is a formula; expected minus of series that are run"},
      {"{says: x, series: one, metric: regret, least: 1, minus: [one, two]}",
       "15:56: \"minus\" is for one series that is below or above one other; expected no \"minus\" here"},
      {"{says: x, series: one, metric: regret, below: two, smallest: [1]}",
       "15:68: smallest is a list; expected a number above 0, or a percentage such as 2%"},
  };
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_lab_experiment experiment;
    struct cv_why why = {0};
    char text[400], want[400];
    (void)snprintf(text, sizeof(text), "    - %s\n", bad[i].claim);
    (void)snprintf(want, sizeof(want), "made.yaml:%s", bad[i].message);
    assert_int_equal(parse(HEAD(BY_PARAMETER), "", text, &experiment, &why), CV_ERR_INVALID);
    assert_string_equal(why.text, want);
  }
}

static void test_whose_claim_it_is(void **state) {
  static const char source[] = "  source: Nobody et al.\n";
  static const struct {
    const char *tail, *claim;
    bool is_ours;
    const char *quote, *where;
    double smallest;
    bool is_share;
  } good[] = {
      {"", "least: 1", true, NULL, NULL, 0, false},
      {"", "by: us, trend: rises, smallest: 2.5", true, NULL, NULL, 2.5, false},
      {source, "above: two, smallest: 2.5%", false, NULL, NULL, .025, true},
      {source, "by: us, least: 1", true, NULL, NULL, 0, false},
      {source, "least: 1, quote: \"it is, so\", where: figure 4", false, "it is, so", "figure 4", 0, false},
  };
  for (size_t i = 0; i < CV_COUNT(good); i++) {
    struct made made;
    struct cv_lab_terms terms;
    struct cv_why why = {0};
    char text[400];
    (void)snprintf(text, sizeof(text), "    - {says: x, series: one, metric: regret, %s}\n", good[i].claim);
    make(&made, HEAD(BY_PARAMETER), good[i].tail, text, paired);
    assert_int_equal(cv_lab_terms_read(&made.experiment, 0, &terms, &why), CV_OK);
    assert_int_equal(terms.is_ours, good[i].is_ours);
    assert_string_equal(terms.quote == NULL ? "" : terms.quote, good[i].quote == NULL ? "" : good[i].quote);
    assert_string_equal(terms.where == NULL ? "" : terms.where, good[i].where == NULL ? "" : good[i].where);
    assert_near(terms.smallest, good[i].smallest, 1e-12);
    assert_int_equal(terms.is_share, good[i].is_share);
    drop(&made);
  }
  struct cv_lab_experiment experiment;
  struct cv_why why = {0};
  static const char ours[] = "    - {says: x, by: us, where: here, series: one, metric: regret, least: 1}\n";
  assert_int_equal(parse(HEAD(BY_PARAMETER), source, ours, &experiment, &why), CV_ERR_INVALID);
  assert_string_equal(why.text,
                      "made.yaml:16:25: a claim of our own has \"where\"; expected it in claims of the paper only");
}

static void test_a_reason_stands_for_itself(void **state) {
  struct made made;
  struct cv_lab_claim claim;
  make(&made, HEAD(BY_PARAMETER), "", "    - {says: people like it, reason: nobody was asked}\n", paired);
  cv_lab_claim_judge(&made.dataset, 0, &claim);
  assert_int_equal(claim.verdict, CV_LAB_UNDECIDED);
  assert_string_equal(claim.says, "people like it");
  assert_string_equal(claim.reason, "nobody was asked");
  drop(&made);
}

static void test_formulas_that_do_not_fit(void **state) {
  static const struct {
    const char *series, *message;
  } bad[] = {
      {"formula: corrupt-lower-bond", "9:26: formula is \"corrupt-lower-bond\"; expected corrupt-lower-bound"},
      {"formula: pi",
       "9:26: formula is \"pi\"; expected corrupt-lower-bound, "
       "klucb-cf-main-term, ucb-cf-order, leakage-bound, ppar-cost, ppar-success, ppar-noise, "
       "exp3-tau-bound, gap-bound, gap-bound-of-run, declared-noise or declared-noise-so-far"},
      {"formula: declared-noise",
       " formula declared-noise of series \"a\" gives noise, which is not a metric of the "
       "experiment; expected it in metrics"},
      {"formula: corrupt-lower-bound, privacy.privatizer: {name: laplace, epsilon: 1}, policy.name: dp-exp3-lap",
       " series \"a\" cannot have formula corrupt-lower-bound: it applies to bits only; expected privatizer "
       "randomized-response or none"},
  };
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_lab_experiment experiment;
    struct cv_why why = {0};
    char head[800], want[400];
    (void)snprintf(
        head, sizeof(head),
        "campaign: made\nitems: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.6}]}\n"
        "policy: {name: klucb-cf}\nprivacy: {mechanism: none, privatizer: {name: randomized-response, "
        "epsilon: 1}}\nlimits: {tokens: 400}\nexperiment:\n  x: {pulls: 4}\n  series:\n    - {name: a, %s}\n",
        bad[i].series);
    (void)snprintf(want, sizeof(want), "made.yaml:%s", bad[i].message);
    enum cv_err err = parse(head, "", "", &experiment, &why);
    if (err == CV_OK) {
      err = cv_lab_experiment_check(&experiment, &why);
      cv_lab_experiment_fini(&experiment);
    }
    assert_int_equal(err, CV_ERR_INVALID);
    assert_string_equal(why.text, want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_summaries_and_comparisons),
      cmocka_unit_test(test_root_mean_squares_are_compared_as_such),
      cmocka_unit_test(test_rows_are_in_order_and_lines_are_calculated),
      cmocka_unit_test(test_a_line_follows_the_limit_of_tokens_of_its_point),
      cmocka_unit_test(test_verdicts_of_what_is_compared),
      cmocka_unit_test(test_what_chance_can_do_is_not_judged),
      cmocka_unit_test(test_what_is_missing_is_not_judged),
      cmocka_unit_test(test_replicates_that_are_all_alike),
      cmocka_unit_test(test_medians_are_judged_by_the_sign_test),
      cmocka_unit_test(test_ties_in_the_sign_test),
      cmocka_unit_test(test_medians_of_what_has_no_ratio),
      cmocka_unit_test(test_claims_about_a_share_of_the_runs),
      cmocka_unit_test(test_averages_of_comparisons),
      cmocka_unit_test(test_differences_of_differences),
      cmocka_unit_test(test_few_squares_are_not_judged),
      cmocka_unit_test(test_of_a_run_the_last_moment_counts),
      cmocka_unit_test(test_cells_of_a_grid_are_compared_with_each_other),
      cmocka_unit_test(test_many_points_are_no_reason_to_fall),
      cmocka_unit_test(test_messages_about_bad_claims),
      cmocka_unit_test(test_whose_claim_it_is),
      cmocka_unit_test(test_a_reason_stands_for_itself),
      cmocka_unit_test(test_formulas_that_do_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
