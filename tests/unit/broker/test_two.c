/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A campaign with two brokers, with the real store and a co-broker of plain frames that checks real shares: the whole
 * way, over restarts, crashes and cut connections; what waits, what is stored, and verdicts.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <string.h>

#include "broker/cobroker.h"
#include "broker/requester.h"
#include "tests/fuzz/broker_disk.h"
#include "tests/unit/broker/two.h"

/* ---- the whole way ---- */

static void test_a_campaign_from_its_first_plan_to_its_result(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  world_run(&world, 0, 0);
  assert_true(world.cobroker.is_over);
  assert_int_equal(world.cobroker.accepted, PLANS * ARMS * TAU);
  assert_int_equal(world.cobroker.shards, PLANS * ARMS * TAU); /* no answer was made twice */
  assert_int_equal(world.cobroker.opens, 1);
  assert_int_equal(world.cobroker.done, world.cobroker.position.batches);
  world_end(&world);
}

static void test_restarts_change_nothing(void **state) {
  world_restarts();
}

static void test_crashes_before_commits_change_nothing(void **state) {
  world_crashes();
}

/* The link to the co-broker breaks again and again, with whatever is on its way. */
static void test_cut_connections_change_nothing(void **state) {
  for (int every = 3; every <= 6; every++) {
    struct world world;
    world_make(&world);
    submit(&world);
    for (int i = 0; i < 3000 && !world.thirdparty.closed; i++) {
      work(&world, 1);
      if (i % every == 0) {
        cv_broker_leave(world.core, world.share);
        connect_share(&world);
      }
    }
    assert_true(world.thirdparty.closed);
    assert_true(world.cobroker.opens > 4);
    check_releases(&world);
    assert_int_equal(charged(&world), scores_shown() * 500000);
    world_end(&world);
  }
}

/* The co-broker falls silent for a while after each plan: what it has not answered waits, over restarts, too. */
static void test_a_silent_cobroker_delays_the_campaign_only(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  for (int i = 0; i < 3000 && !world.thirdparty.closed; i++) {
    world.cobroker.is_mute = i % 16 < 8;
    if (i % 16 == 8) { /* what it did not answer is sent again on a new connection only */
      (void)restart(&world);
    }
    work(&world, 1);
  }
  assert_true(world.thirdparty.closed);
  check_releases(&world);
  assert_int_equal(charged(&world), scores_shown() * 500000);
  world_end(&world);
}

/* ---- what leaves, and when ---- */

/* Nothing of the campaign is assigned, and nothing stops for want of workers, before the co-broker is there. */
static void test_without_the_cobroker_nothing_is_assigned(void **state) {
  struct world world;
  begin(&world);
  cv_broker_leave(world.core, world.share);
  world.share = NULL;
  uint64_t shards = world.cobroker.shards;
  for (int i = 0; i < 10; i++) {
    world.now_ms += 400; /* less than a stall */
    work(&world, 1);
  }
  assert_int_equal(world.cobroker.shards, shards);
  for (int i = 0; i < 300; i++) { /* two minutes; the campaign may be idle for one */
    world.now_ms += 400;
    cv_broker_tick(world.core, world.now_ms, world.now_ms);
  }
  assert_int_equal(campaign_of(&world)->phase, CV_PHASE_RUNNING);
  struct cv_progress progress;
  cv_broker_campaign_progress(world.core, campaign_of(&world), &progress);
  assert_true(progress.waits_for_cobroker && !progress.cobroker_connected);
  connect_share(&world);
  cv_broker_campaign_progress(world.core, campaign_of(&world), &progress);
  assert_true(progress.waits_for_cobroker && progress.cobroker_connected);
  work(&world, 5);
  cv_broker_campaign_progress(world.core, campaign_of(&world), &progress);
  assert_false(progress.waits_for_cobroker);
  assert_true(world.cobroker.shards > shards);
  world_end(&world);
}

/* What happens in the pause after a progress message is told after it, though nothing follows. */
static void test_a_change_in_the_pause_is_told(void **state) {
  static const struct {
    unsigned after_ms;
    bool changes, is_told;
  } row[] = {{1000, true, true}, {10, true, false}, {10, false, false}, {1000, false, true}, {1000, false, false}};
  struct world world;
  begin(&world);
  struct cv_broker_conn *conn = world.core->conns;
  while (conn->requester == NULL) {
    conn = conn->next;
  }
  conn->requester->watching = 1;
  for (size_t i = 0; i < CV_COUNT(row); i++) {
    conn->requester->progress_due = false;
    campaign_of(&world)->progressed = row[i].changes;
    world.now_ms += row[i].after_ms;
    cv_broker_tick(world.core, world.now_ms, world.now_ms);
    assert_int_equal(conn->requester->progress_due, row[i].is_told);
  }
  world_end(&world);
}

/* With a new key this broker is another party: the campaign ends, and its peers judge the key on a new connection. */
static void test_a_new_key_ends_the_campaign(void **state) {
  const struct cv_digest key = {{0xbb}};
  struct world world;
  begin(&world);
  const struct cv_digest own = world.core->config.duo.broker;
  assert_false(cv_broker_renew(world.core, &own)); /* renewed with the same key */
  assert_int_equal(campaign_of(&world)->phase, CV_PHASE_RUNNING);
  assert_true(cv_broker_renew(world.core, &key));
  assert_int_equal(end_of(&world), CV_END_FROZEN);
  assert_true(world.share->close_due && world.core->cobroker == NULL);
  assert_string_equal(world.share->goodbye, "the broker has a new key");
  world_end(&world);
}

static void cancel(struct world *world) {
  const struct cv_order_frame order = {.kind = CV_ORDER_CANCEL, .as.campaign = 1};
  ask(world, &order);
  assert_int_equal(campaign_of(world)->phase, CV_PHASE_STOPPING);
}

/* A co-broker that guesses what it will be told. */
static void answer_early(struct world *world) {
  struct cv_share_number opened = {.campaign = 1, .number = 1};
  say_share(world, &(struct cv_share_frame){.plans_opened = 1, .plan_opened = &opened});
  assert_int_equal(campaign_of(world)->plans, 1);
}

static void (*meddle)(struct world *world);

/* The plan is prepared for the co-broker, and is being stored. */
static void meddle_in_flight(struct world *world) {
  const struct cv_share_frame *frame = &world->share->cobroker->frame;
  struct cv_want want[ARMS];
  if (frame->plans == 1) {
    assert_int_equal(frame->plan[0].plan.wants, ARMS);
    memcpy(want, frame->plan[0].plan.want, sizeof(want));
    meddle(world);
    assert_int_equal(campaign_of(world)->two->plan.wants, 0);
    assert_memory_equal(frame->plan[0].plan.want, want, sizeof(want));
    world->on_commit = NULL;
  }
}

/* The co-broker is told what was stored: nothing that happens meanwhile may put other memory in its place. */
static void test_a_plan_on_its_way_does_not_change(void **state) {
  void (*const all[])(struct world *) = {cancel, answer_early};
  for (size_t i = 0; i < CV_COUNT(all); i++) {
    struct world world;
    world_make(&world);
    submit(&world);
    world.cobroker.is_mute = true;
    world.on_commit = meddle_in_flight;
    meddle = all[i];
    for (int j = 0; j < 10 && world.on_commit != NULL; j++) {
      (void)turn(&world, false);
    }
    assert_null(world.on_commit);
    world_end(&world);
  }
}

static void test_idle_counts_again_when_the_cobroker_is_back(void **state) {
  struct world world;
  begin(&world);
  for (int i = 0; i < 200 && campaign_of(&world)->phase == CV_PHASE_RUNNING; i++) {
    world.now_ms += 400;
    cv_broker_tick(world.core, world.now_ms, world.now_ms);
    (void)turn(&world, false);
  }
  assert_int_equal(campaign_of(&world)->end, CV_END_IDLE);
  world_end(&world);
}

/* Until the verdict nothing is counted, charged or acknowledged; a place and a slot that wait are not given again. */
static void test_a_token_counts_when_both_have_it(void **state) {
  struct world world;
  begin(&world);
  world.cobroker.is_mute = true;
  work(&world, 4);
  const struct cv_broker_campaign *campaign = campaign_of(&world);
  uint32_t waiting = campaign->two->docket.count;
  assert_true(waiting > 0);
  assert_int_equal(campaign->tokens, 0);
  assert_int_equal(charged(&world), 0);
  assert_int_equal(world.verdicts[CV_VERDICT_ACCEPTED], 0);
  assert_int_equal(world.unacked_count, world.cobroker.shards);
  struct cv_broker_figures figures;
  cv_broker_figures(world.core, &figures);
  assert_int_equal(figures.waiting, waiting);
  for (size_t i = 0; i < world.unacked_count; i++) {
    for (size_t j = 0; j < i; j++) { /* each assignment has a place of its own */
      assert_memory_not_equal(world.unacked[i].ticket + 4, world.unacked[j].ticket + 4, 12);
    }
  }
  /* Sent again and again, as after each turn: they wait on. */
  assert_int_equal(world.verdicts[CV_VERDICT_DUPLICATE] + world.verdicts[CV_VERDICT_EXPIRED], 0);
  world.cobroker.is_mute = false;
  (void)restart(&world);
  work(&world, 4);
  assert_true(campaign_of(&world)->tokens >= waiting);
  assert_int_equal(charged(&world), campaign_of(&world)->tokens * 500000);
  world_end(&world);
}

/* The acknowledgement goes to the connection that sent the token last. */
static void test_an_acknowledgement_finds_the_newer_connection(void **state) {
  struct world world;
  struct cv_why why;
  begin(&world);
  world.cobroker.is_mute = true;
  work(&world, 3);
  size_t unacked = world.unacked_count;
  assert_true(unacked > 0 && campaign_of(&world)->two->docket.count > 0);
  cv_broker_leave(world.core, world.crowd);
  assert_int_equal(cv_broker_join(world.core, &gateway, NULL, &world.crowd, &why), CV_OK);
  say(&world, world.crowd, &(struct cv_crowd_frame){.hello = hello});
  send_tokens(&world);
  world.cobroker.is_mute = false;
  cv_broker_leave(world.core, world.share);
  connect_share(&world);
  for (int i = 0; i < 6; i++) {
    (void)turn(&world, false);
  }
  assert_int_equal(world.verdicts[CV_VERDICT_ACCEPTED], unacked);
  assert_int_equal(world.unacked_count, 0);
  world_end(&world);
}

static void test_a_connection_that_is_gone_gets_nothing(void **state) {
  struct world world;
  begin(&world);
  world.cobroker.is_mute = true;
  work(&world, 3);
  cv_broker_leave(world.core, world.crowd);
  world.crowd = NULL;
  world.unacked_count = 0;
  world.cobroker.is_mute = false;
  cv_broker_leave(world.core, world.share);
  connect_share(&world);
  for (int i = 0; i < 6; i++) {
    (void)turn(&world, false);
  }
  assert_int_equal(campaign_of(&world)->two->docket.count, 0);
  assert_true(campaign_of(&world)->tokens > 0);
  world_end(&world);
}

/* Another answer to a ticket whose first answer waits changes nothing: it is neither checked nor acknowledged. */
static void test_a_second_answer_to_a_ticket_is_ignored(void **state) {
  struct world world;
  world_make(&world);
  world_begin(&world, 1);
  world.cobroker.is_mute = true;
  send_tokens(&world);
  const struct token first = world.unacked[0];
  struct token *second = &world.unacked[0];
  const struct cv_docket_token *waits = campaign_of(&world)->two->docket.by_place;
  uint64_t verifier = waits->sent.verifier[0];
  const struct cv_split_token bound = waits->sent.token;
  fake_shard(&world.cobroker, &world.terms, &bound, 7, &second->share, second->leader);
  send_tokens(&world);
  assert_int_equal(campaign_of(&world)->two->docket.count, 1);
  assert_int_equal(campaign_of(&world)->two->docket.by_place->sent.verifier[0], verifier);
  world.unacked[0] = first;
  world.cobroker.is_mute = false;
  for (int i = 0; i < 4; i++) {
    (void)turn(&world, false);
  }
  assert_int_equal(world.verdicts[CV_VERDICT_ACCEPTED], 1);
  assert_int_equal(world.unacked_count, 0);
  /* After the verdict the first answer is a duplicate, as always. */
  uint64_t duplicates = world.verdicts[CV_VERDICT_DUPLICATE];
  world.unacked[world.unacked_count++] = first;
  send_tokens(&world);
  (void)turn(&world, false);
  assert_int_equal(world.verdicts[CV_VERDICT_DUPLICATE], duplicates + 1);
  world_end(&world);
}

static enum cv_share_answer once(struct fake_cobroker *fake, const struct cv_share_pending *token) {
  enum cv_share_answer answer = (enum cv_share_answer)fake->data;
  fake->data = CV_ANSWER_NONE;
  return answer;
}

/* Tokens that wait are counted before they are charged: a worker cannot owe more than it has. It is not turned away for
 * them, as they may not count: then it gives another one. */
static void test_what_waits_counts_against_a_workers_epsilon(void **state) {
  struct world world;
  world_make(&world);
  world.worker_epsilon_micro = 700000; /* a token costs 500000 */
  (void)restart(&world);
  submit(&world);
  for (int i = 0; i < 10 && world.thirdparty.plans == 0; i++) {
    (void)turn(&world, false);
  }
  world.cobroker.is_mute = true;
  for (int i = 0; i < 6; i++) {
    world.next_worker = 1;
    arrive(&world, 1);
    (void)turn(&world, false);
  }
  assert_int_equal(world.cobroker.shards, 1);
  assert_int_equal(world.backoffs, 0);
  world.cobroker.is_mute = false;
  world.cobroker.judge = once;
  world.cobroker.data = CV_ANSWER_SESSION;
  cv_broker_leave(world.core, world.share);
  connect_share(&world);
  for (int i = 0; i < 8; i++) {
    (void)turn(&world, false);
  }
  assert_int_equal(world.verdicts[CV_VERDICT_EXPIRED], 1);
  assert_int_equal(world.verdicts[CV_VERDICT_ACCEPTED], 1);
  assert_true(world.backoffs > 0); /* that one counts, and it was the last */
  world_end(&world);
}

/* A worker's second token gets a slot of its own while the first one waits, over a restart, too. */
static void test_a_slot_that_waits_is_not_assigned(void **state) {
  struct world world;
  begin(&world);
  world.cobroker.is_mute = true;
  for (int i = 0; i < 8; i++) {
    if (i == 4) {
      (void)restart(&world);
      (void)turn(&world, false);
    }
    world.next_worker = 1;
    arrive(&world, i % 4 == 0);
    (void)turn(&world, false);
  }
  const struct cv_docket *docket = &campaign_of(&world)->two->docket;
  assert_int_equal(world.cobroker.shards, 2);
  assert_int_equal(docket->count, 2);
  assert_int_equal(
      docket->by_place->sent.token.slot + ((struct cv_docket_token *)docket->by_place->by_place.next)->sent.token.slot,
      1);
  world_end(&world);
}

/* The same if its lease had ended before it came. */
static void test_a_late_token_holds_its_slot_and_place(void **state) {
  struct world world;
  world_make(&world);
  world_begin(&world, 1);
  world.cobroker.is_mute = true;
  world.now_ms += LEASE_MS + 1;
  cv_broker_tick(world.core, world.now_ms, world.now_ms);
  send_tokens(&world);
  world.next_worker = 1;
  arrive(&world, 1);
  (void)turn(&world, false);
  (void)turn(&world, false);
  const struct cv_docket *docket = &campaign_of(&world)->two->docket;
  assert_int_equal(world.cobroker.shards, 2);
  assert_int_equal(docket->count, 2); /* neither place nor slot was given twice: no token had to expire */
  assert_int_equal(world.verdicts[CV_VERDICT_EXPIRED], 0);
  world_end(&world);
}

/* A connection has no more answers under way than it said it takes. */
static void test_tokens_that_wait_are_within_the_credit(void **state) {
  struct world world;
  uint64_t worker[] = {1, 2, 3, 4, 5, 6};
  begin(&world);
  world.cobroker.is_mute = true;
  struct cv_arrive arrival = {.workers = CV_COUNT(worker), .worker = worker, .credit = 3};
  say(&world, world.crowd, &(struct cv_crowd_frame){.arrives = 1, .arrive = &arrival});
  for (int i = 0; i < 6; i++) {
    (void)turn(&world, false);
  }
  assert_int_equal(world.cobroker.shards, 3);
  world.cobroker.is_mute = false;
  cv_broker_leave(world.core, world.share);
  connect_share(&world);
  for (int i = 0; i < 6; i++) {
    (void)turn(&world, false);
  }
  assert_int_equal(world.cobroker.shards, 6);
  world_end(&world);
}

/* Assigned or waiting, a campaign has no more tokens than the limit says. */
static void test_a_full_docket_assigns_nothing(void **state) {
  struct world world;
  begin(&world);
  campaign_of(&world)->two->leased = CV_DOCKET_MAX - 2;
  world.cobroker.is_mute = true;
  work(&world, 4);
  assert_int_equal(world.cobroker.shards, 2);
  campaign_of(&world)->two->leased = 0;
  work(&world, 1);
  assert_true(world.cobroker.shards > 2);
  world_end(&world);
}

/* When the data of an arm are used up, its sum is deleted at both brokers, and its last release is empty. */
static void test_an_arm_without_data_ends_with_an_empty_release(void **state) {
  struct world world;
  uint32_t arm = 0;
  begin(&world);
  world.now_ms += 7000;
  cv_broker_tick(world.core, world.now_ms, world.now_ms);
  while (campaign_of(&world)->arm[0].filled < 11) { /* with one broker they would be enough for a release */
    work(&world, 1);
  }
  world.cobroker.is_mute = true;
  work(&world, 2);
  assert_true(cv_two_holds_arm(campaign_of(&world), 0));
  struct cv_decline decline = {.campaign = 1, .used_up = true, .arms = 1, .arm = &arm};
  say(&world, world.crowd, &(struct cv_crowd_frame){.declines = 1, .decline = &decline});
  for (int i = 0; i < 20; i++) { /* tokens of the arm wait: they may be in its sum */
    world.now_ms += 100;
    cv_broker_tick(world.core, world.now_ms, world.now_ms);
    (void)turn(&world, false);
  }
  assert_int_equal(campaign_of(&world)->two->closings, 0);
  world.cobroker.is_mute = false;
  cv_broker_leave(world.core, world.share);
  connect_share(&world);
  for (int i = 0; i < 40 && world.thirdparty.releases == 0; i++) {
    world.now_ms += 100;
    cv_broker_tick(world.core, world.now_ms, world.now_ms);
    (void)turn(&world, false);
  }
  const struct cv_release *release = &world.thirdparty.release[1];
  assert_int_equal(world.thirdparty.releases, 1);
  assert_true(release->last);
  assert_int_equal(release->arm, 0);
  assert_int_equal(release->tokens, 0);
  assert_int_equal(release->noisy_sum, 0);
  assert_int_equal(campaign_of(&world)->ledger.arm[0].spent_micro, 0);
  (void)restart(&world);
  assert_true(campaign_of(&world)->arm[0].is_spent);
  world_end(&world);
}

/* ---- what is stored ---- */

static void copy_batch(struct world *world) {
  disk_commit(world->disk, &world->batch);
}

/* The rows of a campaign with batches that wait. */
static void store_batches(struct world *world, struct disk *disk) {
  *disk = (struct disk){.row = NULL};
  world_make(world);
  world->disk = disk;
  world->on_commit = copy_batch;
  submit(world);
  for (int i = 0; i < 60; i++) {
    const struct cv_broker_campaign *campaign = campaign_of(world);
    world->cobroker.is_mute = campaign != NULL && campaign->arm != NULL && campaign->arm[0].filled > 12;
    work(world, 1);
    if (world->cobroker.position.batches > 0 && world->cobroker.is_mute && campaign->two->docket.count > 8) {
      break;
    }
  }
}

static enum cv_err load_disk(const struct world *world, const struct disk *disk) {
  struct cv_broker *core;
  assert_int_equal(cv_broker_new(&world->core->config, &core), CV_OK);
  enum cv_err err = disk_load(disk, core, world->now_ms, world->now_ms);
  cv_broker_free(core);
  return err;
}

static struct disk_row *row_of(struct disk *disk, enum cv_kind kind) {
  for (size_t i = disk->rows; i-- > 0;) {
    if (disk->row[i].op.kind == CV_OP_CHUNK && disk->row[i].op.chunk == kind) {
      return &disk->row[i];
    }
  }
  return NULL;
}

/* A change of a row that no broker makes: these bytes are set, and then the row is what it was. */
static void refuses(struct world *world, struct disk *disk, struct disk_row *row, size_t at, size_t n, uint8_t value) {
  uint8_t before[64];
  assert_true(at + n <= row->bytes.len && n <= sizeof(before));
  memcpy(before, row->bytes.data + at, n);
  memset(row->bytes.data + at, value, n);
  if (load_disk(world, disk) != CV_ERR_DAMAGED) {
    fail_msg("bytes %zu to %zu of a row of kind %d may be %u", at, at + n, (int)row->op.chunk, value);
  }
  memcpy(row->bytes.data + at, before, n);
  assert_int_equal(load_disk(world, disk), CV_OK);
}

static void test_rows_that_no_broker_writes_are_refused(void **state) {
  enum { PLAN = 4, ARM = 12, PLACE = 16, WORKER = 24, SLOT = 32, VERIFIERS = 124 };
  struct world world;
  struct disk disk;
  store_batches(&world, &disk);
  assert_int_equal(load_disk(&world, &disk), CV_OK);
  struct disk_row *batch = row_of(&disk, CV_CHUNK_PENDING), *two = row_of(&disk, CV_CHUNK_TWO);
  assert_true(batch != NULL && two != NULL);
  refuses(&world, &disk, batch, 0, 4, 0);      /* no token */
  refuses(&world, &disk, batch, 0, 4, 0xff);   /* too many */
  refuses(&world, &disk, batch, PLAN, 1, 9);   /* of a plan that is not open */
  refuses(&world, &disk, batch, ARM, 4, 0xff); /* of no arm */
  refuses(&world, &disk, batch, PLACE, 8, 1);  /* of no place */
  refuses(&world, &disk, batch, WORKER, 8, 0xff);
  refuses(&world, &disk, batch, SLOT, 4, 0xff);
  refuses(&world, &disk, batch, VERIFIERS, 4, 0);
  refuses(&world, &disk, batch, VERIFIERS, 4, 0xff);
  refuses(&world, &disk, batch, batch->bytes.len - 8, 8, 0xff); /* a share that is no element */
  refuses(&world, &disk, two, 0, 1, 0);                         /* another key than the campaign's */
  refuses(&world, &disk, two, 64, 8, 7);                        /* a batch is missing */
  refuses(&world, &disk, two, two->bytes.len - 8, 8, 1);        /* slots used up that are not */
  batch->op.number++;
  assert_int_equal(load_disk(&world, &disk), CV_ERR_DAMAGED);
  batch->op.number--;
  two->op.number++;
  assert_int_equal(load_disk(&world, &disk), CV_ERR_DAMAGED);
  disk_fini(&disk);
  world_end(&world);
}

static void test_closings_that_no_broker_writes_are_refused(void **state) {
  enum { PLAN_HASH = 8, CHAIN = 40, ARM = 72, COUNT = 76, DISCARD = 84, NTH = 85, TOKENS = 89, HALF = 97 };
  struct world world;
  struct disk disk = {.row = NULL};
  world_make(&world);
  world.disk = &disk;
  world.on_commit = copy_batch;
  submit(&world);
  for (int i = 0; i < 100; i++) {
    world.cobroker.hold_closings = true;
    work(&world, 1);
  }
  assert_int_equal(campaign_of(&world)->two->closings, ARMS);
  assert_int_equal(load_disk(&world, &disk), CV_OK);
  struct disk_row *closing = row_of(&disk, CV_CHUNK_CLOSING);
  refuses(&world, &disk, closing, PLAN_HASH, 1, 0);
  refuses(&world, &disk, closing, ARM, 4, 0xff);
  refuses(&world, &disk, closing, ARM, 1, closing->bytes.data[ARM] == 0); /* of an arm that has one */
  refuses(&world, &disk, closing, DISCARD, 1, 1);
  refuses(&world, &disk, closing, NTH, 1, 9);
  refuses(&world, &disk, closing, HALF, 8, 0xff);
  closing->op.number += 2;
  assert_int_equal(load_disk(&world, &disk), CV_ERR_DAMAGED);
  closing->op.number -= 2;
  /* What waited goes on. */
  world.on_commit = NULL;
  world.cobroker.hold_closings = false;
  (void)restart(&world);
  world_run(&world, 0, 0);
  disk_fini(&disk);
  world_end(&world);
}

/* ---- verdicts ---- */

/* The verdict on one token, and what becomes of its place and slot. */
static void judge_one(enum cv_share_answer answer, enum cv_verdict verdict, bool slot_is_used) {
  struct world world;
  begin(&world);
  world.cobroker.judge = once;
  world.cobroker.data = (int)answer;
  while (world.verdicts[verdict] == 0 && world.now_ms < 20000) {
    work(&world, 1);
  }
  assert_int_equal(world.verdicts[verdict], 1);
  struct cv_broker_campaign *campaign = campaign_of(&world);
  assert_int_equal(campaign->two->spoiled, slot_is_used);
  uint64_t used = 0;
  for (const struct cv_chunk *chunk = campaign->payers.all; chunk != NULL; chunk = chunk->hh.next) {
    for (size_t i = 0; i < CV_CHUNK_BYTES; i++) {
      used += (uint64_t)__builtin_popcount(chunk->as.bytes[i]);
    }
  }
  assert_int_equal(used, campaign->tokens + slot_is_used);
  assert_int_equal(charged(&world), campaign->tokens * 500000);
  /* Another worker fills the place, and the campaign comes to the same sums, over a restart. */
  (void)restart(&world);
  world_run(&world, 0, 0);
  world_end(&world);
}

static void test_a_token_whose_proof_fails_uses_up_its_slot(void **state) {
  judge_one(CV_ANSWER_PROOF, CV_VERDICT_REFUSED, true);
}

static void test_other_verdicts_take_nothing(void **state) {
  judge_one(CV_ANSWER_PLACE, CV_VERDICT_EXPIRED, false);
  judge_one(CV_ANSWER_SESSION, CV_VERDICT_EXPIRED, false);
  judge_one(CV_ANSWER_WORKER, CV_VERDICT_EXPIRED, false);
}

/* A share that another worker made for another score does not fit its proof: one element is enough. */
static void test_a_worker_that_lies_is_refused(void **state) {
  struct world world;
  world_make(&world);
  world_begin(&world, 3);
  assert_int_equal(world.unacked_count, 3);
  world.unacked[0].leader[0] ^= 1;
  world.unacked[1].share.leader_bytes--;
  send_tokens(&world);
  for (int i = 0; i < 6; i++) {
    (void)turn(&world, false);
  }
  assert_int_equal(world.verdicts[CV_VERDICT_REFUSED], 2);
  assert_int_equal(campaign_of(&world)->two->spoiled, 1); /* a share of wrong length was never sent on */
  world_run(&world, 0, 0);
  world_end(&world);
}

static void test_values_without_shares_are_refused(void **state) {
  struct world world;
  world_make(&world);
  world_begin(&world, 1);
  assert_int_equal(world.unacked_count, 1);
  int64_t value = 0;
  struct cv_token token = {.values = 1, .value = &value};
  memcpy(token.ticket, world.unacked[0].ticket, sizeof(token.ticket));
  say(&world, world.crowd, &(struct cv_crowd_frame){.tokens = 1, .token = &token});
  world.unacked_count = 0;
  (void)turn(&world, false);
  assert_int_equal(world.verdicts[CV_VERDICT_REFUSED], 1);
  world_end(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_campaign_from_its_first_plan_to_its_result),
      cmocka_unit_test(test_restarts_change_nothing),
      cmocka_unit_test(test_crashes_before_commits_change_nothing),
      cmocka_unit_test(test_cut_connections_change_nothing),
      cmocka_unit_test(test_a_silent_cobroker_delays_the_campaign_only),
      cmocka_unit_test(test_without_the_cobroker_nothing_is_assigned),
      cmocka_unit_test(test_a_change_in_the_pause_is_told),
      cmocka_unit_test(test_a_new_key_ends_the_campaign),
      cmocka_unit_test(test_a_plan_on_its_way_does_not_change),
      cmocka_unit_test(test_idle_counts_again_when_the_cobroker_is_back),
      cmocka_unit_test(test_a_token_counts_when_both_have_it),
      cmocka_unit_test(test_an_acknowledgement_finds_the_newer_connection),
      cmocka_unit_test(test_a_connection_that_is_gone_gets_nothing),
      cmocka_unit_test(test_a_second_answer_to_a_ticket_is_ignored),
      cmocka_unit_test(test_what_waits_counts_against_a_workers_epsilon),
      cmocka_unit_test(test_a_slot_that_waits_is_not_assigned),
      cmocka_unit_test(test_a_late_token_holds_its_slot_and_place),
      cmocka_unit_test(test_tokens_that_wait_are_within_the_credit),
      cmocka_unit_test(test_a_full_docket_assigns_nothing),
      cmocka_unit_test(test_an_arm_without_data_ends_with_an_empty_release),
      cmocka_unit_test(test_rows_that_no_broker_writes_are_refused),
      cmocka_unit_test(test_closings_that_no_broker_writes_are_refused),
      cmocka_unit_test(test_a_token_whose_proof_fails_uses_up_its_slot),
      cmocka_unit_test(test_other_verdicts_take_nothing),
      cmocka_unit_test(test_a_worker_that_lies_is_refused),
      cmocka_unit_test(test_values_without_shares_are_refused),
  };
  return cmocka_run_group_tests_name("two", tests, NULL, NULL);
}
