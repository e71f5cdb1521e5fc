/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terms of a database that several brokers share. In a term one broker commits; the table of terms is the history
 * of who did, and with it an anchor is judged. Pure.
 */
#ifndef CV_BROKER_STORE_LINEAGE_H
#define CV_BROKER_STORE_LINEAGE_H

#include <stddef.h>

#include "broker/both/mark.h"
#include "common/base/err.h"

struct cv_lineage_term {
  uint64_t number;              /* from 1 */
  uint8_t id[CV_TERM_ID_BYTES]; /* drawn by the database: two histories never share one */
  uint64_t commit_before;       /* the last commit before the term, and its hash */
  struct cv_digest hash_before;
};

struct cv_lineage {
  struct cv_lineage_term *item; /* by number */
  size_t n, cap;
};

void cv_lineage_fini(struct cv_lineage *lineage);
/* Adds a term, whose number must be above all others. CV_ERR_NOMEM, CV_ERR_DAMAGED. */
CV_MUST_USE enum cv_err cv_lineage_add(struct cv_lineage *lineage, const struct cv_lineage_term *item);
/* The term with this number; NULL if there is none. */
const struct cv_lineage_term *cv_lineage_find(const struct cv_lineage *lineage, uint64_t number);

enum cv_lineage_verdict {
  CV_LINEAGE_HOLDS,   /* the anchor's commit is part of the history */
  CV_LINEAGE_FOREIGN, /* the anchor is of another database */
  CV_LINEAGE_FORKED,  /* another history: the anchor's term is not in the table, or made another commit */
  CV_LINEAGE_BEHIND,  /* the history ends before the anchor's commit, or its term did */
};

/* Judges an anchor by the terms and the database's own mark. A larger number proves nothing: a fork may have it. */
enum cv_lineage_verdict cv_lineage_judge(const struct cv_lineage *lineage, const struct cv_anchor_mark *mark,
                                         const struct cv_anchor_mark *anchor);
/* What is wrong, for people; "" if nothing. */
const char *cv_lineage_text(enum cv_lineage_verdict verdict);

#endif
