/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "tests/sim/shows.h"
#include "tests/sim/world.h"
#include "tests/support/mechanism.h"
#include "thirdparty/policy/policy.h"

struct run {
  const struct scenario *scenario;
  struct oracle *oracle;
  struct cv_policy *policy;
  struct cv_mechanism *mechanism[SCENARIO_ARMS],
      *other[SCENARIO_ARMS];                             /* the co-broker's, over sums of zero; or NULL */
  uint64_t plays[SCENARIO_ARMS], all;                    /* of each arm, of all */
  uint64_t tokens[SCENARIO_ARMS], summed[SCENARIO_ARMS]; /* shown of each arm, in its latest release */
  uint64_t paid_micro;
};

static struct cv_plan *add_plan(struct oracle *oracle, uint64_t number, const struct cv_policy_step *step) {
  CV_REQUIRE(CV_ARRAY_ROOM(oracle->plan, oracle->plans + 1, oracle->plans_cap) == CV_OK);
  struct cv_want *want = calloc(step->wants, sizeof(*want));
  CV_REQUIRE(want != NULL);
  memcpy(want, step->want, step->wants * sizeof(*want));
  struct cv_plan *plan = &oracle->plan[oracle->plans++];
  *plan = (struct cv_plan){.number = number, .wants = (uint32_t)step->wants, .want = want};
  return plan;
}

static uint64_t spent_on(const struct run *run, const struct cv_mechanism *mechanism) {
  uint64_t spent = cv_mechanism_spent_micro(&mechanism->law, mechanism->releases);
  const struct cv_local *local = &run->scenario->applied.law;
  if (spent == 0) {
    return local->epsilon_micro == CV_EPSILON_NONE ? 0 : local->epsilon_micro;
  }
  return local->pure_micro < spent ? local->pure_micro
                                   : spent; /* either covers it, the privatizer's if it has no delta */
}

/* The noise of the co-broker in the arm's next release; it doubles the noise that a release tells of. */
static int64_t add_other(struct cv_mechanism *other, uint64_t seed, struct cv_release *release) {
  struct cv_rng_seeded noise;
  cv_rng_seeded_init(&noise, seed, CV_RNG_NOISE_COBROKER, release->arm, other->releases + 1);
  cv_mechanism_draw(other, &noise.rng);
  for (uint32_t i = 0; i < release->noise.groups; i++) {
    release->noise.group[i].count *= 2;
  }
  return cv_mechanism_release(other, 0);
}

/* The scores of the arm that the plan shows; `first`: plays of each arm before the plan. */
static void collect(struct run *run, const struct cv_plan *plan, uint32_t arm, const uint64_t *first) {
  struct oracle *oracle = run->oracle;
  struct cv_mechanism *mechanism = run->mechanism[arm];
  struct cv_rng_seeded noise;
  cv_rng_seeded_init(&noise, run->scenario->seed, CV_RNG_NOISE, arm, mechanism->releases + 1);
  cv_mechanism_draw(mechanism, &noise.rng);
  uint64_t tokens = shows_tokens(run->scenario, plan, arm), *summed = &run->summed[arm];
  run->tokens[arm] += tokens;
  *summed = mechanism_tokens(&mechanism->law, mechanism->releases + 1, *summed, tokens, run->tokens[arm]);
  CV_REQUIRE(CV_ARRAY_ROOM(oracle->release, oracle->releases + 1, oracle->releases_cap) == CV_OK);
  struct cv_release *release = &oracle->release[oracle->releases++];
  *release =
      (struct cv_release){.number = oracle->releases,
                          .plan = plan->number,
                          .arm = arm,
                          .tokens = *summed,
                          .noisy_sum = cv_mechanism_release(mechanism, shows_sum(run->scenario, plan, first, arm))};
  cv_mechanism_noise(&mechanism->law, mechanism->releases, &release->noise);
  release->noisy_sum += run->other[arm] == NULL ? 0 : add_other(run->other[arm], run->scenario->seed, release);
  uint64_t spent = spent_on(run, mechanism);
  oracle->spent_micro = spent > oracle->spent_micro ? spent : oracle->spent_micro;
  cv_policy_apply(run->policy, release);
}

/* The reason for refusing a plan; CV_END_NONE if it is accepted. */
static enum cv_end refusal(const struct run *run, const struct cv_policy_step *step, uint64_t *ret_asked) {
  enum { MOST = 1 << 24 }; /* of an arm in a plan */
  uint64_t asked = 0, price = 0, left = run->scenario->tokens - run->all;
  const struct cv_plan plan = {.wants = (uint32_t)step->wants, .want = step->want};
  bool fits = true, is_spent = false;
  for (size_t i = 0; i < step->wants; i++) {
    asked += step->want[i].tokens;
    price += step->want[i].tokens * run->scenario->cost_micro[step->want[i].arm];
    uint64_t shown = shows_tokens(run->scenario, &plan, step->want[i].arm);
    fits = fits && step->want[i].tokens <= MOST && shown >= scenario_least(run->scenario);
    is_spent = is_spent || cv_mechanism_is_spent(run->mechanism[step->want[i].arm]);
  }
  *ret_asked = asked;
  if (!fits) {
    return asked > MOST && asked > left ? CV_END_TOKENS : CV_END_REFUSED;
  }
  if (is_spent) {
    return CV_END_LEDGER;
  }
  if (run->paid_micro + price > run->scenario->budget_micro) {
    return CV_END_BUDGET;
  }
  return asked > left ? CV_END_TOKENS : CV_END_NONE;
}

/* Runs one plan; false at the end. */
static bool next(struct run *run, struct cv_policy_step *step) {
  uint64_t number = run->oracle->plans + 1, first[SCENARIO_ARMS], asked;
  CV_REQUIRE(cv_policy_step(run->policy, number, step) == CV_OK);
  run->oracle->end = step->done ? CV_END_COMPLETE : refusal(run, step, &asked);
  if (run->oracle->end != CV_END_NONE) {
    return false;
  }
  const struct cv_plan *plan = add_plan(run->oracle, number, step);
  memcpy(first, run->plays, sizeof(first));
  for (uint32_t i = 0; i < plan->wants; i++) {
    const struct cv_want *want = &plan->want[i];
    run->plays[want->arm] += want->tokens;
    run->paid_micro += want->tokens * run->scenario->cost_micro[want->arm];
  }
  run->all += asked;
  for (uint32_t i = 0; i < plan->wants; i++) {
    collect(run, plan, plan->want[i].arm, first);
  }
  return true;
}

void oracle_ask(const struct scenario *scenario, uint64_t seed, struct oracle *ret) {
  struct cv_spec spec;
  const struct cv_param *bad;
  struct cv_why why;
  struct cv_policy_step step = {0};
  *ret = (struct oracle){.arms = scenario->arms};
  struct run run = {.scenario = scenario, .oracle = ret};
  const struct cv_mechanism_law law =
      mechanism_law(scenario->mechanism, scenario->epsilon_micro, scenario_releases(scenario));
  scenario_accepted(scenario, &spec);
  CV_REQUIRE(cv_policy_check(&spec.policy, &bad, &why) == CV_OK);
  CV_REQUIRE(cv_policy_new(&spec, seed, &run.policy) == CV_OK);
  for (uint32_t i = 0; i < scenario->arms; i++) {
    run.mechanism[i] = mechanism_new(&law);
    run.other[i] = scenario->two ? mechanism_new(&law) : NULL;
  }
  while (next(&run, &step)) {
  }
  cv_policy_close(run.policy);
  for (uint32_t i = 0; i < scenario->arms; i++) {
    cv_policy_standing(run.policy, i, &ret->standing[i]);
    cv_mechanism_free(run.mechanism[i]);
    cv_mechanism_free(run.other[i]);
  }
  cv_policy_step_fini(&step);
  cv_policy_free(run.policy);
}

void oracle_fini(struct oracle *oracle) {
  for (size_t i = 0; i < oracle->plans; i++) {
    free(oracle->plan[i].want);
  }
  free(oracle->plan);
  free(oracle->release);
}
