/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/judge/effect.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>

#include "lab/judge/share.h"

static bool is_few(const struct cv_lab_pairs *pairs) {
  return pairs->differing < CV_LAB_DIFFERING_LEAST;
}

/* Half of Student's interval. */
static double half_width(const struct cv_lab_pairs *pairs, double tail) {
  return pairs->difference.se > 0 ? gsl_cdf_tdist_Qinv(tail, pairs->freedom) * pairs->difference.se : 0;
}

double cv_lab_effect_most(const struct cv_lab_pairs *pairs, double tail) {
  double most = fabs(pairs->difference.mean) + half_width(pairs, tail);
  if (!is_few(pairs)) {
    return most;
  }
  /* A mean over replicates of which a share s differs, each by at most the range, is at most s times the range. */
  double exact = cv_lab_share_most(pairs->differing, pairs->difference.n, tail) * pairs->range;
  return pairs->range > 0 ? fmax(most, exact) : (double)INFINITY;
}

double cv_lab_effect_replicates(const struct cv_lab_pairs *pairs, double tail, double smallest) {
  double n = (double)pairs->difference.n, room = smallest - fabs(pairs->difference.mean);
  if (room <= 0) {
    return (double)INFINITY;
  }
  /* The limit of a small share falls with the number of replicates, the standard error with its root; and Student's
   * interval needs enough replicates that differ. */
  double exact = is_few(pairs) ? n * cv_lab_effect_most(pairs, tail) / smallest : (double)INFINITY;
  double usual = n * fmax(pow(half_width(pairs, tail) / room, 2), CV_LAB_DIFFERING_LEAST / (double)pairs->differing);
  return fmin(exact, usual);
}
