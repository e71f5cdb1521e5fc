/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the core of the worker pool: arms whose data are used up. */
#ifndef CV_WORKER_SPENT_H
#define CV_WORKER_SPENT_H

#include "worker/state.h"

/* Whether a token of the campaign waits for its acknowledgement: then its worker may have to give again, since a token
 * that came too late counts for nothing. */
bool cv_worker_has_unanswered(const struct cv_worker *pool, const struct cv_worker_campaign *campaign);
/* Logs the end of an arm's data, or of those who have some, once a connection. */
CV_MUST_USE enum cv_err cv_worker_spent_note(struct cv_worker *pool, struct cv_worker_campaign *campaign, uint32_t arm,
                                             const char *why);
/* Tells the broker of arms that no worker may give a row of any more: no worker would come for them and be asked. The
 * reason says whether there are no rows, or whoever has some has given as much as may be. Searches the stock, now and
 * then, since a search may look at every row. */
CV_MUST_USE enum cv_err cv_worker_spent_tell(struct cv_worker *pool, uint64_t now_ms);

#endif
