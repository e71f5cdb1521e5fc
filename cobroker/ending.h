/* SPDX-License-Identifier: Apache-2.0 */
/* Ends campaigns: everything secret of them is deleted, and a record is left. */
#ifndef CV_COBROKER_ENDING_H
#define CV_COBROKER_ENDING_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/base/result.h"

struct cv_cobroker;
struct cv_cobroker_campaign;
struct cv_cobroker_ended;

/* Ends and frees the campaign, and tells the broker if it is connected. `fmt` says why in one line. Running out of
 * memory ends the core. */
void cv_cobroker_end(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, enum cv_end end, const char *fmt,
                     ...) CV_PRINTF(4, 5);
/* The same for a campaign about which both brokers disagree. */
void cv_cobroker_freeze(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, const char *fmt, ...)
    CV_PRINTF(3, 4);
/* Ends campaigns whose shares are of another context, because a key of one of the two brokers has changed since. */
void cv_cobroker_end_strangers(struct cv_cobroker *core);
/* Tells the broker of a campaign that has ended. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_tell_ended(struct cv_cobroker *core, const struct cv_cobroker_ended *ended);
/* The same of one that is not known. */
CV_MUST_USE enum cv_err cv_cobroker_tell_end(struct cv_cobroker *core, uint64_t campaign, enum cv_end end,
                                             const char *why);

#endif
