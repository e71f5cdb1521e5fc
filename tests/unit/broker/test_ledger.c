/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: charges that fit, charges that do not, and the rows that may be loaded. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <string.h>

#include "broker/both/ledger.h"

enum { ARMS = 3, LIMIT = 1000 };

static void test_an_arm_spends_up_to_its_limit_and_no_further(void **state) {
  struct cv_ledger ledger;
  struct cv_why why;
  assert_int_equal(cv_ledger_init(&ledger, ARMS, LIMIT), CV_OK);
  assert_int_equal(cv_ledger_charge(&ledger, 1, 600, &why), CV_OK);
  assert_int_equal(cv_ledger_left(&ledger, 1), 400);
  assert_int_equal(cv_ledger_charge(&ledger, 1, 401, &why), CV_ERR_DENIED);
  assert_string_equal(why.text,
                      "arm 2 has spent 600 micro-epsilon of 1000; its next release asks for 401, 400 are left");
  assert_int_equal(cv_ledger_charge(&ledger, 1, UINT64_MAX, NULL), CV_ERR_DENIED);
  assert_int_equal(ledger.arm[1].spent_micro, 600);
  assert_int_equal(cv_ledger_charge(&ledger, 1, 400, &why), CV_OK);
  assert_int_equal(cv_ledger_charge(&ledger, 1, 0, &why), CV_OK);
  assert_int_equal(cv_ledger_charge(&ledger, 1, 1, &why), CV_ERR_DENIED);
  assert_int_equal(cv_ledger_left(&ledger, 0), LIMIT); /* each arm has its own */
  assert_int_equal(cv_ledger_most(&ledger), LIMIT);
  assert_int_equal(ledger.changed, 1);
  cv_ledger_fini(&ledger);
}

static void test_a_write_off_charges_what_is_left_and_says_so(void **state) {
  struct cv_ledger ledger;
  assert_int_equal(cv_ledger_init(&ledger, ARMS, LIMIT), CV_OK);
  assert_int_equal(cv_ledger_charge(&ledger, 2, 250, NULL), CV_OK);
  cv_ledger_write_off(&ledger);
  cv_ledger_write_off(&ledger); /* the second time has no effect */
  for (uint32_t i = 0; i < ARMS; i++) {
    assert_int_equal(ledger.arm[i].spent_micro, LIMIT);
    assert_int_equal(ledger.arm[i].lost_micro, i == 2 ? LIMIT - 250 : LIMIT);
    assert_int_equal(cv_ledger_charge(&ledger, i, 1, NULL), CV_ERR_DENIED);
  }
  cv_ledger_fini(&ledger);
}

static enum cv_err read_row(uint32_t arm, uint64_t spent, uint64_t lost, size_t cut, struct cv_ledger *ledger) {
  struct cv_buf row = {0};
  cv_buf_put_u32(&row, arm);
  cv_buf_put_u64(&row, spent);
  cv_buf_put_u64(&row, lost);
  struct cv_reader in = cv_reader_over(row.data, row.len - cut);
  enum cv_err err = cv_ledger_read(ledger, &in);
  cv_buf_fini(&row);
  return err;
}

static void test_a_stored_account_comes_back_and_a_false_one_does_not(void **state) {
  struct cv_ledger ledger, back;
  struct cv_buf row = {0};
  assert_int_equal(cv_ledger_init(&ledger, ARMS, LIMIT), CV_OK);
  assert_int_equal(cv_ledger_init(&back, ARMS, LIMIT), CV_OK);
  assert_int_equal(cv_ledger_charge(&ledger, 2, 250, NULL), CV_OK);
  cv_ledger_write_off(&ledger);
  cv_ledger_put(&ledger, 2, &row);
  struct cv_reader in = cv_reader_over(row.data, row.len);
  assert_int_equal(cv_ledger_read(&back, &in), CV_OK);
  assert_int_equal(back.arm[2].spent_micro, LIMIT);
  assert_int_equal(back.arm[2].lost_micro, LIMIT - 250);
  assert_int_equal(back.changed, 0);
  cv_buf_fini(&row);
  assert_int_equal(read_row(ARMS, 1, 0, 0, &back), CV_ERR_DAMAGED);
  assert_int_equal(read_row(0, LIMIT + 1, 0, 0, &back), CV_ERR_DAMAGED);
  assert_int_equal(read_row(0, 5, 6, 0, &back), CV_ERR_DAMAGED);
  assert_int_equal(read_row(0, 5, 5, 1, &back), CV_ERR_DAMAGED);
  assert_int_equal(back.arm[0].spent_micro, 0);
  assert_int_equal(read_row(0, 5, 5, 0, &back), CV_OK);
  cv_ledger_fini(&ledger);
  cv_ledger_fini(&back);
}

static void charge(struct cv_accounts *accounts, uint64_t worker, uint64_t micro) {
  struct cv_chunk *chunk;
  assert_int_equal(cv_chunks_touch(&accounts->cells, worker / CV_CHUNK_CELLS, &chunk), CV_OK);
  cv_accounts_pay(accounts, chunk, worker, micro);
}

static void test_a_worker_pays_for_itself_and_its_share_of_the_floor(void **state) {
  struct cv_accounts accounts = {0};
  cv_chunks_init(&accounts.cells, 2);
  charge(&accounts, 5, 300);
  charge(&accounts, 5, 300);
  assert_int_equal(cv_accounts_spent(&accounts, 5), 600);
  assert_int_equal(cv_accounts_spent(&accounts, 6), 0);
  cv_accounts_raise(&accounts, 1000);
  assert_int_equal(cv_accounts_spent(&accounts, 5), 1600);
  assert_int_equal(cv_accounts_spent(&accounts, UINT64_C(1) << 47), 1000); /* for every worker */
  cv_accounts_raise(&accounts, UINT64_MAX);
  assert_int_equal(cv_accounts_spent(&accounts, 6), UINT64_MAX);
  charge(&accounts, 7, UINT64_MAX);
  accounts.floor_micro = 0;
  assert_true(cv_accounts_spent(&accounts, 7) == UINT64_MAX);
  charge(&accounts, 7, 1); /* it stays at its maximum */
  assert_true(cv_accounts_spent(&accounts, 7) == UINT64_MAX);
  cv_chunks_fini(&accounts.cells);
}

static void test_exhausted_workers_are_counted_once(void **state) {
  struct cv_accounts accounts = {0};
  cv_chunks_init(&accounts.cells, 2);
  cv_accounts_count(&accounts, 600);
  charge(&accounts, 5, 599);
  charge(&accounts, 6, 600);
  assert_int_equal(accounts.exhausted, 1);
  charge(&accounts, 5, 1);
  charge(&accounts, 5, 1);
  charge(&accounts, 7, UINT64_MAX); /* an unlimited account */
  assert_int_equal(accounts.exhausted, 3);
  /* After a start with another limit; the floor charges known workers only, as others do not exist for sure. */
  cv_accounts_count(&accounts, 601);
  assert_int_equal(accounts.exhausted, 2);
  cv_accounts_raise(&accounts, 601);
  cv_accounts_count(&accounts, 601);
  assert_int_equal(accounts.exhausted, 3);
  cv_chunks_fini(&accounts.cells);
}

static void test_what_a_campaign_can_cost_a_worker(void **state) {
  struct cv_spec spec = {.epsilon_micro = 250000, .tokens_per_worker = 4};
  assert_int_equal(cv_spec_worker_micro(&spec, spec.epsilon_micro), 1000000);
  uint64_t cost[] = {300, 100};
  spec = (struct cv_spec){.arms = 2, .epsilon_micro = 10, .tokens_per_worker = 4, .cost_micro = cost};
  spec.budget_micro = 1099; /* buys ten tokens of the cheaper worker */
  assert_int_equal(cv_spec_worker_micro(&spec, spec.epsilon_micro), 100);
  spec = (struct cv_spec){.epsilon_micro = UINT64_MAX, .tokens_per_worker = 2};
  assert_int_equal(cv_spec_worker_micro(&spec, spec.epsilon_micro), UINT64_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_arm_spends_up_to_its_limit_and_no_further),
      cmocka_unit_test(test_a_write_off_charges_what_is_left_and_says_so),
      cmocka_unit_test(test_a_stored_account_comes_back_and_a_false_one_does_not),
      cmocka_unit_test(test_a_worker_pays_for_itself_and_its_share_of_the_floor),
      cmocka_unit_test(test_exhausted_workers_are_counted_once),
      cmocka_unit_test(test_what_a_campaign_can_cost_a_worker),
  };
  return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
