/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>

#include "common/base/split.h"
#include "common/crypto/crypto.h"

enum { NONCE_BYTES = CV_SEAL_NONCE_BYTES, TAG_BYTES = CV_SEAL_TAG_BYTES, SEAL_MAX_BYTES = 1 << 30 };
_Static_assert(SEAL_MAX_BYTES <= INT32_MAX, "OpenSSL counts in int");
_Static_assert(NONCE_BYTES + TAG_BYTES == CV_SEAL_OVERHEAD, "a sealed blob is nonce, ciphertext, tag");
_Static_assert((int)CV_SPLIT_SEALED_BYTES == (int)CV_SPLIT_SEED_BYTES + (int)TAG_BYTES, "a sealed seed has a tag");
_Static_assert((int)CV_SPLIT_SEAL_NONCE_BYTES == (int)NONCE_BYTES, "a seed's counter fills a nonce");

/* Both contexts keep the key; each use sets only a nonce. */
struct cv_seal {
  EVP_CIPHER_CTX *enc, *dec;
};

static EVP_CIPHER_CTX *keyed_context(const EVP_CIPHER *gcm, const struct cv_key *key, int encrypts) {
  EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
  if (ctx != NULL && EVP_CipherInit_ex2(ctx, gcm, key->bytes, NULL, encrypts, NULL) != 1) {
    EVP_CIPHER_CTX_free(ctx);
    return NULL;
  }
  return ctx;
}

enum cv_err cv_seal_new(const struct cv_key *key, struct cv_seal **ret) {
  struct cv_seal *seal = calloc(1, sizeof(*seal));
  if (seal == NULL) {
    return CV_ERR_NOMEM;
  }
  EVP_CIPHER *gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
  if (gcm != NULL) {
    seal->enc = keyed_context(gcm, key, 1);
    seal->dec = keyed_context(gcm, key, 0);
    EVP_CIPHER_free(gcm); /* the contexts hold their own references */
  }
  if (seal->enc == NULL || seal->dec == NULL) {
    cv_seal_free(seal);
    return CV_ERR_CRYPTO;
  }
  *ret = seal;
  return CV_OK;
}

void cv_seal_free(struct cv_seal *seal) {
  if (seal == NULL) {
    return;
  }
  EVP_CIPHER_CTX_free(seal->enc);
  EVP_CIPHER_CTX_free(seal->dec);
  free(seal);
}

/* Writes ciphertext and tag to `out`. Returns 1, or 0 on failure. */
static int encrypt(EVP_CIPHER_CTX *ctx, const uint8_t *nonce, const void *bound, int bound_n, const void *plain, int n,
                   uint8_t *out) {
  int got = 0, rest = 0;
  return EVP_EncryptInit_ex2(ctx, NULL, NULL, nonce, NULL) == 1 &&
         (bound_n == 0 || EVP_EncryptUpdate(ctx, NULL, &got, bound, bound_n) == 1) &&
         (n == 0 || EVP_EncryptUpdate(ctx, out, &got, plain, n) == 1) &&
         EVP_EncryptFinal_ex(ctx, out + n, &rest) == 1 &&
         EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, out + n) == 1;
}

enum cv_err cv_seal_close_at(struct cv_seal *seal, const uint8_t nonce[CV_SEAL_NONCE_BYTES], const void *bound,
                             size_t bound_n, const void *plain, size_t n, uint8_t *ret) {
  if (n > SEAL_MAX_BYTES - CV_SEAL_OVERHEAD || bound_n > SEAL_MAX_BYTES) {
    return CV_ERR_LIMIT;
  }
  if (!encrypt(seal->enc, nonce, bound, (int)bound_n, plain, (int)n, ret)) {
    OPENSSL_cleanse(ret, n + TAG_BYTES);
    return CV_ERR_CRYPTO;
  }
  return CV_OK;
}

enum cv_err cv_seal_close(struct cv_seal *seal, const void *bound, size_t bound_n, const void *plain, size_t n,
                          struct cv_buf *out) {
  if (n > SEAL_MAX_BYTES - CV_SEAL_OVERHEAD) {
    return CV_ERR_LIMIT;
  }
  CV_TRY(cv_buf_reserve(out, n + CV_SEAL_OVERHEAD));
  uint8_t *nonce = out->data + out->len;
  /* 96 random bits: for a key per campaign, 2^32 values keep a repetition below 2^-32 (NIST SP 800-38D). */
  if (RAND_bytes(nonce, NONCE_BYTES) != 1) {
    return CV_ERR_CRYPTO;
  }
  CV_TRY(cv_seal_close_at(seal, nonce, bound, bound_n, plain, n, nonce + NONCE_BYTES));
  out->len += n + CV_SEAL_OVERHEAD;
  return CV_OK;
}

/* `n` is the length of the text, without the tag. */
static int decrypt(EVP_CIPHER_CTX *ctx, const uint8_t *nonce, const void *bound, int bound_n, const uint8_t *cipher,
                   int n, uint8_t *out) {
  uint8_t tag[TAG_BYTES];
  for (int i = 0; i < TAG_BYTES; i++) {
    tag[i] = cipher[n + i];
  }
  int got = 0, rest = 0;
  return EVP_DecryptInit_ex2(ctx, NULL, NULL, nonce, NULL) == 1 &&
         (bound_n == 0 || EVP_DecryptUpdate(ctx, NULL, &got, bound, bound_n) == 1) &&
         (n == 0 || EVP_DecryptUpdate(ctx, out, &got, cipher, n) == 1) &&
         EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag) == 1 &&
         EVP_DecryptFinal_ex(ctx, out + n, &rest) == 1;
}

enum cv_err cv_seal_open_at(struct cv_seal *seal, const uint8_t nonce[CV_SEAL_NONCE_BYTES], const void *bound,
                            size_t bound_n, const uint8_t *sealed, size_t n, uint8_t *ret) {
  if (n < TAG_BYTES || n > SEAL_MAX_BYTES || bound_n > SEAL_MAX_BYTES) {
    return CV_ERR_DAMAGED;
  }
  if (!decrypt(seal->dec, nonce, bound, (int)bound_n, sealed, (int)(n - TAG_BYTES), ret)) {
    /* Decrypted before the tag was checked: nothing of it may be used. */
    OPENSSL_cleanse(ret, n - TAG_BYTES);
    return CV_ERR_DAMAGED;
  }
  return CV_OK;
}

enum cv_err cv_seal_open(struct cv_seal *seal, const void *bound, size_t bound_n, const void *sealed, size_t n,
                         struct cv_buf *out) {
  if (n < CV_SEAL_OVERHEAD || n > SEAL_MAX_BYTES) {
    return CV_ERR_DAMAGED;
  }
  size_t plain_n = n - CV_SEAL_OVERHEAD;
  const uint8_t *nonce = sealed;
  /* One byte more than needed, so that the output pointer is valid for an empty text. */
  CV_TRY(cv_buf_reserve(out, plain_n + 1));
  CV_TRY(cv_seal_open_at(seal, nonce, bound, bound_n, nonce + NONCE_BYTES, n - NONCE_BYTES, out->data + out->len));
  out->len += plain_n;
  return CV_OK;
}
