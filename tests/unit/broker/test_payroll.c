/* SPDX-License-Identifier: Apache-2.0 */
/* Payments of a recruitment: workers, payments, and the rows that may be loaded. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "broker/payroll.h"

static uint64_t cost[] = {2000000, 5000000, 3000000}, worker[] = {40, 7, 19};
static const struct cv_spec spec = {.arms = 3, .cost_micro = cost, .worker = worker, .budget_micro = 20000000};

static void test_workers_are_found_by_their_number(void **state) {
  struct cv_payroll payroll;
  assert_int_equal(cv_payroll_init(&payroll, &spec), CV_OK);
  assert_true(cv_payroll_is_kept(&payroll));
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(cv_payroll_find(&payroll, worker[i])->arm, i);
  }
  assert_null(cv_payroll_find(&payroll, 8));
  assert_null(cv_payroll_find(&payroll, 0));
  cv_payroll_fini(&payroll);
}

static void test_without_hires_there_are_no_payments(void **state) {
  const struct cv_spec ranking = {.arms = 3};
  struct cv_payroll payroll;
  assert_int_equal(cv_payroll_init(&payroll, &ranking), CV_OK);
  assert_false(cv_payroll_is_kept(&payroll));
  cv_payroll_fini(&payroll);
}

static void test_a_plan_has_its_price_however_large(void **state) {
  struct cv_want want[] = {{.arm = 0, .tokens = 3}, {.arm = 1, .tokens = 2}};
  struct cv_plan plan = {.wants = 2, .want = want};
  assert_int_equal(cv_payroll_price(&spec, &plan), 16000000);
  uint64_t dear[] = {CV_COST_MAX_MICRO, CV_COST_MAX_MICRO};
  const struct cv_spec large = {.arms = 2, .cost_micro = dear};
  want[0].tokens = want[1].tokens = UINT32_MAX; /* no wrap-around to a small number */
  assert_int_equal(cv_payroll_price(&large, &plan), UINT64_MAX);
}

static void test_payments_are_stored_and_read_once(void **state) {
  struct cv_payroll payroll, again;
  struct cv_buf bytes = {0};
  assert_int_equal(cv_payroll_init(&payroll, &spec), CV_OK);
  assert_int_equal(cv_payroll_init(&again, &spec), CV_OK);
  cv_payroll_pay(&payroll, &spec, 0, 4);
  cv_payroll_pay(&payroll, &spec, 2, 1);
  assert_int_equal(payroll.paid_micro, 11000000);
  cv_payroll_put(&payroll, &bytes);
  for (int i = 0; i < 2; i++) { /* the second row replaces the first */
    struct cv_reader in = cv_reader_over(bytes.data, bytes.len);
    assert_int_equal(cv_payroll_read(&again, &spec, &in), CV_OK);
    assert_true(cv_reader_done(&in));
    assert_int_equal(again.paid_micro, 11000000);
    assert_int_equal(again.tokens[0], 4);
    assert_int_equal(again.tokens[1], 0);
  }
  struct cv_reader cut = cv_reader_over(bytes.data, bytes.len - 1);
  assert_int_equal(cv_payroll_read(&again, &spec, &cut), CV_ERR_DAMAGED);
  cv_buf_fini(&bytes);
  cv_payroll_fini(&payroll);
  cv_payroll_fini(&again);
}

static void test_a_row_that_says_more_than_the_budget_is_damaged(void **state) {
  static const uint64_t rows[][3] = {{11, 0, 0}, {0, 0, 7}, {5, 2, 1}, {UINT64_MAX, 0, 0}, {0, UINT64_MAX / 2, 0}};
  for (size_t i = 0; i < CV_COUNT(rows); i++) {
    struct cv_payroll payroll;
    struct cv_buf bytes = {0};
    assert_int_equal(cv_payroll_init(&payroll, &spec), CV_OK);
    for (int arm = 0; arm < 3; arm++) {
      cv_buf_put_u64(&bytes, rows[i][arm]);
    }
    struct cv_reader in = cv_reader_over(bytes.data, bytes.len);
    assert_int_equal(cv_payroll_read(&payroll, &spec, &in), CV_ERR_DAMAGED);
    cv_buf_fini(&bytes);
    cv_payroll_fini(&payroll);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_are_found_by_their_number),
      cmocka_unit_test(test_without_hires_there_are_no_payments),
      cmocka_unit_test(test_a_plan_has_its_price_however_large),
      cmocka_unit_test(test_payments_are_stored_and_read_once),
      cmocka_unit_test(test_a_row_that_says_more_than_the_budget_is_damaged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
