/* SPDX-License-Identifier: Apache-2.0 */
/* What a person reads of an outlook: its first line, times, and what does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdlib.h>

#include "deploy/launcher/outlook.h"
#include "simulate/paired.h"
#include "tests/support/folder.h"
#include "tests/support/near.h"

static void assert_time(double seconds, const char *text) {
  assert_string_equal(cv_tempo_text(seconds).text, text);
}

static void test_times_have_two_digits_and_a_fitting_unit(void **state) {
  assert_time(0, "0.1 s");
  assert_time(.42, "0.4 s");
  assert_time(9.94, "9.9 s");
  assert_time(9.96, "10 s");
  assert_time(99, "99 s");
  assert_time(100, "2 minutes");
  assert_time(5399, "90 minutes");
  assert_time(5400, "2 hours");
  assert_time(172799, "48 hours");
  assert_time(864000, "10 days");
}

static void test_people_are_slower_than_programs(void **state) {
  struct cv_tempo tempo = {.rate = 1000, .each = 4};
  assert_true(cv_tempo_rate(2) < cv_tempo_rate(0));
  assert_near(cv_tempo_people(&tempo, 401, 401), 101, 0);
  assert_near(cv_tempo_seconds(&tempo, 5000, 0, 1250), 5, 1e-9);
  assert_near(cv_tempo_seconds(&tempo, 0, 1000, 0), CV_TEMPO_ROUND_MS, 1e-9);
  tempo.people_per_hour = 60;
  assert_near(cv_tempo_seconds(&tempo, 400, 2, 100), 6000, 1e-9);
  tempo.people_per_hour = 1e9; /* no faster than the broker */
  assert_near(cv_tempo_seconds(&tempo, 5000, 0, 1250), 5, 1e-9);
}

static void test_an_item_needs_as_many_people_as_answers(void **state) {
  struct cv_tempo tempo = {.rate = 1000, .each = 4, .each_item = 1};
  assert_near(cv_tempo_people(&tempo, 400, 100), 100, 0);
  assert_near(cv_tempo_people(&tempo, 400, 250), 250, 0);
  tempo.each_item = 3; /* pairs of four items */
  assert_near(cv_tempo_people(&tempo, 400, 361), 121, 0);
}

enum { ARMS = 5, RUNS = 4 };

static struct cv_prepared campaign;
static struct cv_forecast_run run[RUNS];
static struct cv_outlook outlook;

/* Five items, of which every run leaves `undecided` and parks `parked`; it ends so. */
static void set(enum cv_policy_kind kind, uint32_t undecided, uint32_t parked, enum cv_trial_end end) {
  campaign = (struct cv_prepared){.kind = kind, .file.spec = {.arms = ARMS, .tokens = 1000000}};
  for (uint32_t i = 0; i < RUNS; i++) {
    run[i] = (struct cv_forecast_run){
        .tokens = 640000, .undecided = undecided, .parked = parked, .end = end, .used_up = CV_TURNS_NO_ARM};
  }
  outlook = (struct cv_outlook){
      .ask = {.campaign = &campaign, .budget_ms = 8000, .tempo = {.rate = 1000, .each = 1}},
      .forecast = {.runs = RUNS, .run = run, .arms = ARMS},
      .tokens = {510123, 640000, 799999},
      .seconds = {510, 640, 800},
      .undecided = {undecided, undecided, undecided},
      .parked = {parked, parked, parked},
  };
}

static void assert_line(const char *text) {
  cv_outlook_conclude(&outlook);
  assert_string_equal(outlook.line, text);
}

static void test_the_conclusion_about_a_ranking(void **state) {
  set(CV_POLICY_RANKING, 0, 0, CV_TRIAL_COMPLETE);
  assert_line(
      "Expect about 640,000 tokens (510,000 to 800,000) and 11 minutes (8 minutes to 13 minutes); all 5 items will be "
      "ranked");
  run[2].undecided = 1;
  assert_line(
      "Expect about 640,000 tokens (510,000 to 800,000) and 11 minutes (8 minutes to 13 minutes); all 5 items will be "
      "ranked, but not in 1 "
      "of 4 runs");
  set(CV_POLICY_RANKING, 4, 0, CV_TRIAL_LIMIT);
  outlook.limit = 3000000;
  outlook.alpha = .2;
  assert_line(
      "Expect about 640,000 tokens (510,000 to 800,000) and 11 minutes (8 minutes to 13 minutes); 1 of 5 items will be "
      "ranked within the "
      "limit of 1,000,000 tokens: raise limits.tokens to about 3,000,000 or alpha to about 0.2");
  outlook.limit = 0;
  assert_line(
      "Expect about 640,000 tokens (510,000 to 800,000) and 11 minutes (8 minutes to 13 minutes); 1 of 5 items will be "
      "ranked within the "
      "limit of 1,000,000 tokens: raise alpha to about 0.2 (no larger limit was found that suffices)");
  set(CV_POLICY_RANKING, 1, 2, CV_TRIAL_HORIZON);
  assert_line(
      "Expect about 640,000 tokens (510,000 to 800,000) and 11 minutes (8 minutes to 13 minutes); 2 of 5 items will be "
      "ranked and 2 as of one class or the next before it ends: raise the mechanism's horizon or tokens_per_round");
  run[1].widest = 2;
  run[3].widest = 5; /* of the five, any */
  assert_line(
      "Expect about 640,000 tokens (510,000 to 800,000) and 11 minutes (8 minutes to 13 minutes); 2 of 5 items will be "
      "ranked and 2 as of one of up to 5 classes before it ends: raise the mechanism's horizon or tokens_per_round");
}

static void test_the_conclusion_about_others(void **state) {
  set(CV_POLICY_BANDIT, 0, 0, CV_TRIAL_LIMIT);
  outlook.tokens = (struct cv_range){1000000, 1000000, 1000000};
  outlook.regret = (struct cv_range){.5, 1.25, 3};
  assert_line(
      "Expect 1,000,000 tokens and 11 minutes (8 minutes to 13 minutes), with a regret of about 1.25 (0.5 to 3); it "
      "ends at its limit of "
      "1,000,000 tokens");
  set(CV_POLICY_RECRUITMENT, 0, 0, CV_TRIAL_MONEY);
  campaign.file.spec.budget_micro = 600000000;
  outlook.paid = (struct cv_range){590, 599.5, 600};
  outlook.reward = (struct cv_range){60, 80, 100};
  assert_line(
      "Expect about 640,000 hires (510,000 to 800,000) and 11 minutes (8 minutes to 13 minutes); 599.5 of the budget "
      "of 600 will be paid, for "
      "a reward of about 80 (60 to 100)");
  set(CV_POLICY_RANKING, 3, 0, CV_TRIAL_STOPPED);
  outlook.forecast.runs = 0;
  outlook.rounds.median = 12;
  assert_line(
      "No simulated campaign ended within 8 s: the first one had taken 640,000 tokens in 12 rounds and ranked 2 of "
      "5 items; --seconds gives more time");
}

static void test_times_of_the_campaign_that_do_not_fit(void **state) {
  set(CV_POLICY_RANKING, 0, 0, CV_TRIAL_COMPLETE);
  campaign.file.spec.deadline_ms = 3600000;
  campaign.file.spec.idle_ms = 30000;
  cv_outlook_conclude(&outlook);
  assert_string_equal(outlook.caution, "");
  campaign.file.spec.deadline_ms = 600000;
  cv_outlook_conclude(&outlook);
  assert_string_equal(outlook.caution,
                      "limits.deadline of 600 s ends the campaign before that in 4 of 4 runs: expected 11 minutes (8 "
                      "minutes to 13 minutes)");
  run[0].tokens = run[1].tokens = run[2].tokens = 510000; /* half of the runs end in time: it says that one does not */
  outlook.seconds.median = 510;
  cv_outlook_conclude(&outlook);
  assert_non_null(
      strstr(outlook.caution, "ends the campaign before that in 1 of 4 runs: expected 8 minutes (8 minutes"));
  campaign.file.spec.deadline_ms = 0;
  outlook.ask.tempo.people_per_hour = 60;
  cv_outlook_conclude(&outlook);
  assert_non_null(strstr(outlook.caution, "limits.idle of 30 s ends the campaign as soon as nobody comes for so long"));
}

/* ---- other settings ---- */

static struct folder folder;
static uint64_t clock_ms;

/* A millisecond for each look at it: one between any two plans. */
static uint64_t tick(void) {
  return clock_ms++;
}

static void look_ahead(const char *policy, uint64_t budget_ms, uint32_t runs, struct cv_prepared *prepared,
                       struct cv_outlook *ret) {
  static const struct cv_guess guess = {.mean = .5, .spread = .3};
  char text[500];
  struct cv_why why = {{0}};
  (void)snprintf(text, sizeof(text),
                 "campaign: c\nitems: {list: [{name: a}, {name: b}, {name: c}, {name: d}]}\npolicy: %s\n"
                 "privacy: {mechanism: hybrid, epsilon: 1}\n",
                 policy);
  folder_write(&folder, "campaign.yaml", text);
  assert_int_equal(cv_prepare(folder_file(&folder, "campaign.yaml"), CV_SEED_NONE, prepared, &why), CV_OK);
  const struct cv_outlook_ask ask = {.campaign = prepared,
                                     .is_drawn = true,
                                     .guess = &guess,
                                     .seed = 3,
                                     .runs = runs,
                                     .budget_ms = budget_ms,
                                     .now_ms = tick,
                                     .tempo = {.rate = 1000, .each = 1}};
  assert_int_equal(cv_outlook_make(&ask, ret, &why), CV_OK);
}

static void free_all(struct cv_prepared *prepared, struct cv_outlook *of) {
  cv_outlook_fini(of);
  cv_prepared_fini(prepared);
}

static void test_all_settings_have_as_many_runs_however_short_the_time_is(void **state) {
  struct cv_prepared prepared;
  struct cv_outlook of;
  bool some = false, all = false;
  folder_make(&folder);
  for (uint64_t budget_ms = 40; budget_ms < 400000; budget_ms *= 2) {
    look_ahead("{name: ppar, alpha: 0.3}", budget_ms, 30, &prepared, &of);
    uint32_t with = 0;
    assert_int_equal(of.rows, 6);
    for (uint32_t i = 0; i < of.rows; i++) {
      assert_true(of.row[i].runs == 0 || of.row[i].runs == of.forecast.runs);
      assert_true(of.row[i].runs == 0 || of.row[i].runs >= CV_PAIRED_LEAST);
      with += of.row[i].runs > 0;
    }
    assert_true(with == 0 || of.forecast.runs > 0);
    some = some || (with > 0 && (with < 6 || of.forecast.runs < 30));
    all = all || (with == 6 && of.forecast.runs == 30);
    free_all(&prepared, &of);
  }
  assert_true(some && all);
  folder_remove(&folder);
}

/* Rounds grow, so that the size of the first one matters to few runs: with the same draws the medians are the same. */
static void test_all_settings_have_the_same_draws(void **state) {
  struct cv_prepared prepared;
  struct cv_outlook of;
  folder_make(&folder);
  look_ahead("{name: ppar-kl, alpha: 0.1}", UINT64_MAX / 4, 60, &prepared, &of);
  const struct cv_outlook_row *finer = &of.row[5], *less = &of.row[3];
  assert_string_equal(finer->what, "tokens_per_round 10");
  assert_near(finer->token_ratio.low, 1, .02);
  assert_near(finer->token_ratio.high, 1, .02);
  assert_false(cv_outlook_differs(&of, finer));
  assert_string_equal(cv_outlook_compare(&of, finer).text, "no difference seen");
  assert_string_equal(less->what, "epsilon 0.5");
  assert_true(less->token_ratio.high >= 1);
  free_all(&prepared, &of);
  folder_remove(&folder);
}

static void test_a_difference_in_words(void **state) {
  struct cv_outlook_row row = {.runs = 20,
                               .token_ratio = {.75, .82, .9},
                               .open_change = {0, 0, 1},
                               .time_ratio = {.9, 1, 1.1},
                               .regret_change = {-3, -2, -1}};
  set(CV_POLICY_RANKING, 0, 0, CV_TRIAL_COMPLETE);
  assert_string_equal(cv_outlook_compare(&outlook, &row).text, "tokens x 0.82 (0.75 to 0.9)");
  row.open_change = (struct cv_range){1, 2, 3};
  assert_string_equal(cv_outlook_compare(&outlook, &row).text,
                      "tokens x 0.82 (0.75 to 0.9); items not ranked +2 (+1 to +3)");
  outlook.ask.tempo.people_per_hour = 60;
  row.open_change.low = 0;
  assert_string_equal(cv_outlook_compare(&outlook, &row).text,
                      "tokens x 0.82 (0.75 to 0.9); no difference seen in time");
  row.time_ratio.low = 1.01;
  assert_string_equal(cv_outlook_compare(&outlook, &row).text, "tokens x 0.82 (0.75 to 0.9); time x 1 (1.01 to 1.1)");
  row.runs = 7;
  assert_string_equal(cv_outlook_compare(&outlook, &row).text, "too few runs to compare: 7 of at least 8");
  set(CV_POLICY_BANDIT, 0, 0, CV_TRIAL_LIMIT);
  row.runs = 20;
  assert_string_equal(cv_outlook_compare(&outlook, &row).text, "regret -2 (-3 to -1)");
  row.regret_change.high = 0;
  assert_string_equal(cv_outlook_compare(&outlook, &row).text, "no difference seen");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_times_have_two_digits_and_a_fitting_unit),
      cmocka_unit_test(test_people_are_slower_than_programs),
      cmocka_unit_test(test_an_item_needs_as_many_people_as_answers),
      cmocka_unit_test(test_the_conclusion_about_a_ranking),
      cmocka_unit_test(test_the_conclusion_about_others),
      cmocka_unit_test(test_times_of_the_campaign_that_do_not_fit),
      cmocka_unit_test(test_all_settings_have_as_many_runs_however_short_the_time_is),
      cmocka_unit_test(test_all_settings_have_the_same_draws),
      cmocka_unit_test(test_a_difference_in_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
