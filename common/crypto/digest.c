/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/evp.h>
#include <pthread.h>

#include "common/crypto/crypto.h"

static EVP_MD *sha256;

static void fetch(void) {
  sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

void cv_sha256(const void *first, size_t first_n, const void *second, size_t second_n, struct cv_digest *ret) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  CV_REQUIRE(pthread_once(&once, fetch) == 0 && sha256 != NULL);
  EVP_MD_CTX *ctx = EVP_MD_CTX_new();
  unsigned n = 0;
  CV_REQUIRE(ctx != NULL && EVP_DigestInit_ex2(ctx, sha256, NULL) == 1 && EVP_DigestUpdate(ctx, first, first_n) == 1 &&
             EVP_DigestUpdate(ctx, second, second_n) == 1 && EVP_DigestFinal_ex(ctx, ret->bytes, &n) == 1 &&
             n == CV_DIGEST_BYTES);
  EVP_MD_CTX_free(ctx);
}
