/* SPDX-License-Identifier: Apache-2.0 */
/* How a worker splits a token for two brokers. Pure. */
#ifndef CV_WORKER_SPLIT_H
#define CV_WORKER_SPLIT_H

#include "proto/codec/crowd.h"
#include "worker/session.h"

/*
 * The measurement of a token value, which is one after the privatizer, in grid units. Of 15 bits: value/64, rounded up
 * or down at random so that its mean is exact; `coin` throws. Of one bit: 0 for 0, and 1 for CV_GRID. False if the
 * value has no measurement: it lies outside [0, CV_GRID], or is no bit.
 */
bool cv_worker_measure(uint32_t score_bits, int64_t value, struct cv_rng *coin, uint64_t *ret);

/*
 * Splits a measurement under a session that stands: a new nonce, which it sets in the token; the leader's share, to
 * which ret->leader points; and the helper's share, sealed with the session's next counter for all of `token`. Each
 * call makes other shares: an answer that is sent again is the same struct. CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_worker_split(struct cv_session *session, uint64_t measurement, struct cv_split_token *token,
                                        uint8_t leader[CV_SPLIT_LEADER_MOST], struct cv_token_share *ret);

#endif
