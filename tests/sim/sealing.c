/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/sealing.h"

#include <string.h>

#include "common/crypto/crypto.h"
#include "tests/sim/two.h"

void sealing_key(const struct end *end, const struct cv_digest *context, uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  struct cv_digest digest;
  const uint64_t connection[] = {end->party->world->scenario.seed, end->cable->number};
  cv_sha256(connection, sizeof(connection), context->bytes, sizeof(context->bytes), &digest);
  memcpy(ret, digest.bytes, CV_SPLIT_SEED_BYTES);
}

static enum cv_err seal_of(const uint8_t key[CV_SPLIT_SEED_BYTES], struct cv_seal **ret) {
  struct cv_key its;
  _Static_assert((int)CV_KEY_BYTES == (int)CV_SPLIT_SEED_BYTES, "one size");
  memcpy(its.bytes, key, CV_KEY_BYTES);
  return cv_seal_new(&its, ret);
}

enum cv_err sealing_close(struct world *world, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                          const uint8_t bound[CV_SPLIT_BOUND_BYTES], const uint8_t seed[CV_SPLIT_SEED_BYTES],
                          uint8_t ret[CV_SPLIT_SEALED_BYTES]) {
  uint8_t nonce[CV_SPLIT_SEAL_NONCE_BYTES];
  struct cv_seal *seal;
  CV_TRY(seal_of(key, &seal));
  cv_split_seal_nonce(counter, nonce);
  enum cv_err err = cv_seal_close_at(seal, nonce, bound, CV_SPLIT_BOUND_BYTES, seed, CV_SPLIT_SEED_BYTES, ret);
  cv_seal_free(seal);
  if (err == CV_OK) {
    two_sealed(world->two, key, counter);
  }
  return err;
}

enum cv_err sealing_open(const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                         const uint8_t bound[CV_SPLIT_BOUND_BYTES], const uint8_t sealed[CV_SPLIT_SEALED_BYTES],
                         uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  uint8_t nonce[CV_SPLIT_SEAL_NONCE_BYTES];
  struct cv_seal *seal;
  CV_TRY(seal_of(key, &seal));
  cv_split_seal_nonce(counter, nonce);
  enum cv_err err = cv_seal_open_at(seal, nonce, bound, CV_SPLIT_BOUND_BYTES, sealed, CV_SPLIT_SEALED_BYTES, ret);
  cv_seal_free(seal);
  return err;
}
