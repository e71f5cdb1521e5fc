/* SPDX-License-Identifier: Apache-2.0 */
/* What many simulated runs of a campaign say about the next one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/grid.h"
#include "simulate/forecast.h"
#include "simulate/strata.h"
#include "tests/support/folder.h"
#include "tests/support/near.h"

static struct folder folder;

static void prepare(const char *items, const char *policy, const char *privacy, unsigned tokens,
                    struct cv_prepared *ret) {
  char text[2000];
  struct cv_why why = {0};
  (void)snprintf(text, sizeof(text), "campaign: c\nitems: %s\npolicy: %s\nprivacy: %s\nlimits: {tokens: %u}\n", items,
                 policy, privacy, tokens);
  folder_write(&folder, "campaign.yaml", text);
  enum cv_err err = cv_prepare(folder_file(&folder, "campaign.yaml"), CV_SEED_NONE, ret, &why);
  assert_string_equal(why.text, "");
  assert_int_equal(err, CV_OK);
}

static void make(const struct cv_forecast_ask *ask, struct cv_forecast *ret) {
  struct cv_why why = {0};
  struct cv_forecast_shared shared;
  assert_int_equal(cv_forecast_shared_init(ask->campaign, &shared, &why), CV_OK);
  assert_int_equal(cv_forecast_make(ask, &shared, ret, &why), CV_OK);
  cv_forecast_shared_fini(&shared);
}

static double plain(const struct cv_forecast_run *run) {
  return (double)run->tokens;
}

/* Of 1 to n in any order. */
static void check_range(uint32_t n, double low, double median, double high) {
  struct cv_forecast_run *run = calloc(n, sizeof(*run));
  struct cv_forecast forecast = {.runs = n, .run = run};
  for (uint32_t i = 0; i < n; i++) {
    run[i].tokens = (i * 7 + 3) % n + 1;
  }
  struct cv_range range = cv_forecast_range(&forecast, plain);
  assert_near(range.low, low, 0);
  assert_near(range.median, median, 0);
  assert_near(range.high, high, 0);
  free(run);
}

static void test_a_range_leaves_out_one_run_in_twenty_at_each_end(void **state) {
  check_range(1, 1, 1, 1);
  check_range(4, 1, 2.5, 4);
  check_range(20, 1, 10.5, 20);
  check_range(100, 5, 50.5, 96);
}

static void test_equal_items_stay_undecided_or_on_a_boundary_in_every_run(void **state) {
  struct cv_prepared campaign;
  struct cv_forecast forecast;
  folder_make(&folder);
  prepare("{list: [{name: a, mean: 0.9}, {name: b, mean: 0.9}, {name: c, mean: 0.1}]}",
          "{name: ppar, alpha: 0, tokens_per_round: 200}", "{mechanism: segments, epsilon: 1}", 20000, &campaign);
  const struct cv_forecast_ask ask = {.campaign = &campaign, .seed = 1, .runs = 8};
  make(&ask, &forecast);
  assert_int_equal(forecast.runs, 8);
  assert_int_equal(forecast.arm[0].undecided + forecast.arm[0].parked, 8);
  assert_int_equal(forecast.arm[1].undecided + forecast.arm[1].parked, 8);
  assert_true(forecast.arm[0].tokens > 500 && forecast.arm[0].radius > 0 && forecast.arm[0].radius < .1);
  struct cv_range tokens = cv_forecast_range(&forecast, cv_forecast_tokens);
  assert_true(tokens.low > 1000 && tokens.high <= 20000);
  cv_forecast_fini(&forecast);
  cv_prepared_fini(&campaign);
  folder_remove(&folder);
}

static void test_runs_differ_and_the_seed_repeats_them(void **state) {
  struct cv_prepared campaign;
  struct cv_forecast first, again;
  folder_make(&folder);
  prepare("{list: [{name: a, mean: 0.9}, {name: b, mean: 0.6}]}", "{name: ppar-kl, alpha: 0.1}",
          "{mechanism: segments, epsilon: 1}", 100000, &campaign);
  const struct cv_forecast_ask ask = {.campaign = &campaign, .seed = 5, .runs = 6};
  make(&ask, &first);
  make(&ask, &again);
  bool differ = false;
  for (uint32_t i = 0; i < 6; i++) {
    assert_int_equal(first.run[i].tokens, again.run[i].tokens);
    differ = differ || first.run[i].tokens != first.run[0].tokens;
    assert_int_equal(first.run[i].end, CV_TRIAL_COMPLETE);
  }
  assert_true(differ);
  cv_forecast_fini(&first);
  cv_forecast_fini(&again);
  cv_prepared_fini(&campaign);
  folder_remove(&folder);
}

/* An instance of its own in each run: sometimes the two items are near each other, sometimes not. */
static void test_guessed_qualities_are_drawn_in_each_run(void **state) {
  struct cv_prepared campaign;
  struct cv_forecast known, guessed;
  const struct cv_guess guess = {.mean = .5, .spread = .3};
  folder_make(&folder);
  prepare("{list: [{name: a, mean: 0.95}, {name: b, mean: 0.05}]}", "{name: ppar-kl, alpha: 0.1}",
          "{mechanism: segments, epsilon: 1}", 50000, &campaign);
  struct cv_forecast_ask ask = {.campaign = &campaign, .seed = 5, .runs = 40};
  make(&ask, &known);
  ask.is_drawn = true;
  ask.guess = &guess;
  make(&ask, &guessed);
  struct cv_range a = cv_forecast_range(&known, cv_forecast_tokens),
                  b = cv_forecast_range(&guessed, cv_forecast_tokens);
  assert_true(a.high < 1000);
  assert_true(b.low < 1000 && b.high > 10 * a.high);
  cv_forecast_fini(&known);
  cv_forecast_fini(&guessed);
  cv_prepared_fini(&campaign);
  folder_remove(&folder);
}

/* Unknown means, and gold items, which are no arms. */
static void test_items_without_means_and_gold_items(void **state) {
  struct cv_prepared campaign;
  struct cv_forecast forecast;
  const struct cv_guess guess = CV_GUESS_USUAL;
  folder_make(&folder);
  prepare("{list: [{name: a}, {name: b}, {name: c}]}", "{name: ppar-kl, alpha: 0.1}", "{epsilon: 1}", 50000, &campaign);
  assert_null(campaign.truth);
  struct cv_forecast_ask ask = {.campaign = &campaign, .is_drawn = true, .guess = &guess, .seed = 5, .runs = 4};
  make(&ask, &forecast);
  assert_int_equal(forecast.arms, 3);
  cv_forecast_fini(&forecast);
  cv_prepared_fini(&campaign);
  prepare(
      "{list: [{name: gold, mean: 1}, {name: a, mean: 0.9}, {name: b, mean: 0.1}, {name: c, mean: 0}, "
      "{name: d, mean: 0}, {name: e, mean: 1}]}\n"
      "gold: {items: {gold: 1, c: 0, d: 0, e: 1}, tolerance: 0.1, share: 0.5, level: 0.01}",
      "{name: ppar-kl, alpha: 0.1}", "{mechanism: segments, epsilon: 1, tokens_per_worker: 6}", 50000, &campaign);
  ask = (struct cv_forecast_ask){.campaign = &campaign, .seed = 5, .runs = 4};
  make(&ask, &forecast);
  assert_int_equal(forecast.arms, 2);
  assert_int_equal(cv_forecast_ended(&forecast, CV_TRIAL_COMPLETE), 4);
  assert_true(cv_forecast_range(&forecast, cv_forecast_tokens).high < 2000); /* far from each other, as a and b are */
  cv_forecast_fini(&forecast);
  cv_prepared_fini(&campaign);
  folder_remove(&folder);
}

static void write_rows(const char *name, int good, int bad) {
  char *text = malloc(20000);
  size_t used = (size_t)snprintf(text, 20000, "item,score\n");
  for (int i = 0; i < good + bad; i++) {
    used += (size_t)snprintf(text + used, 20000 - used, "%s", i < good ? "a,0.75\n" : i % 2 ? "b,1\n" : "b,0\n");
  }
  folder_write(&folder, name, text);
  free(text);
}

/* An item whose rows are too few does not end the campaign: the others go on, and it is told which one it was. */
static void test_rows_that_run_out(void **state) {
  struct cv_prepared campaign;
  struct cv_forecast forecast;
  folder_make(&folder);
  write_rows("rows.csv", 1500, 60);
  prepare("{source: csv, path: rows.csv, item: item, score: score, scale: [0, 1]}",
          "{name: ppar, alpha: 0.1, tokens_per_round: 50}", "{mechanism: segments, epsilon: 1}", 50000, &campaign);
  const struct cv_forecast_ask ask = {.campaign = &campaign, .seed = 5, .runs = 5};
  make(&ask, &forecast);
  assert_int_equal(cv_forecast_used_up(&forecast), 5);
  for (uint32_t i = 0; i < 5; i++) {
    assert_int_equal(forecast.run[i].used_up, 1);
    assert_int_equal(forecast.run[i].wanted, 100);
    assert_true(forecast.run[i].tokens <= 1560);
  }
  assert_int_equal(forecast.arm[1].used_up, 5);
  assert_true(forecast.arm[1].tokens <= 60);
  assert_true(forecast.arm[1].parked == 5 && forecast.arm[1].first == 1 && forecast.arm[1].last == 2);
  assert_true(forecast.run[0].widest == 2 && forecast.run[0].most > 60 && forecast.run[0].most <= 1500);
  cv_forecast_fini(&forecast);
  cv_prepared_fini(&campaign);
  folder_remove(&folder);
}

struct stop {
  int asked, after;
};

static bool stops(void *data, uint32_t runs) {
  struct stop *stop = data;
  (void)runs;
  return ++stop->asked > stop->after;
}

static void test_a_forecast_that_is_stopped_has_the_runs_until_then(void **state) {
  struct cv_prepared campaign;
  struct cv_forecast forecast;
  struct stop stop = {.after = 5};
  folder_make(&folder);
  prepare("{list: [{name: a, mean: 0.9}, {name: b, mean: 0.9}]}", "{name: ppar, alpha: 0, tokens_per_round: 100}",
          "{mechanism: segments, epsilon: 1}", 100000, &campaign);
  const struct cv_forecast_ask ask = {.campaign = &campaign, .seed = 5, .runs = 8, .is_over = stops, .data = &stop};
  make(&ask, &forecast);
  assert_int_equal(forecast.runs, 0); /* not even one: what it came to */
  assert_int_equal(forecast.run[0].end, CV_TRIAL_STOPPED);
  assert_int_equal(cv_forecast_range(&forecast, cv_forecast_rounds).median, 5);
  cv_forecast_fini(&forecast);
  cv_prepared_fini(&campaign);
  folder_remove(&folder);
}

/* Rows of three values: sums value by value have the mean and the variance of rows one by one. */
static void test_a_strata_draws_sums_of_the_same_law(void **state) {
  struct cv_prepared campaign;
  struct cv_strata strata;
  struct cv_why why = {0};
  struct cv_rng_seeded rng;
  enum { SUMS = 20000, ROWS = 40 };
  folder_make(&folder);
  folder_write(&folder, "rows.csv", "item,score\na,0\na,0.5\na,0.5\na,1\nb,1\nb,1\n");
  prepare("{source: csv, path: rows.csv, item: item, score: score, scale: [0, 1], replacement: true}",
          "{name: ppar, alpha: 0.1, tokens_per_round: 2}", "{mechanism: segments, epsilon: 1}", 100, &campaign);
  assert_int_equal(cv_strata_init(campaign.source.quality, &strata, &why), CV_OK);
  assert_true(cv_strata_has(&strata, 0) && cv_strata_has(&strata, 1) && !cv_strata_has(&strata, 2));
  cv_rng_seeded_init(&rng, 3, 1, 0, 0);
  double sum = 0, squares = 0;
  for (int i = 0; i < SUMS; i++) {
    double value = (double)cv_strata_sum(&strata, 0, ROWS, &rng.rng) / CV_GRID;
    sum += value;
    squares += value * value;
    assert_int_equal(cv_strata_sum(&strata, 1, ROWS, &rng.rng), (int64_t)ROWS * CV_GRID);
  }
  double mean = sum / SUMS, variance = squares / SUMS - mean * mean;
  assert_near(mean, ROWS * .5, 5 * sqrt(ROWS * .125 / SUMS));
  assert_near(variance, ROWS * .125, .05 * ROWS * .125);
  cv_strata_fini(&strata);
  cv_prepared_fini(&campaign);
  folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_range_leaves_out_one_run_in_twenty_at_each_end),
      cmocka_unit_test(test_equal_items_stay_undecided_or_on_a_boundary_in_every_run),
      cmocka_unit_test(test_runs_differ_and_the_seed_repeats_them),
      cmocka_unit_test(test_guessed_qualities_are_drawn_in_each_run),
      cmocka_unit_test(test_items_without_means_and_gold_items),
      cmocka_unit_test(test_rows_that_run_out),
      cmocka_unit_test(test_a_forecast_that_is_stopped_has_the_runs_until_then),
      cmocka_unit_test(test_a_strata_draws_sums_of_the_same_law),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
