/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign with a feedback graph: tokens that show several arms, over restarts and crashes, and who is charged. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#define WORLD_GRAPH true
#include "broker/campaign.h"
#include "broker/plan.h"
#include "tests/unit/broker/world.h"

static uint64_t plays(void) {
  uint64_t all = 0;
  for (uint64_t plan = 1; plan <= PLANS; plan++) {
    struct cv_want want[ARMS];
    uint32_t wants = wants_of(plan, want);
    for (uint32_t i = 0; i < wants; i++) {
      all += want[i].tokens;
    }
  }
  return all;
}

static void releases_are_exact_sums_of_what_was_shown(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  world_run(&world, 0, 0);
  assert_int_equal(world.verdicts[CV_VERDICT_ACCEPTED], plays());
  assert_int_equal(world.verdicts[CV_VERDICT_REFUSED], 0);
  assert_true(scores_shown() > plays());
  world_end(&world);
}

static void restarts_change_nothing(void **state) {
  world_restarts();
}

static void crashes_before_a_commit_change_nothing(void **state) {
  world_crashes();
}

static void a_token_answers_for_each_arm_once(void **state) {
  struct world world;
  world_make(&world);
  world_begin(&world, 1);
  struct token token = world.unacked[0];
  world.unacked_count = 0;
  assert_int_equal(token.values, 2); /* 0 is played, 1 is its neighbour, 2 is a neighbour of another arm */
  assert_int_equal(world_verdict_of(&world, &token, 1), CV_VERDICT_REFUSED);
  assert_int_equal(world_verdict_of(&world, &token, 3), CV_VERDICT_REFUSED);
  struct token bad = token;
  bad.more[0] = CV_GRID + 1;
  assert_int_equal(world_verdict_of(&world, &bad, 2), CV_VERDICT_REFUSED);
  assert_int_equal(charged(&world), 0);
  assert_int_equal(world_verdict_of(&world, &token, 2), CV_VERDICT_ACCEPTED);
  assert_int_equal(world_verdict_of(&world, &token, 2), CV_VERDICT_DUPLICATE);
  assert_int_equal(charged(&world), 2 * 500000);
  stop(&world);
  start(&world);
  assert_int_equal(world_verdict_of(&world, &token, 2), CV_VERDICT_DUPLICATE);
  assert_int_equal(charged(&world), 2 * 500000);
  world_end(&world);
}

static bool has_release(const struct world *world, uint64_t plan, uint32_t arm) {
  for (uint64_t i = 1; i <= world->thirdparty.releases; i++) {
    if (world->thirdparty.release[i].plan == plan && world->thirdparty.release[i].arm == arm) {
      return true;
    }
  }
  return false;
}

/* A place may be given twice. The second answer is late, however many of the requested arms are closed by then: its
 * token is valid, and its worker may give others. */
static void an_answer_for_a_place_that_is_filled_is_late(void **state) {
  enum { PLAN = 3, LEFT = 0, MIDDLE = 1 };
  struct world world;
  world_make(&world);
  submit(&world);
  for (int i = 0; i < 1000 && !has_release(&world, PLAN, LEFT); i++) {
    arrive(&world, 2);
    (void)turn(&world, false);
  }
  assert_true(has_release(&world, PLAN, LEFT) && !has_release(&world, PLAN, MIDDLE));
  const struct cv_ticket ticket = {.campaign = 1, .plan = PLAN, .item = MIDDLE, .worker = 999999, .lease = UINT32_MAX};
  const struct cv_tagger tagger = {.tag = tag, .data = world.mac};
  struct token token = {.values = 3};
  assert_int_equal(cv_ticket_seal(&ticket, &tagger, token.ticket), CV_OK);
  (void)world_verdict_of(&world, &token, 3); /* and of others that are in flight */
  assert_int_equal(world.verdicts[CV_VERDICT_REFUSED], 0);
  assert_int_equal(world.verdicts[CV_VERDICT_EXPIRED], 1);
  world_end(&world);
}

static void a_worker_that_cannot_pay_the_most_is_turned_away(void **state) {
  struct world world;
  world_make(&world);
  world.worker_epsilon_micro = 1499999; /* an assignment may show three scores at .5 each */
  stop(&world);
  start(&world);
  world_begin(&world, 1);
  assert_int_equal(world.unacked_count, 0);
  world_end(&world);
}

static void plans_that_cannot_be_are_refused(void **state) {
  static const struct {
    struct cv_want want[ARMS];
    uint32_t wants;
    const char *why;
  } bad[] = {
      {{{0, 40}, {2, 0}}, 2, "0 tokens of arm 3 in one release; expected 10"},   /* no arm shows it */
      {{{0, 5}, {1, 0}}, 2, "5 tokens of arm 1 in one release; expected 10"},    /* the operator's smallest */
      {{{0, 0}, {1, 0}, {2, 0}}, 3, "0 tokens of arm 1 in one release"},         /* of no play */
      {{{0, 40}, {1, 600}}, 2, "640 tokens; expected at most 600, which"},       /* plays are limited, not scores */
      {{{1, UINT32_MAX}, {0, UINT32_MAX}}, 2, "tokens of arm 2 in one release"}, /* the sum must not wrap around */
  };
  struct world world;
  world_make(&world);
  world_begin(&world, 0);
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(world.core, 1);
  assert_non_null(campaign);
  for (uint32_t i = 0; i < ARMS; i++) { /* as if there had been no plan */
    campaign->arm[i].plan = 0;
  }
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_want want[ARMS];
    struct cv_rank_refused refused;
    struct cv_why why = {.text = ""};
    memcpy(want, bad[i].want, sizeof(want));
    const struct cv_plan plan = {.number = 2, .wants = bad[i].wants, .want = want};
    assert_int_equal(cv_broker_plan_check(campaign, &plan, &refused, &why), CV_ERR_DENIED);
    if (strstr(why.text, bad[i].why) == NULL) {
      fail_msg("\"%s\" does not say \"%s\"", why.text, bad[i].why);
    }
  }
  struct cv_want fits[] = {{0, 20}, {1, 560}, {2, 20}}; /* 600 plays show 1760 scores */
  struct cv_rank_refused refused;
  struct cv_why why;
  const struct cv_plan plan = {.number = 2, .wants = 3, .want = fits};
  assert_int_equal(cv_broker_plan_check(campaign, &plan, &refused, &why), CV_OK);
  world_end(&world);
}

static void a_degree_that_no_assignment_holds_is_refused(void **state) {
  const struct cv_gate_limits limits = {.epsilon_micro = 1000000, .arms = 100, .tokens = 1000000};
  struct cv_edge star[CV_VALUES_MAX];
  struct cv_why why = {.text = ""};
  for (uint32_t i = 0; i < CV_VALUES_MAX; i++) {
    star[i] = (struct cv_edge){.a = 0, .b = i + 1};
  }
  struct cv_spec spec = spec_of_test();
  spec.arms = CV_VALUES_MAX + 1;
  spec.edge = star;
  spec.edges = CV_VALUES_MAX - 1;
  assert_int_equal(cv_gate_spec(&spec, &limits, &why), CV_OK);
  assert_int_equal(cv_spec_worker_micro(&spec, 500000), 2 * 64 * UINT64_C(500000)); /* two tokens of 64 scores */
  spec.edges++;
  assert_int_equal(cv_gate_spec(&spec, &limits, &why), CV_ERR_DENIED);
  assert_string_equal(why.text, "an arm has 64 neighbours; expected at most 63");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(releases_are_exact_sums_of_what_was_shown),
      cmocka_unit_test(restarts_change_nothing),
      cmocka_unit_test(crashes_before_a_commit_change_nothing),
      cmocka_unit_test(a_token_answers_for_each_arm_once),
      cmocka_unit_test(an_answer_for_a_place_that_is_filled_is_late),
      cmocka_unit_test(a_worker_that_cannot_pay_the_most_is_turned_away),
      cmocka_unit_test(plans_that_cannot_be_are_refused),
      cmocka_unit_test(a_degree_that_no_assignment_holds_is_refused),
  };
  return STORED_RUN("graph", tests);
}
