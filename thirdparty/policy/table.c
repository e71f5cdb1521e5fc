/* SPDX-License-Identifier: Apache-2.0 */
/* Every policy there is: a new one is a file and a line here. */
#include <string.h>

#include "thirdparty/policy/policy.h"
#include "thirdparty/policy/ppar.h"

static const struct cv_policy_class *const table[] = {
    &cv_policy_ppar,
};

const struct cv_policy_class *cv_policy_at(size_t index) {
  return index < CV_COUNT(table) ? table[index] : NULL;
}

const struct cv_policy_class *cv_policy_find(const char *name) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(table[i]->name, name) == 0) {
      return table[i];
    }
  }
  return NULL;
}
