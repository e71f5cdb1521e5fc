/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/kl_index.h"

#include <math.h>
#include <stdlib.h>

#include "thirdparty/policy/kl.h"

/* Bound of the rounding error of an index in mean tokens, with a wide margin: cv_kl_upper() is correct to 1e-14. */
static const double ROUNDING = 1e-11;

enum cv_err cv_kl_index_init(cv_kl_bonus_fn *bonus, uint32_t arms, struct cv_kl_index *ret) {
  struct cv_kl_known *known = calloc(arms, sizeof(*known));
  if (known == NULL) {
    return CV_ERR_NOMEM;
  }
  *ret = (struct cv_kl_index){.bonus = bonus, .known = known};
  return CV_OK;
}

void cv_kl_index_fini(struct cv_kl_index *self) {
  free(self->known);
}

/* d q/d f; infinite at q = mean. */
static double rate_of(double mean, double q, double n) {
  return q == mean ? (double)INFINITY : q * (1 - q) / (fabs(q - mean) * n);
}

/* The q of the index. */
static double furthest(const struct cv_arms *arms, uint32_t i, double f) {
  double mean = cv_arms_mean(arms, i), bound = f / (double)arms->arm[i].tokens;
  return arms->arm[i].feedback.slope > 0 ? cv_kl_upper(mean, bound) : cv_kl_lower(mean, bound);
}

double cv_kl_index_at(const struct cv_arms *arms, uint32_t arm, double f) {
  return cv_feedback_score(arms->arm[arm].feedback, furthest(arms, arm, f));
}

static void compute(struct cv_kl_index *self, const struct cv_arms *arms, uint32_t i, double f) {
  const struct cv_arms_sum *arm = &arms->arm[i];
  double q = furthest(arms, i, f), rate = rate_of(cv_arms_mean(arms, i), q, (double)arm->tokens);
  self->known[i] = (struct cv_kl_known){.tokens = arm->tokens,
                                        .sum = arm->sum,
                                        .f = f,
                                        .index = cv_feedback_score(arm->feedback, q),
                                        .rate = rate / fabs(arm->feedback.slope)};
}

/* True if the cached value still gives bounds: the arm's sums are unchanged, and f has not decreased. */
static bool holds(const struct cv_kl_known *known, const struct cv_arms_sum *arm, double f) {
  return known->tokens == arm->tokens && known->sum == arm->sum && f >= known->f;
}

/* The exact index, from the cache if nothing has changed. */
static double exact(struct cv_kl_index *self, const struct cv_arms *arms, uint32_t i, double f) {
  const struct cv_kl_known *known = &self->known[i];
  if (!(holds(known, &arms->arm[i], f) && f == known->f)) {
    compute(self, arms, i, f);
  }
  return known->index;
}

/* An upper bound of the index of an arm whose cached value holds: the tangent at the cached f, plus rounding. */
static double upper(const struct cv_kl_index *self, const struct cv_arms *arms, uint32_t i, double f) {
  const struct cv_kl_known *known = &self->known[i];
  double rise = f - known->f;
  if (rise == 0) {
    return known->index;
  }
  return known->index + rise * known->rate * (1 + 1e-6) + ROUNDING / fabs(arms->arm[i].feedback.slope);
}

double cv_kl_index_of(struct cv_kl_index *self, const struct cv_arms *arms, uint32_t arm) {
  return exact(self, arms, arm, self->bonus(arms));
}

/* Sets *ret_top to the arm with the highest upper bound. True if its cached index, a lower bound, already exceeds all
 * other upper bounds. */
static bool is_clear(struct cv_kl_index *self, const struct cv_arms *arms, double f, uint32_t *ret_top) {
  double first = -(double)INFINITY, second = first;
  uint32_t top = 0;
  for (uint32_t i = 0; i < arms->arms; i++) {
    if (!holds(&self->known[i], &arms->arm[i], f)) {
      (void)exact(self, arms, i, f);
    }
    double bound = upper(self, arms, i, f);
    if (bound > first) {
      second = first;
      first = bound;
      top = i;
    } else if (bound > second) {
      second = bound;
    }
  }
  *ret_top = top;
  return self->known[top].index - ROUNDING / fabs(arms->arm[top].feedback.slope) > second;
}

bool cv_kl_index_best(struct cv_kl_index *self, const struct cv_arms *arms, uint32_t *ret_arm) {
  double f = self->bonus(arms);
  uint32_t top;
  if (is_clear(self, arms, f, &top)) {
    *ret_arm = top;
    return true;
  }
  /* Compute exact indices only of the arms whose upper bound reaches the best index so far. */
  double best = exact(self, arms, top, f);
  const uint32_t first = top;
  uint32_t ties = 1;
  for (uint32_t i = 0; i < arms->arms; i++) {
    if (i == first || upper(self, arms, i, f) < best) {
      continue;
    }
    double index = exact(self, arms, i, f);
    if (index > best) {
      best = index;
      top = i;
      ties = 1;
    } else {
      ties += index == best;
    }
  }
  *ret_arm = top;
  return ties == 1;
}
