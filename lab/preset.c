/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/preset.h"

#include <string.h>

#include "common/base/err.h"
#include "common/config/value.h"

const struct cv_lab_preset *cv_lab_preset_find(const char *name) {
  for (const struct cv_lab_preset *preset = cv_lab_presets; preset->name != NULL; preset++) {
    if (strcmp(preset->name, name) == 0) {
      return preset;
    }
  }
  return NULL;
}

const char *cv_lab_preset_nearest(const char *name) {
  enum { MOST = 128 };
  const char *names[MOST];
  size_t n = 0;
  for (const struct cv_lab_preset *preset = cv_lab_presets; preset->name != NULL && n < MOST; preset++) {
    names[n++] = preset->name;
  }
  return cv_value_nearest(name, names, n);
}
