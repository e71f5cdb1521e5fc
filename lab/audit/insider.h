/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of a campaign's two brokers as an adversary: what it puts together from all that it has and is sent. It subtracts
 * its own share and its own noise, so that of every release the other broker's noise is left. It may also tell the
 * other one a lie.
 *
 * It stands on the line between both brokers: the pipeline shows it every frame, in order.
 */
#ifndef CV_LAB_AUDIT_INSIDER_H
#define CV_LAB_AUDIT_INSIDER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/mechanism/mechanism.h"
#include "lab/audit/opening.h"
#include "proto/codec/crowd.h"
#include "proto/codec/share.h"

/* What a broker says about the first plan that is not so. */
enum cv_lie {
  CV_LIE_NONE,
  CV_LIE_ARM,   /* two tokens under each other's arm */
  CV_LIE_SLOT,  /* a worker's answer, and its second answer under the same slot, in two places */
  CV_LIE_AGAIN, /* the same under another slot, in two places of one arm */
  CV_LIE_SHORT, /* an epoch of two tokens is closed with the first one */
  CV_LIE_KEY,   /* the co-broker has no place for any token, and then another verify key */
};

enum { CV_INSIDER_ARMS = 2, CV_INSIDER_ROUNDS = 4, CV_INSIDER_TOKENS = 64 };

/* What it has in the end. 0: not seen. */
struct cv_insider_view {
  int64_t sum[CV_INSIDER_ROUNDS][CV_INSIDER_ARMS];   /* of a release: exact sum and the other broker's noise */
  int64_t noise[CV_INSIDER_ROUNDS][CV_INSIDER_ARMS]; /* its own noise in that release */
  int64_t share;                                     /* its output share of the changed token */
  int64_t check;  /* as co-broker: a wire of the changed token's verifier, put together */
  int64_t opened; /* as co-broker: what two of its verifiers give away (opening.h) */
  uint64_t rest;  /* a digest of the verdicts, and of who gave which token */
};

struct cv_insider {
  /* given */
  bool is_cobroker;
  enum cv_lie lie;
  uint32_t arm, round;         /* of the changed token, the first of its epoch; round from 1 */
  uint64_t measurement;        /* of the changed token's worker, for its second answer, ... */
  struct cv_rng *fresh;        /* ... and its randomness */
  struct cv_mechanism_law law; /* of the campaign */
  uint32_t score_bits;
  struct cv_insider_view view;
  /* the rest is its own; zero at first */
  struct cv_prio prio;
  uint8_t key[CV_SPLIT_SEED_BYTES], session_key[CV_SPLIT_SEED_BYTES];
  struct cv_digest context, plans;
  size_t heard; /* tokens of which it has the leader's share */
  struct cv_insider_share {
    uint8_t nonce[CV_SPLIT_NONCE_BYTES], leader[CV_SPLIT_LEADER_MOST];
    size_t leader_bytes;
  } share[CV_INSIDER_TOKENS];
  size_t sent, judged; /* tokens that the co-broker was asked about, and has answered */
  struct cv_insider_token {
    struct cv_split_token at;
    uint64_t output;
  } token[CV_INSIDER_TOKENS];
  struct cv_digest chain[CV_INSIDER_ARMS];
  uint64_t item[CV_INSIDER_ROUNDS + 1][CV_INSIDER_ARMS], covered[CV_INSIDER_ARMS];
  size_t closes;
  struct cv_share_close close[CV_INSIDER_ROUNDS * CV_INSIDER_ARMS];
  size_t closed;
  struct cv_opening verifier; /* of the changed token, the first one */
  bool lied, alone, ended, verified;
  /* room for a frame that is bent */
  struct cv_share_batch batch;
  struct cv_share_pending pending[CV_INSIDER_TOKENS];
  struct cv_share_close bent[CV_INSIDER_ROUNDS * CV_INSIDER_ARMS];
  struct cv_share_answers answers;
  uint8_t answer[CV_INSIDER_TOKENS];
  struct cv_share_opened opened;
};

/* Sets what is not given. CV_ERR_LIMIT. */
CV_MUST_USE enum cv_err cv_insider_init(struct cv_insider *insider);
/* A session begins, with this context and key. */
void cv_insider_session(struct cv_insider *insider, const struct cv_digest *context, const uint8_t *session_key);
/* A frame of the workers, on its way to the broker. CV_ERR_LIMIT: more tokens than it can hold. */
CV_MUST_USE enum cv_err cv_insider_on_crowd(struct cv_insider *insider, const struct cv_crowd_frame *frame);
/* A frame of the broker. Sets *ret to what the co-broker gets instead; it is valid until the next call. */
CV_MUST_USE enum cv_err cv_insider_on_broker(struct cv_insider *insider, const struct cv_share_frame *frame,
                                             struct cv_share_frame *ret);
/* The same for a frame of the co-broker. */
CV_MUST_USE enum cv_err cv_insider_on_cobroker(struct cv_insider *insider, const struct cv_share_frame *frame,
                                               struct cv_share_frame *ret);
/* After the co-broker's lie: what it answers to a frame of the broker on the next connection. */
void cv_insider_answer(struct cv_insider *insider, const struct cv_share_frame *frame, struct cv_share_frame *ret);
/* A release, on its way to the third-party. */
void cv_insider_on_release(struct cv_insider *insider, const struct cv_release *release);
/* Whether it has lied such that its own core does not know any more what it has said: it goes on alone. */
bool cv_insider_is_alone(const struct cv_insider *insider);
/* Whether it has lied, and knows what comes of it. */
bool cv_insider_is_done(const struct cv_insider *insider);

#endif
