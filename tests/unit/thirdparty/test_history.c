/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a campaign: what batches add to it, and that its size is bounded without a loss of the last values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "thirdparty/history.h"

static const struct cv_spec spec = {.name = "h",
                                    .arms = 3,
                                    .policy = {.name = "ppar"},
                                    .mechanism = {.name = "hybrid"},
                                    .privatizer = {.name = "none"},
                                    .epsilon_micro = 500000,
                                    .tokens_per_worker = 1,
                                    .tokens = 1 << 20};

/* What a step says about an arm. */
static struct cv_standing standing(uint32_t arm, uint64_t tokens, double mean, double noise) {
  return (struct cv_standing){.arm = arm, .tokens = tokens, .mean = mean, .radius = .25, .noise = noise};
}

/* The batch with the releases of plan `n` for all arms, and the plan after it; 0: the first. */
static struct cv_delta *batch(uint64_t n, double noise) {
  struct cv_want want[3];
  struct cv_delta *delta = calloc(1, sizeof(*delta));
  assert_non_null(delta);
  delta->created = n == 0;
  delta->has_state = true;
  delta->row = (struct cv_thirdparty_campaign_row){.plan = n + 1, .state_plan = n};
  for (uint32_t i = 0; i < 3; i++) {
    want[i] = (struct cv_want){.arm = i, .tokens = 10 * (i + 1)};
    const struct cv_standing now = standing(i, n * want[i].tokens, n == 0 ? .5 : .4 + 1 / (double)(n + i), noise);
    assert_int_equal(cv_delta_add_standing(delta, &now), CV_OK);
    const struct cv_release release = {.number = 3 * (n - 1) + i + 1,
                                       .plan = n,
                                       .arm = i,
                                       .tokens = n * want[i].tokens,
                                       .noise = {.groups = 1, .group = {{.scale = 2, .count = 3}}}};
    assert_true(n == 0 || cv_delta_add_release(delta, &release) == CV_OK);
  }
  const struct cv_plan plan = {.number = n + 1, .wants = 3, .want = want};
  assert_int_equal(cv_delta_add_plan(delta, &plan, false), CV_OK);
  const struct cv_stored_decision decision = {.number = n, .plan = n, .decision = {.kind = CV_DECISION_SETTLE}};
  assert_true(n == 0 || cv_delta_add_decision(delta, &decision) == CV_OK);
  return delta;
}

static struct cv_history *told(uint64_t steps, double noise, uint64_t now_ms) {
  struct cv_history *history;
  assert_int_equal(cv_history_new(&spec, &history), CV_OK);
  for (uint64_t n = 0; n < steps; n++) {
    struct cv_delta *delta = batch(n, noise);
    assert_int_equal(cv_history_take(history, delta, now_ms == CV_HISTORY_NO_TIME ? now_ms : now_ms + 7 * n), CV_OK);
    cv_delta_free(delta);
  }
  return history;
}

static void a_step_counts_tokens_releases_and_time(void **state) {
  struct cv_history *history = told(4, .1, 1000);
  assert_int_equal(history->steps, 4);
  for (uint64_t n = 0; n < 4; n++) {
    const struct cv_history_step *step = &history->step[n];
    assert_int_equal(step->number, n);
    assert_int_equal(step->at_ms, 7 * n);
    assert_int_equal(step->tokens, 60 * n);
    assert_int_equal(step->asked, 60 * (n + 1));
    assert_int_equal(step->releases, 3 * n);
    assert_int_equal(step->standings, 3);
    assert_int_equal(step->decisions, n > 0);
  }
  assert_ptr_equal(cv_history_after(history, false, 0), &history->step[0]);
  assert_ptr_equal(cv_history_after(history, true, 0), &history->step[1]);
  assert_null(cv_history_after(history, true, 3));
  cv_history_free(history);
}

static void a_stored_batch_has_no_time(void **state) {
  struct cv_history *history = told(2, .1, CV_HISTORY_NO_TIME);
  assert_true(history->step[0].at_ms == CV_HISTORY_NO_TIME && history->step[1].at_ms == CV_HISTORY_NO_TIME);
  cv_history_free(history);
}

/* Far more steps than fit: the first and the last stay, numbers ascend, no decision is lost. */
static void thinning_keeps_the_ends_and_all_decisions(void **state) {
  enum { STEPS = 3 * CV_HISTORY_STEPS_MAX };
  struct cv_history *history = told(STEPS, .1, 0);
  size_t decisions = 0;
  uint64_t next = 1;
  assert_true(history->steps <= CV_HISTORY_STEPS_MAX && history->steps > CV_HISTORY_STEPS_MAX / 4);
  assert_int_equal(history->every, 4);
  for (size_t i = 0; i < history->steps; i++) {
    const struct cv_history_step *step = &history->step[i];
    assert_true(i == 0 || step->number > history->step[i - 1].number);
    assert_int_equal(step->tokens, 60 * step->number);
    assert_int_equal(step->standing[2].tokens, 30 * step->number);
    for (uint32_t j = 0; j < step->decisions; j++) {
      assert_int_equal(step->decision[j].number, next++);
    }
    decisions += step->decisions;
  }
  assert_int_equal(decisions, STEPS - 1);
  assert_int_equal(history->step[0].number, 0);
  assert_int_equal(history->step[history->steps - 1].number, STEPS - 1);
  cv_history_free(history);
}

static void the_policys_own_noise_part_is_shown(void **state) {
  struct cv_history *history = told(2, .1, 0);
  assert_true(history->last[0].noise == .1);
  cv_history_free(history);
}

/* Three Laplace noises of scale 2/epsilon among 20 tokens: 2 * 3 * 4^2 of variance, next to 20/4 of the scores. */
static void else_the_radius_is_shared_by_variances(void **state) {
  struct cv_history *history = told(2, (double)NAN, 0);
  double share = 96. / (96 + 20 / 4.);
  assert_true(fabs(history->last[1].noise - .25 * share) < 1e-12);
  /* A class alone changes no interval: its parts stay, also if the policy has forgotten them. */
  struct cv_delta delta = {.has_state = true, .row = {.plan = 3, .state_plan = 2}};
  struct cv_standing settled = history->last[1];
  settled.rank_class = 2;
  settled.noise = (double)NAN;
  assert_int_equal(cv_delta_add_standing(&delta, &settled), CV_OK);
  double before = history->last[1].noise;
  assert_int_equal(cv_history_take(history, &delta, 9), CV_OK);
  assert_true(history->last[1].noise == before && history->last[1].rank_class == 2);
  free(delta.standing);
  cv_history_free(history);
}

/* A third-party that catches up stores two steps at once; the later standing of an arm counts. */
static void two_steps_in_one_batch_are_one(void **state) {
  struct cv_history *history = told(2, .1, 0);
  struct cv_delta delta = {.has_state = true, .row = {.plan = 5, .state_plan = 4}};
  const struct cv_standing rows[] = {standing(2, 40, .1, .1), standing(0, 20, .2, .1), standing(2, 60, .3, .1)};
  for (size_t i = 0; i < CV_COUNT(rows); i++) {
    assert_int_equal(cv_delta_add_standing(&delta, &rows[i]), CV_OK);
  }
  assert_int_equal(cv_history_take(history, &delta, 9), CV_OK);
  const struct cv_history_step *step = &history->step[history->steps - 1];
  assert_int_equal(step->standings, 2);
  assert_true(step->standing[0].arm == 0 && step->standing[1].arm == 2 && step->standing[1].mean == .3);
  free(delta.standing);
  cv_history_free(history);
}

static void an_end_changes_the_state(void **state) {
  struct cv_history *history = told(1, .1, 0);
  uint64_t before = history->state;
  struct cv_delta delta = {.row = {.plan = 1, .end = CV_END_CANCELLED, .note = "by a test"}};
  assert_int_equal(cv_history_take(history, &delta, 9), CV_OK);
  assert_int_equal(history->state, before + 1);
  assert_int_equal(cv_history_take(history, &delta, 9), CV_OK);
  assert_int_equal(history->state, before + 1);
  assert_int_equal(history->steps, 1);
  cv_history_free(history);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_step_counts_tokens_releases_and_time),
      cmocka_unit_test(a_stored_batch_has_no_time),
      cmocka_unit_test(thinning_keeps_the_ends_and_all_decisions),
      cmocka_unit_test(the_policys_own_noise_part_is_shown),
      cmocka_unit_test(else_the_radius_is_shared_by_variances),
      cmocka_unit_test(two_steps_in_one_batch_are_one),
      cmocka_unit_test(an_end_changes_the_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
