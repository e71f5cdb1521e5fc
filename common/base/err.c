/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/err.h"

#include <stdio.h>
#include <stdlib.h>

const char *cv_err_text(enum cv_err err) {
  static const char *const text[] = {[CV_OK] = "no error",
#define CV_ERR_ENTRY(name, words) [name] = (words),
                                     CV_ERR_TABLE(CV_ERR_ENTRY)
#undef CV_ERR_ENTRY
  };
  return (size_t)err < CV_COUNT(text) ? text[err] : "unknown error";
}

enum cv_err cv_unless_failed(bool *failed, enum cv_err err, struct cv_why *why) {
  /* Never cleared: after a change that was half made no later success means anything. */
  *failed = *failed || err == CV_ERR_NOMEM;
  return *failed ? cv_fail(why, CV_ERR_NOMEM, "out of memory") : err;
}

void cv_require_failed(const char *condition, const char *file, int line) {
  (void)fprintf(stderr, "%s:%d: internal error: %s does not hold\n", file, line, condition);
  abort();
}
