/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/split.h"

#include <string.h>

#include "common/base/grid.h"
#include "common/prio/shard.h"

_Static_assert(CV_SPLIT_LEADER_MOST >= CV_PRIO_MAX_LEADER_BYTES, "a leader's share has room");
_Static_assert(CV_SPLIT_NONCE_BYTES == CV_PRIO_NONCE_BYTES && CV_SPLIT_SEED_BYTES == CV_PRIO_SEED_BYTES, "one size");

bool cv_worker_measure(uint32_t score_bits, int64_t value, struct cv_rng *coin, uint64_t *ret) {
  const uint64_t step = cv_split_scale(score_bits);
  if (value < 0 || value > CV_GRID) {
    return false;
  }
  uint64_t whole = (uint64_t)value / step, rest = (uint64_t)value % step;
  if (score_bits == CV_SPLIT_BIT) {
    *ret = whole;
    return rest == 0;
  }
  *ret = whole + (cv_rng_below(coin, step) < rest);
  return true;
}

/* From whole words, so that no word is used twice. */
static void draw(struct cv_rng *rng, uint8_t *ret, size_t n) {
  for (size_t at = 0; at < n; at += sizeof(uint64_t)) {
    uint64_t word = cv_rng_u64(rng);
    memcpy(ret + at, &word, n - at < sizeof(word) ? n - at : sizeof(word));
  }
}

/* The compiler must not leave it out. */
static void wipe(volatile uint8_t *bytes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    bytes[i] = 0;
  }
}

enum cv_err cv_worker_split(struct cv_session *session, uint64_t measurement, struct cv_split_token *token,
                            uint8_t leader[CV_SPLIT_LEADER_MOST], struct cv_token_share *ret) {
  const struct cv_session_ops *ops = session->ops;
  uint8_t rand[CV_PRIO_MAX_RAND_BYTES], seed[CV_SPLIT_SEED_BYTES], bound[CV_SPLIT_BOUND_BYTES];
  CV_REQUIRE(session->state == CV_SESSION_STANDS && measurement <= session->prio.max &&
             session->prio.rand_bytes <= sizeof(rand));
  draw(ops->fresh, token->nonce, sizeof(token->nonce));
  draw(ops->fresh, rand, session->prio.rand_bytes);
  cv_prio_shard(&session->prio, session->context.bytes, sizeof(session->context.bytes), measurement, token->nonce, rand,
                leader, seed);
  cv_split_bound(&session->context, token, bound);
  *ret = (struct cv_token_share){
      .leader_bytes = session->prio.leader_bytes, .leader = leader, .counter = session->counter++};
  memcpy(ret->nonce, token->nonce, sizeof(ret->nonce));
  memcpy(ret->session, session->id, sizeof(ret->session));
  enum cv_err err = ops->seal(ops->data, session->key, ret->counter, bound, seed, ret->sealed);
  wipe(rand, sizeof(rand));
  wipe(seed, sizeof(seed));
  return err;
}
