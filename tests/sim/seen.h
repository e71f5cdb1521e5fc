/* SPDX-License-Identifier: Apache-2.0 */
/* A set of non-zero numbers. All zero is an empty set. */
#ifndef CV_SIM_SEEN_H
#define CV_SIM_SEEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/err.h"
#include "common/base/rng.h"

struct seen {
  uint64_t *slot;
  size_t n, cap; /* a power of two */
};

static inline void seen_fini(struct seen *seen) {
  free(seen->slot);
  *seen = (struct seen){0};
}

/* False if it was present already. */
static inline bool seen_add(struct seen *seen, uint64_t number) {
  if (2 * seen->n >= seen->cap) {
    struct seen more = {.cap = seen->cap == 0 ? 256 : 2 * seen->cap};
    more.slot = calloc(more.cap, sizeof(*more.slot));
    CV_REQUIRE(more.slot != NULL);
    for (size_t i = 0; i < seen->cap; i++) {
      (void)(seen->slot[i] != 0 && seen_add(&more, seen->slot[i]));
    }
    free(seen->slot);
    *seen = more;
  }
  size_t at = cv_mix64(number) & (seen->cap - 1);
  for (; seen->slot[at] != 0; at = (at + 1) & (seen->cap - 1)) {
    if (seen->slot[at] == number) {
      return false;
    }
  }
  seen->slot[at] = number;
  seen->n++;
  return true;
}

static inline bool seen_has(const struct seen *seen, uint64_t number) {
  size_t at = cv_mix64(number) & (seen->cap - 1);
  while (seen->cap > 0 && seen->slot[at] != 0 && seen->slot[at] != number) {
    at = (at + 1) & (seen->cap - 1);
  }
  return seen->cap > 0 && seen->slot[at] == number;
}

#endif
