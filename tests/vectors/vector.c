/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/vectors/vector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_DIGITS = 18, FILE_END = 1 << 26 };

static bool read_file(const char *path, struct cv_buf *ret, struct cv_why *why) {
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    cv_why_set(why, "cannot be opened: %s", strerror(errno));
    return false;
  }
  char some[4096];
  size_t n = 0;
  while (ret->len < FILE_END && (n = fread(some, 1, sizeof(some), file)) > 0) {
    cv_buf_put(ret, some, n);
  }
  bool failed = ferror(file) != 0;
  (void)fclose(file);
  if (failed || ret->len >= FILE_END || !cv_buf_ok(ret)) {
    cv_why_set(why, "cannot be read; expected a file below %d bytes", FILE_END);
    return false;
  }
  return true;
}

/* Writes the text with long whole numbers in quotation marks. */
static void quote_long_numbers(const char *text, size_t n, struct cv_buf *ret) {
  bool in_string = false;
  for (size_t i = 0; i < n; i++) {
    size_t digits = 0;
    while (!in_string && i + digits < n && text[i + digits] >= '0' && text[i + digits] <= '9') {
      digits++;
    }
    if (digits > LONG_DIGITS) {
      cv_buf_put_u8(ret, '"');
      cv_buf_put(ret, text + i, digits);
      cv_buf_put_u8(ret, '"');
    } else {
      cv_buf_put(ret, text + i, digits > 0 ? digits : 1);
    }
    if (digits > 0) {
      i += digits - 1;
    } else if (in_string && text[i] == '\\' && i + 1 < n) {
      cv_buf_put_u8(ret, (uint8_t)text[++i]);
    } else if (text[i] == '"') {
      in_string = !in_string;
    }
  }
}

json_t *vector_read(const char *path, struct cv_why *why) {
  struct cv_buf file = {0}, text = {0};
  json_t *root = NULL;
  if (read_file(path, &file, why)) {
    json_error_t error;
    quote_long_numbers((const char *)file.data, file.len, &text);
    root = json_loadb(text.len > 0 ? (const char *)text.data : "", text.len, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
      cv_why_set(why, "line %d, column %d: %s; expected a JSON object", error.line, error.column, error.text);
    } else if (!json_is_object(root)) {
      cv_why_set(why, "is not an object; expected a JSON object");
      json_decref(root);
      root = NULL;
    }
  }
  cv_buf_fini(&file);
  cv_buf_fini(&text);
  return root;
}

static int digit_of(char c) {
  static const char digits[] = "0123456789abcdef";
  const char *at = c != '\0' ? strchr(digits, c) : NULL;
  return at != NULL ? (int)(at - digits) : -1;
}

bool vector_hex(const json_t *value, const char *name, struct cv_buf *ret, struct cv_why *why) {
  const char *text = json_string_value(value);
  size_t n = text != NULL ? json_string_length(value) : 1;
  cv_buf_clear(ret);
  for (size_t i = 0; i + 1 < n; i += 2) {
    int high = digit_of(text[i]), low = digit_of(text[i + 1]);
    if (high < 0 || low < 0) {
      n = 1;
      break;
    }
    cv_buf_put_u8(ret, (uint8_t)(high << 4 | low));
  }
  if (n % 2 != 0) {
    cv_why_set(why, "%s: missing or malformed; expected an even number of hexadecimal digits", name);
  }
  return n % 2 == 0;
}

bool vector_number(const json_t *value, const char *name, uint64_t *ret, struct cv_why *why) {
  if (json_is_integer(value) && json_integer_value(value) >= 0) {
    *ret = (uint64_t)json_integer_value(value);
    return true;
  }
  const char *text = json_string_value(value);
  if (text != NULL && text[0] != '\0' && strspn(text, "0123456789") == strlen(text)) {
    errno = 0;
    *ret = strtoull(text, NULL, 10);
    if (errno == 0) {
      return true;
    }
  }
  cv_why_set(why, "%s: missing or malformed; expected a whole number from 0 to 2^64 - 1", name);
  return false;
}

bool vector_same(const json_t *value, const char *name, const uint8_t *bytes, size_t n, struct cv_why *why) {
  struct cv_buf expected = {0};
  bool same = false;
  if (vector_hex(value, name, &expected, why)) {
    same = expected.len == n && (n == 0 || memcmp(expected.data, bytes, n) == 0);
    if (!same) {
      size_t at = 0;
      while (at < n && at < expected.len && expected.data[at] == bytes[at]) {
        at++;
      }
      cv_why_set(why, "%s: %zu bytes that differ from byte %zu on; expected the file's %zu bytes", name, n, at,
                 expected.len);
    }
  }
  cv_buf_fini(&expected);
  return same;
}

enum outcome vector_replay(const char *name, json_t *root, struct cv_why *why) {
  if (strncmp(name, "XofTurboShake128", strlen("XofTurboShake128")) == 0) {
    return vector_replay_xof(root, why);
  }
  return vector_replay_prio(name, root, why);
}
