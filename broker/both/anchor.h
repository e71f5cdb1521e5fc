/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The anchor: a small file outside the state folder that records the last commit of the database. It is written and
 * synced after each commit and before anything is sent, so a database restored from an older copy is behind its anchor.
 *
 * One line of fixed length: "crowdveil-anchor 5 DATABASE COMMIT HASH CAMPAIGNS RELEASES TOKENS PROMISED TERM ID\n",
 * with DATABASE, HASH and ID in hex. The totals bound what an outdated database has forgotten. TERM and its ID are
 * those of a database that several brokers share, and 0 of other databases.
 */
#ifndef CV_BROKER_BOTH_ANCHOR_H
#define CV_BROKER_BOTH_ANCHOR_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/both/mark.h"
#include "common/base/err.h"

struct cv_anchor;

/* Opens the file, creates it with mode 0600 if there is none, and reads its mark. *ret_exists: the file existed.
 * CV_ERR_VERSION for an anchor of another version, CV_ERR_DAMAGED for another file. */
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
