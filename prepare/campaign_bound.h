/* SPDX-License-Identifier: Apache-2.0 */
/* The lower bounds of bound.h for the ranking of a campaign whose true means are known. */
#ifndef CV_PREPARE_CAMPAIGN_BOUND_H
#define CV_PREPARE_CAMPAIGN_BOUND_H

#include "prepare/bound.h"
#include "prepare/prepare.h"

/*
 * The tokens that any ranking with the campaign's alpha, delta, privatizer, and epsilon of a token needs on average;
 * with mechanism `none` epsilon is infinite. CV_ERR_INVALID with one line, without the file, where the bounds do not
 * hold: the policy is no ranking with alpha and delta, delta is 1/2 or more, the scores are not simulated, or tokens
 * are neither Bernoulli scores nor bits. CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_bound_of_campaign(const struct cv_prepared *campaign, struct cv_bound *ret,
                                             struct cv_why *why);

#endif
