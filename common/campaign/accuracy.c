/* SPDX-License-Identifier: Apache-2.0 */
#include "common/campaign/accuracy.h"

#include <math.h>

struct cv_accuracy cv_accuracy(const uint32_t *truth, const struct cv_standing *standing, uint32_t arms, double alpha) {
  double possible = alpha > 0 ? fmin(fmax(ceil(1 / alpha - 1e-9), 1), UINT32_MAX) : arms;
  struct cv_accuracy out = {.classes = (uint32_t)possible};
  double sum = 0;
  /* Classes beyond the number of arms are empty in both rankings. */
  for (uint32_t class = 1; class <= out.classes && class <= arms; class ++) {
    uint32_t in_truth = 0, found = 0, both = 0;
    for (uint32_t i = 0; i < arms; i++) {
      in_truth += truth[i] == class;
      found += standing[i].rank_class == class;
      both += truth[i] == class && standing[i].rank_class == class;
    }
    /* Classes that are empty in both rankings agree; they count in `all` and not in `of_filled`. */
    if (in_truth + found > 0) {
      out.filled++;
      sum += in_truth == 0 ? 0 : (double)both / in_truth;
    }
  }
  out.all = (sum + out.classes - out.filled) / possible;
  out.of_filled = out.filled == 0 ? 1 : sum / out.filled;
  return out;
}
