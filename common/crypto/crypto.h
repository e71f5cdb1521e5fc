/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL behind small interfaces: random bits, digest, ticket authentication, sealing of stored state. */
#ifndef CV_CRYPTO_H
#define CV_CRYPTO_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/digest.h"
#include "common/base/err.h"
#include "common/base/rng.h"

/* OpenSSL's DRBG, buffered. Aborts if no random bytes are available: no noise is better than weak noise. Must not be
 * moved. */
struct cv_drbg {
  struct cv_rng rng;
  uint64_t buffer[512];
};
void cv_drbg_init(struct cv_drbg *drbg);
/* Wipes unused random bits. */
void cv_drbg_fini(struct cv_drbg *drbg);
/* Drops unused random bits: the next ones are new. */
void cv_drbg_drop(struct cv_drbg *drbg);
/*
 * Seeds OpenSSL's generators anew, from the kernel and with these bytes, which are then part of all that is drawn: two
 * machines that are copies of one another draw different bits if they mix in different bytes. CV_ERR_CRYPTO.
 */
CV_MUST_USE enum cv_err cv_drbg_mix(const void *bytes, size_t n);

/* A cv_digest_fn: SHA-256. */
void cv_sha256(const void *first, size_t first_n, const void *second, size_t second_n, struct cv_digest *ret);

enum { CV_KEY_BYTES = 32, CV_SEAL_NONCE_BYTES = 12, CV_SEAL_TAG_BYTES = 16, CV_SEAL_OVERHEAD = 28 };

struct cv_key {
  uint8_t bytes[CV_KEY_BYTES];
};
/* Overwrites the key; the compiler cannot remove the call. */
void cv_key_wipe(struct cv_key *key);
/* A new key from OpenSSL's generator. CV_ERR_CRYPTO. */
CV_MUST_USE enum cv_err cv_key_random(struct cv_key *ret);
/* HKDF-SHA256 with a label and a number: derives all keys from one master key. */
CV_MUST_USE enum cv_err cv_key_derive(const struct cv_key *master, const char *label, uint64_t number,
                                      struct cv_key *ret);

/* HMAC-SHA256 with one reused context; `tag` gets the first tag_n bytes, tag_n <= 32. The only error is
 * CV_ERR_NOMEM. */
struct cv_mac;
CV_MUST_USE enum cv_err cv_mac_new(const struct cv_key *key, struct cv_mac **ret);
void cv_mac_free(struct cv_mac *mac);
CV_MUST_USE enum cv_err cv_mac_tag(struct cv_mac *mac, const void *bytes, size_t n, uint8_t *tag, size_t tag_n);

/* AES-256-GCM: appends nonce (12), ciphertext, tag (16). `bound` is authenticated, not stored. */
struct cv_seal;
CV_MUST_USE enum cv_err cv_seal_new(const struct cv_key *key, struct cv_seal **ret);
void cv_seal_free(struct cv_seal *seal);
CV_MUST_USE enum cv_err cv_seal_close(struct cv_seal *seal, const void *bound, size_t bound_n, const void *plain,
                                      size_t n, struct cv_buf *out);
/* Verifies and decrypts. CV_ERR_DAMAGED if verification fails; then nothing is appended. */
CV_MUST_USE enum cv_err cv_seal_open(struct cv_seal *seal, const void *bound, size_t bound_n, const void *sealed,
                                     size_t n, struct cv_buf *out);
/*
 * The same with the caller's nonce, which is not stored: n + CV_SEAL_TAG_BYTES bytes of ciphertext and tag. A nonce
 * must never close two texts under one key: that gives away both, and the key of the tags.
 */
CV_MUST_USE enum cv_err cv_seal_close_at(struct cv_seal *seal, const uint8_t nonce[CV_SEAL_NONCE_BYTES],
                                         const void *bound, size_t bound_n, const void *plain, size_t n, uint8_t *ret);
/* `n` is the length of the sealed text; `ret` gets n - CV_SEAL_TAG_BYTES bytes, which are zeros after an error:
 * CV_ERR_DAMAGED. */
CV_MUST_USE enum cv_err cv_seal_open_at(struct cv_seal *seal, const uint8_t nonce[CV_SEAL_NONCE_BYTES],
                                        const void *bound, size_t bound_n, const uint8_t *sealed, size_t n,
                                        uint8_t *ret);

#endif
