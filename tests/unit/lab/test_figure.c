/* SPDX-License-Identifier: Apache-2.0 */
/* Figures are valid files, whatever the names in them. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/experiment/read.h"
#include "lab/report/distribution.h"
#include "lab/report/ends.h"
#include "lab/report/figure.h"
#include "tests/support/own_folder.h"

static void add(struct cv_lab_result *result, const char *series, double x, double mean, double low, double high) {
  struct cv_lab_row row = {.x = x,
                           .metric = "regret",
                           .mean = mean,
                           .se = isnan(low) ? (double)NAN : (high - low) / 2,
                           .low = low,
                           .high = high,
                           .n = isnan(low) ? 0 : 10};
  (void)snprintf(row.series, sizeof(row.series), "%s", series);
  assert_int_equal(cv_lab_result_add(result, &row), CV_OK);
}

/* The whole file with a zero byte at its end. */
static char *content(const char *name, size_t *ret_bytes) {
  FILE *file = fopen(folder_file(&folder, name), "rb");
  assert_non_null(file);
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  *ret_bytes = fread(text, 1, (1 << 20) - 1, file);
  (void)fclose(file);
  return text;
}

static void assert_has(const char *name, const char *what) {
  size_t bytes;
  char *text = content(name, &bytes);
  if (strstr(text, what) == NULL) {
    fail_msg("%s has no \"%s\":\n%s", name, what, text);
  }
  free(text);
}

static void assert_is_png(const char *name, uint32_t width) {
  size_t bytes;
  char *text = content(name, &bytes);
  assert_true(bytes > 1000);
  assert_memory_equal(text, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  uint8_t *at = (uint8_t *)text + 16;
  assert_int_equal((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3], width);
  free(text);
}

static void test_names_are_text_and_nothing_else(void **state) {
  struct cv_lab_result result = {0};
  struct cv_why why = {0};
  const struct cv_lab_figure figure = {.name = "../a b'; !true",
                                       .title = "it's `true` & <b>\\n%s $x",
                                       .x_label = "x'",
                                       .y_label = "y\n!true",
                                       .metric = "regret"};
  add(&result, "o'ne`", 1, 2, 1.5, 4);
  add(&result, "o'ne`", 2, 3, 2, 3.5);
  add(&result, "a line", 1, 1, (double)NAN, (double)NAN);
  add(&result, "a line", 2, 2, (double)NAN, (double)NAN);
  if (cv_lab_figure_draw(&figure, &result, folder.path, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_is_png("_._a_b____true.png", 1800);
  assert_is_png("_._a_b____true-small.png", 300);
  assert_has("_._a_b____true.svg", "</svg>");
  assert_has("_._a_b____true.svg", "it's `true` &amp; &lt;b>\\n%s $x");
  assert_has("_._a_b____true.svg", "o'ne`");
  assert_has("_._a_b____true.gp", "'o''ne`'");
  /* bars reach as far as the summary says, in both directions */
  assert_has("_._a_b____true.dat", "# o'ne`\n1 2 1.5 4 1.25 10\n2 3 2 3.5 0.75 10\n");
  assert_has("_._a_b____true.dat", "# a line\n1 1 1 1 0 0\n");
  cv_lab_result_fini(&result);
}

static void test_a_bar_below_zero_stays_on_a_logarithmic_axis(void **state) {
  struct cv_lab_result result = {0};
  const struct cv_lab_figure figure = {
      .name = "log", .title = "", .x_label = "", .y_label = "", .metric = "regret", .log_y = true};
  add(&result, "one", 1, 2, -1, 5);
  add(&result, "one", 2, 4, 3, 5);
  assert_int_equal(cv_lab_figure_draw(&figure, &result, folder.path, NULL), CV_OK);
  assert_has("log.dat", "1 2 0.2 5 3 10\n");
  cv_lab_result_fini(&result);
}

static void test_series_without_an_x_stand_beside_each_other(void **state) {
  struct cv_lab_result result = {0};
  const struct cv_lab_figure figure = {.name = "flat", .title = "", .x_label = "", .y_label = "", .metric = "regret"};
  add(&result, "one", (double)NAN, 2, 1, 3);
  add(&result, "two", (double)NAN, 4, 3, 5);
  assert_int_equal(cv_lab_figure_draw(&figure, &result, folder.path, NULL), CV_OK);
  assert_has("flat.dat", "# two\n2 4 3 5 1 10\n");
  assert_has("flat.svg", ">two<");
  cv_lab_result_fini(&result);
}

/* Eight series in two cells of a grid, and one in no cell: too many for a plot. */
static void test_the_cells_of_a_large_grid_have_panels(void **state) {
  struct cv_lab_result result = {0};
  struct cv_why why = {0};
  const struct cv_lab_figure figure = {
      .name = "grid", .title = "grid", .x_label = "x", .y_label = "y", .metric = "regret"};
  for (int i = 0; i < 8; i++) {
    for (int j = 0; j < 2; j++) {
      char name[40];
      (void)snprintf(name, sizeof(name), "%d %% off, epsilon %d", i, j);
      add(&result, name, 1, i, i - .5, i + .5);
      add(&result, name, 2, i + j, i, i + 2);
    }
  }
  add(&result, "alone", 1, 2, 1, 3);
  if (cv_lab_figure_draw(&figure, &result, folder.path, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_has("grid.svg", ">epsilon 0<");
  assert_has("grid.svg", ">epsilon 1<");
  assert_has("grid.svg", ">7 % off<"); /* one legend for both */
  assert_has("grid.svg", ">bars: one standard error of the mean to each side; 10 replicates<");
  size_t bytes;
  char *script = content("grid.gp", &bytes);
  assert_null(strstr(script, "title '7 % off, epsilon 1'"));
  assert_null(strstr(script, "set label '")); /* what the bars are stands once, in the title, and not in every panel */
  free(script);
  assert_is_png("grid.png", 1800);
  cv_lab_result_fini(&result);
}

/* The line of the script that has `what`; the caller frees it. */
static char *line_with(const char *name, const char *what) {
  size_t bytes;
  char *text = content(name, &bytes), *at = strstr(text, what);
  if (at == NULL) {
    fail_msg("%s has no \"%s\":\n%s", name, what, text);
  }
  while (at > text && at[-1] != '\n') {
    at--;
  }
  char *line = strndup(at, strcspn(at, "\n"));
  free(text);
  return line;
}

static double height_of_name(const char *script, const char *quoted) {
  char *line = line_with(script, quoted), *at = strstr(line, ", graph ");
  assert_non_null(at);
  double height = strtod(at + strlen(", graph "), NULL);
  free(line);
  return height;
}

/* Two lines end at the same point and one far away: all have names beside their ends, the two apart. */
static void test_lines_are_named_at_their_ends(void **state) {
  struct cv_lab_result result = {0};
  const struct cv_lab_figure figure = {.name = "ends", .title = "", .x_label = "", .y_label = "", .metric = "regret"};
  const char *const names[] = {"low", "it's low too", "high"};
  for (int i = 0; i < 3; i++) {
    add(&result, names[i], 1, 1, .9, 1.1);
    add(&result, names[i], 2, i == 2 ? 9 : 1, i == 2 ? 8.9 : .9, i == 2 ? 9.1 : 1.1);
  }
  assert_int_equal(cv_lab_figure_draw(&figure, &result, folder.path, NULL), CV_OK);
  assert_has("ends.svg", ">it's low too<");
  double low = height_of_name("ends.gp", "set label 'low'"),
         too = height_of_name("ends.gp", "set label 'it''s low too'");
  double high = height_of_name("ends.gp", "set label 'high'");
  assert_true(fabs(low - too) > .035 && fabs(low - too) < .05);
  assert_true(high > .9 && high <= 1 && low < .2 && too < .2);
  assert_has("ends.gp", "unset key\n"); /* no name is far from its line's end */
  cv_lab_result_fini(&result);

  for (int i = 0; i < 6; i++) { /* six lines that end at one point: their names alone do not tell them apart */
    char name[20];
    (void)snprintf(name, sizeof(name), "line %d", i);
    add(&result, name, 1, i, i, i);
    add(&result, name, 2, 3, 3, 3);
  }
  assert_int_equal(cv_lab_figure_draw(&figure, &result, folder.path, NULL), CV_OK);
  size_t bytes;
  char *script = content("ends.gp", &bytes);
  assert_true(strstr(script, "unset key") > strstr(script, "set terminal png")); /* the thumbnail's only */
  free(script);
  cv_lab_result_fini(&result);
}

static void test_names_at_ends_keep_apart_and_inside(void **state) {
  struct cv_lab_end end[] = {{.series = 0, .at = .99},
                             {.series = 1, .at = 0},
                             {.series = 2, .at = .99},
                             {.series = 3, .at = .98},
                             {.series = 4, .at = .5}};
  assert_false(cv_lab_ends_place(end, 5, .1));
  assert_int_equal(end[0].series, 1);
  assert_true(end[0].place == 0);
  assert_true(fabs(end[1].place - .5) < 1e-12);
  for (size_t i = 1; i < 5; i++) {
    assert_true(end[i].place - end[i - 1].place > .1 - 1e-9);
  }
  assert_true(fabs(end[4].place - 1) < 1e-12 && end[2].series == 3 && end[3].series == 0);
  struct cv_lab_end pair[] = {{.series = 7, .at = .42}, {.series = 3, .at = .4}};
  assert_true(cv_lab_ends_place(pair, 2, .1));
  assert_true(fabs(pair[0].place - .36) < 1e-12 && fabs(pair[1].place - .46) < 1e-12); /* around their middle */
}

static void assert_bars(const struct cv_lab_result *result, enum cv_lab_statistic statistic, const char *expected) {
  const struct cv_lab_figure figure = {.name = "bars", .metric = "regret", .statistic = statistic};
  assert_string_equal(cv_lab_figure_bars(&figure, result).text, expected);
}

static void test_a_figure_says_what_its_bars_are(void **state) {
  struct cv_lab_result result = {0};
  const struct cv_lab_figure figure = {.name = "said", .title = "t", .x_label = "", .y_label = "", .metric = "regret"};
  add(&result, "one", 1, 2, 1, 3);
  add(&result, "one", 2, 2, 1, 3);
  assert_bars(&result, CV_LAB_MEAN, "bars: one standard error of the mean to each side; 10 replicates");
  assert_bars(&result, CV_LAB_MEDIAN, "bars: 68 % interval of the median; 10 replicates");
  result.row[1].n = 7; /* replicates without a value */
  add(&result, "two", 1, 2, (double)NAN, (double)NAN);
  assert_bars(&result, CV_LAB_MEAN,
              "bars: one standard error of the mean to each side; 7 to 10 replicates; lines without them are computed");
  for (int i = 0; i < 25; i++) {
    add(&result, "three", i, 2, 1, 3);
  }
  assert_bars(&result, CV_LAB_ROOT_MEAN_SQUARE,
              "bars and bands: one standard error of the root mean square to each side; 7 to 10 replicates; "
              "lines without them are computed");
  assert_int_equal(cv_lab_figure_draw(&figure, &result, folder.path, NULL), CV_OK);
  assert_has("said.svg", "bars and bands: one standard error of the mean to each side; 7 to 10 replicates");
  cv_lab_result_fini(&result);
  add(&result, "one", 1, 2, (double)NAN, (double)NAN);
  assert_bars(&result, CV_LAB_MEAN, "computed, not run");
  result.row[0].n = 1;
  assert_bars(&result, CV_LAB_MEAN, "1 replicate, too few for bars");
  result.row[0].is_asymptotic = true;
  add(&result, "two", 1, 2, 1, 3);
  assert_int_equal(cv_lab_figure_draw(&figure, &result, folder.path, NULL), CV_OK);
  assert_has("said.svg", ">one (asymptotic)<");
  cv_lab_result_fini(&result);
}

static void test_names_of_places_are_no_formats(void **state) {
  struct cv_lab_result result = {0};
  const struct cv_lab_figure figure = {.name = "part", .title = "", .x_label = "", .y_label = "", .metric = "regret"};
  add(&result, "5 % of 100 %", (double)NAN, 2, 1, 3);
  assert_int_equal(cv_lab_figure_draw(&figure, &result, folder.path, NULL), CV_OK);
  assert_has("part.svg", ">5 % of 100 %<");
  cv_lab_result_fini(&result);
}

static void test_numbers_that_are_all_the_same_are_drawn(void **state) {
  struct cv_lab_result result = {0};
  const struct cv_lab_figure figure = {
      .name = "flat-grid", .title = "", .x_label = "", .y_label = "", .metric = "regret"};
  for (int i = 0; i < 26; i++) {
    char name[40];
    (void)snprintf(name, sizeof(name), "%d, cell %d", i / 2, i % 2);
    add(&result, name, 1, 1, 1, 1);
  }
  assert_int_equal(cv_lab_figure_draw(&figure, &result, folder.path, NULL), CV_OK);
  assert_has("flat-grid.svg", ">cell 1<");
  cv_lab_result_fini(&result);
}

static void test_nothing_to_draw_is_said(void **state) {
  struct cv_lab_result result = {0};
  struct cv_why why = {0};
  const struct cv_lab_figure figure = {.name = "empty", .title = "", .x_label = "", .y_label = "", .metric = "regret"};
  assert_int_equal(cv_lab_figure_draw(&figure, &result, folder.path, &why), CV_ERR_NOT_FOUND);
  assert_string_equal(why.text, "empty: there are no values of regret to draw");
}

/* Replicates 1 .. 21 of one series, the same times ten of the other, at two points; the last one is missing. */
static void test_a_distribution_is_drawn_from_its_quantiles(void **state) {
  static const char text[] =
      "campaign: boxes\nitems: {synthetic: {count: 2}}\npolicy: {name: ppar, alpha: 0.1}\n"
      "privacy: {mechanism: hybrid, epsilon: 1}\nlimits: {tokens: 400}\nexperiment:\n"
      "  x: {vary: policy.alpha, values: [0.1, 0.2], label: alpha}\n"
      "  series: [{name: one}, {name: two, privacy.epsilon: 2}]\n  metrics: [pulls]\n";
  struct cv_lab_experiment experiment;
  struct cv_lab_dataset dataset;
  struct cv_why why = {0};
  if (cv_lab_experiment_parse("boxes", text, strlen(text), NULL, &experiment, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_int_equal(cv_lab_dataset_init(&experiment, 22, &dataset), CV_OK);
  assert_int_equal(cv_lab_distribution_draw(&dataset, folder.path, &why), CV_ERR_NOT_FOUND);
  for (uint64_t i = 0; i < 21; i++) { /* not in the order of their size */
    double value = (double)((i * 8) % 21) + 1;
    cv_lab_dataset_put(&dataset, 0, i, (const double[]){value, 10 * value});
    cv_lab_dataset_put(&dataset, 1, i, (const double[]){value + 100, 10 * value + 100});
  }
  if (cv_lab_distribution_draw(&dataset, folder.path, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_has("boxes-distribution.dat",
             "# one: place 5% 25% 50% 75% 95% mean n\n"
             "0 2 6 11 16 20 11 21\n3 102 106 111 116 120 111 21\n\n\n");
  assert_has("boxes-distribution.dat", "\n1 20 60 110 160 200 110 21\n4 120 160 210 260 300 210 21\n");
  assert_has("boxes-distribution.svg", ">two<");
  assert_has("boxes-distribution.svg", "Distribution over 22 replicates");
  assert_is_png("boxes-distribution.png", 1800);
  cv_lab_dataset_fini(&dataset);
  cv_lab_experiment_fini(&experiment);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names_are_text_and_nothing_else),
      cmocka_unit_test(test_a_bar_below_zero_stays_on_a_logarithmic_axis),
      cmocka_unit_test(test_series_without_an_x_stand_beside_each_other),
      cmocka_unit_test(test_the_cells_of_a_large_grid_have_panels),
      cmocka_unit_test(test_lines_are_named_at_their_ends),
      cmocka_unit_test(test_names_at_ends_keep_apart_and_inside),
      cmocka_unit_test(test_a_figure_says_what_its_bars_are),
      cmocka_unit_test(test_names_of_places_are_no_formats),
      cmocka_unit_test(test_numbers_that_are_all_the_same_are_drawn),
      cmocka_unit_test(test_nothing_to_draw_is_said),
      cmocka_unit_test(test_a_distribution_is_drawn_from_its_quantiles),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
