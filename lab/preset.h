/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments that have a name: one row of the table each. */
#ifndef CV_LAB_PRESET_H
#define CV_LAB_PRESET_H

#include "lab/figure.h"
#include "lab/result.h"

struct cv_lab_settings {
  uint64_t replicates, seed; /* the result is the same for any number of jobs */
  unsigned jobs;
  FILE *progress; /* NULL: none */
};

struct cv_lab_preset {
  const char *about; /* one line */
  uint64_t replicates;
  struct cv_lab_figure figure; /* .name is the preset's */
  /* Appends its rows. */
  enum cv_err (*run)(const struct cv_lab_settings *settings, struct cv_lab_result *result, struct cv_why *why);
};

/* NULL past the end, or if there is none of that name. */
const struct cv_lab_preset *cv_lab_preset_at(size_t index);
const struct cv_lab_preset *cv_lab_preset_find(const char *name);
/* The name most like this one: what a person may have meant. */
const char *cv_lab_preset_nearest(const char *name);

#endif
