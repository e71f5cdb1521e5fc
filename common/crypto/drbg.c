/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "common/crypto/crypto.h"

static void refill(struct cv_rng *rng) {
  struct cv_drbg *drbg = (struct cv_drbg *)rng;
  CV_REQUIRE(RAND_priv_bytes((unsigned char *)drbg->buffer, sizeof(drbg->buffer)) == 1);
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
