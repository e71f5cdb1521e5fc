/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON into a buffer, one value after the other; the caller keeps the order of keys and values. */
#ifndef CV_PAGE_JOT_H
#define CV_PAGE_JOT_H

#include "common/base/buf.h"

/* Begin with {.out = buffer}. The buffer is the caller's, who asks cv_buf_ok() at the end. */
struct cv_jot {
  struct cv_buf *out;
  bool follows; /* a value stands before: a comma comes first */
};

/* `mark` is one of { [ and then } ]. */
void cv_jot_open(struct cv_jot *json, char mark);
void cv_jot_close(struct cv_jot *json, char mark);
/* A value must follow. `key` needs no escapes. */
void cv_jot_key(struct cv_jot *json, const char *key);
/* NULL is null. The text is UTF-8; what is not clean text (text.h) becomes '?'. */
void cv_jot_text(struct cv_jot *json, const char *text);
void cv_jot_whole(struct cv_jot *json, uint64_t value);
/* The shortest decimal number that reads back as the same double; null if it is not finite. */
void cv_jot_number(struct cv_jot *json, double value);
void cv_jot_bool(struct cv_jot *json, bool value);
void cv_jot_null(struct cv_jot *json);

#endif
