/* SPDX-License-Identifier: Apache-2.0 */
/* What one gateway can make the broker do and store: time for its arrivals, memory for its workers, answers in a
 * turn. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <time.h>

#include "broker/campaign.h"
#include "broker/crowd.h"
#include "broker/payer.h"
#include "broker/workers.h"
#include "gateways.h"

enum { SLOTS = CV_TOKENS_PER_WORKER_MAX, EPSILON = 10, CHUNKS = 20, TURNS = 1000 };
#define WIDE (UINT64_C(1) << 47)

static double seconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct cv_broker_campaign *campaign_of(const struct world *world) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(world->core, 1);
  assert_non_null(campaign);
  return campaign;
}

static void use_up(struct cv_broker_campaign *campaign, uint64_t worker) {
  struct cv_chunk *chunk;
  for (uint32_t slot = 0; slot < campaign->spec.tokens_per_worker; slot++) {
    assert_int_equal(cv_chunks_set(&campaign->payers, cv_broker_campaign_payer_bit(campaign, worker, slot), &chunk),
                     CV_OK);
  }
}

/* Runs turns until no worker waits for an answer; returns the largest number that one of them sent away. */
static size_t most_in_a_turn(struct world *world, struct gateway *gateway) {
  size_t most = 0;
  unsigned turns = 0;
  do {
    size_t before = gateway->away;
    turn(world);
    most = gateway->away - before > most ? gateway->away - before : most;
    assert_true(cv_broker_is_unserved(world->core) == (gateway->conn->workers->waiting_count > 0));
    assert_true(!cv_broker_is_unserved(world->core) || cv_broker_is_pending(world->core));
    assert_true(++turns < TURNS);
  } while (cv_broker_is_unserved(world->core));
  return most;
}

/* All of its slots are used: finding that out needs no look at each of them, and a turn answers only its share. */
static void test_a_worker_without_slots_costs_little(void **state) {
  static struct world world;
  begin_with(&world, 100, SLOTS, EPSILON, 1000);
  struct gateway *gateway = join(&world, 0);
  use_up(campaign_of(&world), gateway->next_worker);
  double start = seconds();
  arrive_by(&world, gateway, 2000, 0);
  assert_int_equal(most_in_a_turn(&world, gateway), cv_broker_workers_share(world.core));
  assert_true(seconds() - start < 0.5); /* 4 s in total if each bit were looked at */
  assert_int_equal(gateway->away, 2000);
  assert_int_equal(gateway->delay_ms, 0);
  end(&world);
}

/* One worker that gives all it may: the last token costs as much as the first, except for words that are skipped. */
static void test_one_worker_gives_thousands(void **state) {
  static struct world world;
  begin_with(&world, SLOTS, SLOTS, EPSILON, 1000);
  struct gateway *gateway = join(&world, 0);
  gateway->conn->workers->penalty = 0;
  double start = seconds();
  for (size_t left = SLOTS; left > 0;) {
    size_t n = left < ASSIGNED ? left : ASSIGNED;
    arrive_by(&world, gateway, n, 0);
    turn(&world);
    assert_int_equal(gateway->tickets, n);
    answer(&world, gateway, n);
    left -= n;
  }
  assert_true(seconds() - start < 3); /* 25 s in total if each bit were looked at */
  turn(&world);
  assert_int_equal(gateway->verdicts[CV_VERDICT_ACCEPTED], SLOTS);
  assert_int_equal(world.releases, 1);
  end(&world);
}

/* The same worker thousands of times in a frame gets another slot each time, as long as there are slots. */
static void test_open_slots_are_passed_over(void **state) {
  static struct world world;
  begin_with(&world, 4000, 100, EPSILON, 1000);
  struct gateway *gateway = join(&world, 0);
  gateway->conn->workers->penalty = 0;
  arrive_by(&world, gateway, 300, 0);
  turn(&world);
  assert_int_equal(gateway->tickets, 100);
  answer(&world, gateway, 100);
  pass(&world, 1);
  pass(&world, 1);
  pass(&world, 1);
  assert_int_equal(gateway->verdicts[CV_VERDICT_ACCEPTED], 100);
  assert_int_equal(gateway->away, 200);
  end(&world);
}

static void test_a_frame_has_so_many_arrivals(void **state) {
  static struct world world;
  static uint64_t worker[CV_ARRIVALS_MAX];
  begin(&world, 10);
  struct gateway *gateway = join(&world, 0);
  struct cv_why why;
  for (size_t i = 0; i < CV_ARRIVALS_MAX; i++) {
    worker[i] = 1;
  }
  struct cv_arrive arrivals[] = {{.workers = CV_ARRIVALS_MAX, .worker = worker}, {.workers = 1, .worker = worker}};
  struct cv_crowd_frame frame = {.arrives = 1, .arrive = arrivals};
  say(&world, gateway, &frame);
  assert_true(cv_broker_conn_is_over_share(world.core, gateway->conn)); /* most of them found the queue full */
  frame.arrives = 2;
  assert_int_equal(cv_broker_on_crowd(world.core, gateway->conn, &frame, world.now_ms, world.now_ms, &why),
                   CV_ERR_LIMIT);
  assert_string_equal(why.text, "65537 workers arrive in one frame; expected at most 65536");
  end(&world);
}

/* Messages that take time and change nothing count against the share, too: the connection is read again after the
 * flush. */
static void test_messages_that_change_nothing_are_counted(void **state) {
  static struct world world;
  static struct cv_arrive nobody[2000];
  begin(&world, 10);
  struct gateway *gateway = join(&world, 0);
  struct cv_decline decline = {.campaign = 77};
  const struct {
    struct cv_crowd_frame frame;
    size_t times;
  } cases[] = {{{.arrives = CV_COUNT(nobody), .arrive = nobody}, 1},
               {{.declines = 1, .decline = &decline}, CV_GATHER_ALL / 2},
               {{.arrives = 0}, CV_GATHER_ALL / 2}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    turn(&world);
    assert_false(cv_broker_conn_is_over_share(world.core, gateway->conn));
    assert_false(cv_broker_is_pending(world.core));
    for (size_t j = 0; j < cases[i].times; j++) {
      say(&world, gateway, &cases[i].frame);
    }
    assert_true(cv_broker_conn_is_over_share(world.core, gateway->conn));
    assert_true(cv_broker_is_pending(world.core));
  }
  struct cv_arrive arrival = {.credit = 5};
  turn(&world);
  say(&world, gateway, &(struct cv_crowd_frame){.arrives = 1, .arrive = &arrival});
  assert_int_equal(gateway->conn->workers->gathered, 0); /* an honest gateway's message is not */
  end(&world);
}

static void decline_all(struct world *world, struct gateway *gateway) {
  for (size_t i = 0; i < gateway->tickets; i++) {
    struct cv_decline decline = {.has_ticket = true};
    memcpy(decline.ticket, gateway->ticket[i], CV_TICKET_BYTES);
    say(world, gateway, &(struct cv_crowd_frame){.declines = 1, .decline = &decline});
  }
  gateway->tickets = 0;
}

/* Workers far apart that arrive, are assigned a place and decline: while it is open it uses a little memory, then
 * none. */
static void test_workers_without_tokens_use_no_memory(void **state) {
  static struct world world;
  begin_with(&world, 4000, 1, 500000, CHUNKS);
  struct gateway *gateway = join_as(&world, 0, 1, WIDE);
  const struct cv_broker_campaign *campaign = campaign_of(&world);
  gateway->conn->workers->penalty = 0;
  for (int i = 0; i < 5; i++) {
    arrive_by(&world, gateway, 1000, CV_CHUNK_BITS);
    turn(&world);
    assert_int_equal(gateway->tickets, 1000);
    assert_int_equal(cv_offers_count(&campaign->offered), 1000);
    decline_all(&world, gateway);
    assert_int_equal(cv_offers_count(&campaign->offered), 0);
  }
  assert_int_equal(campaign->payers.count + world.core->accounts.cells.count, 0);
  assert_int_equal(gateway->away, 0);
  end(&world);
}

/* A certificate for far too many workers gets half of the table at most, and a back-off; others get the rest. */
static void test_a_wide_range_does_not_fill_the_table(void **state) {
  static struct world world;
  begin_with(&world, 4000, 1, 500000, CHUNKS);
  struct gateway *wide = join_as(&world, 0, UINT64_C(1) << 40, WIDE), *honest = join(&world, 1);
  const struct cv_broker_campaign *campaign = campaign_of(&world);
  wide->conn->workers->penalty = 0;
  for (int i = 0; i < 3 * CHUNKS; i++) {
    arrive_by(&world, wide, 1, CV_CHUNK_BITS);
    turn(&world);
    answer(&world, wide, wide->tickets);
  }
  turn(&world);
  assert_int_equal(wide->verdicts[CV_VERDICT_ACCEPTED], CHUNKS / 2);
  assert_int_equal(campaign->payers.count, CHUNKS / 2);
  assert_int_equal(wide->away, 3 * CHUNKS - CHUNKS / 2);
  assert_true(wide->delay_ms > 0);
  arrive(&world, honest, 8);
  turn(&world);
  answer(&world, honest, 8);
  turn(&world);
  assert_int_equal(honest->verdicts[CV_VERDICT_ACCEPTED], 8);
  end(&world);
}

/* Assigned while the table had space, answered when it is full: the token is not taken, and its worker may come
 * again. */
static void test_no_room_when_the_token_comes(void **state) {
  static struct world world;
  begin_with(&world, 4000, 1, 500000, 2);
  struct gateway *wide = join_as(&world, 0, UINT64_C(1) << 40, WIDE);
  struct cv_broker_campaign *campaign = campaign_of(&world);
  uint64_t epsilon = cv_broker_campaign_charge(campaign, 1), first = wide->next_worker;
  wide->conn->workers->penalty = 0;
  arrive_by(&world, wide, 2, CV_CHUNK_BITS);
  turn(&world);
  assert_int_equal(wide->tickets, 2);
  answer(&world, wide, 2);
  turn(&world);
  assert_int_equal(wide->verdicts[CV_VERDICT_ACCEPTED], 1);
  assert_int_equal(wide->verdicts[CV_VERDICT_EXPIRED], 1);
  assert_int_equal(campaign->payers.count, 1);
  assert_int_equal(world.core->accounts.cells.count, 1);
  assert_int_equal(campaign->tokens, 1);
  assert_int_equal(cv_accounts_spent(&world.core->accounts, first), epsilon);
  assert_int_equal(cv_accounts_spent(&world.core->accounts, first + CV_CHUNK_BITS), 0);
  assert_int_equal(cv_offers_count(&campaign->offered), 0);
  end(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_worker_without_slots_costs_little),
      cmocka_unit_test(test_one_worker_gives_thousands),
      cmocka_unit_test(test_open_slots_are_passed_over),
      cmocka_unit_test(test_a_frame_has_so_many_arrivals),
      cmocka_unit_test(test_messages_that_change_nothing_are_counted),
      cmocka_unit_test(test_workers_without_tokens_use_no_memory),
      cmocka_unit_test(test_a_wide_range_does_not_fill_the_table),
      cmocka_unit_test(test_no_room_when_the_token_comes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
