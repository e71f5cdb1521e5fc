/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a measurement into shares: what a worker does. */
#ifndef CV_PRIO_SHARD_H
#define CV_PRIO_SHARD_H

#include "common/prio/prio.h"

/*
 * measurement <= p->max. `rand` is p->rand_bytes of fresh random bytes, never used before, and `nonce` is as fresh;
 * `ctx` names the application, at most CV_PRIO_CONTEXT_BYTES. Writes the leader's share of p->leader_bytes, and the
 * helper's share (of the p->shares - 1 helpers, one after another). The public share is empty.
 */
void cv_prio_shard(const struct cv_prio *p, const uint8_t *ctx, size_t ctx_len, uint64_t measurement,
                   const uint8_t nonce[CV_PRIO_NONCE_BYTES], const uint8_t *rand, uint8_t *ret_leader,
                   uint8_t ret_helper[CV_PRIO_SEED_BYTES]);

#endif
