/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/column.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

static enum cv_err missing(const struct cv_columns *columns, const char *name, struct cv_why *why) {
  char list[240] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < columns->count && used < sizeof(list); i++) {
    used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i == 0 ? "" : ", ",
                             cv_text_piece(columns->name(columns->data, i)).text);
  }
  /* A file may have thousands of columns; the message says that it names only some. */
  if (used >= sizeof(list)) {
    (void)snprintf(list + sizeof(list) - 5, 5, " ...");
  }
  return cv_fail(why, CV_ERR_INVALID, "no column \"%s\"; the columns are %s", name, list);
}

enum cv_err cv_column_find(const struct cv_columns *columns, const char *name, uint32_t *ret, struct cv_why *why) {
  uint32_t found = columns->count;
  for (uint32_t i = 0; i < columns->count; i++) {
    if (strcmp(columns->name(columns->data, i), name) != 0) {
      continue;
    }
    if (found != columns->count) {
      return cv_fail(why, CV_ERR_INVALID, "two columns are called \"%s\"; expected one", name);
    }
    found = i;
  }
  if (found == columns->count) {
    return missing(columns, name, why);
  }
  *ret = found;
  return CV_OK;
}
