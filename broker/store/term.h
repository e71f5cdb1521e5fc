/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a broker that shares a database with others gets the term, and what its anchor says of that database. This module
 * has the order of the steps; the database is behind struct cv_term_ops.
 *
 *   cv_term_stand_by, again and again, until the lock is this broker's -> cv_term_take -> commits
 *
 * After an error of either the lock must be given up.
 */
#ifndef CV_BROKER_STORE_TERM_H
#define CV_BROKER_STORE_TERM_H

#include <stdbool.h>

#include "broker/both/anchor.h"
#include "broker/both/vault.h"
#include "broker/store/lineage.h"

/* `data` is that of struct cv_term. */
struct cv_term_ops {
  /* Reads the terms that are not in `lineage`, `mark`, `prior`, `is_new` and `disputed`, all of one moment; after
   * connecting `taken`, too. */
  enum cv_err (*read)(void *data, struct cv_why *why);
  /* Opens the vault with the keys as they are stored now. */
  enum cv_err (*open_vault)(void *data, struct cv_why *why);
  /* Looks after the one who has the lock. */
  enum cv_err (*see_holder)(void *data, bool *ret_is_held, struct cv_why *why);
  /* Takes the lock if nobody has it; never waits for it. */
  enum cv_err (*try_lock)(void *data, bool *ret_is_ours, struct cv_why *why);
  /* Records that a broker's anchor contradicts the database, which stops the active broker at its next commit. */
  enum cv_err (*dispute)(void *data, const char *text, struct cv_why *why);
  /* Stores identity and keys of a new database, and opens its vault. */
  enum cv_err (*make)(void *data, struct cv_why *why);
  /* Draws the id of a term at the database. CV_ERR_DAMAGED: it is not the server that it was, unless `recovers`. */
  enum cv_err (*draw)(void *data, uint8_t ret_id[CV_TERM_ID_BYTES], struct cv_why *why);
  /* A fenced commit without rows; when it returns, everything before it is durable, too. */
  enum cv_err (*touch)(void *data, struct cv_why *why);
  /* Stores the next term with this id, if `mark` is the database's own, and sets `mark` and `lineage`. */
  enum cv_err (*begin)(void *data, const uint8_t id[CV_TERM_ID_BYTES], struct cv_why *why);
  /* The database's name, for messages. */
  const char *(*where)(void *data);
};

struct cv_term {
  const struct cv_term_ops *ops;
  void *data;
  /* The database, as it was read last or committed. */
  struct cv_lineage lineage;
  struct cv_anchor_mark mark;
  struct cv_digest prior;        /* hash of the commit before */
  bool is_new;                   /* it has no identity yet */
  char disputed[200];            /* "": nobody disputes its history */
  struct cv_anchor_place *taken; /* by recoveries: anchors whose totals have been charged */
  size_t takens, takens_cap;
  struct cv_vault *vault;
  /* This broker's anchor. */
  struct cv_anchor *anchor;
  struct cv_anchor_mark anchored;
  bool has_anchor;
  /* An operator's recovery: the term is taken whatever anchors and disputes say, and the anchor stays as it is until
   * the recovery is stored. */
  bool recovers;
};

/* Frees lineage, vault and anchor. */
void cv_term_fini(struct cv_term *term);

/*
 * One attempt to get the lock. The anchor must hold (lineage.h), and follows the active broker one commit behind: the
 * last commit proves only that the one before was acknowledged. Without an anchor a broker follows an active one until
 * it has built one.
 */
CV_MUST_USE enum cv_err cv_term_stand_by(struct cv_term *term, bool *ret_is_ours, struct cv_why *why);
/*
 * What anchors, this broker's among them, say of the database together. Those that hold, or that a recovery has taken
 * in, say nothing. Of the others, which are listed in `taken`, the largest figures count; the database is the beginning
 * of their history (`is_same`) only if it has no commit after the term of each. Of every other term the whole promise
 * is added: it may be another history. `is_moved`: the server is another one, or was restored or promoted. Then one
 * anchor has to be ahead, or of the very last commit; CV_ERR_DAMAGED, unless `lost`.
 */
CV_MUST_USE enum cv_err cv_term_weigh(const struct cv_term *term, const struct cv_anchor_mark *anchor, size_t n,
                                      bool is_moved, bool lost, struct cv_store_marks *ret, struct cv_why *why);
/* The lock is ours: begins the term. CV_OK: it is durable, and this broker is active. */
CV_MUST_USE enum cv_err cv_term_take(struct cv_term *term, struct cv_why *why);

#endif
