/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between worker (or gateway) and co-broker, and between broker and co-broker: share.proto as plain structs. */
#ifndef CV_CODEC_SHARE_H
#define CV_CODEC_SHARE_H

#include "common/base/digest.h"
#include "common/base/hello.h"
#include "common/base/result.h"
#include "common/base/spec.h"
#include "common/base/split.h"
#include "common/base/terms.h"
#include "common/base/wire.h"
#include "proto/codec/frame.h"

enum { CV_BATCH_TOKENS = 1024 /* most tokens of one batch: it fits into one frame */ };

struct cv_share_session {
  struct cv_terms terms;
  uint8_t id[CV_SPLIT_SESSION_BYTES];
};

struct cv_share_turned {
  uint64_t campaign;
  const char *why;
  uint32_t again_ms;
};

/* What one side has of a campaign. The hashes are zero when there is nothing. */
struct cv_share_position {
  uint64_t campaign;
  uint64_t plans, batches, closings;
  struct cv_digest plans_hash, batches_hash, closings_hash;
};

struct cv_share_open {
  struct cv_spec spec; /* in the arena (decode) or borrowed (encode): do not call cv_spec_fini() */
  struct cv_share_position position;
  uint8_t database[CV_SPLIT_DATABASE_BYTES];
  char requester[CV_NAME_BYTES];
  uint64_t deadline_ms;
};

struct cv_share_opened {
  struct cv_share_position position;
  uint8_t key[CV_SPLIT_SEED_BYTES];
  const char *refused; /* NULL unless refused; then there is no key */
};

struct cv_share_plan {
  uint64_t campaign;
  struct cv_plan plan;
};

struct cv_share_number {
  uint64_t campaign, number;
};

struct cv_share_refused {
  uint64_t campaign, plan;
  enum cv_end reason;
  const char *why;
  uint64_t asked, left;
};

struct cv_share_pending {
  struct cv_split_token token;
  uint8_t session[CV_SPLIT_SESSION_BYTES];
  uint64_t counter;
  uint8_t sealed[CV_SPLIT_SEALED_BYTES];
  uint32_t verifiers; /* 1 .. CV_SPLIT_VERIFIERS_MOST */
  uint64_t verifier[CV_SPLIT_VERIFIERS_MOST];
};

struct cv_share_batch {
  uint64_t campaign, number;
  size_t tokens; /* 1 .. CV_BATCH_TOKENS */
  struct cv_share_pending *token;
};

enum cv_share_answer {
  CV_ANSWER_NONE,
  CV_ANSWER_ACCEPTED,
  CV_ANSWER_PROOF,
  CV_ANSWER_PLACE,
  CV_ANSWER_WORKER,
  CV_ANSWER_SESSION,
  CV_ANSWERS
};

struct cv_share_answers {
  uint64_t campaign, number;
  size_t answers;  /* 1 .. CV_BATCH_TOKENS */
  uint8_t *answer; /* enum cv_share_answer, none of them CV_ANSWER_NONE */
};

struct cv_share_close {
  uint64_t campaign, number, plan;
  struct cv_digest plan_hash, chain;
  uint32_t arm;
  uint64_t count;
  bool discard;
};

struct cv_share_closed {
  uint64_t campaign, number;
  uint64_t half;
};

struct cv_share_end {
  uint64_t campaign;
  enum cv_end reason;
  const char *why; /* of Ended; else NULL */
};

struct cv_share_frame {
  struct cv_hello hello;
  const char *goodbye;
  /* worker to co-broker */
  size_t enters;
  uint64_t *enter; /* campaigns */
  /* co-broker to worker */
  size_t sessions, turned;
  struct cv_share_session *session;
  struct cv_share_turned *turn;
  /* broker to co-broker */
  size_t opens, plans, batches, dones, closes, overs;
  struct cv_share_open *open;
  struct cv_share_plan *plan;
  struct cv_share_batch *batch;
  struct cv_share_number *done;
  struct cv_share_close *close;
  struct cv_share_end *over;
  /* co-broker to broker */
  size_t opened, plans_opened, plans_refused, answers, closed, ended;
  struct cv_share_opened *open_answer;
  struct cv_share_number *plan_opened;
  struct cv_share_refused *plan_refused;
  struct cv_share_answers *answer;
  struct cv_share_closed *half;
  struct cv_share_end *end;
};

/* As cv_crowd_encode() and cv_crowd_decode() (crowd.h); a frame with opens or plans may be as long as
 * cv_codec_frame_most() says. */
CV_MUST_USE enum cv_err cv_share_encode(const struct cv_share_frame *frame, struct cv_arena *scratch,
                                        struct cv_buf *out);
CV_MUST_USE enum cv_err cv_share_decode(const void *bytes, size_t n, struct cv_arena *arena,
                                        struct cv_share_frame *ret);

/* The hash chains for resync, like those of releases and plans (chain.h): over the fixed little-endian layouts of a
 * batch and of a closing (docs/protocol.md). Plain bytes, without protobuf (share_chain_dep). cv_chain_batch():
 * CV_ERR_NOMEM, and then the hash is unchanged. */
CV_MUST_USE enum cv_err cv_chain_batch(struct cv_digest *hash, const struct cv_share_batch *batch,
                                       cv_digest_fn *digest);
void cv_chain_close(struct cv_digest *hash, const struct cv_share_close *close, cv_digest_fn *digest);

/* The schema for a daemon's lanes. cut() splits a frame of any size; the parts have its entries in the order of the
 * envelope's fields. */
extern const struct cv_wire CV_SHARE_WIRE;

#endif
