/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A campaign that has ended is only in the database. When its requester asks for it, the shell restores it
 * (description, plans, releases, ledger, standings, state, cv_broker_restore_whole()), or reports that it cannot.
 */
#ifndef CV_BROKER_FETCH_H
#define CV_BROKER_FETCH_H

#include <stdbool.h>
#include <stdint.h>

struct cv_broker;

enum { CV_FETCHED_MAX = 16 /* fetched campaigns in memory at once; one per requester */ };

/* Whether a campaign is to be fetched now, and which; never true between flush and stored. */
bool cv_broker_wanted(struct cv_broker *broker, uint32_t *ret_campaign);
/* Whether a campaign that was wanted, and has been read meanwhile, is to be restored: it has not been purged, its
 * requester still waits, and it is not in memory. */
bool cv_broker_awaits(struct cv_broker *broker, uint32_t campaign);
/* The campaign's rows are damaged: sends `why` to the requesters that wait for it and frees what was read of it. */
void cv_broker_fetch_failed(struct cv_broker *broker, uint32_t id, const char *why);
/* For the core: after all outputs are taken, frees fetched campaigns that no requester is about to be served from. */
void cv_broker_leave_memory(struct cv_broker *broker);

#endif
