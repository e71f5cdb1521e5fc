/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/closed.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

void cv_closed_fini(struct cv_closed *closed) {
  free(closed->range);
  *closed = (struct cv_closed){0};
}

/* The index of the first range that ends at or after `number`; `count` if there is none. */
static size_t find(const struct cv_closed *closed, uint64_t number) {
  /* Brokers number campaigns in order and end them in nearly that order, so a few ranges hold all numbers. */
  size_t low = 0, high = closed->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (closed->range[middle].last < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool cv_closed_has(const struct cv_closed *closed, uint64_t number) {
  size_t at = find(closed, number);
  return at < closed->count && closed->range[at].first <= number;
}

static enum cv_err insert(struct cv_closed *closed, size_t at, uint64_t number) {
  CV_TRY(CV_ARRAY_ROOM(closed->range, closed->count + 1, closed->cap));
  memmove(&closed->range[at + 1], &closed->range[at], (closed->count - at) * sizeof(closed->range[0]));
  closed->range[at] = (struct cv_closed_range){.first = number, .last = number};
  closed->count++;
  return CV_OK;
}

static void drop(struct cv_closed *closed, size_t at) {
  closed->count--;
  memmove(&closed->range[at], &closed->range[at + 1], (closed->count - at) * sizeof(closed->range[0]));
}

enum cv_err cv_closed_add(struct cv_closed *closed, uint64_t number) {
  size_t at = find(closed, number);
  struct cv_closed_range *next = at < closed->count ? &closed->range[at] : NULL;
  struct cv_closed_range *before = at > 0 ? &closed->range[at - 1] : NULL;
  if (next != NULL && next->first <= number) {
    return CV_OK;
  }
  /* The number may join the range before it, the range after it, or close the gap between both. */
  bool follows = before != NULL && before->last + 1 == number, leads = next != NULL && number + 1 == next->first;
  if (follows && leads) {
    before->last = next->last;
    drop(closed, at);
  } else if (follows) {
    before->last = number;
  } else if (leads) {
    next->first = number;
  } else {
    return insert(closed, at, number);
  }
  return CV_OK;
}
