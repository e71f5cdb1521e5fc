/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the EXP3 policies (exp3.h), which differ in the pulls per choice and in the gain that a choice
 * feeds. */
#ifndef CV_THIRDPARTY_ADVERSARIAL_H
#define CV_THIRDPARTY_ADVERSARIAL_H

#include "thirdparty/policy/arms.h"
#include "thirdparty/policy/exp3.h"

struct cv_adversarial {
  struct cv_policy policy;
  struct cv_arms arms;
  struct cv_exp3 exp3;
  uint32_t tau; /* pulls per choice */
  double bound; /* b: gains outside [-b, b+1] are ignored */
};

#define CV_GAMMA_RULE \
  { .key = "gamma", .low = 0, .high = 1, .fallback = 0, .help = "how much is explored; 0: tuned to the horizon" }

/* For `fits`: exact gains, which need a trusted third-party. */
CV_MUST_USE enum cv_err cv_adversarial_fits_trusted(const struct cv_spec *spec, struct cv_why *why);
/* The tau of EXP3_tau by corollary 3.2 of Tossou and Dimitrakakis (2017): (7 K ln K)^(-1/3) T^(1/3), rounded, at least
 * 1. */
uint32_t cv_adversarial_usual_tau(double arms, double horizon);
/* `tau` = 0: cv_adversarial_usual_tau(). */
CV_MUST_USE enum cv_err cv_adversarial_create(const struct cv_policy_class *class, const struct cv_spec *spec,
                                              uint64_t seed, uint32_t tau, struct cv_policy **ret);
void cv_adversarial_destroy(struct cv_policy *policy);
void cv_adversarial_apply(struct cv_policy *policy, const struct cv_release *release);
CV_MUST_USE enum cv_err cv_adversarial_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step);
void cv_adversarial_standing(const struct cv_policy *policy, uint32_t arm, struct cv_standing *ret);
void cv_adversarial_save(const struct cv_policy *policy, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_adversarial_load(struct cv_policy *policy, struct cv_reader *in);

#define CV_ADVERSARIAL_CLASS                                                                                          \
  .kind = CV_POLICY_BANDIT, .destroy = cv_adversarial_destroy, .apply = cv_adversarial_apply,                         \
  .step = cv_adversarial_step, .standing = cv_adversarial_standing, .tells_noise = true, .save = cv_adversarial_save, \
  .load = cv_adversarial_load

#endif
