/* SPDX-License-Identifier: Apache-2.0 */
/* Ended campaigns: they leave memory, are read again for a request, and are purged or forgotten. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#define WORLD_PLANS 2
#define WORLD_TAU   12
#include "broker/campaign.h"
#include "broker/fetch.h"
#include "broker/requester.h"
#include "tests/unit/broker/world.h"

enum { DAY_MS = 86400000 };

/* What a requester has received since this was emptied. */
struct told {
  uint64_t accepted, purged, campaigns, newest, finished, releases, spent_micro;
  bool existed, described, complete;
  char error[CV_WHY_BYTES];
};

static void note_order(struct told *told, const struct cv_order_frame *frame) {
  const struct cv_statement *statement = &frame->as.statement;
  switch (frame->kind) {
    case CV_ORDER_ACCEPTED:
      told->accepted = frame->as.accepted.campaign;
      told->existed = frame->as.accepted.existed;
      break;
    case CV_ORDER_PURGED:
      told->purged = frame->as.purged;
      break;
    case CV_ORDER_STATUS_ANSWER:
      told->campaigns = frame->as.status.campaigns;
      told->newest = told->campaigns == 0 ? 0 : frame->as.status.campaign[told->campaigns - 1].campaign;
      break;
    case CV_ORDER_DESCRIPTION:
      told->described = frame->as.description.spec.arms == ARMS;
      break;
    case CV_ORDER_FINISHED:
      told->finished = frame->as.finished.progress.campaign;
      break;
    case CV_ORDER_PART:
      told->releases += frame->as.part.releases;
      told->complete = frame->as.part.last;
      break;
    case CV_ORDER_STATEMENT:
      for (uint32_t i = 0; i < statement->arms; i++) {
        told->spent_micro += statement->account[i].spent_micro;
      }
      break;
    case CV_ORDER_ERROR:
      (void)snprintf(told->error, sizeof(told->error), "%s", frame->as.error);
      break;
    default:
      break;
  }
}

/* One turn of the broker, in which it sends something to this connection, or nothing. */
static void hear(struct world *world, const struct cv_broker_conn *conn, struct told *told) {
  bool store;
  struct cv_why why;
  struct cv_broker_out out;
  assert_true(fetch_wanted(world));
  assert_int_equal(cv_broker_flush(world->core, world->now_ms, world->now_ms, &world->batch, &store), CV_OK);
  if (store && cv_broker_store_commit(world->store, &world->batch, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  cv_broker_stored(world->core);
  while (cv_broker_next_out(world->core, &out)) {
    if (out.schema == CV_SCHEMA_RANK) {
      on_rank(world, out.frame.rank);
    } else if (out.schema == CV_SCHEMA_CROWD) {
      on_crowd(world, out.frame.crowd);
    } else if (out.conn == conn) {
      note_order(told, out.frame.order);
    }
  }
}

static struct told request(struct world *world, struct cv_order_frame frame) {
  struct told told = {0};
  ask(world, &frame);
  for (int i = 0; i < 8; i++) {
    hear(world, world->order, &told);
  }
  return told;
}

static struct told of_campaign(struct world *world, enum cv_order_kind kind, uint64_t campaign) {
  struct cv_order_frame frame = {.kind = kind, .as.campaign = campaign};
  if (kind == CV_ORDER_WATCH) {
    frame.as.watch.campaign = campaign;
    frame.as.watch.describe = true;
  } else if (kind == CV_ORDER_LEDGER) {
    frame.as.ledger = (struct cv_statement_request){.campaign = campaign};
  }
  return request(world, frame);
}

static struct told submit_key(struct world *world, uint8_t key) {
  struct cv_order_frame frame = {.kind = CV_ORDER_SUBMIT};
  world->thirdparty = (struct thirdparty){0};
  frame.as.submit = (struct cv_submit){.client_key = {key}, .spec = spec_of_test()};
  return request(world, frame);
}

static bool is_in_memory(const struct world *world, uint32_t campaign) {
  return cv_broker_campaign_find(world->core, campaign) != NULL;
}

/* Submits a campaign and brings it to its result. */
static uint64_t run_one(struct world *world, uint8_t key) {
  uint64_t id = submit_key(world, key).accepted;
  for (int i = 0; i < 400 && cv_archive_find(&world->core->archive, id) == NULL; i++) {
    arrive(world, 3);
    (void)turn(world, false);
  }
  assert_int_equal(world->thirdparty.releases, RELEASES);
  (void)turn(world, false);
  assert_false(is_in_memory(world, (uint32_t)id));
  return id;
}

/* Submits one and cancels it. */
static uint64_t cancel_one(struct world *world, uint8_t key) {
  uint64_t id = submit_key(world, key).accepted;
  (void)of_campaign(world, CV_ORDER_CANCEL, id);
  struct cv_rank_result result = {.campaign = id, .reason = CV_END_CANCELLED};
  answer(world, &(struct cv_rank_frame){.results = 1, .result = &result});
  (void)turn(world, false);
  (void)turn(world, false);
  assert_false(is_in_memory(world, (uint32_t)id));
  return id;
}

/* Time that passes while the broker is up. */
static void pass(struct world *world, uint64_t ms) {
  struct told told = {0};
  world->now_ms += ms;
  for (int i = 0; i < 5; i++) {
    world->now_ms += 2000;
    cv_broker_tick(world->core, world->now_ms, world->now_ms);
    hear(world, world->order, &told);
  }
}

static uint64_t rows(const struct world *world, const char *sql) {
  return stored_number(&world->folder, sql);
}

/* Every request that a requester can make about an ended campaign. */
static void check_whole(struct world *world, uint32_t id) {
  struct told told = of_campaign(world, CV_ORDER_EXPORT, id);
  assert_true(told.complete);
  assert_int_equal(told.releases, RELEASES);
  assert_false(is_in_memory(world, id));
  told = of_campaign(world, CV_ORDER_WATCH, id);
  assert_true(told.described);
  assert_int_equal(told.finished, id);
  told = of_campaign(world, CV_ORDER_LEDGER, id);
  assert_int_equal(told.spent_micro, ARMS * 250000);
  told = of_campaign(world, CV_ORDER_STATUS, 0);
  assert_int_equal(told.newest, id);
  assert_int_equal(of_campaign(world, CV_ORDER_CANCEL, id).accepted, id);
  assert_false(is_in_memory(world, id));
}

static void test_an_ended_campaign_is_in_the_database_only(void **state) {
  struct world world;
  world_make(&world);
  uint32_t id = (uint32_t)run_one(&world, 1);
  for (int i = 0; i < 2; i++) {
    check_whole(&world, id);
    struct told told = submit_key(&world, 1);
    assert_true(told.existed);
    assert_int_equal(told.accepted, id);
    (void)restart(&world);
    assert_null(world.core->campaigns);
  }
  world_end(&world);
}

static void test_what_a_purge_deletes_and_what_it_keeps(void **state) {
  struct world world;
  world_make(&world);
  uint64_t id = run_one(&world, 1), spent = charged(&world);
  assert_true(spent > 0);
  assert_int_equal(of_campaign(&world, CV_ORDER_PURGE, id).purged, 1);
  assert_int_equal(of_campaign(&world, CV_ORDER_PURGE, 0).purged, 0);
  for (int i = 0; i < 2; i++) {
    assert_string_equal(of_campaign(&world, CV_ORDER_EXPORT, id).error, "campaign 1 of r was purged");
    assert_string_equal(of_campaign(&world, CV_ORDER_WATCH, id).error, "campaign 1 of r was purged");
    assert_string_equal(of_campaign(&world, CV_ORDER_LEDGER, id).error, "campaign 1 of r was purged");
    assert_int_equal(of_campaign(&world, CV_ORDER_STATUS, 0).campaigns, 0);
    assert_int_equal(submit_key(&world, 1).accepted, id); /* not a new one */
    assert_int_equal(charged(&world), spent);
    (void)restart(&world);
  }
  stop(&world);
  assert_int_equal(rows(&world,
                        "SELECT (SELECT count(*) FROM campaign) + (SELECT count(*) FROM release) +"
                        " (SELECT count(*) FROM plan) + (SELECT count(*) FROM ledger)"),
                   0);
  assert_true(rows(&world, "SELECT count(*) FROM chunk WHERE campaign = 0") > 0);
  start(&world);
  assert_int_equal(run_one(&world, 2), id + 1);
  world_end(&world);
}

static void test_one_that_runs_or_is_anothers_is_not_purged(void **state) {
  static const struct cv_identity other = {.role = CV_ROLE_REQUESTER, .name = "s"};
  struct world world;
  struct cv_broker_conn *mine, *theirs;
  struct cv_why why;
  world_make(&world);
  uint64_t ended = cancel_one(&world, 1), open = submit_key(&world, 2).accepted;
  assert_non_null(strstr(of_campaign(&world, CV_ORDER_PURGE, open).error, "campaign 2 has not ended"));
  assert_int_equal(cv_broker_join(world.core, &other, NULL, &theirs, &why), CV_OK);
  mine = world.order;
  world.order = theirs;
  assert_string_equal(of_campaign(&world, CV_ORDER_PURGE, ended).error, "no campaign 1 of s");
  assert_int_equal(of_campaign(&world, CV_ORDER_PURGE, 0).purged, 0);
  world.order = mine;
  assert_int_equal(of_campaign(&world, CV_ORDER_PURGE, 0).purged, 1);
  assert_true(is_in_memory(&world, (uint32_t)open));
  world_end(&world);
}

/* A stop in between loses nothing: the next start continues. */
static void test_many_rows_go_a_few_a_commit(void **state) {
  struct world world;
  world_make(&world);
  uint64_t id = run_one(&world, 1);
  struct cv_progress *record = &cv_archive_find(&world.core->archive, id)->progress;
  world.core->totals.releases += 2000 - record->releases; /* as if it had made that many */
  record->releases = 2000;
  ask(&world, &(struct cv_order_frame){.kind = CV_ORDER_PURGE, .as.campaign = id});
  struct told told = {0};
  hear(&world, world.order, &told);
  assert_int_equal(told.purged, 1);
  stop(&world);
  assert_int_equal(rows(&world, "SELECT count(*) FROM campaign"), 1); /* which is deleted last */
  start(&world);
  pass(&world, 1);
  stop(&world);
  assert_int_equal(rows(&world, "SELECT count(*) FROM campaign"), 0);
  start(&world);
  world_end(&world);
}

static void test_what_is_too_old_is_forgotten_and_nothing_else(void **state) {
  struct world world;
  world_make(&world);
  world.retention_ms = 30 * (uint64_t)DAY_MS;
  (void)restart(&world);
  uint64_t old = run_one(&world, 1), spent = charged(&world);
  pass(&world, 20 * (uint64_t)DAY_MS);
  uint64_t young = cancel_one(&world, 2), open = submit_key(&world, 3).accepted;
  pass(&world, 11 * (uint64_t)DAY_MS);
  for (int i = 0; i < 2; i++) {
    assert_string_equal(of_campaign(&world, CV_ORDER_EXPORT, old).error, "no campaign 1 of r");
    assert_true(of_campaign(&world, CV_ORDER_EXPORT, young).complete);
    assert_true(is_in_memory(&world, (uint32_t)open));
    assert_int_equal(charged(&world), spent);
    (void)restart(&world);
  }
  (void)of_campaign(&world, CV_ORDER_CANCEL, open);
  struct cv_rank_result result = {.campaign = open, .reason = CV_END_CANCELLED};
  answer(&world, &(struct cv_rank_frame){.results = 1, .result = &result});
  pass(&world, 40 * (uint64_t)DAY_MS);
  (void)restart(&world); /* the totals include what is gone: otherwise it would not start */
  assert_int_equal(world.core->archive.count, 0);
  assert_int_equal(world.core->totals.campaigns, open);
  assert_int_equal(submit_key(&world, 4).accepted, open + 1);
  world_end(&world);
}

/* The campaign that ended first is forgotten, and only for a campaign of the same requester. */
static void test_a_quota_comes_back(void **state) {
  static const struct cv_identity other = {.role = CV_ROLE_REQUESTER, .name = "s"};
  struct world world;
  struct cv_broker_conn *theirs, *mine;
  struct cv_why why;
  world_make(&world);
  world.kept = 3;
  (void)restart(&world);
  assert_int_equal(cv_broker_join(world.core, &other, NULL, &theirs, &why), CV_OK);
  mine = world.order;
  world.order = theirs;
  uint64_t first = cancel_one(&world, 1);
  world.order = mine;
  for (uint8_t key = 1; key <= 40; key++) {
    assert_int_equal(cancel_one(&world, key), first + key);
  }
  pass(&world, 1);
  assert_int_equal(of_campaign(&world, CV_ORDER_STATUS, 0).campaigns, 3);
  assert_true(of_campaign(&world, CV_ORDER_EXPORT, first + 40).complete);
  assert_string_equal(of_campaign(&world, CV_ORDER_EXPORT, first + 1).error, "no campaign 2 of r");
  world.order = theirs;
  assert_true(of_campaign(&world, CV_ORDER_EXPORT, first).complete);
  world_end(&world);
}

/* Whatever their state: cancelled, purged, or known from before a restart. */
static void test_so_many_a_minute_and_no_more(void **state) {
  struct world world;
  world_make(&world);
  world.submits = 3;
  world.now_ms += 10 * (uint64_t)DAY_MS;
  (void)restart(&world);
  for (uint8_t key = 1; key <= 3; key++) {
    (void)cancel_one(&world, key);
  }
  assert_int_equal(of_campaign(&world, CV_ORDER_PURGE, 0).purged, 3);
  for (int i = 0; i < 2; i++) {
    assert_non_null(
        strstr(submit_key(&world, 4).error, "3 campaigns of this requester were submitted within a minute"));
    assert_true(submit_key(&world, 3).existed); /* which is not a new one */
    (void)restart(&world);
  }
  pass(&world, 60000);
  assert_int_equal(cancel_one(&world, 5), 4);
  world.now_ms -= DAY_MS; /* the clock was wrong */
  (void)restart(&world);
  assert_int_equal(submit_key(&world, 6).accepted, 5);
  world_end(&world);
}

/* Rows that contradict the record: the requester receives an error, and all others are served. */
static void test_damaged_rows_fail_only_requests_for_them(void **state) {
  struct world world;
  world_make(&world);
  uint64_t bad = run_one(&world, 1), good = cancel_one(&world, 2);
  cv_archive_find(&world.core->archive, bad)->progress.releases++;
  assert_non_null(strstr(of_campaign(&world, CV_ORDER_EXPORT, bad).error, "the broker's database: "));
  assert_non_null(strstr(of_campaign(&world, CV_ORDER_WATCH, bad).error, "the broker's database: "));
  assert_non_null(strstr(of_campaign(&world, CV_ORDER_LEDGER, bad).error, "the broker's database: "));
  assert_false(is_in_memory(&world, (uint32_t)bad));
  assert_int_equal(world.core->open_count, 0);
  assert_true(of_campaign(&world, CV_ORDER_EXPORT, good).complete);
  (void)run_one(&world, 3);
  world_end(&world);
}

/* A requester that asks for many at once has one in memory at a time, and gets all of them. */
static void test_a_requester_has_one_in_memory(void **state) {
  enum { CONNS = 6 };
  struct world world;
  struct cv_broker_conn *conn[CONNS];
  struct told told[CONNS] = {{0}};
  struct cv_why why;
  world_make(&world);
  for (uint8_t i = 0; i < CONNS; i++) {
    (void)run_one(&world, i);
  }
  for (int i = 0; i < CONNS; i++) {
    struct cv_order_frame frame = {.kind = CV_ORDER_EXPORT, .as.campaign = (uint64_t)i + 1, .hello = hello};
    assert_int_equal(cv_broker_join(world.core, &requester, NULL, &conn[i], &why), CV_OK);
    assert_int_equal(cv_broker_on_order(world.core, conn[i], &frame, world.now_ms, world.now_ms, &why), CV_OK);
  }
  cv_broker_hold(world.core, conn[0], true); /* it does not read, and delays no other requester */
  for (int i = 0; i < 60; i++) {
    hear(&world, conn[i % CONNS], &told[i % CONNS]);
    assert_true(HASH_COUNT(world.core->campaigns) <= 1);
  }
  cv_broker_hold(world.core, conn[0], false);
  for (int i = 0; i < 8; i++) {
    hear(&world, conn[0], &told[0]);
  }
  assert_true(told[0].complete);
  assert_null(world.core->campaigns);
  for (int i = 1; i < CONNS; i++) {
    assert_int_equal(conn[i]->requester->export.campaign, 0);
  }
  world_end(&world);
}

/* A campaign that is requested is purged over another connection: its deleted rows are not looked for. */
static void test_what_is_purged_is_not_fetched(void **state) {
  struct world world;
  struct cv_broker_conn *conn;
  struct told told = {0};
  struct cv_why why;
  uint32_t wanted;
  world_make(&world);
  uint64_t id = run_one(&world, 1);
  struct cv_order_frame frame = {.kind = CV_ORDER_EXPORT, .as.campaign = id, .hello = hello};
  assert_int_equal(cv_broker_join(world.core, &requester, NULL, &conn, &why), CV_OK);
  assert_int_equal(cv_broker_on_order(world.core, conn, &frame, world.now_ms, world.now_ms, &why), CV_OK);
  hear(&world, conn, &told);
  assert_true(cv_broker_wanted(world.core, &wanted));
  cv_broker_hold(world.core, conn, true);
  assert_int_equal(of_campaign(&world, CV_ORDER_PURGE, id).purged, 1);
  cv_broker_hold(world.core, conn, false);
  world.core->wants = true; /* as where another campaign is wanted, too */
  assert_false(cv_broker_wanted(world.core, &wanted));
  hear(&world, conn, &told);
  hear(&world, conn, &told);
  assert_string_equal(told.error, "campaign 1 of r was purged");
  world_end(&world);
}

/* While a campaign is read the core goes on: what nobody waits for any more is not restored. */
static void test_what_is_not_awaited_any_more_is_not_restored(void **state) {
  struct world world;
  struct cv_broker_conn *conn;
  struct cv_fetched fetched = {.campaign = 0};
  struct told told = {0};
  struct cv_why why;
  uint32_t wanted;
  for (int purge = 0; purge < 2; purge++) {
    world_make(&world);
    uint64_t id = run_one(&world, 1);
    const struct cv_order_frame export = {.kind = CV_ORDER_EXPORT, .as.campaign = id, .hello = hello};
    assert_int_equal(cv_broker_join(world.core, &requester, NULL, &conn, &why), CV_OK);
    assert_int_equal(cv_broker_on_order(world.core, conn, &export, world.now_ms, world.now_ms, &why), CV_OK);
    hear(&world, conn, &told);
    assert_true(cv_broker_wanted(world.core, &wanted));
    assert_int_equal(cv_broker_store_read(world.store, wanted, &fetched, &why), CV_OK);
    assert_true(cv_broker_awaits(world.core, wanted));
    if (purge) {
      cv_broker_hold(world.core, conn, true);
      assert_int_equal(of_campaign(&world, CV_ORDER_PURGE, id).purged, 1);
      cv_broker_hold(world.core, conn, false);
    } else {
      cv_broker_leave(world.core, conn);
    }
    assert_false(cv_broker_awaits(world.core, wanted));
    cv_fetched_fini(&fetched);
    world_end(&world);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_ended_campaign_is_in_the_database_only),
      cmocka_unit_test(test_what_a_purge_deletes_and_what_it_keeps),
      cmocka_unit_test(test_one_that_runs_or_is_anothers_is_not_purged),
      cmocka_unit_test(test_what_is_purged_is_not_fetched),
      cmocka_unit_test(test_what_is_not_awaited_any_more_is_not_restored),
      cmocka_unit_test(test_many_rows_go_a_few_a_commit),
      cmocka_unit_test(test_what_is_too_old_is_forgotten_and_nothing_else),
      cmocka_unit_test(test_a_quota_comes_back),
      cmocka_unit_test(test_so_many_a_minute_and_no_more),
      cmocka_unit_test(test_damaged_rows_fail_only_requests_for_them),
      cmocka_unit_test(test_a_requester_has_one_in_memory),
  };
  return STORED_RUN("ended", tests);
}
