/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/experiment/preset.h"

#include <string.h>

#include "common/base/err.h"
#include "common/base/nearest.h"
#include "common/base/text.h"
#include "lab/experiment/read.h"

const struct cv_lab_preset *cv_lab_preset_find(const char *name) {
  for (const struct cv_lab_preset *preset = cv_lab_presets; preset->name != NULL; preset++) {
    if (strcmp(preset->name, name) == 0) {
      return preset;
    }
  }
  return NULL;
}

/* The preset name most similar to `name`; NULL if none is similar. */
static const char *nearest_to(const char *name) {
  enum { MOST = 128 };
  const char *names[MOST];
  size_t n = 0;
  for (const struct cv_lab_preset *preset = cv_lab_presets; preset->name != NULL && n < MOST; preset++) {
    names[n++] = preset->name;
  }
  return cv_nearest(name, names, n);
}

enum cv_err cv_lab_preset_open(const char *name, const char *data, struct cv_lab_experiment *ret, struct cv_why *why) {
  const struct cv_lab_preset *preset = cv_lab_preset_find(name);
  if (preset != NULL) {
    return cv_lab_experiment_parse(name, preset->text, strlen(preset->text), data, ret, why);
  }
  /* No preset's name has a slash or a dot, so a mistyped preset gets a suggestion and not "No such file". */
  if (strpbrk(name, "/.") != NULL) {
    return cv_lab_experiment_load(name, data, ret, why);
  }
  const char *nearest = nearest_to(name);
  return nearest == NULL
             ? cv_fail(why, CV_ERR_INVALID,
                       "unknown experiment %s; expected a file or a name that \"crowdveil-lab list\" prints",
                       cv_text_quote(name).text)
             : cv_fail(why, CV_ERR_INVALID, "unknown experiment %s; did you mean \"%s\"?", cv_text_quote(name).text,
                       nearest);
}
