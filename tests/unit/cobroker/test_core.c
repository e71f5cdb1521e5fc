/* SPDX-License-Identifier: Apache-2.0 */
/* The co-broker's core and store: a campaign's whole way, restarts, and what is refused. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "cobroker/ending.h"
#include "tests/unit/cobroker/script.h"

/* ---- the whole way ---- */

static void run(struct world *world) {
  for (int i = 0; i < 400 && step(world); i++) {
    turn(world);
    world->now_ms += 10;
  }
  assert_true(world->leader.over);
}

static void test_whole_way(void **state) {
  struct world world;
  world_make(&world);
  run(&world);
  assert_int_equal(world.leader.closed, ARMS * PLANS);
  assert_int_equal(world.leader.answers[CV_ANSWER_ACCEPTED], ARMS * PLANS * TAU);
  check_halves(&world);
  assert_int_equal(world.ended.reason, CV_END_COMPLETE);
  assert_int_equal(cv_accounts_spent(&world.core->accounts, 1), SLOTS * EPSILON);
  assert_string_equal(world.event, "end");
  restart(&world);
  assert_null(cv_cobroker_campaign_find(world.core, 1));
  assert_int_equal(cv_accounts_spent(&world.core->accounts, 1), SLOTS * EPSILON);
  world_end(&world);
}

/* A run with restarts ends as an undisturbed one: with the same noise over the same sums, and the same accounts. Shares
 * themselves differ, because a token whose session is lost is split anew. */
static void run_with(enum until until, int each, uint64_t journal_bytes) {
  struct world wild;
  world_make(&wild);
  wild.journal_bytes = journal_bytes;
  for (int i = 0; i < 1500 && step(&wild); i++) {
    turn_until(&wild, cv_mix64((uint64_t)(i + 1000 * each)) % (uint64_t)each == 0 ? until : WHOLE);
    wild.now_ms += 10;
  }
  assert_true(wild.leader.over);
  assert_int_equal(wild.leader.closed, ARMS * PLANS);
  check_halves(&wild);
  assert_int_equal(wild.leader.answers[CV_ANSWER_ACCEPTED], ARMS * PLANS * TAU);
  for (uint64_t worker = 1; worker <= ARMS * PLANS * TAU / SLOTS; worker++) {
    assert_int_equal(cv_accounts_spent(&wild.core->accounts, worker), SLOTS * EPSILON);
  }
  world_end(&wild);
}

static void test_restarts(void **state) {
  static const uint64_t journal[] = {1, 1500, 0};
  for (size_t i = 0; i < CV_COUNT(journal); i++) {
    for (int each = 2; each < 7; each++) {
      run_with(BEFORE_COMMIT, each, journal[i]);
      run_with(BEFORE_DELIVERY, each, journal[i]);
    }
  }
}

static void test_place_and_slot_count_once(void **state) {
  struct world world;
  begin(&world);
  assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
  assert_int_equal(give(&world, 0, 0, 2, 0), CV_ANSWER_PLACE);     /* the place is taken */
  assert_int_equal(give(&world, 1, 0, 1, 0), CV_ANSWER_PLACE);     /* the slot is */
  assert_int_equal(give(&world, 1, 0, 1, SLOTS), CV_ANSWER_PLACE); /* no such slot */
  assert_int_equal(give(&world, 1, TAU, 1, 1), CV_ANSWER_PLACE);   /* no such place */
  assert_int_equal(give(&world, ARMS, 0, 1, 1), CV_ANSWER_PLACE);  /* no such arm */
  world.leader.plans++;
  assert_int_equal(give(&world, 1, 0, 1, 1), CV_ANSWER_PLACE); /* no such plan */
  world.leader.plans--;
  assert_int_equal(give(&world, 1, 0, 1, 1), CV_ANSWER_ACCEPTED); /* nothing of that was taken */
  assert_int_equal(cv_accounts_spent(&world.core->accounts, 1), 2 * EPSILON);
  assert_int_equal(cv_accounts_spent(&world.core->accounts, 2), 0);
  restart(&world);
  turn(&world);
  turn(&world);
  assert_int_equal(give(&world, 1, 0, 3, 0), CV_ANSWER_PLACE); /* also after a restart */
  assert_int_equal(give(&world, 2, 0, 1, 1), CV_ANSWER_PLACE);
  world_end(&world);
}

/* A seal that does not open takes nothing: whoever changed the token on its way uses up no worker's slot here. */
static void test_seal(void **state) {
  struct world world;
  begin(&world);
  struct pending good = token_of(&world, 0, 0, 1, 0), bad;
  for (int i = 0; i < 8; i++) {
    bad = good;
    struct cv_share_pending *message = &bad.message;
    message->sealed[i == 0 ? 0 : 47] ^= i < 2;
    message->counter += i == 2;
    message->token.worker += i == 3;
    message->token.slot += i == 4;
    message->token.place += i == 5;
    message->token.arm += i == 6;
    message->token.nonce[0] ^= i == 7;
    assert_int_equal(judged(&world, &bad), CV_ANSWER_PROOF);
    assert_int_equal(campaign_of(&world)->failed, 0);
  }
  assert_int_equal(judged(&world, &good), CV_ANSWER_ACCEPTED);
  world_end(&world);
}

/* A proof that fails uses slot and question up, and leaves the place to another worker. */
static void test_proof(void **state) {
  struct world world;
  begin(&world);
  struct pending token = token_of(&world, 0, 0, 1, 0);
  token.message.verifier[0] = cv_field_add(token.message.verifier[0], 1);
  assert_int_equal(judged(&world, &token), CV_ANSWER_PROOF);
  assert_int_equal(give(&world, 1, 0, 1, 0), CV_ANSWER_PLACE);
  assert_int_equal(give(&world, 0, 0, 1, 1), CV_ANSWER_PLACE);
  assert_int_equal(cv_accounts_spent(&world.core->accounts, 1), 0);
  restart(&world);
  turn(&world);
  turn(&world);
  assert_int_equal(give(&world, 1, 0, 1, 0), CV_ANSWER_PLACE);
  assert_int_equal(give(&world, 0, 0, 1, 1), CV_ANSWER_PLACE);
  assert_int_equal(give(&world, 1, 0, 1, 1), CV_ANSWER_ACCEPTED);
  assert_int_equal(give(&world, 0, 0, 2, 0), CV_ANSWER_ACCEPTED);
  world_end(&world);
}

static void test_worker_without_epsilon(void **state) {
  struct world world;
  world_make(&world);
  world.worker_epsilon_micro = EPSILON + EPSILON / 2;
  restart(&world);
  turn(&world);
  next_plan(&world);
  turn(&world);
  assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
  assert_int_equal(give(&world, 1, 1, 1, 1), CV_ANSWER_WORKER);
  assert_int_equal(give(&world, 1, 1, 2, 1), CV_ANSWER_ACCEPTED); /* neither place nor slot was taken */
  world_end(&world);
}

/* ---- sessions ---- */

static void leave(struct world *world) {
  cv_cobroker_leave(world->core, world->gateway);
  world->gateway = NULL;
}

static void come(struct world *world, const struct cv_identity *identity) {
  join(world, identity, &world->gateway);
  say(world, world->gateway, &(struct cv_share_frame){.hello = hello_of_test});
  enter(world);
  turn(world);
}

static void test_sessions(void **state) {
  struct world world;
  begin(&world);
  struct pending first = token_of(&world, 0, 0, 1, 0), second = token_of(&world, 2, 1, 1, 1);
  assert_int_equal(give(&world, 1, 0, 1001, 0), CV_ANSWER_SESSION); /* beyond the certificate's range */
  struct pending other = token_of(&world, 1, 0, 5, 0);
  other.message.session[0] ^= 1;
  assert_int_equal(judged(&world, &other), CV_ANSWER_SESSION);
  leave(&world);
  assert_int_equal(judged(&world, &first), CV_ANSWER_ACCEPTED); /* it survives its connection */
  come(&world, &gateway_of_test);
  assert_int_equal(judged(&world, &second), CV_ANSWER_SESSION); /* replaced by the newer one */
  assert_int_equal(give(&world, 2, 1, 1, 1), CV_ANSWER_ACCEPTED);
  uint8_t id[CV_SPLIT_SESSION_BYTES];
  memcpy(id, world.session, sizeof(id));
  enter(&world); /* again on the same connection: the same session, whose counters go on */
  turn(&world);
  assert_memory_equal(id, world.session, sizeof(id));
  leave(&world);
  const struct cv_identity short_lived = {
      .role = CV_ROLE_GATEWAY, .name = "1-10", .first = 1, .last = 10, .until_ms = world.now_ms + 100};
  come(&world, &short_lived);
  struct pending late = token_of(&world, 0, 2, 2, 0);
  leave(&world);
  world.now_ms += 100;
  assert_int_equal(judged(&world, &late), CV_ANSWER_SESSION); /* it ended with its certificate */
  world.now_ms += 20000;
  cv_cobroker_tick(world.core, world.now_ms, world.now_ms);
  assert_int_equal(HASH_COUNT(world.core->sessions), 0);
  world_end(&world);
}

static bool is_revoked(const void *data, const char *serial) {
  return strcmp(data, serial) == 0;
}

/* A session outlives its connection, and must not outlive its certificate. */
static void test_sessions_of_a_revoked_certificate(void **state) {
  struct cv_identity first = gateway_of_test, other = {.role = CV_ROLE_GATEWAY, .first = 1001, .last = 2000};
  struct cv_cobroker_revoked revoked = {.has = is_revoked, .data = "C0FFEE"};
  struct world world;
  begin(&world);
  leave(&world);
  (void)snprintf(first.serial, sizeof(first.serial), "A1");
  come(&world, &first);
  struct pending token = token_of(&world, 0, 0, 1, 0), late = token_of(&world, 0, 1, 2, 0);
  leave(&world);
  (void)snprintf(other.name, sizeof(other.name), "1001-2000");
  (void)snprintf(other.serial, sizeof(other.serial), "B2");
  come(&world, &other);
  cv_cobroker_revoke(world.core, &revoked);
  assert_int_equal(judged(&world, &token), CV_ANSWER_ACCEPTED); /* another one was revoked */
  revoked.data = "A1";
  cv_cobroker_revoke(world.core, &revoked);
  assert_int_equal(judged(&world, &late), CV_ANSWER_SESSION);
  assert_int_equal(give(&world, 0, 1, 1001, 0), CV_ANSWER_ACCEPTED);
  revoked.data = "B2"; /* of a connection that is there */
  cv_cobroker_revoke(world.core, &revoked);
  assert_int_equal(give(&world, 0, 2, 1002, 0), CV_ANSWER_SESSION);
  world_end(&world);
}

/* A key must never seal again from counter 0 on: a connection whose session is over needs a new one. */
static void test_session_of_a_connection_is_one(void **state) {
  struct world world;
  struct cv_why why;
  begin(&world);
  cv_cobroker_sessions_purge(world.core, 1);
  uint64_t campaign = 1;
  const struct cv_share_frame frame = {.enters = 1, .enter = &campaign};
  assert_int_equal(try_frame(&world, world.gateway, &frame, &why), CV_ERR_STATE);
  assert_string_equal(why.text, "the session of campaign 1 is over; expected Enter on a new connection");
  world_end(&world);
}

static void test_sessions_are_bounded(void **state) {
  struct world world;
  struct cv_cobroker_conn *gone = NULL;
  world_make(&world);
  turn(&world);
  turn(&world);
  leave(&world);
  for (uint64_t i = 0; i < 12; i++) {
    struct cv_identity identity = {.role = CV_ROLE_WORKER, .first = i + 1, .last = i + 1};
    (void)snprintf(identity.name, sizeof(identity.name), "%u", (unsigned)i + 1);
    come(&world, &identity);
    if (i == 0) {
      gone = world.gateway;
      cv_cobroker_leave(world.core, gone);
    }
  }
  /* The one whose connection is gone made way; of the others one was turned away, who may ask again. */
  assert_int_equal(HASH_COUNT(world.core->sessions), 10);
  assert_int_equal(world.got_turned, 1);
  assert_true(world.again_ms > 0);
  assert_string_equal(world.turned_why, "there are too many sessions");
  world_end(&world);
}

static void test_enter_what_is_not_open(void **state) {
  struct world world;
  begin(&world);
  uint64_t campaign = 7;
  say(&world, world.gateway, &(struct cv_share_frame){.enters = 1, .enter = &campaign});
  turn(&world);
  assert_true(world.got_turned == 1 && world.again_ms > 0); /* the broker may open it yet */
  say_over(&world, CV_END_CANCELLED);
  turn(&world);
  assert_int_equal(HASH_COUNT(world.core->sessions), 0);
  enter(&world);
  turn(&world);
  assert_true(world.got_turned == 2 && world.again_ms == 0);
  world_end(&world);
}

/* ---- connections ---- */

static void refused_to_join(struct world *world, const struct cv_identity *identity, const char *text) {
  struct cv_cobroker_conn *conn = NULL;
  struct cv_why why = {.text = ""};
  assert_int_not_equal(cv_cobroker_join(world->core, identity, NULL, &conn, &why), CV_OK);
  assert_string_equal(why.text, text);
}

static void test_who_may_connect(void **state) {
  struct world world;
  begin(&world);
  refused_to_join(&world, &(struct cv_identity){.role = CV_ROLE_BROKER, .name = "b", .key = {{0xbb}}},
                  "broker/b has another key than the one that is configured");
  refused_to_join(&world, &(struct cv_identity){.role = CV_ROLE_BROKER, .name = "c", .key = {{0xb}}},
                  "broker/c; expected broker/b");
  refused_to_join(&world, &(struct cv_identity){.role = CV_ROLE_GATEWAY, .name = "9-2000", .first = 9, .last = 2000},
                  "workers of 9-2000 overlap those of 1-1000, which is connected; expected disjoint ranges");
  /* The same certificate replaces its older connection, and what that one says means nothing any more. */
  struct cv_cobroker_conn *old = world.broker;
  join(&world, &broker_of_test, &world.broker);
  assert_int_equal(try_frame(&world, old, &(struct cv_share_frame){.hello = hello_of_test}, NULL), CV_OK);
  turn(&world);
  assert_int_equal(world.got_goodbyes, 1);
  assert_string_equal(world.goodbye, "replaced by a newer connection of the same certificate");
  world_end(&world);
}

static void test_messages_of_others(void **state) {
  struct world world;
  struct cv_why why;
  begin(&world);
  uint64_t campaign = 1;
  struct cv_share_answers answers = {.campaign = 1};
  struct cv_share_number done = {.campaign = 1};
  assert_int_equal(try_frame(&world, world.broker, &(struct cv_share_frame){.enters = 1, .enter = &campaign}, &why),
                   CV_ERR_DENIED);
  assert_int_equal(try_frame(&world, world.broker, &(struct cv_share_frame){.answers = 1, .answer = &answers}, &why),
                   CV_ERR_DENIED);
  assert_int_equal(try_frame(&world, world.gateway, &(struct cv_share_frame){.dones = 1, .done = &done}, &why),
                   CV_ERR_DENIED);
  assert_int_equal(try_frame(&world, world.broker, &(struct cv_share_frame){.hello = hello_of_test}, &why),
                   CV_ERR_VERSION);
  done = (struct cv_share_number){.campaign = 2, .number = 1};
  assert_int_equal(try_frame(&world, world.broker, &(struct cv_share_frame){.dones = 1, .done = &done}, &why),
                   CV_ERR_STATE);
  assert_string_equal(why.text, "campaign 2 is not open on this connection; expected Open first");
  world_end(&world);
}

/* ---- ends ---- */

static void test_over(void **state) {
  struct world world;
  begin(&world);
  (void)send_some(&world);
  turn(&world);
  struct pending token = token_of(&world, 1, 8, 60, 0);
  say_over(&world, CV_END_CANCELLED);
  turn(&world);
  assert_int_equal(world.ended.reason, CV_END_CANCELLED);
  assert_int_equal(HASH_COUNT(world.core->sessions), 0);
  /* Whatever the broker still sends about it is answered with its end. */
  commit_batch(&world, &token, 1);
  say_over(&world, CV_END_COMPLETE);
  turn(&world);
  assert_int_equal(world.got_ended, 3);
  assert_int_equal(world.ended.reason, CV_END_CANCELLED);
  restart(&world);
  turn(&world);
  assert_null(campaign_of(&world));
  assert_int_equal(cv_accounts_spent(&world.core->accounts, worker_of(0, 0)), EPSILON); /* charges outlive it */
  world_end(&world);
}

/* With a new key it is another party: the campaigns end, and the peers judge the new key on a new connection. */
static void test_new_key(void **state) {
  struct world world;
  begin(&world);
  assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
  assert_false(cv_cobroker_renew(world.core, &world.duo.cobroker)); /* renewed with the same key */
  assert_non_null(campaign_of(&world));
  const struct cv_digest key = {{0xcc}};
  assert_true(cv_cobroker_renew(world.core, &key));
  assert_null(campaign_of(&world));
  turn(&world);
  assert_int_equal(world.ended.reason, CV_END_FROZEN);
  assert_int_equal(world.got_goodbyes, 2);
  assert_string_equal(world.goodbye, "the co-broker has a new key");
  assert_false(cv_cobroker_renew(world.core, &key));
  world_end(&world);
}

static void test_deadline(void **state) {
  struct world world;
  world_make(&world);
  turn(&world);
  struct cv_share_open open = open_of_test(&world);
  open.position.campaign = 2;
  open.spec.deadline_ms = 5000;
  open.deadline_ms = world.now_ms + 5000;
  open_with(&world, &open);
  restart(&world);
  /* The wall clock is set back: the monotonic one ends it all the same. */
  cv_cobroker_tick(world.core, world.now_ms + 4999, world.now_ms - 100);
  assert_non_null(cv_cobroker_campaign_find(world.core, 2));
  cv_cobroker_tick(world.core, world.now_ms + 5000, world.now_ms - 100);
  assert_null(cv_cobroker_campaign_find(world.core, 2));
  turn(&world);
  assert_int_equal(world.ended.campaign, 2);
  assert_int_equal(world.ended.reason, CV_END_DEADLINE);
  world_end(&world);
}

/* The first message to the broker is the hello, whatever has happened before it. */
static void test_end_before_the_hello(void **state) {
  struct world world;
  begin(&world);
  cv_cobroker_leave(world.core, world.broker);
  join(&world, &broker_of_test, &world.broker);
  cv_cobroker_end(world.core, campaign_of(&world), CV_END_DEADLINE, "its deadline has passed");
  turn(&world);
  assert_int_equal(world.got_ended, 0);
  say(&world, world.broker, &(struct cv_share_frame){.hello = hello_of_test});
  struct cv_share_open open = open_of_test(&world);
  open_with(&world, &open);
  assert_int_equal(world.got_ended, 1);
  assert_int_equal(world.ended.reason, CV_END_DEADLINE);
  world_end(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_whole_way),
      cmocka_unit_test(test_restarts),
      cmocka_unit_test(test_place_and_slot_count_once),
      cmocka_unit_test(test_seal),
      cmocka_unit_test(test_proof),
      cmocka_unit_test(test_worker_without_epsilon),
      cmocka_unit_test(test_sessions),
      cmocka_unit_test(test_sessions_of_a_revoked_certificate),
      cmocka_unit_test(test_session_of_a_connection_is_one),
      cmocka_unit_test(test_sessions_are_bounded),
      cmocka_unit_test(test_enter_what_is_not_open),
      cmocka_unit_test(test_who_may_connect),
      cmocka_unit_test(test_messages_of_others),
      cmocka_unit_test(test_over),
      cmocka_unit_test(test_new_key),
      cmocka_unit_test(test_deadline),
      cmocka_unit_test(test_end_before_the_hello),
  };
  return cmocka_run_group_tests_name("cobroker", tests, NULL, NULL);
}
