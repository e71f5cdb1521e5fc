/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/tsallis.h"

#include <math.h>
#include <stdlib.h>

/* Newton's method needs about five steps; this many if rounding keeps it from standing still. */
enum { STEPS_MAX = 50 };
/* Limit of a stored estimate, above that of any run. */
static const double LOSS_END = 1e15;

enum cv_err cv_tsallis_init(uint32_t arms, struct cv_tsallis *ret) {
  double *loss = calloc(3 * (size_t)arms, sizeof(*loss));
  if (loss == NULL) {
    return CV_ERR_NOMEM;
  }
  *ret = (struct cv_tsallis){.arms = arms, .loss = loss, .weight = loss + arms, .chance = loss + 2 * (size_t)arms};
  for (uint32_t i = 0; i < arms; i++) {
    ret->weight[i] = ret->chance[i] = 1.0 / arms;
  }
  return CV_OK;
}

void cv_tsallis_fini(struct cv_tsallis *self) {
  free(self->loss);
}

/*
 * With v_i = r (L_i - x), y = -r x moves until the sum of v^-2 is 1. Newton's method on the sum's power -1/2, a concave
 * function of y that is linear for a single arm: from a y that is too small it approaches the root from below.
 */
static void solve(struct cv_tsallis *self, double rate) {
  double least = self->loss[0], y = 1;
  for (uint32_t i = 1; i < self->arms; i++) {
    least = fmin(least, self->loss[i]);
  }
  for (int n = 0; n < STEPS_MAX; n++) {
    double sum = 0, slope = 0;
    for (uint32_t i = 0; i < self->arms; i++) {
      double v = 1 / (rate * (self->loss[i] - least) + y), square = v * v;
      self->weight[i] = square;
      sum += square;
      slope += square * v;
    }
    /* (1 - sum^(-1/2)) over the derivative, sum^(-3/2) slope. */
    double step = sum * (sqrt(sum) - 1) / slope;
    if (!(step > 1e-14 * y)) {
      return;
    }
    y += step;
  }
}

void cv_tsallis_weigh(struct cv_tsallis *self, double rate, double bound) {
  double q = 4 * self->arms * rate * rate * bound * bound, sum = 0;
  /* The lesser root K f of z = q (1 + z)^2; rounding may put q just above 1/4. */
  double floor = 2 * q / (1 - 2 * q + sqrt(fmax(0, 1 - 4 * q))) / self->arms;
  solve(self, rate);
  for (uint32_t i = 0; i < self->arms; i++) {
    self->chance[i] = fmax(self->weight[i], floor);
    sum += self->chance[i];
  }
  for (uint32_t i = 0; i < self->arms; i++) {
    self->chance[i] /= sum;
  }
}

uint32_t cv_tsallis_draw(const struct cv_tsallis *self, struct cv_rng *rng) {
  double at = cv_rng_unit(rng);
  uint32_t arm = 0;
  for (; arm + 1 < self->arms && at >= self->chance[arm]; arm++) {
    at -= self->chance[arm];
  }
  return arm;
}

void cv_tsallis_lose(struct cv_tsallis *self, uint32_t arm, double loss) {
  self->loss[arm] += loss / self->chance[arm];
}

void cv_tsallis_save(const struct cv_tsallis *self, struct cv_buf *out) {
  for (uint32_t i = 0; i < self->arms; i++) {
    cv_buf_put_f64(out, self->loss[i]);
  }
}

enum cv_err cv_tsallis_load(struct cv_tsallis *self, struct cv_reader *in) {
  for (uint32_t i = 0; i < self->arms; i++) {
    self->loss[i] = cv_read_f64(in);
    if (!(fabs(self->loss[i]) < LOSS_END)) {
      return CV_ERR_DAMAGED;
    }
  }
  return in->failed ? CV_ERR_DAMAGED : CV_OK;
}
