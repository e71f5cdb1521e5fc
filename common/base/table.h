/* SPDX-License-Identifier: Apache-2.0 */
/* Hash tables: uthash with a hash function of ours (its own does not compile without warnings under clang). */
#ifndef CV_BASE_TABLE_H
#define CV_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/rng.h"

static inline unsigned cv_table_hash(const void *key, size_t bytes) {
  const uint8_t *at = key;
  uint64_t hash = bytes;
  while (bytes > 0) {
    uint64_t word = 0;
    size_t n = bytes < sizeof(word) ? bytes : sizeof(word);
    memcpy(&word, at, n);
    hash = cv_mix64(hash + UINT64_C(0x9e3779b97f4a7c15) + word);
    at += n;
    bytes -= n;
  }
  return (unsigned)hash;
}

#define HASH_FUNCTION(key, bytes, hash) ((hash) = cv_table_hash((key), (bytes)))
#include <uthash.h>

#endif
