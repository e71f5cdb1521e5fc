/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/pair.h"

#include <math.h>

enum { TERMS_MAX = 2 * CV_MIXTURE_MAX };

/* One term of M(u): e^(exponent - T ln(1 + u rise) - T' ln(1 + (1 - u) other_rise)). */
struct term {
  double exponent, rise, other_rise;
};

struct terms {
  uint32_t n;
  double tokens, other_tokens;
  struct term term[TERMS_MAX];
};

static void prepare(const struct cv_mixture *mixture, const struct cv_noisy_sum *better,
                    const struct cv_noisy_sum *other, struct terms *ret) {
  ret->n = 0;
  ret->tokens = better->tokens;
  ret->other_tokens = other->tokens;
  for (uint32_t j = 0; j < mixture->n; j++) {
    double x = mixture->x[j];
    double theirs = x * (other->tokens - other->sum) - cv_noisy_sum_moment(other, x);
    for (int half = 0; half < 2; half++) {
      double y = half == 0 ? x : x / 2;
      ret->term[ret->n++] = (struct term){
          .exponent = mixture->log_weight[j] - log(2) + y * better->sum - cv_noisy_sum_moment(better, y) + theirs,
          .rise = expm1(y),
          .other_rise = expm1(x)};
    }
  }
}

static double log_at(const struct terms *terms, double u, double *ret_slope) {
  double value[TERMS_MAX], most = -(double)INFINITY, sum = 0, slope = 0;
  for (uint32_t i = 0; i < terms->n; i++) {
    const struct term *term = &terms->term[i];
    value[i] = term->exponent - terms->tokens * log1p(u * term->rise) -
               terms->other_tokens * log1p((1 - u) * term->other_rise);
    most = fmax(most, value[i]);
  }
  if (most == -(double)INFINITY) { /* noise beyond all x */
    *ret_slope = 0;
    return most;
  }
  for (uint32_t i = 0; i < terms->n; i++) {
    const struct term *term = &terms->term[i];
    double share = exp(value[i] - most);
    sum += share;
    slope += share * (terms->other_tokens * term->other_rise / (1 + (1 - u) * term->other_rise) -
                      terms->tokens * term->rise / (1 + u * term->rise));
  }
  *ret_slope = slope / sum;
  return most + log(sum);
}

double cv_pair_log(const struct cv_mixture *mixture, const struct cv_noisy_sum *better,
                   const struct cv_noisy_sum *other, double u, double *ret_slope) {
  struct terms terms;
  prepare(mixture, better, other, &terms);
  return log_at(&terms, u, ret_slope);
}

/* Where the tangents at both ends of [low, high] meet: no point between has less. */
static double least_between(double low, double at_low, double slope_low, double high, double at_high,
                            double slope_high) {
  if (slope_low >= 0 || slope_high <= 0) {
    return slope_low >= 0 ? at_low : at_high;
  }
  double meet = (at_high - at_low + slope_low * low - slope_high * high) / (slope_low - slope_high);
  return at_low + slope_low * (fmin(fmax(meet, low), high) - low);
}

double cv_pair_evidence(const struct cv_mixture *mixture, const struct cv_noisy_sum *better,
                        const struct cv_noisy_sum *other) {
  struct terms terms;
  prepare(mixture, better, other, &terms);
  double low = 0, high = 1, slope_low, slope_high;
  double at_low = log_at(&terms, low, &slope_low), at_high = log_at(&terms, high, &slope_high);
  double least = least_between(low, at_low, slope_low, high, at_high, slope_high);
  while (slope_low < 0 && slope_high > 0 && fmin(at_low, at_high) - least > 1e-6 && high - low > 1e-15) {
    double slope, middle = low + (high - low) / 2, at = log_at(&terms, middle, &slope);
    if (slope < 0) {
      low = middle;
      at_low = at;
      slope_low = slope;
    } else {
      high = middle;
      at_high = at;
      slope_high = slope;
    }
    least = least_between(low, at_low, slope_low, high, at_high, slope_high);
  }
  return least;
}
