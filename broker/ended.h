/* SPDX-License-Identifier: Apache-2.0 */
/* Campaigns that have ended: how they are reported, when they are forgotten, and what is stored of them. */
#ifndef CV_BROKER_ENDED_H
#define CV_BROKER_ENDED_H

#include <stdint.h>

#include "common/base/err.h"

struct cv_broker;
struct cv_broker_batch;
struct cv_ended;
struct cv_progress;

enum { CV_DROP_ROWS = 512 /* rows of purged campaigns deleted per commit */ };

/* Forgets campaigns that exceed limits.retention or limits.kept. */
void cv_ended_sweep(struct cv_broker *broker);
/* Makes room for one more campaign of a requester with `open` open ones: forgets the one that ended first. */
void cv_ended_make_room(struct cv_broker *broker, const char *requester, uint32_t open);
/* How many campaigns this requester submitted within the last minute, as far as records are kept. */
uint32_t cv_ended_recent(const struct cv_broker *broker, const char *requester);
/* Adds to the batch what is to be written and deleted of ended campaigns. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_ended_fill(struct cv_broker *broker, struct cv_broker_batch *batch);
/* The progress of an ended campaign, as reported now. */
void cv_ended_progress(const struct cv_broker *broker, const struct cv_ended *ended, struct cv_progress *ret);

#endif
