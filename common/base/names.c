/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/names.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

bool cv_name_is_item(const char *text) {
  size_t n = strnlen(text, CV_ITEM_BYTES);
  return n > 0 && n < CV_ITEM_BYTES && cv_text_is_clean(text, n);
}

void cv_names_add(struct cv_names *names, const char *text) {
  cv_buf_put(&names->texts, text, strlen(text) + 1);
  names->count++;
}

enum cv_err cv_names_take(struct cv_names *names, const char ***ret) {
  const size_t pointers = names->count * sizeof(**ret);
  const char **list = cv_buf_ok(&names->texts) ? malloc(pointers + names->texts.len + 1) : NULL;
  if (list == NULL) {
    return CV_ERR_NOMEM;
  }
  char *text = (char *)list + pointers;
  if (names->texts.len > 0) {
    memcpy(text, names->texts.data, names->texts.len);
  }
  for (uint32_t i = 0; i < names->count; i++) {
    list[i] = text;
    text += strlen(text) + 1;
  }
  cv_names_fini(names);
  *ret = list;
  return CV_OK;
}

void cv_names_fini(struct cv_names *names) {
  cv_buf_fini(&names->texts);
  *names = (struct cv_names){0};
}

enum cv_err cv_names_copy(const char *const *from, uint32_t n, const char ***ret) {
  struct cv_names names = {0};
  if (from == NULL) {
    *ret = NULL;
    return CV_OK;
  }
  for (uint32_t i = 0; i < n; i++) {
    cv_names_add(&names, from[i]);
  }
  enum cv_err err = cv_names_take(&names, ret);
  cv_names_fini(&names);
  return err;
}
