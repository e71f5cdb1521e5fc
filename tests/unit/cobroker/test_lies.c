/* SPDX-License-Identifier: Apache-2.0 */
/* What a broker cannot do that lies, or has lost what it had: at most the campaign is spoilt, and the log says who. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "cobroker/ending.h"
#include "tests/unit/cobroker/script.h"

/* ---- batches ---- */

static void frozen(struct world *world, const char *why) {
  assert_int_equal(world->got_ended, 1);
  assert_int_equal(world->ended.reason, CV_END_FROZEN);
  assert_string_equal(world->ended_why, why);
  assert_string_equal(world->event, "freeze");
  assert_non_null(strstr(world->line, why)); /* the log says who */
  assert_null(campaign_of(world));
  /* For ever: it is not opened again. */
  struct cv_share_open open = open_of_test(world);
  say_open(world, &open);
  turn(world);
  assert_int_equal(world->got_ended, 2);
  restart(world);
  say_open(world, &open);
  turn(world);
  assert_int_equal(world->got_ended, 3);
  assert_int_equal(world->ended.reason, CV_END_FROZEN);
  world_end(world);
}

static void test_repeated_batch(void **state) {
  struct world world;
  begin(&world);
  assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
  for (int i = 0; i < 3; i++) {
    say_batch(&world, 1);
    turn(&world);
    assert_int_equal(world.got_answers, 2 + i);
    assert_int_equal(world.answer[0], CV_ANSWER_ACCEPTED); /* not PLACE: it is judged once */
    restart(&world);
    turn(&world);
    world.got_answers = 2 + (unsigned)i;
  }
  assert_int_equal(campaign_of(&world)->tokens, 1);
  assert_int_equal(cv_accounts_spent(&world.core->accounts, 1), EPSILON);
  world_end(&world);
}

static void test_another_batch_freezes(void **state) {
  struct world world;
  begin(&world);
  assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
  world.leader.sent[1].token[0].message.verifier[0] ^= 1;
  say_batch(&world, 1);
  turn(&world);
  frozen(&world, "the broker sends another batch 1 than before");
}

static void test_batch_after_done_freezes(void **state) {
  struct world world;
  begin(&world);
  assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
  say_done(&world, 1);
  turn(&world);
  say_batch(&world, 1);
  turn(&world);
  frozen(&world, "the broker sends batch 1 again, which it said to have booked");
}

/* The broker's own mistakes cost no worker anything: the connection is closed, and nothing of the batch counts. */
static void test_batches_out_of_order(void **state) {
  struct world world;
  struct cv_why why;
  begin(&world);
  struct pending token = token_of(&world, 0, 0, 1, 0);
  struct cv_share_batch batch = {.campaign = 1, .number = 2, .tokens = 1, .token = &token.message};
  const struct cv_share_frame frame = {.batches = 1, .batch = &batch};
  assert_int_equal(try_frame(&world, world.broker, &frame, &why), CV_ERR_STATE);
  assert_string_equal(why.text, "campaign 1: batch 2; expected at most 1");
  batch.number = 1;
  token.message.verifiers--;
  assert_int_equal(try_frame(&world, world.broker, &frame, &why), CV_ERR_FORMAT);
  token.message.verifiers++;
  uint64_t kept = token.message.verifier[0];
  token.message.verifier[0] = CV_FIELD_P;
  assert_int_equal(try_frame(&world, world.broker, &frame, &why), CV_ERR_FORMAT);
  token.message.verifier[0] = kept;
  struct cv_share_number done = {.campaign = 1, .number = 1};
  assert_int_equal(try_frame(&world, world.broker, &(struct cv_share_frame){.dones = 1, .done = &done}, &why),
                   CV_ERR_STATE);
  assert_int_equal(judged(&world, &token), CV_ANSWER_ACCEPTED);
  world_end(&world);
}

/* ---- opening ---- */

static void test_key_is_drawn_once(void **state) {
  struct world world;
  begin(&world);
  uint8_t key[CV_SPLIT_SEED_BYTES];
  memcpy(key, world.opened.key, sizeof(key));
  for (int i = 0; i < 3; i++) {
    restart(&world);
    turn(&world);
    assert_int_equal(world.got_opened, 2 + i);
    assert_memory_equal(key, world.opened.key, sizeof(key));
    assert_int_equal(world.opened.position.plans, 1);
  }
  world_end(&world);
}

static void test_another_spec_freezes(void **state) {
  struct world world;
  begin(&world);
  struct cv_share_open open = open_of_test(&world);
  open.spec.tokens++;
  open_with(&world, &open);
  frozen(&world, "the broker opens another campaign under the same number");
}

static void test_another_database_freezes(void **state) {
  struct world world;
  begin(&world);
  struct cv_share_open open = open_of_test(&world);
  open.database[0]++;
  open_with(&world, &open);
  frozen(&world, "the broker opens another campaign under the same number");
}

static void test_positions(void **state) {
  static const struct {
    int plans, batches, closings, hash;
    const char *why;
  } row[] = {{1, 0, 0, 0, "the broker has plans that are not here"},
             {0, -1, 0, 0, "the broker has lost batches that are here"},
             {0, 0, 0, 1, "the broker has other plans than here"},
             {0, 0, 0, 2, "the broker has other batches than here"},
             {0, 0, 0, 3, "the broker has other closings than here"}};
  for (size_t i = 0; i < CV_COUNT(row); i++) {
    struct world world;
    begin(&world);
    assert_int_equal(give(&world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
    struct cv_share_open open = open_of_test(&world);
    open.position.plans += (uint64_t)row[i].plans;
    open.position.batches += (uint64_t)row[i].batches;
    open.position.plans_hash.bytes[0] ^= row[i].hash == 1;
    open.position.batches_hash.bytes[0] ^= row[i].hash == 2;
    open.position.closings_hash.bytes[0] ^= row[i].hash == 3;
    open_with(&world, &open);
    frozen(&world, row[i].why);
  }
}

/* The broker may have committed batches and closings, and not yet the plan, that this side does not have or has. */
static void test_positions_on_the_way(void **state) {
  struct world world;
  begin(&world);
  struct cv_share_open open = open_of_test(&world);
  open.position.batches = 3;
  open.position.closings = 2;
  open_with(&world, &open);
  assert_int_equal(world.got_opened, 2);
  open.position = (struct cv_share_position){.campaign = 1};
  open_with(&world, &open); /* PlanOpened is lost */
  assert_int_equal(world.got_opened, 3);
  assert_int_equal(world.got_ended, 0);
  world_end(&world);
}

static void test_what_is_not_opened(void **state) {
  struct world world;
  world_make(&world);
  struct cv_share_open open = open_of_test(&world);
  const struct cv_share_open good = open;
  open.position.campaign = 2;
  open.position.plans = 4;
  open_with(&world, &open);
  assert_string_equal(world.opened_why,
                      "campaign 2 has 4 plans at the broker, and is unknown here: this co-broker's state was lost");
  struct {
    struct cv_spec spec;
    const char *why;
  } row[] = {{good.spec, "epsilon 2.000000 is over the co-broker's limit of 1.000000 (limits.epsilon)"},
             {good.spec, "11 arms are over the co-broker's limit of 10 (limits.arms)"},
             {good.spec, "brokers is 0; expected 2"},
             {good.spec, "score_bits is 7 with two brokers; expected 1 or 15"},
             {good.spec, "mechanism binary lacks a parameter; expected a spec that the broker has completed"},
             {good.spec,
              "releases of 1 tokens are below the co-broker's smallest release of 5 (limits.release_tokens), "
              "which the broker did not know yet; submit the campaign again"},
             {good.spec, NULL},
             {good.spec, NULL},
             {good.spec, NULL}};
  struct cv_edge edge = {0, 1};
  row[0].spec.epsilon_micro = 2000000;
  row[1].spec.arms = 11;
  row[2].spec.brokers = row[2].spec.score_bits = 0;
  row[3].spec.score_bits = 7;
  (void)snprintf(row[4].spec.mechanism.name, sizeof(row[4].spec.mechanism.name), "binary");
  row[5].spec.policy.params.count = 0;
  (void)snprintf(row[6].spec.mechanism.name, sizeof(row[5].spec.mechanism.name), "none");
  (void)snprintf(row[7].spec.privatizer.name, sizeof(row[7].spec.privatizer.name), "laplace");
  row[8].spec.edges = 1;
  row[8].spec.edge = &edge;
  for (size_t i = 0; i < CV_COUNT(row); i++) {
    open = good;
    open.position.campaign = 2;
    open.spec = row[i].spec;
    unsigned before = world.got_opened;
    open_with(&world, &open);
    assert_int_equal(world.got_opened, before + 1);
    assert_string_not_equal(world.opened_why, "");
    assert_null(strchr(world.opened_why, '\n'));
    if (row[i].why != NULL) {
      assert_string_equal(world.opened_why, row[i].why);
    }
    assert_null(cv_cobroker_campaign_find(world.core, 2));
  }
  assert_string_equal(world.event, "open refused");
  open = good;
  open.position.campaign = 2;
  open_with(&world, &open); /* nothing of them is left */
  assert_string_equal(world.opened_why, "");
  open.position.campaign = 3;
  open_with(&world, &open);
  assert_string_equal(world.opened_why, "2 campaigns are open; expected at most 2");
  world_end(&world);
}

/* A campaign whose record is forgotten can never be opened again, under whatever key. */
static void test_records_are_bounded(void **state) {
  struct world world;
  world_make(&world);
  turn(&world);
  for (uint64_t id = 2; id < 8; id++) {
    struct cv_share_open open = open_of_test(&world);
    struct cv_share_end over = {.campaign = id, .reason = CV_END_COMPLETE};
    open.position.campaign = id;
    open_with(&world, &open);
    assert_string_equal(world.opened_why, "");
    say(&world, world.broker, &(struct cv_share_frame){.overs = 1, .over = &over});
    turn(&world);
  }
  world.leader.over = false;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(world.core->archive.count, 3);
    struct cv_share_open open = open_of_test(&world);
    open.position.campaign = 3;
    open_with(&world, &open);
    assert_string_equal(world.opened_why, "campaign 3; expected a number from 5 to 4294967295");
    restart(&world);
    turn(&world);
  }
  assert_non_null(campaign_of(&world)); /* an older one that is still open goes on */
  world_end(&world);
}

/* A broker that opens and ends one campaign after the other cannot fill the co-broker's disk at its own speed. */
static void test_new_campaigns_a_minute_are_bounded(void **state) {
  struct world world;
  world_make(&world);
  turn(&world);
  world.submits = 4;
  restart(&world);
  unsigned opened = 0;
  for (uint64_t id = 2; id < 12; id++) {
    struct cv_share_open open = open_of_test(&world);
    struct cv_share_end over = {.campaign = id, .reason = CV_END_COMPLETE};
    open.position.campaign = id;
    open_with(&world, &open);
    opened += world.opened_why[0] == '\0';
    say(&world, world.broker, &(struct cv_share_frame){.overs = 1, .over = &over});
    turn(&world);
  }
  assert_int_equal(opened, 4);
  assert_string_equal(world.opened_why, "4 campaigns were opened within a minute; expected at most 4; try again later");
  world.now_ms += 60000;
  cv_cobroker_tick(world.core, world.now_ms, world.now_ms);
  struct cv_share_open open = open_of_test(&world);
  open.position.campaign = 12;
  open_with(&world, &open);
  assert_string_equal(world.opened_why, "");
  world_end(&world);
}

/* The numbers are the broker's, and may be any: together they must not look like a new campaign. */
static void test_a_position_that_wraps_is_none_of_a_new_campaign(void **state) {
  struct world world;
  world_make(&world);
  turn(&world);
  struct cv_share_open open = open_of_test(&world);
  open.position.campaign = 2;
  open.position.plans = open.position.batches = UINT64_C(1) << 63;
  open_with(&world, &open);
  assert_non_null(strstr(world.opened_why, "is unknown here: this co-broker's state was lost"));
  open.position.plans = UINT64_MAX;
  open.position.batches = 0;
  open.position.closings = 1;
  open_with(&world, &open);
  assert_non_null(strstr(world.opened_why, "is unknown here: this co-broker's state was lost"));
  assert_null(cv_cobroker_campaign_find(world.core, 2));
  world_end(&world);
}

/* Shares under another context must never be verified with the same key. */
static void test_another_key_of_a_broker_freezes(void **state) {
  struct world world;
  begin(&world);
  stop(&world);
  world.duo.cobroker.bytes[0]++;
  assert_true(load(&world));
  assert_null(campaign_of(&world));
  connect_all(&world);
  turn(&world);
  assert_int_equal(world.ended.reason, CV_END_FROZEN);
  assert_string_equal(world.ended_why, "the key of the broker or of this co-broker is another one than before");
  world_end(&world);
}

/* ---- plans ---- */

static void test_plans(void **state) {
  struct world world;
  struct cv_why why;
  begin(&world);
  say_plan(&world, 1, TAU); /* the same again */
  turn(&world);
  assert_int_equal(world.got_plans, 2);
  say_plan(&world, 2, TAU);
  turn(&world);
  assert_string_equal(world.refused_why, "plan 2 before plan 1 is closed; expected one plan after the other");
  struct cv_want want = {.arm = 0, .tokens = TAU};
  struct cv_share_plan plan = {.campaign = 1, .plan = {.number = 3, .wants = 1, .want = &want}};
  assert_int_equal(try_frame(&world, world.broker, &(struct cv_share_frame){.plans = 1, .plan = &plan}, &why),
                   CV_ERR_STATE);
  say_plan(&world, 1, TAU + 1);
  turn(&world);
  frozen(&world, "the broker sends another plan 1 than before");
}

static void refused_plan(struct world *world, struct cv_want *want, uint32_t wants, enum cv_end reason,
                         const char *text) {
  struct cv_share_plan plan = {.campaign = 1, .plan = {.number = 1, .wants = wants, .want = want}};
  unsigned before = world->got_refused;
  say(world, world->broker, &(struct cv_share_frame){.plans = 1, .plan = &plan});
  turn(world);
  assert_int_equal(world->got_refused, before + 1);
  assert_int_equal(world->refused.reason, reason);
  assert_string_equal(world->refused_why, text);
}

static void test_plans_that_are_refused(void **state) {
  struct world world;
  world_make(&world);
  turn(&world);
  struct cv_want twice[] = {{.arm = 1, .tokens = TAU}, {.arm = 1, .tokens = TAU}}, far = {.arm = ARMS, .tokens = TAU},
                 few = {.arm = 0, .tokens = 4}, paired = {.arm = 0, .tokens = TAU, .opponent = 2},
                 many = {.arm = 0, .tokens = ARMS * PLANS * TAU + 1};
  refused_plan(&world, twice, 2, CV_END_REFUSED, "arm 2 is named twice; expected each arm once");
  refused_plan(&world, &far, 1, CV_END_REFUSED, "arm 4 is unknown; expected 1 to 3");
  refused_plan(&world, &few, 1, CV_END_REFUSED, "4 tokens of arm 1 in one release; expected 5 to 16777216");
  refused_plan(&world, &paired, 1, CV_END_REFUSED, "arm 1 has opponent 2; expected none: the campaign has no pairs");
  refused_plan(&world, &many, 1, CV_END_TOKENS,
               "the plan asks for 109 tokens; expected at most 108, which are left of 108");
  campaign_of(&world)->ledger.limit_micro = 1;
  struct cv_want good = {.arm = 0, .tokens = TAU};
  refused_plan(&world, &good, 1, CV_END_LEDGER,
               "arm 1 has spent 0 micro-epsilon of 1; its next release asks for 250000, 1 are left");
  assert_int_equal(world.refused.asked, EPSILON / 2);
  assert_int_equal(world.refused.left, 1);
  world_end(&world);
}

/* ---- closings ---- */

static void fill(struct world *world) {
  while (send_some(world)) {
    turn(world);
  }
  assert_true(is_full(world));
}

/* A closing that is not the open epoch's. */
static void close_with(struct world *world, struct cv_share_close *close, const char *why) {
  say_close(world, close);
  turn(world);
  assert_int_equal(world->got_halves, 0);
  frozen(world, why);
}

static void test_short_closing(void **state) {
  struct world world;
  begin(&world);
  (void)send_some(&world);
  turn(&world);
  struct cv_share_close close = closing_of(&world, 0);
  close_with(&world, &close, "closing 1 of arm 1 has 7 tokens, here 7; expected 12");
}

static void test_closing_with_a_wrong_count(void **state) {
  struct world world;
  begin(&world);
  (void)send_some(&world);
  turn(&world);
  struct cv_share_close close = closing_of(&world, 0);
  close.count = TAU;
  close_with(&world, &close, "closing 1 of arm 1 has 12 tokens, here 7; expected 12");
}

static void test_closing_with_a_wrong_chain(void **state) {
  struct world world;
  begin(&world);
  fill(&world);
  struct cv_share_close close = closing_of(&world, 0);
  close.chain.bytes[0] ^= 1;
  close_with(&world, &close, "closing 1 of arm 1 is over other tokens than here");
}

static void test_closing_of_another_plan(void **state) {
  struct world world;
  begin(&world);
  fill(&world);
  struct cv_share_close close = closing_of(&world, 0);
  close.plan_hash.bytes[0] ^= 1;
  close_with(&world, &close, "closing 1 is of another plan 1 than here");
}

static void test_closing_of_a_closed_arm(void **state) {
  struct world world;
  begin(&world);
  fill(&world);
  struct cv_share_close close = closing_of(&world, 0);
  commit_closing(&world, &close);
  turn(&world);
  assert_int_equal(world.got_halves, 1);
  close.number = 2;
  say_close(&world, &close);
  turn(&world);
  assert_int_equal(world.got_halves, 1);
  frozen(&world, "closing 2 is of arm 1 in plan 1, which is not open");
}

static void test_repeated_closing(void **state) {
  struct world world;
  struct cv_why why;
  begin(&world);
  fill(&world);
  struct cv_share_close close = closing_of(&world, 0);
  commit_closing(&world, &close);
  turn(&world);
  uint64_t half = world.half.half, spent = campaign_of(&world)->ledger.arm[0].spent_micro;
  assert_int_equal(spent, EPSILON / 2); /* the first release of this mechanism */
  for (unsigned i = 0; i < 3; i++) {
    say_close(&world, &close);
    turn(&world);
    assert_int_equal(world.half.half, half);
    assert_int_equal(campaign_of(&world)->ledger.arm[0].spent_micro, spent); /* charged once */
    restart(&world);
    turn(&world);
  }
  struct cv_share_close later = close;
  later.number = 3;
  assert_int_equal(try_frame(&world, world.broker, &(struct cv_share_frame){.closes = 1, .close = &later}, &why),
                   CV_ERR_STATE);
  unsigned halves = world.got_halves;
  close.count--;
  say_close(&world, &close);
  turn(&world);
  assert_int_equal(world.got_halves, halves);
  frozen(&world, "the broker sends another closing 1 than before");
}

/* The arm's data are used up: nothing leaves, nothing is charged, and the noise is gone. */
static void test_discard(void **state) {
  struct world world;
  begin(&world);
  (void)send_some(&world);
  turn(&world);
  struct cv_share_close close = closing_of(&world, 0);
  close.discard = true;
  commit_closing(&world, &close);
  turn(&world);
  assert_int_equal(world.got_halves, 1);
  assert_int_equal(world.half.half, 0);
  for (int i = 0; i < 2; i++) {
    const struct cv_cobroker_arm *arm = &campaign_of(&world)->arm[0];
    assert_int_equal(campaign_of(&world)->ledger.arm[0].spent_micro, 0);
    assert_true(cv_cobroker_arm_is_spent(arm));
    assert_int_equal(arm->sum, 0);
    restart(&world);
    turn(&world);
    turn(&world);
  }
  assert_int_equal(give(&world, 0, 8, 50, 0), CV_ANSWER_PLACE);
  assert_int_equal(give(&world, 1, 8, 50, 0), CV_ANSWER_ACCEPTED); /* other arms go on */
  world_end(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_repeated_batch),
      cmocka_unit_test(test_another_batch_freezes),
      cmocka_unit_test(test_batch_after_done_freezes),
      cmocka_unit_test(test_batches_out_of_order),
      cmocka_unit_test(test_key_is_drawn_once),
      cmocka_unit_test(test_another_spec_freezes),
      cmocka_unit_test(test_another_database_freezes),
      cmocka_unit_test(test_positions),
      cmocka_unit_test(test_positions_on_the_way),
      cmocka_unit_test(test_what_is_not_opened),
      cmocka_unit_test(test_records_are_bounded),
      cmocka_unit_test(test_new_campaigns_a_minute_are_bounded),
      cmocka_unit_test(test_a_position_that_wraps_is_none_of_a_new_campaign),
      cmocka_unit_test(test_another_key_of_a_broker_freezes),
      cmocka_unit_test(test_plans),
      cmocka_unit_test(test_plans_that_are_refused),
      cmocka_unit_test(test_short_closing),
      cmocka_unit_test(test_closing_with_a_wrong_count),
      cmocka_unit_test(test_closing_with_a_wrong_chain),
      cmocka_unit_test(test_closing_of_another_plan),
      cmocka_unit_test(test_closing_of_a_closed_arm),
      cmocka_unit_test(test_repeated_closing),
      cmocka_unit_test(test_discard),
  };
  return cmocka_run_group_tests_name("cobroker lies", tests, NULL, NULL);
}
