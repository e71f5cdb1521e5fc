/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/posterior.h"

#include <math.h>

#include "common/base/err.h"

enum { CELLS = 32, CELLS_BELOW = 12 }; /* of the sides above and below the mode */

/* What is left out: densities below e^-LEFT_OUT of the highest one, above the quantile e^-LEFT_OUT of the tail. */
static const double LEFT_OUT = 9;

/* A density at a point, and its slope times the width of a cell. */
struct point {
  double value, slope;
};

/*
 * One side of the mode of the posterior of a mean token x, over w >= 0, the distance from the mode in ln(x/(1-x)).
 * There the density is proportional to x^a (1-x)^b, a and b one more than ones and zeros: it decays at most
 * exponentially, also where x is close to 1. The other side is that of 1-x.
 */
struct side {
  double a, n, mode; /* n = a + b */
  unsigned cells;
  double width; /* of a cell */
  struct point point[CELLS + 1];
  double beyond[CELLS + 1]; /* the mass further away than each point */
};

static double between(double low, double x, double high) {
  return fmin(high, fmax(low, x));
}

/* The logarithm of the density over that at the mode, and its slope, at `ratio` = e^w - 1. */
static double log_density(const struct side *side, double w, double ratio, double *ret_slope) {
  double rest = 1 + side->mode * ratio;
  *ret_slope = side->a - side->n * side->mode * (1 + ratio) / rest;
  return side->a * w - side->n * log(rest);
}

/* Where a mean token of x > mode lies. */
static double distance_of(const struct side *side, double x) {
  return x < 1 ? log(x / (1 - x) * (1 - side->mode) / side->mode) : (double)INFINITY;
}

/* A w, at most `end`, about where the density is e^-drop of that at the mode. The logarithm is concave, so Newton's
 * steps from a larger w never pass it. Such w are where the asymptote and where Pinsker's bound are -drop. */
static double reach(const struct side *side, double drop, double end) {
  double asymptote = (drop - side->n * log(side->mode)) / (side->n - side->a), slope;
  double w = fmin(end, fmin(asymptote, distance_of(side, side->mode + sqrt(drop / (2 * side->n)))));
  for (int i = 0; i < 64; i++) {
    double excess = log_density(side, w, expm1(w), &slope) + drop;
    if (excess > -1) {
      break;
    }
    w -= excess / slope;
  }
  return w;
}

/* Limits the slopes of a cell to those at which a cubic between its ends cannot become negative. */
static void limit(struct point *left, struct point *right) {
  double most = 3 * fmax(left->value, right->value);
  left->slope = between(-3 * left->value, left->slope, most);
  right->slope = between(-most, right->slope, 3 * right->value);
}

/* The cubic's integral over a cell, in cells. */
static double mass_of(struct point left, struct point right) {
  limit(&left, &right);
  return (left.value + right.value) / 2 + (left.slope - right.slope) / 12;
}

/* Where in [0,1] of a cell the cubic has this mass on its left, by Newton's method from an even spread. */
static double place_of(struct point left, struct point right, double mass) {
  limit(&left, &right);
  double fall = left.value - right.value, bend = 2 * fall + left.slope + right.slope;
  double turn = -3 * fall - 2 * left.slope - right.slope;
  double t = between(0, mass / mass_of(left, right), 1);
  for (int i = 0; i < 32; i++) {
    double found = t * (left.value + t * (left.slope / 2 + t * (turn / 3 + t * bend / 4)));
    double density = left.value + t * (left.slope + t * (turn + t * bend));
    double next = between(0, t + (mass - found) / density, 1);
    if (!(fabs(next - t) > 1e-14 * next)) {
      break;
    }
    t = next;
  }
  return t;
}

/* `end` is the mean token at which the side ends. Returns the mass of the side. */
static double measure(struct side *side, double end, double drop) {
  side->width = reach(side, drop, distance_of(side, end)) / side->cells;
  double growth = expm1(side->width), ratio = 0;
  for (unsigned i = 0; i <= side->cells; i++) {
    double slope, value = exp(log_density(side, i * side->width, ratio, &slope));
    side->point[i] = (struct point){.value = value, .slope = value * slope * side->width};
    ratio += growth * (1 + ratio);
  }
  side->beyond[side->cells] = 0;
  for (unsigned i = side->cells; i-- > 0;) {
    side->beyond[i] = side->beyond[i + 1] + mass_of(side->point[i], side->point[i + 1]) * side->width;
  }
  return side->beyond[0];
}

/* The mean token that has this mass beyond it. */
static double token_at(const struct side *side, double mass) {
  unsigned cell = 0;
  while (cell < side->cells - 1 && side->beyond[cell + 1] >= mass) {
    cell++;
  }
  double place = side->width == 0
                     ? 0
                     : place_of(side->point[cell], side->point[cell + 1], (side->beyond[cell] - mass) / side->width);
  double grown = exp((cell + place) * side->width);
  return side->mode * grown / (1 + side->mode * (grown - 1));
}

/* The mean token in [low, high] above which the posterior has the mass `tail`. */
static double upper(double ones, double zeros, double low, double high, double tail) {
  double a = ones + 1, b = zeros + 1, mode = between(low, a / (a + b), high);
  struct side up = {.a = a, .n = a + b, .mode = mode, .cells = CELLS};
  struct side down = {.a = b, .n = a + b, .mode = 1 - mode, .cells = CELLS_BELOW};
  double above = measure(&up, high, LEFT_OUT - log(tail)), below = measure(&down, 1 - low, LEFT_OUT);
  double wanted = tail * (above + below);
  return wanted <= above ? token_at(&up, wanted) : 1 - token_at(&down, above + below - wanted);
}

double cv_posterior_upper(double ones, double zeros, struct cv_feedback feedback, double tail) {
  CV_REQUIRE(ones >= 0 && zeros >= 0 && ones + zeros > 0 && tail > 0 && tail <= 0.5 && feedback.scale == 0);
  double at_0 = feedback.offset, at_1 = feedback.offset + feedback.slope;
  /* If the slope is negative, high scores are rare ones: the mirrored posterior has the same quantile. */
  double token =
      feedback.slope > 0 ? upper(ones, zeros, at_0, at_1, tail) : 1 - upper(zeros, ones, 1 - at_0, 1 - at_1, tail);
  return cv_feedback_score(feedback, token);
}
