/* SPDX-License-Identifier: Apache-2.0 */
#include "common/campaign/accuracy.h"

#include <math.h>

uint32_t cv_accuracy_classes(uint32_t arms, double alpha) {
  return (uint32_t)(alpha > 0 ? fmin(fmax(ceil(1 / alpha - 1e-9), 1), UINT32_MAX) : arms);
}

double cv_accuracy_of_class(const uint32_t *truth, const struct cv_standing *standing, uint32_t arms,
                            uint32_t rank_class, bool *ret_is_filled) {
  uint32_t in_truth = 0, found = 0, both = 0;
  for (uint32_t i = 0; i < arms; i++) {
    in_truth += truth[i] == rank_class;
    bool is_found = standing[i].rank_class == rank_class && cv_standing_is_decided(&standing[i]);
    found += is_found;
    both += is_found && truth[i] == rank_class;
  }
  *ret_is_filled = in_truth + found > 0;
  return in_truth > 0 ? (double)both / in_truth : found == 0;
}

struct cv_accuracy cv_accuracy(const uint32_t *truth, const struct cv_standing *standing, uint32_t arms, double alpha) {
  struct cv_accuracy out = {.classes = cv_accuracy_classes(arms, alpha), .least = 1};
  double sum = 0;
  /* Classes beyond the number of arms are empty in both rankings. */
  for (uint32_t class = 1; class <= out.classes && class <= arms; class ++) {
    bool is_filled;
    double accuracy = cv_accuracy_of_class(truth, standing, arms, class, &is_filled);
    out.least = fmin(out.least, accuracy);
    /* Classes that are empty in both rankings agree; they count in `all` and not in `of_filled`. */
    if (is_filled) {
      out.filled++;
      sum += accuracy;
    }
  }
  out.all = (sum + out.classes - out.filled) / out.classes;
  out.of_filled = out.filled == 0 ? 1 : sum / out.filled;
  return out;
}
