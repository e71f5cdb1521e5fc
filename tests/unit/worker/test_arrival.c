/* SPDX-License-Identifier: Apache-2.0 */
/* Which workers of a pool arrive, when, and how many of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "common/base/grid.h"
#include "tests/unit/worker/pool.h"

static struct stage stage;

static void back_off(uint64_t worker, uint32_t delay_ms) {
  static uint64_t workers[1];
  static struct cv_backoff backoff;
  workers[0] = worker;
  backoff = (struct cv_backoff){.worker = workers, .workers = 1, .delay_ms = delay_ms, .campaign = CAMPAIGN};
  begin(&stage);
  stage.frame.backoff = &backoff;
  stage.frame.backoffs = 1;
  deliver(&stage);
}

static void test_back_off(void **state) {
  setup(&stage, 1, 2, 4);
  meet(&stage, 1);
  back_off(1, 1000);
  assert_int_equal(arrived(&stage), 0);
  stage.now_ms += 999;
  flush(&stage);
  assert_int_equal(arrived(&stage), 0);
  stage.now_ms += 200;
  flush(&stage);
  assert_int_equal(arrived(&stage), 1);
  assert_int_equal(arrived_worker(&stage, 0), 1);
  back_off(1, 0);
  assert_false(cv_worker_is_done(stage.pool));
  back_off(2, 0);
  assert_true(cv_worker_is_done(stage.pool));
  cv_worker_free(stage.pool);
}

/* A restarted gateway does not know which workers have given: it must not send the unwanted ones for ever. */
static void test_away_from_two_campaigns(void **state) {
  setup(&stage, 1, 5, 1);
  meet(&stage, 1);
  begin(&stage);
  (void)say_terms(&stage, CAMPAIGN + 1, 1);
  deliver(&stage);
  uint64_t last[] = {1};
  const struct cv_backoff both[] = {{.worker = last, .workers = 1, .campaign = CAMPAIGN},
                                    {.worker = last, .workers = 1, .campaign = CAMPAIGN + 1}};
  begin(&stage);
  stage.frame.backoff = (struct cv_backoff *)(uintptr_t)both;
  stage.frame.backoffs = 2;
  for (uint64_t worker = 1; worker <= 5; worker++) {
    last[0] = worker;
    deliver(&stage);
    for (size_t i = 0; i < arrived(&stage); i++) {
      assert_true(arrived_worker(&stage, i) > worker);
    }
  }
  assert_true(cv_worker_is_done(stage.pool));
  cv_worker_free(stage.pool);
}

/* The broker sends terms only to workers that arrive, so one asks even if the known campaign wants none. */
static void test_a_second_campaign_beside_the_first(void **state) {
  size_t asked = 0;
  setup(&stage, 1, 2, 4);
  meet(&stage, 1);
  assert_false(comes_back(&stage, 1, 0, CV_VERDICT_ACCEPTED, NULL));
  assert_false(comes_back(&stage, 2, 1, CV_VERDICT_ACCEPTED, NULL));
  for (int i = 0; i < 500; i++) {
    stage.now_ms += 10;
    flush(&stage);
    if (arrived(&stage) > 0) {
      asked += arrived(&stage);
      assert_true(cv_worker_is_done(stage.pool));
      back_off(arrived_worker(&stage, 0), 0);
    }
  }
  assert_in_range(asked, 4, 5);
  stage.now_ms += 1000;
  flush(&stage);
  assert_int_equal(arrived(&stage), 1);
  uint64_t asker = arrived_worker(&stage, 0);
  begin(&stage);
  (void)say_terms(&stage, CAMPAIGN + 1, 1);
  say_assign(&stage, asker, 0, 0)->campaign = CAMPAIGN + 1;
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 1);
  assert_int_equal(arrived(&stage), 1);
  assert_int_not_equal(arrived_worker(&stage, 0), asker);
  cv_worker_free(stage.pool);
}

/* Workers that were told to come later do not delay those that may come now. */
static void test_a_back_off_delays_no_other_worker(void **state) {
  setup(&stage, 1, 2, 4);
  meet(&stage, 5);
  back_off(1, 60000);
  assert_true(comes_back(&stage, 2, 0, CV_VERDICT_ACCEPTED, NULL));
  cv_worker_free(stage.pool);
}

/* A broker that has nothing for the first ones now may have something for the others. */
static void test_who_backs_off_again_and_again_leaves_room_for_others(void **state) {
  enum { LAST = 40, TURNS = 200 };
  uint64_t line[8 * TURNS] = {1, 2, 3, 4}, seen = 0; /* these arrived when the pool met the broker */
  size_t head = 0, tail = 4;
  setup(&stage, 1, LAST, 2);
  meet(&stage, 1);
  for (int i = 0; i < TURNS; i++) {
    seen |= UINT64_C(1) << line[head];
    stage.now_ms += 10;
    back_off(line[head++], 1);
    for (size_t j = 0; j < arrived(&stage); j++) {
      line[tail++] = arrived_worker(&stage, j);
    }
    assert_true(head < tail);
  }
  assert_int_equal(__builtin_popcountll(seen), LAST);
  cv_worker_free(stage.pool);
}

static void test_arrivals_keep_to_their_rate(void **state) {
  setup(&stage, 1, 100000, 2048);
  stage.config.arrival_rate = 50;
  meet(&stage, 1);
  size_t total = arrived(&stage);
  for (int i = 0; i < 1000; i++) {
    stage.now_ms += 10;
    flush(&stage);
    total += arrived(&stage);
    assert_in_range(total + 1, (size_t)(i + 1) / 2, (size_t)(i + 1) / 2 + 2);
  }
  /* a pause does not save up more than a second's worth */
  stage.now_ms += 3600000;
  flush(&stage);
  assert_in_range(arrived(&stage), 1, 50);
  cv_worker_free(stage.pool);
}

static void test_no_more_wait_than_twice_the_credit(void **state) {
  enum { CREDIT = 16, WORKERS = 1000 };
  uint64_t queue[WORKERS + 1];
  size_t head = 0, tail = 0, open = 0, place = 0;
  setup(&stage, 1, WORKERS, CREDIT);
  meet(&stage, 1);
  for (int turn = 0; turn < 500; turn++) {
    for (size_t i = 0; i < arrived(&stage); i++) {
      queue[tail++] = arrived_worker(&stage, i);
    }
    assert_in_range(tail - head, 0, 2 * CREDIT);
    assert_in_range(stage.sent.tokens, 0, CREDIT);
    struct cv_token sent[CREDIT];
    size_t tokens = stage.sent.tokens;
    for (size_t i = 0; i < tokens; i++) {
      sent[i] = *sent_token(&stage, i);
    }
    begin(&stage);
    for (size_t i = 0; i < tokens; i++, open--) {
      say_ack(&stage, &sent[i], CV_VERDICT_ACCEPTED, NULL);
    }
    for (; head < tail && open < CREDIT; open++) {
      (void)say_assign(&stage, queue[head++], 0, place++);
    }
    deliver(&stage);
  }
  assert_int_equal(figures(&stage).accepted, WORKERS);
  assert_true(cv_worker_is_done(stage.pool));
  cv_worker_free(stage.pool);
}

static void test_all_come_again_for_the_next_campaign(void **state) {
  uint64_t done = CAMPAIGN;
  setup(&stage, 1, 2, 4);
  meet(&stage, 1);
  assert_false(comes_back(&stage, 1, 0, CV_VERDICT_ACCEPTED, NULL));
  assert_false(comes_back(&stage, 2, 1, CV_VERDICT_ACCEPTED, NULL));
  begin(&stage);
  stage.frame.done = &done;
  stage.frame.dones = 1;
  deliver(&stage);
  assert_int_equal(arrived(&stage), 2);
  cv_worker_free(stage.pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_back_off),
      cmocka_unit_test(test_away_from_two_campaigns),
      cmocka_unit_test(test_a_second_campaign_beside_the_first),
      cmocka_unit_test(test_a_back_off_delays_no_other_worker),
      cmocka_unit_test(test_who_backs_off_again_and_again_leaves_room_for_others),
      cmocka_unit_test(test_arrivals_keep_to_their_rate),
      cmocka_unit_test(test_no_more_wait_than_twice_the_credit),
      cmocka_unit_test(test_all_come_again_for_the_next_campaign),
  };
  return cmocka_run_group_tests_name("arrival", tests, NULL, NULL);
}
