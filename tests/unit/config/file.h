/* SPDX-License-Identifier: Apache-2.0 */
/* A file with a given text, and the message about it without its path. */
#ifndef CV_TESTS_CONFIG_FILE_H
#define CV_TESTS_CONFIG_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/base/err.h"
#include "tests/support/own_folder.h"

static inline const char *write_bytes(const char *text, size_t n) {
  const char *path = folder_file(&folder, "file.yaml");
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
  return path;
}

static inline const char *write_text(const char *text) {
  return write_bytes(text, strlen(text));
}

/* The message must be "<folder>/file.yaml<rest>", one line. */
static inline void assert_message(const struct cv_why *why, const char *rest) {
  char want[sizeof(why->text)];
  (void)snprintf(want, sizeof(want), "%s%s", folder_file(&folder, "file.yaml"), rest);
  assert_string_equal(why->text, want);
  assert_null(strchr(why->text, '\n'));
}

#endif
