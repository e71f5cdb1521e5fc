/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "common/noise/dlaplace.h"
#include "lab/audit/subjects.h"

/* Uniform numbers are multiples of 2^-53. The search for one that gives a sum tries this many on each side of the real
 * solution, to allow for rounding. */
enum { NEAR = 64 };
static const double UNIT = 0x1p-53;

/* The textbook sampler: -s sgn(v) ln(1 - 2|v|), v uniform in [-1/2, 1/2). */
static double inverse(double scale, double v) {
  double size = -scale * log(1 - 2 * fabs(v));
  return v < 0 ? -size : size;
}

/* 1 if some uniform number makes inverse() give `sum` from `input`, else 0. */
static int64_t is_attainable(double sum, double input, double scale) {
  double noise = sum - input;
  double middle = copysign((1 - exp(-fabs(noise) / scale)) / 2, noise);
  double first = rint(middle / UNIT) - NEAR;
  for (int i = 0; i <= 2 * NEAR; i++) {
    double v = (first + i) * UNIT;
    if (fabs(v) < .5 && input + inverse(scale, v) == sum) {
      return 1;
    }
  }
  return 0;
}

static void look(double sum, double scale, int64_t *row) {
  row[0] = is_attainable(sum, 0, scale);
  row[1] = is_attainable(sum, 1, scale);
}

static enum cv_err sample_textbook(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                                   int64_t *row) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, stream, CV_RNG_NOISE, 0, 0);
  for (uint64_t run = 0; run < runs; run++, row += self->width) {
    double scale = 1 / self->epsilon;
    look((double)neighbour + inverse(scale, cv_rng_unit(&seeded.rng) - .5), scale, row);
  }
  return CV_OK;
}

static enum cv_err sample_discrete(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                                   int64_t *row) {
  struct cv_dlaplace law;
  struct cv_rng_seeded seeded;
  CV_TRY(cv_dlaplace_init(&law, CV_GRID * (uint64_t)CV_MICRO, (uint64_t)llround(self->epsilon * CV_MICRO)));
  cv_rng_seeded_init(&seeded, stream, CV_RNG_NOISE, 0, 0);
  for (uint64_t run = 0; run < runs; run++, row += self->width) {
    int64_t sum = (neighbour ? CV_GRID : 0) + cv_dlaplace_draw(&law, &seeded.rng);
    look((double)sum / CV_GRID, 1 / self->epsilon, row); /* the same adversary as for the textbook */
  }
  return CV_OK;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  (void)snprintf(text, CV_AUDIT_TEXT, "from %u", at);
}

void cv_audit_laplace(bool textbook, double epsilon, struct cv_audit_subject *ret) {
  *ret = (struct cv_audit_subject){
      .is_sound = !textbook,
      .epsilon = epsilon,
      .width = 2,
      .sample = textbook ? sample_textbook : sample_discrete,
      .label = label,
  };
  (void)snprintf(ret->part, sizeof(ret->part), "%s", textbook ? "laplace in doubles" : "laplace on the grid");
  (void)snprintf(ret->setting, sizeof(ret->setting), "least bits");
}
