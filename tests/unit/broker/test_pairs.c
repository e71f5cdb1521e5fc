/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign of pairs: who is compared with whom, over restarts and crashes, and which tokens and plans are refused. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#define WORLD_PAIRS true
#include "broker/campaign.h"
#include "broker/opponent.h"
#include "broker/plan.h"
#include "tests/unit/broker/world.h"

static void releases_are_exact_sums_of_what_was_answered(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  world_run(&world, 0, 0);
  assert_int_equal(world.verdicts[CV_VERDICT_REFUSED], 0);
  world_end(&world);
}

/* Sums, charges and opponents (world.h checks them) are those of an undisturbed run. */
static void restarts_change_nothing(void **state) {
  world_restarts();
}

static void crashes_before_a_commit_change_nothing(void **state) {
  world_crashes();
}

static void a_comparison_is_one_bit(void **state) {
  struct world world;
  world_make(&world);
  world_begin(&world, 1);
  struct token token = world.unacked[0], bad = token;
  world.unacked_count = 0;
  bad.value = CV_GRID / 2;
  assert_int_equal(world_verdict_of(&world, &bad, 1), CV_VERDICT_REFUSED);
  bad.value = 1;
  assert_int_equal(world_verdict_of(&world, &bad, 1), CV_VERDICT_REFUSED);
  assert_int_equal(charged(&world), 0);
  token.value = CV_GRID;
  assert_int_equal(world_verdict_of(&world, &token, 1), CV_VERDICT_ACCEPTED);
  assert_int_equal(charged(&world), 500000); /* once: the opponent's arm does not get the token */
  world_end(&world);
}

static void plans_with_wrong_opponents_are_refused(void **state) {
  static const struct {
    struct cv_want want;
    const char *why;
  } bad[] = {
      {{0, TAU, 1}, "arm 1 is to be compared with arm 1; expected another one of 1 to 3"},
      {{0, TAU, 4}, "arm 1 is to be compared with arm 4; expected another one of 1 to 3"},
      {{2, TAU, UINT32_MAX}, "arm 3 is to be compared with arm 4294967295; expected another one of 1 to 3"},
  };
  struct world world;
  world_make(&world);
  world_begin(&world, 0);
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(world.core, 1);
  assert_non_null(campaign);
  for (uint32_t i = 0; i < ARMS; i++) { /* as if there had been no plan */
    campaign->arm[i].plan = 0;
  }
  struct cv_rank_refused refused;
  struct cv_why why = {.text = ""};
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_want want = bad[i].want;
    const struct cv_plan plan = {.number = 2, .wants = 1, .want = &want};
    assert_int_equal(cv_broker_plan_check(campaign, &plan, &refused, &why), CV_ERR_DENIED);
    assert_string_equal(why.text, bad[i].why);
  }
  struct cv_want good = {0, TAU, 2};
  const struct cv_plan plan = {.number = 2, .wants = 1, .want = &good};
  assert_int_equal(cv_broker_plan_check(campaign, &plan, &refused, &why), CV_OK);
  campaign->spec.pairs = false;
  assert_int_equal(cv_broker_plan_check(campaign, &plan, &refused, &why), CV_ERR_DENIED);
  assert_string_equal(why.text, "arm 1 has an opponent; expected none: the campaign has no pairs");
  campaign->spec.pairs = true;
  world_end(&world);
}

/* ---- the draw ---- */

/* Numbers of the test's choice in place of the key's. */
struct script {
  const uint64_t *number;
  uint32_t drawn;
};

static enum cv_err next_number(void *data, const void *bytes, size_t bytes_n, uint8_t *to, size_t n) {
  struct script *script = data;
  assert_int_equal(n, sizeof(uint64_t));
  memcpy(to, &script->number[script->drawn++], n); /* little-endian, as the draw reads it */
  return CV_OK;
}

/* 2^64 is no multiple of 3: the one number too many is drawn again, so that all opponents are equally probable. */
static void no_opponent_is_a_bit_more_probable(void **state) {
  static const uint64_t number[] = {0, UINT64_MAX, 1};
  struct script script = {.number = number};
  const struct cv_tagger tagger = {.tag = next_number, .data = &script};
  const struct cv_opponent_place place = {.arm = 0};
  uint32_t arm;
  assert_int_equal(cv_opponent_draw(&tagger, &place, 4, &arm), CV_OK); /* 2^64 mod 3 = 1: number 0 is left out */
  assert_int_equal(script.drawn, 2);
  assert_int_equal(arm, 1 + UINT64_MAX % 3);
  assert_int_equal(cv_opponent_draw(&tagger, &place, 4, &arm), CV_OK);
  assert_int_equal(arm, 2);
  /* Two arms: 2^64 is a multiple of 1, and there is one opponent. */
  static const uint64_t any[] = {0, 7};
  script = (struct script){.number = any};
  assert_int_equal(cv_opponent_draw(&tagger, &place, 2, &arm), CV_OK);
  assert_int_equal(arm, 1);
}

static void places_have_independent_uniform_opponents(void **state) {
  enum { MANY = 7, PLACES = 60000 };
  const struct cv_key keys[] = {{{7}}, {{8}}};
  uint32_t count[MANY] = {0}, differs = 0;
  struct cv_mac *mac[2];
  for (size_t k = 0; k < CV_COUNT(mac); k++) {
    assert_int_equal(cv_mac_new(&keys[k], &mac[k]), CV_OK);
  }
  for (uint32_t i = 0; i < PLACES; i++) {
    const struct cv_opponent_place place = {.campaign = 1, .plan = 1 + i / 1000, .arm = 3, .position = i % 1000};
    uint32_t arm[2];
    for (size_t k = 0; k < CV_COUNT(mac); k++) {
      const struct cv_tagger tagger = {.tag = tag, .data = mac[k]};
      assert_int_equal(cv_opponent_draw(&tagger, &place, MANY, &arm[k]), CV_OK);
    }
    count[arm[0]]++;
    differs += arm[0] != arm[1];
  }
  assert_int_equal(count[3], 0);
  for (uint32_t i = 0; i < MANY; i++) { /* six standard deviations of 10000 */
    assert_true(i == 3 || (count[i] > 9450 && count[i] < 10550));
  }
  assert_in_range(differs, 49450, 50550); /* another key, other opponents: 5 of 6 differ */
  for (size_t k = 0; k < CV_COUNT(mac); k++) {
    cv_mac_free(mac[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(releases_are_exact_sums_of_what_was_answered),
      cmocka_unit_test(restarts_change_nothing),
      cmocka_unit_test(crashes_before_a_commit_change_nothing),
      cmocka_unit_test(a_comparison_is_one_bit),
      cmocka_unit_test(plans_with_wrong_opponents_are_refused),
      cmocka_unit_test(no_opponent_is_a_bit_more_probable),
      cmocka_unit_test(places_have_independent_uniform_opponents),
  };
  return STORED_RUN("pairs", tests);
}
