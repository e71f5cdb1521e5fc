/* SPDX-License-Identifier: Apache-2.0 */
/* Workers in a line: first come, first out; a worker may also be taken from its middle. */
#ifndef CV_WORKER_LINE_H
#define CV_WORKER_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct cv_line_entry {
  uint64_t worker;
  uint64_t due_ms;
};

struct cv_line {
  struct cv_line_entry *entry; /* ring */
  uint32_t cap, head, count;
};

void cv_line_fini(struct cv_line *line);
/* At the back. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_line_push(struct cv_line *line, uint64_t worker, uint64_t due_ms);
/* The i-th from the front. */
const struct cv_line_entry *cv_line_at(const struct cv_line *line, uint32_t i);
/* The worker at the front; there is one. */
uint64_t cv_line_pop(struct cv_line *line);
/* False if it is not in the line. Quick at the front. */
bool cv_line_remove(struct cv_line *line, uint64_t worker);

#endif
