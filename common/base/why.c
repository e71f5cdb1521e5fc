/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of err.h. Apart from err.c, so that text.c may use err.h and the messages may use text.h. */
#include <errno.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/text.h"

void cv_why_vset(struct cv_why *why, const char *fmt, va_list args) {
  int before = errno; /* a caller's error code may depend on it, and is evaluated after the message */
  if (why != NULL) {
    cv_text_vprint(why->text, sizeof(why->text), fmt, args);
  }
  errno = before;
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
