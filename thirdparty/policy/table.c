/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/classes.h"

#include <string.h>

#define ADDRESS(file, class) &cv_policy_##class,
static const struct cv_policy_class *const table[] = {CV_POLICIES(ADDRESS)};

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
