/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/confidence.h"

#include <math.h>

#include "common/base/grid.h"
#include "thirdparty/policy/kl.h"
#include "thirdparty/policy/laplaces.h"

static const double INFINITE = (double)INFINITY;

/* ---- the tilted tail of a sum of Laplace variables ---- */

/* x y + ln P(N >= y): concave in y, since the density of N is log-concave. */
static double tilted(double x, double y, uint32_t k) {
  return x * y + cv_laplaces_at(y, k).log_tail;
}

double cv_laplace_tilt(double x, uint32_t k) {
  CV_REQUIRE(x > 0 && x <= 1);
  if (k == 0) {
    return 0;
  }
  if (k == 1) { /* at e^y = 2x/(1 + x) */
    return x * log(2 * x / (1 + x)) - log1p(x);
  }
  if (x > 1 - 1e-9) { /* the grid's last x, up to rounding; larger is always safe */
    return INFINITE;
  }
  if (k > CV_TILT_EXACT) {
    return -(double)k * log1p(-x * x);
  }
  /* Golden section. Far to the right the tail falls as y^(k-1) e^-y, far to the left it is 1. */
  static const double GOLDEN = 0.6180339887498949;
  double low = -60, high = 60 + 4 * k / (1 - x);
  double a = high - GOLDEN * (high - low), b = low + GOLDEN * (high - low);
  double at_a = tilted(x, a, k), at_b = tilted(x, b, k);
  while (high - low > 1e-6) {
    if (at_a > at_b) {
      high = b;
      b = a;
      at_b = at_a;
      a = high - GOLDEN * (high - low);
      at_a = tilted(x, a, k);
    } else {
      low = a;
      a = b;
      at_a = at_b;
      b = low + GOLDEN * (high - low);
      at_b = tilted(x, b, k);
    }
  }
  return fmax(at_a, at_b) + 1e-9;
}

/* ---- one look ---- */

static void spread(double most, struct cv_look *ret) {
  for (int i = 0; i < CV_LOOK_GRID; i++) {
    ret->x[i] = most * (i + 1) / CV_LOOK_GRID;
  }
}

void cv_look_init(double unit, uint32_t k, struct cv_look *ret) {
  bool is_noisy = unit > 0 && k > 0;
  double most = is_noisy ? fmin(1 / unit, CV_X_MOST) : CV_X_MOST;
  spread(most, ret);
  for (int i = 0; i < CV_LOOK_GRID; i++) {
    /* Discrete noise is the difference of two exponentials, both rounded down: within one grid unit of the continuous
     * one. */
    double x = ret->x[i], rounding = x * k / (double)CV_GRID;
    ret->cost[i] = is_noisy ? cv_laplace_tilt(fmin(x * unit, 1), k) + rounding : 0;
  }
}

double cv_noisy_sum_moment(const struct cv_noisy_sum *at, double x) {
  return cv_laplaces_moment(at->noise, at->unit, x);
}

static double largest_scale(const struct cv_noise *noise) {
  double largest = 0;
  for (uint32_t i = 0; i < noise->groups; i++) {
    largest = fmax(largest, noise->group[i].scale);
  }
  return largest;
}

void cv_look_init_any(const struct cv_noisy_sum *at, struct cv_look *ret) {
  double scale = largest_scale(at->noise) * at->unit;
  spread(scale > 0 ? fmin(1 / scale, CV_X_MOST) : CV_X_MOST, ret);
  for (int i = 0; i < CV_LOOK_GRID; i++) {
    ret->cost[i] = cv_noisy_sum_moment(at, ret->x[i]);
  }
}

/* As cv_look_init(), from the same look at noises of scale 1: what they cost depends on x times their scale alone. */
static void init_scaled(double scale, uint32_t k, struct cv_look *kept, struct cv_look *ret) {
  if (k == 0 || scale * CV_X_MOST < 1) {
    cv_look_init(scale, k, ret);
    return;
  }
  struct cv_look *unit = &kept[k - 1];
  if (unit->x[0] == 0) {
    cv_look_init(1, k, unit);
  }
  spread(1 / scale, ret);
  for (int i = 0; i < CV_LOOK_GRID; i++) {
    ret->cost[i] = unit->cost[i] + ret->x[i] * k / (double)CV_GRID;
  }
}

void cv_look_init_exact(const struct cv_noisy_sum *at, struct cv_look *kept, struct cv_look *ret) {
  struct cv_laplaces_split split;
  cv_laplaces_split(at->noise, CV_TILT_EXACT, &split);
  init_scaled(split.scale * at->unit, split.alike, kept, ret);
  for (int i = 0; i < CV_LOOK_GRID; i++) {
    ret->cost[i] += cv_laplaces_moment(&split.rest, at->unit, ret->x[i]);
  }
}

/* The number of noises if all of them have one scale, that of the first group; else UINT64_MAX. */
static uint64_t count_alike(const struct cv_noise *noise) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < noise->groups; i++) {
    if (noise->group[i].scale != noise->group[0].scale) {
      return UINT64_MAX;
    }
    count += noise->group[i].count;
  }
  return count;
}

static double first_scale(const struct cv_noisy_sum *at) {
  return at->noise->groups == 0 ? 0 : at->noise->group[0].scale * at->unit;
}

void cv_look_init_for(const struct cv_noisy_sum *at, struct cv_look *ret) {
  uint64_t count = count_alike(at->noise);
  if (count <= UINT32_MAX) {
    cv_look_init(first_scale(at), (uint32_t)count, ret);
  } else {
    cv_look_init_any(at, ret);
  }
}

const struct cv_look *cv_look_keep(struct cv_look_kept *kept, const struct cv_noisy_sum *at) {
  uint64_t count = count_alike(at->noise);
  double scale = first_scale(at);
  if (!kept->is_made || kept->scale != scale || kept->count != count || count == UINT64_MAX) {
    *kept = (struct cv_look_kept){.is_made = true, .scale = scale, .count = count};
    cv_look_init_for(at, &kept->look);
  }
  return &kept->look;
}

/* The m with psi_m(x) = bound. */
static double mean_of(double x, double bound) {
  return bound > 0 ? expm1(bound) / expm1(x) : 0;
}

double cv_look_low(const struct cv_look *look, const struct cv_noisy_sum *at, double level) {
  double low = 0;
  for (int i = 0; i < CV_LOOK_GRID; i++) {
    low = fmax(low, mean_of(look->x[i], (look->x[i] * at->sum - look->cost[i] - level) / at->tokens));
  }
  return fmin(low, 1);
}

/* The fewest tokens of mean p > q whose sum, without its noise, excludes q at this level. */
static double fewest_tokens(const struct cv_look *look, double p, double q, double level) {
  double fewest = INFINITE;
  for (int i = 0; i < CV_LOOK_GRID; i++) {
    double x = look->x[i], each = x * p - log1p(q * expm1(x));
    if (each > 0) {
      fewest = fmin(fewest, (level + look->cost[i]) / each);
    }
  }
  return fewest;
}

double cv_look_first(double epsilon, uint32_t noises, double p, double q, double level) {
  static const double MARGIN = 1.6;
  if (isfinite(epsilon) && noises > 1) {
    struct cv_look look;
    cv_look_init(1 / epsilon, noises, &look);
    double a = p > q ? p : 1 - p, b = p > q ? q : 1 - q;
    return ceil(fewest_tokens(&look, a, b, level + MARGIN));
  }
  /* Without noise a best possible arm excludes everything below with its first token. */
  double distance = fmin(cv_kl_private(p, q, epsilon), CV_X_MOST);
  return ceil((level - log(2) + MARGIN) / distance);
}

/* ---- the mixture martingale ---- */

void cv_mixture_init(double unit, struct cv_mixture *ret) {
  enum { TAIL = 6 };
  static const double LEAST = .004;
  double x = unit > 0 ? fmin(.8 / unit, 3) : 3;
  uint32_t n = 0;
  do {
    ret->x[n++] = x;
    x /= 2;
  } while (x >= LEAST && n < CV_MIXTURE_MAX - TAIL);
  for (uint32_t j = 0; j < n; j++) {
    ret->log_weight[j] = log(.9 / n);
  }
  for (uint32_t j = n; j < n + TAIL; j++) {
    ret->x[j] = x;
    ret->log_weight[j] = log(.1 / TAIL);
    x /= 2;
  }
  ret->n = n + TAIL;
}

/* The exponents of the terms at m = 0, where psi is 0. */
static void exponents(const struct cv_mixture *mixture, const struct cv_noisy_sum *at, double *ret) {
  for (uint32_t j = 0; j < mixture->n; j++) {
    ret[j] = mixture->log_weight[j] + mixture->x[j] * at->sum - cv_noisy_sum_moment(at, mixture->x[j]);
  }
}

/* ln of the sum at m, and its derivative. */
static double log_sum(const struct cv_mixture *mixture, const double *exponent, double tokens, double m,
                      double *ret_slope) {
  double term[CV_MIXTURE_MAX], most = -INFINITE, sum = 0, slope = 0;
  for (uint32_t j = 0; j < mixture->n; j++) {
    term[j] = exponent[j] - tokens * log1p(m * expm1(mixture->x[j]));
    most = fmax(most, term[j]);
  }
  if (most == -INFINITE) { /* noise beyond all x */
    *ret_slope = -1;
    return most;
  }
  for (uint32_t j = 0; j < mixture->n; j++) {
    double share = exp(term[j] - most), rise = expm1(mixture->x[j]);
    sum += share;
    slope -= share * tokens * rise / (1 + m * rise);
  }
  *ret_slope = slope / sum;
  return most + log(sum);
}

double cv_mixture_low(const struct cv_mixture *mixture, const struct cv_noisy_sum *at, double level) {
  double exponent[CV_MIXTURE_MAX], low = 0;
  exponents(mixture, at, exponent);
  /* Each term alone excludes up to here. */
  for (uint32_t j = 0; j < mixture->n; j++) {
    low = fmax(low, mean_of(mixture->x[j], (exponent[j] - level) / at->tokens));
  }
  /* The logarithm of the sum is convex and decreasing in m, so Newton's steps from an excluded m never pass the
   * limit: an early stop only lowers it. */
  low = fmin(low, 1);
  for (int i = 0; i < 60; i++) {
    double slope, excess = log_sum(mixture, exponent, at->tokens, low, &slope) - level;
    double step = -excess / slope;
    if (!(step > 1e-13) || low >= 1) {
      break;
    }
    low = fmin(low + step, 1);
  }
  return low;
}

void cv_limits_narrow(double new_low, double new_high, double *low, double *high) {
  double a = fmin(fmax(*low, new_low), *high), b = fmax(fmin(*high, new_high), *low);
  *low = a <= b ? a : (a + b) / 2;
  *high = a <= b ? b : *low;
}
