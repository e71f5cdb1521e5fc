/* SPDX-License-Identifier: Apache-2.0 */
/* The pool with one connection, to a broker that is played by the test. */
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

static void test_the_happy_path(void **state) {
  setup(&stage, 11, 13, 2);
  start(&stage);
  flush(&stage);
  assert_true(stage.sent.hello.present);
  assert_int_equal(stage.sent.hello.version, CV_WIRE_VERSION);
  assert_int_equal(arrived(&stage), 3);
  CV_REQUIRE(stage.sent.arrive != NULL);
  assert_int_equal(stage.sent.arrive->credit, 2);
  assert_int_equal(arrived_worker(&stage, 0), 11);
  assert_int_equal(arrived_worker(&stage, 2), 13);
  begin(&stage);
  say_hello(&stage);
  (void)say_terms(&stage, CAMPAIGN, 1);
  const struct cv_assign *first = say_assign(&stage, 11, 3, 0), *second = say_assign(&stage, 12, 1, 5);
  deliver(&stage);
  assert_false(stage.sent.hello.present);
  assert_int_equal(stage.sent.tokens, 2);
  assert_memory_equal(sent_token(&stage, 0)->ticket, first->ticket, CV_TICKET_BYTES);
  assert_memory_equal(sent_token(&stage, 1)->ticket, second->ticket, CV_TICKET_BYTES);
  assert_int_equal(sent_token(&stage, 0)->values, 1);
  assert_int_equal(sent_token(&stage, 0)->value[0], 3000);
  assert_int_equal(sent_token(&stage, 1)->value[0], 1001);
  assert_int_equal(arrived(&stage), 0);
  struct cv_token sent[2] = {*sent_token(&stage, 0), *sent_token(&stage, 1)};
  begin(&stage);
  say_ack(&stage, &sent[0], CV_VERDICT_ACCEPTED, NULL);
  say_ack(&stage, &sent[1], CV_VERDICT_ACCEPTED, NULL);
  deliver(&stage);
  assert_int_equal(arrived(&stage) + stage.sent.tokens, 0);
  assert_int_equal(figures(&stage).accepted, 2);
  assert_false(cv_worker_is_done(stage.pool));
  uint64_t done = CAMPAIGN;
  begin(&stage);
  stage.frame.done = &done;
  stage.frame.dones = 1;
  deliver(&stage);
  assert_true(cv_worker_is_done(stage.pool));
  assert_int_equal(figures(&stage).campaigns, 1);
  cv_worker_free(stage.pool);
}

static void test_one_worker_is_a_range_of_one(void **state) {
  setup(&stage, 5, 5, 64);
  meet(&stage, 1);
  assert_int_equal(arrived(&stage), 1);
  assert_false(comes_back(&stage, 5, 0, CV_VERDICT_ACCEPTED, NULL));
  assert_true(cv_worker_is_done(stage.pool));
  cv_worker_free(stage.pool);
}

/* Of twenty workers these can be hired; the broker keeps them in its queue and sends the others away. */
static bool can_be_hired(uint64_t worker) {
  return worker <= 2 || worker >= 19;
}

static void test_all_hirable_workers_wait_whatever_the_concurrency(void **state) {
  setup(&stage, 1, 20, 1);
  stage.work[0].hires = true;
  meet(&stage, 3);
  size_t waiting = arrived(&stage), hired = 0;
  for (int turn = 0; turn < 20 && hired < ARMS; turn++) {
    assert_in_range(waiting, 1, 2 + ARMS);
    uint64_t away[20];
    struct cv_backoff backoff = {.worker = away, .campaign = CAMPAIGN, .why = "a stranger"};
    for (size_t i = 0; i < arrived(&stage); i++) {
      uint64_t worker = arrived_worker(&stage, i);
      hired += can_be_hired(worker);
      if (!can_be_hired(worker)) {
        away[backoff.workers++] = worker;
      }
    }
    begin(&stage);
    stage.frame.backoff = &backoff;
    stage.frame.backoffs = 1;
    deliver(&stage);
    waiting += arrived(&stage) - backoff.workers;
  }
  assert_int_equal(hired, ARMS);
  assert_true(comes_back(&stage, 20, 0, CV_VERDICT_ACCEPTED, NULL)); /* the last to arrive is the one that is wanted */
  cv_worker_free(stage.pool);
}

static void test_several_arms_answer_in_order(void **state) {
  static const uint32_t arms[] = {2, 0, 3};
  setup(&stage, 1, 1, 1);
  meet(&stage, 1);
  begin(&stage);
  struct cv_assign *assign = say_assign(&stage, 1, 0, 0);
  assign->arms = 3;
  assign->arm.many = arms;
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 1);
  assert_int_equal(sent_token(&stage, 0)->values, 3);
  assert_int_equal(sent_token(&stage, 0)->value[0], 2000);
  assert_int_equal(sent_token(&stage, 0)->value[1], 1);
  assert_int_equal(sent_token(&stage, 0)->value[2], 3002);
  cv_worker_free(stage.pool);
}

static void test_what_is_not_acknowledged_is_sent_again_the_same(void **state) {
  setup(&stage, 1, 3, 4);
  meet(&stage, 1);
  begin(&stage);
  const struct cv_assign first = *say_assign(&stage, 1, 2, 0), second = *say_assign(&stage, 2, 1, 0);
  deliver(&stage);
  int64_t value[2] = {sent_token(&stage, 0)->value[0], sent_token(&stage, 1)->value[0]};
  begin(&stage);
  say_ack(&stage, sent_token(&stage, 0), CV_VERDICT_ACCEPTED, NULL);
  deliver(&stage);
  cv_worker_leave(stage.pool);
  flush(&stage);
  assert_int_equal(stage.sent.tokens + stage.sent.arrives, 0);
  cv_worker_join(stage.pool, &(struct cv_digest){0}, stage.now_ms);
  flush(&stage);
  assert_true(stage.sent.hello.present);
  assert_int_equal(stage.sent.tokens, 1);
  assert_memory_equal(sent_token(&stage, 0)->ticket, second.ticket, CV_TICKET_BYTES);
  assert_int_equal(sent_token(&stage, 0)->value[0], value[1]);
  assert_int_not_equal(value[0], value[1]);
  assert_int_equal(stage.scored, 2);
  /* worker 3 waited, and the broker has forgotten it; 1 and 2 have given all that the campaign wants of each */
  assert_int_equal(arrived(&stage), 1);
  assert_int_equal(arrived_worker(&stage, 0), 3);
  begin(&stage);
  say_hello(&stage);
  say_ack(&stage, sent_token(&stage, 0), CV_VERDICT_DUPLICATE, NULL);
  deliver(&stage);
  assert_int_equal(figures(&stage).duplicates, 1);
  assert_int_equal(stage.noted, 0);
  /* again, now that nothing is open */
  cv_worker_leave(stage.pool);
  cv_worker_join(stage.pool, &(struct cv_digest){0}, stage.now_ms);
  flush(&stage);
  assert_int_equal(stage.sent.tokens, 0);
  assert_memory_not_equal(first.ticket, second.ticket, CV_TICKET_BYTES);
  cv_worker_free(stage.pool);
}

static void test_an_expired_token_lets_its_worker_arrive_again(void **state) {
  setup(&stage, 1, 1, 1);
  meet(&stage, 1);
  assert_true(comes_back(&stage, 1, 0, CV_VERDICT_EXPIRED, NULL));
  assert_false(comes_back(&stage, 1, 1, CV_VERDICT_ACCEPTED, NULL));
  assert_int_equal(figures(&stage).expired, 1);
  assert_int_equal(figures(&stage).accepted, 1);
  cv_worker_free(stage.pool);
}

static void test_a_refusal_is_logged_once_per_reason(void **state) {
  setup(&stage, 1, 4, 4);
  meet(&stage, 1);
  assert_false(comes_back(&stage, 1, 0, CV_VERDICT_REFUSED, "bad ticket"));
  assert_false(comes_back(&stage, 2, 1, CV_VERDICT_REFUSED, "bad ticket"));
  assert_false(comes_back(&stage, 3, 2, CV_VERDICT_REFUSED, "out of range"));
  assert_int_equal(figures(&stage).refused, 3);
  assert_int_equal(stage.noted, 2);
  assert_non_null(strstr(stage.notes[0], "bad ticket"));
  assert_non_null(strstr(stage.notes[1], "out of range"));
  cv_worker_free(stage.pool);
}

static void test_several_tokens_of_one_worker(void **state) {
  setup(&stage, 1, 1, 1);
  meet(&stage, 3);
  assert_true(comes_back(&stage, 1, 0, CV_VERDICT_ACCEPTED, NULL));
  assert_true(comes_back(&stage, 1, 1, CV_VERDICT_ACCEPTED, NULL));
  (void)comes_back(&stage, 1, 2, CV_VERDICT_ACCEPTED, NULL);
  assert_int_equal(figures(&stage).accepted, 3);
  cv_worker_free(stage.pool);
}

/* A campaign whose terms `change` makes worse is declined, and no token leaves. */
static void declined(void (*change)(struct cv_terms *terms), const char *reason) {
  setup(&stage, 1, 2, 4);
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  change(say_terms(&stage, CAMPAIGN, 1));
  (void)say_assign(&stage, 1, 0, 0);
  deliver(&stage);
  assert_int_equal(stage.sent.declines, 1);
  assert_int_equal(sent_decline(&stage)->campaign, CAMPAIGN);
  assert_non_null(strstr(sent_decline(&stage)->why, reason));
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(stage.scored, 0);
  begin(&stage);
  (void)say_assign(&stage, 2, 0, 0);
  deliver(&stage);
  assert_int_equal(stage.sent.tokens + stage.scored, 0);
  cv_worker_free(stage.pool);
}

static void other_name(struct cv_terms *terms) {
  (void)snprintf(terms->name, sizeof(terms->name), "another");
}
static void other_arms(struct cv_terms *terms) {
  terms->arms = ARMS + 1;
}
static void other_privatizer(struct cv_terms *terms) {
  (void)snprintf(terms->privatizer.name, sizeof(terms->privatizer.name), "laplace");
}
static void unknown_privatizer(struct cv_terms *terms) {
  (void)snprintf(terms->privatizer.name, sizeof(terms->privatizer.name), "rot13");
}
static void unknown_parameter(struct cv_terms *terms) {
  assert_int_equal(cv_params_set_number(&terms->privatizer.params, "strength", 0), CV_OK);
}
static void no_mechanism(struct cv_terms *terms) {
  (void)snprintf(terms->mechanism.name, sizeof(terms->mechanism.name), "none");
}
static void printed_mechanism(struct cv_terms *terms) {
  (void)snprintf(terms->mechanism.name, sizeof(terms->mechanism.name), "hybrid-printed");
}
static void of_requester(struct cv_terms *terms, const char *requester) {
  (void)snprintf(terms->requester, sizeof(terms->requester), "%s", requester);
}
static void a_stranger(struct cv_terms *terms) {
  of_requester(terms, "eve");
}
static void another_case(struct cv_terms *terms) {
  of_requester(terms, "Alice");
}
static void nobody(struct cv_terms *terms) {
  of_requester(terms, "");
}
static void anybody(struct cv_terms *terms) {
  of_requester(terms, "any");
}
static void larger_epsilon(struct cv_terms *terms) {
  terms->epsilon_micro = 1000001;
}

static void test_weaker_terms_are_declined(void **state) {
  declined(other_name, "no scores for the campaign");
  declined(a_stranger, "requester eve is not served here; expected one of alice, bob");
  declined(another_case, "requester Alice is not served here");
  declined(nobody, "requester  is not served here");
  declined(anybody, "requester any is not served here");
  declined(other_arms, "5 arms");
  declined(other_privatizer, "privatizer laplace");
  declined(unknown_privatizer, "rot13");
  declined(unknown_parameter, "strength");
  declined(no_mechanism, "mechanism none");
  declined(printed_mechanism, "mechanism hybrid-printed");
  declined(larger_epsilon, "epsilon 1.000001");
}

static void test_terms_that_get_weaker_later_are_declined(void **state) {
  setup(&stage, 1, 2, 4);
  meet(&stage, 1);
  cv_worker_leave(stage.pool);
  cv_worker_join(stage.pool, &(struct cv_digest){0}, stage.now_ms);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  say_terms(&stage, CAMPAIGN, 1)->epsilon_micro = 4000000;
  (void)say_assign(&stage, 1, 0, 0);
  deliver(&stage);
  assert_int_equal(stage.sent.declines, 1);
  assert_int_equal(stage.sent.tokens, 0);
  cv_worker_free(stage.pool);
}

static void test_the_owners_limit_of_tokens(void **state) {
  setup(&stage, 1, 1, 1);
  stage.config.accept.tokens = 2;
  meet(&stage, 10);
  assert_true(comes_back(&stage, 1, 0, CV_VERDICT_ACCEPTED, NULL));
  assert_false(comes_back(&stage, 1, 1, CV_VERDICT_ACCEPTED, NULL));
  begin(&stage);
  (void)say_assign(&stage, 1, 0, 2);
  deliver_bad(&stage, CV_ERR_STATE, "an assignment for worker 1, which is not waiting for one");
  assert_int_equal(stage.scored, 2);
  cv_worker_free(stage.pool);
}

static uint32_t told[2]; /* given in all, by worker */

static void be_told(void *data, uint64_t worker, uint32_t scores) {
  assert_ptr_equal(data, told);
  told[worker - 1] = scores;
}

/* What was given before counts, and each score is reported as given before it leaves. */
static void test_the_owners_limit_over_restarts(void **state) {
  const uint32_t before[] = {2, 1};
  setup(&stage, 1, 2, 2);
  stage.config.accept.tokens = 2;
  stage.config.given = before;
  stage.config.give = be_told;
  stage.config.give_data = told;
  meet(&stage, 10);
  assert_false(comes_back(&stage, 2, 0, CV_VERDICT_EXPIRED, NULL));
  assert_int_equal(told[1], 2);
  assert_int_equal(told[0], 0);
  begin(&stage);
  (void)say_assign(&stage, 1, 0, 1);
  deliver_bad(&stage, CV_ERR_STATE, "an assignment for worker 1, which is not waiting for one");
  assert_int_equal(stage.scored, 1);
  cv_worker_free(stage.pool);
}

static void bad_assign(uint64_t campaign, uint64_t worker, uint32_t arm, enum cv_err err, const char *line) {
  setup(&stage, 10, 19, 4);
  meet(&stage, 1);
  begin(&stage);
  say_assign(&stage, worker, arm, 0)->campaign = campaign;
  deliver_bad(&stage, err, line);
  flush(&stage);
  assert_int_equal(stage.sent.tokens, 0);
  cv_worker_free(stage.pool);
}

static void test_a_broker_is_not_trusted(void **state) {
  bad_assign(8, 10, 0, CV_ERR_STATE, "an assignment for campaign 8 without its terms");
  bad_assign(CAMPAIGN, 9, 0, CV_ERR_DENIED, "an assignment for worker 9; expected 10 to 19");
  bad_assign(CAMPAIGN, 20, 0, CV_ERR_DENIED, "an assignment for worker 20; expected 10 to 19");
  bad_assign(CAMPAIGN, 0, 0, CV_ERR_DENIED, "an assignment for worker 0; expected 10 to 19");
  /* 8 of the 10 have arrived: twice the credit of 4 */
  bad_assign(CAMPAIGN, 19, 0, CV_ERR_STATE, "an assignment for worker 19, which is not waiting for one");
  bad_assign(CAMPAIGN, 10, ARMS, CV_ERR_FORMAT, "assignment of arm 5; expected 1 to 4");

  setup(&stage, 1, 2, 4);
  meet(&stage, 1);
  begin(&stage);
  (void)say_assign(&stage, 1, 0, 0);
  (void)say_assign(&stage, 1, 0, 1);
  deliver_bad(&stage, CV_ERR_STATE, "an assignment for worker 1, which is not waiting for one");
  cv_worker_free(stage.pool);
}

/* tokens_per_worker is a promise to the worker: a broker that reports tokens as expired cannot exceed the owner's
 * limit. */
static void test_more_tokens_than_were_agreed(void **state) {
  setup(&stage, 1, 1, 4);
  meet(&stage, 2);
  assert_true(comes_back(&stage, 1, 0, CV_VERDICT_ACCEPTED, NULL));
  assert_false(comes_back(&stage, 1, 1, CV_VERDICT_ACCEPTED, NULL));
  stage.now_ms += 5000;
  flush(&stage);
  assert_int_equal(arrived(&stage), 1); /* it asks for other campaigns' tokens */
  begin(&stage);
  (void)say_assign(&stage, 1, 0, 2);
  deliver_bad(&stage, CV_ERR_DENIED, "the broker asks worker 1 for more than the 2 tokens of the terms");
  assert_int_equal(stage.scored, 2);
  cv_worker_free(stage.pool);

  setup(&stage, 1, 1, 4);
  stage.config.accept.tokens = 3;
  meet(&stage, 1);
  assert_true(comes_back(&stage, 1, 0, CV_VERDICT_EXPIRED, NULL));
  assert_true(comes_back(&stage, 1, 1, CV_VERDICT_EXPIRED, NULL));
  assert_false(comes_back(&stage, 1, 2, CV_VERDICT_EXPIRED, NULL));
  assert_true(cv_worker_is_done(stage.pool));
  cv_worker_free(stage.pool);
}

/* Terms that are sent again, on this connection or another, do not restart the count. */
static void test_terms_sent_again_reset_nothing(void **state) {
  setup(&stage, 1, 1, 4);
  meet(&stage, 1);
  assert_false(comes_back(&stage, 1, 0, CV_VERDICT_ACCEPTED, NULL));
  cv_worker_leave(stage.pool);
  cv_worker_join(stage.pool, &(struct cv_digest){0}, stage.now_ms);
  flush(&stage);
  assert_int_equal(arrived(&stage), 0);
  begin(&stage);
  say_hello(&stage);
  (void)say_terms(&stage, CAMPAIGN, 1);
  (void)say_terms(&stage, CAMPAIGN, 1);
  deliver(&stage);
  assert_int_equal(arrived(&stage), 0);
  assert_int_equal(figures(&stage).campaigns, 1);
  cv_worker_free(stage.pool);
}

/* Otherwise the next assignment would be answered in place of one whose token waits to be sent, under both tickets. */
static void test_an_acknowledgement_of_what_has_not_been_sent(void **state) {
  setup(&stage, 1, 2, 4);
  meet(&stage, 1);
  begin(&stage);
  const struct cv_assign first = *say_assign(&stage, 1, 0, 0);
  struct cv_token token = {0};
  memcpy(token.ticket, first.ticket, CV_TICKET_BYTES);
  struct cv_why why = {0};
  assert_int_equal(cv_worker_on_crowd(stage.pool, &stage.frame, stage.now_ms, &why), CV_OK);
  begin(&stage);
  say_ack(&stage, &token, CV_VERDICT_ACCEPTED, NULL);
  deliver_bad(&stage, CV_ERR_STATE, "an acknowledgement of an unsent token");
  cv_worker_leave(stage.pool);
  cv_worker_join(stage.pool, &(struct cv_digest){0}, stage.now_ms);
  begin(&stage);
  say_hello(&stage);
  say_ack(&stage, &token, CV_VERDICT_ACCEPTED, NULL);
  deliver_bad(&stage, CV_ERR_STATE, "an acknowledgement of an unsent token");
  flush(&stage);
  assert_int_equal(stage.sent.tokens, 1);
  assert_memory_equal(sent_token(&stage, 0)->ticket, first.ticket, CV_TICKET_BYTES);
  cv_worker_free(stage.pool);
}

static void test_the_same_ticket_twice(void **state) {
  setup(&stage, 1, 2, 4);
  meet(&stage, 1);
  begin(&stage);
  const struct cv_assign first = *say_assign(&stage, 1, 0, 0);
  memcpy(say_assign(&stage, 2, 0, 1)->ticket, first.ticket, CV_TICKET_BYTES);
  deliver_bad(&stage, CV_ERR_STATE, "the broker assigned an unacknowledged ticket again");
  cv_worker_free(stage.pool);
}

static void test_messages_of_the_wrong_side_or_version(void **state) {
  struct cv_decline decline = {.campaign = CAMPAIGN};
  setup(&stage, 1, 2, 4);
  start(&stage);
  begin(&stage);
  stage.frame.hello = (struct cv_hello){.present = true, .version = 1, .program = "broker"};
  deliver_bad(&stage, CV_ERR_VERSION,
              "a hello of wire version 1 from the broker; expected version 3: upgrade the broker");
  begin(&stage);
  (void)say_terms(&stage, CAMPAIGN, 1);
  deliver_bad(&stage, CV_ERR_FORMAT, "the first message is not Hello");
  begin(&stage);
  say_hello(&stage);
  stage.frame.decline = &decline;
  stage.frame.declines = 1;
  deliver_bad(&stage, CV_ERR_DENIED, "the broker sent a message that only a worker may send");
  cv_worker_free(stage.pool);
}

/* The place of an arm is declined and named as used up; the campaign goes on with other arms. */
static void test_a_place_without_a_row_is_declined_as_used_up(void **state) {
  setup(&stage, 1, 9, 4);
  stage.rows = 2;
  meet(&stage, 1);
  begin(&stage);
  (void)say_assign(&stage, 1, 0, 1);
  (void)say_assign(&stage, 2, 3, 2);
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 1);
  assert_int_equal(stage.sent.declines, 1);
  assert_string_equal(sent_decline(&stage)->why, "the data of this arm are used up");
  assert_true(sent_decline(&stage)->used_up && sent_decline(&stage)->has_ticket);
  begin(&stage);
  (void)say_assign(&stage, 3, 0, 0);
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 1);
  assert_int_equal(stage.sent.declines, 0);
  cv_worker_free(stage.pool);
}

/* Never acknowledged, over many connections: the tokens kept are bounded, and exceeding that is the broker's fault. */
static void test_unacknowledged_tokens_are_bounded(void **state) {
  enum { CREDIT = 4 };
  struct cv_why why = {0};
  uint64_t next = 1;
  size_t sent = 0;
  enum cv_err err = CV_OK;
  setup(&stage, 1, 1000, CREDIT);
  meet(&stage, 1);
  for (int turn = 0; turn < 50 && err == CV_OK; turn++) {
    begin(&stage);
    (void)say_assign(&stage, next, 0, next);
    next++;
    err = cv_worker_on_crowd(stage.pool, &stage.frame, stage.now_ms, &why);
    flush(&stage);
    sent += stage.sent.tokens;
  }
  assert_int_equal(err, CV_ERR_LIMIT);
  assert_int_equal(sent, 2 * CREDIT);
  cv_worker_free(stage.pool);
}

static void say_done(uint64_t campaign) {
  static uint64_t done;
  done = campaign;
  begin(&stage);
  stage.frame.done = &done;
  stage.frame.dones = 1;
  deliver(&stage);
}

/* The last acknowledgements may come after Done, and missing ones do not keep the process running for ever. */
static void test_acknowledgements_behind_done(void **state) {
  setup(&stage, 1, 2, 4);
  meet(&stage, 1);
  begin(&stage);
  (void)say_assign(&stage, 1, 0, 0);
  (void)say_assign(&stage, 2, 0, 1);
  deliver(&stage);
  struct cv_token first = *sent_token(&stage, 0);
  say_done(CAMPAIGN);
  assert_false(cv_worker_is_done(stage.pool));
  begin(&stage);
  say_ack(&stage, &first, CV_VERDICT_ACCEPTED, NULL);
  deliver(&stage);
  assert_int_equal(figures(&stage).accepted, 1);
  assert_false(cv_worker_is_done(stage.pool));
  stage.now_ms += 3000;
  flush(&stage);
  assert_true(cv_worker_is_done(stage.pool));
  assert_int_equal(figures(&stage).expired, 1);
  cv_worker_free(stage.pool);
}

/* A campaign of another requester on the same broker is no reason to stop. */
static void test_a_foreign_campaign_ends_nothing(void **state) {
  setup(&stage, 1, 9, 4);
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  other_name(say_terms(&stage, 3, 1));
  deliver(&stage);
  assert_int_equal(stage.sent.declines, 1);
  say_done(3);
  assert_false(cv_worker_is_done(stage.pool));
  cv_worker_free(stage.pool);
}

/* A stranger's campaign with the right name gets no worker, and the intended one is waited for. */
static void test_a_strangers_campaign_of_the_right_name(void **state) {
  setup(&stage, 1, 2, 4);
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  a_stranger(say_terms(&stage, 3, 1));
  deliver(&stage);
  assert_int_equal(stage.sent.declines, 1);
  assert_string_equal(stage.notes[0],
                      "declined campaign \"test\": requester eve is not served here; expected one of alice, bob");
  say_done(3);
  assert_false(cv_worker_is_done(stage.pool));
  begin(&stage);
  (void)say_terms(&stage, CAMPAIGN, 1);
  deliver(&stage);
  assert_false(comes_back(&stage, 1, 0, CV_VERDICT_ACCEPTED, NULL));
  assert_int_equal(figures(&stage).accepted, 1);
  cv_worker_free(stage.pool);
}

static enum cv_err score_low(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  *ret_score = 7;
  return CV_OK;
}

/* Each campaign is answered from its own scores; the owner's limit and the end apply to all together. */
static void test_several_campaigns_of_several_requesters(void **state) {
  setup(&stage, 1, 1, 4);
  stage.config.accept.tokens = 2;
  stage.work[1] = (struct cv_work){.campaign = "second", .arms = 2, .score = score_low, .data = &stage};
  stage.config.works = 2;
  meet(&stage, 1);
  assert_false(cv_worker_is_done(stage.pool));
  assert_false(comes_back(&stage, 1, 0, CV_VERDICT_ACCEPTED, NULL));
  say_done(CAMPAIGN);
  assert_false(cv_worker_is_done(stage.pool)); /* the second campaign has not appeared */
  begin(&stage);
  struct cv_terms *terms = say_terms(&stage, CAMPAIGN + 1, 5);
  (void)snprintf(terms->name, sizeof(terms->name), "second");
  of_requester(terms, "bob");
  terms->arms = 2;
  say_assign(&stage, 1, 1, 0)->campaign = CAMPAIGN + 1;
  deliver(&stage);
  assert_int_equal(stage.sent.declines, 0);
  assert_int_equal(stage.sent.tokens, 1);
  assert_int_equal(sent_token(&stage, 0)->value[0], 7);
  begin(&stage);
  say_ack(&stage, sent_token(&stage, 0), CV_VERDICT_ACCEPTED, NULL);
  deliver(&stage);
  assert_int_equal(arrived(&stage), 0); /* two tokens in total, whatever the second campaign asks for */
  begin(&stage);
  terms = say_terms(&stage, CAMPAIGN + 2, 1);
  (void)snprintf(terms->name, sizeof(terms->name), "third");
  deliver(&stage);
  assert_string_equal(sent_decline(&stage)->why, "this worker has no scores for the campaign");
  cv_worker_free(stage.pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_happy_path),
      cmocka_unit_test(test_one_worker_is_a_range_of_one),
      cmocka_unit_test(test_all_hirable_workers_wait_whatever_the_concurrency),
      cmocka_unit_test(test_several_arms_answer_in_order),
      cmocka_unit_test(test_what_is_not_acknowledged_is_sent_again_the_same),
      cmocka_unit_test(test_an_expired_token_lets_its_worker_arrive_again),
      cmocka_unit_test(test_a_refusal_is_logged_once_per_reason),
      cmocka_unit_test(test_several_tokens_of_one_worker),
      cmocka_unit_test(test_weaker_terms_are_declined),
      cmocka_unit_test(test_terms_that_get_weaker_later_are_declined),
      cmocka_unit_test(test_the_owners_limit_of_tokens),
      cmocka_unit_test(test_the_owners_limit_over_restarts),
      cmocka_unit_test(test_a_broker_is_not_trusted),
      cmocka_unit_test(test_more_tokens_than_were_agreed),
      cmocka_unit_test(test_terms_sent_again_reset_nothing),
      cmocka_unit_test(test_an_acknowledgement_of_what_has_not_been_sent),
      cmocka_unit_test(test_the_same_ticket_twice),
      cmocka_unit_test(test_acknowledgements_behind_done),
      cmocka_unit_test(test_a_foreign_campaign_ends_nothing),
      cmocka_unit_test(test_messages_of_the_wrong_side_or_version),
      cmocka_unit_test(test_a_place_without_a_row_is_declined_as_used_up),
      cmocka_unit_test(test_unacknowledged_tokens_are_bounded),
      cmocka_unit_test(test_a_strangers_campaign_of_the_right_name),
      cmocka_unit_test(test_several_campaigns_of_several_requesters),
  };
  return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
