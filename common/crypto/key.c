/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#include <string.h>

#include "common/crypto/crypto.h"

void cv_key_wipe(struct cv_key *key) {
  if (key != NULL) {
    OPENSSL_cleanse(key->bytes, sizeof(key->bytes));
  }
}

enum cv_err cv_key_random(struct cv_key *ret) {
  struct cv_key key;
  int drawn = RAND_priv_bytes(key.bytes, sizeof(key.bytes));
  if (drawn == 1) {
    *ret = key;
  }
  cv_key_wipe(&key);
  return drawn == 1 ? CV_OK : CV_ERR_CRYPTO;
}

enum cv_err cv_key_derive(const struct cv_key *master, const char *label, uint64_t number, struct cv_key *ret) {
  struct cv_buf info = {0};
  cv_buf_put(&info, label, strlen(label) + 1); /* with the terminator, so that no label is a prefix of another */
  cv_buf_put_u64(&info, number);
  if (!cv_buf_ok(&info)) {
    return CV_ERR_NOMEM;
  }
  EVP_KDF *hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
  EVP_KDF_CTX *ctx = hkdf != NULL ? EVP_KDF_CTX_new(hkdf) : NULL;
  EVP_KDF_free(hkdf);
  char digest[] = "SHA256";
  /* A copy, since OpenSSL's parameter is not const; wiped below. */
  struct cv_key secret = *master, key;
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.bytes, sizeof(secret.bytes)),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data, info.len),
      OSSL_PARAM_construct_end(),
  };
  int derived = ctx != NULL && EVP_KDF_derive(ctx, key.bytes, sizeof(key.bytes), params) == 1;
  EVP_KDF_CTX_free(ctx);
  cv_buf_fini(&info);
  if (derived) {
    *ret = key;
  }
  cv_key_wipe(&secret);
  cv_key_wipe(&key);
  return derived ? CV_OK : CV_ERR_CRYPTO;
}
