/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is split, verified and sent in campaigns with two brokers. It wraps (the linker's --wrap) the worker's function
 * that splits a token, and the functions that verify a share, to know every token and both of its shares.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/prio/verify.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"
#include "tests/sim/two_state.h"
#include "tests/support/alloc_fault.h"
#include "worker/split.h"

static struct two *listening;

void two_listen(struct two *two) {
  listening = two;
}

static uint64_t number_of(const void *bytes, size_t n, uint64_t number) {
  const uint8_t *at = bytes;
  for (size_t i = 0; i < n; i++) {
    number = (number ^ at[i]) * UINT64_C(0x100000001b3);
  }
  number = cv_mix64(number ^ n);
  return number == 0 ? 1 : number;
}

struct share *two_find(const struct two *two, const uint8_t nonce[CV_SPLIT_NONCE_BYTES]) {
  struct share *share = NULL;
  HASH_FIND(hh, two->shares, nonce, CV_SPLIT_NONCE_BYTES, share);
  return share;
}

bool two_measured(const struct two *two, const uint8_t nonce[CV_SPLIT_NONCE_BYTES], uint64_t *ret) {
  const struct share *share = two_find(two, nonce);
  *ret = share == NULL ? 0 : share->measurement;
  return share != NULL;
}

static bool is_honest(const struct two *two, uint64_t worker) {
  return worker <= (uint64_t)two->world->scenario.pools * two->world->scenario.pool_workers;
}

/* ---- split ---- */

enum cv_err __real_cv_worker_split(struct cv_session *session, uint64_t measurement, struct cv_split_token *token,
                                   uint8_t leader[CV_SPLIT_LEADER_MOST], struct cv_token_share *ret);
enum cv_err __wrap_cv_worker_split(struct cv_session *session, uint64_t measurement, struct cv_split_token *token,
                                   uint8_t leader[CV_SPLIT_LEADER_MOST], struct cv_token_share *ret);

enum cv_err __wrap_cv_worker_split(struct cv_session *session, uint64_t measurement, struct cv_split_token *token,
                                   uint8_t leader[CV_SPLIT_LEADER_MOST], struct cv_token_share *ret) {
  enum cv_err err = __real_cv_worker_split(session, measurement, token, leader, ret);
  if (err != CV_OK || listening == NULL) {
    return err;
  }
  bool was_armed = alloc_fault_aside();
  struct share *share = calloc(1, sizeof(*share));
  CV_REQUIRE(share != NULL);
  *share = (struct share){.campaign = session->terms.id,
                          .token = *token,
                          .measurement = measurement,
                          .leader_share = number_of(leader, ret->leader_bytes, 1)};
  memcpy(share->nonce, token->nonce, sizeof(share->nonce));
  if (two_find(listening, share->nonce) != NULL) {
    world_fail(listening->world, "S3: two tokens have one nonce");
  }
  CV_REQUIRE(CV_TABLE_ADD(listening->shares, nonce, share) == CV_OK);
  tally(TALLY_SPLIT_TOKENS);
  if (was_armed) {
    alloc_fault_arm();
  }
  return CV_OK;
}

void two_sealed(struct two *two, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter) {
  bool was_armed = alloc_fault_aside();
  if (!seen_add(&two->sealed, number_of(key, CV_SPLIT_SEED_BYTES, counter))) {
    world_fail(two->world, "S3: counter %llu of a session seals two seeds", (unsigned long long)counter);
  }
  if (was_armed) {
    alloc_fault_arm();
  }
}

/* ---- verified ---- */

/* The verify keys of the latest campaigns. */
static void spy_key(struct two *two, const uint8_t *key) {
  for (size_t i = 0; i < CV_COUNT(two->key) && i < two->keys; i++) {
    if (memcmp(two->key[i], key, CV_SPLIT_SEED_BYTES) == 0) {
      return;
    }
  }
  memcpy(two->key[two->keys++ % CV_COUNT(two->key)], key, CV_SPLIT_SEED_BYTES);
}

static void check_under(uint64_t *under, const uint8_t *key, const uint8_t *ctx, size_t ctx_len, const char *whose) {
  uint64_t now = number_of(ctx, ctx_len, number_of(key, CV_SPLIT_SEED_BYTES, 1));
  if (*under != 0 && *under != now) {
    world_fail(listening->world, "S3: the %s computes a verifier share of one token under two keys or contexts", whose);
  }
  *under = now;
}

static void spy_elements(struct two *two, const uint64_t *element, size_t n) {
  for (size_t i = 0; i < n; i++) {
    two->element[two->elements++ % CV_COUNT(two->element)] = element[i];
  }
}

void two_spy_sum(struct two *two, uint64_t sum) {
  if (sum > UINT32_MAX) { /* a smaller one occurs by chance */
    spy_elements(two, &sum, 1);
  }
}

bool __real_cv_prio_verify_leader(const struct cv_prio *p, const uint8_t *key, const uint8_t *ctx, size_t ctx_len,
                                  const uint8_t *nonce, const uint8_t *share, size_t length, uint64_t *ret_verifier,
                                  uint64_t *ret_output);
bool __wrap_cv_prio_verify_leader(const struct cv_prio *p, const uint8_t *key, const uint8_t *ctx, size_t ctx_len,
                                  const uint8_t *nonce, const uint8_t *share, size_t length, uint64_t *ret_verifier,
                                  uint64_t *ret_output);

bool __wrap_cv_prio_verify_leader(const struct cv_prio *p, const uint8_t *key, const uint8_t *ctx, size_t ctx_len,
                                  const uint8_t *nonce, const uint8_t *share, size_t length, uint64_t *ret_verifier,
                                  uint64_t *ret_output) {
  bool good = __real_cv_prio_verify_leader(p, key, ctx, ctx_len, nonce, share, length, ret_verifier, ret_output);
  struct share *its = listening == NULL ? NULL : two_find(listening, nonce);
  if (good && its != NULL && its->leader_share == number_of(share, length, 1)) {
    if (is_honest(listening, its->token.worker)) { /* a liar can give its shares to two campaigns */
      check_under(&its->leader_under, key, ctx, ctx_len, "broker");
    }
    its->leader = *ret_output;
    its->has_leader = true;
    spy_elements(listening, ret_output, 1);
  }
  return good;
}

bool __real_cv_prio_verify_helper(const struct cv_prio *p, const uint8_t *key, const uint8_t *ctx, size_t ctx_len,
                                  const uint8_t *nonce, const uint8_t *seed, uint64_t *ret_verifier,
                                  uint64_t *ret_output);
bool __wrap_cv_prio_verify_helper(const struct cv_prio *p, const uint8_t *key, const uint8_t *ctx, size_t ctx_len,
                                  const uint8_t *nonce, const uint8_t *seed, uint64_t *ret_verifier,
                                  uint64_t *ret_output);

bool __wrap_cv_prio_verify_helper(const struct cv_prio *p, const uint8_t *key, const uint8_t *ctx, size_t ctx_len,
                                  const uint8_t *nonce, const uint8_t *seed, uint64_t *ret_verifier,
                                  uint64_t *ret_output) {
  bool good = __real_cv_prio_verify_helper(p, key, ctx, ctx_len, nonce, seed, ret_verifier, ret_output);
  struct share *its = listening == NULL ? NULL : two_find(listening, nonce);
  if (good && its != NULL) {
    uint64_t number = number_of(seed, CV_SPLIT_SEED_BYTES, 1);
    spy_key(listening, key);
    if (is_honest(listening, its->token.worker) && (its->seed == 0 || its->seed == number)) {
      check_under(&its->helper_under, key, ctx, ctx_len, "co-broker");
    }
    its->seed = number;
    its->helper = *ret_output;
    memcpy(listening->seed[listening->seeds++ % TWO_SPIED], seed, CV_SPLIT_SEED_BYTES);
    spy_elements(listening, ret_verifier, p->verifier_elements);
    spy_elements(listening, ret_output, 1);
  }
  return good;
}

/* ---- sent by the broker ---- */

void two_told_cobroker(struct two *two, const struct cv_share_frame *frame) {
  for (size_t i = 0; i < frame->batches; i++) {
    for (size_t j = 0; j < frame->batch[i].tokens; j++) {
      const struct cv_share_pending *pending = &frame->batch[i].token[j];
      struct share *share = two_find(two, pending->token.nonce);
      uint64_t now = number_of(pending->verifier, pending->verifiers * sizeof(*pending->verifier), 1);
      if (share == NULL || !is_honest(two, share->token.worker)) {
        continue;
      }
      if (share->verifier != 0 && share->verifier != now) {
        world_fail(two->world, "S3: a verifier share of worker %llu leaves the broker in two forms",
                   (unsigned long long)share->token.worker);
      }
      share->verifier = now;
    }
  }
}

/* ---- sent by the co-broker ---- */

static void tell_token(struct two *two, struct two_campaign *campaign, struct share *share) {
  struct share **told = &campaign->told[share->token.arm * two->world->scenario.tokens + share->token.place];
  if (*told != NULL && *told != share) {
    world_fail(two->world, "S2: the co-broker tells of two tokens in arm %u, place %llu", share->token.arm,
               (unsigned long long)share->token.place);
  }
  *told = share;
  two->told_of[share->token.worker]++;
  uint64_t slot = share->campaign << 56 | share->token.worker << 16 | share->token.slot;
  if (!seen_add(&two->slots, slot)) {
    world_fail(two->world, "S2: the co-broker tells that slot %u of worker %llu counts twice", share->token.slot,
               (unsigned long long)share->token.worker);
  }
}

static void tell_answers(struct two *two, const struct cv_share_answers *answers) {
  struct two_campaign *campaign = two_campaign(two, answers->campaign);
  if (answers->number == 0 || answers->number > campaign->batches_stored) {
    world_fail(two->world, "S5: the answers to batch %llu leave before they are stored",
               (unsigned long long)answers->number);
    return;
  }
  struct two_batch *batch = &campaign->batch[answers->number - 1];
  if (batch->tokens != answers->answers || memcmp(batch->answer, answers->answer, batch->tokens) != 0) {
    world_fail(two->world, "S3: other answers to batch %llu leave than were given",
               (unsigned long long)answers->number);
    return;
  }
  tally_add(TALLY_ANSWERS_AGAIN, batch->told);
  for (size_t i = 0; i < batch->tokens && !batch->told; i++) {
    if (batch->answer[i] == CV_ANSWER_ACCEPTED && batch->token[i] != NULL) {
      tell_token(two, campaign, batch->token[i]);
    }
  }
  batch->told = true;
}

static void tell_half(struct two *two, const struct cv_share_closed *closed) {
  const struct two_campaign *campaign = two_campaign(two, closed->campaign);
  world_log(two->world, "cobroker: sends half %llu of campaign %llu", (unsigned long long)closed->number,
            (unsigned long long)closed->campaign);
  if (closed->number == 0 || closed->number > campaign->closings_stored) {
    world_fail(two->world, "S5: half %llu leaves before it is stored and charged", (unsigned long long)closed->number);
  } else if (closed->half != campaign->closing[closed->number - 1].half) {
    world_fail(two->world, "S4: half %llu leaves with another value than was stored",
               (unsigned long long)closed->number);
  }
}

void two_told(struct two *two, const struct cv_share_frame *frame) {
  for (size_t i = 0; i < frame->answers && !two->rolled_back; i++) {
    tell_answers(two, &frame->answer[i]);
  }
  for (size_t i = 0; i < frame->closed && !two->rolled_back; i++) {
    tell_half(two, &frame->half[i]);
  }
}

/* ---- secrets ---- */

bool two_secret(const struct two *two, size_t i, const uint8_t **ret, size_t *ret_n) {
  const size_t seeds = two->seeds < TWO_SPIED ? two->seeds : TWO_SPIED;
  const size_t elements = two->elements < CV_COUNT(two->element) ? two->elements : CV_COUNT(two->element);
  _Static_assert(TWO_WORDS >= TWO_SPIED + CV_COUNT(two->element) + CV_COUNT(two->key), "room for all of them");
  if (i >= seeds + elements) {
    return false;
  }
  *ret = i < seeds ? two->seed[i] : (const uint8_t *)&two->element[i - seeds];
  *ret_n = i < seeds ? CV_SPLIT_SEED_BYTES : sizeof(two->element[0]);
  return true;
}

const uint8_t *two_key(const struct two *two, size_t i) {
  return i < CV_COUNT(two->key) && i < two->keys ? two->key[i] : NULL;
}
