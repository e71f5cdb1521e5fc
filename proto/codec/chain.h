/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash chains for resync: hash_0 is zeros, hash_n = digest(hash_(n-1), bytes of record n). The bytes are fixed
 * little-endian layouts (docs/protocol.md); protobuf's encoding is not canonical.
 */
#ifndef CV_CODEC_CHAIN_H
#define CV_CODEC_CHAIN_H

#include "common/base/digest.h"
#include "common/base/result.h"

void cv_chain_release(struct cv_digest *hash, const struct cv_release *release, cv_digest_fn *digest);
/* CV_ERR_NOMEM, and then the hash is unchanged. */
CV_MUST_USE enum cv_err cv_chain_plan(struct cv_digest *hash, const struct cv_plan *plan, cv_digest_fn *digest);

#endif
