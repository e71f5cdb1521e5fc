/* SPDX-License-Identifier: Apache-2.0 */
/* A claim as it is written: which numbers are to be compared with which. claim.h says how one writes it. */
#ifndef CV_LAB_TERMS_H
#define CV_LAB_TERMS_H

#include "lab/experiment.h"

enum { CV_LAB_PAIRS_MAX = 256 };

enum cv_lab_relation {
  CV_LAB_LEAST,
  CV_LAB_MOST,
  CV_LAB_EQUALS,
  CV_LAB_BELOW,
  CV_LAB_ABOVE,
  CV_LAB_APPROACHES,
  CV_LAB_NEAR,
  CV_LAB_TREND,
  CV_LAB_GROWTH,
  CV_LAB_REASON,
};

struct cv_lab_terms {
  const char *says, *reason; /* the file's; reason only of CV_LAB_REASON */
  enum cv_lab_relation relation;
  size_t metric;
  size_t pairs; /* series and what they are compared with: themselves, where it is no other series */
  struct cv_lab_pair {
    size_t one, other;
  } pair[CV_LAB_PAIRS_MAX];
  double number, within, factor;
  bool rises;
  double (*growth)(double x);
  size_t points; /* in the order of x */
  size_t point[CV_LAB_POINTS_MAX];
};

/* One line with line and column. */
CV_MUST_USE enum cv_err cv_lab_terms_read(const struct cv_lab_experiment *experiment, const yaml_node_t *claim,
                                          struct cv_lab_terms *ret, struct cv_why *why);

#endif
