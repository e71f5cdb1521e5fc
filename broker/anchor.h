/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The anchor: a small file outside the state folder that says how far the database has come, written and synced after
 * each commit and before anything is sent. A database that is put back to an older copy is behind its anchor.
 *
 * One line of fixed length: "crowdveil-anchor 3 DATABASE COMMIT HASH CAMPAIGNS RELEASES TOKENS PROMISED\n", database
 * and hash in hex. The totals bound what a database that is behind has forgotten. The number 2 in 3's place is that of
 * a database whose rows have no codes (broker/proof.h): once they have, nobody can take them for such rows again.
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
  bool has_codes; /* its rows */
};

struct cv_anchor;

/* Opens the file (made with mode 0600 if it is not there: *ret_exists tells) and reads what it says into *ret_mark. */
CV_MUST_USE enum cv_err cv_anchor_open(const char *path, struct cv_anchor **ret, bool *ret_exists,
                                       struct cv_anchor_mark *ret_mark, struct cv_why *why);
/* What the file says, without making or changing it. */
CV_MUST_USE enum cv_err cv_anchor_peek(const char *path, bool *ret_exists, struct cv_anchor_mark *ret_mark,
                                       struct cv_why *why);
/* Durable when it returns. */
CV_MUST_USE enum cv_err cv_anchor_write(struct cv_anchor *anchor, const struct cv_anchor_mark *mark,
                                        struct cv_why *why);
void cv_anchor_close(struct cv_anchor *anchor);

#endif
