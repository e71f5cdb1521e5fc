/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line of a running campaign. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/text.h"
#include "common/base/width.h"
#include "deploy/launcher/progress.h"
#include "tests/support/near.h"

static const struct cv_progress running = {.tokens = 1245678,
                                           .tokens_limit = 5000000,
                                           .elapsed_ms = 12449,
                                           .arms = 20,
                                           .decided = 14,
                                           .classes = 2,
                                           .workers = 2,
                                           .thirdparty_connected = true};

static void test_counts(void **state) {
  assert_string_equal(cv_count_text(0).text, "0");
  assert_string_equal(cv_count_text(999).text, "999");
  assert_string_equal(cv_count_text(1000).text, "1,000");
  assert_string_equal(cv_count_text(1234567).text, "1,234,567");
  assert_string_equal(cv_count_text(UINT64_MAX).text, "18,446,744,073,709,551,615");
}

static void test_columns(void **state) {
  assert_int_equal(cv_width_of(""), 0);
  assert_int_equal(cv_width_of("Grünkern"), 8);
  assert_int_equal(cv_width_of("1.0 ± 0.1"), 9);
}

static void test_rate(void **state) {
  struct cv_progress progress = {.tokens = 500, .elapsed_ms = 250};
  assert_near(cv_view_rate(&progress), 2000, 1e-9);
  progress.elapsed_ms = 0;
  assert_near(cv_view_rate(&progress), 0, 0);
}

static void test_line(void **state) {
  char line[200];
  cv_view_line(&running, line, sizeof(line));
  assert_string_equal(line, "14 of 20 ranked, class 2   1,245,678 of 5,000,000 tokens   100,062/s   12.4 s");
}

static void test_line_of_what_ranks_nothing(void **state) {
  struct cv_progress progress = running;
  char line[200];
  progress.decided = progress.classes = 0;
  progress.plans = 1234;
  cv_view_line(&progress, line, sizeof(line));
  assert_string_equal(line, "plan 1,234   1,245,678 of 5,000,000 tokens   100,062/s   12.4 s");
}

/* What it waits for stands in place of the pace; the third-party first, since without it no worker is asked. */
static void test_line_says_what_is_missing(void **state) {
  struct cv_progress progress = running;
  char line[200];
  progress.workers = 0;
  cv_view_line(&progress, line, sizeof(line));
  assert_non_null(strstr(line, "no workers yet"));
  progress.waits_for_cobroker = true;
  cv_view_line(&progress, line, sizeof(line));
  assert_non_null(strstr(line, "waits for co-broker"));
  progress.thirdparty_connected = false;
  cv_view_line(&progress, line, sizeof(line));
  assert_non_null(strstr(line, "no third-party yet"));
  assert_null(strstr(line, "no workers yet"));
}

/* It never wraps on a terminal of 80 columns, and never leaves its buffer. */
static void test_line_is_bounded(void **state) {
  struct cv_progress progress = running;
  char line[200], small[8];
  progress.tokens = progress.tokens_limit = UINT64_MAX;
  progress.elapsed_ms = 1;
  cv_view_line(&progress, line, sizeof(line));
  assert_int_equal(strlen(line), 79);
  cv_view_line(&progress, small, sizeof(small));
  assert_string_equal(small, "14 of 2");
}

/* ---- shown ---- */

struct screen {
  char *text;
  size_t n;
  FILE *to;
  struct cv_view view;
};

static void screen_open(struct screen *screen, bool is_terminal) {
  screen->to = open_memstream(&screen->text, &screen->n);
  assert_non_null(screen->to);
  screen->view = (struct cv_view){.to = screen->to, .is_terminal = is_terminal};
}

static size_t count_of(const struct screen *screen, const char *what) {
  size_t count = 0;
  for (const char *at = screen->text; (at = strstr(at, what)) != NULL; at++) {
    count++;
  }
  return count;
}

static void show_for(struct screen *screen, uint64_t ms) {
  for (uint64_t now = 1000; now < 1000 + ms; now += 50) {
    cv_view_show(&screen->view, &running, now);
  }
}

static void test_terminal_rewrites_its_table(void **state) {
  struct screen screen;
  screen_open(&screen, true);
  show_for(&screen, 1000);
  assert_int_equal(count_of(&screen, "14 of 20 ranked"), 5);
  assert_int_equal(count_of(&screen, "\n"), 3 * 5);
  assert_int_equal(count_of(&screen, "\r\033[3A"), 4); /* back to its first line, each time but the first */
  cv_view_end(&screen.view);
  assert_string_equal(screen.text + screen.n - 8, "\r\033[3A\033[J");
  size_t n = screen.n;
  cv_view_end(&screen.view);
  (void)fflush(screen.to);
  assert_int_equal(screen.n, n);
  cv_view_fini(&screen.view);
  (void)fclose(screen.to);
  free(screen.text);
}

/* Standings of another number of arms than the campaign's are not drawn. */
static void test_standings_become_rows(void **state) {
  struct cv_standing standing[20] = {{.rank_class = 1, .tokens = 5, .mean = 0.5, .radius = 0.1}};
  struct screen screen;
  for (uint32_t i = 0; i < 20; i++) {
    standing[i].arm = i == 1 ? 99 : i; /* one that the campaign does not have */
  }
  screen_open(&screen, true);
  assert_int_equal(cv_view_stand(&screen.view, standing, 19), CV_OK);
  cv_view_show(&screen.view, &running, 1000);
  assert_int_equal(count_of(&screen, "item"), 0);
  assert_int_equal(cv_view_stand(&screen.view, standing, 20), CV_OK);
  cv_view_show(&screen.view, &running, 2000);
  assert_int_equal(count_of(&screen, "item 1 "), 1); /* no window's size is known, so 24 lines: room for 20 rows */
  cv_view_fini(&screen.view);
  (void)fclose(screen.to);
  free(screen.text);
}

static void test_log_gets_a_line_now_and_then(void **state) {
  struct screen screen;
  screen_open(&screen, false);
  show_for(&screen, 6000);
  cv_view_end(&screen.view);
  assert_int_equal(count_of(&screen, "ranked"), 3);
  assert_int_equal(count_of(&screen, "\n"), 3);
  assert_int_equal(count_of(&screen, "\r"), 0);
  assert_int_equal(count_of(&screen, "\033"), 0);
  (void)fclose(screen.to);
  free(screen.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts),
      cmocka_unit_test(test_columns),
      cmocka_unit_test(test_rate),
      cmocka_unit_test(test_line),
      cmocka_unit_test(test_line_of_what_ranks_nothing),
      cmocka_unit_test(test_line_says_what_is_missing),
      cmocka_unit_test(test_line_is_bounded),
      cmocka_unit_test(test_terminal_rewrites_its_table),
      cmocka_unit_test(test_standings_become_rows),
      cmocka_unit_test(test_log_gets_a_line_now_and_then),
  };
  return cmocka_run_group_tests_name("launcher_progress", tests, NULL, NULL);
}
