/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/tail.h"

#include <math.h>

#include "common/base/err.h"
#include "common/base/grid.h"
#include "thirdparty/policy/laplaces.h"

struct cv_tail cv_tail_of(const struct cv_noise *noise) {
  struct cv_tail tail = {0};
  for (uint32_t i = 0; i < noise->groups; i++) {
    const struct cv_noise_group *group = &noise->group[i];
    tail.squares += group->count * group->scale * group->scale;
    tail.largest = fmax(tail.largest, group->scale);
    tail.count += group->count;
  }
  return tail;
}

void cv_tail_save(const struct cv_tail *tail, struct cv_buf *out) {
  cv_buf_put_f64(out, tail->squares);
  cv_buf_put_f64(out, tail->largest);
  cv_buf_put_u64(out, tail->count);
}

bool cv_tail_load(struct cv_reader *in, struct cv_tail *ret) {
  ret->squares = cv_read_f64(in);
  ret->largest = cv_read_f64(in);
  ret->count = cv_read_u64(in);
  return isfinite(ret->squares) && isfinite(ret->largest) && ret->squares >= 0 && ret->largest >= 0 &&
         (ret->largest > 0) == (ret->count > 0) && (ret->largest > 0) == (ret->squares > 0);
}

bool cv_tail_is_valid(const struct cv_noise *noise) {
  if (noise->groups > CV_NOISE_GROUPS_MAX) {
    return false;
  }
  for (uint32_t i = 0; i < noise->groups; i++) {
    const struct cv_noise_group *group = &noise->group[i];
    /* The bounds keep squares and sums of squares away from overflow and underflow. */
    if (!(group->scale >= 1e-100 && group->scale <= 1e100) || group->count == 0) {
      return false;
    }
  }
  return true;
}

enum cv_tail_use cv_tail_use_of(uint32_t brokers) {
  return brokers > 1 ? CV_TAIL_PAIR : CV_TAIL_ONE;
}

static bool is_pair(const struct cv_tail *tail, enum cv_tail_use use) {
  return tail->count == 2 && use == CV_TAIL_PAIR;
}

/*
 * The y with y - ln(1 + y/2) = level, or slightly more. The left side is convex and increasing, and at the start no
 * less than the right, so Newton's steps fall to the root: an early stop only widens the bound. They err by some units
 * in the last place of y, or of level: less than what is added in the end.
 */
static double pair_at(double level) {
  double y = level + log1p(level);
  for (int i = 0; i < 60; i++) {
    double next = y - (y - log1p(y / 2) - level) * (2 + y) / (1 + y);
    if (!(next > 0) || next >= y) {
      break;
    }
    y = next;
  }
  return y * (1 + 1e-14);
}

/* Chernoff's bound, c = ln(2/g). */
static double chernoff(const struct cv_tail *tail, double c) {
  /*
   * With x = lambda b, a = v/b^2 and 1 + s = 1/(1 - x^2) the derivative is 0 where 2 s - ln(1 + s) = ln(2/g)/a. The
   * left side is convex and increasing in s and exceeds the right at s = target, so Newton's steps fall to the root.
   * Any s > 0 gives a valid bound: an early stop only widens the bound.
   */
  double a = tail->squares / (tail->largest * tail->largest), target = c / a, s = target;
  for (int i = 0; i < 60; i++) {
    double next = s - (2 * s - log1p(s) - target) / (2 - 1 / (1 + s));
    if (!(next > 0) || next >= s) {
      break;
    }
    s = next;
  }
  return tail->largest * (a * log1p(s) + c) / sqrt(s / (1 + s));
}

double cv_tail_at(const struct cv_tail *tail, enum cv_tail_use use, double level) {
  CV_REQUIRE(level >= 0);
  if (tail->count <= 1) {
    return tail->count == 0 ? 0 : tail->largest * level;
  }
  return is_pair(tail, use) ? tail->largest * pair_at(level) : chernoff(tail, M_LN2 + level);
}

double cv_tail_rounding(const struct cv_tail *tail, enum cv_tail_use use) {
  return is_pair(tail, use) ? 2 / (double)CV_GRID : 0;
}

static double quantile_of(const struct cv_tail *tail, enum cv_tail_use use, double g) {
  CV_REQUIRE(g > 0 && g < 1);
  /* ln(2/g) as one logarithm: the bits of stored campaigns. */
  return tail->count > 1 && !is_pair(tail, use) ? chernoff(tail, log(2 / g)) : cv_tail_at(tail, use, -log(g));
}

double cv_tail_quantile(const struct cv_noise *noise, double g) {
  struct cv_tail tail = cv_tail_of(noise);
  return quantile_of(&tail, CV_TAIL_ONE, g);
}

double cv_tail_in_scores(const struct cv_noise *noise, enum cv_tail_use use, uint64_t epsilon_micro, double scale,
                         uint64_t tokens, double g) {
  struct cv_tail tail = cv_tail_of(noise);
  if (tail.count > 0) {
    double unit = (double)CV_MICRO / (double)epsilon_micro;
    tail.squares *= unit * unit;
    tail.largest *= unit;
  }
  if (scale > 0) {
    tail.squares += (double)tokens * scale * scale;
    tail.largest = fmax(tail.largest, scale);
    tail.count += tokens;
  }
  return quantile_of(&tail, use, g) + cv_tail_rounding(&tail, use);
}

/* ---- the exact tail of the largest noises ---- */

/* The y with 2 P(N >= y) = e^-level. By Newton's steps from the right: -ln P is convex and increasing. */
static double alone_at(uint32_t k, double level, double y) {
  for (int i = 0; i < 100; i++) {
    struct cv_laplaces_at at = cv_laplaces_at(y, k);
    double next = y - (-at.log_tail - M_LN2 - level) / at.hazard;
    if (!(next > 0) || next >= y) {
      break;
    }
    y = next;
  }
  return y * (1 + 1e-13);
}

/* The q that the x with its supremum at y gives, in units of the largest scale. */
static double bound_of(const struct cv_laplaces_split *split, double level, double y) {
  struct cv_laplaces_at at = cv_laplaces_at(y, split->alike);
  double others = cv_laplaces_moment(&split->rest, 1 / split->scale, at.hazard);
  return (at.hazard * y + at.log_tail + M_LN2 + level + others) / at.hazard;
}

/* The least of them, by golden section: (convex function of x)/x has one valley, and x rises with y. No y beyond the
 * bound itself can be best, and every y gives a bound. */
static double mixed_at(const struct cv_laplaces_split *split, double level, double most) {
  static const double GOLDEN = 0.6180339887498949;
  double low = -40, high = most;
  double a = high - GOLDEN * (high - low), b = low + GOLDEN * (high - low);
  double at_a = bound_of(split, level, a), at_b = bound_of(split, level, b);
  while (high - low > 1e-5) {
    bool is_left = at_a <= at_b;
    *(is_left ? &high : &low) = is_left ? b : a;
    if (is_left) {
      b = a;
      at_b = at_a;
      a = high - GOLDEN * (high - low);
      at_a = bound_of(split, level, a);
    } else {
      a = b;
      at_a = at_b;
      b = low + GOLDEN * (high - low);
      at_b = bound_of(split, level, b);
    }
  }
  return fmin(at_a, at_b) * (1 + 1e-12);
}

double cv_tail_exact_in_scores(const struct cv_noise *noise, uint64_t epsilon_micro, double g) {
  double level = -log(g), most = cv_tail_quantile(noise, g);
  struct cv_laplaces_split split;
  cv_laplaces_split(noise, CV_LAPLACES_MAX, &split);
  if (split.alike == 0) {
    return 0;
  }
  double y = most / split.scale;
  double exact = split.rest.groups == 0 ? alone_at(split.alike, level, y) : mixed_at(&split, level, y);
  double unit = (double)CV_MICRO / (double)epsilon_micro;
  return fmin(most, split.scale * exact) * unit + split.alike / (double)CV_GRID;
}
