/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of one commit: a list of operations on rows, whose bytes are in one buffer. The core fills a batch with
 * the after-images of everything that changed since the previous batch; the store writes it in one transaction.
 *
 * A batch is passed from the event loop to the storage thread and back; no other code holds pointers into it.
 */
#ifndef CV_COBROKER_BATCH_H
#define CV_COBROKER_BATCH_H

#include "broker/both/anchor.h"
#include "common/base/buf.h"

/*
 * Kinds of rows, stored: numbers stay. A row is named by campaign, kind and number. They are restored in this order,
 * campaign by campaign; a restart reads rows in the clear before sealed ones.
 */
enum cv_cobroker_row {
  /* in the clear */
  CV_COROW_CAMPAIGN = 1, /* what was opened; never replaced */
  CV_COROW_PLAN,         /* its wants, by plan; never replaced */
  CV_COROW_LEDGER,       /* an account, by arm */
  CV_COROW_STATE,        /* counts and hashes of batches */
  CV_COROW_ENDED,        /* what is left of an ended campaign; of campaign 0: sums over all forgotten ones */
  CV_COROW_RECOVERY,     /* of campaign 0: what a recovery charged, by recovery; never replaced */
  /* sealed */
  CV_COROW_KEY = 16, /* the verify key; never replaced */
  CV_COROW_ARM,      /* an arm's share of its sum, and its noise */
  CV_COROW_PLACES,   /* a chunk of bits */
  CV_COROW_SLOTS,    /* a chunk of bits */
  CV_COROW_CLOSING,  /* by closing, with the half; never replaced */
  CV_COROW_ANSWERS,  /* to a batch that the broker has not yet booked, by batch; never replaced */
  CV_COROW_ACCOUNTS, /* of campaign 0: a chunk of the workers' accounts */
  CV_COROW_JOURNAL,  /* by commit: tokens judged, sums of arms, whole arms */
  CV_COROW_ANSWERED, /* a chunk of what workers have answered; before the journal, which is read last */
};

static inline bool cv_cobroker_row_is_sealed(enum cv_cobroker_row kind) {
  return kind >= CV_COROW_KEY;
}

enum cv_cobroker_op_kind {
  CV_COOP_PUT,    /* writes the row */
  CV_COOP_DELETE, /* deletes the row */
  CV_COOP_TRIM,   /* deletes journal rows of commits below `number`, of every campaign */
  CV_COOP_PURGE,  /* deletes all rows of the campaign, and its key, so that no secret of it remains */
};

struct cv_cobroker_op {
  enum cv_cobroker_op_kind kind;
  enum cv_cobroker_row row; /* PUT, DELETE */
  uint32_t campaign;        /* 0: not of a campaign */
  uint64_t number;
  size_t at, n; /* bytes in batch.bytes */
};

struct cv_cobroker_batch {
  uint64_t commit; /* counts from 1; only a recovery skips numbers */
  struct cv_totals totals;
  struct cv_cobroker_op *op;
  size_t ops, cap;
  struct cv_buf bytes; /* secret */
};

void cv_cobroker_batch_fini(struct cv_cobroker_batch *batch);
/* Removes all operations; keeps the allocated memory, wiped. */
void cv_cobroker_batch_clear(struct cv_cobroker_batch *batch);
/* Opens an operation. Bytes appended to batch->bytes belong to it until cv_cobroker_batch_shut(). */
CV_MUST_USE enum cv_err cv_cobroker_batch_put(struct cv_cobroker_batch *batch, enum cv_cobroker_row row,
                                              uint32_t campaign, uint64_t number);
void cv_cobroker_batch_shut(struct cv_cobroker_batch *batch);
/* An operation without bytes. */
CV_MUST_USE enum cv_err cv_cobroker_batch_add(struct cv_cobroker_batch *batch, enum cv_cobroker_op_kind kind,
                                              enum cv_cobroker_row row, uint32_t campaign, uint64_t number);

#endif
