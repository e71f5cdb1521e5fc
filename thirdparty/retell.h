/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the history of a stored campaign by running its policy again on the stored releases, plan by plan, so that a
 * daemon can go on with its work in between. Decisions are read as they are stored, and the last standings too: where
 * another machine's libm gives other last digits, the database counts. Times are not known.
 */
#ifndef CV_THIRDPARTY_RETELL_H
#define CV_THIRDPARTY_RETELL_H

#include "common/db/db.h"
#include "thirdparty/history.h"

struct cv_retell;

/* Begins with the campaign of this id in the database, which must be there. */
CV_MUST_USE enum cv_err cv_retell_new(struct cv_db *db, int64_t id, struct cv_retell **ret, struct cv_why *why);
void cv_retell_free(struct cv_retell *retell);
/* Which campaign this is. */
const struct cv_thirdparty_campaign_key *cv_retell_key(const struct cv_retell *retell);
/*
 * Tells the next plan. When *ret_done, the history has all that is stored at this moment, and is the caller's. No
 * batch may be under way.
 */
CV_MUST_USE enum cv_err cv_retell_go_on(struct cv_retell *retell, bool *ret_done, struct cv_why *why);
struct cv_history *cv_retell_take(struct cv_retell *retell);

#endif
