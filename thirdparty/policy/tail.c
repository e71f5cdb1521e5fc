/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/tail.h"

#include <math.h>

#include "common/base/err.h"
#include "common/base/grid.h"

struct moments {
  double v, b; /* sum of squared scales, largest scale */
  uint64_t count;
};

static struct moments moments_of(const struct cv_noise *noise) {
  struct moments m = {0};
  for (uint32_t i = 0; i < noise->groups; i++) {
    const struct cv_noise_group *group = &noise->group[i];
    m.v += group->count * group->scale * group->scale;
    m.b = fmax(m.b, group->scale);
    m.count += group->count;
  }
  return m;
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

static double quantile_of(struct moments m, double g) {
  CV_REQUIRE(g > 0 && g < 1);
  if (m.count == 0) {
    return 0;
  }
  if (m.count == 1) {
    return -m.b * log(g);
  }
  /*
   * With x = lambda b, a = v/b^2 and 1 + s = 1/(1 - x^2) the derivative is 0 where 2 s - ln(1 + s) = ln(2/g)/a. The
   * left side is convex and increasing in s and exceeds the right at s = target, so Newton's steps fall to the root.
   * Any s > 0 gives a valid bound: an early stop only widens the bound.
   */
  double a = m.v / (m.b * m.b), c = log(2 / g), target = c / a, s = target;
  for (int i = 0; i < 60; i++) {
    double next = s - (2 * s - log1p(s) - target) / (2 - 1 / (1 + s));
    if (!(next > 0) || next >= s) {
      break;
    }
    s = next;
  }
  return m.b * (a * log1p(s) + c) / sqrt(s / (1 + s));
}

double cv_tail_quantile(const struct cv_noise *noise, double g) {
  return quantile_of(moments_of(noise), g);
}

double cv_tail_in_scores(const struct cv_noise *noise, uint64_t epsilon_micro, double scale, uint64_t tokens,
                         double g) {
  struct moments m = moments_of(noise);
  if (m.count > 0) {
    double unit = (double)CV_MICRO / (double)epsilon_micro;
    m.v *= unit * unit;
    m.b *= unit;
  }
  if (scale > 0) {
    m.v += (double)tokens * scale * scale;
    m.b = fmax(m.b, scale);
    m.count += tokens;
  }
  return quantile_of(m, g);
}
