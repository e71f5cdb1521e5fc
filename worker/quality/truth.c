/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/truth.h"

#include <stdbool.h>

/* The best arm of class `from` or later; `arms` if there is none. Class 0 means not ranked and counts as the latest. */
static uint32_t best_from(const double *mean, uint32_t arms, const uint32_t *rank_class, uint32_t from) {
  uint32_t best = arms;
  for (uint32_t i = 0; i < arms; i++) {
    bool is_left = rank_class[i] == 0 || rank_class[i] >= from;
    if (is_left && (best == arms || mean[i] > mean[best])) {
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
    uint32_t best = best_from(mean, arms, ret_class, rank_class);
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
