/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/guess.h"

#include <math.h>

#include "worker/quality/quality.h"

void cv_guess_draw(const struct cv_guess *guess, uint64_t seed, uint32_t count, double *ret_means) {
  cv_quality_draw_instance(seed, guess->mean, guess->spread * guess->spread, count, ret_means);
  for (uint32_t i = 0; i < count; i++) {
    ret_means[i] = fmin(fmax(ret_means[i], CV_GUESS_LOW), CV_GUESS_HIGH);
  }
}
