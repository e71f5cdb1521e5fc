/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/classes.h"

#include <string.h>

#include "common/base/nearest.h"

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

enum cv_err cv_policy_unknown(const char *name, struct cv_why *why) {
  const char *names[CV_COUNT(table)];
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    names[i] = table[i]->name;
  }
  return cv_nearest_fail(why, "policy", name, names, CV_COUNT(table));
}
