/* SPDX-License-Identifier: Apache-2.0 */
/* The presets, experiments with a name: one file each in lab/experiment/presets/, embedded into the program. */
#ifndef CV_LAB_PRESET_H
#define CV_LAB_PRESET_H

#include "lab/experiment/experiment.h"

struct cv_lab_preset {
  const char *name;
  const char *text; /* the file */
};

/* The last row has no name. */
extern const struct cv_lab_preset cv_lab_presets[];

/* The preset of that name; NULL if there is none. */
const struct cv_lab_preset *cv_lab_preset_find(const char *name);

/*
 * Opens a preset by name, or a file: a name with a slash or a dot is a file. `data` and errors as in
 * cv_lab_experiment_parse(); CV_ERR_INVALID for an unknown name, with the most similar one if there is one.
 */
CV_MUST_USE enum cv_err cv_lab_preset_open(const char *name, const char *data, struct cv_lab_experiment *ret,
                                           struct cv_why *why);

#endif
