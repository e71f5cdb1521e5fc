/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a running campaign stands still because no worker of the connections may give it another token: each has
 * given the campaign's tokens_per_worker, or has spent its lifetime epsilon. For its requester. Connections that
 * declined have said why themselves (declines.h).
 */
#ifndef CV_BROKER_NOBODY_H
#define CV_BROKER_NOBODY_H

#include <stdint.h>

struct cv_broker;
struct cv_broker_campaign;
struct cv_progress;

/* All zero: somebody may, or nobody knows. */
struct cv_nobody {
  uint64_t looked_ms;
  uint32_t connections;  /* with workers, that did not decline */
  uint64_t given, spent; /* of their workers: gave all that the campaign takes; else, spent their lifetime epsilon */
};

/* Looks, now and then; up to the campaign's stop. Called with each tick. */
void cv_broker_nobody_look(struct cv_broker *broker, struct cv_broker_campaign *campaign);
/* Adds the reason to those of `declined`, as its first one. */
void cv_broker_nobody_tell(const struct cv_broker_campaign *campaign, struct cv_progress *ret);

#endif
