/* SPDX-License-Identifier: Apache-2.0 */
/* Hash tables: uthash, with the one of its hash functions that clang compiles without a warning. */
#ifndef CV_BASE_TABLE_H
#define CV_BASE_TABLE_H

#define HASH_FUNCTION HASH_FNV
#include <uthash.h>

/* Leaves the table empty and gives each element, which hangs in it by `hh`, to `release`, which may free it. */
#define CV_TABLE_DRAIN(table, release)                         \
  do {                                                         \
    __typeof__(table) cv_drain_at = (table), cv_drain_next;    \
    HASH_CLEAR(hh, (table));                                   \
    for (; cv_drain_at != NULL; cv_drain_at = cv_drain_next) { \
      cv_drain_next = cv_drain_at->hh.next;                    \
      release(cv_drain_at);                                    \
    }                                                          \
  } while (0)

#endif
