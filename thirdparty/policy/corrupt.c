/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/corrupt.h"

#include <math.h>
#include <stdlib.h>

#include "thirdparty/policy/step.h"

enum { STATE_VERSION = 1 };

const struct cv_param_rule cv_corrupt_rules[] = {
    {.key = "tokens_per_round",
     .low = 1,
     .high = CV_PLAN_TOKENS_MAX,
     .whole = true,
     .fallback = 1,
     .help = "pulls of the chosen arm before the next choice"},
    CV_PULLS_RULE,
};
_Static_assert(CV_COUNT(cv_corrupt_rules) == CV_CORRUPT_RULES, "the rules of the corrupt bandits");

static struct cv_corrupt *of(struct cv_policy *policy) {
  return (struct cv_corrupt *)policy;
}

enum cv_err cv_corrupt_fits(const struct cv_spec *spec, struct cv_why *why) {
  return cv_arms_fit(spec, 1U << CV_LOCAL_RESPONSE | 1U << CV_LOCAL_NONE, why);
}

/* What is remembered of the arms' indices. */
static enum cv_err init_indices(struct cv_corrupt *self) {
  if (self->law.bonus != NULL) {
    return cv_kl_index_init(self->law.bonus, self->arms.arms, &self->kl);
  }
  if (self->law.index == NULL) {
    return CV_OK;
  }
  self->index = calloc(self->arms.arms, sizeof(*self->index));
  return self->index == NULL ? CV_ERR_NOMEM : CV_OK;
}

enum cv_err cv_corrupt_create(const struct cv_policy_class *class, const struct cv_corrupt_law *law,
                              const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct cv_corrupt *self = calloc(1, sizeof(*self));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  self->policy.class = class;
  self->law = *law;
  enum cv_err err = cv_arms_init(spec, seed, &self->arms);
  self->tokens_per_round = cv_policy_round(spec);
  err = err == CV_OK ? init_indices(self) : err;
  if (err != CV_OK) {
    cv_corrupt_destroy(&self->policy);
    return err;
  }
  *ret = &self->policy;
  return CV_OK;
}

void cv_corrupt_destroy(struct cv_policy *policy) {
  struct cv_corrupt *self = of(policy);
  cv_arms_fini(&self->arms);
  cv_kl_index_fini(&self->kl);
  free(self->index);
  free(self);
}

/* Computes the index that depends on an arm's sums alone. */
static void update_index(struct cv_corrupt *self, uint32_t arm) {
  if (self->law.index != NULL && self->arms.arm[arm].tokens > 0) {
    self->index[arm] = self->law.index(&self->arms, arm);
  }
}

void cv_corrupt_apply(struct cv_policy *policy, const struct cv_release *release) {
  struct cv_corrupt *self = of(policy);
  double sum;
  if (cv_arms_apply(&self->arms, release, &sum) > 0) {
    update_index(self, release->arm);
  }
}

/* Asks for the first pulls of every arm that has none, up to the horizon. False if every arm has been pulled. */
static bool want_first(const struct cv_corrupt *self, struct cv_policy_step *step) {
  uint64_t left = cv_arms_left(&self->arms);
  for (uint32_t i = 0; i < self->arms.arms && left >= self->arms.floor; i++) {
    if (self->arms.arm[i].tokens == 0) {
      uint32_t tokens = self->tokens_per_round < left ? self->tokens_per_round : (uint32_t)left;
      step->want[step->wants++] = (struct cv_want){.arm = i, .tokens = tokens};
      left -= tokens;
    }
  }
  return step->wants > 0;
}

static double index_of(struct cv_corrupt *self, uint32_t i, struct cv_rng *rng) {
  if (self->law.index != NULL) {
    return self->index[i];
  }
  if (self->law.bonus != NULL) {
    return cv_kl_index_of(&self->kl, &self->arms, i);
  }
  return cv_feedback_score(self->arms.arm[i].feedback, self->law.draw(&self->arms, i, rng));
}

/* The arm with the highest index, with random indices and random ties from the plan's stream. */
static uint32_t drawn_best(struct cv_corrupt *self, uint64_t plan) {
  struct cv_rng_seeded rng;
  struct cv_highest highest = {0};
  cv_arms_stream(&self->arms, plan, &rng);
  for (uint32_t i = 0; i < self->arms.arms; i++) {
    cv_highest_offer(&highest, i, index_of(self, i, &rng.rng), &rng.rng);
  }
  return highest.arm;
}

/* Sets *ret_arm to an arm with the highest index; false if several arms tie. */
static bool remembered_best(const struct cv_corrupt *self, uint32_t *ret_arm) {
  uint32_t best = 0, ties = 1;
  for (uint32_t i = 1; i < self->arms.arms; i++) {
    ties = self->index[i] > self->index[best] ? 1 : ties + (self->index[i] == self->index[best]);
    best = self->index[i] > self->index[best] ? i : best;
  }
  *ret_arm = best;
  return ties == 1;
}

/* Only random indices and ties need the plan's stream. */
static uint32_t best_of(struct cv_corrupt *self, uint64_t plan) {
  uint32_t best;
  bool single = self->law.index != NULL   ? remembered_best(self, &best)
                : self->law.bonus != NULL ? cv_kl_index_best(&self->kl, &self->arms, &best)
                                          : false;
  return single ? best : drawn_best(self, plan);
}

enum cv_err cv_corrupt_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  struct cv_corrupt *self = of(policy);
  CV_TRY(cv_policy_step_reserve(step, 0, self->arms.arms));
  step->done = cv_arms_left(&self->arms) == 0;
  if (step->done || want_first(self, step)) {
    return CV_OK;
  }
  cv_arms_want(&self->arms, best_of(self, plan), self->tokens_per_round, step);
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
  struct cv_corrupt *self = of(policy);
  CV_TRY(cv_arms_load(&self->arms, in));
  for (uint32_t i = 0; i < self->arms.arms; i++) {
    update_index(self, i);
  }
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}
