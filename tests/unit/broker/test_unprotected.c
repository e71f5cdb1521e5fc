/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that give exact scores: their charges, and that no other campaign gets a token of them. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <string.h>

#include "broker/campaign.h"
#include "broker/core.h"
#include "broker/state.h"
#include "common/crypto/crypto.h"
#include "tests/fuzz/broker_disk.h"

/* Campaigns 1 and 3 release exact sums, campaign 2 is private; each wants PLAYS tokens, two from a worker at most. */
enum { CAMPAIGNS = 3, PLAYS = 40, EPSILON = 400000, NOW = 1000, TICKETS = 64 };

struct held {
  uint64_t campaign;
  uint8_t ticket[CV_TICKET_BYTES];
};

struct world {
  struct cv_rng_seeded noise;
  struct cv_broker *core;
  struct disk disk;
  struct cv_broker_conn *crowd, *rank, *order;
  uint64_t limit_micro;
  struct held held[TICKETS]; /* in the order of assignments */
  size_t helds, turned_away; /* and answers that a campaign will never want a worker again */
  enum cv_verdict verdict;   /* the last one */
};

static const struct cv_identity gateway = {.role = CV_ROLE_GATEWAY, .name = "1-1000", .first = 1, .last = 1000};
static const struct cv_identity thirdparty = {.role = CV_ROLE_THIRDPARTY, .name = "t"};
static const struct cv_identity requester = {.role = CV_ROLE_REQUESTER, .name = "r"};
static const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION};

static enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *to, size_t n) {
  memset(to, 0, n);
  return CV_OK;
}

static void hear(struct world *world, const struct cv_crowd_frame *frame) {
  for (size_t i = 0; i < frame->assigns; i++) {
    assert_true(world->helds < TICKETS);
    world->held[world->helds].campaign = frame->assign[i].campaign;
    memcpy(world->held[world->helds++].ticket, frame->assign[i].ticket, CV_TICKET_BYTES);
  }
  for (size_t i = 0; i < frame->acks; i++) {
    world->verdict = frame->ack[i].verdict;
  }
  for (size_t i = 0; i < frame->backoffs; i++) {
    world->turned_away += frame->backoff[i].delay_ms == 0 ? frame->backoff[i].workers : 0;
  }
}

static void turn(struct world *world) {
  struct cv_broker_batch batch = {0};
  struct cv_broker_out out;
  bool store;
  assert_int_equal(cv_broker_flush(world->core, NOW, NOW, &batch, &store), CV_OK);
  if (store) {
    disk_commit(&world->disk, &batch);
  }
  cv_broker_stored(world->core);
  while (cv_broker_next_out(world->core, &out)) {
    if (out.schema == CV_SCHEMA_CROWD) {
      hear(world, out.frame.crowd);
    }
  }
  cv_broker_batch_fini(&batch);
}

static void say(struct world *world, const struct cv_crowd_frame *frame) {
  struct cv_why why;
  assert_int_equal(cv_broker_on_crowd(world->core, world->crowd, frame, NOW, NOW, &why), CV_OK);
  turn(world);
}

static void say_rank(struct world *world, const struct cv_rank_frame *frame) {
  struct cv_why why;
  assert_int_equal(cv_broker_on_rank(world->core, world->rank, frame, NOW, &why), CV_OK);
  turn(world);
}

static void boot(struct world *world) {
  const struct cv_broker_config config = {.name = "b",
                                          .limits = {.epsilon_micro = 1000000,
                                                     .trusted_thirdparty = true,
                                                     .worker_epsilon_micro = world->limit_micro,
                                                     .release_tokens = 1,
                                                     .arms = 2,
                                                     .campaigns = CAMPAIGNS,
                                                     .tokens = 1000000,
                                                     .chunks = 100,
                                                     .lease_ms = 1000,
                                                     .queue = 100},
                                          .tagger = {.tag = tag},
                                          .digest = cv_sha256,
                                          .noise = &world->noise.rng};
  struct cv_why why;
  assert_int_equal(cv_broker_new(&config, &world->core), CV_OK);
  assert_int_equal(disk_load(&world->disk, world->core, NOW, NOW), CV_OK);
  assert_int_equal(cv_broker_join(world->core, &thirdparty, NULL, &world->rank, &why), CV_OK);
  assert_int_equal(cv_broker_join(world->core, &requester, NULL, &world->order, &why), CV_OK);
  assert_int_equal(cv_broker_join(world->core, &gateway, NULL, &world->crowd, &why), CV_OK);
  world->helds = 0;
  say_rank(world, &(struct cv_rank_frame){.hello = hello});
  say(world, &(struct cv_crowd_frame){.hello = hello});
}

static void submit(struct world *world, uint8_t number) {
  struct cv_order_frame frame = {.hello = number == 1 ? hello : (struct cv_hello){0}, .kind = CV_ORDER_SUBMIT};
  struct cv_why why;
  frame.as.submit = (struct cv_submit){.client_key = {number},
                                       .spec = {.name = "test",
                                                .arms = 1,
                                                .policy.name = "scripted",
                                                .privatizer.name = "none",
                                                .epsilon_micro = EPSILON,
                                                .tokens_per_worker = 2,
                                                .repeat = true,
                                                .thirdparty_trusted = true,
                                                .tokens = PLAYS}};
  (void)snprintf(frame.as.submit.spec.mechanism.name, CV_PARAM_TEXT, "%s", number == 2 ? "batch" : "none");
  assert_int_equal(cv_broker_on_order(world->core, world->order, &frame, NOW, NOW, &why), CV_OK);
  turn(world);
}

static void begin(struct world *world, uint64_t limit_micro) {
  *world = (struct world){.limit_micro = limit_micro};
  cv_rng_seeded_init(&world->noise, 1, CV_RNG_NOISE, 0, 0);
  boot(world);
  for (uint8_t i = 1; i <= CAMPAIGNS; i++) {
    struct cv_want want = {.arm = 0, .tokens = PLAYS};
    struct cv_rank_opened opened = {.position.campaign = i};
    struct cv_rank_plan plan = {.campaign = i, .plan = {.number = 1, .wants = 1, .want = &want}};
    submit(world, i);
    say_rank(world, &(struct cv_rank_frame){.opened = 1, .answer = &opened, .plans = 1, .plan = &plan});
  }
}

static void end(struct world *world) {
  cv_broker_free(world->core);
  disk_fini(&world->disk);
}

static void restart(struct world *world) {
  cv_broker_free(world->core);
  boot(world);
  for (uint8_t i = 1; i <= CAMPAIGNS; i++) {
    struct cv_broker_campaign *campaign = cv_broker_campaign_find(world->core, i);
    assert_int_equal(campaign->phase, CV_PHASE_RUNNING);
  }
}

/* The worker arrives n times; returns how many assignments it got. */
static size_t arrive(struct world *world, uint64_t worker, size_t n) {
  size_t before = world->helds;
  for (size_t i = 0; i < n; i++) {
    struct cv_arrive arrival = {.workers = 1, .worker = &worker, .credit = TICKETS};
    say(world, &(struct cv_crowd_frame){.arrives = 1, .arrive = &arrival});
  }
  return world->helds - before;
}

static enum cv_verdict give(struct world *world, size_t held) {
  int64_t value = 0;
  struct cv_token token = {.values = 1, .value = &value};
  memcpy(token.ticket, world->held[held].ticket, CV_TICKET_BYTES);
  world->verdict = CV_VERDICT_NONE;
  say(world, &(struct cv_crowd_frame){.tokens = 1, .token = &token});
  return world->verdict;
}

static uint64_t spent(struct world *world, uint64_t worker) {
  return cv_accounts_spent(&world->core->accounts, worker);
}

/* With any limit, and over a restart. */
static void test_a_worker_of_exact_scores_gives_to_no_other_campaign(void **state) {
  static const uint64_t limits[] = {EPSILON, 4000000000, UINT32_MAX};
  for (size_t i = 0; i < CV_COUNT(limits); i++) {
    struct world world;
    begin(&world, limits[i]);
    assert_int_equal(arrive(&world, 7, 1), 1);
    assert_int_equal(world.held[0].campaign, 1);
    assert_int_equal(give(&world, 0), CV_VERDICT_ACCEPTED);
    assert_true(spent(&world, 7) == UINT64_MAX);
    restart(&world);
    assert_true(spent(&world, 7) == UINT64_MAX);
    assert_int_equal(arrive(&world, 7, 4), 1); /* its second one for this campaign, and none for campaigns 2 and 3 */
    assert_int_equal(world.held[0].campaign, 1);
    assert_int_equal(give(&world, 0), CV_VERDICT_ACCEPTED);
    world.turned_away = 0;
    assert_int_equal(arrive(&world, 7, 1), 0);
    assert_int_equal(world.turned_away, CAMPAIGNS);
    assert_int_equal(spent(&world, 8), 0);
    end(&world);
  }
}

/* It had all assignments when the first one was counted. */
static void test_assignments_of_several_campaigns_at_once(void **state) {
  struct world world;
  begin(&world, 4 * EPSILON);
  assert_int_equal(arrive(&world, 7, 6), 6);
  for (size_t i = 0; i < 6; i++) {
    assert_int_equal(world.held[i].campaign, 1 + i / 2);
  }
  assert_int_equal(give(&world, 2), CV_VERDICT_ACCEPTED); /* for the private one, as long as the worker is protected */
  assert_int_equal(spent(&world, 7), EPSILON);
  assert_int_equal(give(&world, 4), CV_VERDICT_ACCEPTED);
  assert_int_equal(give(&world, 0), CV_VERDICT_REFUSED);
  assert_int_equal(give(&world, 3), CV_VERDICT_REFUSED);
  assert_int_equal(give(&world, 5), CV_VERDICT_ACCEPTED);
  assert_true(spent(&world, 7) == UINT64_MAX);
  restart(&world); /* its accounts agree with the tokens that were counted */
  assert_true(spent(&world, 7) == UINT64_MAX);
  end(&world);
}

static void test_a_worker_without_epsilon_gives_no_exact_score(void **state) {
  struct world world;
  begin(&world, 2 * EPSILON);
  assert_int_equal(arrive(&world, 7, 4), 4);
  assert_int_equal(give(&world, 2), CV_VERDICT_ACCEPTED);
  assert_int_equal(give(&world, 3), CV_VERDICT_ACCEPTED);
  assert_int_equal(spent(&world, 7), 2 * EPSILON);
  assert_int_equal(give(&world, 0), CV_VERDICT_REFUSED);
  assert_int_equal(spent(&world, 7), 2 * EPSILON);
  end(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_worker_of_exact_scores_gives_to_no_other_campaign),
      cmocka_unit_test(test_assignments_of_several_campaigns_at_once),
      cmocka_unit_test(test_a_worker_without_epsilon_gives_no_exact_score),
  };
  return cmocka_run_group_tests_name("unprotected", tests, NULL, NULL);
}
