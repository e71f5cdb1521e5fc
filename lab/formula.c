/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/formula.h"

enum cv_err cv_lab_formula_value(const struct cv_lab_experiment *experiment, size_t series, size_t point, size_t metric,
                                 double *ret) {
  return CV_ERR_NOT_FOUND;
}
