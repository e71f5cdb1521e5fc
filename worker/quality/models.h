/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the table of models, one a file, and the normal law that two of them share. */
#ifndef CV_QUALITY_MODELS_H
#define CV_QUALITY_MODELS_H

#include "worker/quality/quality.h"

extern const struct cv_quality_model cv_quality_bernoulli;
extern const struct cv_quality_model cv_quality_beta;
extern const struct cv_quality_model cv_quality_clipped_normal;
extern const struct cv_quality_model cv_quality_truncated_normal;

/* N(mean, spread^2) seen through the window [0,1]: how much lies below, inside and above, and spread times
 * (density at 0 minus density at 1) of the standardised law. Accurate for any spread > 0 and mean in [0,1]. */
struct cv_window {
  double below, inside, above;
  double shift;
};
struct cv_window cv_window_of(const struct cv_quality_item *item);

#endif
