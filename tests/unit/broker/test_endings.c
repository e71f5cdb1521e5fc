/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever ends a campaign, its requester is told why: one clean line, before and after a restart. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "broker/campaign.h"
#include "broker/ended.h"
#include "broker/ending.h"
#include "broker/statement.h"
#include "tests/unit/broker/world.h"

static void assert_why(struct world *world, enum cv_end end, const char *why) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(world->core, 1);
  struct cv_progress progress;
  struct cv_statement *statement;
  assert_non_null(campaign);
  cv_broker_campaign_progress(world->core, campaign, &progress);
  assert_int_equal(progress.end, end);
  assert_string_equal(progress.why, why);
  assert_int_equal(cv_broker_statement_of(world->core, campaign, &statement), CV_OK);
  assert_string_equal(statement->why, why);
  cv_broker_statement_free(statement);
}

/* As a status answer has it, and as it is read from the store. */
static void assert_kept(struct world *world, enum cv_end end, const char *why) {
  const struct cv_ended *ended = cv_archive_find(&world->core->archive, 1);
  struct cv_progress progress;
  struct cv_why reason;
  assert_non_null(ended);
  cv_ended_progress(world->core, ended, &progress);
  assert_int_equal(progress.end, end);
  assert_string_equal(progress.why, why);
  assert_null(cv_broker_campaign_find(world->core, 1));
  assert_int_equal(cv_broker_store_fetch(world->store, world->core, 1, &reason), CV_OK);
  assert_why(world, end, why);
}

static void await_result(struct world *world, enum cv_end end) {
  struct cv_rank_result result = {.campaign = 1, .reason = end};
  (void)turn(world, false);
  (void)turn(world, false);
  answer(world, &(struct cv_rank_frame){.results = 1, .result = &result});
}

/* `is_stopped`: its result is still to come, and the broker restarts meanwhile. */
static void end_as(enum cv_end end, bool is_stopped, const char *said, const char *why) {
  struct world world;
  world_make(&world);
  submit(&world);
  (void)turn(&world, false);
  (void)turn(&world, false);
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(world.core, 1);
  if (is_stopped) {
    cv_broker_campaign_stop(world.core, campaign, end, said);
    (void)turn(&world, false);
    (void)restart(&world);
    assert_why(&world, end, why);
    await_result(&world, end);
  } else {
    cv_broker_campaign_end(world.core, campaign, end, said);
  }
  assert_why(&world, end, why);
  (void)turn(&world, false);
  (void)restart(&world);
  assert_kept(&world, end, why);
  world_end(&world);
}

/* A third-party whose policy has failed refuses a campaign that it has opened; it is told that this was heard. */
static void test_a_third_party_may_refuse_what_it_has_opened(void **state) {
  struct world world;
  struct cv_rank_opened refused = {.position = {.campaign = 1}, .refused = "policy twice has failed in step: KeyError"};
  world_make(&world);
  submit(&world);
  (void)turn(&world, false);
  (void)turn(&world, false);
  assert_true(cv_broker_campaign_find(world.core, 1)->rank.opened);
  answer(&world, &(struct cv_rank_frame){.opened = 1, .answer = &refused});
  assert_why(&world, CV_END_REFUSED, "third-party: policy twice has failed in step: KeyError");
  assert_non_null(world.core->archive.closing);
  (void)turn(&world, false);
  (void)restart(&world);
  assert_kept(&world, CV_END_REFUSED, "third-party: policy twice has failed in step: KeyError");
  world_end(&world);
}

static void test_every_end_has_its_usual_reason(void **state) {
  for (enum cv_end end = CV_END_COMPLETE; end < CV_END_COUNT; end++) {
    const char *usual = cv_end_usual_why(end);
    assert_int_equal(usual[0] == '\0', end == CV_END_COMPLETE);
    end_as(end, false, NULL, usual);
    if (end != CV_END_COMPLETE) {
      end_as(end, true, NULL, usual);
    }
  }
}

static void test_what_a_party_says_is_told_in_one_clean_line(void **state) {
  for (enum cv_end end = CV_END_TOKENS; end < CV_END_COUNT; end++) {
    for (int is_stopped = 0; is_stopped < 2; is_stopped++) {
      end_as(end, is_stopped == 1, "the co-broker says\n\033[2J no", "the co-broker says??[2J no");
    }
  }
}

static void test_a_long_reason_is_cut(void **state) {
  char said[2 * CV_END_WHY_BYTES], cut[CV_END_WHY_BYTES];
  memset(said, 'y', sizeof(said));
  memset(cut, 'y', sizeof(cut));
  said[sizeof(said) - 1] = cut[sizeof(cut) - 1] = '\0';
  end_as(CV_END_REFUSED, true, said, cut);
  end_as(CV_END_FROZEN, false, said, cut);
}

/* The reason of the stop stays when its result comes; a third-party that fails meanwhile has the last word. */
static void test_the_first_reason_stays_unless_a_party_fails(void **state) {
  struct world world;
  world_make(&world);
  submit(&world);
  (void)turn(&world, false);
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(world.core, 1);
  cv_broker_campaign_stop(world.core, campaign, CV_END_TOKENS, "plan 3: too much");
  cv_broker_campaign_stop(world.core, campaign, CV_END_DEADLINE, NULL);
  assert_why(&world, CV_END_TOKENS, "plan 3: too much");
  cv_broker_campaign_end(world.core, campaign, CV_END_FROZEN, "it contradicts itself");
  assert_why(&world, CV_END_FROZEN, "it contradicts itself");
  world_end(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_end_has_its_usual_reason),
      cmocka_unit_test(test_a_third_party_may_refuse_what_it_has_opened),
      cmocka_unit_test(test_what_a_party_says_is_told_in_one_clean_line),
      cmocka_unit_test(test_a_long_reason_is_cut),
      cmocka_unit_test(test_the_first_reason_stays_unless_a_party_fails),
  };
  return cmocka_run_group_tests_name("endings", tests, NULL, NULL);
}
