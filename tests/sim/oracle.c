/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"
#include "tests/support/mechanism.h"
#include "thirdparty/policy/policy.h"

struct run {
  const struct scenario *scenario;
  struct oracle *oracle;
  struct cv_policy *policy;
  struct cv_mechanism *mechanism[SCENARIO_ARMS];
  uint64_t tokens[SCENARIO_ARMS], summed[SCENARIO_ARMS], all; /* collected, in the last release; of all arms */
  uint64_t paid_micro;
};

static void *room(void *array, size_t count, size_t *cap, size_t size) {
  if (count < *cap) {
    return array;
  }
  *cap = *cap == 0 ? 64 : *cap * 2;
  array = realloc(array, *cap * size);
  CV_REQUIRE(array != NULL);
  return array;
}

static void add_plan(struct oracle *oracle, uint64_t number, const struct cv_policy_step *step) {
  oracle->plan = room(oracle->plan, oracle->plans, &oracle->plans_cap, sizeof(*oracle->plan));
  struct cv_want *want = calloc(step->wants, sizeof(*want));
  CV_REQUIRE(want != NULL);
  memcpy(want, step->want, step->wants * sizeof(*want));
  oracle->plan[oracle->plans++] = (struct cv_plan){.number = number, .wants = (uint32_t)step->wants, .want = want};
}

static void collect(struct run *run, const struct cv_want *want, uint64_t plan) {
  struct oracle *oracle = run->oracle;
  struct cv_mechanism *mechanism = run->mechanism[want->arm];
  struct cv_rng_seeded noise;
  int64_t sum = 0;
  cv_rng_seeded_init(&noise, run->scenario->seed, CV_RNG_NOISE, want->arm, mechanism->releases + 1);
  cv_mechanism_draw(mechanism, &noise.rng);
  for (uint32_t i = 0; i < want->tokens; i++) {
    sum += world_value(run->scenario, want->arm, run->tokens[want->arm]++);
  }
  uint64_t *summed = &run->summed[want->arm];
  *summed = mechanism_tokens(&mechanism->law, mechanism->releases + 1, *summed, want->tokens, run->tokens[want->arm]);
  oracle->release = room(oracle->release, oracle->releases, &oracle->releases_cap, sizeof(*oracle->release));
  struct cv_release *release = &oracle->release[oracle->releases++];
  *release = (struct cv_release){.number = oracle->releases,
                                 .plan = plan,
                                 .arm = want->arm,
                                 .tokens = *summed,
                                 .noisy_sum = cv_mechanism_release(mechanism, sum)};
  cv_mechanism_noise(&mechanism->law, mechanism->releases, &release->noise);
  uint64_t spent = cv_mechanism_spent_micro(&mechanism->law, mechanism->releases);
  uint64_t local = run->scenario->applied.law.epsilon_micro;
  if (local != CV_EPSILON_NONE && (spent == 0 || local < spent)) {
    spent = local; /* alone, or the smaller guarantee */
  }
  oracle->spent_micro = spent > oracle->spent_micro ? spent : oracle->spent_micro;
  cv_policy_apply(run->policy, release);
}

/* One plan; false at the end. */
static bool next(struct run *run, struct cv_policy_step *step) {
  uint64_t number = run->oracle->plans + 1, asked = 0, price = 0;
  CV_REQUIRE(cv_policy_step(run->policy, number, step) == CV_OK);
  run->oracle->end = CV_END_COMPLETE;
  if (step->done) {
    return false;
  }
  for (size_t i = 0; i < step->wants; i++) {
    asked += step->want[i].tokens;
    price += step->want[i].tokens * run->scenario->cost_micro[step->want[i].arm];
  }
  run->oracle->end = CV_END_BUDGET;
  if (run->paid_micro + price > run->scenario->budget_micro) {
    return false;
  }
  run->oracle->end = CV_END_TOKENS;
  if (run->all + asked > run->scenario->tokens) {
    return false;
  }
  run->all += asked;
  run->paid_micro += price;
  add_plan(run->oracle, number, step);
  for (size_t i = 0; i < step->wants; i++) {
    collect(run, &run->oracle->plan[number - 1].want[i], number);
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
      mechanism_law(scenario->mechanism, scenario->epsilon_micro, scenario->tokens / scenario->tokens_per_round);
  scenario_spec(scenario, &spec);
  CV_REQUIRE(cv_policy_check(&spec.policy, &bad, &why) == CV_OK);
  CV_REQUIRE(cv_policy_new(&spec, seed, &run.policy) == CV_OK);
  for (uint32_t i = 0; i < scenario->arms; i++) {
    run.mechanism[i] = mechanism_new(&law);
  }
  while (next(&run, &step)) {
  }
  for (uint32_t i = 0; i < scenario->arms; i++) {
    cv_policy_standing(run.policy, i, &ret->standing[i]);
    cv_mechanism_free(run.mechanism[i]);
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
