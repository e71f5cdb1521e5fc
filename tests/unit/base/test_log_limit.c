/* SPDX-License-Identifier: Apache-2.0 */
/* The log stays short whatever peers do, and every suppressed line is counted. */
#include "common/base/log_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int setup(void **state) {
  *state = calloc(1, sizeof(struct cv_log_limit));
  return *state == NULL;
}

static int teardown(void **state) {
  free(*state);
  return 0;
}

static unsigned long long number_in(const char *line) {
  const char *open = strrchr(line, '(');
  assert_non_null(open);
  return strtoull(open + 1, NULL, 10);
}

static void ten_thousand_times_is_one_line_and_a_summary(void **state) {
  struct cv_log_limit *limit = *state;
  struct cv_log_limit_sum sum;
  unsigned lines = 0;
  for (uint64_t i = 0; i < 10000; i++) {
    lines +=
        cv_log_limit_allows(limit, "gateway/1-9", "refused a token: the ticket is not one of this broker's", 1000 + i);
  }
  assert_int_equal(lines, 1);
  assert_false(cv_log_limit_next(limit, 1000 + CV_LOG_LIMIT_MS - 1, false, &sum));
  assert_true(cv_log_limit_next(limit, 1000 + CV_LOG_LIMIT_MS, false, &sum));
  assert_string_equal(sum.peer, "gateway/1-9");
  assert_string_equal(sum.text, "refused a token: the ticket is not one of this broker's (9999 more in 60 s)");
  assert_false(cv_log_limit_next(limit, 1000 + CV_LOG_LIMIT_MS, false, &sum));
  assert_true(
      cv_log_limit_allows(limit, "gateway/1-9", "refused a token: the ticket is not one of this broker's", 70000));
}

static void what_happened_once_needs_no_summary(void **state) {
  struct cv_log_limit *limit = *state;
  struct cv_log_limit_sum sum;
  assert_true(cv_log_limit_allows(limit, "a", "x", 0));
  assert_false(cv_log_limit_next(limit, CV_LOG_LIMIT_MS, false, &sum));
  assert_true(cv_log_limit_allows(limit, "a", "x", CV_LOG_LIMIT_MS));
}

/* The same if no summary is requested in between: counting continues until one is. */
static void nothing_is_lost_when_summaries_are_late(void **state) {
  struct cv_log_limit *limit = *state;
  struct cv_log_limit_sum sum;
  assert_true(cv_log_limit_allows(limit, "a", "x", 0));
  for (uint64_t ms = 1; ms <= 500; ms++) {
    assert_false(cv_log_limit_allows(limit, "a", "x", ms * 1000));
  }
  assert_true(cv_log_limit_next(limit, 500000, false, &sum));
  assert_int_equal(number_in(sum.text), 500);
}

/* The summary of a program that ends comes at once. */
static void a_summary_may_come_early(void **state) {
  struct cv_log_limit *limit = *state;
  struct cv_log_limit_sum sum;
  assert_true(cv_log_limit_allows(limit, "a", "x", 0));
  assert_false(cv_log_limit_allows(limit, "a", "x", 1000));
  assert_true(cv_log_limit_next(limit, 3000, true, &sum));
  assert_string_equal(sum.peer, "a");
  assert_string_equal(sum.text, "x (1 more in 3 s)");
  assert_false(cv_log_limit_next(limit, 3000, true, &sum));
}

static void peers_and_reasons_are_kept_apart(void **state) {
  struct cv_log_limit *limit = *state;
  assert_true(cv_log_limit_allows(limit, "127.0.0.1", "no TLS", 0));
  assert_true(cv_log_limit_allows(limit, "127.0.0.2", "no TLS", 0));
  assert_true(cv_log_limit_allows(limit, "127.0.0.1", "certificate expired", 0));
  assert_false(cv_log_limit_allows(limit, "127.0.0.1", "no TLS", 0));
}

static void numbers_do_not_make_a_new_reason(void **state) {
  struct cv_log_limit *limit = *state;
  assert_true(cv_log_limit_allows(limit, "a", "worker 7 is outside the range 1-6", 0));
  assert_false(cv_log_limit_allows(limit, "a", "worker 1234567 is outside the range 10-60", 0));
  assert_true(cv_log_limit_allows(limit, "a", "worker is outside the range", 0));
}

/* A peer that varies its texts still gets few lines. */
static void a_peer_has_a_share(void **state) {
  struct cv_log_limit *limit = *state;
  struct cv_log_limit_sum sum;
  unsigned lines = 0;
  for (unsigned i = 0; i < 1000; i++) {
    char text[] = {(char)('a' + i % 26), (char)('a' + i / 26 % 26), (char)('a' + i / 676), '\0'};
    lines += cv_log_limit_allows(limit, "mallory", text, 10);
  }
  assert_int_equal(lines, CV_LOG_LIMIT_REASONS);
  assert_true(cv_log_limit_allows(limit, "alice", "x", 10));
  assert_true(cv_log_limit_next(limit, 10 + CV_LOG_LIMIT_MS, false, &sum));
  assert_non_null(strstr(sum.text, "lines of other kinds"));
  assert_int_equal(number_in(sum.text), 1000 - CV_LOG_LIMIT_REASONS);
  assert_false(cv_log_limit_next(limit, 10 + CV_LOG_LIMIT_MS, false, &sum));
}

/* Any number of peers: once the table is full, all others share one line. */
static void all_peers_have_a_bound(void **state) {
  struct cv_log_limit *limit = *state;
  struct cv_log_limit_sum sum;
  char peer[32];
  unsigned lines = 0;
  unsigned long long more = 0;
  for (unsigned i = 0; i < 100000; i++) {
    (void)snprintf(peer, sizeof(peer), "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
    lines += cv_log_limit_allows(limit, peer, "no TLS", 5);
  }
  assert_int_equal(lines, CV_LOG_LIMIT_ENTRIES + 1);
  while (cv_log_limit_next(limit, 5 + CV_LOG_LIMIT_MS, false, &sum)) {
    more += number_in(sum.text);
  }
  assert_int_equal(lines + more, 100000);
  assert_true(cv_log_limit_allows(limit, "10.0.0.1", "no TLS", 5 + CV_LOG_LIMIT_MS));
}

static void long_texts_are_cut(void **state) {
  struct cv_log_limit *limit = *state;
  struct cv_log_limit_sum sum;
  char text[1000];
  memset(text, 'x', sizeof(text));
  text[sizeof(text) - 1] = '\0';
  assert_true(cv_log_limit_allows(limit, text, text, 0));
  assert_false(cv_log_limit_allows(limit, text, text, 0));
  assert_true(cv_log_limit_next(limit, CV_LOG_LIMIT_MS, false, &sum));
  assert_int_equal(strlen(sum.peer), CV_LOG_LIMIT_PEER_BYTES - 1);
  assert_int_equal(strspn(sum.text, "x"), CV_LOG_LIMIT_TEXT_BYTES - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(ten_thousand_times_is_one_line_and_a_summary, setup, teardown),
      cmocka_unit_test_setup_teardown(what_happened_once_needs_no_summary, setup, teardown),
      cmocka_unit_test_setup_teardown(nothing_is_lost_when_summaries_are_late, setup, teardown),
      cmocka_unit_test_setup_teardown(a_summary_may_come_early, setup, teardown),
      cmocka_unit_test_setup_teardown(peers_and_reasons_are_kept_apart, setup, teardown),
      cmocka_unit_test_setup_teardown(numbers_do_not_make_a_new_reason, setup, teardown),
      cmocka_unit_test_setup_teardown(a_peer_has_a_share, setup, teardown),
      cmocka_unit_test_setup_teardown(all_peers_have_a_bound, setup, teardown),
      cmocka_unit_test_setup_teardown(long_texts_are_cut, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
