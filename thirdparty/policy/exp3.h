/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adversarial bandits (Tossou and Dimitrakakis, "Achieving Privacy in the Adversarial Multi-Armed Bandit", 2017):
 *
 *   exp3         EXP3 (Auer et al. 2003; equation 2.1): p_i = (1-g) exp((g/K) G_i)/sum + g/K, G_i += gain/p_i when
 *                played. Needs a trusted third-party.
 *   dp-exp3-lap  Algorithm 1: the same on gains with Laplace noise of scale 1/epsilon, from the workers' privatizer
 *                `laplace` (local privacy: no party need be trusted). A noisy gain x outside [-b, b+1],
 *                b = ln T/epsilon (corollary 3.1), is ignored; any other is fed as (x+b)/(2b+1).
 *   exp3-tau     EXP3_tau (section 3.2): plays EXP3's arm for tau rounds and feeds their mean, with
 *                tau = (7 K ln K)^(-1/3) T^(1/3) rounded to the nearest, at least 1 (corollary 3.2). EXP3 then makes
 *                T/tau choices. The means are exact: it needs a trusted third-party.
 *
 * g = min{1, sqrt(K ln K/((e-1) n))} for n choices. Parameters of all three:
 *   gamma    g; 0 (the default): the formula above
 *   horizon  T, pulls after which the campaign is complete; 0 (the default): the campaign's limit of tokens
 * Parameter of exp3-tau: tau; 0 (the default): the formula above.
 *
 * One plan is one choice. The arm is drawn from the stream (campaign seed, plan number). Its probability follows from
 * the state, so a plan needs no state of its own until its release.
 */
#ifndef CV_THIRDPARTY_EXP3_H
#define CV_THIRDPARTY_EXP3_H

#include "common/base/rng.h"
#include "thirdparty/policy/policy.h"

/*
 * EXP3 in the log domain: the state has the exponents (g/K) G_i and their exponentials relative to a reference, which
 * follows the highest exponent so that no exponential overflows. An exponential that underflows counts as 0, an error
 * of less than 10^-300 in its probability, until its exponent catches up. One step costs one exponential and K
 * additions.
 */
struct cv_exp3 {
  uint32_t arms;
  uint32_t heaviest; /* arm of the highest exponent */
  bool leads;        /* that arm has more than 85 % of the weight */
  double gamma;
  double reference;
  double share;         /* g/K */
  double rest, stretch; /* 1 - gamma, and 1/(1 - gamma) */
  double total;         /* of the weights */
  double *exponent;     /* (g/K) G_i >= 0 */
  double *weight;       /* exp(exponent - reference) */
  double *sum;          /* of the weights up to an arm */
};

/* gamma in [0,1], choices > 0; gamma = 0: the formula above for n = choices. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_exp3_init(uint32_t arms, double gamma, double choices, struct cv_exp3 *ret);
void cv_exp3_fini(struct cv_exp3 *self);
double cv_exp3_probability(const struct cv_exp3 *self, uint32_t arm);
uint32_t cv_exp3_draw(const struct cv_exp3 *self, struct cv_rng *rng);
/* The arm was played and gave `gain` in [0,1]. */
void cv_exp3_gain(struct cv_exp3 *self, uint32_t arm, double gain);
void cv_exp3_save(const struct cv_exp3 *self, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_exp3_load(struct cv_exp3 *self, struct cv_reader *in);

#endif
