/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/escape.h"

#include <stdint.h>
#include <stdio.h>

#include "common/base/text.h"

/* The code point of a character that is to be escaped, and its length; 0: none. */
static uint32_t escaped(const char *at, size_t left, size_t *ret_n) {
  size_t length = cv_text_char(at, left);
  uint8_t first = (uint8_t)at[0];
  *ret_n = length == 0 ? 1 : length;
  if (first == 0x7f) {
    return first;
  }
  if (first == 0xc2 && length == 0 && left > 1) { /* a control character of two bytes */
    *ret_n = 2;
    return (uint8_t)at[1];
  }
  uint32_t point = length < 2 ? 0 : cv_text_point(at, length);
  return cv_text_turns(point) || cv_text_is_hidden(point) ? point : 0;
}

static void put(uint32_t point, FILE *to) {
  if (point <= 0xffff) {
    (void)fprintf(to, "\\u%04x", (unsigned)point);
  } else {
    uint32_t rest = point - 0x10000;
    (void)fprintf(to, "\\u%04x\\u%04x", (unsigned)(0xd800 + (rest >> 10)), (unsigned)(0xdc00 + (rest & 0x3ff)));
  }
}

int cv_escape_json(const char *bytes, size_t n, void *stream) {
  FILE *to = stream;
  size_t written = 0;
  for (size_t i = 0, length; i < n; i += length) {
    uint32_t point = escaped(bytes + i, n - i, &length);
    if (point != 0) {
      (void)fwrite(bytes + written, 1, i - written, to);
      put(point, to);
      written = i + length;
    }
  }
  (void)fwrite(bytes + written, 1, n - written, to);
  return ferror(to) == 0 ? 0 : -1;
}
