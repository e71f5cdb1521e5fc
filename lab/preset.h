/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments that have a name: one file each in lab/presets/, which the build puts into the program. */
#ifndef CV_LAB_PRESET_H
#define CV_LAB_PRESET_H

#include <stddef.h>

struct cv_lab_preset {
  const char *name;
  const char *text; /* the file */
};

/* Ends with a row without a name. */
extern const struct cv_lab_preset cv_lab_presets[];

/* NULL if there is none of that name. */
const struct cv_lab_preset *cv_lab_preset_find(const char *name);
/* The name most like this one: what a person may have meant; NULL if none is like it. */
const char *cv_lab_preset_nearest(const char *name);

#endif
