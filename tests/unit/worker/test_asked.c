/* SPDX-License-Identifier: Apache-2.0 */
/* A pool whose scores come later: from programs or people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pool.h"

enum { LEASE_MS = 3000, QUESTIONS = 64 };

/* What the source was told, in order. */
static struct source {
  struct cv_question asked[QUESTIONS];
  size_t questions;
  uint64_t withdrawn[QUESTIONS], told[QUESTIONS];
  enum cv_withdrawn why[QUESTIONS];
  enum cv_verdict verdict[QUESTIONS];
  size_t withdrawals, verdicts;
  uint32_t room;
} source;

static struct stage stage;

static void ask(void *data, const struct cv_question *question) {
  assert_true(source.questions < QUESTIONS);
  source.asked[source.questions++] = *question;
}

static void withdraw(void *data, uint64_t question, enum cv_withdrawn why) {
  source.why[source.withdrawals] = why;
  source.withdrawn[source.withdrawals++] = question;
}

static void told(void *data, uint64_t question, enum cv_verdict verdict) {
  source.verdict[source.verdicts] = verdict;
  source.told[source.verdicts++] = question;
}

static uint32_t room(void *data) {
  return source.room;
}

static const struct cv_asker asker = {.ask = ask, .withdraw = withdraw, .told = told, .room = room};
static const struct cv_asker people = {.ask = ask, .withdraw = withdraw, .told = told, .waits = true};

static void begin_pool(const struct cv_asker *with, uint64_t last, uint32_t tokens_per_worker) {
  source = (struct source){.room = 8};
  setup(&stage, 1, last, 4);
  stage.config.asker = with;
  meet(&stage, tokens_per_worker);
  stage.pool == NULL ? fail() : (void)0;
  begin(&stage);
  say_terms(&stage, CAMPAIGN, tokens_per_worker)->lease_ms = LEASE_MS;
  deliver(&stage);
}

static void assign(uint64_t worker, uint32_t arm, uint64_t place) {
  begin(&stage);
  (void)say_assign(&stage, worker, arm, place);
  deliver(&stage);
}

static enum cv_err answer(uint64_t question, int64_t value) {
  struct cv_why why;
  enum cv_err err = cv_worker_answer(stage.pool, question, &(struct cv_score_answer){.value = value}, &why);
  flush(&stage);
  return err;
}

static void ack(enum cv_verdict verdict) {
  const struct cv_token token = *sent_token(&stage, 0);
  begin(&stage);
  say_ack(&stage, &token, verdict, NULL);
  deliver(&stage);
}

static void test_an_answer_comes_later(void **state) {
  begin_pool(&asker, 8, 1);
  assign(3, 2, 0);
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(source.questions, 1);
  assert_int_equal(source.asked[0].worker, 3);
  assert_int_equal(source.asked[0].arm, 2);
  assert_int_equal(source.asked[0].due_ms, stage.now_ms + LEASE_MS);
  stage.now_ms += LEASE_MS - 1;
  flush(&stage);
  assert_int_equal(stage.sent.tokens + stage.sent.declines, 0);
  assert_int_equal(answer(source.asked[0].number, 77), CV_OK);
  assert_int_equal(stage.sent.tokens, 1);
  assert_int_equal(sent_token(&stage, 0)->value[0], 77);
  assert_int_equal(answer(source.asked[0].number, 78), CV_ERR_NOT_FOUND);
  assert_int_equal(stage.sent.tokens, 0);
  cv_worker_free(stage.pool);
}

static void test_the_verdict_is_told(void **state) {
  begin_pool(&asker, 8, 1);
  assign(3, 2, 0);
  assert_int_equal(answer(source.asked[0].number, 77), CV_OK);
  ack(CV_VERDICT_EXPIRED);
  assert_int_equal(source.verdicts, 1);
  assert_int_equal(source.told[0], source.asked[0].number);
  assert_int_equal(source.verdict[0], CV_VERDICT_EXPIRED);
  cv_worker_free(stage.pool);
}

/* Behind a privatizer it has told what it could tell, so that the worker does not come for another one. */
static void test_a_privatized_answer_that_expired_is_not_asked_for_again(void **state) {
  for (int is_local = 0; is_local < 2; is_local++) {
    begin_pool(&asker, 1, 1);
    if (is_local == 1) {
      begin(&stage);
      struct cv_terms *terms = say_terms(&stage, CAMPAIGN, 1);
      (void)snprintf(terms->privatizer.name, sizeof(terms->privatizer.name), "randomized-response");
      assert_int_equal(cv_params_set_number(&terms->privatizer.params, "epsilon", 1), CV_OK);
      deliver(&stage);
    }
    assign(1, 2, 0);
    assert_int_equal(answer(source.asked[0].number, CV_GRID), CV_OK);
    ack(CV_VERDICT_EXPIRED);
    assert_int_equal(arrived(&stage), 1 - is_local);
    cv_worker_free(stage.pool);
  }
}

/* A broker that does not want the worker any more, and then takes what it was asked before, gets no more of it. */
static void test_a_worker_that_was_sent_away_meanwhile_begins_no_new_count(void **state) {
  const uint64_t worker = 1;
  struct cv_backoff backoff = {.worker = &worker, .workers = 1, .campaign = CAMPAIGN, .why = "no more"};
  begin_pool(&asker, 1, 2);
  assign(1, 2, 0);
  begin(&stage);
  stage.frame.backoff = &backoff;
  stage.frame.backoffs = 1;
  deliver(&stage);
  assert_int_equal(answer(source.asked[0].number, 77), CV_OK);
  ack(CV_VERDICT_ACCEPTED);
  assert_int_equal(arrived(&stage), 0);
  cv_worker_free(stage.pool);
}

/* The place is given back, and the answer that comes then has no token. */
static void test_after_the_lease_it_is_too_late(void **state) {
  begin_pool(&asker, 8, 1);
  assign(3, 2, 0);
  stage.now_ms += LEASE_MS;
  flush(&stage);
  assert_int_equal(stage.sent.declines, 1);
  assert_true(sent_decline(&stage)->has_ticket);
  assert_memory_equal(sent_decline(&stage)->ticket, stage.assign[0].ticket, CV_TICKET_BYTES);
  assert_int_equal(source.withdrawals, 1);
  assert_int_equal(source.why[0], CV_WITHDRAWN_LATE);
  assert_int_equal(answer(source.asked[0].number, 77), CV_ERR_NOT_FOUND);
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(figures(&stage).late, 1);
  cv_worker_free(stage.pool);
}

static void test_no_score_beyond_the_grid(void **state) {
  begin_pool(&asker, 8, 1);
  assign(3, 2, 0);
  assert_int_equal(answer(source.asked[0].number, -1), CV_ERR_INVALID);
  assert_int_equal(answer(source.asked[0].number, CV_GRID + 1), CV_ERR_INVALID);
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(answer(source.asked[0].number, CV_GRID), CV_OK);
  assert_int_equal(stage.sent.tokens, 1);
  cv_worker_free(stage.pool);
}

/* An open question survives a new connection; its answer leaves on the one that is open then, once. */
static void test_a_connection_that_closes_meanwhile(void **state) {
  begin_pool(&asker, 8, 1);
  assign(3, 2, 0);
  cv_worker_leave(stage.pool);
  assert_int_equal(answer(source.asked[0].number, 5), CV_OK);
  assert_int_equal(stage.sent.tokens, 0);
  cv_worker_join(stage.pool, &(struct cv_digest){0}, stage.now_ms);
  flush(&stage);
  assert_int_equal(stage.sent.tokens, 1);
  assert_int_equal(sent_token(&stage, 0)->value[0], 5);
  begin(&stage);
  say_hello(&stage);
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 0);
  cv_worker_free(stage.pool);
}

static void test_an_acknowledgement_before_the_answer_is_refused(void **state) {
  begin_pool(&asker, 8, 1);
  assign(3, 2, 0);
  struct cv_token token = {0};
  memcpy(token.ticket, stage.assign[0].ticket, sizeof(token.ticket));
  begin(&stage);
  say_ack(&stage, &token, CV_VERDICT_ACCEPTED, NULL);
  deliver_bad(&stage, CV_ERR_STATE, "an acknowledgement of an unsent token");
  cv_worker_free(stage.pool);
}

static void test_several_arms_are_several_questions(void **state) {
  static const uint32_t arms[] = {1, 0, 3};
  begin_pool(&asker, 8, 1);
  begin(&stage);
  struct cv_assign *assign = say_assign(&stage, 3, 0, 0);
  assign->arms = 3;
  assign->arm.many = arms;
  deliver(&stage);
  assert_int_equal(source.questions, 3);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(source.asked[i].arm, arms[i]);
  }
  assert_int_equal(answer(source.asked[2].number, 12), CV_OK);
  assert_int_equal(answer(source.asked[0].number, 10), CV_OK);
  assert_int_equal(answer(source.asked[0].number, 99), CV_ERR_NOT_FOUND);
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(answer(source.asked[1].number, 11), CV_OK);
  assert_int_equal(sent_token(&stage, 0)->values, 3);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(sent_token(&stage, 0)->value[i], 10 + i);
  }
  cv_worker_free(stage.pool);
}

/* It would be a second random draw for the same opinion, in one token. */
static void test_an_arm_is_asked_once_in_an_assignment(void **state) {
  static const uint32_t arms[] = {1, 0, 1};
  begin_pool(&asker, 8, 1);
  begin(&stage);
  struct cv_assign *assign = say_assign(&stage, 3, 0, 0);
  assign->arms = 3;
  assign->arm.many = arms;
  deliver_bad(&stage, CV_ERR_FORMAT, "arm 2 twice in an assignment; expected each once");
  assert_int_equal(source.questions, 0);
  cv_worker_free(stage.pool);
}

/* The source declines: the place is free at once, and the worker rests. */
static void test_a_question_is_passed(void **state) {
  begin_pool(&asker, 1, 4);
  assign(1, 0, 0);
  cv_worker_pass(stage.pool, source.asked[0].number, "no opinion", stage.now_ms + 500);
  flush(&stage);
  assert_string_equal(sent_decline(&stage)->why, "no opinion");
  assert_int_equal(arrived(&stage), 0);
  assert_int_equal(answer(source.asked[0].number, 1), CV_ERR_NOT_FOUND);
  stage.now_ms += 500;
  flush(&stage);
  assert_int_equal(arrived(&stage), 1);
  assert_int_equal(figures(&stage).passed, 1);
  cv_worker_free(stage.pool);
}

static void test_the_end_of_a_campaign_withdraws_its_questions(void **state) {
  static uint64_t done[] = {CAMPAIGN};
  begin_pool(&asker, 8, 1);
  assign(3, 2, 0);
  begin(&stage);
  stage.frame.done = done;
  stage.frame.dones = 1;
  deliver(&stage);
  assert_int_equal(source.withdrawals, 1);
  assert_int_equal(source.why[0], CV_WITHDRAWN_OVER);
  assert_int_equal(answer(source.asked[0].number, 1), CV_ERR_NOT_FOUND);
  assert_int_equal(stage.sent.tokens, 0);
  assert_true(cv_worker_is_done(stage.pool));
  cv_worker_free(stage.pool);
}

static void test_as_many_arrive_as_the_source_can_take(void **state) {
  source = (struct source){.room = 0};
  setup(&stage, 1, 100, 50);
  stage.config.asker = &asker;
  meet(&stage, 1);
  flush(&stage);
  assert_int_equal(arrived(&stage), 0);
  source.room = 3;
  cv_worker_tick(stage.pool);
  flush(&stage);
  assert_int_equal(arrived(&stage), 3);
  cv_worker_free(stage.pool);
}

static void test_a_person_arrives_when_it_is_there(void **state) {
  begin_pool(&people, 8, 2);
  assert_int_equal(arrived(&stage), 0);
  stage.now_ms += 60000;
  flush(&stage);
  assert_int_equal(arrived(&stage), 0);
  assert_true(cv_worker_come(stage.pool, 5));
  assert_true(cv_worker_come(stage.pool, 5));
  assert_false(cv_worker_come(stage.pool, 9));
  flush(&stage);
  assert_int_equal(arrived(&stage), 1);
  assert_int_equal(arrived_worker(&stage, 0), 5);
  for (uint64_t place = 0; place < 2; place++) {
    assign(5, 0, place);
    assert_int_equal(answer(source.asked[place].number, 1), CV_OK);
    ack(CV_VERDICT_ACCEPTED);
    assert_int_equal(arrived(&stage), 0);
    assert_int_equal(cv_worker_come(stage.pool, 5), place == 0);
    flush(&stage);
    assert_int_equal(arrived(&stage), place == 0);
  }
  cv_worker_free(stage.pool);
}

/* A source that privatizes itself sends what the privatizer could send, and nothing else. */
static void test_tokens_of_the_source(void **state) {
  source = (struct source){.room = 8};
  setup(&stage, 1, 8, 4);
  stage.config.asker = &people;
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  struct cv_terms *terms = say_terms(&stage, CAMPAIGN, 1);
  terms->privatizer = (struct cv_choice){.name = "randomized-response",
                                         .params = {.count = 1, .item = {{.key = "epsilon", .number = 1}}}};
  deliver(&stage);
  assert_true(cv_worker_come(stage.pool, 1));
  flush(&stage);
  assign(1, 0, 0);
  struct cv_why why;
  uint64_t question = source.asked[0].number;
  assert_int_equal(source.asked[0].law == NULL, 0);
  assert_int_equal(
      cv_worker_answer(stage.pool, question, &(struct cv_score_answer){.is_token = true, .value = CV_GRID / 2}, &why),
      CV_ERR_INVALID);
  assert_int_equal(
      cv_worker_answer(stage.pool, question, &(struct cv_score_answer){.is_token = true, .value = CV_GRID}, &why),
      CV_OK);
  flush(&stage);
  assert_int_equal(sent_token(&stage, 0)->value[0], CV_GRID);
  cv_worker_free(stage.pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_answer_comes_later),
      cmocka_unit_test(test_the_verdict_is_told),
      cmocka_unit_test(test_a_privatized_answer_that_expired_is_not_asked_for_again),
      cmocka_unit_test(test_a_worker_that_was_sent_away_meanwhile_begins_no_new_count),
      cmocka_unit_test(test_after_the_lease_it_is_too_late),
      cmocka_unit_test(test_no_score_beyond_the_grid),
      cmocka_unit_test(test_a_connection_that_closes_meanwhile),
      cmocka_unit_test(test_an_acknowledgement_before_the_answer_is_refused),
      cmocka_unit_test(test_several_arms_are_several_questions),
      cmocka_unit_test(test_an_arm_is_asked_once_in_an_assignment),
      cmocka_unit_test(test_a_question_is_passed),
      cmocka_unit_test(test_the_end_of_a_campaign_withdraws_its_questions),
      cmocka_unit_test(test_as_many_arrive_as_the_source_can_take),
      cmocka_unit_test(test_a_person_arrives_when_it_is_there),
      cmocka_unit_test(test_tokens_of_the_source),
  };
  return cmocka_run_group_tests_name("asked", tests, NULL, NULL);
}
