/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/privatizer/privatizer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "worker/privatizer/classes.h"

static const struct cv_privatizer_class *const table[] = {
    &cv_privatizer_none,
};

const struct cv_privatizer_class *cv_privatizer_at(size_t index) {
  return index < CV_COUNT(table) ? table[index] : NULL;
}

const struct cv_privatizer_class *cv_privatizer_find(const char *name) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(table[i]->name, name) == 0) {
      return table[i];
    }
  }
  return NULL;
}

enum cv_err cv_privatizer_new(const struct cv_choice *choice, uint32_t arms, struct cv_privatizer **ret,
                              struct cv_why *why) {
  const struct cv_privatizer_class *class = cv_privatizer_find(choice->name);
  if (class == NULL) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "privatizer %s is unknown", choice->name);
  }
  struct cv_params params = choice->params;
  const struct cv_param *bad = NULL;
  enum cv_err err = cv_params_check(&params, class->rules, class->rule_count, &bad, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "privatizer %s", class->name);
    return err;
  }
  struct cv_privatizer *privatizer = calloc(1, class->size);
  if (privatizer == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory for privatizer %s", class->name);
  }
  *privatizer = (struct cv_privatizer){.class = class, .epsilon_micro = CV_EPSILON_NONE, .low = 0, .high = CV_GRID};
  err = class->prepare == NULL ? CV_OK : class->prepare(privatizer, &params, arms, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "privatizer %s", class->name);
    cv_privatizer_free(privatizer);
    return err;
  }
  *ret = privatizer;
  return CV_OK;
}

void cv_privatizer_free(struct cv_privatizer *privatizer) {
  free(privatizer);
}
