/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments that have a name: one file each in lab/experiment/presets/, which the build puts into the program. */
#ifndef CV_LAB_PRESET_H
#define CV_LAB_PRESET_H

#include "lab/experiment/experiment.h"

struct cv_lab_preset {
  const char *name;
  const char *text; /* the file */
};

/* Ends with a row without a name. */
extern const struct cv_lab_preset cv_lab_presets[];

/* NULL if there is none of that name. */
const struct cv_lab_preset *cv_lab_preset_find(const char *name);

/*
 * A preset by its name; what has a slash or a dot in it is a file. Data and errors as of cv_lab_experiment_parse(), and
 * CV_ERR_INVALID with what may have been meant.
 */
CV_MUST_USE enum cv_err cv_lab_preset_open(const char *name, const char *data, struct cv_lab_experiment *ret,
                                           struct cv_why *why);

#endif
