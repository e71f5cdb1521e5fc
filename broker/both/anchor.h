/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The anchor: a small file outside the state folder that records the last commit of the database. It is written and
 * synced after each commit and before anything is sent, so a database restored from an older copy is behind its anchor.
 *
 * One line of fixed length: "crowdveil-anchor 3 DATABASE COMMIT HASH CAMPAIGNS RELEASES TOKENS PROMISED\n", with
 * DATABASE and HASH in hex. The totals bound what an outdated database has forgotten. Version 2 instead of 3 marks a
 * database whose rows have no codes (broker/store/proof.h); version 3 prevents a later downgrade to such rows.
 * Version 4, of a database that several brokers share, has the term and its id in hex at the end.
 */
#ifndef CV_BROKER_BOTH_ANCHOR_H
#define CV_BROKER_BOTH_ANCHOR_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/both/mark.h"
#include "common/base/err.h"

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
