/* SPDX-License-Identifier: Apache-2.0 */
/* How a campaign ends: it stops and its result is requested, or it is over; and the record that is kept of it. */
#ifndef CV_BROKER_ENDING_H
#define CV_BROKER_ENDING_H

#include <stdint.h>

#include "common/base/result.h"

struct cv_broker;
struct cv_broker_campaign;

/* Stops assigning places and schedules the request for a result. Does nothing if the campaign is already stopping.
 * `why` is for the requester, one line that is cleaned and cut; NULL: as usual for such an end. */
void cv_broker_campaign_stop(struct cv_broker *broker, struct cv_broker_campaign *campaign, enum cv_end end,
                             const char *why);
/* Ends the campaign and sends nothing: frees its secrets and removes it from the list of open campaigns. */
void cv_broker_campaign_over(struct cv_broker *broker, struct cv_broker_campaign *campaign, enum cv_end end,
                             uint64_t wall_ms);
/* Ends the campaign: its result has arrived, or none will arrive. Does nothing if it has already ended. */
void cv_broker_campaign_end(struct cv_broker *broker, struct cv_broker_campaign *campaign, enum cv_end end,
                            const char *why);
/* Gives an end another reason, with the line for the requester. */
void cv_broker_campaign_tell(struct cv_broker_campaign *campaign, enum cv_end end, const char *why);
/* Creates or updates its record and adds it to the next batch. Running out of memory ends the core. */
void cv_broker_campaign_archive(struct cv_broker *broker, const struct cv_broker_campaign *campaign);

#endif
