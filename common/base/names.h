/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of items. A list of names is an array of pointers and, behind it in the same block of memory, the texts: free()
 * releases all of it, and a hundred thousand short names take a few megabytes.
 */
#ifndef CV_BASE_NAMES_H
#define CV_BASE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

/* The longest name of an item, with its terminator. */
enum { CV_ITEM_BYTES = 256 };

/* Collects names one by one; all zero is empty. */
struct cv_names {
  uint32_t count;
  struct cv_buf texts; /* private */
};

/* One line of an item's name: printable UTF-8 (text.h), 1 .. CV_ITEM_BYTES - 1 bytes. */
bool cv_name_is_item(const char *text);

/* Appends a copy of the text. If memory runs out, cv_names_take() says so. */
void cv_names_add(struct cv_names *names, const char *text);
/* Returns the collected names, which the caller frees, and empties the collection. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_names_take(struct cv_names *names, const char ***ret);
void cv_names_fini(struct cv_names *names);
/* A copy of n names, which the caller frees; NULL of NULL. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_names_copy(const char *const *from, uint32_t n, const char ***ret);

#endif
