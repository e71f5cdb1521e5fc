/* SPDX-License-Identifier: Apache-2.0 */
/* A digest function that pure code takes as an argument, so that cores can chain records without linking OpenSSL. */
#ifndef CV_BASE_DIGEST_H
#define CV_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CV_DIGEST_BYTES 32

struct cv_digest {
  uint8_t bytes[CV_DIGEST_BYTES];
};

/* SHA-256 of the concatenation of two byte strings (common/crypto gives the implementation). */
typedef void cv_digest_fn(const void *first, size_t first_n, const void *second, size_t second_n,
                          struct cv_digest *ret);

static inline bool cv_digest_is_same(const struct cv_digest *a, const struct cv_digest *b) {
  return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* Appends a record to a chain of hashes: hash_n = digest(hash_(n-1), record n). */
static inline void cv_digest_extend(struct cv_digest *hash, const void *record, size_t n, cv_digest_fn *digest) {
  struct cv_digest next;
  digest(hash->bytes, sizeof(hash->bytes), record, n, &next);
  *hash = next;
}

#endif
