/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of one commit: a list of operations whose bytes are in one buffer. The core fills a batch with the
 * after-images of everything that changed since the previous batch; the store writes it in one transaction.
 *
 * A batch is passed from the event loop to the storage thread and back; no other code holds pointers into it.
 */
#ifndef CV_BROKER_BATCH_H
#define CV_BROKER_BATCH_H

#include "broker/both/anchor.h"
#include "broker/both/kinds.h"
#include "common/base/buf.h"

enum cv_op_kind {
  CV_OP_CAMPAIGN,  /* new: bytes = requester, client key, spec, times */
  CV_OP_STATE,     /* bytes = the campaign's mutable fields: phase, end, tokens, seed */
  CV_OP_PLAN,      /* number = plan; bytes = wants */
  CV_OP_RELEASE,   /* number = release; bytes = one release */
  CV_OP_LEDGER,    /* number = arm; bytes = its account */
  CV_OP_RECOVERY,  /* number = recovery; bytes = what it charged */
  CV_OP_STANDINGS, /* bytes = the standings of all arms */
  CV_OP_JOURNAL,   /* sealed: accepted places and payers, partial sums, state of arms */
  CV_OP_CHUNK,     /* sealed: kind, number, content */
  CV_OP_UNCHUNK,   /* deletes a chunk */
  CV_OP_TRIM,      /* deletes journal rows of commits below `number`, of every campaign */
  CV_OP_PURGE,     /* deletes journal and chunks of a campaign, so that no secret of it remains */
  CV_OP_ENDED,     /* bytes = the record of an ended campaign; campaign 0: sums over all forgotten ones */
  CV_OP_DROP,      /* deletes plans and releases of an ended campaign up to `number`; CV_DROP_ALL: all its rows */
  CV_OP_FORGET,    /* deletes the row that CV_OP_ENDED wrote */
};

#define CV_DROP_ALL UINT64_C(0x7fffffffffffffff)

struct cv_op {
  enum cv_op_kind kind;
  enum cv_kind chunk; /* CHUNK, UNCHUNK */
  uint32_t campaign;  /* 0: not of a campaign */
  uint64_t number;
  size_t at, n; /* bytes in batch.bytes */
};

struct cv_broker_batch {
  uint64_t commit; /* counts from 1; only a recovery skips numbers */
  struct cv_totals totals;
  struct cv_op *op;
  size_t ops, cap;
  struct cv_buf bytes;
};

void cv_broker_batch_fini(struct cv_broker_batch *batch);
/* Removes all operations; keeps the allocated memory. */
void cv_broker_batch_clear(struct cv_broker_batch *batch);
/* Opens an operation. Bytes appended to batch->bytes belong to it until the next open or shut. */
CV_MUST_USE enum cv_err cv_broker_batch_open(struct cv_broker_batch *batch, enum cv_op_kind kind, uint32_t campaign,
                                             uint64_t number);
void cv_broker_batch_shut(struct cv_broker_batch *batch);

#endif
