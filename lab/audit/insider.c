/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/insider.h"

#include <string.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "common/crypto/crypto.h"
#include "common/prio/field.h"
#include "common/prio/shard.h"
#include "common/prio/verify.h"
#include "proto/codec/chain.h"

enum cv_err cv_insider_init(struct cv_insider *insider) {
  bool is_bit = insider->score_bits == CV_SPLIT_BIT;
  return cv_prio_init(&insider->prio, is_bit ? CV_PRIO_COUNT : CV_PRIO_SUM, cv_split_maximum(insider->score_bits));
}

void cv_insider_session(struct cv_insider *insider, const struct cv_digest *context, const uint8_t *session_key) {
  insider->context = *context;
  memcpy(insider->session_key, session_key, sizeof(insider->session_key));
}

static void see(struct cv_insider *insider, uint64_t number) {
  insider->view.rest = cv_mix64(insider->view.rest + number + 1);
}

/* The integer of an element; 0 if it is none that two brokers may release. */
static int64_t lifted(uint64_t element) {
  int64_t ret = 0;
  return cv_field_lift(element, &ret) ? ret : 0;
}

/* ---- tokens ---- */

static enum cv_err keep_share(struct cv_insider *insider, const uint8_t *nonce, const uint8_t *leader, size_t n) {
  if (insider->heard == CV_INSIDER_TOKENS) {
    return CV_ERR_LIMIT;
  }
  struct cv_insider_share *share = &insider->share[insider->heard++];
  memcpy(share->nonce, nonce, sizeof(share->nonce));
  memcpy(share->leader, leader, n);
  share->leader_bytes = n;
  return CV_OK;
}

enum cv_err cv_insider_on_crowd(struct cv_insider *insider, const struct cv_crowd_frame *frame) {
  for (size_t i = 0; i < frame->tokens; i++) {
    const struct cv_token_share *share = frame->token[i].share;
    CV_TRY(share == NULL ? CV_ERR_STATE : keep_share(insider, share->nonce, share->leader, share->leader_bytes));
  }
  return CV_OK;
}

static enum cv_err seal_of(const struct cv_insider *insider, const struct cv_share_pending *pending,
                           struct cv_seal **ret, uint8_t nonce[CV_SPLIT_SEAL_NONCE_BYTES],
                           uint8_t bound[CV_SPLIT_BOUND_BYTES]) {
  struct cv_key key;
  memcpy(key.bytes, insider->session_key, sizeof(key.bytes));
  cv_split_seal_nonce(pending->counter, nonce);
  cv_split_bound(&insider->context, &pending->token, bound);
  return cv_seal_new(&key, ret);
}

/* As broker: its output share of a token, and its verifier share. */
static enum cv_err leader_of(const struct cv_insider *insider, const struct cv_share_pending *pending,
                             uint64_t *ret_verifier, uint64_t *ret_output) {
  for (size_t i = 0; i < insider->heard; i++) {
    const struct cv_insider_share *share = &insider->share[i];
    if (memcmp(share->nonce, pending->token.nonce, sizeof(share->nonce)) == 0) {
      return cv_prio_verify_leader(&insider->prio, insider->key, insider->context.bytes, CV_DIGEST_BYTES, share->nonce,
                                   share->leader, share->leader_bytes, ret_verifier, ret_output)
                 ? CV_OK
                 : CV_ERR_STATE;
    }
  }
  return CV_ERR_STATE;
}

/* The same as co-broker. */
static enum cv_err helper_of(const struct cv_insider *insider, const struct cv_share_pending *pending,
                             uint64_t *ret_verifier, uint64_t *ret_output) {
  uint8_t nonce[CV_SPLIT_SEAL_NONCE_BYTES], bound[CV_SPLIT_BOUND_BYTES], seed[CV_SPLIT_SEED_BYTES];
  struct cv_seal *seal;
  CV_TRY(seal_of(insider, pending, &seal, nonce, bound));
  enum cv_err err = cv_seal_open_at(seal, nonce, bound, sizeof(bound), pending->sealed, CV_SPLIT_SEALED_BYTES, seed);
  cv_seal_free(seal);
  CV_TRY(err);
  return cv_prio_verify_helper(&insider->prio, insider->key, insider->context.bytes, CV_DIGEST_BYTES,
                               pending->token.nonce, seed, ret_verifier, ret_output)
             ? CV_OK
             : CV_ERR_STATE;
}

static bool is_changed(const struct cv_insider *insider, const struct cv_split_token *token) {
  return token->arm == insider->arm && token->plan == insider->round;
}

/* As co-broker: the changed token's verifier, put together. A second one of the same share may open it. */
static enum cv_err on_verifier(struct cv_insider *insider, const struct cv_split_token *at, uint64_t wire) {
  struct cv_opening verifier;
  insider->view.check = (int64_t)wire;
  if (insider->score_bits == CV_SPLIT_BIT) {
    return CV_OK;
  }
  CV_TRY(cv_opening_init(&verifier, &insider->prio, insider->key, insider->context.bytes, CV_DIGEST_BYTES, at->nonce,
                         wire));
  if (insider->verified) {
    insider->view.opened = cv_opening_solve(&insider->verifier, &verifier);
  }
  insider->verifier = verifier;
  insider->verified = true;
  return CV_OK;
}

static enum cv_err on_pending(struct cv_insider *insider, const struct cv_share_pending *pending) {
  uint64_t verifier[CV_PRIO_MAX_VERIFIER_ELEMENTS] = {0};
  const struct cv_split_token *at = &pending->token;
  if (insider->sent == CV_INSIDER_TOKENS || at->arm >= CV_INSIDER_ARMS || at->plan > CV_INSIDER_ROUNDS) {
    return CV_ERR_LIMIT;
  }
  struct cv_insider_token *token = &insider->token[insider->sent++];
  token->at = *at;
  CV_TRY(insider->is_cobroker ? helper_of(insider, pending, verifier, &token->output)
                              : leader_of(insider, pending, verifier, &token->output));
  if (!is_changed(insider, at)) {
    return CV_OK;
  }
  insider->view.share = (int64_t)token->output;
  uint64_t wire = cv_field_add(verifier[CV_OPENING_WIRE], pending->verifier[CV_OPENING_WIRE]);
  return insider->is_cobroker ? on_verifier(insider, at, wire) : CV_OK;
}

static enum cv_err on_answers(struct cv_insider *insider, const struct cv_share_answers *answers) {
  for (size_t i = 0; i < answers->answers; i++) {
    if (insider->judged == insider->sent) {
      return CV_ERR_STATE;
    }
    const struct cv_insider_token *token = &insider->token[insider->judged++];
    const struct cv_split_token *at = &token->at;
    see(insider, (uint64_t)answers->answer[i] << 32 | at->worker << 8 | at->slot);
    see(insider, at->plan << 32 | at->place << 8 | at->arm);
    if (answers->answer[i] == CV_ANSWER_ACCEPTED) {
      uint64_t *item = &insider->item[at->plan][at->arm];
      *item = cv_field_add(*item, cv_field_mul(token->output, cv_split_scale(insider->score_bits)));
      cv_split_chain(&insider->chain[at->arm], at, cv_sha256);
    }
  }
  return CV_OK;
}

/* ---- lies ---- */

/* Each token under the other's arm. */
static void swap_arms(struct cv_share_batch *batch) {
  struct cv_split_token *one = &batch->token[0].token, *other = &batch->token[1].token;
  uint32_t arm = one->arm;
  one->arm = other->arm;
  other->arm = arm;
}

static void draw(struct cv_rng *rng, uint8_t *ret, size_t n) {
  for (size_t i = 0; i < n; i++) {
    ret[i] = (uint8_t)cv_rng_u64(rng);
  }
}

/* The changed token's worker answers again under a slot, as workers do while they do not know that they were counted: a
 * fresh sharding. It takes the place of the other token. */
static enum cv_err answer_again(struct cv_insider *insider, const struct cv_share_pending *first, uint32_t slot,
                                struct cv_share_pending *again) {
  uint8_t leader[CV_SPLIT_LEADER_MOST], seed[CV_SPLIT_SEED_BYTES], rand[CV_PRIO_MAX_RAND_BYTES];
  uint8_t nonce[CV_SPLIT_SEAL_NONCE_BYTES], bound[CV_SPLIT_BOUND_BYTES];
  const struct cv_prio *prio = &insider->prio;
  struct cv_seal *seal;
  uint64_t output;
  draw(insider->fresh, rand, sizeof(rand));
  draw(insider->fresh, again->token.nonce, sizeof(again->token.nonce));
  again->token.worker = first->token.worker;
  again->token.slot = slot;
  again->counter += CV_INSIDER_TOKENS;
  cv_prio_shard(prio, insider->context.bytes, CV_DIGEST_BYTES, insider->measurement, again->token.nonce, rand, leader,
                seed);
  CV_TRY(keep_share(insider, again->token.nonce, leader, prio->leader_bytes));
  CV_TRY(seal_of(insider, again, &seal, nonce, bound));
  enum cv_err err = cv_seal_close_at(seal, nonce, bound, sizeof(bound), seed, sizeof(seed), again->sealed);
  cv_seal_free(seal);
  return err == CV_OK ? leader_of(insider, again, again->verifier, &output) : err;
}

/* The first batch with the changed token and another one of its arm, which the same worker then answers. */
static enum cv_err ask_again(struct cv_insider *insider, struct cv_share_batch *batch) {
  struct cv_share_pending *changed = NULL, *other = NULL;
  for (size_t i = 0; i < batch->tokens; i++) {
    struct cv_share_pending *pending = &batch->token[i];
    bool is_first = pending->token.place == 0;
    changed = is_changed(insider, &pending->token) && is_first ? pending : changed;
    other = is_changed(insider, &pending->token) && !is_first ? pending : other;
  }
  if (insider->lied || changed == NULL || other == NULL) {
    return CV_OK;
  }
  insider->lied = true;
  return answer_again(insider, changed, changed->token.slot ^ 1, other);
}

/* The first batch of two tokens with the changed one, which comes first from then on. */
static enum cv_err lie_about(struct cv_insider *insider, struct cv_share_batch *batch) {
  if (insider->lied || batch->tokens < 2) {
    return CV_OK;
  }
  if (is_changed(insider, &batch->token[1].token)) {
    const struct cv_share_pending first = batch->token[0];
    batch->token[0] = batch->token[1];
    batch->token[1] = first;
  }
  if (!is_changed(insider, &batch->token[0].token)) {
    return CV_OK;
  }
  insider->lied = true;
  if (insider->lie == CV_LIE_ARM) {
    swap_arms(batch);
  } else if (insider->lie == CV_LIE_SHORT) {
    batch->tokens = 1;
    insider->alone = true;
  }
  return insider->lie == CV_LIE_SLOT
             ? answer_again(insider, &batch->token[0], batch->token[0].token.slot, &batch->token[1])
             : CV_OK;
}

static enum cv_err bend_batch(struct cv_insider *insider, struct cv_share_frame *frame) {
  if (insider->lie == CV_LIE_NONE || insider->is_cobroker || frame->batches == 0) {
    return CV_OK;
  }
  const struct cv_share_batch *batch = &frame->batch[0];
  if (frame->batches > 1 || batch->tokens > CV_INSIDER_TOKENS) {
    return CV_ERR_LIMIT;
  }
  memcpy(insider->pending, batch->token, batch->tokens * sizeof(*batch->token));
  insider->batch = *batch;
  insider->batch.token = insider->pending;
  frame->batch = &insider->batch;
  return insider->lie == CV_LIE_AGAIN ? ask_again(insider, &insider->batch) : lie_about(insider, &insider->batch);
}

/* The co-broker counts other tokens than the broker: it is told what it expects. */
static void bend_closes(struct cv_insider *insider, struct cv_share_frame *frame) {
  if (!insider->lied || insider->is_cobroker) {
    return;
  }
  for (size_t i = 0; i < frame->closes && i < CV_COUNT(insider->bent); i++) {
    insider->bent[i] = frame->close[i];
    insider->bent[i].chain = insider->chain[frame->close[i].arm];
  }
  frame->close = insider->bent;
}

/* Closes the arm's epoch once the co-broker has accepted its first token. */
static void close_short(struct cv_insider *insider, struct cv_share_frame *frame) {
  if (insider->lie != CV_LIE_SHORT || insider->judged == 0 || insider->closes > 0) {
    return;
  }
  insider->bent[0] = (struct cv_share_close){.campaign = 1,
                                             .number = 1,
                                             .plan = 1,
                                             .plan_hash = insider->plans,
                                             .chain = insider->chain[insider->arm],
                                             .arm = insider->arm,
                                             .count = 1};
  *frame = (struct cv_share_frame){.closes = 1, .close = insider->bent};
}

/* ---- frames ---- */

static enum cv_err on_plan(struct cv_insider *insider, const struct cv_plan *plan) {
  CV_TRY(cv_chain_plan(&insider->plans, plan, cv_sha256));
  for (uint32_t i = 0; i < plan->wants; i++) {
    insider->chain[plan->want[i].arm % CV_INSIDER_ARMS] = insider->plans;
  }
  return CV_OK;
}

static enum cv_err on_close(struct cv_insider *insider, const struct cv_share_close *close) {
  if (close->number > CV_COUNT(insider->close) || close->number == 0) {
    return CV_ERR_LIMIT;
  }
  insider->close[close->number - 1] = *close;
  insider->closes = close->number;
  return CV_OK;
}

enum cv_err cv_insider_on_broker(struct cv_insider *insider, const struct cv_share_frame *frame,
                                 struct cv_share_frame *ret) {
  *ret = *frame;
  CV_TRY(bend_batch(insider, ret));
  bend_closes(insider, ret);
  close_short(insider, ret);
  for (size_t i = 0; i < ret->plans; i++) {
    CV_TRY(on_plan(insider, &ret->plan[i].plan));
  }
  for (size_t i = 0; i < ret->batches; i++) {
    for (size_t j = 0; j < ret->batch[i].tokens; j++) {
      CV_TRY(on_pending(insider, &ret->batch[i].token[j]));
    }
  }
  for (size_t i = 0; i < ret->closes; i++) {
    CV_TRY(on_close(insider, &ret->close[i]));
  }
  return CV_OK;
}

/* Its share of the sum that the arm's n-th release covers. */
static uint64_t covered(struct cv_insider *insider, uint32_t arm, uint64_t n) {
  uint64_t *sum = &insider->covered[arm];
  enum cv_cover cover = cv_mechanism_cover(&insider->law, n);
  if (cover == CV_COVER_BEFORE) {
    return *sum;
  }
  *sum = 0;
  for (uint64_t i = cover == CV_COVER_ALL ? 1 : n; i <= n; i++) {
    *sum = cv_field_add(*sum, insider->item[i][arm]);
  }
  return *sum;
}

static enum cv_err on_half(struct cv_insider *insider, const struct cv_share_closed *closed) {
  if (closed->number == 0 || closed->number > insider->closes) {
    return CV_ERR_STATE;
  }
  const struct cv_share_close *close = &insider->close[closed->number - 1];
  if (close->plan == 0 || close->plan > CV_INSIDER_ROUNDS || close->arm >= CV_INSIDER_ARMS) {
    return CV_ERR_STATE;
  }
  uint64_t own = covered(insider, close->arm, close->plan);
  insider->closed = closed->number;
  see(insider, closed->number);
  if (insider->is_cobroker) {
    insider->view.noise[close->plan - 1][close->arm] = lifted(cv_field_sub(closed->half, own));
  } else {
    insider->view.sum[close->plan - 1][close->arm] = lifted(cv_field_add(closed->half, own));
  }
  return CV_OK;
}

/* No token has a place: the broker will have them answered again. */
static enum cv_err bend_answers(struct cv_insider *insider, struct cv_share_frame *frame) {
  if (insider->lie != CV_LIE_KEY || frame->answers == 0) {
    return CV_OK;
  }
  if (frame->answers > 1 || frame->answer[0].answers > CV_INSIDER_TOKENS) {
    return CV_ERR_LIMIT;
  }
  memset(insider->answer, CV_ANSWER_PLACE, sizeof(insider->answer));
  insider->answers = frame->answer[0];
  insider->answers.answer = insider->answer;
  frame->answer = &insider->answers;
  insider->alone = true;
  return CV_OK;
}

void cv_insider_answer(struct cv_insider *insider, const struct cv_share_frame *frame, struct cv_share_frame *ret) {
  *ret = (struct cv_share_frame){.goodbye = NULL};
  if (frame->hello.present) {
    ret->hello = (struct cv_hello){.present = true, .version = CV_WIRE_VERSION};
  }
  if (frame->opens > 0) {
    insider->key[0] ^= 1;
    insider->opened.position = frame->open[0].position; /* it agrees with whatever the broker has */
    memcpy(insider->opened.key, insider->key, sizeof(insider->key));
    ret->opened = 1;
    ret->open_answer = &insider->opened;
    insider->lied = true;
  }
}

enum cv_err cv_insider_on_cobroker(struct cv_insider *insider, const struct cv_share_frame *frame,
                                   struct cv_share_frame *ret) {
  *ret = *frame;
  for (size_t i = 0; i < frame->opened; i++) {
    memcpy(insider->key, frame->open_answer[i].key, sizeof(insider->key));
  }
  for (size_t i = 0; i < frame->answers; i++) {
    CV_TRY(on_answers(insider, &frame->answer[i]));
  }
  for (size_t i = 0; i < frame->closed; i++) {
    CV_TRY(on_half(insider, &frame->half[i]));
  }
  for (size_t i = 0; i < frame->ended; i++) {
    see(insider, frame->end[i].reason);
    insider->ended = true;
  }
  return bend_answers(insider, ret);
}

void cv_insider_on_release(struct cv_insider *insider, const struct cv_release *release) {
  struct cv_insider_view *view = &insider->view;
  uint32_t round = (uint32_t)release->plan - 1;
  if (round >= CV_INSIDER_ROUNDS || release->arm >= CV_INSIDER_ARMS) {
    return;
  }
  int64_t *sum = &view->sum[round][release->arm], *noise = &view->noise[round][release->arm];
  if (insider->is_cobroker) {
    *sum = release->noisy_sum - *noise;
  } else {
    *noise = release->noisy_sum - *sum;
  }
}

bool cv_insider_is_alone(const struct cv_insider *insider) {
  return insider->alone;
}

bool cv_insider_is_done(const struct cv_insider *insider) {
  size_t all = insider->lie == CV_LIE_SHORT ? 1 : CV_INSIDER_ARMS;
  if (insider->lie == CV_LIE_KEY) {
    return insider->sent > CV_INSIDER_ARMS; /* a second batch came */
  }
  return insider->lie != CV_LIE_NONE && (insider->ended || insider->closed >= all);
}
