/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens of one campaign with two brokers that wait for the co-broker's verdict. Pure.
 *
 * A token is fresh until it is cut into a batch: the fresh tokens of one commit, in the order in which they came.
 * Batches are numbered from 1 without gaps and leave in that order, each with all of its tokens. A place and a slot is
 * held by at most one token.
 */
#ifndef CV_BROKER_DOCKET_H
#define CV_BROKER_DOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/digest.h"
#include "common/base/table.h"
#include "proto/codec/crowd.h"
#include "proto/codec/share.h"

struct cv_broker_conn;

enum { CV_DOCKET_MAX = 65536 /* of a campaign: assigned, or waiting for a verdict */ };

struct cv_docket_token {
  struct cv_share_pending sent; /* as the co-broker gets it */
  uint64_t output;              /* this broker's share of the score: an element (common/prio/field.h) */
  uint64_t question;            /* that it answers (question.h) */
  uint64_t place, payer;        /* their bits (cv_place_bit(), cv_broker_campaign_payer_bit()) */
  uint32_t position;            /* of the place in its epoch */
  /* Nobody else holds the place, or the slot: it is free again when the token does not count. Not stored. */
  bool has_place, has_slot;
  struct cv_broker_conn *conn;     /* gets the acknowledgement; NULL: gone */
  uint8_t ticket[CV_TICKET_BYTES]; /* if there is a connection */
  UT_hash_handle by_place, by_payer;
};

struct cv_docket_batch {
  uint64_t number;
  uint32_t tokens;
  bool is_stored;
  struct cv_docket_token **token; /* owned, with the tokens */
  struct cv_digest hash;          /* the chain of all batches up to this one (cv_chain_batch()) */
  struct cv_docket_batch *next;
};

struct cv_docket_worker;

/* All zero: nothing waits. */
struct cv_docket {
  struct cv_docket_token *by_place, *by_payer;
  uint32_t count;                 /* tokens, fresh ones and those in batches */
  struct cv_docket_token **fresh; /* owned, with the tokens */
  uint32_t fresh_count;
  size_t fresh_cap;
  struct cv_docket_batch *first; /* the oldest batch; owned, with those after it */
  uint64_t settled;              /* number of the last batch that has left */
  struct cv_digest settled_hash;
  struct cv_docket_worker *workers;
};

void cv_docket_fini(struct cv_docket *docket);
/* The token that holds the place, or the slot; NULL if none does. */
struct cv_docket_token *cv_docket_at_place(const struct cv_docket *docket, uint64_t place);
struct cv_docket_token *cv_docket_at_payer(const struct cv_docket *docket, uint64_t payer);
/* How many tokens of the worker wait. */
uint32_t cv_docket_of(const struct cv_docket *docket, uint64_t worker);
/* Adds a copy of a token whose place and slot nobody holds, as the last fresh one. CV_ERR_NOMEM, without any change. */
CV_MUST_USE enum cv_err cv_docket_add(struct cv_docket *docket, const struct cv_docket_token *token);
/* Cuts all fresh tokens into batches of at most CV_BATCH_TOKENS. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_docket_cut(struct cv_docket *docket, uint32_t campaign, cv_digest_fn *digest);
/* The number of the last batch; the batch with that number, NULL if it does not wait; the chain of all batches up to a
 * number, NULL if it is none from the last that has left to the last. */
uint64_t cv_docket_last(const struct cv_docket *docket);
const struct cv_digest *cv_docket_hash_at(const struct cv_docket *docket, uint64_t number);
struct cv_docket_batch *cv_docket_find(const struct cv_docket *docket, uint64_t number);
/* Removes a token's hold on place and slot, before what became of it is decided. */
void cv_docket_release(struct cv_docket *docket, struct cv_docket_token *token);
/* Frees the oldest batch, all of whose tokens are released. */
void cv_docket_drop_first(struct cv_docket *docket);
/* No acknowledgement goes to the connection any more. */
void cv_docket_forget(struct cv_docket *docket, const struct cv_broker_conn *conn);

/* The batch in its wire form; its tokens are `room`, which has at least CV_BATCH_TOKENS elements. */
struct cv_share_batch cv_docket_batch_share(const struct cv_docket_batch *batch, uint32_t campaign,
                                            struct cv_share_pending *room);
/* The stored form of a batch. Reading adds it under that number, in any order; see cv_docket_settle().
 * CV_ERR_DAMAGED, CV_ERR_NOMEM. */
void cv_docket_batch_put(const struct cv_docket_batch *batch, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_docket_batch_read(struct cv_docket *docket, uint64_t number, struct cv_reader *in);
/* After all batches are read: lists their tokens by the place and slot that `bits` writes, and chains the batches.
 * CV_ERR_DAMAGED if a number is missing, or two tokens hold the same place or slot; the errors of `bits`;
 * CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_docket_settle(struct cv_docket *docket, uint32_t campaign, cv_digest_fn *digest,
                                         enum cv_err (*bits)(void *data, struct cv_docket_token *token), void *data);

#endif
