/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/laplaces.h"

#include <math.h>

static const double INFINITE = (double)INFINITY;

/*
 * For y >= 0. N is E - E' with E and E' gamma variables of shape k, so P = e^-y sum over j < k of y^j/j! times sum over
 * i <= k-1-j of C(k+i-1, i) 2^-(k+i); and the density has the last of the inner terms in the place of their sum.
 */
static struct cv_laplaces_at right(double y, uint32_t k, double *ret_density) {
  double each[CV_LAPLACES_MAX], inner[CV_LAPLACES_MAX]; /* inner[n]: the sum over i <= n */
  double term = ldexp(1, -(int)k), sum = 0;
  for (uint32_t i = 0; i < k; i++) {
    sum += term;
    each[i] = term;
    inner[i] = sum;
    term *= (double)(k + i) / (2.0 * (i + 1));
  }
  double power = 1, total = 0, density = 0;
  for (uint32_t j = 0; j < k; j++) {
    total += power * inner[k - 1 - j];
    density += power * each[k - 1 - j];
    power *= y / (j + 1);
  }
  *ret_density = density * exp(-y);
  return (struct cv_laplaces_at){.log_tail = log(total) - y, .hazard = density / total};
}

struct cv_laplaces_at cv_laplaces_at(double y, uint32_t k) {
  double density;
  CV_REQUIRE(k >= 1 && k <= CV_LAPLACES_MAX);
  struct cv_laplaces_at at = right(fabs(y), k, &density);
  if (y < 0) {
    double below = exp(at.log_tail);
    at = (struct cv_laplaces_at){.log_tail = log1p(-below), .hazard = density / (1 - below)};
  }
  return at;
}

void cv_laplaces_split(const struct cv_noise *noise, uint32_t most, struct cv_laplaces_split *ret) {
  uint64_t left = most;
  *ret = (struct cv_laplaces_split){0};
  for (uint32_t i = 0; i < noise->groups; i++) {
    ret->scale = fmax(ret->scale, noise->group[i].scale);
  }
  for (uint32_t i = 0; i < noise->groups; i++) {
    struct cv_noise_group group = noise->group[i];
    uint32_t taken = group.scale < ret->scale ? 0 : group.count < left ? group.count : (uint32_t)left;
    left -= taken;
    ret->alike += taken;
    group.count -= taken;
    if (group.count > 0) {
      ret->rest.group[ret->rest.groups++] = group;
    }
  }
}

double cv_laplaces_moment(const struct cv_noise *noise, double unit, double x) {
  double sum = 0;
  for (uint32_t i = 0; i < noise->groups; i++) {
    double square = x * noise->group[i].scale * unit;
    square *= square;
    sum += square < 1 ? -(double)noise->group[i].count * log1p(-square) : INFINITE;
  }
  return sum;
}
