/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: accepted if the ticket is genuine and both place and slot are free. */
#ifndef CV_BROKER_TOKEN_H
#define CV_BROKER_TOKEN_H

#include "common/base/err.h"
#include "common/base/refusals.h"
#include "proto/codec/crowd.h"

struct cv_broker;
struct cv_broker_conn;

/* Why a token is refused: the reason for the peer, a literal, and the metric that counts it. */
struct cv_objection {
  const char *why;
  enum cv_refusal kind;
};

static inline enum cv_verdict cv_objection_make(struct cv_objection *ret, enum cv_refusal kind, const char *why) {
  *ret = (struct cv_objection){.why = why, .kind = kind};
  return CV_VERDICT_REFUSED;
}

/* Accepts or refuses the token, acknowledges it, and ends the lease it was assigned under. With two brokers it may have
 * to wait, and is acknowledged later (sharing.h). CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_count_token(struct cv_broker *broker, struct cv_broker_conn *conn,
                                              const struct cv_token *token);

#endif
