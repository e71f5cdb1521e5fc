/* SPDX-License-Identifier: Apache-2.0 */
/* A co-broker whose database was restored from an older copy: what its recovery charges, ends and never opens again. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "cobroker/recover.h"
#include "cobroker/repair.h"
#include "tests/unit/cobroker/script.h"

static void copy_file(const struct world *world, const char *from, const char *to) {
  static uint8_t bytes[1 << 22];
  FILE *in = fopen(folder_file(&world->folder, from), "r"), *out = fopen(folder_file(&world->folder, to), "w");
  assert_true(in != NULL && out != NULL);
  size_t n = fread(bytes, 1, sizeof(bytes), in);
  assert_true(n < sizeof(bytes) && fwrite(bytes, 1, n, out) == n);
  (void)fclose(in);
  assert_int_equal(fclose(out), 0);
}

/* Worker 1 gives a token that the copy has; worker 2 gives one after it. Then the copy is put back. */
static void lose(struct world *world, bool anchor) {
  begin(world);
  assert_int_equal(give(world, 0, 0, 1, 0), CV_ANSWER_ACCEPTED);
  stop(world);
  copy_file(world, "cobroker.db", "old.db");
  copy_file(world, "anchor", "old.anchor");
  start(world);
  turn(world);
  turn(world);
  assert_int_equal(give(world, 0, 1, 2, 0), CV_ANSWER_ACCEPTED);
  assert_int_equal(give(world, 1, 0, 2, 1), CV_ANSWER_ACCEPTED);
  assert_int_equal(give(world, 1, 1, 3, 0), CV_ANSWER_ACCEPTED);
  stop(world);
  copy_file(world, "old.db", "cobroker.db");
  if (anchor) {
    copy_file(world, "old.anchor", "anchor");
  }
}

static bool opens(struct world *world) {
  struct cv_ring ring = ring_of_test();
  const struct cv_store_files files = {.database = folder_file(&world->folder, "cobroker.db"),
                                       .anchor = folder_file(&world->folder, "anchor")};
  struct cv_cobroker_store *store;
  enum cv_err err = cv_cobroker_store_open(&files, &ring, &store, NULL);
  cv_ring_fini(&ring);
  if (err == CV_OK) {
    cv_cobroker_store_close(store);
  }
  return err == CV_OK;
}

static void recover(struct world *world, const struct cv_recover_claim *claim, struct cv_repaired *ret) {
  const struct cv_cobroker_config config = config_of_test(world);
  struct cv_ring ring = ring_of_test();
  const struct cv_repair repair = {.files = {.database = folder_file(&world->folder, "cobroker.db"),
                                             .anchor = folder_file(&world->folder, "anchor")},
                                   .ring = &ring,
                                   .config = &config,
                                   .claim = claim,
                                   .claims = claim != NULL,
                                   .wall_ms = world->now_ms};
  struct cv_why why = {.text = ""};
  enum cv_err err = cv_repair_run(&cv_cobroker_repair, &repair, ret, &why);
  cv_ring_fini(&ring);
  assert_string_equal(why.text, "");
  assert_int_equal(err, CV_OK);
}

/* The accounts hold at least what was given, whether the copy knows of it or not, and no more than can have been. */
static void expect_charged(struct world *world) {
  assert_true(load(world));
  assert_int_equal(cv_accounts_spent(&world->core->accounts, 1), SLOTS * EPSILON);
  assert_int_equal(cv_accounts_spent(&world->core->accounts, 2), SLOTS * EPSILON);
  assert_int_equal(cv_accounts_spent(&world->core->accounts, 999), SLOTS * EPSILON);
  assert_null(cv_cobroker_campaign_find(world->core, 1));
  assert_int_equal(cv_cobroker_archive_find(&world->core->archive, 1)->end, CV_END_RECOVERED);
  stop(world);
}

static void test_the_anchor_tells(void **state) {
  struct world world;
  struct cv_repaired repaired;
  lose(&world, false);
  assert_false(opens(&world));
  recover(&world, NULL, &repaired);
  assert_true(repaired.changed);
  assert_int_equal(repaired.recovery.ended, 1);
  assert_int_equal(repaired.recovery.floor_micro, SLOTS * EPSILON);
  for (int i = 0; i < 2; i++) { /* after any number of restarts */
    expect_charged(&world);
  }
  recover(&world, NULL, &repaired);
  assert_false(repaired.changed);
  copy_file(&world, "old.db", "cobroker.db"); /* behind again */
  assert_false(opens(&world));
  recover(&world, NULL, &repaired);
  assert_true(repaired.changed);
  expect_charged(&world);
  start(&world);
  turn(&world);
  assert_int_equal(world.ended.reason, CV_END_RECOVERED);
  world_end(&world);
}

static void test_the_broker_tells(void **state) {
  static const struct cv_recover_claim ahead[] = {{.campaign = 1, .batches = 2},
                                                  {.campaign = 1, .tokens = 2},
                                                  {.campaign = 1, .plans = 2},
                                                  {.campaign = 1, .closings = 1}};
  for (size_t i = 0; i < CV_COUNT(ahead); i++) {
    struct world world;
    struct cv_repaired repaired;
    lose(&world, true);
    assert_true(opens(&world));
    const struct cv_recover_claim level = {.campaign = 1, .plans = 1, .batches = 1, .tokens = 1, .worker_micro = 1};
    recover(&world, &level, &repaired);
    assert_false(repaired.changed);
    recover(&world, &ahead[i], &repaired);
    assert_true(repaired.changed);
    expect_charged(&world);
    recover(&world, &ahead[i], &repaired);
    assert_false(repaired.changed);
    world_end(&world);
  }
}

/* Campaigns that only the broker knows are charged, and none up to the last of them is opened again. */
static void test_forgotten_campaigns(void **state) {
  struct world world;
  struct cv_repaired repaired;
  lose(&world, true);
  const struct cv_recover_claim claim = {.campaign = 7, .worker_micro = EPSILON};
  recover(&world, &claim, &repaired);
  assert_int_equal(repaired.recovery.last, 7);
  assert_int_equal(repaired.recovery.floor_micro, (SLOTS + 1) * EPSILON);
  for (int i = 0; i < 2; i++) {
    assert_true(load(&world));
    assert_int_equal(cv_accounts_spent(&world.core->accounts, 999), (SLOTS + 1) * EPSILON);
    assert_int_equal(world.core->archive.past.campaigns, 7);
    stop(&world);
  }
  world_end(&world);
}

/* No account is charged beyond its limit. */
static void test_the_limit(void **state) {
  struct world world;
  struct cv_repaired repaired;
  lose(&world, false);
  world.worker_epsilon_micro = EPSILON;
  recover(&world, NULL, &repaired);
  assert_int_equal(repaired.recovery.floor_micro, EPSILON);
  assert_true(load(&world));
  assert_int_equal(cv_accounts_spent(&world.core->accounts, 1), EPSILON);
  assert_int_equal(cv_accounts_spent(&world.core->accounts, 999), EPSILON);
  stop(&world);
  world_end(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_anchor_tells),
      cmocka_unit_test(test_the_broker_tells),
      cmocka_unit_test(test_forgotten_campaigns),
      cmocka_unit_test(test_the_limit),
  };
  return cmocka_run_group_tests_name("cobroker recover", tests, NULL, NULL);
}
