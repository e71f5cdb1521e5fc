/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/experiment/preset.h"

#include <string.h>

#include "common/base/err.h"
#include "common/base/text.h"
#include "common/config/value.h"
#include "lab/experiment/read.h"

const struct cv_lab_preset *cv_lab_preset_find(const char *name) {
  for (const struct cv_lab_preset *preset = cv_lab_presets; preset->name != NULL; preset++) {
    if (strcmp(preset->name, name) == 0) {
      return preset;
    }
  }
  return NULL;
}

/* NULL if no name is like it. */
static const char *nearest_to(const char *name) {
  enum { MOST = 128 };
  const char *names[MOST];
  size_t n = 0;
  for (const struct cv_lab_preset *preset = cv_lab_presets; preset->name != NULL && n < MOST; preset++) {
    names[n++] = preset->name;
  }
  return cv_value_nearest(name, names, n);
}

enum cv_err cv_lab_preset_open(const char *name, const char *data, struct cv_lab_experiment *ret, struct cv_why *why) {
  const struct cv_lab_preset *preset = cv_lab_preset_find(name);
  if (preset != NULL) {
    return cv_lab_experiment_parse(name, preset->text, strlen(preset->text), data, ret, why);
  }
  if (strpbrk(name, "/.") != NULL) {
    return cv_lab_experiment_load(name, data, ret, why);
  }
  const char *nearest = nearest_to(name);
  return nearest == NULL
             ? cv_fail(why, CV_ERR_INVALID,
                       "%s is no experiment; expected a file or a name that `crowdveil-lab list` knows",
                       cv_text_quote(name).text)
             : cv_fail(why, CV_ERR_INVALID, "%s is no experiment; did you mean %s?", cv_text_quote(name).text, nearest);
}
