/* SPDX-License-Identifier: Apache-2.0 */
/* The pool with two connections, to a broker and a co-broker that are played by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "tests/support/duo.h"
#include "tests/unit/worker/pool.h"

static struct stage stage;
static struct duo duo;
static uint32_t given; /* the last total that the pool reported */
static const uint8_t id[CV_SPLIT_SESSION_BYTES] = "a session's id";

static void give(void *data, uint64_t worker, uint32_t scores) {
  given = scores;
}

static void make(uint64_t workers, uint32_t score_bits) {
  duo_init(&duo, score_bits);
  setup(&stage, 1, workers, 4);
  stage.broker = duo.keys.broker;
  stage.config.accept.pair = &duo.keys;
  stage.config.accept.pairs = 1;
  stage.config.session = &duo.ops;
  stage.config.give = give;
  given = 0;
}

static void finish(void) {
  cv_worker_free(stage.pool);
  assert_int_equal(duo.open, 0);
}

/* ---- what the two say ---- */

static struct cv_terms *say_duo_terms(uint32_t tokens_per_worker) {
  struct cv_terms *terms = say_terms(&stage, CAMPAIGN, tokens_per_worker);
  terms->split = duo.split;
  terms->lease_ms = 4000;
  return terms;
}

/* Of worker 1's slot `slot`. */
static struct cv_assign *say_slot(uint64_t worker, uint64_t place, uint32_t slot) {
  struct cv_assign *assign = say_assign(&stage, worker, 2, place);
  assign->plan = 6;
  assign->slot = slot;
  return assign;
}

/* The broker is there, and has told the terms. */
static void meet_broker(uint32_t tokens_per_worker) {
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  (void)say_duo_terms(tokens_per_worker);
  deliver(&stage);
}

static size_t entered(void) {
  struct cv_share_frame sent;
  bool says = cv_worker_flush_share(stage.pool, stage.now_ms, &sent);
  assert_true(!says || sent.enters == 0 || sent.enter[0] == CAMPAIGN);
  return says ? sent.enters : 0;
}

static enum cv_err hear(struct cv_share_frame frame, bool hello, struct cv_why *why) {
  if (hello) {
    frame.hello = (struct cv_hello){.present = true, .version = CV_WIRE_VERSION, .program = "co-broker"};
  }
  enum cv_err err = cv_worker_on_share(stage.pool, &frame, stage.now_ms, why);
  flush(&stage);
  return err;
}

static void join_cobroker(void) {
  cv_worker_join_co(stage.pool, &duo.keys.cobroker);
  struct cv_share_frame sent;
  assert_true(cv_worker_flush_share(stage.pool, stage.now_ms, &sent));
  assert_true(sent.hello.present);
  assert_int_equal(sent.hello.version, CV_WIRE_VERSION);
  assert_int_equal(hear((struct cv_share_frame){0}, true, NULL), CV_OK);
}

static struct cv_share_session session_of(uint32_t tokens_per_worker) {
  struct stage other = {0};
  struct cv_share_session session = {.terms = *say_terms(&other, CAMPAIGN, tokens_per_worker)};
  session.terms.split = duo.split;
  memcpy(session.id, id, sizeof(id));
  return session;
}

static void say_session(uint32_t tokens_per_worker) {
  struct cv_share_session session = session_of(tokens_per_worker);
  struct cv_why why = {.text = ""};
  if (hear((struct cv_share_frame){.sessions = 1, .session = &session}, false, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static void turn_away(uint32_t again_ms, const char *why) {
  struct cv_share_turned turned = {.campaign = CAMPAIGN, .why = why, .again_ms = again_ms};
  assert_int_equal(hear((struct cv_share_frame){.turned = 1, .turn = &turned}, false, NULL), CV_OK);
}

/* Both are there, and the session stands. */
static void meet_both(uint32_t tokens_per_worker) {
  meet_broker(tokens_per_worker);
  cv_worker_join_co(stage.pool, &duo.keys.cobroker);
  assert_int_equal(entered(), 1);
  assert_int_equal(hear((struct cv_share_frame){0}, true, NULL), CV_OK);
  say_session(tokens_per_worker);
}

static void assign_slot(uint64_t worker, uint64_t place, uint32_t slot) {
  begin(&stage);
  (void)say_slot(worker, place, slot);
  deliver(&stage);
}

static void ack(const struct cv_token *token, enum cv_verdict verdict) {
  begin(&stage);
  say_ack(&stage, token, verdict, NULL);
  deliver(&stage);
}

/* ---- what they find ---- */

/* The token that was sent last, which is of this place and slot. */
static int64_t judged(uint64_t worker, uint64_t place, uint32_t slot) {
  const struct cv_token *token = sent_token(&stage, 0);
  assert_int_equal(stage.sent.tokens, 1);
  assert_non_null(token->share);
  assert_int_equal(token->values, 0);
  assert_memory_equal(token->share->session, id, sizeof(id));
  struct cv_split_token at = {.plan = 6, .arm = 2, .place = place, .worker = worker, .slot = slot};
  struct cv_digest context;
  memcpy(at.nonce, token->share->nonce, sizeof(at.nonce));
  cv_split_context(&duo.split, &duo.keys, CAMPAIGN, cv_sha256, &context);
  return duo_judge(&duo, token->share, &context, &at);
}

static void assert_declined(const char *why) {
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(stage.sent.declines, 1);
  assert_int_equal(sent_decline(&stage)->campaign, CAMPAIGN);
  assert_string_equal(sent_decline(&stage)->why, why);
  assert_int_equal(stage.scored, 0);
}

/* ---- the session comes first ---- */

static void test_no_token_leaves_before_the_session(void **state) {
  make(2, CV_SPLIT_SCORE);
  meet_broker(1);
  assign_slot(1, 40, 0);
  assert_int_equal(stage.sent.tokens + stage.sent.declines, 0);
  assert_int_equal(stage.scored, 0);
  cv_worker_join_co(stage.pool, &duo.keys.cobroker);
  assert_int_equal(entered(), 1);
  assert_int_equal(entered(), 0);
  assert_int_equal(hear((struct cv_share_frame){0}, true, NULL), CV_OK);
  assign_slot(2, 41, 0);
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(stage.scored, 0);
  struct cv_share_session session = session_of(1);
  assert_int_equal(hear((struct cv_share_frame){.sessions = 1, .session = &session}, false, NULL), CV_OK);
  assert_int_equal(stage.sent.tokens, 2);
  assert_int_equal(stage.scored, 2);
  assert_int_equal(sent_token(&stage, 0)->share->counter, 0);
  assert_int_equal(sent_token(&stage, 1)->share->counter, 1);
  assert_memory_not_equal(sent_token(&stage, 0)->share->nonce, sent_token(&stage, 1)->share->nonce, 16);
  assert_int_equal(figures(&stage).sessions, 1);
  finish();
}

static void test_both_brokers_accept_the_token(void **state) {
  make(1, CV_SPLIT_SCORE);
  meet_both(1);
  assign_slot(1, 40, 0);
  assert_in_range(judged(1, 40, 0), 2000 / 64, 2000 / 64 + 1);
  assert_int_equal(given, 1);
  ack(sent_token(&stage, 0), CV_VERDICT_ACCEPTED);
  assert_true(cv_worker_is_done(stage.pool));
  finish();
}

/* ---- campaigns that are declined ---- */

static void test_brokers_that_disagree_get_nothing(void **state) {
  make(1, CV_SPLIT_SCORE);
  meet_broker(1);
  assign_slot(1, 40, 0);
  join_cobroker();
  struct cv_share_session session = session_of(1);
  session.terms.epsilon_micro++;
  assert_int_equal(hear((struct cv_share_frame){.sessions = 1, .session = &session}, false, NULL), CV_OK);
  assert_declined("broker and co-broker tell another epsilon; expected the same terms of both");
  assert_int_equal(stage.noted, 1);
  assert_string_equal(stage.notes[0],
                      "declined campaign \"test\": broker and co-broker tell another epsilon; expected "
                      "the same terms of both");
  assert_int_equal(entered(), 0);
  assert_true(cv_worker_is_done(stage.pool)); /* nothing is held any more */
  finish();
}

static const char broker_line[] =
    "the broker's key is b1b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0; expected that of a pair in "
    "accept.pairs";
static const char cobroker_line[] =
    "the co-broker's key is c1c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0; expected the one that "
    "accept.pairs has for the broker";

static void test_a_broker_that_is_not_listed_gets_nothing(void **state) {
  make(1, CV_SPLIT_SCORE);
  stage.broker.bytes[0]++;
  meet_broker(1);
  assert_declined(broker_line);
  cv_worker_join_co(stage.pool, &duo.keys.cobroker);
  assert_int_equal(entered(), 0);
  finish();
}

/* Whether it connects before the broker's terms or after them; and the co-broker of another pair is none, either. */
static void test_a_cobroker_that_is_not_listed_gets_nothing(void **state) {
  for (int first = 0; first < 2; first++) {
    struct cv_duo pair[2];
    struct cv_digest puppet;
    make(1, CV_SPLIT_SCORE);
    puppet = duo.keys.cobroker;
    puppet.bytes[0]++;
    pair[0] = duo.keys;
    pair[1] = (struct cv_duo){.broker = puppet, .cobroker = puppet};
    stage.config.accept.pair = pair;
    stage.config.accept.pairs = 2;
    if (first) {
      start(&stage);
      flush(&stage);
      cv_worker_join_co(stage.pool, &puppet);
      begin(&stage);
      say_hello(&stage);
      (void)say_duo_terms(1);
      deliver(&stage);
    } else {
      meet_broker(1);
      assign_slot(1, 40, 0);
      cv_worker_join_co(stage.pool, &puppet);
      flush(&stage);
    }
    assert_declined(cobroker_line);
    assert_int_equal(entered(), 0);
    finish();
  }
}

static void test_a_campaign_with_one_broker_gets_nothing_where_pairs_are_listed(void **state) {
  make(1, CV_SPLIT_SCORE);
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  (void)say_terms(&stage, CAMPAIGN, 1);
  deliver(&stage);
  assert_declined("the campaign has one broker; expected two, a pair of accept.pairs");
  finish();
}

static void test_two_brokers_get_nothing_where_no_pairs_are_listed(void **state) {
  make(1, CV_SPLIT_SCORE);
  stage.config.accept.pairs = 0;
  stage.config.session = NULL;
  meet_broker(1);
  assert_declined("the campaign has two brokers; expected one, since this worker has no accept.pairs and cobroker");
  finish();
}

/* Once there was a session, the broker cannot say that it was alone all the time. */
static void test_a_broker_cannot_leave_its_cobroker_out_later(void **state) {
  make(1, CV_SPLIT_SCORE);
  meet_both(1);
  cv_worker_leave(stage.pool);
  cv_worker_join(stage.pool, &stage.broker, stage.now_ms);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  (void)say_terms(&stage, CAMPAIGN, 1);
  deliver(&stage);
  assert_declined("the campaign has one broker; expected two, a pair of accept.pairs");
  begin(&stage);
  (void)say_assign(&stage, 1, 0, 0);
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 0);
  finish();
}

static void test_a_broker_cannot_change_its_terms(void **state) {
  make(1, CV_SPLIT_SCORE);
  meet_both(1);
  begin(&stage);
  say_duo_terms(1)->epsilon_micro--;
  deliver(&stage);
  assert_declined("the broker tells another epsilon than before; expected terms that do not change");
  finish();
}

static void test_a_privatizer_without_shares_is_declined(void **state) {
  make(1, CV_SPLIT_SCORE);
  stage.config.accept.privatizers = "laplace";
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  struct cv_terms *terms = say_duo_terms(1);
  (void)snprintf(terms->privatizer.name, sizeof(terms->privatizer.name), "laplace");
  assert_int_equal(cv_params_set_number(&terms->privatizer.params, "epsilon", 1), CV_OK);
  deliver(&stage);
  assert_declined("privatizer laplace sends values outside 0 to 1, which have no shares; expected another one");
  finish();
}

static void test_a_score_that_is_no_bit_ends_a_campaign_of_bits(void **state) {
  make(2, CV_SPLIT_BIT);
  meet_both(1);
  assign_slot(1, 40, 0);
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(stage.sent.declines, 1);
  assert_string_equal(sent_decline(&stage)->why,
                      "a score of this worker is neither 0 nor 1; expected one of them, "
                      "since the campaign has bits for tokens");
  assert_int_equal(given, 0);
  finish();
}

/* ---- answers again ---- */

/* Broker and co-broker go and come back in every way: the same bytes. */
static void test_an_answer_that_is_sent_again_is_the_same(void **state) {
  make(1, CV_SPLIT_SCORE);
  meet_both(1);
  assign_slot(1, 40, 0);
  struct cv_token_share share = *sent_token(&stage, 0)->share;
  uint8_t leader[CV_SPLIT_LEADER_MOST];
  memcpy(leader, share.leader, share.leader_bytes);
  for (int how = 0; how < 4; how++) {
    if ((how & 1) != 0) {
      cv_worker_leave_co(stage.pool);
      join_cobroker();
      say_session(1);
    }
    cv_worker_leave(stage.pool);
    cv_worker_join(stage.pool, &stage.broker, stage.now_ms);
    flush(&stage);
    const struct cv_token *again = sent_token(&stage, 0);
    assert_int_equal(stage.sent.tokens, 1);
    assert_non_null(again->share);
    assert_memory_equal(again->share->nonce, share.nonce, sizeof(share.nonce));
    assert_memory_equal(again->share->sealed, share.sealed, sizeof(share.sealed));
    assert_memory_equal(again->share->session, share.session, sizeof(share.session));
    assert_int_equal(again->share->counter, share.counter);
    assert_int_equal(again->share->leader_bytes, share.leader_bytes);
    assert_memory_equal(again->share->leader, leader, share.leader_bytes);
    begin(&stage);
    say_hello(&stage);
    (void)say_duo_terms(1);
    deliver(&stage);
  }
  assert_int_equal(given, 1);
  assert_int_equal(stage.scored, 1);
  finish();
}

/* After "expired" or "no session": the slot was counted when first used, and using it again is free. */
static void test_a_slot_counts_once_and_its_next_answer_is_fresh(void **state) {
  make(1, CV_SPLIT_SCORE);
  stage.config.accept.tokens = 1;
  meet_both(1);
  uint8_t nonce[5][CV_SPLIT_NONCE_BYTES];
  for (uint64_t i = 0; i < CV_COUNT(nonce); i++) {
    assign_slot(1, 40 + i, 0);
    assert_in_range(judged(1, 40 + i, 0), 0, 1 << 14);
    assert_int_equal(sent_token(&stage, 0)->share->counter, i);
    memcpy(nonce[i], sent_token(&stage, 0)->share->nonce, sizeof(nonce[i]));
    for (uint64_t j = 0; j < i; j++) {
      assert_memory_not_equal(nonce[i], nonce[j], sizeof(nonce[i]));
    }
    assert_int_equal(given, 1);
    ack(sent_token(&stage, 0), CV_VERDICT_EXPIRED);
    assert_int_equal(arrived(&stage), 1);
  }
  assign_slot(1, 90, 0);
  ack(sent_token(&stage, 0), CV_VERDICT_ACCEPTED);
  assert_int_equal(arrived(&stage), 0);
  assert_int_equal(given, 1);
  finish();
}

/* The co-broker's verdict on a worker whose epsilon is spent there: not counted, and not again. */
static void test_a_worker_that_is_spent_does_not_come_back(void **state) {
  uint64_t worker = 1;
  struct cv_backoff backoff = {.worker = &worker, .workers = 1, .campaign = CAMPAIGN};
  make(2, CV_SPLIT_SCORE);
  meet_both(1);
  assign_slot(1, 40, 0);
  struct cv_token token = *sent_token(&stage, 0);
  begin(&stage);
  say_ack(&stage, &token, CV_VERDICT_EXPIRED, NULL);
  stage.frame.backoff = &backoff;
  stage.frame.backoffs = 1;
  deliver(&stage);
  assert_int_equal(arrived(&stage), 0);
  stage.now_ms += 10000;
  flush(&stage);
  assert_int_equal(arrived(&stage), 0);
  finish();
}

static void test_another_slot_counts_against_the_limit(void **state) {
  make(1, CV_SPLIT_SCORE);
  stage.config.accept.tokens = 1;
  meet_both(2);
  assign_slot(1, 40, 0);
  ack(sent_token(&stage, 0), CV_VERDICT_EXPIRED);
  assert_int_equal(arrived(&stage), 1);
  assign_slot(1, 41, 1);
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(stage.sent.declines, 1);
  assert_string_equal(sent_decline(&stage)->why,
                      "the assignment asks for more scores than the worker's own limit leaves");
  assert_int_equal(given, 1);
  finish();
}

static void test_slots_that_a_broker_may_not_ask_for(void **state) {
  static const enum cv_verdict verdicts[] = {CV_VERDICT_ACCEPTED, CV_VERDICT_DUPLICATE};
  for (size_t i = 0; i < CV_COUNT(verdicts); i++) {
    make(1, CV_SPLIT_SCORE);
    meet_both(2);
    assign_slot(1, 40, 1);
    assert_in_range(judged(1, 40, 1), 0, 1 << 14);
    ack(sent_token(&stage, 0), verdicts[i]);
    assert_int_equal(arrived(&stage), 1);
    begin(&stage);
    (void)say_slot(1, 41, 1);
    deliver_bad(&stage, CV_ERR_DENIED, "the broker asks for slot 1 of worker 1 again, whose token is settled");
    finish();
  }
  make(1, CV_SPLIT_SCORE);
  meet_both(2);
  begin(&stage);
  (void)say_slot(1, 41, 2);
  deliver_bad(&stage, CV_ERR_DENIED, "an assignment with slot 2 of worker 1; expected one below 2");
  finish();
}

static void test_an_assignment_has_one_arm(void **state) {
  static const uint32_t arms[] = {0, 1};
  make(1, CV_SPLIT_SCORE);
  meet_both(1);
  begin(&stage);
  struct cv_assign *assign = say_slot(1, 40, 0);
  assign->arms = 2;
  assign->arm.many = arms;
  deliver_bad(&stage, CV_ERR_FORMAT, "an assignment of 2 arms; expected one: the campaign has two brokers");
  finish();
}

/* ---- without a session ---- */

static void test_an_assignment_is_declined_before_its_lease_ends(void **state) {
  make(1, CV_SPLIT_SCORE);
  meet_broker(1);
  assign_slot(1, 40, 0); /* its lease is 4 s */
  stage.now_ms += 2999;
  flush(&stage);
  assert_int_equal(stage.sent.declines + arrived(&stage), 0);
  stage.now_ms++;
  flush(&stage);
  assert_int_equal(stage.sent.declines, 1);
  assert_int_equal(sent_decline(&stage)->campaign, 0);
  assert_string_equal(sent_decline(&stage)->why, "no session with the co-broker within the lease");
  assert_int_equal(stage.scored, 0);
  assert_int_equal(given, 0);
  assert_int_equal(figures(&stage).unheld, 1);
  assert_int_equal(stage.noted, 1);
  assert_int_equal(arrived(&stage), 0); /* not at once */
  stage.now_ms += 1000;
  flush(&stage);
  assert_int_equal(arrived(&stage), 1);
  /* a session that comes later gives no token for it */
  join_cobroker();
  say_session(1);
  assert_int_equal(stage.sent.tokens, 0);
  assign_slot(1, 41, 0);
  assert_in_range(judged(1, 41, 0), 0, 1 << 14);
  finish();
}

static void test_a_broker_that_goes_takes_held_assignments_back(void **state) {
  make(1, CV_SPLIT_SCORE);
  meet_broker(1);
  assign_slot(1, 40, 0);
  cv_worker_leave(stage.pool);
  join_cobroker();
  cv_worker_join(stage.pool, &stage.broker, stage.now_ms);
  flush(&stage);
  assert_int_equal(arrived(&stage), 1);
  begin(&stage);
  say_hello(&stage);
  (void)say_duo_terms(1);
  assert_int_equal(entered(), 0); /* nothing is asked of a campaign that may be over */
  deliver(&stage);
  assert_int_equal(entered(), 1);
  say_session(1);
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(stage.scored, 0);
  assign_slot(1, 41, 0);
  assert_in_range(judged(1, 41, 0), 0, 1 << 14);
  finish();
}

static void test_done_forgets_held_assignments(void **state) {
  uint64_t done = CAMPAIGN;
  make(1, CV_SPLIT_SCORE);
  meet_broker(1);
  assign_slot(1, 40, 0);
  begin(&stage);
  stage.frame.done = &done;
  stage.frame.dones = 1;
  deliver(&stage);
  assert_true(cv_worker_is_done(stage.pool));
  join_cobroker();
  assert_int_equal(entered(), 0);
  finish();
}

static void test_who_is_turned_away_for_good_declines(void **state) {
  make(1, CV_SPLIT_SCORE);
  meet_broker(1);
  assign_slot(1, 40, 0);
  join_cobroker();
  turn_away(0, "the campaign has ended");
  assert_declined("the co-broker gives no session: the campaign has ended");
  assert_int_equal(entered(), 0);
  finish();
}

static void test_who_is_turned_away_for_now_asks_again(void **state) {
  make(1, CV_SPLIT_SCORE);
  meet_broker(1);
  assign_slot(1, 40, 0);
  join_cobroker();
  turn_away(500, "too many sessions");
  assert_int_equal(stage.sent.declines + stage.sent.tokens, 0);
  stage.now_ms += 499;
  assert_int_equal(entered(), 0);
  stage.now_ms++;
  assert_int_equal(entered(), 1);
  assert_int_equal(stage.noted, 1);
  assert_string_equal(stage.notes[0], "test: the co-broker gives no session: too many sessions");
  say_session(1);
  assert_in_range(judged(1, 40, 0), 0, 1 << 14);
  finish();
}

static void test_a_session_ends_with_its_connection(void **state) {
  make(2, CV_SPLIT_SCORE);
  meet_both(1);
  assign_slot(2, 39, 0);
  assert_int_equal(stage.sent.tokens, 1);
  cv_worker_leave_co(stage.pool);
  assert_int_equal(duo.open, 0);
  assert_int_equal(figures(&stage).sessions, 0);
  assign_slot(1, 40, 0);
  assert_int_equal(stage.sent.tokens, 0);
  join_cobroker();
  say_session(1);
  assert_in_range(judged(1, 40, 0), 0, 1 << 14);
  assert_int_equal(sent_token(&stage, 0)->share->counter, 0);
  finish();
}

static void test_what_a_cobroker_may_not_say(void **state) {
  struct cv_share_session session;
  struct cv_why why;
  uint64_t campaign = CAMPAIGN;
  make(1, CV_SPLIT_SCORE);
  session = session_of(1);
  const struct {
    struct cv_share_frame frame;
    bool hello;
    enum cv_err err;
    const char *line;
  } cases[] = {
      {{.sessions = 1, .session = &session}, false, CV_ERR_FORMAT, "the first message is not Hello"},
      {{.enters = 1, .enter = &campaign}, true, CV_ERR_DENIED, "the co-broker sent a message that is not for a worker"},
      {{.sessions = 1, .session = &session},
       true,
       CV_ERR_STATE,
       "the co-broker answers for campaign 7, which was not asked"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    make(1, CV_SPLIT_SCORE);
    start(&stage);
    cv_worker_join_co(stage.pool, &duo.keys.cobroker);
    assert_int_equal(hear(cases[i].frame, cases[i].hello, &why), cases[i].err);
    assert_string_equal(why.text, cases[i].line);
    finish();
  }
  make(1, CV_SPLIT_SCORE);
  meet_both(1);
  assert_int_equal(hear((struct cv_share_frame){0}, true, &why), CV_ERR_FORMAT);
  assert_string_equal(why.text, "second Hello; expected one per connection");
  assert_int_equal(hear((struct cv_share_frame){.sessions = 1, .session = &session}, false, &why), CV_ERR_STATE);
  finish();
}

/* ---- sources that answer later ---- */

static struct {
  uint32_t asked, withdrawn;
  uint64_t question;
  enum cv_verdict told;
} source;

static void ask(void *data, const struct cv_question *question) {
  source.asked++;
  source.question = question->number;
}

static void withdraw(void *data, uint64_t question, enum cv_withdrawn why) {
  source.withdrawn++;
}

static void tell(void *data, uint64_t question, enum cv_verdict verdict) {
  source.told = verdict;
}

static const struct cv_asker asker = {.ask = ask, .withdraw = withdraw, .told = tell};

static enum cv_err answer(int64_t value, struct cv_why *why) {
  return cv_worker_answer(stage.pool, source.question, &(struct cv_score_answer){.value = value}, why);
}

static void test_nobody_is_asked_before_the_session(void **state) {
  make(1, CV_SPLIT_SCORE);
  memset(&source, 0, sizeof(source));
  stage.config.asker = &asker;
  meet_broker(1);
  assign_slot(1, 40, 0);
  assert_int_equal(source.asked, 0);
  join_cobroker();
  say_session(1);
  assert_int_equal(source.asked, 1);
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(answer(CV_GRID / 2, NULL), CV_OK);
  flush(&stage);
  assert_int_equal(judged(1, 40, 0), 1 << 13);
  ack(sent_token(&stage, 0), CV_VERDICT_ACCEPTED);
  assert_int_equal(source.told, CV_VERDICT_ACCEPTED);
  finish();
}

static void test_an_answer_waits_for_the_next_session(void **state) {
  for (int late = 0; late < 2; late++) {
    make(1, CV_SPLIT_SCORE);
    memset(&source, 0, sizeof(source));
    stage.config.asker = &asker;
    meet_both(1);
    assign_slot(1, 40, 0);
    cv_worker_leave_co(stage.pool);
    assert_int_equal(answer(CV_GRID, NULL), CV_OK);
    assert_int_equal(answer(CV_GRID, NULL), CV_ERR_NOT_FOUND);
    flush(&stage);
    assert_int_equal(stage.sent.tokens, 0);
    assert_int_equal(given, 0);
    stage.now_ms += late ? 3000 : 2000;
    flush(&stage);
    assert_int_equal(stage.sent.declines, late);
    assert_int_equal(source.told, late ? CV_VERDICT_EXPIRED : CV_VERDICT_NONE);
    join_cobroker();
    say_session(1);
    assert_int_equal(stage.sent.tokens, !late);
    if (!late) {
      assert_int_equal(judged(1, 40, 0), 1 << 14);
    }
    finish();
  }
}

static void test_an_answer_that_is_no_bit_leaves_the_question_open(void **state) {
  struct cv_why why;
  make(1, CV_SPLIT_BIT);
  memset(&source, 0, sizeof(source));
  stage.config.asker = &asker;
  meet_both(1);
  assign_slot(1, 40, 0);
  assert_int_equal(answer(CV_GRID / 2, &why), CV_ERR_INVALID);
  assert_string_equal(why.text,
                      "the score is neither 0 nor 1; expected one of them, since the campaign has bits for tokens");
  assert_int_equal(answer(CV_GRID, &why), CV_OK);
  flush(&stage);
  assert_int_equal(judged(1, 40, 0), 1);
  finish();
}

static void test_randomized_response_is_split_as_a_bit(void **state) {
  make(200, CV_SPLIT_BIT);
  stage.config.accept.epsilon_micro = 3000000;
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  struct cv_terms *terms = say_duo_terms(1);
  (void)snprintf(terms->privatizer.name, sizeof(terms->privatizer.name), "randomized-response");
  assert_int_equal(cv_params_set_number(&terms->privatizer.params, "epsilon", 1), CV_OK);
  struct cv_share_session session = session_of(1);
  session.terms.privatizer = terms->privatizer;
  deliver(&stage);
  join_cobroker();
  assert_int_equal(hear((struct cv_share_frame){.sessions = 1, .session = &session}, false, NULL), CV_OK);
  int64_t ones = 0;
  for (uint64_t worker = 1; worker <= 200; worker++) {
    assign_slot(worker, worker, 0);
    int64_t bit = judged(worker, worker, 0);
    assert_in_range(bit, 0, 1);
    ones += bit;
    ack(sent_token(&stage, 0), CV_VERDICT_ACCEPTED);
  }
  assert_in_range(ones, 20, 90); /* a score of about 0, flipped with probability 0.27 */
  finish();
}

/* ---- test runs ---- */

static void test_a_key_fixes_the_rounding_and_never_the_sharding(void **state) {
  static const uint8_t key[CV_COIN_KEY_BYTES] = {5};
  uint8_t nonce[2][CV_SPLIT_NONCE_BYTES], leader[2][8];
  for (uint64_t place = 0; place < 20; place++) {
    int64_t measured[2];
    for (int run = 0; run < 2; run++) {
      make(1, CV_SPLIT_SCORE);
      stage.config.coin_key = key;
      cv_rng_seeded_init(&stage.rng, place, (uint64_t)run, 0, 0);
      cv_rng_seeded_init(&duo.fresh, 200 + (uint64_t)run, 0, 0, 0); /* the system's generator */
      meet_both(1);
      assign_slot(1, place, 0);
      measured[run] = judged(1, place, 0);
      memcpy(nonce[run], sent_token(&stage, 0)->share->nonce, sizeof(nonce[run]));
      memcpy(leader[run], sent_token(&stage, 0)->share->leader, sizeof(leader[run]));
      finish();
    }
    assert_int_equal(measured[0], measured[1]);
    assert_memory_not_equal(nonce[0], nonce[1], sizeof(nonce[0]));
    assert_memory_not_equal(leader[0], leader[1], sizeof(leader[0]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_token_leaves_before_the_session),
      cmocka_unit_test(test_both_brokers_accept_the_token),
      cmocka_unit_test(test_brokers_that_disagree_get_nothing),
      cmocka_unit_test(test_a_broker_that_is_not_listed_gets_nothing),
      cmocka_unit_test(test_a_cobroker_that_is_not_listed_gets_nothing),
      cmocka_unit_test(test_a_campaign_with_one_broker_gets_nothing_where_pairs_are_listed),
      cmocka_unit_test(test_two_brokers_get_nothing_where_no_pairs_are_listed),
      cmocka_unit_test(test_a_broker_cannot_leave_its_cobroker_out_later),
      cmocka_unit_test(test_a_broker_cannot_change_its_terms),
      cmocka_unit_test(test_a_privatizer_without_shares_is_declined),
      cmocka_unit_test(test_a_score_that_is_no_bit_ends_a_campaign_of_bits),
      cmocka_unit_test(test_an_answer_that_is_sent_again_is_the_same),
      cmocka_unit_test(test_a_slot_counts_once_and_its_next_answer_is_fresh),
      cmocka_unit_test(test_a_worker_that_is_spent_does_not_come_back),
      cmocka_unit_test(test_another_slot_counts_against_the_limit),
      cmocka_unit_test(test_slots_that_a_broker_may_not_ask_for),
      cmocka_unit_test(test_an_assignment_has_one_arm),
      cmocka_unit_test(test_an_assignment_is_declined_before_its_lease_ends),
      cmocka_unit_test(test_a_broker_that_goes_takes_held_assignments_back),
      cmocka_unit_test(test_done_forgets_held_assignments),
      cmocka_unit_test(test_who_is_turned_away_for_good_declines),
      cmocka_unit_test(test_who_is_turned_away_for_now_asks_again),
      cmocka_unit_test(test_a_session_ends_with_its_connection),
      cmocka_unit_test(test_what_a_cobroker_may_not_say),
      cmocka_unit_test(test_nobody_is_asked_before_the_session),
      cmocka_unit_test(test_an_answer_waits_for_the_next_session),
      cmocka_unit_test(test_an_answer_that_is_no_bit_leaves_the_question_open),
      cmocka_unit_test(test_randomized_response_is_split_as_a_bit),
      cmocka_unit_test(test_a_key_fixes_the_rounding_and_never_the_sharding),
  };
  return cmocka_run_group_tests_name("brokers", tests, NULL, NULL);
}
