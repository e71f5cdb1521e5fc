/* SPDX-License-Identifier: Apache-2.0 */
/* Hash tables: uthash, with the one of its hash functions that clang compiles without a warning. */
#ifndef CV_BASE_TABLE_H
#define CV_BASE_TABLE_H

#define HASH_FUNCTION HASH_FNV
#include <uthash.h>

#endif
