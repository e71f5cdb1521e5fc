/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/exp3.h"

#include <math.h>
#include <stdlib.h>

/* The reference moves when a weight exceeds e^300, so that a sum of 4096 weights is finite. Weights below e^-700 count
 * as 0: denormal doubles lose precision and are slow. */
static const double HIGHEST = 300, LOWEST = -700;
/* Limit of a stored exponent, above that of any run: each choice adds 1 at most. */
static const double EXPONENT_END = 1e15;

static void weigh(struct cv_exp3 *self, uint32_t arm, double exponent) {
  double relative = exponent - self->reference;
  self->heaviest = exponent > self->exponent[self->heaviest] ? arm : self->heaviest;
  self->exponent[arm] = exponent;
  self->weight[arm] = relative < LOWEST ? 0 : exp(relative);
}

/* Updates the prefix sums from `arm` on, whose weight has changed. */
static void add_up(struct cv_exp3 *self, uint32_t arm) {
  double sum = arm == 0 ? 0 : self->sum[arm - 1];
  for (; arm < self->arms; arm++) {
    sum += self->weight[arm];
    self->sum[arm] = sum;
  }
  self->total = sum;
  self->leads = self->weight[self->heaviest] > 0.85 * sum;
}

static void move_reference(struct cv_exp3 *self, double to) {
  self->reference = to;
  for (uint32_t i = 0; i < self->arms; i++) {
    weigh(self, i, self->exponent[i]);
  }
  add_up(self, 0);
}

enum cv_err cv_exp3_init(uint32_t arms, double gamma, double choices, struct cv_exp3 *ret) {
  double *exponent = calloc(3 * (size_t)arms, sizeof(*exponent));
  if (exponent == NULL) {
    return CV_ERR_NOMEM;
  }
  double tuned = sqrt(arms * log(arms) / ((M_E - 1) * choices));
  *ret = (struct cv_exp3){.arms = arms,
                          .gamma = gamma > 0 ? gamma : fmin(1, tuned),
                          .exponent = exponent,
                          .weight = exponent + arms,
                          .sum = exponent + 2 * (size_t)arms};
  ret->share = ret->gamma / arms;
  ret->rest = 1 - ret->gamma;
  ret->stretch = 1 / ret->rest;
  move_reference(ret, 0);
  return CV_OK;
}

void cv_exp3_fini(struct cv_exp3 *self) {
  free(self->exponent);
}

double cv_exp3_probability(const struct cv_exp3 *self, uint32_t arm) {
  return (1 - self->gamma) * self->weight[arm] / self->total + self->share;
}

/* The arm whose interval of the prefix sums contains `at`. A leading arm is tried first, a branch that the processor
 * predicts well; the others are searched four at a time without branches, since their order is unpredictable. */
static uint32_t arm_at(const struct cv_exp3 *self, double at) {
  const uint32_t last = self->arms - 1, guess = self->heaviest;
  const double *sum = self->sum;
  uint32_t arm = 0;
  if (self->leads && at < sum[guess] && (guess == 0 || at >= sum[guess - 1])) {
    return guess;
  }
  for (; arm + 4 <= last; arm += 4) {
    if (at < sum[arm + 3]) {
      return arm + (at >= sum[arm]) + (at >= sum[arm + 1]) + (at >= sum[arm + 2]);
    }
  }
  uint32_t past = 0;
  for (uint32_t i = arm; i < last; i++) {
    past += at >= sum[i];
  }
  return arm + past;
}

uint32_t cv_exp3_draw(const struct cv_exp3 *self, struct cv_rng *rng) {
  double at = cv_rng_unit(rng), left = (at - self->gamma) * self->stretch * self->total;
  if (at < self->gamma) {
    uint32_t arm = (uint32_t)(at / self->gamma * self->arms);
    /* Rounding may give an index just past the end. */
    return arm < self->arms ? arm : self->arms - 1;
  }
  return arm_at(self, left);
}

void cv_exp3_gain(struct cv_exp3 *self, uint32_t arm, double gain) {
  if (gain <= 0) {
    return;
  }
  /* (g/K) gain/p, with one division. */
  double scaled = self->rest * self->weight[arm] + self->share * self->total;
  double exponent = self->exponent[arm] + self->share * gain * self->total / scaled;
  if (exponent - self->reference > HIGHEST) {
    self->exponent[arm] = exponent;
    move_reference(self, exponent);
  } else {
    weigh(self, arm, exponent);
    add_up(self, arm);
  }
}

void cv_exp3_save(const struct cv_exp3 *self, struct cv_buf *out) {
  cv_buf_put_f64(out, self->reference);
  for (uint32_t i = 0; i < self->arms; i++) {
    cv_buf_put_f64(out, self->exponent[i]);
  }
}

enum cv_err cv_exp3_load(struct cv_exp3 *self, struct cv_reader *in) {
  double reference = cv_read_f64(in), highest = 0;
  for (uint32_t i = 0; i < self->arms; i++) {
    double exponent = cv_read_f64(in);
    if (!(exponent >= 0 && exponent < EXPONENT_END)) {
      return CV_ERR_DAMAGED;
    }
    self->exponent[i] = exponent;
    highest = fmax(highest, exponent);
  }
  /* A saved reference was the highest exponent once, and no exponent exceeds it by more than HIGHEST. */
  if (in->failed || !(reference >= 0 && reference <= highest && highest - reference <= HIGHEST)) {
    return CV_ERR_DAMAGED;
  }
  move_reference(self, reference);
  return CV_OK;
}
