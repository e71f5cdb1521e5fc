/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash tables: uthash, with a hash function that clang compiles without a warning, and with CV_ERR_NOMEM instead of an
 * abort when memory runs out. Add elements with CV_TABLE_ADD and CV_TABLE_ADD_TEXT only.
 */
#ifndef CV_BASE_TABLE_H
#define CV_BASE_TABLE_H

#include "common/base/err.h"

#define HASH_FUNCTION     HASH_FNV
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Adds `element` under its field `key`, or under the text in that field. On CV_ERR_NOMEM the table is unchanged. */
#define CV_TABLE_ADD(table, key, element)                      \
  __extension__({                                              \
    HASH_ADD(hh, table, key, sizeof((element)->key), element); \
    (element)->hh.tbl == NULL ? CV_ERR_NOMEM : CV_OK;          \
  })
#define CV_TABLE_ADD_TEXT(table, key, element)        \
  __extension__({                                     \
    HASH_ADD_STR(table, key, element);                \
    (element)->hh.tbl == NULL ? CV_ERR_NOMEM : CV_OK; \
  })

/* Empties the table and passes each element to `release`, which may free it. Elements link by the field `hh`. */
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
