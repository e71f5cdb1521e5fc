/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines between a worker and a program that gives scores: a question is a line of JSON, an answer a number, an
 * object with a score, or a refusal. docs/people.md describes them.
 */
#ifndef CV_WORKER_EXCHANGE_H
#define CV_WORKER_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

enum { CV_EXCHANGE_LINE_BYTES = 4096 /* longest answer */ };

struct cv_exchange_question {
  uint64_t id, worker;
  uint32_t item;        /* from 0 */
  const char *name;     /* of the item */
  const char *campaign; /* its name */
};

struct cv_exchange_answer {
  bool has_id;
  uint64_t id;
  bool declines; /* else there is a score */
  int64_t score; /* in grid units */
};

/* Appends the question's line to `out`; the caller asks cv_buf_ok(). */
void cv_exchange_ask(const struct cv_exchange_question *question, struct cv_buf *out);
/*
 * Reads a line of `n` bytes without its end:
 *   0.75 | {"score": 0.75} | decline | {"decline": true}     in an object also "id"; other keys are skipped
 * CV_ERR_FORMAT with what was expected. The reason never has the text: it could contain a score.
 */
CV_MUST_USE enum cv_err cv_exchange_read(const char *line, size_t n, struct cv_exchange_answer *ret,
                                         struct cv_why *why);

#endif
