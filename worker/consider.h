/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a worker pool takes part in a campaign: it has scores for it, and its owner accepts the terms. */
#ifndef CV_WORKER_CONSIDER_H
#define CV_WORKER_CONSIDER_H

#include "worker/core.h"
#include "worker/privatizer/privatizer.h"

/* The work with this campaign name; NULL if there is none. */
const struct cv_work *cv_works_find(const struct cv_worker_config *config, const char *name);
/*
 * Makes the privatizer of a campaign whose terms are accepted. `work`: of its name, or NULL. Sets the work's entry in
 * `met` once the campaign is of an accepted requester. CV_ERR_DENIED with the reason, which the broker is told; other
 * errors of cv_accept_terms().
 */
CV_MUST_USE enum cv_err cv_work_consider(const struct cv_worker_config *config, const struct cv_work *work,
                                         const struct cv_terms *terms, bool *met, struct cv_privatizer **ret,
                                         struct cv_why *why);

#endif
