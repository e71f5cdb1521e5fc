/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/width.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

/* The width of the character at `at`, and the number of its bytes. A byte of no character takes a column. */
static size_t width_of(const char *at, size_t left, size_t *ret_n) {
  utf8proc_int32_t c;
  *ret_n = 1;
  if ((unsigned char)*at < 0x80) {
    return 1;
  }
  utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)at, (utf8proc_ssize_t)left, &c);
  if (n <= 0) {
    return 1;
  }
  *ret_n = (size_t)n;
  return (size_t)utf8proc_charwidth(c);
}

size_t cv_width_of(const char *text) {
  size_t columns = 0;
  for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
    columns += width_of(text, left, &n);
  }
  return columns;
}

size_t cv_width_fit(const char *text, size_t columns) {
  size_t at = 0;
  for (size_t left = strlen(text), n; left > 0; at += n, left -= n) {
    size_t width = width_of(text + at, left, &n);
    if (width > columns) {
      break;
    }
    columns -= width;
  }
  return at;
}

struct cv_text_shown cv_width_cut(const char *name, size_t columns, const char *mark) {
  char cut[CV_TEXT_SHOWN + 1];
  bool is_cut = cv_width_of(name) > columns;
  (void)snprintf(cut, sizeof(cut), "%.*s%s", (int)cv_width_fit(name, columns - is_cut), name, is_cut ? mark : "");
  return cv_text_shown(cut);
}
