/* SPDX-License-Identifier: Apache-2.0 */
/* Scores that do not change: on which scale they leave, and that a broker that lies learns no more of them: whatever it
 * repeats, renumbers, renames or forgets, each is randomized once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "common/base/grid.h"
#include "tests/unit/worker/pool.h"

static struct stage stage;

static void a_scale(struct cv_terms *terms) {
  terms->scale = (struct cv_scale){.low = 1, .high = 5};
}

/* Scores of a data file mean the same at every gateway, and are on a scale that does not follow from the rows. */
static void declined_by(const struct cv_work *work, void (*change)(struct cv_terms *terms), const char *reason) {
  setup(&stage, 1, 2, 4);
  stage.work[0].print = work->print;
  stage.work[0].scale = work->scale;
  stage.config.accept.mechanisms = "hybrid, none";
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  change(say_terms(&stage, CAMPAIGN, 1));
  deliver(&stage);
  assert_int_equal(stage.sent.declines, reason == NULL ? 0 : 1);
  if (reason != NULL) {
    assert_string_equal(sent_decline(&stage)->why, reason);
  }
  cv_worker_free(stage.pool);
}

static void as_it_is(struct cv_terms *terms) {
}

static void no_noise(struct cv_terms *terms) {
  (void)snprintf(terms->mechanism.name, sizeof(terms->mechanism.name), "none");
}

static void test_a_data_file_serves_its_own_scale(void **state) {
  static const char has_none[] = "the worker's campaign file has no items.scale; expected that of the campaign";
  const struct cv_work model = {0}, free_file = {.print = 7}, stars = {.print = 7, .scale = {1, 5}},
                       points = {.print = 7, .scale = {1, 6}};
  declined_by(&model, a_scale, NULL);
  declined_by(&stars, a_scale, NULL);
  declined_by(&stars, as_it_is, NULL);
  declined_by(&points, a_scale, "the campaign's scale is 1 to 5; expected 1 to 6, as in the worker's campaign file");
  declined_by(&free_file, a_scale, has_none);
  declined_by(&free_file, as_it_is, has_none);
  declined_by(&free_file, no_noise, NULL);
}

static enum cv_err score_of_half(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  *ret_score = CV_GRID / 2;
  return CV_OK;
}

static enum cv_err score_of_place(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  const struct stage *its = data;
  *ret_score = 1000 + (int64_t)at->place;
  return at->place < its->rows ? CV_OK : CV_ERR_LIMIT;
}

/* Of epsilon .5: of 60 tokens of a score of 1/2 about 30 are 1. */
static void ask_privately(uint64_t id, const char *name, double epsilon) {
  struct cv_terms *terms = say_terms(&stage, id, 1000);
  (void)snprintf(terms->name, sizeof(terms->name), "%s", name);
  (void)snprintf(terms->privatizer.name, sizeof(terms->privatizer.name), "randomized-response");
  assert_int_equal(cv_params_set_number(&terms->privatizer.params, "epsilon", epsilon), CV_OK);
}

/* The token of a place, asked of a worker under a ticket of its own, and what the broker then says of it. */
static int64_t token_of(uint64_t id, uint64_t worker, uint64_t place, enum cv_verdict verdict) {
  static uint64_t tickets;
  begin(&stage);
  struct cv_assign *assign = say_assign(&stage, worker, 0, place);
  assign->campaign = id;
  memcpy(assign->ticket + 8, &(uint64_t){++tickets}, sizeof(tickets));
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 1);
  const struct cv_token token = *sent_token(&stage, 0);
  int64_t value = token.value[0];
  begin(&stage);
  say_ack(&stage, &token, verdict, NULL);
  deliver(&stage);
  return value;
}

/* The same of a comparison, 1 + the opponent; the token is accepted. */
static int64_t compared(uint64_t worker, uint64_t place, uint32_t opponent) {
  begin(&stage);
  struct cv_assign *assign = say_assign(&stage, worker, 0, place);
  assign->opponent = opponent;
  memcpy(assign->ticket + 8, &(uint64_t){1000000 + worker}, sizeof(uint64_t));
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 1);
  const struct cv_token token = *sent_token(&stage, 0);
  int64_t value = token.value[0];
  begin(&stage);
  say_ack(&stage, &token, CV_VERDICT_ACCEPTED, NULL);
  deliver(&stage);
  return value;
}

static void meet_privately(uint64_t workers, const uint8_t *key) {
  setup(&stage, 1, workers, 1000);
  stage.work[0].score = score_of_half;
  stage.work[0].print = 77;
  stage.work[0].scale = (struct cv_scale){.low = 0, .high = 5};
  stage.config.coin_key = key;
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  ask_privately(CAMPAIGN, "test", .5);
  deliver(&stage);
}

/* Other workers, tickets and verdicts, a restart, another number: the same token. Another place: another one. */
static void test_an_opinion_is_randomized_once(void **state) {
  enum { PLACES = 60 };
  static const uint8_t key[CV_COIN_KEY_BYTES] = {3};
  int64_t first[PLACES];
  uint32_t ones = 0;
  meet_privately(5 * PLACES, key);
  for (uint64_t place = 0; place < PLACES; place++) {
    first[place] = token_of(CAMPAIGN, 1 + place, place, CV_VERDICT_ACCEPTED);
    ones += first[place] != 0;
  }
  assert_in_range(ones, PLACES / 4, 3 * PLACES / 4);
  for (uint64_t place = 0; place < PLACES; place++) {
    assert_int_equal(token_of(CAMPAIGN, 1 + PLACES + place, place, CV_VERDICT_EXPIRED), first[place]);
    assert_int_equal(token_of(CAMPAIGN, 1 + 2 * PLACES + place, place, CV_VERDICT_REFUSED), first[place]);
  }
  begin(&stage);
  ask_privately(CAMPAIGN + 1, "test", .5);
  deliver(&stage);
  for (uint64_t place = 0; place < PLACES; place++) {
    assert_int_equal(token_of(CAMPAIGN + 1, 1 + 3 * PLACES + place, place, CV_VERDICT_ACCEPTED), first[place]);
  }
  cv_worker_free(stage.pool);
  meet_privately(PLACES, key);
  for (uint64_t place = 0; place < PLACES; place++) {
    assert_int_equal(token_of(CAMPAIGN, 1 + place, place, CV_VERDICT_ACCEPTED), first[place]);
  }
  cv_worker_free(stage.pool);
}

/* The coins of one epsilon, with those of another, would tell the score: these are drawn apart. */
static void test_another_law_has_coins_of_its_own(void **state) {
  enum { PLACES = 60 };
  static const uint8_t key[CV_COIN_KEY_BYTES] = {3};
  uint32_t differ = 0;
  meet_privately(2 * PLACES, key);
  begin(&stage);
  ask_privately(CAMPAIGN + 1, "test", .4);
  deliver(&stage);
  for (uint64_t place = 0; place < PLACES; place++) {
    differ += token_of(CAMPAIGN, 1 + place, place, CV_VERDICT_ACCEPTED) !=
              token_of(CAMPAIGN + 1, 1 + PLACES + place, place, CV_VERDICT_ACCEPTED);
  }
  assert_in_range(differ, PLACES / 4, 3 * PLACES / 4);
  cv_worker_free(stage.pool);
}

/* Who is compared is part of the opinion: one bit for two comparisons would tell whether they are alike. */
static void test_a_comparison_with_another_has_coins_of_its_own(void **state) {
  enum { PLACES = 60 };
  static const uint8_t key[CV_COIN_KEY_BYTES] = {3};
  uint32_t differ = 0;
  setup(&stage, 1, 3 * PLACES, 1000);
  stage.work[0].score = score_of_half;
  stage.work[0].pairs = true;
  stage.config.coin_key = key;
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  ask_privately(CAMPAIGN, "test", .5);
  stage.terms[0].pairs = true;
  deliver(&stage);
  for (uint64_t place = 0; place < PLACES; place++) {
    int64_t first = compared(1 + 3 * place, place, 2);
    assert_int_equal(compared(2 + 3 * place, place, 2), first);
    differ += compared(3 + 3 * place, place, 3) != first;
  }
  assert_in_range(differ, PLACES / 4, 3 * PLACES / 4);
  cv_worker_free(stage.pool);
}

/* Terms that come later do not make a token that has left another one. */
static void test_what_a_privatized_token_has_told_counts_under_later_terms(void **state) {
  struct cv_persons persons = {
      .persons = 1, .start = (uint64_t[]){0, 2}, .arm = (uint32_t[]){0, 0}, .value = (uint32_t[]){CV_GRID, 0}};
  const struct cv_stock_config config = {.persons = &persons, .first_worker = 1, .first = 1, .last = 1, .arms = ARMS};
  setup(&stage, 1, 1, 1);
  assert_int_equal(cv_stock_new(&config, &stage.config.stock), CV_OK);
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  ask_privately(CAMPAIGN, "test", 1);
  stage.terms[0].tokens_per_worker = 1;
  (void)say_assign(&stage, 1, 0, 0);
  deliver(&stage);
  const struct cv_token token = *sent_token(&stage, 0);
  begin(&stage);
  (void)say_terms(&stage, CAMPAIGN, 1); /* without a privatizer */
  say_ack(&stage, &token, CV_VERDICT_EXPIRED, NULL);
  deliver(&stage);
  assert_int_equal(arrived(&stage), 0);
  cv_worker_free(stage.pool);
  cv_stock_free(stage.config.stock);
}

/* What the record of rows was asked, and what it answers. */
struct record {
  uint64_t campaigns, most, taken[ARMS];
};

static enum cv_err serve(void *data, const struct cv_work *work, const struct cv_terms *terms, uint64_t law,
                         uint64_t *ret_taken, struct cv_why *why) {
  struct record *record = data;
  if (record->campaigns++ >= record->most) {
    return cv_fail(why, CV_ERR_DENIED, "the rows have served %llu campaigns", (unsigned long long)record->most);
  }
  if (ret_taken != NULL) {
    memcpy(ret_taken, record->taken, sizeof(record->taken));
  }
  return CV_OK;
}

static void take(void *data, const struct cv_work *work, const struct cv_terms *terms, uint32_t arm, uint64_t taken) {
  struct record *record = data;
  assert_int_equal(taken, record->taken[arm] + 1);
  record->taken[arm] = taken;
}

static void test_a_data_file_that_has_served_enough_declines(void **state) {
  struct record record = {.most = 1};
  const struct cv_worker_record ops = {.serve = serve, .take = take, .data = &record};
  setup(&stage, 1, 5, 5);
  stage.work[0].print = 77;
  stage.work[0].scale = (struct cv_scale){.low = 0, .high = 5};
  stage.config.record = &ops;
  meet(&stage, 1);
  flush(&stage);
  assert_int_equal(stage.sent.declines, 0);
  begin(&stage);
  (void)say_terms(&stage, CAMPAIGN + 1, 1);
  deliver(&stage);
  assert_string_equal(sent_decline(&stage)->why, "the rows have served 1 campaigns");
  cv_worker_free(stage.pool);
}

/* A part of a file has its rows in its own order: whatever place is asked for, again or not, the next one leaves. */
static void test_rows_of_a_part_leave_once(void **state) {
  struct record record = {.most = 9, .taken = {3}};
  const struct cv_worker_record ops = {.serve = serve, .take = take, .data = &record};
  setup(&stage, 1, 5, 5);
  stage.work[0].score = score_of_place;
  stage.work[0].print = 77;
  stage.work[0].is_part = true;
  stage.work[0].scale = (struct cv_scale){.low = 0, .high = 5};
  stage.config.record = &ops;
  meet(&stage, 9);
  for (uint64_t i = 0; i < 4; i++) {
    assert_int_equal(token_of(CAMPAIGN, 1 + i, 50, CV_VERDICT_EXPIRED), 1000 + 3 + i);
    assert_int_equal(record.taken[0], 4 + i);
  }
  stage.rows = 7;
  begin(&stage);
  (void)say_assign(&stage, 5, 0, 0);
  deliver(&stage);
  assert_true(stage.sent.tokens == 0 && sent_decline(&stage)->used_up);
  cv_worker_free(stage.pool);
}

/* Terms that were declined, since the record denied them, come again: the rows that have left before do not. */
static void test_rows_of_a_part_leave_once_after_a_refusal(void **state) {
  struct record record = {.taken = {3}};
  const struct cv_worker_record ops = {.serve = serve, .take = take, .data = &record};
  setup(&stage, 1, 5, 5);
  stage.work[0].score = score_of_place;
  stage.work[0].print = 77;
  stage.work[0].is_part = true;
  stage.work[0].scale = (struct cv_scale){.low = 0, .high = 5};
  stage.config.record = &ops;
  meet(&stage, 9);
  flush(&stage);
  assert_int_equal(stage.sent.declines, 1);
  record.most = 9;
  begin(&stage);
  (void)say_terms(&stage, CAMPAIGN, 9);
  deliver(&stage);
  assert_int_equal(token_of(CAMPAIGN, 1, 50, CV_VERDICT_ACCEPTED), 1000 + 3);
  cv_worker_free(stage.pool);
}

/* Of a person or a program, a broker that calls each token expired gets no more of them than the terms say. */
static void test_an_expired_token_of_somebody_counts(void **state) {
  static const struct {
    const char *privatizer;
    bool comes_back;
  } cases[] = {{"none", true}, {"randomized-response", false}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_persons persons = {
        .persons = 1, .start = (uint64_t[]){0, 2}, .arm = (uint32_t[]){0, 0}, .value = (uint32_t[]){CV_GRID, 0}};
    const struct cv_stock_config config = {.persons = &persons, .first_worker = 1, .first = 1, .last = 1, .arms = ARMS};
    setup(&stage, 1, 1, 1);
    assert_int_equal(cv_stock_new(&config, &stage.config.stock), CV_OK);
    start(&stage);
    flush(&stage);
    begin(&stage);
    say_hello(&stage);
    struct cv_terms *terms = say_terms(&stage, CAMPAIGN, 1);
    (void)snprintf(terms->privatizer.name, sizeof(terms->privatizer.name), "%s", cases[i].privatizer);
    if (i > 0) {
      assert_int_equal(cv_params_set_number(&terms->privatizer.params, "epsilon", 1), CV_OK);
    }
    deliver(&stage);
    assert_int_equal(comes_back(&stage, 1, 0, CV_VERDICT_EXPIRED, NULL), cases[i].comes_back);
    cv_worker_free(stage.pool);
    cv_stock_free(stage.config.stock);
  }
}
int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_data_file_serves_its_own_scale),
      cmocka_unit_test(test_an_opinion_is_randomized_once),
      cmocka_unit_test(test_another_law_has_coins_of_its_own),
      cmocka_unit_test(test_a_comparison_with_another_has_coins_of_its_own),
      cmocka_unit_test(test_what_a_privatized_token_has_told_counts_under_later_terms),
      cmocka_unit_test(test_a_data_file_that_has_served_enough_declines),
      cmocka_unit_test(test_rows_of_a_part_leave_once),
      cmocka_unit_test(test_rows_of_a_part_leave_once_after_a_refusal),
      cmocka_unit_test(test_an_expired_token_of_somebody_counts),
  };
  return cmocka_run_group_tests_name("opinions", tests, NULL, NULL);
}
