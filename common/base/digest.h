/* SPDX-License-Identifier: Apache-2.0 */
/* A digest function that pure code takes as an argument, so that cores can chain records without linking OpenSSL. */
#ifndef CV_BASE_DIGEST_H
#define CV_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define CV_DIGEST_BYTES 32

struct cv_digest {
  uint8_t bytes[CV_DIGEST_BYTES];
};

/* SHA-256 of the concatenation of two byte strings (common/crypto gives the implementation). */
typedef void cv_digest_fn(const void *first, size_t first_n, const void *second, size_t second_n,
                          struct cv_digest *ret);

#endif
