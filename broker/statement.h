/* SPDX-License-Identifier: Apache-2.0 */
/* The statement for a requester: what its campaign has cost, or what a planned one can cost. */
#ifndef CV_BROKER_STATEMENT_H
#define CV_BROKER_STATEMENT_H

#include "common/base/err.h"

struct cv_broker;
struct cv_broker_campaign;
struct cv_gold;
struct cv_spec;
struct cv_statement;

/* The result is on the heap. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_statement_of(struct cv_broker *broker, const struct cv_broker_campaign *campaign,
                                               struct cv_statement **ret);
/* The same for a campaign that does not exist yet; the gate's error if it would not be accepted. */
CV_MUST_USE enum cv_err cv_broker_statement_plan(struct cv_broker *broker, const struct cv_spec *spec,
                                                 const struct cv_gold *gold, struct cv_statement **ret,
                                                 struct cv_why *why);
/* Does nothing for NULL. */
void cv_broker_statement_free(struct cv_statement *statement);

#endif
