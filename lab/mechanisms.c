/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/grid.h"
#include "lab/pool.h"

enum { HORIZON = 1024, POINTS_MAX = 64, SERIES_MAX = 32 };

struct comparison {
  const struct cv_lab_settings *settings;
  struct cv_mechanism_law law[SERIES_MAX];
  size_t series, points;
  uint32_t n[POINTS_MAX];
  double mean_square[SERIES_MAX][POINTS_MAX], se_square[SERIES_MAX][POINTS_MAX];
};

/* Around each power of two, where prefix mechanisms change, and between. */
static void choose_points(struct comparison *comparison) {
  for (uint32_t n = 1; n <= HORIZON; n++) {
    uint32_t power = 1U << (31 - __builtin_clz(n));
    if (n < 9 || n == power || n == power + 1 || n + 1 == 2 * power || n == power + power / 2) {
      comparison->n[comparison->points++] = n;
    }
  }
}

static enum cv_err choose_series(struct comparison *comparison, struct cv_why *why) {
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    struct cv_choice choice = {0};
    if (cv_mechanism_at(i)->has_noise) {
      (void)snprintf(choice.name, sizeof(choice.name), "%s", cv_mechanism_at(i)->name);
      CV_REQUIRE(comparison->series < SERIES_MAX);
      CV_TRY(cv_mechanism_law_init(&choice, CV_MICRO, HORIZON, &comparison->law[comparison->series++], why));
    }
  }
  return CV_OK;
}

/* Items in the n-th release. */
static double covered(const struct cv_mechanism_law *law, uint32_t n) {
  enum cv_cover cover = cv_mechanism_cover(law, n);
  while (cover == CV_COVER_BEFORE) {
    cover = cv_mechanism_cover(law, --n);
  }
  return cover == CV_COVER_ITEM ? 1 : n;
}

/* One mechanism, all replicates: second and fourth moments of the noise in the mean at each point. */
static enum cv_err measure(void *data, size_t at) {
  struct comparison *comparison = data;
  const struct cv_mechanism_law *law = &comparison->law[at];
  uint64_t replicates = comparison->settings->replicates;
  double second[POINTS_MAX] = {0}, fourth[POINTS_MAX] = {0};
  for (uint64_t replicate = 0; replicate < replicates; replicate++) {
    struct cv_rng_seeded seeded;
    struct cv_mechanism *mechanism;
    cv_rng_seeded_init(&seeded, comparison->settings->seed, CV_RNG_NOISE, replicate, at);
    CV_TRY(cv_mechanism_new(law, &mechanism));
    size_t point = 0;
    for (uint32_t n = 1; point < comparison->points; n++) {
      cv_mechanism_draw(mechanism, &seeded.rng);
      double noise = cv_grid_to(cv_mechanism_release(mechanism, 0));
      if (n == comparison->n[point]) {
        double square = pow(noise / covered(law, n), 2);
        second[point] += square;
        fourth[point] += square * square;
        point++;
      }
    }
    cv_mechanism_free(mechanism);
  }
  for (size_t i = 0; i < comparison->points; i++) {
    double mean = second[i] / (double)replicates;
    comparison->mean_square[at][i] = mean;
    comparison->se_square[at][i] = sqrt((fourth[i] / (double)replicates - mean * mean) / (double)replicates);
  }
  return CV_OK;
}

/* A Laplace noise of scale b has variance 2 b^2; in scores b is a number of 1/epsilon, and epsilon is 1. */
static double declared(const struct cv_mechanism_law *law, uint32_t n) {
  struct cv_noise noise;
  double variance = 0;
  cv_mechanism_noise(law, n, &noise);
  for (uint32_t i = 0; i < noise.groups; i++) {
    variance += 2 * noise.group[i].scale * noise.group[i].scale * noise.group[i].count;
  }
  return sqrt(variance) / covered(law, n);
}

static enum cv_err report(const struct comparison *comparison, struct cv_lab_result *result) {
  for (size_t at = 0; at < comparison->series; at++) {
    for (size_t i = 0; i < comparison->points; i++) {
      const struct cv_mechanism_law *law = &comparison->law[at];
      double deviation = sqrt(comparison->mean_square[at][i]);
      struct cv_lab_row row = {.x = comparison->n[i],
                               .metric = "noise",
                               .mean = deviation,
                               .se = comparison->se_square[at][i] / (2 * deviation),
                               .low = deviation - comparison->se_square[at][i] / (2 * deviation),
                               .high = deviation + comparison->se_square[at][i] / (2 * deviation),
                               .n = comparison->settings->replicates};
      (void)snprintf(row.series, sizeof(row.series), "%s", law->class->name);
      CV_TRY(cv_lab_result_add(result, &row));
      (void)snprintf(row.series, sizeof(row.series), "%s, theory", law->class->name);
      row.mean = declared(law, comparison->n[i]);
      row.se = (double)NAN;
      row.n = 0;
      CV_TRY(cv_lab_result_add(result, &row));
    }
  }
  return CV_OK;
}

enum cv_err cv_lab_mechanisms(const struct cv_lab_settings *settings, struct cv_lab_result *result,
                              struct cv_why *why) {
  struct comparison *comparison = calloc(1, sizeof(*comparison));
  if (comparison == NULL) {
    return CV_ERR_NOMEM;
  }
  comparison->settings = settings;
  choose_points(comparison);
  enum cv_err err = choose_series(comparison, why);
  if (err == CV_OK) {
    err = cv_lab_pool(comparison->series, settings->jobs, settings->progress, measure, comparison);
  }
  if (err == CV_OK) {
    err = report(comparison, result);
  }
  free(comparison);
  return err;
}
