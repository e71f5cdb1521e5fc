/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The anchor: a small file outside the state folder that records the last commit of the database. It is written and
 * synced after each commit and before anything is sent, so a database restored from an older copy is behind its anchor.
 *
 * One line of fixed length: "crowdveil-anchor 3 DATABASE COMMIT HASH CAMPAIGNS RELEASES TOKENS PROMISED\n", with
 * DATABASE and HASH in hex. The totals bound what an outdated database has forgotten. Version 2 instead of 3 marks a
 * database whose rows have no codes (broker/proof.h); version 3 prevents a later downgrade to such rows.
 */
#ifndef CV_BROKER_ANCHOR_H
#define CV_BROKER_ANCHOR_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/batch.h"
#include "common/base/digest.h"
#include "common/base/err.h"

enum { CV_DATABASE_ID_BYTES = 16 };

struct cv_anchor_mark {
  uint8_t database[CV_DATABASE_ID_BYTES];
  uint64_t commit;
  struct cv_digest hash; /* chained over all commits */
  struct cv_totals totals;
  bool has_codes; /* the database's rows have codes */
};

struct cv_anchor;

/* Opens the file, creates it with mode 0600 if there is none, and reads its mark. *ret_exists: the file existed. */
CV_MUST_USE enum cv_err cv_anchor_open(const char *path, struct cv_anchor **ret, bool *ret_exists,
                                       struct cv_anchor_mark *ret_mark, struct cv_why *why);
/* Reads the mark without creating or changing the file. */
CV_MUST_USE enum cv_err cv_anchor_peek(const char *path, bool *ret_exists, struct cv_anchor_mark *ret_mark,
                                       struct cv_why *why);
/* Writes and syncs the mark. */
CV_MUST_USE enum cv_err cv_anchor_write(struct cv_anchor *anchor, const struct cv_anchor_mark *mark,
                                        struct cv_why *why);
void cv_anchor_close(struct cv_anchor *anchor);

#endif
