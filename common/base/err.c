/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

const char *cv_err_text(enum cv_err err) {
  static const char *const text[] = {[CV_OK] = "no error",
#define CV_ERR_ENTRY(name, words) [name] = (words),
                                     CV_ERR_TABLE(CV_ERR_ENTRY)
#undef CV_ERR_ENTRY
  };
  return (size_t)err < CV_COUNT(text) ? text[err] : "unknown error";
}

void cv_why_vset(struct cv_why *why, const char *fmt, va_list args) {
  if (why != NULL) {
    cv_text_vprint(why->text, sizeof(why->text), fmt, args);
  }
}

void cv_why_set(struct cv_why *why, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  cv_why_vset(why, fmt, args);
  va_end(args);
}

void cv_why_because(struct cv_why *why, const char *reason) {
  if (why != NULL) {
    size_t used = strlen(why->text);
    cv_text_print(why->text + used, sizeof(why->text) - used, ": %s", reason);
  }
}

void cv_why_prefix(struct cv_why *why, const char *fmt, ...) {
  if (why == NULL) {
    return;
  }
  struct cv_why old = *why;
  va_list args;
  va_start(args, fmt);
  cv_why_vset(why, fmt, args);
  va_end(args);
  cv_why_because(why, old.text);
}

enum cv_err cv_unless_failed(bool *failed, enum cv_err err, struct cv_why *why) {
  *failed = *failed || err == CV_ERR_NOMEM;
  return *failed ? cv_fail(why, CV_ERR_NOMEM, "out of memory") : err;
}

void cv_require_failed(const char *condition, const char *file, int line) {
  (void)fprintf(stderr, "%s:%d: internal error: %s does not hold\n", file, line, condition);
  abort();
}
