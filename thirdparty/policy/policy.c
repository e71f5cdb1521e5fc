/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/mechanisms.h"
#include "thirdparty/policy/parking.h"
#include "thirdparty/policy/ranking.h"
#include "thirdparty/policy/step.h"

void cv_policy_step_fini(struct cv_policy_step *step) {
  if (step == NULL) {
    return;
  }
  free(step->decision);
  free(step->want);
  *step = (struct cv_policy_step){0};
}

enum cv_err cv_policy_step_reserve(struct cv_policy_step *step, size_t decisions, size_t wants) {
  CV_TRY(CV_ARRAY_ROOM(step->decision, decisions, step->decisions_cap));
  return CV_ARRAY_ROOM(step->want, wants, step->wants_cap);
}

const struct cv_param_rule cv_policy_floor_rule = {
    .key = CV_RELEASE_TOKENS_KEY,
    .low = 1,
    .high = CV_PLAN_TOKENS_MAX,
    .whole = true,
    .fallback = 1,
    .help = "the fewest tokens of an item that a release sums; the broker raises it to its own limits.release_tokens"};

uint32_t cv_policy_round(const struct cv_spec *spec) {
  uint32_t round = (uint32_t)cv_params_number(&spec->policy.params, "tokens_per_round");
  uint32_t floor = cv_spec_release_tokens(spec);
  return round < floor ? floor : round;
}

/* The class's rules and that of the smallest release. */
static enum cv_err check_params(const struct cv_policy_class *class, struct cv_params *params,
                                const struct cv_param **ret_bad, struct cv_why *why) {
  struct cv_param_rule rules[CV_PARAMS_MAX];
  size_t n = class->rule_count;
  const bool is_said = cv_params_find(params, CV_RELEASE_TOKENS_KEY) != NULL;
  CV_REQUIRE(n < CV_COUNT(rules));
  if (n > 0) {
    memcpy(rules, class->rules, n * sizeof(rules[0]));
  }
  if (is_said) {
    rules[n++] = cv_policy_floor_rule;
  }
  return cv_params_check(params, rules, n, ret_bad, why);
}

enum cv_err cv_policy_check(struct cv_choice *choice, const struct cv_param **ret_bad, struct cv_why *why) {
  const struct cv_policy_class *class = cv_policy_find(choice->name);
  if (class == NULL) {
    *ret_bad = NULL;
    return cv_policy_unknown(choice->name, why);
  }
  return check_params(class, &choice->params, ret_bad, why);
}

/* How many brokers add noise. */
static uint32_t brokers_of(const struct cv_spec *spec) {
  return spec->brokers == 0 ? 1 : spec->brokers;
}

enum cv_err cv_policy_fits_brokers(const struct cv_policy_class *class, uint32_t brokers, struct cv_why *why) {
  return brokers == 1 || class->reads_noise
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "policy %s assumes the noise of one broker; expected one that reads which noise a release has",
                       class->name);
}

enum cv_err cv_policy_fits(const struct cv_spec *spec, struct cv_why *why) {
  const struct cv_policy_class *class = cv_policy_find(spec->policy.name);
  CV_REQUIRE(class != NULL);
  if (class->tell != NULL) {
    return cv_fail(
        why, CV_ERR_INVALID,
        "policy %s needs the true means, which only a simulation in one process has; expected another policy",
        class->name);
  }
  return cv_policy_fits_told(spec, why);
}

/* Whether the policy can ask for as many tokens as the smallest release has, and the campaign has that many. */
static enum cv_err fits_floor(const struct cv_policy_class *class, const struct cv_spec *spec, struct cv_why *why) {
  const uint32_t floor = cv_spec_release_tokens(spec);
  if (floor > 1 && !class->has_floor) {
    return cv_fail(why, CV_ERR_INVALID,
                   "policy %s asks for single tokens, and the smallest release has %u (limits.release_tokens of the "
                   "broker); expected 1, a privatizer that protects each token, or another policy",
                   class->name, floor);
  }
  return floor == 1 || floor <= spec->tokens
             ? CV_OK
             : cv_fail(
                   why, CV_ERR_INVALID,
                   "the campaign has a limit of %llu tokens, and the smallest release has %u (limits.release_tokens "
                   "of the broker); expected at least as many",
                   (unsigned long long)spec->tokens, floor);
}

enum cv_err cv_policy_fits_told(const struct cv_spec *spec, struct cv_why *why) {
  const struct cv_policy_class *class = cv_policy_find(spec->policy.name);
  CV_REQUIRE(class != NULL);
  if ((spec->cost_micro != NULL) != (class->kind == CV_POLICY_RECRUITMENT)) {
    return cv_fail(why, CV_ERR_INVALID,
                   class->kind == CV_POLICY_RECRUITMENT ? "policy %s needs workers with costs and a budget"
                                                        : "policy %s hires no workers; expected no costs and no budget",
                   class->name);
  }
  if (spec->edges > 0 && class->kind != CV_POLICY_GRAPH) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s uses no feedback graph; expected no edges", class->name);
  }
  CV_TRY(cv_policy_fits_brokers(class, brokers_of(spec), why));
  CV_TRY(fits_floor(class, spec, why));
  return class->fits == NULL ? CV_OK : class->fits(spec, why);
}

enum cv_err cv_policy_new(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  const struct cv_policy_class *class = cv_policy_find(spec->policy.name);
  CV_TRY(class == NULL ? CV_ERR_NOT_FOUND : cv_policy_fits_brokers(class, brokers_of(spec), NULL));
  CV_TRY(class->create(spec, seed, ret));
  cv_policy_expect(*ret, brokers_of(spec));
  return CV_OK;
}

void cv_policy_expect(struct cv_policy *policy, uint32_t brokers) {
  CV_REQUIRE(brokers >= 1 && brokers <= CV_BROKERS_MAX && (brokers == 1 || policy->class->reads_noise));
  if (policy->class->expect != NULL) {
    policy->class->expect(policy, brokers);
  }
}

void cv_policy_tell(struct cv_policy *policy, const double *mean) {
  if (policy->class->tell != NULL) {
    policy->class->tell(policy, mean);
  }
}

void cv_policy_free(struct cv_policy *policy) {
  if (policy != NULL) {
    policy->class->destroy(policy);
  }
}

void cv_policy_apply(struct cv_policy *policy, const struct cv_release *release) {
  policy->class->apply(policy, release);
}

bool cv_policy_exhaust(struct cv_policy *policy, uint32_t arm) {
  return policy->class->exhaust != NULL && policy->class->exhaust(policy, arm);
}

bool cv_policy_take(struct cv_policy *policy, const struct cv_release *release) {
  if (release->tokens > 0) {
    cv_policy_apply(policy, release);
  }
  return !release->last || cv_policy_exhaust(policy, release->arm);
}

enum cv_err cv_policy_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  step->done = false;
  step->decisions = 0;
  step->wants = 0;
  return policy->class->step(policy, plan, step);
}

void cv_policy_standing(const struct cv_policy *policy, uint32_t arm, struct cv_standing *ret) {
  policy->class->standing(policy, arm, ret);
  if (!policy->class->tells_noise) {
    ret->noise = (double)NAN;
  }
}

void cv_policy_count_lies(struct cv_policy *policy) {
  if (policy->class->ranking != NULL) {
    cv_ranking_count_lies(policy->class->ranking(policy));
  }
}

struct cv_policy_lies cv_policy_lies(struct cv_policy *policy, uint32_t arm) {
  return policy->class->ranking == NULL ? (struct cv_policy_lies){0}
                                        : cv_ranking_lies(policy->class->ranking(policy), arm);
}

void cv_policy_close(struct cv_policy *policy) {
  if (policy->class->ranking != NULL) {
    cv_ranking_close(policy->class->ranking(policy));
  }
}

double cv_policy_need(struct cv_policy *policy, uint32_t arm) {
  return policy->class->ranking == NULL ? (double)NAN : cv_parking_need(policy->class->ranking(policy), arm);
}

void cv_policy_save(const struct cv_policy *policy, struct cv_buf *out) {
  policy->class->save(policy, out);
}

enum cv_err cv_policy_load(struct cv_policy *policy, struct cv_reader *in) {
  return policy->class->load(policy, in);
}
