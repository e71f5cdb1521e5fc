/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between worker (or gateway) and broker: crowd.proto as plain structs. */
#ifndef CV_CODEC_CROWD_H
#define CV_CODEC_CROWD_H

#include "common/base/split.h"
#include "common/base/terms.h"
#include "proto/codec/frame.h"

enum { CV_TICKET_BYTES = 48 };
#define CV_WISH_NONE UINT32_MAX
enum { CV_SPENT_ARMS_MOST = 1000 }; /* most arms in one Decline */
enum { CV_ARRIVE_MOST = 2000 };     /* most workers in one Arrive, so that it fits into an envelope with tokens */

enum cv_verdict { CV_VERDICT_NONE, CV_VERDICT_ACCEPTED, CV_VERDICT_DUPLICATE, CV_VERDICT_EXPIRED, CV_VERDICT_REFUSED };

struct cv_arrive {
  size_t workers;
  const uint64_t *worker;
  const uint32_t *wish; /* arm wanted by each worker, CV_WISH_NONE: any; NULL: any for all */
  uint32_t credit;
};

/* A token of a campaign with two brokers: the leader's share in the clear, the helper's sealed for the co-broker. */
struct cv_token_share {
  uint8_t nonce[CV_SPLIT_NONCE_BYTES];
  size_t leader_bytes; /* 1 .. CV_SPLIT_LEADER_MOST */
  const uint8_t *leader;
  uint8_t session[CV_SPLIT_SESSION_BYTES];
  uint64_t counter;
  uint8_t sealed[CV_SPLIT_SEALED_BYTES];
};

struct cv_token {
  uint8_t ticket[CV_TICKET_BYTES];
  size_t values; /* 1 .. CV_VALUES_MAX; 0 with a share */
  const int64_t *value;
  const struct cv_token_share *share; /* NULL: one broker */
};

/* Declines a whole campaign, or the one assignment with the ticket. */
/* Of a Decline with `used_up`: there are no data. Another reason: whoever has some may give no more of them. */
#define CV_SPENT_WHY "the data of this arm are used up"

struct cv_decline {
  uint64_t campaign; /* 0 with a ticket */
  const char *why;
  /* With a ticket: no score for this place of the arm, nor for a later one. Else: no further score of these arms, of
   * which there is at least one. */
  bool used_up;
  size_t arms;
  const uint32_t *arm;
  bool has_ticket;
  uint8_t ticket[CV_TICKET_BYTES];
};

struct cv_assign {
  uint64_t campaign;
  uint64_t worker;
  uint8_t ticket[CV_TICKET_BYTES];
  uint32_t arms; /* 1 .. CV_VALUES_MAX */
  union {
    uint32_t one;         /* the arm, when arms == 1 */
    const uint32_t *many; /* the arms, otherwise */
  } arm;
  uint64_t place;
  uint64_t round; /* position of the token in the campaign, as planned, from 0 */
  /* How many rounds ago another arm was asked for, 1 = in the round before; 0: in none of CV_MEMORY_MAX rounds. */
  uint32_t switched;
  uint32_t opponent; /* 1 + the arm that the one asked is compared with; 0: none */
  /* Of a campaign with two brokers, else 0: what the worker binds its shares to. */
  uint64_t plan;
  uint32_t slot; /* the token's number among this worker's, from 0 */
};

struct cv_crowd_ack {
  uint8_t ticket[CV_TICKET_BYTES];
  enum cv_verdict verdict;
  const char *why;
};

struct cv_backoff {
  size_t workers;
  const uint64_t *worker;
  uint32_t delay_ms;
  const char *why;
  uint64_t campaign;
};

struct cv_crowd_frame {
  struct cv_hello hello;
  const char *goodbye; /* NULL if there is none */
  size_t arrives, tokens, declines, campaigns, assigns, acks, backoffs, dones;
  struct cv_arrive *arrive;
  struct cv_token *token;
  struct cv_decline *decline;
  struct cv_terms *campaign;
  struct cv_assign *assign;
  struct cv_crowd_ack *ack;
  struct cv_backoff *backoff;
  uint64_t *done;
};

/* Appends the envelope to `out`. Resets `scratch` and uses it during the call. CV_ERR_LIMIT if the envelope is over
 * CV_FRAME_BYTES. */
CV_MUST_USE enum cv_err cv_crowd_encode(const struct cv_crowd_frame *frame, struct cv_arena *scratch,
                                        struct cv_buf *out);
/* Decodes into `arena`, after resetting it; `ret` and its pointers are valid until the next reset. */
CV_MUST_USE enum cv_err cv_crowd_decode(const void *bytes, size_t n, struct cv_arena *arena,
                                        struct cv_crowd_frame *ret);

/*
 * The schema for a daemon's lanes. cut() splits a frame of any size: a campaign's terms are sent before its
 * assignments, a goodbye last. An envelope takes one entry of `arrive`, so each entry must fit by itself
 * (CV_ARRIVE_MOST).
 */
extern const struct cv_wire CV_CROWD_WIRE;

#endif
