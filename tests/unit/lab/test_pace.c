/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line while pieces of work are done, and on what it is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lab/run/pace.h"
#include "lab/run/pool.h"
#include "tests/support/near.h"

static void test_nothing_is_predicted_before_the_first_piece(void **state) {
  struct cv_lab_pace pace;
  char line[120];
  cv_lab_pace_init(&pace, 5, 100);
  assert_true(isnan(cv_lab_pace_left(&pace)));
  cv_lab_pace_print(&pace, 103, line, sizeof(line));
  assert_string_equal(line, "0 of 5, 3 s");
}

static void test_an_even_pace_is_predicted_exactly(void **state) {
  struct cv_lab_pace pace;
  char line[120];
  cv_lab_pace_init(&pace, 7300, 50);
  for (int i = 1; i <= 50; i++) {
    cv_lab_pace_step(&pace, 50 + .5 * i);
    assert_near(cv_lab_pace_rate(&pace), 2, 1e-9);
    assert_near(cv_lab_pace_left(&pace), .5 * (7300 - i), 1e-6);
  }
  cv_lab_pace_print(&pace, 75, line, sizeof(line));
  assert_string_equal(line, "50 of 7300, 2 a second, 25 s, about 1 h 0 min left");
  for (int i = 51; i <= 7300; i++) {
    cv_lab_pace_step(&pace, 50 + .5 * i);
  }
  cv_lab_pace_print(&pace, 3700, line, sizeof(line));
  assert_string_equal(line, "7300 of 7300, 2 a second, 1 h 0 min");
}

/* Later settings may take longer than the first ones: an early pace says nothing about the rest. */
static void test_the_estimate_follows_a_change_of_pace(void **state) {
  struct cv_lab_pace pace;
  double now = 0;
  cv_lab_pace_init(&pace, 10000, now);
  for (int i = 0; i < 1000; i++) {
    cv_lab_pace_step(&pace, now += .01);
  }
  for (int i = 0; i < 300; i++) {
    cv_lab_pace_step(&pace, now += 1);
  }
  assert_near(cv_lab_pace_rate(&pace), 1, .15);
}

static void test_pieces_all_at_once_are_no_infinite_rate(void **state) {
  struct cv_lab_pace pace;
  char line[120];
  cv_lab_pace_init(&pace, 3, 1);
  cv_lab_pace_step(&pace, 1);
  cv_lab_pace_step(&pace, 1);
  cv_lab_pace_print(&pace, 1, line, sizeof(line));
  assert_string_equal(line, "2 of 3, 0 s");
  cv_lab_pace_step(&pace, 0); /* a clock that goes back reduces nothing */
  cv_lab_pace_print(&pace, 1, line, sizeof(line));
  assert_string_equal(line, "3 of 3, 0 s");
}

/* ---- the pool ---- */

struct tally {
  pthread_mutex_t lock;
  unsigned times[100], all;
};

static enum cv_err count(void *data, size_t at) {
  struct tally *tally = data;
  (void)pthread_mutex_lock(&tally->lock);
  tally->times[at]++;
  tally->all++;
  enum cv_err err = at == 60 ? CV_ERR_LIMIT : CV_OK;
  (void)pthread_mutex_unlock(&tally->lock);
  return err;
}

static void test_each_piece_is_done_once_and_a_file_hears_of_the_end(void **state) {
  struct tally tally = {.lock = PTHREAD_MUTEX_INITIALIZER};
  char *text = NULL;
  size_t n = 0;
  FILE *file = tmpfile();
  assert_non_null(file);
  assert_int_equal(cv_lab_pool(60, 4, file, count, &tally), CV_OK);
  for (size_t i = 0; i < 60; i++) {
    assert_int_equal(tally.times[i], 1);
  }
  rewind(file);
  assert_true(getline(&text, &n, file) > 0);
  assert_int_equal(strncmp(text, "60 of 60, ", 10), 0);
  assert_null(strchr(text, '\r'));
  assert_true(getline(&text, &n, file) < 0); /* and no other line within ten seconds */
  free(text);
  (void)fclose(file);
}

static void test_after_an_error_no_piece_is_begun(void **state) {
  struct tally tally = {.lock = PTHREAD_MUTEX_INITIALIZER};
  assert_int_equal(cv_lab_pool(100, 1, NULL, count, &tally), CV_ERR_LIMIT);
  assert_int_equal(tally.all, 61);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_is_predicted_before_the_first_piece),
      cmocka_unit_test(test_an_even_pace_is_predicted_exactly),
      cmocka_unit_test(test_the_estimate_follows_a_change_of_pace),
      cmocka_unit_test(test_pieces_all_at_once_are_no_infinite_rate),
      cmocka_unit_test(test_each_piece_is_done_once_and_a_file_hears_of_the_end),
      cmocka_unit_test(test_after_an_error_no_piece_is_begun),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
