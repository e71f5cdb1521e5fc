/* SPDX-License-Identifier: Apache-2.0 */
/* Files in a folder of the test. Include after cmocka.h and folder.h. */
#ifndef CV_TESTS_WORKER_DATA_H
#define CV_TESTS_WORKER_DATA_H

#include "common/base/err.h"
#include "tests/support/folder.h"

static inline const char *write_bytes(const struct folder *folder, const char *name, const char *bytes, size_t n) {
  const char *path = folder_file(folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
  return path;
}

static inline const char *write_text(const struct folder *folder, const char *name, const char *text) {
  return write_bytes(folder, name, text, strlen(text));
}

/* `why` is the path of `name`, then `rest`. */
static inline void assert_says(const struct cv_why *why, const struct folder *folder, const char *name,
                               const char *rest) {
  char line[700];
  (void)snprintf(line, sizeof(line), "%s/%s%s", folder->path, name, rest);
  assert_string_equal(why->text, line);
}

#endif
