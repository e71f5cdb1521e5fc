/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one commit writes: a list of operations whose bytes lie in one buffer. The core fills it in one go with the
 * after-images of everything that changed since the last one; the store writes it in one transaction.
 *
 * A batch is handed from the loop to the storage thread and back; nobody else holds pointers into it.
 */
#ifndef CV_BROKER_BATCH_H
#define CV_BROKER_BATCH_H

#include "common/base/buf.h"

enum cv_op_kind {
  CV_OP_CAMPAIGN,  /* new: bytes = requester, client key, spec, times */
  CV_OP_STATE,     /* bytes = cv_campaign_row that changes: phase, end, tokens, seed */
  CV_OP_PLAN,      /* number = plan; bytes = wants */
  CV_OP_RELEASE,   /* number = release; bytes = one release */
  CV_OP_LEDGER,    /* number = arm; bytes = its account */
  CV_OP_RECOVERY,  /* number = recovery; bytes = what it charged */
  CV_OP_STANDINGS, /* bytes = all standings */
  CV_OP_JOURNAL,   /* sealed: accepted places and payers, partial sums, state of arms */
  CV_OP_CHUNK,     /* sealed: kind, number, content */
  CV_OP_UNCHUNK,   /* deletes a chunk */
  CV_OP_TRIM,      /* deletes journal rows of commits below `number`, of every campaign */
  CV_OP_PURGE,     /* deletes journal and chunks of a campaign: nothing secret stays */
  CV_OP_ENDED,     /* bytes = what is kept in memory of a campaign that has ended; campaign 0: of all forgotten ones */
  CV_OP_DROP,      /* deletes plans and releases of an ended campaign up to `number`; CV_DROP_ALL: whatever it has */
  CV_OP_FORGET,    /* deletes what CV_OP_ENDED wrote */
};

#define CV_DROP_ALL UINT64_C(0x7fffffffffffffff)

enum cv_chunk_kind { CV_CHUNK_PLACES = 1, CV_CHUNK_PAYERS, CV_CHUNK_ARM, CV_CHUNK_ACCOUNTS };

struct cv_op {
  enum cv_op_kind kind;
  enum cv_chunk_kind chunk; /* CHUNK, UNCHUNK */
  uint32_t campaign;        /* 0: of the broker as a whole */
  uint64_t number;
  size_t at, n; /* bytes in batch.bytes */
};

/* What has happened in all, for the anchor: it only grows. */
struct cv_totals {
  uint64_t campaigns; /* the last campaign's number */
  uint64_t releases, tokens;
  uint64_t promised_micro; /* the most that one worker can have been charged by all campaigns together */
};

struct cv_batch {
  uint64_t commit; /* from 1; only a recovery leaves a gap */
  struct cv_totals totals;
  struct cv_op *op;
  size_t ops, cap;
  struct cv_buf bytes;
};

void cv_batch_fini(struct cv_batch *batch);
/* Empties it; keeps its memory. */
void cv_batch_clear(struct cv_batch *batch);
/* Opens an operation; what is put into batch->bytes until the next one belongs to it. */
CV_MUST_USE enum cv_err cv_batch_open(struct cv_batch *batch, enum cv_op_kind kind, uint32_t campaign, uint64_t number);
void cv_batch_shut(struct cv_batch *batch);

#endif
