/* SPDX-License-Identifier: Apache-2.0 */
/* The core with the real store: restarts after every commit, bad and late tokens, a database that was changed. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <sqlite3.h>

#include "broker/campaign.h"
#include "broker/places.h"
#include "broker/requester.h"
#include "tests/unit/broker/world.h"

static void test_releases_are_exact_sums_and_known_noise(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  world_run(&world, 0, 0);
  assert_int_equal(world.verdicts[CV_VERDICT_ACCEPTED], RELEASES * TAU);
  assert_int_equal(world.verdicts[CV_VERDICT_REFUSED], 0);
  world_end(&world);
}

/* Acknowledged once, counted once: an acknowledged token that is lost, or counted twice, would change a sum. */
static void test_a_restart_after_every_commit_changes_nothing(void **state) {
  world_restarts();
}

static void test_a_crash_before_a_commit_changes_nothing(void **state) {
  world_crashes();
}

/* ---- tokens ---- */

/* A running campaign and one unanswered assignment. */
static void begin(struct world *world, struct token *ret) {
  world_make(world);
  world_begin(world, 1);
  assert_int_equal(world->unacked_count, 1);
  *ret = world->unacked[0];
  world->unacked_count = 0;
}

static uint64_t counted(const struct world *world) {
  struct cv_broker_figures figures;
  cv_broker_figures(world->core, &figures);
  return figures.tokens;
}

static void test_a_bad_token_is_refused_and_takes_nothing(void **state) {
  struct world world;
  struct token token;
  begin(&world, &token);
  struct token bad = token;
  bad.value = CV_GRID + 1;
  assert_int_equal(world_verdict_of(&world, &bad, 1), CV_VERDICT_REFUSED);
  bad.value = -1;
  assert_int_equal(world_verdict_of(&world, &bad, 1), CV_VERDICT_REFUSED);
  assert_int_equal(world_verdict_of(&world, &token, 2), CV_VERDICT_REFUSED);
  bad = token;
  bad.ticket[5] ^= 1;
  assert_int_equal(world_verdict_of(&world, &bad, 1), CV_VERDICT_REFUSED);
  assert_int_equal(counted(&world), 0);
  assert_int_equal(world_verdict_of(&world, &token, 1), CV_VERDICT_ACCEPTED);
  assert_int_equal(world_verdict_of(&world, &token, 1), CV_VERDICT_DUPLICATE);
  assert_int_equal(counted(&world), 1);
  world_end(&world);
}

static void test_a_duplicate_is_known_after_a_restart(void **state) {
  struct world world;
  struct token token;
  begin(&world, &token);
  assert_int_equal(world_verdict_of(&world, &token, 1), CV_VERDICT_ACCEPTED);
  stop(&world);
  start(&world);
  assert_int_equal(world_verdict_of(&world, &token, 1), CV_VERDICT_DUPLICATE);
  world_end(&world);
}

static void test_the_first_answer_for_a_place_wins(void **state) {
  struct world world;
  struct token late;
  begin(&world, &late);
  world.now_ms += LEASE_MS;
  cv_broker_tick(world.core, world.now_ms, world.now_ms);
  /* The place is free again and goes to another worker, */
  struct cv_ticket ticket;
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(world.core, 1);
  assert_int_equal(cv_ticket_open(late.ticket, &world.core->config.tagger, &ticket), CV_OK);
  uint64_t place = cv_place_bit(&campaign->arm[ticket.item], ticket.position);
  for (int i = 0; i < 200 && !cv_chunks_bit(&campaign->places, place); i++) {
    arrive(&world, 1);
    (void)turn(&world, false);
  }
  (void)turn(&world, false);
  assert_int_equal(world.thirdparty.releases, 0);
  assert_int_equal(world_verdict_of(&world, &late, 1), CV_VERDICT_EXPIRED);
  /* as do all other places. */
  for (int i = 0; i < 400 && (world.thirdparty.releases < 1 || world.unacked_count > 0); i++) {
    arrive(&world, world.thirdparty.releases < 1 ? 5 : 0);
    (void)turn(&world, false);
  }
  assert_int_equal(world_verdict_of(&world, &late, 1), CV_VERDICT_EXPIRED);
  world_run(&world, 0, 0); /* had it counted, a sum would be wrong */
  world_end(&world);
}

/* One worker arrives and gets an assignment, which stays unanswered. */
static void ask_one(struct world *world, uint64_t worker) {
  struct cv_arrive arrival = {.workers = 1, .worker = &worker, .credit = 64};
  bool store;
  struct cv_broker_out out;
  world->unacked_count = 0;
  say(world, world->crowd, &(struct cv_crowd_frame){.arrives = 1, .arrive = &arrival});
  assert_int_equal(cv_broker_flush(world->core, world->now_ms, world->now_ms, &world->batch, &store), CV_OK);
  cv_broker_stored(world->core);
  while (cv_broker_next_out(world->core, &out)) {
    if (out.schema == CV_SCHEMA_CROWD) {
      on_crowd(world, out.frame.crowd);
    }
  }
  assert_int_equal(world->unacked_count, 1);
  world->unacked_count = 0;
}

static void let_leases_end(struct world *world) {
  world->now_ms += LEASE_MS;
  cv_broker_tick(world->core, world->now_ms, world->now_ms);
}

/* Assignments that it did not answer use up nothing of what a worker may give. */
static void test_a_worker_that_was_too_late_is_asked_again(void **state) {
  struct world world;
  struct token token;
  begin(&world, &token);
  for (uint32_t i = 0; i < 2 * spec_of_test().tokens_per_worker; i++) {
    let_leases_end(&world);
    ask_one(&world, 77);
  }
  world_end(&world);
}

/* It has the older assignment's number on its connection. */
static void test_a_late_answer_ends_no_newer_assignment(void **state) {
  struct world world;
  struct token late;
  begin(&world, &late);
  let_leases_end(&world);
  assert_true(cv_broker_is_drained(world.core));
  ask_one(&world, 77);
  (void)world_verdict_of(&world, &late, 1);
  assert_false(cv_broker_is_drained(world.core));
  let_leases_end(&world);
  assert_true(cv_broker_is_drained(world.core));
  world_end(&world);
}

static enum cv_broker_phase phase_of(struct world *world) {
  return cv_broker_campaign_find(world->core, 1)->phase;
}

/* A process that was stopped received nothing; only time in which it could receive makes a crowd idle. */
static void test_a_stop_of_the_broker_is_not_the_crowds_idleness(void **state) {
  struct world world;
  struct token token;
  begin(&world, &token);
  uint64_t idle_ms = spec_of_test().idle_ms;
  for (int i = 0; i < 3; i++) {
    world.now_ms += 2 * idle_ms;
    cv_broker_tick(world.core, world.now_ms, world.now_ms);
    assert_int_equal(phase_of(&world), CV_PHASE_RUNNING);
  }
  uint64_t until_ms = world.now_ms + idle_ms + CV_STALL_MS;
  while (phase_of(&world) == CV_PHASE_RUNNING && world.now_ms <= until_ms) {
    world.now_ms += CV_STALL_MS / 10;
    cv_broker_tick(world.core, world.now_ms, world.now_ms);
  }
  assert_int_equal(phase_of(&world), CV_PHASE_STOPPING);
  assert_int_equal(cv_broker_campaign_find(world.core, 1)->end, CV_END_IDLE);
  world_end(&world);
}

static void restart_with_limit(struct world *world, uint64_t worker_epsilon_micro, uint64_t spent_micro) {
  stop(world);
  world->worker_epsilon_micro = worker_epsilon_micro;
  start(world);
  world->core->accounts.floor_micro = spent_micro;
  for (int i = 0; i < 5; i++, (void)turn(world, false)) {
  }
}

/* A gateway may name a worker twice: both slots are assigned before either is charged. */
static void test_assignments_side_by_side_stay_below_the_lifetime_epsilon(void **state) {
  struct world world;
  struct token token;
  begin(&world, &token);
  restart_with_limit(&world, 500000, 0);
  const uint64_t worker[2] = {77, 77};
  struct cv_arrive arrival = {.workers = 2, .worker = worker, .credit = 64};
  say(&world, world.crowd, &(struct cv_crowd_frame){.arrives = 1, .arrive = &arrival});
  for (int i = 0; i < 3; i++) {
    (void)turn(&world, false);
  }
  assert_int_equal(counted(&world), 1);
  assert_int_equal(world.verdicts[CV_VERDICT_ACCEPTED], 1);
  assert_int_equal(world.verdicts[CV_VERDICT_REFUSED], 1);
  world_end(&world);
}

/* If the clock goes back while the broker is down, a deadline must not become later than the campaign's length. */
static void test_a_clock_that_goes_back_extends_no_deadline(void **state) {
  struct world world;
  world_make(&world);
  world.now_ms = 1000000;
  struct cv_order_frame frame = {.hello = hello, .kind = CV_ORDER_SUBMIT};
  frame.as.submit = (struct cv_submit){.client_key = {1}, .spec = spec_of_test()};
  frame.as.submit.spec.deadline_ms = 10000;
  ask(&world, &frame);
  (void)turn(&world, false);
  stop(&world);
  world.now_ms = 500000;
  start(&world);
  const struct cv_broker_campaign *campaign = cv_broker_campaign_find(world.core, 1);
  cv_broker_tick(world.core, world.now_ms + 9999, world.now_ms + 9999);
  assert_true(campaign->phase < CV_PHASE_STOPPING);
  cv_broker_tick(world.core, world.now_ms + 10000, world.now_ms + 10000);
  assert_int_equal(campaign->phase, CV_PHASE_STOPPING);
  assert_int_equal(campaign->end, CV_END_DEADLINE);
  world_end(&world);
}

/* A worker that none of several campaigns wants receives a back-off for each, since its gateway may know neither. */
static void test_a_worker_is_sent_away_from_each_campaign(void **state) {
  struct world world;
  struct token token;
  begin(&world, &token);
  restart_with_limit(&world, 500000, 1);
  struct cv_order_frame frame = {.hello = hello, .kind = CV_ORDER_SUBMIT};
  frame.as.submit = (struct cv_submit){.client_key = {2}, .spec = spec_of_test()};
  ask(&world, &frame);
  struct cv_broker_campaign *second = cv_broker_campaign_find(world.core, 2);
  CV_REQUIRE(second != NULL);
  second->phase = CV_PHASE_RUNNING; /* as if the third-party had opened it */
  arrive(&world, 2);
  bool store;
  assert_int_equal(cv_broker_flush(world.core, world.now_ms, world.now_ms, &world.batch, &store), CV_OK);
  cv_broker_stored(world.core);
  struct cv_broker_out out;
  size_t away[3] = {0};
  while (cv_broker_next_out(world.core, &out)) {
    for (size_t i = 0; out.schema == CV_SCHEMA_CROWD && i < out.frame.crowd->backoffs; i++) {
      const struct cv_backoff *backoff = &out.frame.crowd->backoff[i];
      assert_in_range(backoff->campaign, 1, 2);
      away[backoff->campaign] += backoff->workers;
    }
  }
  assert_int_equal(away[1], 2);
  assert_int_equal(away[2], 2);
  world_end(&world);
}

/* A worker whose lifetime epsilon is spent never receives a campaign's terms; a connection outlives many campaigns. */
static void test_a_connection_outlives_many_campaigns(void **state) {
  struct world world;
  world_make(&world);
  restart_with_limit(&world, 500000, 1);
  for (uint32_t id = 1; id <= 300; id++) {
    struct cv_order_frame frame = {.kind = CV_ORDER_SUBMIT};
    frame.as.submit = (struct cv_submit){.client_key = {(uint8_t)id, (uint8_t)(id >> 8)}, .spec = spec_of_test()};
    world.thirdparty = (struct thirdparty){0};
    ask(&world, &frame);
    for (int i = 0; i < 10 && world.thirdparty.plans == 0; i++) {
      (void)turn(&world, false);
    }
    assert_int_equal(world.thirdparty.plans, 1);
    arrive(&world, 1);
    (void)turn(&world, false);
    ask(&world, &(struct cv_order_frame){.kind = CV_ORDER_CANCEL, .as.campaign = id});
    struct cv_rank_result result = {.campaign = id, .reason = CV_END_CANCELLED};
    answer(&world, &(struct cv_rank_frame){.results = 1, .result = &result});
    (void)turn(&world, false);
    assert_true(world.thirdparty.closed);
  }
  assert_int_equal(counted(&world), 0);
  world_end(&world);
}

/* Outputs for the older connection go to no other; the older one receives a goodbye and is closed. */
static void test_a_third_party_that_connects_again_replaces_its_older_self(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  for (int i = 0; i < 3; i++) {
    (void)turn(&world, false);
  }
  struct cv_broker_conn *older = world.rank;
  struct cv_why why;
  bool store, told = false;
  world.thirdparty = (struct thirdparty){0};
  ask(&world, &(struct cv_order_frame){.kind = CV_ORDER_CANCEL});
  assert_int_equal(cv_broker_flush(world.core, world.now_ms, world.now_ms, &world.batch, &store), CV_OK);
  assert_int_equal(cv_broker_store_commit(world.store, &world.batch, &why), CV_OK);
  assert_int_equal(cv_broker_join(world.core, &thirdparty, NULL, &world.rank, &why), CV_OK);
  for (int i = 0; i < 2; i++) {
    cv_broker_stored(world.core);
    struct cv_broker_out out;
    while (cv_broker_next_out(world.core, &out)) {
      if (out.conn == older) {
        assert_true(out.close);
        assert_string_equal(out.frame.rank->goodbye, "replaced by a newer connection of the same certificate");
        told = true;
      } else if (out.conn == world.rank) {
        assert_true(i > 0 && out.frame.rank->hello.present); /* nothing comes before the hello */
      }
    }
    assert_int_equal(cv_broker_flush(world.core, world.now_ms, world.now_ms, &world.batch, &store), CV_OK);
  }
  assert_true(told);
  cv_broker_leave(world.core, world.rank);
  assert_int_equal(cv_broker_on_rank(world.core, older, &(struct cv_rank_frame){.acks = 0}, 1, &why), CV_ERR_STATE);
  world_end(&world);
}

/* ---- another third-party ---- */

static const struct cv_identity another = {.role = CV_ROLE_THIRDPARTY, .name = "another"};

/* What the third-party receives in this turn. */
static size_t told_rank(struct world *world) {
  bool store;
  struct cv_why why;
  struct cv_broker_out out;
  size_t told = 0;
  assert_int_equal(cv_broker_flush(world->core, world->now_ms, world->now_ms, &world->batch, &store), CV_OK);
  assert_true(!store || cv_broker_store_commit(world->store, &world->batch, &why) == CV_OK);
  cv_broker_stored(world->core);
  while (cv_broker_next_out(world->core, &out)) {
    if (out.conn == world->rank) {
      const struct cv_rank_frame *frame = out.frame.rank;
      told += frame->opens + frame->recorded + frame->releases + frame->accepted + frame->refused + frame->stops +
              frame->closed;
    }
  }
  return told;
}

static void change_thirdparty(struct world *world, const struct cv_identity *identity) {
  struct cv_why why;
  cv_broker_leave(world->core, world->rank);
  assert_int_equal(cv_broker_join(world->core, identity, NULL, &world->rank, &why), CV_OK);
  answer(world, &(struct cv_rank_frame){.hello = hello});
}

/* Sends a message about campaign 1 from a third-party that did not open it: its connection ends, the campaign goes
 * on. */
static void speaks_of_anothers(struct world *world, const struct cv_rank_frame *frame) {
  struct cv_why why;
  assert_int_equal(cv_broker_on_rank(world->core, world->rank, frame, world->now_ms, &why), CV_ERR_STATE);
  assert_non_null(strstr(why.text, "expected a campaign that is open"));
  assert_int_equal(cv_broker_campaign_find(world->core, 1)->phase, CV_PHASE_RUNNING);
}

static void test_a_campaign_stays_with_the_third_party_that_opened_it(void **state) {
  struct world world;
  struct cv_progress progress;
  world_make(&world);
  submit(&world);
  for (int i = 0; i < 40; i++) {
    arrive(&world, 3);
    (void)turn(&world, false);
  }
  assert_in_range(world.thirdparty.plans, 1, PLANS - 1);
  change_thirdparty(&world, &another);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(told_rank(&world), 0);
  }
  cv_broker_campaign_progress(world.core, cv_broker_campaign_find(world.core, 1), &progress);
  assert_string_equal(progress.waits_for, "t");
  struct cv_want want = {.arm = 0, .tokens = TAU};
  struct cv_rank_plan plan = {.campaign = 1, .plan = {.number = world.thirdparty.plans, .wants = 1, .want = &want}};
  struct cv_rank_result result = {.campaign = 1, .reason = CV_END_COMPLETE};
  struct cv_rank_number ack = {.campaign = 1, .number = 1000};
  struct cv_rank_opened opened = {.position.campaign = 1, .seed = 5};
  speaks_of_anothers(&world, &(struct cv_rank_frame){.plans = 1, .plan = &plan});
  speaks_of_anothers(&world, &(struct cv_rank_frame){.results = 1, .result = &result});
  speaks_of_anothers(&world, &(struct cv_rank_frame){.acks = 1, .ack = &ack});
  answer(&world, &(struct cv_rank_frame){.opened = 1, .answer = &opened});
  assert_int_equal(told_rank(&world), 0);
  stop(&world); /* the broker knows which third-party opened it; here that one is back */
  start(&world);
  cv_broker_campaign_progress(world.core, cv_broker_campaign_find(world.core, 1), &progress);
  assert_string_equal(progress.waits_for, "");
  world_run(&world, 0, 0);
  world_end(&world);
}

/* A campaign whose third-party is gone for good can be cancelled. */
static void test_a_campaign_that_waits_can_be_cancelled(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  for (int i = 0; i < 3; i++) {
    (void)turn(&world, false);
  }
  change_thirdparty(&world, &another);
  ask(&world, &(struct cv_order_frame){.kind = CV_ORDER_CANCEL});
  (void)told_rank(&world);
  assert_int_equal(cv_broker_campaign_find(world.core, 1)->phase, CV_PHASE_STOPPING);
  cv_broker_tick(world.core, world.now_ms, world.now_ms);
  assert_int_equal(cv_broker_campaign_find(world.core, 1)->end, CV_END_CANCELLED);
  assert_int_equal(cv_broker_campaign_find(world.core, 1)->phase, CV_PHASE_ENDED);
  assert_int_equal(told_rank(&world), 0);
  world_end(&world);
}

/* ---- watching ---- */

/* The kinds of what the requester receives in this turn, a letter each. */
static void hear(struct world *world, char *told) {
  bool store;
  struct cv_why why;
  struct cv_broker_out out;
  assert_int_equal(cv_broker_flush(world->core, world->now_ms, world->now_ms, &world->batch, &store), CV_OK);
  assert_true(!store || cv_broker_store_commit(world->store, &world->batch, &why) == CV_OK);
  cv_broker_stored(world->core);
  while (cv_broker_next_out(world->core, &out)) {
    if (out.schema != CV_SCHEMA_ORDER || out.frame.order->kind == CV_ORDER_NONE) {
      continue;
    }
    const struct cv_order_frame *frame = out.frame.order;
    *told++ = frame->kind == CV_ORDER_DESCRIPTION ? 'd'
              : frame->kind == CV_ORDER_PROGRESS  ? 'p'
              : frame->kind == CV_ORDER_STANDINGS ? 's'
                                                  : '?';
    *told = '\0';
    if (frame->kind == CV_ORDER_DESCRIPTION) {
      assert_int_equal(frame->as.description.campaign, 1);
      assert_string_equal(frame->as.description.spec.policy.name, spec_of_test().policy.name);
      assert_int_equal(frame->as.description.spec.arms, ARMS);
    }
  }
}

static void test_a_watcher_receives_the_description_on_request(void **state) {
  static const struct {
    bool describe;
    const char *first, *second;
  } cases[] = {{false, "p", ""}, {true, "d", "p"}, {true, "d", "p"}};
  struct world world;
  world_make(&world);
  submit(&world);
  (void)turn(&world, false);
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    char first[8] = "", second[8] = "";
    ask(&world, &(struct cv_order_frame){.kind = CV_ORDER_WATCH, .as.watch.describe = cases[i].describe});
    hear(&world, first);
    assert_string_equal(first, cases[i].first);
    assert_int_equal(cv_broker_is_pending(world.core), cases[i].describe); /* the rest comes without a request */
    hear(&world, second);
    assert_string_equal(second, cases[i].second);
  }
  world_end(&world);
}

static void test_a_watcher_receives_the_standings_after_each_plan_on_request(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  struct cv_broker_campaign *campaign = world.core->campaigns;
  for (int i = 0; i < 100 && campaign->plans == 0; i++) {
    (void)turn(&world, false);
  }
  assert_true(campaign->plans > 0);
  campaign->has_standings = true; /* as after a plan with standings */
  char told[4][8] = {"", "", "", ""};
  ask(&world, &(struct cv_order_frame){.kind = CV_ORDER_WATCH});
  hear(&world, told[0]);
  assert_string_equal(told[0], "p"); /* it did not ask */
  ask(&world, &(struct cv_order_frame){.kind = CV_ORDER_WATCH, .as.watch.standings = true});
  hear(&world, told[1]);
  assert_string_equal(told[1], "s");
  assert_true(cv_broker_is_pending(world.core));
  hear(&world, told[2]);
  assert_string_equal(told[2], "p");
  /* Of exact sums there are none. */
  campaign->privacy.is_exact = true;
  ask(&world, &(struct cv_order_frame){.kind = CV_ORDER_WATCH, .as.watch.standings = true});
  hear(&world, told[3]);
  assert_string_equal(told[3], "p");
  world_end(&world);
}

/* The number of standings in the parts of the campaign's export. */
static uint32_t standings_exported(struct world *world) {
  uint32_t standings = 0;
  bool store, last = false;
  struct cv_broker_out out;
  ask(world, &(struct cv_order_frame){.kind = CV_ORDER_EXPORT});
  for (int i = 0; i < 10 && !last; i++) {
    assert_int_equal(cv_broker_flush(world->core, world->now_ms, world->now_ms, &world->batch, &store), CV_OK);
    cv_broker_stored(world->core);
    while (cv_broker_next_out(world->core, &out)) {
      const struct cv_order_frame *frame = out.schema == CV_SCHEMA_ORDER ? out.frame.order : NULL;
      if (frame != NULL && frame->kind == CV_ORDER_PART) {
        standings += frame->as.part.standings;
        last = frame->as.part.last;
      }
    }
  }
  assert_true(last);
  return standings;
}

/* From the standings of exact sums after two plans follows the sum of the second one. */
static void test_an_export_of_a_running_campaign_tells_no_standings_of_exact_sums(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  struct cv_broker_campaign *campaign = world.core->campaigns;
  for (int i = 0; i < 100 && campaign->plans == 0; i++) {
    (void)turn(&world, false);
  }
  campaign->has_standings = true; /* as after a plan with standings */
  assert_int_equal(standings_exported(&world), ARMS);
  campaign->privacy.is_exact = true;
  assert_int_equal(standings_exported(&world), 0);
  world_end(&world);
}

/* ---- status ---- */

/* The clock may count from the start of the machine. */
static void test_uptime_counts_from_the_start_of_the_broker(void **state) {
  struct world world;
  bool store, told = false;
  struct cv_broker_out out;
  world_make(&world);
  world.now_ms = 90000;
  stop(&world);
  start(&world);
  ask(&world, &(struct cv_order_frame){.kind = CV_ORDER_STATUS});
  assert_int_equal(cv_broker_flush(world.core, world.now_ms, world.now_ms, &world.batch, &store), CV_OK);
  cv_broker_stored(world.core);
  while (cv_broker_next_out(world.core, &out)) {
    if (out.schema == CV_SCHEMA_ORDER && out.frame.order->kind == CV_ORDER_STATUS_ANSWER) {
      assert_int_equal(out.frame.order->as.status.uptime_ms, 0);
      told = true;
    }
  }
  assert_true(told);
  world_end(&world);
}

/* ---- the ledger ---- */

/* Epsilon for half a stream: the hybrid mechanism's fourth release needs the other half. */
static void test_a_plan_beyond_the_budget_ends_the_campaign_with_what_it_has(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  world.core->campaigns->ledger.limit_micro = 250000;
  struct cv_broker_campaign *campaign = world.core->campaigns;
  for (int i = 0; i < 600 && campaign->phase < CV_PHASE_STOPPING; i++) {
    arrive(&world, 3);
    (void)turn(&world, false);
  }
  assert_int_equal(campaign->end, CV_END_LEDGER);
  assert_int_equal(campaign->releases, 3 * ARMS);
  assert_int_equal(campaign->rank.refused.reason, CV_END_LEDGER);
  assert_int_equal(campaign->rank.refused.asked, 250000);
  assert_int_equal(campaign->rank.refused.left, 0);
  assert_non_null(strstr(campaign->rank.refused_why, "spent 250000 micro-epsilon of 250000"));
  assert_int_equal(cv_ledger_most(&campaign->ledger), 250000);
  world_end(&world);
}

/* ---- the database ---- */

/* Changes that an attacker makes to the file while the broker is down. */
static void tamper(struct world *world, const char *sql) {
  stop(world);
  char *error = NULL;
  sqlite3 *db;
  assert_int_equal(sqlite3_open(folder_file(&world->folder, "broker.db"), &db), SQLITE_OK);
  if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
    fail_msg("%s: %s", sql, error);
  }
  assert_true(sqlite3_total_changes(db) > 0);
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void refuses_to_open(struct world *world, const char *line) {
  struct cv_ring ring = ring_of_test();
  struct cv_why why;
  const struct cv_store_files files = {.database = folder_file(&world->folder, "broker.db"),
                                       .anchor = folder_file(&world->folder, "anchor")};
  const struct cv_broker_config config = {
      .tagger = {.tag = tag, .data = world->mac}, .digest = cv_sha256, .limits.chunks = 100};
  assert_int_equal(cv_broker_new(&config, &world->core), CV_OK);
  assert_int_equal(cv_broker_store_open(&files, &ring, &world->store, &why), CV_ERR_DAMAGED);
  cv_ring_fini(&ring);
  world->store = NULL;
  if (strstr(why.text, line) == NULL) {
    fail_msg("\"%s\" is not in \"%s\"", line, why.text);
  }
  world_end(world);
}

static void test_rows_that_were_changed_or_are_gone_are_noticed(void **state) {
  if (!STORED_IN_FILE) { /* test_postgres.c */
    return;
  }
  static const struct {
    const char *sql, *line;
  } cases[] = {
      {"UPDATE journal SET sealed = (SELECT sealed FROM journal ORDER BY id DESC LIMIT 1) WHERE id = 1",
       "table journal"},
      {"UPDATE journal SET sealed = substr(sealed, 1, length(sealed) - 1) || x'00'", "table journal, campaign 1"},
      {"DELETE FROM journal WHERE id = (SELECT min(id) FROM journal)", "table journal, campaign 1: "},
      {"DELETE FROM journal WHERE id = (SELECT min(id) + 2 FROM journal)", "rows; expected the "},
      {"DELETE FROM journal", "table journal, campaign 1: 0 rows; expected the "},
      {"UPDATE journal SET id = 1000 - id", "table journal, campaign 1: a row was changed"},
      {"DELETE FROM ledger WHERE arm = 1", "table ledger, campaign 1: "},
      {"UPDATE ledger SET image = CAST(substr(image, 1, 4) || zeroblob(8) || substr(image, 13) AS BLOB)",
       "table ledger, row campaign 1, arm 0: not as it was stored"},
      {"UPDATE meta SET releases = releases - 1", "table meta: a row was changed"},
      {"UPDATE meta SET tokens = tokens + 1", "table meta: a row was changed"},
      {"UPDATE meta SET promised_micro = 0", "table meta: a row was changed"},
      {"UPDATE ledger SET image = CAST(substr(image, 1, 4) || x'0000000001000000' || substr(image, 13) AS BLOB)",
       "table ledger, row campaign 1, arm 0: not as it was stored"},
      /* a bit of a noisy sum */
      {"UPDATE release SET image = CAST(substr(image, 1, 24) || x'7f' || substr(image, 26) AS BLOB) WHERE number = 2",
       "table release, row campaign 1, number 2: not as it was stored"},
      {"UPDATE campaign SET state = NULL", "table campaign, row id 1: not as it was stored"},
      {"UPDATE campaign SET standings = zeroblob(length(standings))", "table campaign, row id 1: not as it was stored"},
      {"DELETE FROM release WHERE number = 1", "table release, campaign 1: "},
      {"DELETE FROM plan", "table plan, campaign 1: 0 rows; expected the "},
      {"INSERT INTO recovery VALUES (1, zeroblob(96), zeroblob(16))", "table recovery, row number 1: not as it was"},
      {"UPDATE plan SET campaign = campaign; ALTER TABLE release ADD COLUMN more INTEGER DEFAULT 7",
       "table release, row campaign 1, number 1: not as it was stored"},
      {"UPDATE plan SET campaign = campaign; ALTER TABLE release RENAME TO hidden;"
       "CREATE VIEW release AS SELECT campaign, number, zeroblob(length(image)) AS image, code FROM hidden",
       "table release, row campaign 1, number 1: not as it was stored"},
      {"DELETE FROM proof", "no codes of the rows"},
      {"DELETE FROM proof; DROP TABLE proof", "table proof is missing"},
      {"DELETE FROM proof WHERE grp < 0; UPDATE plan SET code = NULL", "table plan, row campaign 1, number 1: not as"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct world world;
    world_make(&world);
    submit(&world);
    for (int j = 0; j < 25; j++) {
      arrive(&world, 10);
      (void)turn(&world, false);
    }
    assert_true(counted(&world) > 20 && world.thirdparty.releases >= ARMS);
    tamper(&world, cases[i].sql);
    refuses_to_open(&world, cases[i].line);
  }
}

/* Submits with the same key; the broker's answer: 0 and its line if it is an error. */
static uint64_t submit_again(struct world *world, const struct cv_spec *spec, char *line, size_t n) {
  struct cv_order_frame frame = {.kind = CV_ORDER_SUBMIT};
  struct cv_broker_out out;
  bool store;
  uint64_t campaign = 0;
  frame.as.submit = (struct cv_submit){.client_key = {1}, .spec = *spec};
  ask(world, &frame);
  assert_int_equal(cv_broker_flush(world->core, world->now_ms, world->now_ms, &world->batch, &store), CV_OK);
  assert_false(store); /* the failure has no effect */
  cv_broker_stored(world->core);
  while (cv_broker_next_out(world->core, &out)) {
    if (out.schema == CV_SCHEMA_ORDER && out.frame.order->kind == CV_ORDER_ERROR) {
      (void)snprintf(line, n, "%s", out.frame.order->as.error);
    } else if (out.schema == CV_SCHEMA_ORDER && out.frame.order->kind == CV_ORDER_ACCEPTED) {
      campaign = out.frame.order->as.accepted.campaign;
    }
  }
  return campaign;
}

static void test_a_client_key_is_for_one_campaign(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  for (int i = 0; i < 2; i++) { /* before and after a restart */
    char line[200] = "";
    while (turn(&world, false)) {
    }
    struct cv_spec spec = spec_of_test();
    assert_int_equal(submit_again(&world, &spec, line, sizeof(line)), 1);
    assert_string_equal(line, "");
    spec.epsilon_micro--;
    assert_int_equal(submit_again(&world, &spec, line, sizeof(line)), 0);
    assert_string_equal(
        line, "client key already used for campaign 1 with another spec; expected the same spec or a new key");
    (void)restart(&world);
  }
  world_end(&world);
}

static void copy_file(const char *from, const char *to) {
  char command[700];
  (void)snprintf(command, sizeof(command), "cp %s %s", from, to);
  assert_int_equal(system(command), 0);
}

static void test_an_older_database_is_refused(void **state) {
  struct world world;
  if (!STORED_IN_FILE) { /* test_postgres.c */
    return;
  }
  world_make(&world);
  submit(&world);
  (void)turn(&world, false);
  stop(&world);
  copy_file(folder_file(&world.folder, "broker.db"), folder_file(&world.folder, "older.db"));
  start(&world);
  for (int i = 0; i < 10 && world.thirdparty.plans == 0; i++) {
    (void)turn(&world, false);
  }
  stop(&world);
  copy_file(folder_file(&world.folder, "older.db"), folder_file(&world.folder, "broker.db"));
  struct cv_ring ring = ring_of_test();
  const struct cv_store_files files = {.database = folder_file(&world.folder, "broker.db"),
                                       .anchor = folder_file(&world.folder, "anchor")};
  struct cv_why why;
  assert_int_equal(cv_broker_store_open(&files, &ring, &world.store, &why), CV_ERR_DAMAGED);
  cv_ring_fini(&ring);
  assert_non_null(strstr(why.text, "expected the database not to be older than its anchor"));
  cv_mac_free(world.mac);
  cv_broker_batch_fini(&world.batch);
  folder_remove(&world.folder);
}

/* The statement waits behind other answers while releases leave. */
static void test_a_statement_has_all_that_left_before_it(void **state) {
  struct world world;
  uint64_t statements = 0;
  world_make(&world);
  submit(&world);
  for (int i = 0; i < 40; i++) {
    arrive(&world, 20);
    for (int j = 0; j < 4; j++) {
      ask(&world, &(struct cv_order_frame){.kind = j < 3 ? CV_ORDER_STATUS : CV_ORDER_LEDGER});
    }
    for (int j = 0; j < 5; j++) {
      (void)turn(&world, false);
      const struct cv_order_frame *told = &world.order->requester->order;
      uint64_t releases = 0;
      for (uint32_t arm = 0; told->kind == CV_ORDER_STATEMENT && arm < told->as.statement.arms; arm++) {
        releases += told->as.statement.account[arm].releases;
      }
      if (told->kind == CV_ORDER_STATEMENT) {
        assert_true(releases >= world.thirdparty.releases);
        statements += releases > 0;
      }
    }
  }
  assert_true(statements > 3);
  world_end(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_releases_are_exact_sums_and_known_noise),
      cmocka_unit_test(test_a_restart_after_every_commit_changes_nothing),
      cmocka_unit_test(test_a_clock_that_goes_back_extends_no_deadline),
      cmocka_unit_test(test_a_worker_is_sent_away_from_each_campaign),
      cmocka_unit_test(test_a_crash_before_a_commit_changes_nothing),
      cmocka_unit_test(test_a_bad_token_is_refused_and_takes_nothing),
      cmocka_unit_test(test_a_duplicate_is_known_after_a_restart),
      cmocka_unit_test(test_the_first_answer_for_a_place_wins),
      cmocka_unit_test(test_a_worker_that_was_too_late_is_asked_again),
      cmocka_unit_test(test_a_late_answer_ends_no_newer_assignment),
      cmocka_unit_test(test_a_stop_of_the_broker_is_not_the_crowds_idleness),
      cmocka_unit_test(test_assignments_side_by_side_stay_below_the_lifetime_epsilon),
      cmocka_unit_test(test_a_connection_outlives_many_campaigns),
      cmocka_unit_test(test_a_plan_beyond_the_budget_ends_the_campaign_with_what_it_has),
      cmocka_unit_test(test_rows_that_were_changed_or_are_gone_are_noticed),
      cmocka_unit_test(test_a_third_party_that_connects_again_replaces_its_older_self),
      cmocka_unit_test(test_a_campaign_stays_with_the_third_party_that_opened_it),
      cmocka_unit_test(test_a_campaign_that_waits_can_be_cancelled),
      cmocka_unit_test(test_a_watcher_receives_the_description_on_request),
      cmocka_unit_test(test_a_watcher_receives_the_standings_after_each_plan_on_request),
      cmocka_unit_test(test_an_export_of_a_running_campaign_tells_no_standings_of_exact_sums),
      cmocka_unit_test(test_uptime_counts_from_the_start_of_the_broker),
      cmocka_unit_test(test_a_statement_has_all_that_left_before_it),
      cmocka_unit_test(test_an_older_database_is_refused),
      cmocka_unit_test(test_a_client_key_is_for_one_campaign),
  };
  return STORED_RUN("core", tests);
}
