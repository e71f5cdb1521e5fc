/* SPDX-License-Identifier: Apache-2.0 */
/* What a broker would say of a campaign, before it is submitted: which limit it cannot meet, and what the broker's
 * smallest release means for its policy. */
#ifndef CV_LAUNCHER_ADMIT_H
#define CV_LAUNCHER_ADMIT_H

#include "deploy/launcher/client.h"
#include "prepare/prepare.h"

/* The request for it: a Ledger for the plan; borrows the spec. */
struct cv_order_frame cv_admit_request(const struct cv_prepared *campaign);
/* Takes the broker's smallest release into the campaign. CV_ERR_INVALID if the campaign cannot have it: the reason
 * names the limit. */
CV_MUST_USE enum cv_err cv_admit_take(const struct cv_statement *statement, struct cv_prepared *campaign,
                                      struct cv_why *why);
/*
 * For a command whose options may name a broker (CV_CLIENT_RULES_AS): if they do, asks it and takes the answer into the
 * campaign. Returns 0, with *ret_asked; or a status, after one line on standard error.
 */
CV_MUST_USE int cv_admit_ask(const struct cv_config_table *table, const struct cv_client_settings *client,
                             struct cv_prepared *campaign, bool *ret_asked);

#endif
