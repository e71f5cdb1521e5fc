/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/rest.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/grid.h"
#include "common/base/local.h"

static const double UNKNOWN = (double)NAN;

/* Sets estimate and deviation from the item's last release. */
static void estimate(const struct cv_spec *spec, const struct cv_local *local, const struct cv_release *release,
                     struct cv_rest_item *item) {
  struct cv_feedback feedback = cv_local_feedback(local, release->arm);
  double tokens = (double)release->tokens, sum = (double)release->noisy_sum / (double)CV_GRID;
  double unit = spec->epsilon_micro == 0 ? 0 : (double)CV_MICRO / (double)spec->epsilon_micro;
  /* One token of 0 and one of 1 more: without them a mean of 0 would seem to be known for sure. */
  double mean = (fmin(fmax(sum, 0), tokens) + 1) / (tokens + 2);
  double variance = tokens * (mean * (1 - mean) + 2 * feedback.scale * feedback.scale);
  for (uint32_t i = 0; i < release->noise.groups; i++) {
    double scale = release->noise.group[i].scale * unit;
    variance += 2 * release->noise.group[i].count * scale * scale;
  }
  item->mean = cv_feedback_score(feedback, sum / tokens);
  item->deviation = sqrt(variance) / tokens / fabs(feedback.slope);
}

static void estimate_all(const struct cv_standing *standing, const struct cv_export *export,
                         const struct cv_release **last, struct cv_rest *rest) {
  struct cv_local local;
  if (cv_local_init(&export->spec.privatizer, export->spec.arms, &local, NULL) != CV_OK) {
    return;
  }
  for (size_t i = 0; i < export->releases; i++) {
    const struct cv_release *release = &export->release[i];
    if (release->arm < export->spec.arms && release->tokens > 0) {
      last[release->arm] = release;
    }
  }
  for (uint32_t i = 0; i < rest->items; i++) {
    struct cv_rest_item *item = &rest->item[i];
    const struct cv_standing *own = &standing[item->arm];
    if (last[item->arm] != NULL && own->tokens > 0) {
      estimate(&export->spec, &local, last[item->arm], item);
      item->mean = fmin(fmax(item->mean, cv_rest_low(own)), cv_rest_high(own));
    }
  }
}

/* Best first, unknown last. */
static int by_mean(const void *a, const void *b) {
  const struct cv_rest_item *x = a, *y = b;
  if (isnan(x->mean) != isnan(y->mean)) {
    return isnan(x->mean) ? 1 : -1;
  }
  if (x->mean > y->mean || x->mean < y->mean) {
    return x->mean > y->mean ? -1 : 1;
  }
  return x->arm < y->arm ? -1 : 1;
}

/* The probability that the other one is really better. */
static double swapped(const struct cv_rest_item *item, const struct cv_rest_item *other) {
  double deviation = hypot(item->deviation, other->deviation), difference = item->mean - other->mean;
  return deviation > 0 ? erfc(difference / deviation / sqrt(2)) / 2 : UNKNOWN;
}

enum cv_err cv_rest_of(const struct cv_standing *standing, uint32_t arms, const struct cv_export *export,
                       const double *need, struct cv_rest *ret) {
  struct cv_rest rest = {.item = calloc(arms + 1, sizeof(*rest.item)), .next = UINT32_MAX};
  const struct cv_release **last = calloc(arms + 1, sizeof(struct cv_release *));
  if (rest.item == NULL || last == NULL) {
    free(rest.item);
    free((void *)last);
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < arms; i++) {
    if (!cv_standing_is_decided(&standing[i])) {
      rest.item[rest.items++] = (struct cv_rest_item){.arm = i,
                                                      .mean = standing[i].tokens > 0 ? standing[i].mean : UNKNOWN,
                                                      .deviation = UNKNOWN,
                                                      .swapped = UNKNOWN,
                                                      .need = need == NULL ? UNKNOWN : need[i]};
    }
  }
  if (export != NULL && export->spec.arms == arms) {
    estimate_all(standing, export, last, &rest);
  }
  free((void *)last);
  qsort(rest.item, rest.items, sizeof(*rest.item), by_mean);
  for (uint32_t i = 0; i < rest.items; i++) {
    const struct cv_rest_item *item = &rest.item[i];
    rest.item[i].swapped = i + 1 < rest.items ? swapped(item, item + 1) : UNKNOWN;
    if (isfinite(item->need) && (rest.next == UINT32_MAX || item->need < rest.item[rest.next].need)) {
      rest.next = i;
    }
  }
  *ret = rest;
  return CV_OK;
}

double cv_rest_low(const struct cv_standing *standing) {
  return fmax(standing->mean - standing->radius, 0);
}

double cv_rest_high(const struct cv_standing *standing) {
  return fmin(standing->mean + standing->radius, 1);
}

void cv_rest_fini(struct cv_rest *rest) {
  free(rest->item);
  *rest = (struct cv_rest){0};
}
