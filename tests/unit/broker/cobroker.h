/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A co-broker of plain frames for world.h, which includes this file: it verifies shares, adds its halves up and keeps
 * what it has said over the broker's restarts. It stores at once, and checks what every honest co-broker may rely on:
 * numbers without gaps, chains that agree, complete epochs, and that no share is ever checked twice in two forms.
 *
 * `judge` may give other verdicts, and `bend` may change a frame before it is sent.
 */
#ifndef CV_TESTS_BROKER_COBROKER_H
#define CV_TESTS_BROKER_COBROKER_H

#include "broker/mechanism/mechanism.h"
#include "common/base/split.h"
#include "common/crypto/crypto.h"
#include "common/prio/field.h"
#include "common/prio/shard.h"
#include "common/prio/verify.h"
#include "proto/codec/chain.h"
#include "proto/codec/share.h"
#include "tests/support/mechanism.h"

enum { FAKE_BATCHES = 4096, FAKE_TOKENS = 8192, FAKE_SLOTS = 16384, FAKE_SEED = 77, FAKE_ANSWERS = 8 };

static const struct cv_duo fake_duo = {.broker = {{1}}, .cobroker = {{2}}};

struct fake_batch {
  size_t tokens;
  uint8_t answer[CV_BATCH_TOKENS];
};

/* A token as it was seen first. */
struct fake_seen {
  uint8_t nonce[CV_SPLIT_NONCE_BYTES];
  uint64_t verifier[CV_SPLIT_VERIFIERS_MOST];
};

struct fake_arm {
  struct cv_mechanism *mechanism;
  bool is_open;
  uint64_t first, want, count, sum;
  struct cv_digest chain;
  uint8_t place[PLANS * TAU];
};

struct fake_cobroker {
  bool is_open, is_over;
  uint8_t key[CV_SPLIT_SEED_BYTES];
  struct cv_digest context;
  struct cv_prio prio;
  struct cv_share_position position;
  struct fake_arm arm[ARMS];
  uint8_t slot[FAKE_SLOTS]; /* used, by worker and slot */
  struct fake_batch *batch; /* by number less one */
  uint64_t half[RELEASES + 1];
  struct fake_seen *seen;
  size_t seens;
  uint64_t done, shards, counter, opens, accepted;
  struct cv_digest batch_hash[64]; /* of recent batches, by number */
  enum cv_share_answer (*judge)(struct fake_cobroker *fake, const struct cv_share_pending *token);
  void (*bend)(struct fake_cobroker *fake, struct cv_share_frame *frame);
  bool is_mute; /* takes no plans, batches and closings: its answers wait */
  bool hold_closings;
  int data; /* for `judge` and `bend` */
  /* room for the frame */
  struct cv_share_opened opened;
  struct cv_share_number plan_opened[4];
  struct cv_share_refused plan_refused;
  struct cv_share_answers answer[FAKE_ANSWERS];
  struct cv_share_closed closed[RELEASES + 1];
  struct cv_share_end end[4];
};

static inline void fake_fini(struct fake_cobroker *fake) {
  for (uint32_t i = 0; i < ARMS; i++) {
    cv_mechanism_free(fake->arm[i].mechanism);
  }
  free(fake->batch);
  free(fake->seen);
}

/* ---- the worker's side ---- */

/* The shares of a measurement. Its randomness is a counter: fresh for each token. */
static inline void fake_shard(struct fake_cobroker *fake, const struct cv_terms *terms,
                              const struct cv_split_token *bound, uint64_t measurement, struct cv_token_share *ret,
                              uint8_t leader[CV_SPLIT_LEADER_MOST]) {
  struct cv_digest context;
  struct cv_prio prio;
  uint8_t rand[CV_PRIO_MAX_RAND_BYTES] = {0};
  CV_REQUIRE(cv_prio_init(&prio, CV_PRIO_SUM, CV_PRIO_MAX_MEASUREMENT) == CV_OK);
  cv_split_context(&terms->split, &fake_duo, terms->id, cv_sha256, &context);
  *ret = (struct cv_token_share){.leader_bytes = prio.leader_bytes, .counter = fake->counter++};
  fake->shards++;
  memcpy(ret->nonce, &fake->shards, sizeof(fake->shards));
  for (size_t i = 0; i < sizeof(rand); i++) {
    rand[i] = (uint8_t)cv_mix64(fake->shards * 100 + i);
  }
  cv_prio_shard(&prio, context.bytes, sizeof(context.bytes), measurement, ret->nonce, rand, leader, ret->sealed);
}

/* ---- the co-broker's side ---- */

static inline void fake_draw(struct cv_mechanism *mechanism, uint32_t arm) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, FAKE_SEED, CV_RNG_NOISE, arm, mechanism->releases + 1);
  cv_mechanism_draw(mechanism, &seeded.rng);
}

/* The co-broker's noise in an arm's n-th release. */
static inline int64_t fake_noise(uint32_t arm, uint64_t n) {
  const struct cv_mechanism_law law = mechanism_law("hybrid", 500000, 0);
  struct cv_mechanism *mechanism = mechanism_new(&law);
  int64_t noise = 0;
  while (mechanism->releases < n) {
    fake_draw(mechanism, arm);
    noise = cv_mechanism_release(mechanism, 0);
  }
  cv_mechanism_free(mechanism);
  return noise;
}

static inline void fake_begin(struct fake_cobroker *fake, const struct cv_share_open *open) {
  struct cv_mechanism_law law = mechanism_law("hybrid", 500000, 0);
  struct cv_split split = {.score_bits = open->spec.score_bits};
  law.shares = true;
  assert_int_equal(open->spec.brokers, 2);
  fake->is_open = true;
  memset(fake->key, 9, sizeof(fake->key));
  fake->position.campaign = open->position.campaign;
  memcpy(split.database, open->database, sizeof(split.database));
  assert_int_equal(cv_split_spec(&open->spec, cv_sha256, &split.spec), CV_OK);
  cv_sha256(fake->key, sizeof(fake->key), "", 0, &split.key);
  cv_split_context(&split, &fake_duo, open->position.campaign, cv_sha256, &fake->context);
  assert_int_equal(cv_prio_init(&fake->prio, CV_PRIO_SUM, CV_PRIO_MAX_MEASUREMENT), CV_OK);
  fake->batch = calloc(FAKE_BATCHES, sizeof(*fake->batch));
  fake->seen = calloc(FAKE_TOKENS, sizeof(*fake->seen));
  for (uint32_t i = 0; i < ARMS; i++) {
    fake->arm[i].mechanism = mechanism_new(&law);
  }
}

static inline void fake_plan(struct fake_cobroker *fake, const struct cv_plan *plan) {
  if (plan->number <= fake->position.plans) {
    return; /* repeated: its acceptance was lost */
  }
  assert_int_equal(plan->number, ++fake->position.plans);
  assert_int_equal(cv_chain_plan(&fake->position.plans_hash, plan, cv_sha256), CV_OK);
  for (uint32_t i = 0; i < plan->wants; i++) {
    struct fake_arm *arm = &fake->arm[plan->want[i].arm];
    assert_false(arm->is_open);
    arm->is_open = true;
    arm->want = plan->want[i].tokens;
    arm->count = arm->sum = 0;
    arm->chain = fake->position.plans_hash;
    fake_draw(arm->mechanism, plan->want[i].arm);
  }
}

/* The share is seen for the first time, or in the same form as before. */
static inline void fake_see(struct fake_cobroker *fake, const struct cv_share_pending *token) {
  for (size_t i = 0; i < fake->seens; i++) {
    struct fake_seen *seen = &fake->seen[i];
    if (memcmp(seen->nonce, token->token.nonce, sizeof(seen->nonce)) == 0) {
      assert_memory_equal(seen->verifier, token->verifier, token->verifiers * sizeof(seen->verifier[0]));
      return;
    }
  }
  struct fake_seen *seen = &fake->seen[fake->seens++];
  memcpy(seen->nonce, token->token.nonce, sizeof(seen->nonce));
  memcpy(seen->verifier, token->verifier, sizeof(seen->verifier));
}

static inline enum cv_share_answer fake_judge(struct fake_cobroker *fake, const struct cv_share_pending *token) {
  const struct cv_split_token *at = &token->token;
  struct fake_arm *arm = &fake->arm[at->arm];
  uint64_t verifier[CV_PRIO_MAX_VERIFIER_ELEMENTS], output;
  enum cv_share_answer answer = fake->judge == NULL ? CV_ANSWER_NONE : fake->judge(fake, token);
  uint8_t *slot = &fake->slot[(at->worker * 2 + at->slot) % FAKE_SLOTS];
  fake_see(fake, token);
  if (answer != CV_ANSWER_NONE) {
    *slot |= answer == CV_ANSWER_PROOF;
    return answer;
  }
  if (at->plan != fake->position.plans || !arm->is_open || at->place < arm->first ||
      at->place >= arm->first + arm->want || arm->place[at->place] != 0 || *slot != 0) {
    return CV_ANSWER_PLACE;
  }
  if (!cv_prio_verify_helper(&fake->prio, fake->key, fake->context.bytes, sizeof(fake->context.bytes), at->nonce,
                             token->sealed, verifier, &output) ||
      !cv_prio_accepts(&fake->prio, token->verifier, verifier)) {
    *slot = 1;
    return CV_ANSWER_PROOF;
  }
  *slot = arm->place[at->place] = 1;
  arm->count++;
  arm->sum = cv_field_add(arm->sum, cv_field_mul(output, cv_split_scale(CV_SPLIT_SCORE)));
  cv_split_chain(&arm->chain, at, cv_sha256);
  fake->accepted++;
  return CV_ANSWER_ACCEPTED;
}

static inline void fake_batch(struct fake_cobroker *fake, const struct cv_share_batch *batch,
                              struct cv_share_answers *ret) {
  struct fake_batch *stored = &fake->batch[batch->number - 1];
  struct cv_digest hash = fake->batch_hash[(batch->number - 1) % 64];
  assert_int_equal(cv_chain_batch(&hash, batch, cv_sha256), CV_OK);
  if (batch->number > fake->position.batches) {
    assert_int_equal(batch->number, ++fake->position.batches);
    stored->tokens = batch->tokens;
    for (size_t i = 0; i < batch->tokens; i++) {
      stored->answer[i] = (uint8_t)fake_judge(fake, &batch->token[i]);
    }
    fake->position.batches_hash = fake->batch_hash[batch->number % 64] = hash;
  }
  assert_memory_equal(&hash, &fake->batch_hash[batch->number % 64], sizeof(hash));
  assert_true(batch->number > fake->done); /* its answers are still there */
  *ret = (struct cv_share_answers){
      .campaign = batch->campaign, .number = batch->number, .answers = stored->tokens, .answer = stored->answer};
}

static inline uint64_t fake_close(struct fake_cobroker *fake, const struct cv_share_close *close) {
  struct fake_arm *arm = &fake->arm[close->arm];
  if (close->number <= fake->position.closings) {
    return fake->half[close->number];
  }
  assert_int_equal(close->number, ++fake->position.closings);
  cv_chain_close(&fake->position.closings_hash, close, cv_sha256);
  assert_int_equal(close->plan, fake->position.plans);
  assert_memory_equal(&close->plan_hash, &fake->position.plans_hash, sizeof(close->plan_hash));
  assert_memory_equal(&close->chain, &arm->chain, sizeof(close->chain));
  assert_true(arm->is_open);
  assert_int_equal(close->count, arm->count);
  arm->is_open = false;
  arm->first += arm->count;
  if (!close->discard) {
    assert_int_equal(close->count, arm->want);
    fake->half[close->number] = cv_mechanism_release_share(arm->mechanism, arm->sum);
  }
  return fake->half[close->number];
}

static inline void fake_opens(struct fake_cobroker *fake, const struct cv_share_frame *frame,
                              struct cv_share_frame *ret) {
  for (size_t i = 0; i < frame->opens; i++) {
    if (!fake->is_open) {
      fake_begin(fake, &frame->open[i]);
    }
    fake->opens++;
    fake->opened = (struct cv_share_opened){.position = fake->position};
    memcpy(fake->opened.key, fake->key, sizeof(fake->key));
    ret->opened = 1;
    ret->open_answer = &fake->opened;
  }
  for (size_t i = 0; i < frame->overs; i++) {
    fake->is_over = true;
    fake->end[0] = (struct cv_share_end){.campaign = frame->over[i].campaign, .reason = frame->over[i].reason};
    ret->ended = 1;
    ret->end = fake->end;
  }
}

/* The answer to a frame; false if it needs none. */
static inline bool fake_answer(struct fake_cobroker *fake, const struct cv_share_frame *frame,
                               struct cv_share_frame *ret) {
  *ret = (struct cv_share_frame){.plan_opened = fake->plan_opened, .answer = fake->answer, .half = fake->closed};
  assert_null(frame->goodbye);
  fake_opens(fake, frame, ret);
  for (size_t i = 0; i < frame->plans && !fake->is_mute; i++) {
    fake_plan(fake, &frame->plan[i].plan);
    fake->plan_opened[ret->plans_opened++] =
        (struct cv_share_number){.campaign = frame->plan[i].campaign, .number = frame->plan[i].plan.number};
  }
  for (size_t i = 0; i < frame->batches && !fake->is_mute; i++) {
    fake_batch(fake, &frame->batch[i], &fake->answer[ret->answers++]);
  }
  for (size_t i = 0; i < frame->dones; i++) {
    assert_true(frame->done[i].number <= fake->position.batches);
    fake->done = frame->done[i].number;
  }
  for (size_t i = 0; i < frame->closes && !fake->is_mute && !fake->hold_closings; i++) {
    uint64_t half = fake_close(fake, &frame->close[i]);
    fake->closed[ret->closed++] =
        (struct cv_share_closed){.campaign = frame->close[i].campaign, .number = frame->close[i].number, .half = half};
  }
  if (fake->bend != NULL) {
    fake->bend(fake, ret);
  }
  return ret->opened + ret->plans_opened + ret->plans_refused + ret->answers + ret->closed + ret->ended > 0;
}

#endif
