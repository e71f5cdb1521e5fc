/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every single allocation fails once: in the core over a whole small campaign, and in the store. Compiled with
 * WORLD_GRAPH or WORLD_HIRES (world.h) the campaign has a feedback graph, or is a recruitment; with WORLD_POSTGRES only
 * the store is tested, some of its allocations, as each round makes new sessions with a server.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <openssl/crypto.h>

#include "broker/campaign.h"
#include "tests/support/alloc_fault.h"

#define WORLD_PLANS 2
#ifdef WORLD_GRAPH
#define WORLD_TAU 20 /* half of it is the smallest permitted release */
#else
#define WORLD_TAU 12
#endif
#include "tests/unit/broker/world.h"

static void ask_around(struct world *world, int i) {
  if (i % 7 == 0) {
    ask(world, &(struct cv_order_frame){.kind = CV_ORDER_STATUS});
  }
  if (i % 11 == 0) {
    ask(world, &(struct cv_order_frame){.kind = CV_ORDER_WATCH, .as.watch.describe = true});
  }
  if (i % 13 == 0) {
    ask(world, &(struct cv_order_frame){.kind = CV_ORDER_EXPORT});
  }
}

/* One campaign to its result, or to its cancellation, over as many processes as needed. */
static void run_campaign(struct world *world, bool cancel) {
  for (int i = 0; i < 600 && !world->thirdparty.closed; i++) {
    if (!world->died && i % 20 == 0) {
      submit(world); /* the same each time */
    }
    arrive(world, 3);
    ask_around(world, i);
    world->now_ms += 10;
    if (!world->died) {
      starve(world);
      cv_broker_tick(world->core, world->now_ms, world->now_ms);
      (void)lives(world, CV_OK, NULL);
    }
    if (cancel && world->thirdparty.releases > 0 && !world->died) {
      ask(world, &(struct cv_order_frame){.kind = CV_ORDER_CANCEL});
    }
    const struct cv_broker_campaign *campaign = cv_broker_campaign_find(world->core, 1);
    if (campaign != NULL && campaign->phase == CV_PHASE_STOPPING && campaign->rank.opened) {
      struct cv_rank_result result = {.campaign = 1, .reason = CV_END_CANCELLED};
      answer(world, &(struct cv_rank_frame){.results = 1, .result = &result});
    }
    (void)turn(world, false);
  }
  assert_true(world->thirdparty.closed);
}

static void check_campaign(struct world *world, bool cancel) {
  struct cv_broker_figures figures;
  restart(world);
  cv_broker_figures(world->core, &figures);
  assert_int_equal(figures.campaigns_kept, 1);
  assert_int_equal(figures.opening + figures.running + figures.stopping, 0);
  if (!cancel) {
    assert_int_equal(world->thirdparty.releases, releases_by(PLANS));
    check_releases(world);
    assert_int_equal(charged(world), scores_shown() * 500000);
  }
  struct cv_why why;
  assert_null(cv_broker_campaign_find(world->core, 1));
  assert_int_equal(cv_broker_store_fetch(world->store, world->core, 1, &why), CV_OK);
  const struct cv_payroll *payroll = &cv_broker_campaign_find(world->core, 1)->payroll;
  assert_int_equal(cv_payroll_is_kept(payroll), WORLD_HIRES);
  if (WORLD_HIRES) {
    assert_in_range(payroll->paid_micro, TAU * cost_of_test[0], wages());
    assert_true(cancel || payroll->paid_micro == wages());
  }
}

/* At whatever moment memory runs out, the core returns that error and no other, and what it has acknowledged
 * survives. */
static void without_memory(bool cancel, bool all_after) {
  struct world first; /* allocated once by libraries and kept */
  world_make(&first);
  run_campaign(&first, cancel);
  world_end(&first);
  ALLOC_FAULT_EACH(fault, .rest = all_after) {
    struct world world;
    OPENSSL_thread_stop(); /* its state of errors */
    int64_t before = alloc_fault_live();
    world_make_starving(&world, alloc_fault_arm, NULL, alloc_fault_pause);
    world.journal_bytes = 1500;
    run_campaign(&world, cancel);
    assert_true(alloc_fault_hit() == (world.starve == NULL)); /* a process that survives has lost nothing */
    check_campaign(&world, cancel);
    world_end(&world);
    OPENSSL_thread_stop();
    assert_int_equal(alloc_fault_live(), before);
  }
}

static void test_one_allocation_fails(void **state) {
  without_memory(false, false);
}

static void test_all_allocations_fail_from_one_on(void **state) {
  without_memory(false, true);
}

static void test_one_allocation_fails_around_a_cancellation(void **state) {
  without_memory(true, false);
}

/*
 * The database has all of a commit or nothing of it, and the next process goes on from there. The first opening, which
 * makes the database, is the same for every kind of campaign, and more than half of the allocations: only the plain
 * kind has failures there.
 */
static void without_memory_in_the_store(bool all_after) {
  const bool from_the_first_opening = STORED_IN_FILE && !WORLD_GRAPH && !WORLD_HIRES && !WORLD_TWO;
  struct world first;
  world_make(&first);
  run_campaign(&first, false);
  world_end(&first);
  ALLOC_FAULT_EACH(fault, .rest = all_after, .step = (all_after ? 31 : 7) * (STORED_IN_FILE ? 1 : 101)) {
    struct world world;
    OPENSSL_thread_stop();
    int64_t before = alloc_fault_live();
    world_make_starving(&world, NULL, from_the_first_opening ? alloc_fault_arm : NULL, alloc_fault_pause);
    if (!from_the_first_opening) {
      world.starve_store = alloc_fault_arm;
    }
    world.journal_bytes = 1500;
    run_campaign(&world, false);
    check_campaign(&world, false);
    world_end(&world);
    OPENSSL_thread_stop();
    assert_int_equal(alloc_fault_live(), before);
  }
}

static void test_one_allocation_of_the_store_fails(void **state) {
  without_memory_in_the_store(false);
}

static void test_all_allocations_of_the_store_fail_from_one_on(void **state) {
  without_memory_in_the_store(true);
}

int main(void) {
  const struct CMUnitTest store[] = {
      cmocka_unit_test(test_one_allocation_of_the_store_fails),
      cmocka_unit_test(test_all_allocations_of_the_store_fail_from_one_on),
  };
  const struct CMUnitTest all[] = {
      cmocka_unit_test(test_one_allocation_fails),
      cmocka_unit_test(test_all_allocations_fail_from_one_on),
      cmocka_unit_test(test_one_allocation_fails_around_a_cancellation),
      store[0],
      store[1],
  };
  return STORED_IN_FILE ? cmocka_run_group_tests_name("memory", all, NULL, NULL) : STORED_RUN("memory", store);
}
