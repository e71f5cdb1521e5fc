/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/phases.h"

#include <math.h>

struct logs {
  double score, noise; /* ln(8 n t^2/delta), and the level of the noise, ln(4 n t^2/delta) */
};

/* The number of the phase; before the first plan that of the first phase. */
static double phase_of(const struct cv_elimination *self) {
  return fmax(1, (double)self->phase);
}

static struct logs logs_of(const struct cv_elimination *self) {
  double t = phase_of(self), share = self->active * t * t / self->delta;
  return (struct logs){.score = log(8 * share), .noise = log(4 * share)};
}

/* The quantile of a release's noise, in D/epsilon: level * 1, bit by bit, for one Laplace of scale 1. */
static double quantile(const struct cv_elimination *self, const struct cv_tail *tail, double level) {
  return cv_tail_at(tail, cv_tail_use_of(self->brokers), level);
}

double cv_phases_plays(const struct cv_elimination *self) {
  struct logs logs = logs_of(self);
  const struct cv_tail expected = {.squares = self->brokers, .largest = 1, .count = self->brokers};
  double t = phase_of(self), slope = self->slope;
  double score = exp2(5 + 2 * t) * logs.score / (slope * slope);
  double noise = exp2(3 + t) * quantile(self, &expected, logs.noise) / (self->epsilon * slope);
  return ceil(fmax(score, noise));
}

uint32_t cv_phases_plays_asked(double plays) {
  return plays < UINT32_MAX ? (uint32_t)plays : UINT32_MAX;
}

double cv_phases_radius(const struct cv_elimination *self, const struct cv_tail *tail, double plays) {
  struct logs logs = logs_of(self);
  double noise = quantile(self, tail, logs.noise) / (self->epsilon * plays);
  double rounding = cv_tail_rounding(tail, cv_tail_use_of(self->brokers)) / plays;
  return (sqrt(logs.score / (2 * plays)) + noise + rounding) / self->slope;
}
