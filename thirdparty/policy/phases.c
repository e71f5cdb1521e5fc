/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/phases.h"

#include <math.h>

struct logs {
  double score, noise; /* ln(8 n t^2/delta), ln(4 n t^2/delta) */
};

/* The number of the phase; before the first plan that of the first phase. */
static double phase_of(const struct cv_elimination *self) {
  return fmax(1, (double)self->phase);
}

static struct logs logs_of(const struct cv_elimination *self) {
  double t = phase_of(self), share = self->active * t * t / self->delta;
  return (struct logs){.score = log(8 * share), .noise = log(4 * share)};
}

double cv_phases_plays(const struct cv_elimination *self) {
  struct logs logs = logs_of(self);
  double t = phase_of(self), slope = self->slope;
  double score = exp2(5 + 2 * t) * logs.score / (slope * slope);
  double noise = exp2(3 + t) * logs.noise / (self->epsilon * slope);
  return ceil(fmax(score, noise));
}

uint32_t cv_phases_plays_asked(double plays) {
  return plays < UINT32_MAX ? (uint32_t)plays : UINT32_MAX;
}

double cv_phases_radius(const struct cv_elimination *self, double plays) {
  struct logs logs = logs_of(self);
  return (sqrt(logs.score / (2 * plays)) + logs.noise / (self->epsilon * plays)) / self->slope;
}
