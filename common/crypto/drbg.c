/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/random.h>

#include "common/crypto/crypto.h"

/* Drawing cannot fail: if OpenSSL has no memory for its generator, use the kernel's, which is as good but slower. */
static void refill(struct cv_rng *rng) {
  struct cv_drbg *drbg = (struct cv_drbg *)rng;
  /* A buffer per generator: noise draws words one by one, and each call of OpenSSL costs far more than a word. */
  unsigned char *bytes = (unsigned char *)drbg->buffer;
  if (RAND_priv_bytes(bytes, sizeof(drbg->buffer)) != 1) {
    ERR_clear_error();
    for (size_t n = 0; n < sizeof(drbg->buffer);) {
      ssize_t got = getrandom(bytes + n, sizeof(drbg->buffer) - n, 0);
      CV_REQUIRE(got > 0 || (got < 0 && errno == EINTR));
      n += got > 0 ? (size_t)got : 0;
    }
  }
  rng->left = CV_COUNT(drbg->buffer);
}

void cv_drbg_init(struct cv_drbg *drbg) {
  drbg->rng = (struct cv_rng){.refill = refill, .word = drbg->buffer, .left = 0};
}

void cv_drbg_fini(struct cv_drbg *drbg) {
  if (drbg == NULL) {
    return;
  }
  OPENSSL_cleanse(drbg->buffer, sizeof(drbg->buffer));
  drbg->rng.left = 0;
}

void cv_drbg_drop(struct cv_drbg *drbg) {
  cv_drbg_fini(drbg);
}

enum cv_err cv_drbg_mix(const void *bytes, size_t n) {
  /* The generators of all threads follow the primary one: each seeds itself again before it is used next. */
  EVP_RAND_CTX *primary = RAND_get0_primary(NULL);
  return primary != NULL && EVP_RAND_reseed(primary, 1, NULL, 0, bytes, n) == 1 ? CV_OK : CV_ERR_CRYPTO;
}
