/* SPDX-License-Identifier: Apache-2.0 */
/* A recruitment's ledger as text. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <string.h>

#include "deploy/launcher/statement.h"

static struct cv_account account[] = {{.worker = 11, .hires = 4, .paid_micro = 4000000},
                                      {.worker = 12, .hires = 1, .paid_micro = 2500000}};

static void print_into(enum cv_end end, uint64_t budget_micro, char *text, size_t size) {
  const struct cv_statement statement = {.campaign = 3,
                                         .name = "pool",
                                         .end = end,
                                         .mechanism = "hybrid",
                                         .privatizer = "none",
                                         .guarantee = "epsilon-differential privacy",
                                         .epsilon_micro = 500000,
                                         .tokens_per_worker = 9,
                                         .budget_micro = budget_micro,
                                         .arms = 2,
                                         .account = account};
  FILE *to = fmemopen(text, size, "w");
  assert_non_null(to);
  cv_launcher_statement_print(&statement, NULL, to);
  (void)fclose(to);
}

static void what_was_paid_adds_up(void **state) {
  char text[4000];
  print_into(CV_END_BUDGET, 7000000, text, sizeof(text));
  assert_non_null(strstr(text, "      11             4      4.000000\n"));
  assert_non_null(strstr(text, "      12             1      2.500000\n"));
  assert_non_null(strstr(text, "\npaid 6.500000 of the budget of 7.000000\n"));
  assert_null(strstr(text, "forgotten"));
}

static void a_recovered_broker_says_what_it_cannot_know(void **state) {
  char text[4000];
  print_into(CV_END_RECOVERED, 7000000, text, sizeof(text));
  assert_non_null(strstr(text, "\nat most 0.500000 more was earned by tokens that the broker has forgotten\n"));
  print_into(CV_END_RECOVERED, 6500000, text, sizeof(text));
  assert_null(strstr(text, "forgotten"));
}

static void without_payments_the_statement_mentions_none(void **state) {
  char text[4000];
  print_into(CV_END_RECOVERED, 0, text, sizeof(text));
  assert_null(strstr(text, "paid"));
  assert_null(strstr(text, "earned"));
}

static void delta_is_said_beside_epsilon(void **state) {
  char text[4000];
  const struct cv_statement statement = {.campaign = 3, .delta_pico = 50000000000};
  FILE *to = fmemopen(text, sizeof(text), "w");
  assert_non_null(to);
  cv_launcher_statement_print(&statement, NULL, to);
  (void)fclose(to);
  assert_non_null(strstr(text, " and delta 0.05.\n"));
  print_into(CV_END_RECOVERED, 0, text, sizeof(text));
  assert_null(strstr(text, "delta"));
}

static void exact_sums_protect_no_worker_and_all_forms_say_so(void **state) {
  char text[4000];
  struct cv_statement statement = {.campaign = 3,
                                   .name = "pool",
                                   .mechanism = "none",
                                   .privatizer = "none",
                                   .guarantee = "none",
                                   .is_exact = true,
                                   .tokens_per_worker = 2,
                                   .worker_epsilon_micro = UINT32_MAX,
                                   .arms = 2,
                                   .account = account};
  for (int form = 0; form < 4; form++) {
    FILE *to = fmemopen(text, sizeof(text), "w");
    assert_non_null(to);
    if (form == 2) {
      cv_launcher_statement_write_csv(&statement, to);
    } else if (form == 3) {
      assert_int_equal(cv_launcher_statement_write_json(&statement, NULL, to), CV_OK);
    } else {
      statement.campaign = form == 0 ? 0 : 3; /* a plan, or a campaign */
      cv_launcher_statement_print(&statement, NULL, to);
    }
    (void)fclose(to);
    assert_non_null(strcasestr(text, "unprotected"));
    assert_null(strstr(text, "4294967295"));
    assert_null(strstr(text, "4294.97"));
  }
  assert_non_null(strstr(text, "\"worker_micro\":null"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_was_paid_adds_up),
      cmocka_unit_test(a_recovered_broker_says_what_it_cannot_know),
      cmocka_unit_test(delta_is_said_beside_epsilon),
      cmocka_unit_test(exact_sums_protect_no_worker_and_all_forms_say_so),
      cmocka_unit_test(without_payments_the_statement_mentions_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
