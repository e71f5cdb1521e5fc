/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What TLS and AES-GCM give to the session of a worker with the co-broker. The exporter is a hash of connection and
 * context, equal on both ends; the seal is the product's.
 */
#ifndef CV_SIM_SEALING_H
#define CV_SIM_SEALING_H

#include "common/base/split.h"
#include "tests/sim/net.h"

/* The session's key on this connection. */
void sealing_key(const struct end *end, const struct cv_digest *context, uint8_t ret[CV_SPLIT_SEED_BYTES]);
/* Seals a helper's seed. Fails the world if the counter has sealed before under this key. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err sealing_close(struct world *world, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                                      const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                                      const uint8_t seed[CV_SPLIT_SEED_BYTES], uint8_t ret[CV_SPLIT_SEALED_BYTES]);
/* CV_ERR_DAMAGED if it does not open; CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err sealing_open(const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                                     const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                                     const uint8_t sealed[CV_SPLIT_SEALED_BYTES], uint8_t ret[CV_SPLIT_SEED_BYTES]);

#endif
