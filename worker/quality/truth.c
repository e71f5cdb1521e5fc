/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/truth.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether the arm, unless it has a class, counts for the best of this one. */
static bool takes_part(const struct cv_standing *standing, uint32_t rank_class) {
  return standing == NULL || standing->held == CV_HELD_NO || rank_class < standing->rank_class ||
         (rank_class == standing->rank_class && standing->held == CV_HELD_BOUNDARY);
}

/* The best arm of this class; `arms` if there is none. */
static uint32_t best_of(const double *mean, uint32_t arms, const struct cv_standing *standing, const uint32_t *of_arm,
                        uint32_t rank_class) {
  uint32_t best = arms;
  for (uint32_t i = 0; i < arms; i++) {
    bool is_left = of_arm[i] == 0 && takes_part(standing == NULL ? NULL : &standing[i], rank_class);
    if (is_left && (best == arms || mean[i] > mean[best])) {
      best = i;
    }
  }
  return best;
}

uint32_t cv_truth_classes_parked(const double *mean, uint32_t arms, double alpha, const struct cv_standing *standing,
                                 uint32_t *ret_class) {
  for (uint32_t i = 0; i < arms; i++) {
    ret_class[i] = 0;
  }
  for (uint32_t rank_class = 1;; rank_class++) {
    uint32_t best = best_of(mean, arms, standing, ret_class, rank_class);
    for (uint32_t i = 0; i < arms; i++) {
      if (ret_class[i] == 0 && (best == arms || mean[i] >= mean[best] - alpha - CV_TRUTH_SLACK)) {
        ret_class[i] = rank_class;
      }
    }
    if (best == arms) {
      return rank_class - 1;
    }
  }
}

uint32_t cv_truth_classes(const double *mean, uint32_t arms, double alpha, uint32_t *ret_class) {
  return cv_truth_classes_parked(mean, arms, alpha, NULL, ret_class);
}
