/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A digest function cannot fail, so it must not allocate. OpenSSL's EVP functions allocate a context for each digest;
 * the older SHA256_* functions work on the stack. They are deprecated in favour of providers, which this program does
 * not need.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "common/crypto/crypto.h"

_Static_assert(CV_DIGEST_BYTES == SHA256_DIGEST_LENGTH, "a digest is SHA-256");

void cv_sha256(const void *first, size_t first_n, const void *second, size_t second_n, struct cv_digest *ret) {
  SHA256_CTX context;
  CV_REQUIRE(SHA256_Init(&context) == 1 && SHA256_Update(&context, first, first_n) == 1 &&
             SHA256_Update(&context, second, second_n) == 1 && SHA256_Final(ret->bytes, &context) == 1);
}
