/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token for two brokers at its worker, on one core: a score rounded, split into two shares, and the helper's sealed.
 * And the bytes that one, in a frame of 400 tokens, is on the wire, beside one for a single broker.
 */
#include <string.h>

#include "bench.h"
#include "common/base/grid.h"
#include "common/crypto/crypto.h"
#include "worker/split.h"

enum { TOKENS = 1 << 15, FRAME = 400 };

struct work {
  struct cv_drbg drbg;
  struct cv_seal *seal;
  struct cv_session_ops ops;
  struct cv_session *session;
};

static enum cv_err open_key(void *data, const struct cv_digest *context, void **ret) {
  struct work *work = data;
  *ret = work->seal;
  return CV_OK;
}

static enum cv_err seal_seed(void *data, void *key, uint64_t counter, const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                             const uint8_t seed[CV_SPLIT_SEED_BYTES], uint8_t ret[CV_SPLIT_SEALED_BYTES]) {
  uint8_t nonce[CV_SPLIT_SEAL_NONCE_BYTES];
  cv_split_seal_nonce(counter, nonce);
  return cv_seal_close_at(key, nonce, bound, CV_SPLIT_BOUND_BYTES, seed, CV_SPLIT_SEED_BYTES, ret);
}

static void close_key(void *data, void *key) {
}

static void begin(struct work *work, uint32_t score_bits) {
  const struct cv_duo duo = {.broker = {{1}}, .cobroker = {{2}}};
  struct cv_share_session told = {.terms = {.id = 1, .tokens_per_worker = 1}};
  told.terms.split.score_bits = score_bits;
  CV_REQUIRE(cv_session_new(&work->ops, &told.terms, 1, &work->session, NULL) == CV_OK);
  CV_REQUIRE(cv_session_asks(work->session, 0));
  CV_REQUIRE(cv_session_begin(work->session, &duo, &told, NULL) == CV_OK);
}

static uint64_t split(void *arg) {
  struct work *work = arg;
  uint32_t score_bits = work->session->terms.split.score_bits;
  uint8_t leader[CV_SPLIT_LEADER_MOST];
  struct cv_token_share share;
  uint64_t check = 0, measurement;
  for (uint64_t i = 0; i < TOKENS; i++) {
    struct cv_split_token token = {.plan = 1, .place = i, .worker = i};
    int64_t score = score_bits == CV_SPLIT_BIT ? (int64_t)(i % 2) * CV_GRID : (int64_t)(i * 31);
    CV_REQUIRE(cv_worker_measure(score_bits, score, &work->drbg.rng, &measurement));
    CV_REQUIRE(cv_worker_split(work->session, measurement, &token, leader, &share) == CV_OK);
    check += leader[0] + share.sealed[0];
  }
  return check;
}

/* `share`: NULL for one broker. */
static double bytes_of(const struct cv_token_share *share) {
  static struct cv_token token[FRAME];
  static const int64_t value = CV_GRID / 3;
  struct cv_crowd_frame frame = {.tokens = FRAME, .token = token};
  struct cv_arena scratch;
  struct cv_buf out = {0};
  for (size_t i = 0; i < FRAME; i++) {
    token[i] = (struct cv_token){.values = share == NULL, .value = share == NULL ? &value : NULL, .share = share};
  }
  CV_REQUIRE(cv_arena_init(&scratch, CV_ARENA_BYTES) == CV_OK);
  CV_REQUIRE(cv_crowd_encode(&frame, &scratch, &out) == CV_OK);
  double bytes = (double)out.len / FRAME;
  cv_arena_fini(&scratch);
  cv_buf_fini(&out);
  return bytes;
}

static void measure(struct work *work, const char *what, uint32_t score_bits) {
  uint8_t leader[CV_SPLIT_LEADER_MOST];
  struct cv_token_share share;
  struct cv_split_token token = {.plan = 1};
  begin(work, score_bits);
  cv_bench(what, "tokens", TOKENS, split, work);
  work->session->counter = UINT32_MAX; /* as long as it gets in practice */
  CV_REQUIRE(cv_worker_split(work->session, 1, &token, leader, &share) == CV_OK);
  printf("%-44s %.0f bytes a token, %.0f with one broker\n", what, bytes_of(&share), bytes_of(NULL));
  cv_session_free(work->session);
}

int main(void) {
  static struct work work;
  struct cv_key key;
  cv_drbg_init(&work.drbg);
  CV_REQUIRE(cv_key_random(&key) == CV_OK && cv_seal_new(&key, &work.seal) == CV_OK);
  work.ops = (struct cv_session_ops){.digest = cv_sha256,
                                     .fresh = &work.drbg.rng,
                                     .open = open_key,
                                     .seal = seal_seed,
                                     .close = close_key,
                                     .data = &work};
  measure(&work, "a score in two shares (15 bits)", CV_SPLIT_SCORE);
  measure(&work, "a bit in two shares", CV_SPLIT_BIT);
  cv_seal_free(work.seal);
  cv_drbg_fini(&work.drbg);
  return 0;
}
