/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that are used up: what connections say about it, and the early end of an arm's epoch when nobody has more.
 *
 * A connection says from which place of an arm's stream on it has no score; it gets no such place any more. The word of
 * one connection ends nothing: an arm is over when every connected worker and gateway of the campaign has said so and
 * no place is unfilled that one of them may have a score for; CV_SPENT_WAIT_MS after the first said so, and
 * CV_SPENT_REDIAL_MS after the last one left, or this broker started, in which time a peer connects again. If a
 * connection keeps silent, the arm is over when the campaign would end for want of workers. Then its epoch is closed
 * with the tokens that it has (epoch.h). That is stored like any release; what connections said is not, and is said
 * again.
 */
#ifndef CV_BROKER_SPENT_H
#define CV_BROKER_SPENT_H

#include <stdbool.h>

#include "common/base/err.h"

struct cv_broker;
struct cv_broker_campaign;
struct cv_broker_conn;
struct cv_dealing;
struct cv_decline;
struct cv_ticket;

enum { CV_SPENT_WAIT_MS = 500, CV_SPENT_REDIAL_MS = 6000 };

/* The connection has no score for the ticket's place, nor for a later one of that arm. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_spent_say_place(struct cv_broker *broker, struct cv_broker_conn *conn,
                                                  const struct cv_ticket *ticket);
/* The connection has no further score of the arms in `decline`; unknown arms are ignored. `campaign` may be NULL.
 * CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_spent_say_arms(struct cv_broker *broker, const struct cv_broker_conn *conn,
                                                 struct cv_broker_campaign *campaign, struct cv_dealing *dealing,
                                                 const struct cv_decline *decline);
/* Ends the arms of a running campaign that nobody has more scores of. Called with each tick. */
void cv_broker_spent_check(struct cv_broker *broker, struct cv_broker_campaign *campaign);
/* No worker has answered for as long as the campaign allows: ends all open arms if somebody has said of each that its
 * data are used up. Else returns false and does nothing. */
bool cv_broker_spent_close_all(struct cv_broker *broker, struct cv_broker_campaign *campaign);

#endif
