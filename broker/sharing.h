/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of campaigns with two brokers: one that arrives takes its place and slot, and waits; the co-broker's verdict
 * decides whether it counts.
 */
#ifndef CV_BROKER_SHARING_H
#define CV_BROKER_SHARING_H

#include <stdint.h>

#include "broker/token.h"
#include "common/base/err.h"
#include "proto/codec/crowd.h"

struct cv_broker;
struct cv_broker_campaign;
struct cv_broker_conn;
struct cv_docket_token;
struct cv_docket_batch;
struct cv_ticket;

/*
 * A token with a genuine ticket and an unused slot, of an arm of the campaign. CV_VERDICT_NONE: it waits, now or since
 * before, and the connection gets its acknowledgement later. CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_sharing_arrive(struct cv_broker *broker, struct cv_broker_conn *conn,
                                          struct cv_broker_campaign *campaign, const struct cv_ticket *ticket,
                                          const struct cv_token *token, enum cv_verdict *ret_verdict,
                                          struct cv_objection *ret_objection);
/* Makes sure that counting the token cannot fail. CV_ERR_LIMIT, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_sharing_prepare(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                           const struct cv_docket_token *token);
/* Applies the co-broker's answers to the oldest batch, one a token, and drops the batch. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_sharing_judge(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                         const uint8_t *answer);
/* The campaign takes no tokens any more: those that wait have come too late. Running out of memory ends the core. */
void cv_sharing_abandon(struct cv_broker *broker, struct cv_broker_campaign *campaign);

#endif
