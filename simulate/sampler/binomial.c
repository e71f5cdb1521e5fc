/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "common/base/err.h"
#include "simulate/sampler/sampler.h"

/* Hormann's constants require a mean of 10; below it inversion takes few steps. */
static const double MEAN_MIN = 10;
/* The probability that inversion takes this many steps is below 10^-70. */
enum { STEPS_MAX = 128 };
/* Below it the remainder of Stirling's formula comes from a table. */
enum { EXACT = 16 };

/* The remainder log k! - [(k + 1/2) log k - k + log(2 pi)/2]; 0 for k = 0, where scale() omits Stirling's factor. */
static double stirling_rest(double k) {
  static const double exact[EXACT] = {0,
                                      0.081061466795327261,
                                      0.041340695955409297,
                                      0.027677925684998338,
                                      0.020790672103765093,
                                      0.016644691189821193,
                                      0.013876128823070748,
                                      0.01189670994589177,
                                      0.010411265261972096,
                                      0.0092554621827127329,
                                      0.0083305634333628708,
                                      0.0075736754879518406,
                                      0.0069428401072095299,
                                      0.0064089941880042071,
                                      0.0059513701127588475,
                                      0.0055547335519628011};
  if (k < EXACT) {
    return exact[(int)k];
  }
  double r = 1 / k, s = r * r;
  return r * (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s / 1188))));
}

/* x log(x/mean) + mean - x for x = mean + d: Loader's deviance. */
static double deviance(double x, double mean, double d) {
  double v = d / (x + mean);
  if (fabs(v) >= 0.1) {
    return x > 0 ? x * log(x / mean) - d : mean;
  }
  double s = v * v, series = 0;
  for (int odd = 15; odd >= 3; odd -= 2) {
    series = series * s + 1.0 / odd;
  }
  return d * v + 2 * x * v * s * series;
}

/* The logarithm of the probability of k successes, d = k - n p, without its factor sqrt(n/(2 pi k (n - k))) and the
 * term of n. */
static double exponent(const struct cv_binomial *law, double k, double d) {
  double n = (double)law->n, mean = n * law->p;
  return -stirling_rest(k) - stirling_rest(n - k) - deviance(k, mean, d) - deviance(n - k, n - mean, -d);
}

/* k in that factor; neutral for k = 0, since Stirling's formula does not apply to 0!. */
static double scale(double k) {
  return k > 0 ? k : 1 / (2 * M_PI);
}

static void prepare_rejection(struct cv_binomial *law) {
  double n = (double)law->n, p = law->p, mean = n * p;
  double sd = sqrt(mean * (1 - p));
  law->none = -1;
  law->mode = floor(mean + p);
  /* The product n p is rounded; fma() gives its rounding error, which matters for n near 2^40. */
  law->shift = mean - law->mode + fma(n, p, -mean);
  law->b = 1.15 + 2.53 * sd;
  law->a = -0.0873 + 0.0248 * law->b + 0.01 * p;
  law->v_r = 0.92 - 4.2 / law->b;
  law->alpha = (2.83 + 5.1 / law->b) * sd;
}

void cv_binomial_init(struct cv_binomial *law, uint64_t n, double p) {
  CV_REQUIRE(n <= UINT64_C(1) << 40 && p >= 0 && p <= 1);
  bool flipped = p > 0.5; /* halves the range of p: inversion and Hormann's constants need p <= 1/2 */
  *law = (struct cv_binomial){.n = n, .flipped = flipped, .p = flipped ? 1 - p : p};
  if ((double)n * law->p >= MEAN_MIN) {
    prepare_rejection(law);
    return;
  }
  law->none = exp((double)n * log1p(-law->p));
  law->odds = law->p / (1 - law->p);
}

static uint64_t invert(const struct cv_binomial *law, struct cv_rng *rng) {
  double end = fmin((double)law->n, STEPS_MAX);
  for (;;) {
    double left = cv_rng_unit(rng), here = law->none, k = 0;
    while (left >= here && k < end) {
      left -= here;
      here *= law->odds * ((double)law->n - k) / (k + 1);
      k++;
    }
    /* Otherwise rounding has used up the law before `left`: draw again. */
    if (left < here) {
      return (uint64_t)k;
    }
  }
}

/* The exact test: v <= (probability of k)/(probability of the mode). */
static bool accepted(const struct cv_binomial *law, double k, double d, double v) {
  double n = (double)law->n;
  double factor = scale(k) * scale(n - k) / (law->mode * (n - law->mode));
  return log(v * v * factor) <= 2 * (exponent(law, k, d) - exponent(law, law->mode, -law->shift));
}

static uint64_t reject(const struct cv_binomial *law, struct cv_rng *rng) {
  for (;;) {
    double u = cv_rng_unit(rng) - 0.5, v = cv_rng_unit(rng);
    double us = 0.5 - fabs(u);
    double steps = floor((2 * law->a / us + law->b) * u + law->shift + 0.5);
    double k = law->mode + steps;
    /* Hormann's quick acceptance, which needs no logarithm, takes most draws. */
    if (us >= 0.07 && v <= law->v_r) {
      return (uint64_t)k;
    }
    if (!(k >= 0 && k <= (double)law->n)) {
      continue;
    }
    if (accepted(law, k, steps - law->shift, v * law->alpha / (law->a / (us * us) + law->b))) {
      return (uint64_t)k;
    }
  }
}

uint64_t cv_binomial_draw(const struct cv_binomial *law, struct cv_rng *rng) {
  uint64_t k = law->none >= 0 ? invert(law, rng) : reject(law, rng);
  return law->flipped ? law->n - k : k;
}
