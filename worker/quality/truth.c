/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/truth.h"

#include <stddef.h>

/* The best arm without a class; `arms` if there is none. */
static uint32_t best_of(const double *mean, uint32_t arms, const uint32_t *of_arm) {
  uint32_t best = arms;
  for (uint32_t i = 0; i < arms; i++) {
    if (of_arm[i] == 0 && (best == arms || mean[i] > mean[best])) {
      best = i;
    }
  }
  return best;
}

uint32_t cv_truth_classes(const double *mean, uint32_t arms, double alpha, uint32_t *ret_class) {
  for (uint32_t i = 0; i < arms; i++) {
    ret_class[i] = 0;
  }
  for (uint32_t rank_class = 1;; rank_class++) {
    uint32_t best = best_of(mean, arms, ret_class);
    if (best == arms) {
      return rank_class - 1;
    }
    for (uint32_t i = 0; i < arms; i++) {
      if (ret_class[i] == 0 && mean[i] >= mean[best] - alpha - CV_TRUTH_SLACK) {
        ret_class[i] = rank_class;
      }
    }
  }
}
