/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: accepted if the ticket is genuine and both place and slot are free. */
#ifndef CV_BROKER_TOKEN_H
#define CV_BROKER_TOKEN_H

#include "common/base/err.h"

struct cv_broker;
struct cv_broker_conn;
struct cv_token;

/* Accepts or refuses the token, acknowledges it, and ends the lease it was assigned under. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_count_token(struct cv_broker *broker, struct cv_broker_conn *conn,
                                              const struct cv_token *token);

#endif
