/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/adversarial.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/grid.h"
#include "thirdparty/policy/step.h"

enum { STATE_VERSION = 1, TAU_MAX = 1 << 24 };

static struct cv_adversarial *of(struct cv_policy *policy) {
  return (struct cv_adversarial *)policy;
}

enum cv_err cv_adversarial_fits_trusted(const struct cv_spec *spec, struct cv_why *why) {
  CV_TRY(cv_arms_fit(spec, 1U << CV_LOCAL_NONE, why));
  return spec->thirdparty_trusted
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "policy %s receives exact gains; expected third_party: trusted",
                       spec->policy.name);
}

uint32_t cv_adversarial_usual_tau(double arms, double horizon) {
  double tau = arms > 1 ? round(cbrt(horizon / (7 * arms * log(arms)))) : 1;
  return tau < 1 ? 1 : tau > TAU_MAX ? TAU_MAX : (uint32_t)tau;
}

enum cv_err cv_adversarial_create(const struct cv_policy_class *class, const struct cv_spec *spec, uint64_t seed,
                                  uint32_t tau, struct cv_policy **ret) {
  struct cv_adversarial *self = calloc(1, sizeof(*self));
  enum cv_err err = self == NULL ? CV_ERR_NOMEM : cv_arms_init(spec, seed, &self->arms);
  if (err == CV_OK) {
    double horizon = (double)self->arms.horizon;
    self->tau = tau > 0 ? tau : cv_adversarial_usual_tau(spec->arms, horizon);
    self->tau = self->tau < self->arms.floor ? self->arms.floor : self->tau;
    self->bound = self->arms.law.kind == CV_LOCAL_LAPLACE
                      ? log(horizon) * (double)CV_MICRO / (double)self->arms.law.epsilon_micro
                      : 0;
    err = cv_exp3_init(spec->arms, cv_params_number(&spec->policy.params, "gamma"), horizon / self->tau, &self->exp3);
    if (err != CV_OK) {
      cv_arms_fini(&self->arms);
    }
  }
  if (err != CV_OK) {
    free(self);
    return err;
  }
  self->policy.class = class;
  *ret = &self->policy;
  return CV_OK;
}

void cv_adversarial_destroy(struct cv_policy *policy) {
  struct cv_adversarial *self = of(policy);
  cv_arms_fini(&self->arms);
  cv_exp3_fini(&self->exp3);
  free(self);
}

void cv_adversarial_apply(struct cv_policy *policy, const struct cv_release *release) {
  struct cv_adversarial *self = of(policy);
  double sum;
  uint64_t fresh = cv_arms_apply(&self->arms, release, &sum);
  /* Usually fresh is 1, and the division would dominate the cost of this function. */
  double mean = fresh == 1 ? sum : sum / (double)fresh;
  double gain = self->bound == 0 ? mean : (mean + self->bound) / (2 * self->bound + 1);
  if (fresh > 0 && gain >= 0 && gain <= 1) {
    cv_exp3_gain(&self->exp3, release->arm, gain);
  }
}

enum cv_err cv_adversarial_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  struct cv_adversarial *self = of(policy);
  CV_TRY(cv_policy_step_reserve(step, 0, 1));
  step->done = cv_arms_left(&self->arms) == 0;
  if (!step->done) {
    struct cv_rng_seeded rng;
    cv_arms_stream(&self->arms, plan, &rng);
    cv_arms_want(&self->arms, cv_exp3_draw(&self->exp3, &rng.rng), self->tau, step);
  }
  return CV_OK;
}

void cv_adversarial_standing(const struct cv_policy *policy, uint32_t arm, struct cv_standing *ret) {
  cv_arms_standing(&((const struct cv_adversarial *)policy)->arms, arm, ret);
}

void cv_adversarial_save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct cv_adversarial *self = (const struct cv_adversarial *)policy;
  cv_buf_put_u8(out, STATE_VERSION);
  cv_arms_save(&self->arms, out);
  cv_exp3_save(&self->exp3, out);
}

enum cv_err cv_adversarial_load(struct cv_policy *policy, struct cv_reader *in) {
  struct cv_adversarial *self = of(policy);
  if (cv_read_u8(in) != STATE_VERSION) {
    return CV_ERR_VERSION;
  }
  CV_TRY(cv_arms_load(&self->arms, in));
  CV_TRY(cv_exp3_load(&self->exp3, in));
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}
