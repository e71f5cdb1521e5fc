/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adversarial bandits (Tossou and Dimitrakakis, "Achieving Privacy in the Adversarial Multi-Armed Bandit", 2017):
 *
 *   exp3         EXP3 (Auer et al. 2003; equation 2.1): p_i = (1-g) exp((g/K) G_i)/sum + g/K, G_i += gain/p_i when
 *                played. Towards a trusted third-party only.
 *   dp-exp3-lap  Algorithm 1: the same on gains with Laplace noise of scale 1/epsilon, which is the workers' privatizer
 *                `laplace` (so it is local privacy, and nobody need be trusted). A noisy gain x outside [-b, b+1],
 *                b = ln T/epsilon (corollary 3.1), is ignored, any other is fed as (x+b)/(2b+1).
 *   exp3-tau     EXP3_tau (section 3.2): EXP3's arm is played for tau rounds and their mean fed, with
 *                tau = (7 K ln K)^(-1/3) T^(1/3) rounded to the nearest, at least 1 (corollary 3.2). EXP3 then makes
 *                T/tau choices. It sends exact means: towards a trusted third-party only.
 *
 * g = min{1, sqrt(K ln K/((e-1) n))} for n choices. Parameters of all three:
 *   gamma    g; 0 (the default): as above
 *   horizon  T, pulls after which the campaign is complete; 0 (the default): the campaign's limit of tokens
 * and of exp3-tau: tau, 0 (the default) as above.
 *
 * One plan is one choice. The arm is drawn from the stream (campaign seed, plan number); its probability follows from
 * the state, so nothing of a plan has to be remembered until its release.
 */
#ifndef CV_THIRDPARTY_EXP3_H
#define CV_THIRDPARTY_EXP3_H

#include "common/base/rng.h"
#include "thirdparty/policy/policy.h"

extern const struct cv_policy_class cv_policy_exp3;
extern const struct cv_policy_class cv_policy_dp_exp3_lap;
extern const struct cv_policy_class cv_policy_exp3_tau;

/*
 * The core, in the log domain: (g/K) G_i is kept as it is, and its exponential relative to a reference that follows the
 * highest from far below the end of a double's range. An exponential that is too small to be a double is 0, and is
 * there again once its arm has caught up: what is lost is a probability below 10^-300. One step costs one exponential
 * and K additions.
 */
struct cv_exp3 {
  uint32_t arms;
  uint32_t heaviest; /* arm of the highest exponent */
  bool leads;        /* which has 85 % of the weight or more */
  double gamma;
  double reference;
  double share;         /* g/K */
  double rest, stretch; /* 1 - gamma, and one over it */
  double total;         /* of the weights */
  double *exponent;     /* (g/K) G_i >= 0 */
  double *weight;       /* exp(exponent - reference) */
  double *sum;          /* of the weights up to an arm */
};

/* gamma in [0,1], `choices` > 0; gamma 0: the one above for so many choices. */
CV_MUST_USE enum cv_err cv_exp3_init(uint32_t arms, double gamma, double choices, struct cv_exp3 *ret);
void cv_exp3_fini(struct cv_exp3 *self);
double cv_exp3_probability(const struct cv_exp3 *self, uint32_t arm);
uint32_t cv_exp3_draw(const struct cv_exp3 *self, struct cv_rng *rng);
/* The arm was played and gave `gain` in [0,1]. */
void cv_exp3_gain(struct cv_exp3 *self, uint32_t arm, double gain);
void cv_exp3_save(const struct cv_exp3 *self, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_exp3_load(struct cv_exp3 *self, struct cv_reader *in);

#endif
