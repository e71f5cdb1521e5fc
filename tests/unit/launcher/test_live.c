/* SPDX-License-Identifier: Apache-2.0 */
/* The live table: what it says, and that it fits every terminal. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/text.h"
#include "common/base/width.h"
#include "deploy/launcher/live.h"

enum { ARMS = 5, LINES_MAX = 300, LINE_BYTES = 2048 };

static const char *const names[ARMS] = {"Roma", "Zum Goldenen Löwen am Markt", "Golden Wok", "Bistro",
                                        "Station Buffet"};

static const struct cv_standing standings[ARMS] = {
    {.arm = 0, .rank_class = 1, .tokens = 192000, .mean = 0.638, .radius = 0.011},
    {.arm = 1, .rank_class = 2, .tokens = 342000, .mean = 0.602, .radius = 0.020},
    {.arm = 2, .tokens = 246000, .mean = 0.582, .radius = 0.025},
    {.arm = 3, .tokens = 3000, .mean = 0.427, .radius = 0.102},
    {.arm = 4, .tokens = 3000, .mean = 0.441, .radius = 0.102},
};

static const struct cv_progress running = {.name = "restaurants",
                                           .tokens = 790096,
                                           .tokens_limit = 4000000,
                                           .plans = 115,
                                           .elapsed_ms = 1849,
                                           .arms = ARMS,
                                           .decided = 2,
                                           .classes = 2,
                                           .epsilon_spent_micro = 50000,
                                           .workers = 2,
                                           .thirdparty_connected = true};

/* The lines as drawn, and as a person sees them: without escape sequences. */
struct drawn {
  unsigned lines;
  char line[LINES_MAX][LINE_BYTES];
  bool has_escape;
};

static void take_line(const char *at, size_t n, char *to) {
  size_t out = 0;
  for (size_t i = 0; i < n; i++) {
    if (at[i] == '\033') {
      while (i < n && at[i] != 'm') {
        i++;
      }
    } else {
      to[out++] = at[i];
    }
  }
  to[out] = '\0';
}

static void draw(const struct cv_live *live, const struct cv_live_screen *screen, struct drawn *ret) {
  struct cv_buf out = {0};
  unsigned lines = cv_live_draw(live, screen, &out);
  assert_true(cv_buf_ok(&out));
  const char *at = (const char *)out.data, *end = at + out.len;
  ret->has_escape = memchr(out.data, '\033', out.len) != NULL;
  ret->lines = 0;
  while (at < end) {
    const char *next = memchr(at, '\n', (size_t)(end - at));
    assert_non_null(next);
    assert_true(ret->lines < LINES_MAX && next - at < LINE_BYTES);
    take_line(at, (size_t)(next - at), ret->line[ret->lines++]);
    at = next + 1;
  }
  assert_int_equal(ret->lines, lines);
  cv_buf_fini(&out);
}

static struct cv_live make(uint32_t *order) {
  cv_live_order(CV_POLICY_RANKING, standings, ARMS, order);
  return (struct cv_live){.kind = CV_POLICY_RANKING,
                          .epsilon_micro = 50000,
                          .name = names,
                          .standing = standings,
                          .order = order,
                          .progress = running};
}

static const struct cv_live_screen wide = {.columns = 100, .lines = 24, .has_colour = true, .has_utf8 = true};
static const struct cv_live_screen plain = {.columns = 80, .lines = 24};

static struct drawn drawn; /* too large for the stack */

static void test_a_row_says_class_name_interval_mean_and_tokens(void **state) {
  uint32_t order[ARMS];
  struct cv_live live = make(order);
  draw(&live, &wide, &drawn);
  assert_int_equal(drawn.lines, 4 + ARMS);
  assert_true(drawn.has_escape);
  assert_string_equal(drawn.line[0], "restaurants   2 of 5 ranked, class 2   1.8 s");
  assert_true(strncmp(drawn.line[1], "class item", 10) == 0);
  assert_non_null(strstr(drawn.line[1], "0.3 "));
  assert_non_null(strstr(drawn.line[1], " 0.7  mean"));
  assert_true(strncmp(drawn.line[2], "  1  Roma  ", 11) == 0);
  assert_non_null(strstr(drawn.line[2], "━●"));
  assert_null(strstr(drawn.line[2], "○"));
  assert_non_null(strstr(drawn.line[2], " 0.638 ±0.011 "));
  assert_string_equal(drawn.line[2] + strlen(drawn.line[2]) - 8, " 192,000");
  assert_true(strncmp(drawn.line[3], "  2  Zum Goldenen Löwen am M… ", 30) == 0);
  /* Undecided ones come last, by their means, and look different without colour. */
  assert_true(strncmp(drawn.line[4], "  -  Golden Wok", 15) == 0);
  assert_true(strncmp(drawn.line[5], "  -  Station Buffet", 19) == 0);
  assert_true(strncmp(drawn.line[6], "  -  Bistro", 11) == 0);
  assert_non_null(strstr(drawn.line[6], "─○"));
  assert_non_null(strstr(drawn.line[7], "790,096 of 4,000,000"));
  assert_non_null(strstr(drawn.line[7], "█████─"));
  assert_string_equal(drawn.line[8], "epsilon  0.05 of 0.05   rounds 115");
}

/* The mean lies inside its interval, and intervals are in the right order from left to right. */
static void test_bars_are_to_scale(void **state) {
  uint32_t order[ARMS];
  struct cv_live live = make(order);
  draw(&live, &plain, &drawn);
  const char *left = strstr(drawn.line[1], "0.3"), *right = strstr(drawn.line[1], "0.7");
  assert_non_null(left);
  assert_non_null(right);
  ptrdiff_t from = left - drawn.line[1], columns = right + 3 - left;
  for (unsigned row = 0; row < ARMS; row++) {
    const struct cv_standing *standing = &standings[order[row]];
    const char *line = drawn.line[2 + row], *mean = strpbrk(line + from, "oO");
    assert_non_null(mean);
    double at = 0.3 + (double)(mean - line - from) * 0.4 / (double)columns;
    assert_true(fabs(at - standing->mean) < 0.4 / (double)columns + 1e-9);
    double width = (double)strspn(line + from + strspn(line + from, " "), "-=oO") * 0.4 / (double)columns;
    assert_true(fabs(width - 2 * standing->radius) < 2 * 0.4 / (double)columns);
  }
}

static void test_it_fits_every_terminal(void **state) {
  uint32_t order[ARMS];
  struct cv_live live = make(order);
  for (unsigned columns = CV_LIVE_COLUMNS_MIN; columns <= 200; columns++) {
    for (unsigned lines = CV_LIVE_LINES_MIN; lines <= 12; lines++) {
      struct cv_live_screen screen = {
          .columns = columns, .lines = lines, .has_colour = (lines & 1) != 0, .has_utf8 = (lines & 2) != 0};
      live.name = (columns + lines) % 5 == 0 ? NULL : names;
      draw(&live, &screen, &drawn);
      assert_true(drawn.lines <= lines - 1);
      assert_int_equal(drawn.has_escape, screen.has_colour);
      for (unsigned i = 0; i < drawn.lines; i++) {
        assert_true(cv_text_is_clean(drawn.line[i], strlen(drawn.line[i])));
        assert_true(cv_width_of(drawn.line[i]) <= columns);
      }
    }
  }
}

static void test_40_columns_show_name_bar_and_mean(void **state) {
  uint32_t order[ARMS];
  struct cv_live live = make(order);
  draw(&live, &(struct cv_live_screen){.columns = 40, .lines = 15}, &drawn);
  assert_non_null(strstr(drawn.line[2], "Roma"));
  assert_non_null(strstr(drawn.line[2], "O="));
  assert_string_equal(drawn.line[2] + 34, " 0.638");
}

/* Without UTF-8 only ASCII is drawn, but for names, which are the requester's. */
static void test_ascii_is_enough(void **state) {
  uint32_t order[ARMS];
  struct cv_live live = make(order);
  draw(&live, &plain, &drawn);
  assert_false(drawn.has_escape);
  for (unsigned i = 0; i < drawn.lines; i++) {
    for (const char *at = drawn.line[i]; i != 3 && *at != '\0'; at++) {
      assert_true(*at > 0);
    }
  }
  assert_non_null(strstr(drawn.line[3], "am M~"));
  assert_non_null(strstr(drawn.line[2], "+-0.011"));
}

static void test_rows_without_room_are_counted(void **state) {
  uint32_t order[ARMS];
  struct cv_live live = make(order);
  struct cv_live_screen low = wide;
  low.lines = 9;
  draw(&live, &low, &drawn);
  assert_int_equal(drawn.lines, 8);
  assert_true(strncmp(drawn.line[4], "  -  Golden Wok", 15) == 0);
  assert_string_equal(drawn.line[5], "     and 2 more");
}

/* A policy that does not rank: its arms by tokens, with a bar of their share. */
static void test_pulls_are_shares(void **state) {
  uint32_t order[ARMS];
  struct cv_live live = make(order);
  cv_live_order(CV_POLICY_BANDIT, standings, ARMS, order);
  live.kind = CV_POLICY_BANDIT;
  draw(&live, &plain, &drawn);
  assert_non_null(strstr(drawn.line[1], "pulls"));
  assert_non_null(strstr(drawn.line[2], "Zum Goldenen"));
  size_t first = strcspn(drawn.line[2], "#"), second = strcspn(drawn.line[3], "#");
  size_t most = strspn(drawn.line[2] + first, "#"), next = strspn(drawn.line[3] + second, "#");
  assert_true(fabs((double)next / (double)most - 246.0 / 342) < 0.05);
  assert_null(strstr(drawn.line[0], "ranked"));
}

static void test_money_is_shown_in_a_recruitment(void **state) {
  uint32_t order[ARMS];
  struct cv_live live = make(order);
  live.kind = CV_POLICY_RECRUITMENT;
  live.progress.budget_micro = 300000000;
  live.progress.paid_micro = 149500000;
  draw(&live, &plain, &drawn);
  assert_true(strncmp(drawn.line[2 + ARMS], "paid     ", 9) == 0);
  assert_non_null(strstr(drawn.line[2 + ARMS], "149.5 of 300   790,096 tokens"));
}

/* Before the first plan has standings, and with arms that were never asked for. */
static void test_what_is_unknown_is_blank(void **state) {
  uint32_t order[ARMS];
  struct cv_live live = make(order);
  live.standing = NULL;
  live.order = NULL;
  draw(&live, &wide, &drawn);
  assert_int_equal(drawn.lines, 3);
  struct cv_standing none[ARMS] = {
      {.arm = 0}, {.arm = 1, .tokens = 4, .mean = (double)NAN}, {.arm = 2, .tokens = 4, .radius = (double)INFINITY}};
  live = make(order);
  live.standing = none;
  draw(&live, &plain, &drawn);
  assert_int_equal(drawn.lines, 4 + ARMS);
  assert_null(strpbrk(drawn.line[2], "=O"));
  assert_null(strstr(drawn.line[3], "nan"));
  assert_null(strstr(drawn.line[4], "inf"));
  assert_null(strstr(drawn.line[1], "nan"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_row_says_class_name_interval_mean_and_tokens),
      cmocka_unit_test(test_bars_are_to_scale),
      cmocka_unit_test(test_it_fits_every_terminal),
      cmocka_unit_test(test_40_columns_show_name_bar_and_mean),
      cmocka_unit_test(test_ascii_is_enough),
      cmocka_unit_test(test_rows_without_room_are_counted),
      cmocka_unit_test(test_pulls_are_shares),
      cmocka_unit_test(test_money_is_shown_in_a_recruitment),
      cmocka_unit_test(test_what_is_unknown_is_blank),
  };
  return cmocka_run_group_tests_name("launcher_live", tests, NULL, NULL);
}
