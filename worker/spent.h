/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the core of the worker pool: arms whose data are used up. */
#ifndef CV_WORKER_SPENT_H
#define CV_WORKER_SPENT_H

#include "worker/state.h"

/* Why an assignment of such an arm is declined. */
#define CV_SPENT_WHY "the data of this arm are used up"

/* Logs the end of an arm's data, once a connection. */
CV_MUST_USE enum cv_err cv_worker_spent_note(struct cv_worker *pool, struct cv_worker_campaign *campaign, uint32_t arm);
/* Tells the broker of arms that no worker has a row of any more: no worker would come for them and be asked. Searches
 * the stock, now and then, since a search may look at every row. */
CV_MUST_USE enum cv_err cv_worker_spent_tell(struct cv_worker *pool, uint64_t now_ms);

#endif
