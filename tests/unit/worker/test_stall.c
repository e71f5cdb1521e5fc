/* SPDX-License-Identifier: Apache-2.0 */
/* Campaigns to which no worker of the pool may give another token: the broker is told why, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "tests/unit/worker/pool.h"

#define ALL_GIVEN "accept.tokens: 2 are given by 3 of 3 workers; expected more of them, or other workers"

static const uint32_t used_up[] = {2, 2, 2}, but_one[] = {2, 1, 2};

static bool knows_first(void *data, uint64_t worker) {
  (void)data;
  return worker == 11;
}

static void ask_nobody(void *data, const struct cv_question *question) {
  (void)data;
  (void)question;
  fail_msg("somebody was asked");
}

static const struct cv_asker people = {.ask = ask_nobody, .knows = knows_first, .waits = true};

/* Three workers, 11 to 13, who may give two scores each. */
static void setup_limited(struct stage *stage, const uint32_t *given) {
  setup(stage, 11, 13, 4);
  stage->config.accept.tokens = 2;
  stage->config.given = given;
}

/* Until the pool sends an arrival, at most `seconds`. */
static bool arrives_within(struct stage *stage, unsigned seconds) {
  flush(stage);
  for (unsigned i = 0; i < 10 * seconds && arrived(stage) == 0; i++) {
    stage->now_ms += 100;
    cv_worker_tick(stage->pool);
    flush(stage);
  }
  return arrived(stage) > 0;
}

static void assert_declined(struct stage *stage, const char *why) {
  assert_int_equal(stage->sent.declines, 1);
  assert_string_equal(sent_decline(stage)->why, why);
  assert_false(sent_decline(stage)->has_ticket);
  assert_int_equal(sent_decline(stage)->campaign, CAMPAIGN);
  char line[300];
  (void)snprintf(line, sizeof(line), "declined campaign \"test\": %s", why);
  assert_string_equal(stage->notes[stage->noted - 1], line);
}

static void nobody_with_tokens_left_says_so_and_is_asked_nothing(void **state) {
  struct stage stage;
  setup_limited(&stage, used_up);
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  deliver(&stage);
  /* One comes, although it has nothing to give: else the pool would never hear of the campaign. */
  assert_true(arrives_within(&stage, 3));
  uint64_t worker = arrived_worker(&stage, 0);
  begin(&stage);
  (void)say_terms(&stage, CAMPAIGN, 4);
  (void)say_assign(&stage, worker, 0, 0);
  deliver(&stage);
  assert_declined(&stage, ALL_GIVEN);
  assert_int_equal(stage.sent.tokens, 0);
  assert_int_equal(stage.noted, 1);
  /* Told once, however often it looks. */
  for (int i = 0; i < 30; i++) {
    stage.now_ms += 200;
    cv_worker_tick(stage.pool);
    flush(&stage);
    assert_int_equal(stage.sent.declines, 0);
  }
  cv_worker_free(stage.pool);
}

static void one_with_a_token_left_keeps_the_campaign_until_it_is_given(void **state) {
  struct stage stage;
  setup_limited(&stage, but_one);
  meet(&stage, 4);
  flush(&stage);
  assert_int_equal(stage.sent.declines, 0);
  begin(&stage);
  (void)say_assign(&stage, 12, 0, 0);
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 1);
  assert_int_equal(stage.sent.declines, 0); /* not while the token is on its way */
  begin(&stage);
  say_ack(&stage, sent_token(&stage, 0), CV_VERDICT_ACCEPTED, NULL);
  stage.now_ms += 200;
  deliver(&stage);
  assert_declined(&stage, ALL_GIVEN);
  cv_worker_free(stage.pool);
}

/* What the campaign itself takes, the broker knows. */
static void the_campaigns_own_limit_is_no_reason(void **state) {
  struct stage stage;
  setup(&stage, 11, 11, 1);
  stage.config.accept.tokens = 1;
  meet(&stage, 1);
  flush(&stage);
  begin(&stage);
  (void)say_assign(&stage, 11, 0, 0);
  deliver(&stage);
  begin(&stage);
  say_ack(&stage, sent_token(&stage, 0), CV_VERDICT_ACCEPTED, NULL);
  deliver(&stage);
  for (int i = 0; i < 10; i++) {
    stage.now_ms += 200;
    cv_worker_tick(stage.pool);
    flush(&stage);
    assert_int_equal(stage.sent.declines, 0);
  }
  cv_worker_free(stage.pool);
}

static void only_people_who_are_invited_count(void **state) {
  struct stage stage;
  static const uint32_t first[] = {2, 0, 0};
  setup_limited(&stage, first);
  stage.config.asker = &people;
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  deliver(&stage);
  assert_true(arrives_within(&stage, 3));
  assert_int_equal(arrived_worker(&stage, 0), 11);
  begin(&stage);
  (void)say_terms(&stage, CAMPAIGN, 4);
  deliver(&stage);
  assert_declined(&stage, "accept.tokens: 2 are given by 1 of 1 workers; expected more of them, or other workers");
  assert_int_equal(cv_worker_used_limit(stage.pool, 11), 2);
  assert_int_equal(cv_worker_used_limit(stage.pool, 12), 0);
  assert_int_equal(cv_worker_used_limit(stage.pool, 14), 0);
  cv_worker_free(stage.pool);
}

/* Without the limit, or with something left, people come by themselves. */
static void nobody_comes_for_people_who_may_still_give(void **state) {
  struct stage stage;
  static const uint32_t first[] = {1, 2, 2};
  setup_limited(&stage, first);
  stage.config.asker = &people;
  start(&stage);
  flush(&stage);
  begin(&stage);
  say_hello(&stage);
  deliver(&stage);
  assert_false(arrives_within(&stage, 10));
  cv_worker_free(stage.pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nobody_with_tokens_left_says_so_and_is_asked_nothing),
      cmocka_unit_test(one_with_a_token_left_keeps_the_campaign_until_it_is_given),
      cmocka_unit_test(the_campaigns_own_limit_is_no_reason),
      cmocka_unit_test(only_people_who_are_invited_count),
      cmocka_unit_test(nobody_comes_for_people_who_may_still_give),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
