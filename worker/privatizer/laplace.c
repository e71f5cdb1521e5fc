/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The score plus discrete Laplace noise of scale CV_GRID/epsilon, clamped: the noisy gains of DP-EXP3-Lap (Tossou and
 * Dimitrakakis, "Achieving Privacy in the Adversarial Multi-Armed Bandit", 2017), drawn at the worker. Scores differ by
 * CV_GRID at most, so one token is epsilon-differentially private for its score; clamping is post-processing.
 */
#include "worker/privatizer/classes.h"

static int64_t apply(const struct cv_privatizer *self, uint32_t arm, int64_t score, struct cv_rng *rng) {
  int64_t value = score + cv_dlaplace_draw(&self->noise, rng); /* the noise stays below 2^51 */
  return value < self->law.low ? self->law.low : value > self->law.high ? self->law.high : value;
}

const struct cv_privatizer_class cv_privatizer_laplace = {
    .kind = CV_LOCAL_LAPLACE,
    .guarantee = "epsilon-local differential privacy of each score",
    .apply = apply,
};
