/* SPDX-License-Identifier: Apache-2.0 */
/* A first-in, first-out queue of workers, from which any worker can be removed. */
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
  size_t cap, head;
  uint32_t count;
};

void cv_line_fini(struct cv_line *line);
/* Appends at the back. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_line_push(struct cv_line *line, uint64_t worker, uint64_t due_ms);
/* The i-th entry from the front; i < count. */
const struct cv_line_entry *cv_line_at(const struct cv_line *line, uint32_t i);
/* Removes and returns the worker at the front; the line must not be empty. */
uint64_t cv_line_pop(struct cv_line *line);
/* Removes a worker; false if it is not in the line. Costs O(its distance from the front). */
bool cv_line_remove(struct cv_line *line, uint64_t worker);

#endif
