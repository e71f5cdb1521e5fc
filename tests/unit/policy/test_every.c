/* SPDX-License-Identifier: Apache-2.0 */
/* What every policy of the table promises, whatever it decides: a new policy is tested, too. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "tests/support/play.h"

enum { ARMS = 6, STEPS = 40, SEED = 11 };

/* The same campaign twice: one policy lives through it, the other is saved, freed and loaded at every turn. */
struct pair {
  struct play play;
  struct cv_policy *steady, *moved;
  struct cv_policy_step steady_step, moved_step;
  uint64_t exhausts_at; /* the plan after which arm 0 has no more tokens, and the arms after it one by one; 0: never */
  uint32_t exhausted;   /* so many arms have none */
};

static void save(const struct cv_policy *policy, struct cv_buf *ret) {
  cv_policy_save(policy, ret);
  assert_true(cv_buf_ok(ret));
}

/* As in a restart: only the spec, the seed and what was stored. */
static void move(struct pair *pair) {
  struct cv_buf saved = {0}, again = {0}, steady = {0};
  save(pair->moved, &saved);
  save(pair->steady, &steady);
  cv_policy_free(pair->moved);
  assert_int_equal(cv_policy_new(&pair->play.spec, SEED, &pair->moved), CV_OK);
  cv_policy_expect(pair->moved, pair->play.brokers);
  struct cv_reader reader = cv_reader_over(saved.data, saved.len);
  assert_int_equal(cv_policy_load(pair->moved, &reader), CV_OK);
  save(pair->moved, &again);
  assert_int_equal(again.len, saved.len);
  assert_memory_equal(again.data, saved.data, saved.len);
  assert_int_equal(steady.len, saved.len);
  assert_memory_equal(steady.data, saved.data, saved.len);
  cv_buf_fini(&saved);
  cv_buf_fini(&again);
  cv_buf_fini(&steady);
}

static void compare_steps(const struct cv_policy_step *a, const struct cv_policy_step *b) {
  assert_int_equal(a->done, b->done);
  assert_int_equal(a->wants, b->wants);
  assert_int_equal(a->decisions, b->decisions);
  for (size_t i = 0; i < a->wants; i++) {
    assert_int_equal(a->want[i].arm, b->want[i].arm);
    assert_int_equal(a->want[i].tokens, b->want[i].tokens);
    assert_int_equal(a->want[i].opponent, b->want[i].opponent);
  }
  for (size_t i = 0; i < a->decisions; i++) {
    const struct cv_decision *x = &a->decision[i], *y = &b->decision[i];
    assert_true(x->kind == y->kind && x->arm == y->arm && x->rank_class == y->rank_class && x->tokens == y->tokens);
    assert_true(x->mean == y->mean && x->radius == y->radius && x->reference == y->reference);
  }
}

static void compare_standings(const struct pair *pair) {
  for (uint32_t arm = 0; arm < ARMS; arm++) {
    struct cv_standing a, b;
    cv_policy_standing(pair->steady, arm, &a);
    cv_policy_standing(pair->moved, arm, &b);
    assert_int_equal(a.arm, arm);
    assert_true(a.arm == b.arm && cv_standing_is_same(&a, &b) && cv_standing_is_plausible(&a, ARMS));
    assert_true(isfinite(a.mean) && isfinite(a.radius) && a.radius >= 0);
  }
}

/* No arm twice, none that does not exist; a plan asks for something unless it is the end. */
static void check_plan(const struct pair *pair) {
  const struct cv_policy_step *step = &pair->steady_step;
  bool named[ARMS] = {false};
  uint64_t asked = 0;
  assert_true(step->done || step->wants > 0);
  for (size_t i = 0; i < step->wants; i++) {
    assert_in_range(step->want[i].arm, pair->exhausted, ARMS - 1);
    assert_false(named[step->want[i].arm]);
    assert_true(cv_want_opponent_fits(&step->want[i], pair->play.spec.pairs, ARMS));
    named[step->want[i].arm] = true;
    asked += step->want[i].tokens;
    assert_true(step->want[i].tokens > 0 || pair->play.spec.edges > 0);
  }
  assert_true(step->done || asked > 0);
}

/* Every release of the plan has the smallest number of tokens at least, if the campaign has the plan's tokens. */
static void check_floor(const struct pair *pair) {
  const struct play *play = &pair->play;
  uint32_t plays[ARMS] = {0};
  uint64_t asked = 0;
  for (size_t i = 0; i < pair->steady_step.wants; i++) {
    plays[pair->steady_step.want[i].arm] = pair->steady_step.want[i].tokens;
    asked += pair->steady_step.want[i].tokens;
  }
  for (size_t i = 0; i < pair->steady_step.wants && play->played + asked <= play->spec.tokens; i++) {
    uint64_t shown = cv_neighbours_shown(&play->graph, plays, pair->steady_step.want[i].arm);
    if (shown < cv_spec_release_tokens(&play->spec)) {
      fail_msg("policy %s, mechanism %s: a release of %llu tokens, the smallest is %u", play->spec.policy.name,
               play->spec.mechanism.name, (unsigned long long)shown, cv_spec_release_tokens(&play->spec));
    }
  }
}

/* A state that is cut short or too long is refused. */
static void damage(const struct pair *pair) {
  struct cv_buf saved = {0};
  struct cv_policy *other;
  save(pair->steady, &saved);
  cv_buf_put_u8(&saved, 0);
  for (size_t n = 0; n <= saved.len; n++) {
    assert_int_equal(cv_policy_new(&pair->play.spec, SEED, &other), CV_OK);
    struct cv_reader reader = cv_reader_over(saved.data, n);
    assert_int_equal(cv_policy_load(other, &reader) == CV_OK, n == saved.len - 1);
    cv_policy_free(other);
  }
  cv_buf_fini(&saved);
}

/* One arm more has no further tokens. A policy that cannot go on without it says so, and stays as it was. */
static void exhaust_one(struct pair *pair, uint64_t plan) {
  if (pair->exhausts_at == 0 || plan < pair->exhausts_at || pair->exhausted == ARMS) {
    return;
  }
  bool goes_on = cv_policy_exhaust(pair->steady, pair->exhausted);
  assert_int_equal(cv_policy_exhaust(pair->moved, pair->exhausted), goes_on);
  assert_int_equal(goes_on, pair->steady->class->ranking != NULL);
  pair->exhausted += goes_on;
}

/* After a step every arm without tokens has its class, waits for its class to open, or is parked. */
static void check_exhausted(const struct pair *pair) {
  for (uint32_t arm = 0; arm < pair->exhausted; arm++) {
    struct cv_standing standing;
    cv_policy_standing(pair->steady, arm, &standing);
    assert_true(!pair->steady_step.done || standing.rank_class > 0);
  }
  assert_true(pair->exhausted < ARMS || pair->steady_step.done);
}

static void live(struct pair *pair) {
  struct cv_release release[ARMS];
  for (uint64_t plan = 1; plan <= STEPS && !pair->steady_step.done; plan++) {
    move(pair);
    assert_int_equal(cv_policy_step(pair->steady, plan, &pair->steady_step), CV_OK);
    assert_int_equal(cv_policy_step(pair->moved, plan, &pair->moved_step), CV_OK);
    compare_steps(&pair->steady_step, &pair->moved_step);
    check_plan(pair);
    check_floor(pair);
    check_exhausted(pair);
    play_plan(&pair->play, plan, &pair->steady_step, release);
    for (size_t i = 0; i < pair->steady_step.wants; i++) {
      move(pair);
      cv_policy_apply(pair->steady, &release[i]);
      cv_policy_apply(pair->moved, &release[i]);
    }
    exhaust_one(pair, plan);
    compare_standings(pair);
    if (plan <= 3 && pair->exhausts_at == 0) {
      damage(pair);
    }
  }
  move(pair);
  compare_standings(pair);
}

/* How many ways there are to run it. */
static uint32_t try_all_ways(const struct cv_policy_class *class, uint32_t brokers, uint64_t exhausts_at) {
  uint32_t ways = 0;
  for (size_t way = 0; way < PLAY_WAYS; way++) {
    struct pair pair = {.exhausts_at = exhausts_at};
    if (!play_init(&pair.play, class, way, ARMS, SEED)) {
      continue;
    }
    if (class->kind == CV_POLICY_RANKING && way % 2 == 0) {
      pair.play.spec.tokens = 20000; /* few: arms are parked on boundaries, too */
    }
    pair.play.brokers = brokers;
    pair.steady = play_policy(&pair.play, SEED);
    pair.moved = play_policy(&pair.play, SEED);
    live(&pair);
    cv_policy_free(pair.steady);
    cv_policy_free(pair.moved);
    cv_policy_step_fini(&pair.steady_step);
    cv_policy_step_fini(&pair.moved_step);
    play_fini(&pair.play);
    ways++;
  }
  return ways;
}

static void a_state_that_is_stored_goes_on_as_if_it_never_had_been(void **state) {
  (void)state;
  for (size_t p = 0; cv_policy_at(p) != NULL; p++) {
    if (try_all_ways(cv_policy_at(p), 1, 0) == 0) {
      fail_msg("no mechanism and privatizer that policy %s fits; add one to play.h", cv_policy_at(p)->name);
    }
  }
}

static void an_arm_without_further_tokens_is_never_asked_for_again(void **state) {
  (void)state;
  for (size_t p = 0; cv_policy_at(p) != NULL; p++) {
    (void)try_all_ways(cv_policy_at(p), 1, 1 + p % 4);
  }
}

static void likewise_with_the_noise_of_two_brokers(void **state) {
  (void)state;
  for (size_t p = 0; cv_policy_at(p) != NULL; p++) {
    const struct cv_policy_class *class = cv_policy_at(p);
    if (class->reads_noise) {
      assert_true(try_all_ways(class, 2, 0) > 0);
      (void)try_all_ways(class, 2, 1 + p % 4);
    }
  }
}

/* A policy that a campaign with noise can have, as every ranking is. */
static void those_that_cannot_read_noise_work_with_exact_sums_alone(void **state) {
  struct cv_why why = {.text = ""};
  (void)state;
  for (size_t p = 0; cv_policy_at(p) != NULL; p++) {
    const struct cv_policy_class *class = cv_policy_at(p);
    assert_int_equal(cv_policy_fits_brokers(class, 1, &why), CV_OK);
    assert_int_equal(cv_policy_fits_brokers(class, 2, &why) == CV_OK, class->reads_noise);
    assert_true(class->kind != CV_POLICY_RANKING || class->reads_noise);
    for (size_t way = 0; way < PLAY_WAYS && !class->reads_noise; way++) {
      struct play play;
      if (play_init(&play, class, way, ARMS, SEED)) {
        assert_string_equal(play.spec.mechanism.name, "none");
        play_fini(&play);
      }
    }
  }
  assert_int_equal(cv_policy_fits_brokers(cv_policy_find("aae"), 2, &why), CV_ERR_INVALID);
  assert_string_equal(why.text,
                      "policy aae assumes the noise of one broker; expected one that reads which noise a "
                      "release has");
}

/* With few tokens the last plan may have fewer left than it would ask for. */
static void play_with_floor(const struct cv_policy_class *class, size_t way, uint32_t floor, uint64_t tokens) {
  struct pair pair = {0};
  if (!play_init(&pair.play, class, way, ARMS, SEED)) {
    return;
  }
  pair.play.spec.tokens = tokens;
  assert_int_equal(cv_spec_raise_release_tokens(&pair.play.spec, floor), CV_OK);
  assert_int_equal(cv_policy_fits_told(&pair.play.spec, NULL) == CV_OK, class->has_floor && tokens >= floor);
  if (class->has_floor && tokens >= floor) {
    pair.steady = play_policy(&pair.play, SEED);
    pair.moved = play_policy(&pair.play, SEED);
    live(&pair);
    cv_policy_free(pair.steady);
    cv_policy_free(pair.moved);
  }
  cv_policy_step_fini(&pair.steady_step);
  cv_policy_step_fini(&pair.moved_step);
  play_fini(&pair.play);
}

static void no_plan_asks_for_less_than_the_smallest_release(void **state) {
  (void)state;
  for (size_t p = 0; cv_policy_at(p) != NULL; p++) {
    for (size_t way = 0; way < PLAY_WAYS; way++) {
      play_with_floor(cv_policy_at(p), way, 100, UINT64_C(1) << 40);
      play_with_floor(cv_policy_at(p), way, 7001, UINT64_C(1) << 40);
      play_with_floor(cv_policy_at(p), way, 97, 97 * 25 + 50);
      play_with_floor(cv_policy_at(p), way, 97, 96);
    }
  }
}

static void who_asks_for_single_tokens_says_which_limit_forbids_it(void **state) {
  struct play play;
  struct cv_why why = {.text = ""};
  (void)state;
  assert_true(play_init(&play, cv_policy_find("exp3"), 0, ARMS, SEED));
  assert_int_equal(cv_spec_raise_release_tokens(&play.spec, 100), CV_OK);
  assert_int_equal(cv_policy_fits(&play.spec, &why), CV_ERR_INVALID);
  assert_string_equal(why.text,
                      "policy exp3 asks for single tokens, and the smallest release has 100 "
                      "(limits.release_tokens of the broker); expected 1, a privatizer that protects each "
                      "token, or another policy");
  play_fini(&play);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_state_that_is_stored_goes_on_as_if_it_never_had_been),
      cmocka_unit_test(an_arm_without_further_tokens_is_never_asked_for_again),
      cmocka_unit_test(likewise_with_the_noise_of_two_brokers),
      cmocka_unit_test(no_plan_asks_for_less_than_the_smallest_release),
      cmocka_unit_test(who_asks_for_single_tokens_says_which_limit_forbids_it),
      cmocka_unit_test(those_that_cannot_read_noise_work_with_exact_sums_alone),
  };
  return cmocka_run_group_tests_name("every", tests, NULL, NULL);
}
