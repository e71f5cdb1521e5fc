/* SPDX-License-Identifier: Apache-2.0 */
/* The models of the rows of common/config/rewards.h, and the normal law that two of them share. */
#ifndef CV_QUALITY_MODELS_H
#define CV_QUALITY_MODELS_H

#include "common/config/rewards.h"
#include "worker/quality/quality.h"

/* cv_quality_bernoulli, ... */
#define CV_QUALITY_DECLARED(file, ...) extern const struct cv_quality_model cv_quality_##file;
CV_REWARD_LAWS(CV_QUALITY_DECLARED)
#undef CV_QUALITY_DECLARED

/* N(mean, spread^2) and the window [0,1]: the probabilities below, inside and above it, and `shift`, spread times
 * (density at 0 minus density at 1) of the standardised law. Accurate for any spread > 0 and mean in [0,1]. */
struct cv_window {
  double below, inside, above;
  double shift;
};
struct cv_window cv_window_of(const struct cv_quality_item *item);

#endif
