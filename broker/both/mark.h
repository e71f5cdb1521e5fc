/* SPDX-License-Identifier: Apache-2.0 */
/* How far a broker's database is: the last commit, and totals that never decrease. */
#ifndef CV_BROKER_BOTH_MARK_H
#define CV_BROKER_BOTH_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/digest.h"

/* Totals over the broker's lifetime, for the anchor; they never decrease. */
struct cv_totals {
  uint64_t campaigns; /* number of the newest campaign */
  uint64_t releases, tokens;
  uint64_t promised_micro; /* upper bound of what all campaigns together have charged one worker */
};

enum { CV_DATABASE_ID_BYTES = 16, CV_TERM_ID_BYTES = 16 };

struct cv_anchor_mark {
  uint8_t database[CV_DATABASE_ID_BYTES];
  uint64_t commit;
  struct cv_digest hash; /* chained over all commits */
  struct cv_totals totals;
  /* The term that made the commit, of a database that several brokers share (broker/store/lineage.h); 0: of one broker.
   */
  uint64_t term;
  uint8_t term_id[CV_TERM_ID_BYTES];
};

/* A commit of a term; an anchor is known by it. */
struct cv_anchor_place {
  uint8_t term_id[CV_TERM_ID_BYTES];
  uint64_t commit;
};

enum { CV_ANCHORS_MAX = 16 }; /* that one recovery takes in */

/* What a store found when it was opened: the anchor and whether it existed; the database's own mark; whether both are
 * of one history. Of several anchors `anchor` is what they say together (store/term.h). */
struct cv_store_marks {
  bool is_anchored, is_same;
  struct cv_anchor_mark anchor, database;
  struct cv_anchor_place taken[CV_ANCHORS_MAX]; /* the anchors that are ahead of a shared database */
  size_t takens;
};

/* What a store is opened with. */
struct cv_store_files {
  const char *database;
  const char *anchor;
  const char *vfs; /* NULL: the default */
  bool repair;     /* opens in spite of the anchor and keeps it; only the marks tell */
  bool readonly;   /* the same, without any change; CV_ERR_STATE if a daemon has it open */
};

#endif
