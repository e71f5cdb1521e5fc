/* SPDX-License-Identifier: Apache-2.0 */
/* Every single allocation fails once: in the core over a whole small campaign, and in the store. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <openssl/crypto.h>

#include "tests/support/alloc_fault.h"

#define WORLD_PLANS 2
#define WORLD_TAU   5
#include "tests/unit/cobroker/script.h"

/* One campaign to its end, over as many processes as needed. */
static void run_campaign(struct world *world) {
  for (int i = 0; i < 400 && step(world); i++) {
    if (i % 9 == 8 && !world->died) { /* a connection that comes and goes */
      uint64_t campaign = 2;
      say(world, world->gateway, &(struct cv_share_frame){.enters = 1, .enter = &campaign});
      starve(world);
      cv_cobroker_tick(world->core, world->now_ms, world->now_ms);
      struct cv_why why = {.text = ""};
      (void)lives(world, CV_OK, &why);
    }
    turn(world);
    world->now_ms += 10;
  }
  assert_true(world->leader.over);
}

static void check_campaign(struct world *world) {
  world->starve = world->starve_store = NULL;
  restart(world);
  turn(world);
  assert_null(cv_cobroker_campaign_find(world->core, 1));
  assert_int_equal(world->core->archive.count, 1);
  assert_int_equal(world->leader.closed, ARMS * PLANS);
  check_halves(world);
  for (uint64_t worker = 1; worker <= ARMS * PLANS * TAU / SLOTS; worker++) {
    assert_int_equal(cv_accounts_spent(&world->core->accounts, worker), SLOTS * EPSILON);
  }
}

static void warm_up(void) {
  struct world first; /* allocated once by libraries and kept */
  world_make(&first);
  run_campaign(&first);
  world_end(&first);
}

/* At whatever moment memory runs out, the core returns that error and no other, and what it has answered survives. */
static void without_memory(bool all_after) {
  warm_up();
  ALLOC_FAULT_EACH(fault, .rest = all_after) {
    struct world world;
    OPENSSL_thread_stop(); /* its state of errors */
    int64_t before = alloc_fault_live();
    world_make_starving(&world, alloc_fault_arm, NULL, alloc_fault_pause);
    world.journal_bytes = 1500;
    run_campaign(&world);
    assert_true(alloc_fault_hit() == (world.starve == NULL)); /* a process that survives has lost nothing */
    check_campaign(&world);
    world_end(&world);
    OPENSSL_thread_stop();
    assert_int_equal(alloc_fault_live(), before);
  }
}

static void test_one_allocation_fails(void **state) {
  without_memory(false);
}

static void test_all_allocations_fail_from_one_on(void **state) {
  without_memory(true);
}

/* The database has all of a commit or nothing of it, and the next process goes on from there. */
static void without_memory_in_the_store(bool all_after) {
  warm_up();
  ALLOC_FAULT_EACH(fault, .rest = all_after, .step = all_after ? 31 : 7) {
    struct world world;
    OPENSSL_thread_stop();
    int64_t before = alloc_fault_live();
    world_make_starving(&world, NULL, alloc_fault_arm, alloc_fault_pause);
    world.journal_bytes = 1500;
    run_campaign(&world);
    check_campaign(&world);
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
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_allocation_fails),
      cmocka_unit_test(test_all_allocations_fail_from_one_on),
      cmocka_unit_test(test_one_allocation_of_the_store_fails),
      cmocka_unit_test(test_all_allocations_of_the_store_fail_from_one_on),
  };
  return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
