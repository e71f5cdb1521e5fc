/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a name was typed in a data file. Names are equal by their normal form (normal.h), and its owner should know where
 * two that look different, or only seem the same, are one.
 */
#ifndef CV_WORKER_SPELLING_H
#define CV_WORKER_SPELLING_H

#include <stdint.h>
#include <string.h>

#include "common/base/names.h"
#include "common/base/normal.h"

struct cv_spelling {
  uint64_t first, again; /* the rows where it was typed first, and first otherwise; 0: always alike */
  const char *typed;     /* at first; NULL: in its normal form */
};

/* The bytes to allocate for a name and, behind it, for how it was typed. */
static inline size_t cv_spelling_bytes(const char *name, const char *typed) {
  return strlen(name) + strlen(typed) + 2;
}

/* Writes both to `to`. */
static inline void cv_spelling_begin(struct cv_spelling *ret, const char *name, const char *typed, uint64_t at,
                                     char *to) {
  char *behind = to + strlen(name) + 1;
  memcpy(to, name, strlen(name) + 1);
  memcpy(behind, typed, strlen(typed) + 1);
  *ret = (struct cv_spelling){.first = at, .typed = strcmp(name, typed) == 0 ? NULL : behind};
}

/* The name was met again. */
static inline void cv_spelling_meet(struct cv_spelling *spelling, const char *name, const char *typed, uint64_t at) {
  if (spelling->again == 0 && strcmp(spelling->typed == NULL ? name : spelling->typed, typed) != 0) {
    spelling->again = at;
  }
}
/* The same, typed in its normal form. */
static inline void cv_spelling_meet_normal(struct cv_spelling *spelling, uint64_t at) {
  if (spelling->again == 0 && spelling->typed != NULL) {
    spelling->again = at;
  }
}

#endif
