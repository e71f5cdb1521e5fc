/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follow the regularized leader with the 1/2-Tsallis entropy (Zimmert and Seldin, "Tsallis-INF: An Optimal Algorithm
 * for Stochastic and Adversarial Bandits", 2021) on losses that may be negative, because they have noise. For loss
 * estimates L_i and a rate r the weights are
 *
 *   w = argmin over the simplex of sum of w_i L_i - (2/r) sum of sqrt(w_i),  so  w_i = 1/(r (L_i - x))^2
 *
 * with the x below all L_i at which they sum to 1. An arm is played with probability p_i = max(w_i, f)/sum over j of
 * max(w_j, f). Its estimate grows by loss/p_i, the others by 0: unbiased.
 *
 * The regret analysis needs |r sqrt(w_i) loss/p_i| <= 1/2, which a negative loss of an arm of small weight would
 * violate. For losses in [-b, b] the floor f is the least that ensures it, f = (2 r b)^2 (1 + K f)^2. It exists for
 * r <= 1/(4 b sqrt K).
 */
#ifndef CV_THIRDPARTY_TSALLIS_H
#define CV_THIRDPARTY_TSALLIS_H

#include "common/base/buf.h"
#include "common/base/rng.h"

struct cv_tsallis {
  uint32_t arms;
  double *loss;   /* L_i */
  double *weight; /* w_i */
  double *chance; /* p_i */
};

/* arms > 0. All estimates are 0 and all chances equal. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_tsallis_init(uint32_t arms, struct cv_tsallis *ret);
void cv_tsallis_fini(struct cv_tsallis *self);
/* Computes weights and chances, bound > 0, 0 < rate <= 1/(4 bound sqrt(arms)). */
void cv_tsallis_weigh(struct cv_tsallis *self, double rate, double bound);
uint32_t cv_tsallis_draw(const struct cv_tsallis *self, struct cv_rng *rng);
/* The arm was played with its present chance, and lost `loss`. The weights stay until the next cv_tsallis_weigh(). */
void cv_tsallis_lose(struct cv_tsallis *self, uint32_t arm, double loss);
/* The estimates; weights and chances must be computed again after a load. CV_ERR_DAMAGED. */
void cv_tsallis_save(const struct cv_tsallis *self, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_tsallis_load(struct cv_tsallis *self, struct cv_reader *in);

#endif
