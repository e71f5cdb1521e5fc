/* SPDX-License-Identifier: Apache-2.0 */
/* A co-broker that lies, refuses or ends a campaign with two brokers, and how such a campaign ends. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <string.h>

#include "tests/unit/broker/two.h"

enum lie {
  OTHER_KEY,
  OTHER_PLANS,
  MORE_PLANS,
  FEWER_PLANS,
  OTHER_BATCHES,
  MORE_BATCHES,
  FEWER_BATCHES,
  OTHER_CLOSINGS,
  MORE_CLOSINGS,
  FEWER_CLOSINGS,
  BEFORE_OPENED,
  HALF_OF_NOTHING,
  HALF_OUT_OF_FIELD,
  HALF_TOO_LARGE,
  TOO_FEW_VERDICTS,
  TOO_MANY_VERDICTS,
  NO_VERDICT,
  STRANGE_VERDICT,
  VERDICTS_OF_NOTHING,
  PLAN_OF_NOTHING,
  FROZEN_BY_ITSELF,
  LIES
};

/* Changes a position that was right. */
static void bend_position(struct cv_share_position *position, enum lie lie) {
  switch (lie) {
    case OTHER_PLANS:
      position->plans_hash.bytes[0] ^= 1;
      break;
    case MORE_PLANS:
      position->plans++;
      break;
    case FEWER_PLANS:
      position->plans--;
      break;
    case OTHER_BATCHES:
      position->batches_hash.bytes[0] ^= 1;
      break;
    case MORE_BATCHES:
      position->batches += 2;
      break;
    case FEWER_BATCHES:
      position->batches = 0;
      break;
    case OTHER_CLOSINGS:
      position->closings_hash.bytes[0] ^= 1;
      break;
    case MORE_CLOSINGS:
      position->closings++;
      break;
    default:
      position->closings--;
  }
}

static uint8_t verdicts_of_test[CV_BATCH_TOKENS];

static void bend_answers(struct fake_cobroker *fake, struct cv_share_frame *frame, enum lie lie) {
  struct cv_share_answers *answer = &frame->answer[0];
  if (lie == VERDICTS_OF_NOTHING) {
    verdicts_of_test[0] = CV_ANSWER_ACCEPTED;
    *answer = (struct cv_share_answers){
        .campaign = 1, .number = fake->position.batches + 5, .answers = 1, .answer = verdicts_of_test};
    frame->answers = 1;
  } else if (frame->answers > 0) {
    memcpy(verdicts_of_test, answer->answer, answer->answers);
    verdicts_of_test[0] = lie == NO_VERDICT ? CV_ANSWER_NONE : lie == STRANGE_VERDICT ? CV_ANSWERS : CV_ANSWER_ACCEPTED;
    verdicts_of_test[answer->answers] = CV_ANSWER_ACCEPTED;
    answer->answer = verdicts_of_test;
    answer->answers += (lie == TOO_MANY_VERDICTS) - (lie == TOO_FEW_VERDICTS);
  }
}

static void bend(struct fake_cobroker *fake, struct cv_share_frame *frame) {
  enum lie lie = (enum lie)fake->data;
  if (lie == OTHER_KEY && frame->opened > 0) {
    fake->opened.key[0] ^= 1;
  } else if (lie == BEFORE_OPENED && frame->opened > 0) {
    frame->opened = 0;
    fake->closed[0] = (struct cv_share_closed){.campaign = 1, .number = fake->position.closings + 1};
    frame->closed = 1;
  } else if (lie < HALF_OF_NOTHING && frame->opened > 0) {
    bend_position(&fake->opened.position, lie);
  } else if (lie == HALF_OF_NOTHING) {
    fake->closed[0] = (struct cv_share_closed){.campaign = 1, .number = fake->position.closings + 1};
    frame->closed = 1;
  } else if (lie == HALF_OUT_OF_FIELD && frame->closed > 0) {
    fake->closed[0].half = CV_FIELD_P;
  } else if (lie == HALF_TOO_LARGE && frame->closed > 0) {
    fake->closed[0].half = cv_field_add(fake->closed[0].half, CV_FIELD_P / 2);
  } else if (lie >= TOO_FEW_VERDICTS && lie <= VERDICTS_OF_NOTHING) {
    bend_answers(fake, frame, lie);
  } else if (lie == PLAN_OF_NOTHING) {
    fake->plan_opened[0] = (struct cv_share_number){.campaign = 1, .number = fake->position.plans + 1};
    frame->plans_opened = 1;
  } else if (lie == FROZEN_BY_ITSELF) {
    fake->end[0] = (struct cv_share_end){.campaign = 1, .reason = CV_END_FROZEN, .why = "as it says"};
    frame->ended = 1;
    frame->end = fake->end;
  }
}

/* Each lie freezes the campaign; what was released stays right, and no further release leaves. */
static void test_a_lying_cobroker_freezes_the_campaign(void **state) {
  for (enum lie lie = OTHER_KEY; lie < LIES; lie++) {
    struct world world;
    begin(&world);
    while (world.thirdparty.releases < ARMS) { /* so that there is a history */
      work(&world, 1);
    }
    work(&world, 3);
    assert_int_equal(campaign_of(&world)->phase, CV_PHASE_RUNNING);
    world.cobroker.bend = bend;
    world.cobroker.data = (int)lie;
    if (lie < HALF_OF_NOTHING) {
      (void)restart(&world);
    }
    uint64_t releases = world.thirdparty.releases;
    for (int i = 0; i < 40 && end_of(&world) == CV_END_NONE; i++) {
      releases = world.thirdparty.releases;
      work(&world, 1);
    }
    if (end_of(&world) != CV_END_FROZEN) {
      fail_msg("lie %d: the campaign has not frozen", (int)lie);
    }
    world.cobroker.bend = NULL;
    work(&world, 5);
    assert_true(world.thirdparty.releases <= releases + ARMS);
    assert_true(world.cobroker.is_over || lie == FROZEN_BY_ITSELF);
    assert_true(world.thirdparty.closed);
    /* After a restart nothing of its secrets is left, and it stays frozen. */
    (void)restart(&world);
    assert_int_equal(end_of(&world), CV_END_FROZEN);
    world_end(&world);
  }
}

static void swap_halves(struct fake_cobroker *fake, struct cv_share_frame *frame) {
  if (frame->closed > 1) {
    struct cv_share_closed first = fake->closed[0];
    fake->closed[0] = fake->closed[1];
    fake->closed[1] = first;
  }
}

/* Halves of other releases would be put together. */
static void test_halves_out_of_order_freeze_the_campaign(void **state) {
  struct world world;
  begin(&world);
  world.cobroker.hold_closings = true;
  work(&world, 100);
  assert_int_equal(campaign_of(&world)->two->closings, ARMS);
  world.cobroker.hold_closings = false;
  world.cobroker.bend = swap_halves;
  (void)restart(&world);
  work(&world, 4);
  assert_int_equal(end_of(&world), CV_END_FROZEN);
  assert_int_equal(world.thirdparty.releases, 0);
  world_end(&world);
}

/* The next plan may depend on every release: it does not come before the co-broker's halves. */
static void test_a_plan_before_the_halves_freezes_the_campaign(void **state) {
  struct world world;
  begin(&world);
  world.cobroker.hold_closings = true;
  work(&world, 100);
  assert_int_equal(campaign_of(&world)->two->closings, ARMS);
  assert_int_equal(campaign_of(&world)->phase, CV_PHASE_RUNNING);
  next_plan(&world, 1);
  assert_int_equal(end_of(&world), CV_END_FROZEN);
  world_end(&world);
}

static void refuse_plan(struct fake_cobroker *fake, struct cv_share_frame *frame) {
  if (frame->plans_opened > 0) {
    fake->plan_refused = (struct cv_share_refused){.campaign = 1,
                                                   .plan = fake->plan_opened[0].number,
                                                   .reason = CV_END_LEDGER,
                                                   .why = "no",
                                                   .asked = 2,
                                                   .left = 1};
    frame->plans_opened = 0;
    frame->plans_refused = 1;
    frame->plan_refused = &fake->plan_refused;
  }
}

/* Nothing of the plan is opened here, and the third-party learns the reason. */
static void test_a_plan_that_the_cobroker_refuses_is_refused(void **state) {
  struct world world;
  world_make(&world);
  world.cobroker.bend = refuse_plan;
  submit(&world);
  for (int i = 0; i < 10; i++) {
    (void)turn(&world, false);
  }
  const struct cv_broker_campaign *campaign = campaign_of(&world);
  assert_int_equal(campaign->phase, CV_PHASE_STOPPING);
  assert_int_equal(campaign->end, CV_END_LEDGER);
  assert_int_equal(campaign->plans, 0);
  assert_int_equal(world.thirdparty.plans, 0);
  assert_int_equal(campaign->rank.refused.asked, 2);
  world_end(&world);
}

static void refuse_campaign(struct fake_cobroker *fake, struct cv_share_frame *frame) {
  fake->opened.refused = "epsilon is over this co-broker's limit";
}

static void test_a_campaign_that_the_cobroker_refuses_ends(void **state) {
  struct world world;
  world_make(&world);
  world.cobroker.bend = refuse_campaign;
  submit(&world);
  for (int i = 0; i < 10; i++) {
    (void)turn(&world, false);
  }
  assert_int_equal(campaign_of(&world)->phase, CV_PHASE_STOPPING);
  assert_int_equal(campaign_of(&world)->end, CV_END_REFUSED);
  assert_int_equal(world.cobroker.shards, 0);
  struct cv_progress progress; /* the requester is told why */
  cv_broker_campaign_progress(world.core, campaign_of(&world), &progress);
  assert_non_null(strstr(progress.why, "epsilon is over this co-broker's limit"));
  world_end(&world);
}

/* Another key than the configured one is not served, whatever its certificate says. */
static void test_another_cobroker_is_refused(void **state) {
  struct world world;
  struct cv_why why;
  struct cv_broker_conn *conn;
  begin(&world);
  const struct cv_identity other = {.role = CV_ROLE_COBROKER, .name = "c", .key = {{3}}};
  assert_int_equal(cv_broker_join(world.core, &other, NULL, &conn, &why), CV_ERR_DENIED);
  assert_non_null(strstr(why.text, "cobroker_key"));
  work(&world, 3);
  assert_true(world.cobroker.accepted > 0);
  world_end(&world);
}

/* ---- ends ---- */

/* A cancellation waits for nothing; whoever waits for a verdict is told, and the co-broker as often as it must. */
static void test_a_cancelled_campaign_is_over_at_the_cobroker(void **state) {
  struct world world;
  begin(&world);
  world.cobroker.is_mute = true;
  work(&world, 3);
  size_t waiting = campaign_of(&world)->two->docket.count;
  assert_true(waiting > 0);
  cv_broker_leave(world.core, world.share);
  world.share = NULL;
  world.terms = (struct cv_terms){0};
  struct cv_order_frame cancel = {.kind = CV_ORDER_CANCEL, .as.campaign = 1};
  ask(&world, &cancel);
  (void)turn(&world, false);
  assert_int_equal(campaign_of(&world)->phase, CV_PHASE_STOPPING);
  assert_true(world.verdicts[CV_VERDICT_EXPIRED] >= waiting);
  struct cv_rank_result result = {.campaign = 1, .reason = CV_END_CANCELLED};
  answer(&world, &(struct cv_rank_frame){.results = 1, .result = &result});
  (void)turn(&world, false);
  assert_int_equal(end_of(&world), CV_END_CANCELLED);
  assert_false(world.cobroker.is_over);
  (void)restart(&world); /* the end is not forgotten until the co-broker has confirmed it */
  assert_true(cv_archive_find(&world.core->archive, 1)->over_due);
  for (int i = 0; i < 4; i++) {
    (void)turn(&world, false);
  }
  assert_true(world.cobroker.is_over);
  assert_false(cv_archive_find(&world.core->archive, 1)->over_due);
  (void)restart(&world);
  assert_false(cv_archive_find(&world.core->archive, 1)->over_due);
  world_end(&world);
}

static void end_at_deadline(struct fake_cobroker *fake, struct cv_share_frame *frame) {
  fake->end[0] = (struct cv_share_end){.campaign = 1, .reason = CV_END_DEADLINE};
  frame->ended = 1;
  frame->end = fake->end;
}

/* The third-party is asked for what there is; the co-broker need not be told. */
static void test_the_cobrokers_deadline_stops_the_campaign(void **state) {
  struct world world;
  begin(&world);
  world.cobroker.bend = end_at_deadline;
  work(&world, 4);
  assert_int_equal(campaign_of(&world)->phase, CV_PHASE_STOPPING);
  assert_int_equal(campaign_of(&world)->end, CV_END_DEADLINE);
  assert_true(campaign_of(&world)->rank.stop_sent);
  assert_false(world.cobroker.is_over);
  world_end(&world);
}

/* Shares of one campaign are never checked in two contexts, even with the same verify key. */
static void test_another_pair_of_keys_freezes_the_campaign(void **state) {
  struct world world;
  begin(&world);
  work(&world, 4);
  world.core->config.duo.broker.bytes[0] ^= 1;
  cv_broker_leave(world.core, world.share);
  connect_share(&world);
  assert_int_equal(end_of(&world), CV_END_FROZEN);
  world_end(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_lying_cobroker_freezes_the_campaign),
      cmocka_unit_test(test_halves_out_of_order_freeze_the_campaign),
      cmocka_unit_test(test_a_plan_before_the_halves_freezes_the_campaign),
      cmocka_unit_test(test_a_plan_that_the_cobroker_refuses_is_refused),
      cmocka_unit_test(test_a_campaign_that_the_cobroker_refuses_ends),
      cmocka_unit_test(test_another_cobroker_is_refused),
      cmocka_unit_test(test_a_cancelled_campaign_is_over_at_the_cobroker),
      cmocka_unit_test(test_the_cobrokers_deadline_stops_the_campaign),
      cmocka_unit_test(test_another_pair_of_keys_freezes_the_campaign),
  };
  return cmocka_run_group_tests_name("two_lies", tests, NULL, NULL);
}
