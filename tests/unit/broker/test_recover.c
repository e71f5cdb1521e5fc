/* SPDX-License-Identifier: Apache-2.0 */
/* The charges of a recovery, case by case, for a core with one running campaign. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "broker/campaign.h"
#include "broker/recover.h"
#include "tests/unit/broker/world.h"

enum { EPSILON = 500000, WORKER = 2 * EPSILON };

/* Campaign 1 runs and has released each arm; then a recovery whose `totals` exceed the database's. */
struct stage {
  struct world world;
  struct cv_recover_facts facts;
  struct cv_recover_claim claim[2];
  struct cv_recovery recovery;
};

static void stage_make(struct stage *stage) {
  *stage = (struct stage){.facts = {.is_anchored = true, .is_same = true, .commit = 100, .anchor.commit = 100}};
  world_make(&stage->world);
  submit(&stage->world);
  for (int i = 0; i < 400 && stage->world.thirdparty.releases < ARMS; i++) {
    arrive(&stage->world, 3);
    (void)turn(&stage->world, false);
  }
  assert_int_equal(stage->world.thirdparty.releases, ARMS);
  stage->world.core->config.limits.worker_epsilon_micro = 4000000000;
  stage->facts.anchor.totals = stage->world.core->totals;
  stage->facts.claim = stage->claim;
}

static struct cv_broker_campaign *campaign_of(struct stage *stage) {
  return cv_broker_campaign_find(stage->world.core, 1);
}

/* Whether arms are written off, the charge of every worker, and the campaign's state. */
static void expect(struct stage *stage, bool written_off, uint64_t floor_micro) {
  assert_true(cv_broker_recover(stage->world.core, &stage->facts, &stage->recovery));
  assert_int_equal(cv_accounts_spent(&stage->world.core->accounts, UINT64_C(1) << 40), floor_micro);
  for (uint32_t i = 0; i < ARMS; i++) {
    assert_int_equal(campaign_of(stage)->ledger.arm[i].spent_micro, written_off ? EPSILON : EPSILON / 2);
  }
  assert_int_equal(campaign_of(stage)->end, CV_END_RECOVERED);
  assert_int_equal(campaign_of(stage)->phase, CV_PHASE_ENDED);
  assert_false(cv_broker_recover(stage->world.core, &stage->facts, &stage->recovery) &&
               stage->facts.commit >= stage->facts.anchor.commit && stage->facts.is_same);
}

static void test_a_database_that_is_level_is_left_alone(void **state) {
  struct stage stage;
  stage_make(&stage);
  assert_false(cv_broker_recover(stage.world.core, &stage.facts, &stage.recovery));
  stage.facts.commit = 101; /* the recovery stopped before its anchor was written */
  assert_false(cv_broker_recover(stage.world.core, &stage.facts, &stage.recovery));
  assert_int_equal(campaign_of(&stage)->phase, CV_PHASE_RUNNING);
  world_end(&stage.world);
}

static void test_what_the_anchor_knows_bounds_the_charge(void **state) {
  const struct {
    uint64_t releases, tokens, promised;
    bool written_off;
    uint64_t floor;
  } cases[] = {
      {0, 0, 0, false, 0},       /* commits alone: nothing that costs */
      {0, 5, 0, false, WORKER},  /* tokens of the open campaign */
      {0, 1, 0, false, EPSILON}, /* one of them: no worker can have given two */
      {1, 5, 0, true, WORKER},   /* and a release */
      {0, 0, 7000, false, 0},    /* a campaign was made, without a token */
      {2, 5, 7000, true, WORKER + 7000},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct stage stage;
    stage_make(&stage);
    stage.facts.anchor.commit = 120;
    stage.facts.anchor.totals.releases += cases[i].releases;
    stage.facts.anchor.totals.tokens += cases[i].tokens;
    stage.facts.anchor.totals.promised_micro += cases[i].promised;
    stage.facts.anchor.totals.campaigns += cases[i].promised > 0 ? 3 : 0;
    expect(&stage, cases[i].written_off, cases[i].floor);
    assert_int_equal(stage.world.core->totals.campaigns, cases[i].promised > 0 ? 4 : 1);
    assert_true(stage.world.core->totals.releases > stage.facts.anchor.totals.releases);
    assert_true(stage.world.core->totals.tokens > stage.facts.anchor.totals.tokens);
    assert_true(stage.world.core->commit > 120 + (UINT64_C(1) << 31));
    world_end(&stage.world);
  }
}

static uint64_t spent(struct stage *stage, uint64_t worker) {
  return cv_accounts_spent(&stage->world.core->accounts, worker);
}

static uint64_t given(struct stage *stage, uint64_t worker) {
  return cv_chunks_count(&campaign_of(stage)->payers, worker * 2, 2);
}

/* A worker that has given all its tokens before can have given none since, and one that has given one can have given
 * one more. */
/* The anchor does not count answers to gold items: any worker can have given as many as it may. */
static void test_no_total_bounds_answers_to_gold_items(void **state) {
  for (uint64_t tokens = 0; tokens < 2; tokens++) {
    struct stage stage;
    stage_make(&stage);
    static const struct cv_gold_item known = {.item = 0};
    static const struct cv_gold gold = {.items = 1, .item = (struct cv_gold_item *)(uintptr_t)&known};
    assert_int_equal(cv_gold_copy(&gold, &campaign_of(&stage)->gold.terms), CV_OK);
    stage.facts.anchor.commit = 101;
    stage.facts.anchor.totals.tokens += tokens;
    expect(&stage, false, WORKER);
    world_end(&stage.world);
  }
}

static void test_no_worker_is_charged_for_tokens_that_it_cannot_have_given(void **state) {
  static const uint64_t tokens[] = {1, 2, 50};
  for (size_t i = 0; i < CV_COUNT(tokens); i++) {
    struct stage stage;
    uint64_t before[20], gave[20], all = 0;
    stage_make(&stage);
    stage.facts.anchor.commit = 120;
    stage.facts.anchor.totals.tokens += tokens[i];
    stage.world.next_worker = 1; /* some rows are loaded again */
    arrive(&stage.world, 3);
    (void)turn(&stage.world, false);
    (void)turn(&stage.world, false);
    for (uint64_t worker = 0; worker < 20; worker++) {
      before[worker] = spent(&stage, worker);
      gave[worker] = given(&stage, worker);
      all |= UINT64_C(1) << gave[worker];
    }
    assert_int_equal(all, 7); /* nothing, one and both: there are some of each */
    stage.facts.anchor.totals.tokens = stage.world.core->totals.tokens + tokens[i];
    assert_true(cv_broker_recover(stage.world.core, &stage.facts, &stage.recovery));
    for (uint64_t worker = 0; worker < 20; worker++) {
      uint64_t slots = 2 - gave[worker], charged = EPSILON * (slots < tokens[i] ? slots : tokens[i]);
      assert_int_equal(spent(&stage, worker), before[worker] + charged);
    }
    assert_true(stage.recovery.spared_micro > 0);
    world_end(&stage.world);
  }
}

static void test_no_worker_is_charged_more_than_it_had_left(void **state) {
  static const uint64_t limits[] = {WORKER + EPSILON / 2, WORKER, EPSILON + 1, EPSILON / 3};
  for (size_t i = 0; i < CV_COUNT(limits); i++) {
    struct stage stage;
    stage_make(&stage);
    stage.facts.anchor.commit = 120;
    stage.facts.anchor.totals.tokens += 50;
    stage.facts.anchor.totals.promised_micro += 4000000000;
    stage.world.core->config.limits.worker_epsilon_micro = limits[i];
    assert_int_equal(spent(&stage, 1), EPSILON);
    assert_true(cv_broker_recover(stage.world.core, &stage.facts, &stage.recovery));
    assert_int_equal(stage.recovery.floor_micro, limits[i]);
    assert_int_equal(spent(&stage, UINT64_C(1) << 40), limits[i]);
    assert_int_equal(spent(&stage, 1), limits[i] > EPSILON ? limits[i] : EPSILON); /* its earlier charges are kept */
    world_end(&stage.world);
  }
}

static void test_a_third_partys_claims_count_where_they_go_further(void **state) {
  struct stage stage;
  stage_make(&stage);
  stage.facts.claims = 1;
  stage.claim[0] = (struct cv_recover_claim){.campaign = 1, .releases = ARMS, .plans = 1, .worker_micro = 9};
  assert_false(cv_broker_recover(stage.world.core, &stage.facts, &stage.recovery)); /* no more than what is known */
  stage.claim[0].releases = ARMS + 1;
  expect(&stage, true, WORKER);
  world_end(&stage.world);

  stage_make(&stage);
  stage.facts.claims = 2;
  stage.claim[0] = (struct cv_recover_claim){.campaign = 1, .releases = ARMS, .plans = 1};
  stage.claim[1] = (struct cv_recover_claim){.campaign = 5, .worker_micro = 300};
  expect(&stage, false, WORKER + 300); /* an anchor that does not know campaign 5 knows none of its tokens either */
  assert_int_equal(stage.recovery.first, 2);
  assert_int_equal(stage.recovery.last, 5);
  world_end(&stage.world);
}

static void test_without_bounds_all_is_charged(void **state) {
  struct stage stage;
  stage_make(&stage);
  stage.facts.is_anchored = stage.facts.is_same = false;
  expect(&stage, true, WORKER);
  world_end(&stage.world);

  stage_make(&stage);
  stage.facts.is_same = false;
  stage.facts.anchor.totals.promised_micro = 12345; /* of another database: all of it */
  expect(&stage, true, WORKER + 12345);
  world_end(&stage.world);
}

static void test_a_recovery_names_the_anchors_that_it_took_in(void **state) {
  struct cv_recovery recovery = {.commit = 2, .takens = 2, .taken = {{{7}, 11}, {{8}, 12}}}, back;
  struct cv_buf row = {0};
  cv_recovery_put(&recovery, &row);
  for (size_t cut = 0; cut <= row.len; cut++) {
    struct cv_reader in = cv_reader_over(row.data, row.len - cut);
    assert_int_equal(cv_recovery_read(&in, &back), cut == 0 ? CV_OK : CV_ERR_DAMAGED);
    assert_true(cut > 0 || (back.takens == 2 && back.taken[1].term_id[0] == 8 && back.taken[1].commit == 12));
  }
  cv_buf_fini(&row);
}

static void test_a_stored_recovery_comes_back_and_a_cut_one_does_not(void **state) {
  const struct cv_recovery recovery = {.wall_ms = 1,
                                       .commit = 2,
                                       .database = {3},
                                       .anchored = 4,
                                       .first = 5,
                                       .last = 6,
                                       .ended = 7,
                                       .floor_micro = 8,
                                       .spared_micro = 12,
                                       .named = 13,
                                       .added = {.releases = 9, .tokens = 10, .promised_micro = 11}};
  struct cv_recovery back;
  struct cv_buf row = {0};
  cv_recovery_put(&recovery, &row);
  for (size_t cut = 0; cut <= row.len; cut++) {
    struct cv_reader in = cv_reader_over(row.data, row.len - cut);
    assert_int_equal(cv_recovery_read(&in, &back), cut == 0 ? CV_OK : CV_ERR_DAMAGED);
  }
  assert_memory_equal(back.database, recovery.database, sizeof(back.database));
  assert_true(back.wall_ms == 1 && back.commit == 2 && back.anchored == 4 && back.first == 5 && back.last == 6 &&
              back.ended == 7 && back.floor_micro == 8 && back.added.releases == 9 && back.added.tokens == 10 &&
              back.added.promised_micro == 11 && back.spared_micro == 12 && back.named == 13);
  cv_buf_fini(&row);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_database_that_is_level_is_left_alone),
      cmocka_unit_test(test_what_the_anchor_knows_bounds_the_charge),
      cmocka_unit_test(test_no_total_bounds_answers_to_gold_items),
      cmocka_unit_test(test_no_worker_is_charged_for_tokens_that_it_cannot_have_given),
      cmocka_unit_test(test_no_worker_is_charged_more_than_it_had_left),
      cmocka_unit_test(test_a_third_partys_claims_count_where_they_go_further),
      cmocka_unit_test(test_without_bounds_all_is_charged),
      cmocka_unit_test(test_a_recovery_names_the_anchors_that_it_took_in),
      cmocka_unit_test(test_a_stored_recovery_comes_back_and_a_cut_one_does_not),
  };
  return cmocka_run_group_tests_name("recover", tests, NULL, NULL);
}
