/* SPDX-License-Identifier: Apache-2.0 */
/* Assignments that show several arms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "tests/unit/worker/pool.h"

/* An assignment that shows the played arm and others. */
static void say_many(struct stage *stage, uint64_t worker, const uint32_t *arm, uint32_t arms, uint64_t place) {
  struct cv_assign *assign = say_assign(stage, worker, 0, place);
  assign->arms = arms;
  assign->arm.many = arm;
}

static struct stage stage;
static uint64_t place_seen[8];
static uint32_t places_seen;

static enum cv_err score_by_place(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  place_seen[places_seen++] = at->place;
  *ret_score = 1000 * arm;
  return CV_OK;
}

/* An arm shown by plays of others is answered from places that no other play has. */
static void test_each_arm_that_is_shown_has_a_place_of_its_own(void **state) {
  static const uint32_t by_2[] = {2, 0, 1}, by_1[] = {1, 0};
  setup(&stage, 1, 4, 4);
  stage.work[0].score = score_by_place;
  places_seen = 0;
  meet(&stage, 1);
  flush(&stage);
  begin(&stage);
  say_many(&stage, 1, by_2, 3, 5);
  say_many(&stage, 2, by_1, 2, 5);
  (void)say_assign(&stage, 3, 0, 5);
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 3);
  assert_int_equal(sent_token(&stage, 0)->values, 3);
  assert_int_equal(sent_token(&stage, 0)->value[0], 2000);
  assert_int_equal(sent_token(&stage, 0)->value[1], 0);
  assert_int_equal(sent_token(&stage, 0)->value[2], 1000);
  assert_int_equal(places_seen, 6);
  assert_true(place_seen[0] == 5 && place_seen[3] == 5 && place_seen[5] == 5); /* of the arm that is played */
  /* arm 0 is shown by a play of 2, by one of 1, and played */
  assert_true(place_seen[1] != place_seen[4] && place_seen[1] != 5 && place_seen[4] != 5);
  cv_worker_free(stage.pool);
}

static void test_the_owners_limit_counts_scores(void **state) {
  static const uint32_t many[] = {2, 0, 1};
  setup(&stage, 1, 1, 1);
  stage.config.accept.tokens = 5;
  meet(&stage, 10);
  flush(&stage);
  begin(&stage);
  say_many(&stage, 1, many, 3, 0);
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 1);
  begin(&stage);
  say_ack(&stage, sent_token(&stage, 0), CV_VERDICT_ACCEPTED, NULL);
  deliver(&stage);
  assert_int_equal(arrived(&stage), 1); /* two are left */
  begin(&stage);
  say_many(&stage, 1, many, 3, 1);
  deliver(&stage);
  assert_int_equal(stage.sent.tokens + arrived(&stage), 0); /* none leaves, and it does not ask for ever */
  assert_int_equal(stage.scored, 3);
  /* And the broker is informed at once, for this assignment only. */
  assert_int_equal(stage.sent.declines, 1);
  assert_true(sent_decline(&stage)->has_ticket && sent_decline(&stage)->campaign == 0);
  assert_memory_equal(sent_decline(&stage)->ticket, stage.assign[0].ticket, CV_TICKET_BYTES);
  assert_string_equal(sent_decline(&stage)->why,
                      "the assignment asks for more scores than the worker's own limit leaves");
  flush(&stage);
  assert_int_equal(stage.sent.declines, 0);
  cv_worker_free(stage.pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_arm_that_is_shown_has_a_place_of_its_own),
      cmocka_unit_test(test_the_owners_limit_counts_scores),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
