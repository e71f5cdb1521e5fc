/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one of two brokers says of the other when it is examined, for the other's recovery: facts of
 * common/base/finding.h.
 *
 *   other KEY     the other broker, as configured
 *   share NUMBER STATE PLANS BATCHES CLOSINGS RELEASES TOKENS WORKER_MICRO
 *                 a campaign: the other one had stored at least so much of it
 *   read          the last fact: everything could be read
 */
#ifndef CV_BROKER_BOTH_CLAIMS_H
#define CV_BROKER_BOTH_CLAIMS_H

#include "broker/both/recover.h"
#include "common/base/digest.h"
#include "common/base/result.h"

void cv_claims_tell_other(const struct cv_digest *key);
void cv_claims_tell(const struct cv_recover_claim *claim, enum cv_end end);

/*
 * Reads what a program's --examine has printed into a file. CV_ERR_NOT_FOUND; CV_ERR_INVALID if it is about a broker
 * with another key, is not complete, or has a fact that cannot be read: no claim is added then. CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_claims_read(const char *path, const char *program, const struct cv_digest *own,
                                       struct cv_recover_claims *claims, struct cv_why *why);

#endif
