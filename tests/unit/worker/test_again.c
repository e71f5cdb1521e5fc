/* SPDX-License-Identifier: Apache-2.0 */
/* One question about one opinion: a broker that lies asks again, under other tickets, places, slots and terms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "tests/support/duo.h"
#include "tests/unit/worker/pool.h"

#define ITEM "this worker has been asked about this item already"
#define PAIR "this worker has been asked about this pair already"

enum { REST_MS = 1000 };

static struct stage stage;
static uint64_t tickets;

/* ---- a source that answers later ---- */

static struct {
  uint64_t question;
  uint32_t asked;
} source;

static void ask(void *data, const struct cv_question *question) {
  source.question = question->number;
  source.asked++;
}

static void withdraw(void *data, uint64_t question, enum cv_withdrawn why) {
}

static void told(void *data, uint64_t question, enum cv_verdict verdict) {
}

static const struct cv_asker asker = {.ask = ask, .withdraw = withdraw, .told = told};

static void answer(void) {
  assert_int_equal(cv_worker_answer(stage.pool, source.question, &(struct cv_score_answer){.value = CV_GRID}, NULL),
                   CV_OK);
  flush(&stage);
}

/* ---- what the broker says ---- */

enum rule { ONCE, REPEAT };

static void privately(struct cv_terms *terms) {
  (void)snprintf(terms->privatizer.name, sizeof(terms->privatizer.name), "randomized-response");
  assert_int_equal(cv_params_set_number(&terms->privatizer.params, "epsilon", 1), CV_OK);
}

static void tell(uint32_t tokens, enum rule rule, bool is_local) {
  begin(&stage);
  struct cv_terms *terms = say_terms(&stage, CAMPAIGN, tokens);
  terms->repeat = rule == REPEAT;
  terms->arms = stage.work[0].arms;
  terms->pairs = stage.work[0].pairs;
  if (is_local) {
    privately(terms);
  }
  deliver(&stage);
}

static void set(void) {
  setup(&stage, 1, 1, 4);
  source.asked = 0;
}

static void open_pool(uint32_t tokens, enum rule rule, bool is_local) {
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  deliver(&stage);
  tell(tokens, rule, is_local);
}

static void deliver_assign(uint32_t arm, uint32_t opponent, uint32_t slot) {
  begin(&stage);
  struct cv_assign *assign = say_assign(&stage, 1, arm, ++tickets);
  assign->opponent = opponent;
  assign->slot = slot;
  deliver(&stage);
  if (stage.config.asker != NULL && stage.sent.declines == 0) {
    answer();
  }
}

/* The worker comes again, if it has to rest. */
static void rested(void) {
  assert_int_equal(arrived(&stage), 0);
  stage.now_ms += REST_MS;
  flush(&stage);
  assert_int_equal(arrived(&stage), 1);
}

static void declined_as(const char *why) {
  assert_int_equal(stage.sent.tokens, 0);
  assert_true(sent_decline(&stage)->has_ticket);
  assert_string_equal(sent_decline(&stage)->why, why);
}

static void refused_with(uint32_t arm, uint32_t opponent, const char *why) {
  uint32_t scored = stage.scored, asked = source.asked;
  deliver_assign(arm, opponent, 0);
  declined_as(why);
  assert_int_equal(stage.scored, scored);
  assert_int_equal(source.asked, asked);
}

static void gave(enum cv_verdict verdict) {
  assert_int_equal(stage.sent.tokens, 1);
  const struct cv_token token = *sent_token(&stage, 0);
  begin(&stage);
  say_ack(&stage, &token, verdict, NULL);
  deliver(&stage);
}

static void given(uint32_t arm, uint32_t opponent, enum cv_verdict verdict) {
  deliver_assign(arm, opponent, 0);
  gave(verdict);
}

/* ---- workers without a source ---- */

static void test_each_item_once(void **state) {
  set();
  open_pool(3, ONCE, false);
  given(0, 0, CV_VERDICT_ACCEPTED);
  for (int i = 0; i < 3; i++) {
    refused_with(0, 0, ITEM);
    rested();
  }
  given(1, 0, CV_VERDICT_DUPLICATE);
  refused_with(1, 0, ITEM);
  rested();
  given(3, 0, CV_VERDICT_ACCEPTED);
  assert_int_equal(figures(&stage).accepted + figures(&stage).duplicates, 3);
  cv_worker_free(stage.pool);
}

static void test_a_token_that_counted_for_nothing_is_forgotten(void **state) {
  set();
  open_pool(2, ONCE, false);
  given(0, 0, CV_VERDICT_EXPIRED);
  given(0, 0, CV_VERDICT_ACCEPTED);
  refused_with(0, 0, ITEM);
  cv_worker_free(stage.pool);
}

static void test_a_campaign_that_repeats(void **state) {
  set();
  open_pool(3, REPEAT, false);
  for (int i = 0; i < 3; i++) {
    given(0, 0, CV_VERDICT_ACCEPTED);
  }
  cv_worker_free(stage.pool);
}

static void test_who_is_hired_answers_again(void **state) {
  set();
  stage.work[0].hires = true;
  open_pool(3, ONCE, false);
  for (int i = 0; i < 3; i++) {
    given(0, 0, CV_VERDICT_ACCEPTED);
  }
  cv_worker_free(stage.pool);
}

static void test_a_pair_in_both_orders(void **state) {
  set();
  stage.work[0].pairs = true;
  open_pool(4, ONCE, false);
  given(0, 3, CV_VERDICT_ACCEPTED);
  refused_with(2, 1, PAIR);
  rested();
  refused_with(0, 3, PAIR);
  rested();
  given(0, 2, CV_VERDICT_ACCEPTED);
  given(3, 3, CV_VERDICT_EXPIRED);
  given(2, 4, CV_VERDICT_ACCEPTED);
  refused_with(3, 3, PAIR);
  cv_worker_free(stage.pool);
}

static void assign_many(const uint32_t *arms, uint32_t n) {
  begin(&stage);
  struct cv_assign *assign = say_assign(&stage, 1, 0, ++tickets);
  assign->arms = n;
  assign->arm.many = arms;
  deliver(&stage);
}

static void test_each_of_several_items(void **state) {
  static const uint32_t first[] = {0, 1}, overlap[] = {2, 1}, rest[] = {3, 2};
  set();
  open_pool(4, ONCE, false);
  assign_many(first, 2);
  gave(CV_VERDICT_EXPIRED);
  assign_many(first, 2);
  gave(CV_VERDICT_ACCEPTED);
  assign_many(overlap, 2);
  declined_as(ITEM);
  rested();
  assign_many(rest, 2);
  gave(CV_VERDICT_ACCEPTED);
  assert_true(cv_worker_is_done(stage.pool));
  cv_worker_free(stage.pool);
}

/* As if it had given all that the campaign takes. */
static void test_a_worker_without_further_questions_leaves(void **state) {
  set();
  open_pool(9, ONCE, false);
  for (uint32_t arm = 0; arm < ARMS; arm++) {
    given(arm, 0, CV_VERDICT_ACCEPTED);
    assert_int_equal(arrived(&stage), arm + 1 < ARMS);
  }
  assert_true(cv_worker_is_done(stage.pool));
  cv_worker_free(stage.pool);
}

/* So many that an answer is a number in a list. */
static void test_many_items(void **state) {
  set();
  stage.work[0].arms = 1000;
  open_pool(4, ONCE, false);
  given(999, 0, CV_VERDICT_ACCEPTED);
  given(500, 0, CV_VERDICT_EXPIRED);
  given(7, 0, CV_VERDICT_ACCEPTED);
  given(500, 0, CV_VERDICT_ACCEPTED);
  static const uint32_t again[] = {7, 500, 999};
  for (size_t i = 0; i < CV_COUNT(again); i++) {
    refused_with(again[i], 0, ITEM);
    rested();
  }
  given(0, 0, CV_VERDICT_ACCEPTED);
  assert_true(cv_worker_is_done(stage.pool));
  cv_worker_free(stage.pool);
}

/* ---- terms that change ---- */

static void test_terms_do_not_change_once_a_worker_has_answered(void **state) {
  static const char line[] =
      "the broker tells another name, number of arms or of tokens per worker, kind of score, privatizer or `repeat` "
      "than before; expected terms that do not change once a worker has answered";
  static const struct {
    uint32_t tokens;
    enum rule rule;
  } changed[] = {{1, ONCE}, {4, ONCE}, {3, REPEAT}};
  for (size_t i = 0; i < CV_COUNT(changed); i++) {
    set();
    open_pool(2, REPEAT, false);
    tell(3, ONCE, false); /* nobody has answered */
    assert_int_equal(stage.sent.declines, 0);
    given(0, 0, CV_VERDICT_ACCEPTED);
    tell(changed[i].tokens, changed[i].rule, false);
    assert_string_equal(sent_decline(&stage)->why, line);
    tell(3, ONCE, false);
    assert_int_equal(stage.sent.declines, 0);
    refused_with(0, 0, ITEM);
    rested();
    given(1, 0, CV_VERDICT_ACCEPTED);
    cv_worker_free(stage.pool);
  }
}

/* ---- people and programs ---- */

static void test_behind_a_privatizer_it_counts_whatever_the_broker_says(void **state) {
  static const enum cv_verdict verdicts[] = {CV_VERDICT_ACCEPTED, CV_VERDICT_EXPIRED};
  for (int rule = ONCE; rule <= REPEAT; rule++) {
    for (size_t i = 0; i < CV_COUNT(verdicts); i++) {
      set();
      stage.config.asker = &asker;
      open_pool(3, (enum rule)rule, true);
      given(0, 0, verdicts[i]);
      refused_with(0, 0, ITEM);
      rested();
      given(1, 0, verdicts[i]);
      refused_with(1, 0, ITEM);
      cv_worker_free(stage.pool);
    }
  }
}

static void test_without_a_privatizer_the_broker_may_repeat(void **state) {
  set();
  stage.config.asker = &asker;
  open_pool(3, REPEAT, false);
  given(0, 0, CV_VERDICT_ACCEPTED);
  given(0, 0, CV_VERDICT_ACCEPTED);
  cv_worker_free(stage.pool);
}

/* Bad terms, "expired", good terms: the token has told what it could tell before that. */
static void test_terms_in_between_undo_nothing(void **state) {
  set();
  stage.config.asker = &asker;
  open_pool(2, REPEAT, true);
  deliver_assign(0, 0, 0);
  const struct cv_token token = *sent_token(&stage, 0);
  begin(&stage);
  say_terms(&stage, CAMPAIGN, 2)->epsilon_micro = UINT64_MAX;
  deliver(&stage);
  assert_int_equal(stage.sent.declines, 1);
  begin(&stage);
  say_ack(&stage, &token, CV_VERDICT_EXPIRED, NULL);
  deliver(&stage);
  tell(2, REPEAT, true);
  flush(&stage);
  refused_with(0, 0, ITEM);
  rested();
  given(1, 0, CV_VERDICT_ACCEPTED);
  assert_true(cv_worker_is_done(stage.pool)); /* two tokens in all */
  cv_worker_free(stage.pool);
}

/* A worker that is sent away while its answer is awaited has not given less by that. */
static void test_a_back_off_does_not_restart_the_count(void **state) {
  static uint64_t worker[] = {1};
  struct cv_backoff backoff = {.worker = worker, .workers = 1, .campaign = CAMPAIGN};
  set();
  stage.config.asker = &asker;
  open_pool(1, REPEAT, false);
  begin(&stage);
  (void)say_assign(&stage, 1, 0, ++tickets);
  deliver(&stage);
  begin(&stage);
  stage.frame.backoff = &backoff;
  stage.frame.backoffs = 1;
  deliver(&stage);
  answer();
  gave(CV_VERDICT_ACCEPTED);
  assert_int_equal(arrived(&stage), 0);
  cv_worker_free(stage.pool);
}

static void assign_in(uint64_t campaign, uint32_t arm) {
  begin(&stage);
  say_assign(&stage, 1, arm, ++tickets)->campaign = campaign;
  deliver(&stage);
}

/* The broker numbers campaigns. */
static void test_a_name_has_one_record_whatever_its_numbers(void **state) {
  set();
  stage.config.asker = &asker;
  open_pool(9, ONCE, true);
  begin(&stage);
  struct cv_terms *terms = say_terms(&stage, CAMPAIGN + 1, 1); /* and whatever else it tells */
  terms->arms = ARMS;
  terms->repeat = true;
  privately(terms);
  deliver(&stage);
  given(0, 0, CV_VERDICT_EXPIRED);
  assign_in(CAMPAIGN + 1, 0);
  declined_as(ITEM);
  rested();
  assign_in(CAMPAIGN + 1, 1);
  answer();
  gave(CV_VERDICT_ACCEPTED);
  refused_with(1, 0, ITEM);
  rested();
  given(2, 0, CV_VERDICT_ACCEPTED);
  given(3, 0, CV_VERDICT_ACCEPTED);
  assert_true(cv_worker_is_done(stage.pool));
  cv_worker_free(stage.pool);
}

/* Under that number the store has what belongs to the name. */
static void test_there_is_no_campaign_0(void **state) {
  set();
  stage.config.asker = &asker;
  open_pool(3, ONCE, true);
  begin(&stage);
  (void)say_terms(&stage, 0, 3);
  deliver_bad(&stage, CV_ERR_FORMAT, "the broker tells a campaign 0; expected a number from 1 on");
  cv_worker_free(stage.pool);
}

/* What is answered then would be recorded as something else. */
static void test_a_question_ends_with_its_terms(void **state) {
  for (int is_renamed = 0; is_renamed < 2; is_renamed++) {
    set();
    stage.config.asker = &asker;
    stage.config.works = 2;
    stage.work[1] = stage.work[0];
    stage.work[1].campaign = "other";
    open_pool(3, ONCE, true);
    assign_in(CAMPAIGN, 0);
    tell(3, ONCE, true); /* the same again */
    answer();
    gave(CV_VERDICT_ACCEPTED);
    cv_worker_free(stage.pool);
    start(&stage);
    flush(&stage);
    begin(&stage);
    say_hello(&stage);
    deliver(&stage);
    tell(3, ONCE, true);
    assign_in(CAMPAIGN, 0);
    begin(&stage);
    struct cv_terms *terms = say_terms(&stage, CAMPAIGN, 3);
    terms->arms = ARMS;
    if (is_renamed) {
      (void)snprintf(terms->name, sizeof(terms->name), "other");
      privately(terms);
    }
    deliver(&stage);
    assert_int_equal(stage.sent.declines, 0);
    assert_int_equal(cv_worker_answer(stage.pool, source.question, &(struct cv_score_answer){.value = CV_GRID}, NULL),
                     CV_ERR_NOT_FOUND);
    cv_worker_free(stage.pool);
  }
}

/* ---- what is stored ---- */

static struct {
  uint64_t question[8]; /* of worker 1 */
  size_t questions;
  enum cv_err err;
} stored;

static enum cv_err answered(void *data, const struct cv_work *work, const struct cv_terms *terms,
                            enum cv_err (*each)(void *to, uint64_t worker, uint64_t question), void *to,
                            struct cv_why *why) {
  assert_string_equal(work->campaign, "test");
  assert_true(terms == NULL || terms->id == CAMPAIGN);
  for (size_t i = 0; i < stored.questions; i++) {
    assert_int_equal(each(to, 1, stored.question[i]), CV_OK);
  }
  return stored.err == CV_OK ? CV_OK : cv_fail(why, stored.err, "the disk is full");
}

static void keep(void *data, const struct cv_work *work, const struct cv_terms *terms, uint64_t worker,
                 uint64_t question, bool is_answered) {
  assert_string_equal(work->campaign, "test");
  assert_int_equal(worker, 1);
  if (is_answered) {
    assert_true(stored.questions < CV_COUNT(stored.question));
    stored.question[stored.questions++] = question;
  } else {
    assert_int_equal(stored.question[--stored.questions], question);
  }
}

static const struct cv_worker_record record = {.answered = answered, .answer = keep};

static void test_answers_outlive_the_process(void **state) {
  for (uint32_t tokens = 1; tokens <= 3; tokens += 2) {
    memset(&stored, 0, sizeof(stored));
    set();
    stage.config.asker = &asker;
    stage.config.record = &record;
    open_pool(tokens, ONCE, true);
    given(2, 0, CV_VERDICT_EXPIRED);
    assert_int_equal(stored.questions, 1);
    cv_worker_free(stage.pool);
    set();
    stage.config.asker = &asker;
    stage.config.record = &record;
    open_pool(tokens, REPEAT, true);
    refused_with(2, 0, ITEM);
    rested();
    given(0, 0, CV_VERDICT_ACCEPTED);
    assert_int_equal(stored.questions, 2);
    cv_worker_free(stage.pool);
  }
}

static void test_what_counted_for_nothing_is_not_stored(void **state) {
  memset(&stored, 0, sizeof(stored));
  set();
  stage.config.asker = &asker;
  stage.config.record = &record;
  open_pool(3, ONCE, false);
  given(2, 0, CV_VERDICT_EXPIRED);
  assert_int_equal(stored.questions, 0);
  given(2, 0, CV_VERDICT_ACCEPTED);
  assert_int_equal(stored.questions, 1);
  cv_worker_free(stage.pool);
}

/* A part of the record would let a broker ask again. */
static void test_a_record_that_cannot_be_read_declines(void **state) {
  memset(&stored, 0, sizeof(stored));
  stored.question[stored.questions++] = 2;
  stored.err = CV_ERR_IO;
  set();
  stage.config.asker = &asker;
  stage.config.record = &record;
  open_pool(3, ONCE, true);
  assert_string_equal(sent_decline(&stage)->why, "the disk is full");
  stored.err = CV_OK;
  tell(3, ONCE, true);
  refused_with(2, 0, ITEM);
  cv_worker_free(stage.pool);
}

/* What was stored under other terms, of more items or more tokens a worker, does no harm. */
static void test_stored_answers_beyond_the_terms(void **state) {
  memset(&stored, 0, sizeof(stored));
  for (uint64_t i = 0; i + 1 < CV_COUNT(stored.question); i++) {
    stored.question[stored.questions++] = UINT64_MAX - 3 * i;
  }
  stored.question[3] = 1;
  stored.question[4] = 3;
  set();
  stage.config.asker = &asker;
  stage.config.record = &record;
  open_pool(1, ONCE, true);
  refused_with(1, 0, ITEM);
  rested();
  given(0, 0, CV_VERDICT_ACCEPTED);
  cv_worker_free(stage.pool);
}

/* ---- persons with rows of their own ---- */

static void test_a_person_gives_one_row_of_an_item(void **state) {
  struct cv_persons persons = {
      .persons = 1, .start = (uint64_t[]){0, 3}, .arm = (uint32_t[]){0, 0, 1}, .value = (uint32_t[]){CV_GRID, 0, 5}};
  const struct cv_stock_config config = {.persons = &persons, .first_worker = 1, .first = 1, .last = 1, .arms = ARMS};
  for (int restarts = 0; restarts < 2; restarts++) {
    set();
    assert_int_equal(cv_stock_new(&config, &stage.config.stock), CV_OK);
    if (restarts) {
      assert_true(cv_stock_mark(stage.config.stock, 1));
    }
    open_pool(9, ONCE, false);
    if (!restarts) {
      given(0, 0, CV_VERDICT_ACCEPTED);
    }
    assert_int_equal(cv_stock_left(stage.config.stock, 1), 1);
    assert_int_equal(cv_stock_given(stage.config.stock, 1), 1);
    refused_with(0, 0, ITEM);
    stage.now_ms += REST_MS;
    flush(&stage);
    assert_int_equal(arrived(&stage), 1);
    given(1, 0, CV_VERDICT_ACCEPTED);
    stage.now_ms += REST_MS;
    flush(&stage); /* says that its arms are used up */
    flush(&stage);
    assert_true(cv_worker_is_done(stage.pool));
    cv_worker_free(stage.pool);
    cv_stock_free(stage.config.stock);
  }
}

/* ---- two brokers ---- */

static struct duo duo;

static void hear_co(struct cv_share_frame frame) {
  assert_int_equal(cv_worker_on_share(stage.pool, &frame, stage.now_ms, NULL), CV_OK);
  flush(&stage);
}

static void say_duo_terms(struct stage *to, bool is_local) {
  struct cv_terms *terms = say_terms(to, CAMPAIGN, 3);
  terms->split = duo.split;
  if (is_local) {
    privately(terms);
  }
}

static uint32_t counted;

static void count(void *data, uint64_t worker, uint32_t scores) {
  counted = scores;
}

static void meet_both(bool is_local, uint64_t limit) {
  struct cv_share_frame sent;
  struct stage other = {0};
  set();
  duo_init(&duo, CV_SPLIT_BIT);
  stage.broker = duo.keys.broker;
  stage.config.accept.pair = &duo.keys;
  stage.config.accept.pairs = 1;
  stage.config.accept.tokens = limit;
  stage.config.give = count;
  stage.config.session = &duo.ops;
  stage.config.asker = &asker;
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  say_duo_terms(&stage, is_local);
  deliver(&stage);
  cv_worker_join_co(stage.pool, &duo.keys.cobroker);
  assert_true(cv_worker_flush_share(stage.pool, stage.now_ms, &sent));
  hear_co((struct cv_share_frame){.hello = {.present = true, .version = CV_WIRE_VERSION, .program = "co-broker"}});
  say_duo_terms(&other, is_local);
  struct cv_share_session session = {.terms = other.terms[0], .id = {1}};
  hear_co((struct cv_share_frame){.sessions = 1, .session = &session});
}

/* A slot whose token was called expired may be asked for again; but not for a second answer about one opinion. */
static void test_a_slot_that_is_open(void **state) {
  for (int is_local = 0; is_local < 2; is_local++) {
    meet_both(is_local == 1, 0);
    deliver_assign(2, 0, 0);
    gave(CV_VERDICT_EXPIRED);
    deliver_assign(2, 0, 0);
    if (is_local) {
      declined_as(ITEM);
      rested();
    } else {
      gave(CV_VERDICT_ACCEPTED);
    }
    deliver_assign(1, 0, 1);
    gave(CV_VERDICT_ACCEPTED);
    cv_worker_free(stage.pool);
  }
}

/* A broker that calls tokens expired may use a slot again, but each answer has told something. */
static void test_an_open_slot_counts_for_each_answer(void **state) {
  for (uint64_t limit = 1; limit <= 2; limit++) {
    meet_both(true, limit);
    deliver_assign(0, 0, 0);
    gave(CV_VERDICT_EXPIRED);
    assert_int_equal(arrived(&stage), limit - 1);
    assert_int_equal(counted, 1);
    if (limit == 2) {
      deliver_assign(1, 0, 0);
      gave(CV_VERDICT_EXPIRED);
      assert_int_equal(arrived(&stage), 0);
      assert_int_equal(counted, 2);
    }
    cv_worker_free(stage.pool);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_item_once),
      cmocka_unit_test(test_a_token_that_counted_for_nothing_is_forgotten),
      cmocka_unit_test(test_a_campaign_that_repeats),
      cmocka_unit_test(test_who_is_hired_answers_again),
      cmocka_unit_test(test_a_pair_in_both_orders),
      cmocka_unit_test(test_each_of_several_items),
      cmocka_unit_test(test_a_worker_without_further_questions_leaves),
      cmocka_unit_test(test_many_items),
      cmocka_unit_test(test_terms_do_not_change_once_a_worker_has_answered),
      cmocka_unit_test(test_behind_a_privatizer_it_counts_whatever_the_broker_says),
      cmocka_unit_test(test_without_a_privatizer_the_broker_may_repeat),
      cmocka_unit_test(test_terms_in_between_undo_nothing),
      cmocka_unit_test(test_a_back_off_does_not_restart_the_count),
      cmocka_unit_test(test_a_name_has_one_record_whatever_its_numbers),
      cmocka_unit_test(test_there_is_no_campaign_0),
      cmocka_unit_test(test_a_question_ends_with_its_terms),
      cmocka_unit_test(test_answers_outlive_the_process),
      cmocka_unit_test(test_what_counted_for_nothing_is_not_stored),
      cmocka_unit_test(test_a_record_that_cannot_be_read_declines),
      cmocka_unit_test(test_stored_answers_beyond_the_terms),
      cmocka_unit_test(test_a_person_gives_one_row_of_an_item),
      cmocka_unit_test(test_a_slot_that_is_open),
      cmocka_unit_test(test_an_open_slot_counts_for_each_answer),
  };
  return cmocka_run_group_tests_name("again", tests, NULL, NULL);
}
