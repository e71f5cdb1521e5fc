/* SPDX-License-Identifier: Apache-2.0 */
/* Campaigns are opened by the broker: a new one is checked and gets a verify key, once; a known one must be the same,
 * and neither side may have lost what it had. */
#ifndef CV_COBROKER_OPENING_H
#define CV_COBROKER_OPENING_H

#include "broker/both/gate.h"
#include "common/base/err.h"
#include "proto/codec/share.h"

struct cv_cobroker;

/* Handles an Open. Only CV_ERR_NOMEM: whatever else is wrong, the broker gets as an answer. */
CV_MUST_USE enum cv_err cv_cobroker_open(struct cv_cobroker *core, const struct cv_share_open *open);
/* The operator's present limits apply to new campaigns; a spec whose campaign is open only has to be possible.
 * CV_ERR_DENIED, CV_ERR_INVALID or CV_ERR_NOT_FOUND with the reason; CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_check_spec(const struct cv_spec *spec, const struct cv_gate_limits *limits,
                                               struct cv_why *why);
/* The limits of a campaign that is open already. */
extern const struct cv_gate_limits CV_COBROKER_NO_LIMITS;

#endif
