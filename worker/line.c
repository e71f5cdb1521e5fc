/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/line.h"

#include <stdlib.h>

#include "common/base/array.h"

void cv_line_fini(struct cv_line *line) {
  free(line->entry);
  *line = (struct cv_line){0};
}

static struct cv_line_entry *slot(const struct cv_line *line, uint32_t i) {
  /* CV_ARRAY_RING_ROOM keeps the capacity a power of two. */
  return &line->entry[(line->head + i) & (line->cap - 1)];
}

enum cv_err cv_line_push(struct cv_line *line, uint64_t worker, uint64_t due_ms) {
  CV_TRY(CV_ARRAY_RING_ROOM(line->entry, line->head, line->count, line->cap));
  *slot(line, line->count++) = (struct cv_line_entry){.worker = worker, .due_ms = due_ms};
  return CV_OK;
}

const struct cv_line_entry *cv_line_at(const struct cv_line *line, uint32_t i) {
  CV_REQUIRE(i < line->count);
  return slot(line, i);
}

uint64_t cv_line_pop(struct cv_line *line) {
  CV_REQUIRE(line->count > 0);
  uint64_t worker = slot(line, 0)->worker;
  line->head = (line->head + 1) & (line->cap - 1);
  line->count--;
  return worker;
}

bool cv_line_remove(struct cv_line *line, uint64_t worker) {
  /* The broker serves its queue in order, so an answered worker is near the front. */
  uint32_t at = 0;
  while (at < line->count && slot(line, at)->worker != worker) {
    at++;
  }
  if (at == line->count) {
    return false;
  }
  /* Close the gap by moving the entries before it back by one, then drop the front. */
  for (; at > 0; at--) {
    *slot(line, at) = *slot(line, at - 1);
  }
  (void)cv_line_pop(line);
  return true;
}
