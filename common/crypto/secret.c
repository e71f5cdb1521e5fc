/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/secret.h"

#include <openssl/crypto.h>

enum { LEAST_BYTES = 32 /* smallest allocation: a private key */ };

bool cv_secret_begin(size_t bytes) {
  if (CRYPTO_secure_malloc_initialized() != 0) {
    return true;
  }
  int done = CRYPTO_secure_malloc_init(bytes, LEAST_BYTES);
  if (done == 1) {
    return true;
  }
  if (done == 2) { /* set up, but not locked: unusable for keys */
    (void)CRYPTO_secure_malloc_done();
  }
  return false;
}

struct cv_key *cv_secret_key(const struct cv_key *key) {
  struct cv_key *copy = OPENSSL_secure_malloc(sizeof(*copy));
  if (copy != NULL) {
    *copy = *key;
  }
  return copy;
}

void cv_secret_free(struct cv_key *key) {
  OPENSSL_secure_clear_free(key, sizeof(*key));
}
