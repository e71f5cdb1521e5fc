/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of a hand-made report with two papers, one of them in two experiments with another one between. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "common/base/err.h"
#include "lab/report/parts.h"
#include "lab/report/tally.h"

static struct cv_lab_judged first[] = {
    {.says = (char[]){"a"}, .verdict = CV_LAB_HOLDS},
    {.says = (char[]){"b"}, .verdict = CV_LAB_FAILS},
    {.says = (char[]){"c"}, .verdict = CV_LAB_NO_EFFECT},
    {.says = (char[]){"ours"}, .verdict = CV_LAB_FAILS, .is_ours = true},
    {.says = (char[]){"d"}, .verdict = CV_LAB_UNDECIDED},
};
static struct cv_lab_judged other[] = {{.says = (char[]){"e"}, .verdict = CV_LAB_FAILS}};
static struct cv_lab_judged alone[] = {{.says = (char[]){"ours too"}, .verdict = CV_LAB_HOLDS, .is_ours = true},
                                       {.says = (char[]){"and this"}, .verdict = CV_LAB_HOLDS, .is_ours = true}};
static struct cv_lab_judged second[] = {{.says = (char[]){"f"}, .verdict = CV_LAB_HOLDS},
                                        {.says = (char[]){"g"}, .verdict = CV_LAB_FAILS}};

static struct cv_lab_entry entries[] = {
    {.source = (char[]){"P"}, .claim = first, .claims = CV_COUNT(first)},
    {.source = (char[]){"Q"}, .claim = other, .claims = CV_COUNT(other)},
    {.source = (char[]){""}, .claim = alone, .claims = CV_COUNT(alone)},
    {.source = (char[]){"R"}}, /* without claims */
    {.source = (char[]){"P"}, .claim = second, .claims = CV_COUNT(second)},
};
static const struct cv_lab_report report = {.entry = entries, .entries = CV_COUNT(entries)};

static void expect(const struct cv_lab_group *group, size_t holds, size_t fails, size_t none, size_t open) {
  struct cv_lab_tally tally = cv_lab_tally_of(&report, group);
  assert_int_equal(tally.count[CV_LAB_HOLDS], holds);
  assert_int_equal(tally.count[CV_LAB_FAILS], fails);
  assert_int_equal(tally.count[CV_LAB_NO_EFFECT], none);
  assert_int_equal(tally.count[CV_LAB_UNDECIDED], open);
  assert_int_equal(tally.total, holds + fails + none + open);
}

static void test_papers_and_our_own_are_counted_apart(void **state) {
  expect(&(struct cv_lab_group){.is_ours = false}, 2, 3, 1, 1);
  expect(&(struct cv_lab_group){.is_ours = true}, 2, 1, 0, 0);
  char papers[CV_LAB_TALLY_TEXT], ours[CV_LAB_TALLY_TEXT];
  cv_lab_report_counts(&report, papers, ours);
  assert_string_equal(papers, "2 hold, 3 do not hold, 1 has no effect, 1 is open");
  assert_string_equal(ours, "2 hold, 1 does not hold, 0 have no effect, 0 are open");
}

static void test_each_source_is_counted_once(void **state) {
  struct cv_lab_group group = {0};
  assert_true(cv_lab_group_next(&report, &group));
  assert_string_equal(cv_lab_group_name(&group), "P");
  expect(&group, 2, 2, 1, 1);
  assert_true(cv_lab_group_next(&report, &group));
  assert_string_equal(cv_lab_group_name(&group), "Q");
  expect(&group, 0, 1, 0, 0);
  assert_false(cv_lab_group_next(&report, &group));
  group = (struct cv_lab_group){.is_ours = true};
  assert_true(cv_lab_group_next(&report, &group));
  assert_string_equal(cv_lab_group_name(&group), "P");
  expect(&group, 0, 1, 0, 0);
  assert_true(cv_lab_group_next(&report, &group));
  assert_string_equal(group.source, "");
  expect(&group, 2, 0, 0, 0);
  assert_false(cv_lab_group_next(&report, &group));
}

static void expect_failing(struct cv_lab_group group, const char *says) {
  struct cv_lab_failing at = {0};
  for (; cv_lab_failing_find(&report, &group, &at); at.claim++, says++) {
    const char found[] = {entries[at.entry].claim[at.claim].says[0], '\0'}, wanted[] = {*says, '\0'};
    assert_string_equal(found, wanted);
  }
  assert_int_equal(*says, '\0');
}

static void test_what_does_not_hold_is_found_in_all_experiments_of_a_paper(void **state) {
  expect_failing((struct cv_lab_group){.source = (char[]){"P"}}, "bg");
  expect_failing((struct cv_lab_group){.source = (char[]){"Q"}}, "e");
  expect_failing((struct cv_lab_group){.is_ours = true}, "o");
  expect_failing((struct cv_lab_group){.source = (char[]){"Q"}, .is_ours = true}, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_papers_and_our_own_are_counted_apart),
      cmocka_unit_test(test_each_source_is_counted_once),
      cmocka_unit_test(test_what_does_not_hold_is_found_in_all_experiments_of_a_paper),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
