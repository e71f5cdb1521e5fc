/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/corrupt.h"

#include <math.h>
#include <stdlib.h>

#include "thirdparty/policy/step.h"

enum { STATE_VERSION = 1 };

const struct cv_param_rule cv_corrupt_rules[] = {
    {.key = "tokens_per_round", .low = 1, .high = CV_PLAN_TOKENS_MAX, .whole = true, .fallback = 1},
    CV_PULLS_RULE,
};
_Static_assert(CV_COUNT(cv_corrupt_rules) == CV_CORRUPT_RULES, "the rules of the corrupt bandits");

static struct cv_corrupt *of(struct cv_policy *policy) {
  return (struct cv_corrupt *)policy;
}

enum cv_err cv_corrupt_fits(const struct cv_spec *spec, struct cv_why *why) {
  return cv_arms_fit(spec, 1U << CV_LOCAL_RESPONSE | 1U << CV_LOCAL_NONE, why);
}

enum cv_err cv_corrupt_create(const struct cv_policy_class *class, const struct cv_corrupt_law *law,
                              const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct cv_corrupt *self = calloc(1, sizeof(*self));
  enum cv_err err = self == NULL ? CV_ERR_NOMEM : cv_arms_init(spec, seed, &self->arms);
  if (err == CV_OK && law->index == NULL) {
    err = cv_kl_index_init(law->bonus, law->of_time, law->clipped, spec->arms, &self->kl);
    if (err != CV_OK) {
      cv_arms_fini(&self->arms);
    }
  }
  if (err != CV_OK) {
    free(self);
    return err;
  }
  self->policy.class = class;
  self->tokens_per_round = (uint32_t)cv_params_number(&spec->policy.params, "tokens_per_round");
  self->index = law->index;
  *ret = &self->policy;
  return CV_OK;
}

void cv_corrupt_destroy(struct cv_policy *policy) {
  struct cv_corrupt *self = of(policy);
  cv_arms_fini(&self->arms);
  cv_kl_index_fini(&self->kl);
  free(self);
}

void cv_corrupt_apply(struct cv_policy *policy, const struct cv_release *release) {
  double sum;
  (void)cv_arms_apply(&of(policy)->arms, release, &sum);
}

/* Asks for the first pulls of every arm that has none, up to the horizon. False if every arm has been pulled. */
static bool want_first(const struct cv_corrupt *self, struct cv_policy_step *step) {
  uint64_t left = cv_arms_left(&self->arms);
  for (uint32_t i = 0; i < self->arms.arms && left > 0; i++) {
    if (self->arms.arm[i].tokens == 0) {
      uint32_t tokens = self->tokens_per_round < left ? self->tokens_per_round : (uint32_t)left;
      step->want[step->wants++] = (struct cv_want){.arm = i, .tokens = tokens};
      left -= tokens;
    }
  }
  return step->wants > 0;
}

/* The arm with the highest index, with random indices and random ties from the plan's stream. */
static uint32_t drawn_best(struct cv_corrupt *self, uint64_t plan) {
  struct cv_rng_seeded rng;
  struct cv_highest highest = {0};
  cv_arms_stream(&self->arms, plan, &rng);
  for (uint32_t i = 0; i < self->arms.arms; i++) {
    struct cv_feedback feedback = self->arms.arm[i].feedback;
    double index = self->index == NULL ? cv_kl_index_of(&self->kl, &self->arms, i)
                                       : (self->index(&self->arms, i, &rng.rng) - feedback.offset) / feedback.slope;
    cv_highest_offer(&highest, i, index, &rng.rng);
  }
  return highest.arm;
}

enum cv_err cv_corrupt_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  struct cv_corrupt *self = of(policy);
  CV_TRY(cv_policy_step_reserve(step, 0, self->arms.arms));
  step->done = cv_arms_left(&self->arms) == 0;
  if (step->done || want_first(self, step)) {
    return CV_OK;
  }
  /* KL indices are deterministic; only ties need the plan's stream. */
  uint32_t best;
  if (self->index != NULL || !cv_kl_index_best(&self->kl, &self->arms, &best)) {
    best = drawn_best(self, plan);
  }
  cv_arms_want(&self->arms, best, self->tokens_per_round, step);
  return CV_OK;
}

void cv_corrupt_standing(const struct cv_policy *policy, uint32_t arm, struct cv_standing *ret) {
  cv_arms_standing(&((const struct cv_corrupt *)policy)->arms, arm, ret);
}

void cv_corrupt_save(const struct cv_policy *policy, struct cv_buf *out) {
  cv_buf_put_u8(out, STATE_VERSION);
  cv_arms_save(&((const struct cv_corrupt *)policy)->arms, out);
}

enum cv_err cv_corrupt_load(struct cv_policy *policy, struct cv_reader *in) {
  if (cv_read_u8(in) != STATE_VERSION) {
    return CV_ERR_VERSION;
  }
  CV_TRY(cv_arms_load(&of(policy)->arms, in));
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}
