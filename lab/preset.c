/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/preset.h"

#include <string.h>

#include "lab/mechanisms.h"

static const struct cv_lab_preset table[] = {
    {.about = "noise in an arm's mean after n releases, every mechanism at epsilon 1, one token a release",
     .replicates = 2000,
     .figure = {.name = "mechanisms",
                .title = "Noise of the mechanisms at equal epsilon",
                .x_label = "n, releases of the arm",
                .y_label = "standard deviation of the noise in the mean",
                .log_x = true,
                .log_y = true,
                .metric = "noise"},
     .run = cv_lab_mechanisms},
};

const struct cv_lab_preset *cv_lab_preset_at(size_t index) {
  return index < CV_COUNT(table) ? &table[index] : NULL;
}

const struct cv_lab_preset *cv_lab_preset_find(const char *name) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(table[i].figure.name, name) == 0) {
      return &table[i];
    }
  }
  return NULL;
}

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Levenshtein's distance; names are short. */
static size_t distance(const char *a, const char *b) {
  enum { MOST = 64 };
  size_t row[MOST + 1], n = strnlen(b, MOST);
  for (size_t j = 0; j <= n; j++) {
    row[j] = j;
  }
  for (size_t i = 0; a[i] != '\0' && i < MOST; i++) {
    size_t before = row[0];
    row[0] = i + 1;
    for (size_t j = 1; j <= n; j++) {
      size_t above = row[j];
      row[j] = least(least(row[j], row[j - 1]) + 1, before + (a[i] != b[j - 1]));
      before = above;
    }
  }
  return row[n];
}

const char *cv_lab_preset_nearest(const char *name) {
  const char *nearest = table[0].figure.name;
  for (size_t i = 1; i < CV_COUNT(table); i++) {
    if (distance(name, table[i].figure.name) < distance(name, nearest)) {
      nearest = table[i].figure.name;
    }
  }
  return nearest;
}
