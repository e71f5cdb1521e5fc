/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a share without the other: what an aggregator does. Call it once for a nonce: two verifier shares of one share
 * under different keys, contexts or nonces give the measurement away, so a verifier share is computed once, kept, and
 * never sent in two forms.
 */
#ifndef CV_PRIO_VERIFY_H
#define CV_PRIO_VERIFY_H

#include "common/prio/prio.h"

/*
 * The leader's verifier share (p->verifier_elements) and output share (one element). False, with outputs unchanged, if
 * `share` is not a leader's share (its length is not p->leader_bytes, or one of its elements is p or more), or if the
 * nonce cannot be used under this key (probability below 2^-56).
 */
CV_MUST_USE bool cv_prio_verify_leader(const struct cv_prio *p, const uint8_t key[CV_PRIO_SEED_BYTES],
                                       const uint8_t *ctx, size_t ctx_len, const uint8_t nonce[CV_PRIO_NONCE_BYTES],
                                       const uint8_t *share, size_t length, uint64_t *ret_verifier,
                                       uint64_t *ret_output);

/* The same for the helper, whose share is a seed; any seed is a share. False only for the nonce. */
CV_MUST_USE bool cv_prio_verify_helper(const struct cv_prio *p, const uint8_t key[CV_PRIO_SEED_BYTES],
                                       const uint8_t *ctx, size_t ctx_len, const uint8_t nonce[CV_PRIO_NONCE_BYTES],
                                       const uint8_t seed[CV_PRIO_SEED_BYTES], uint64_t *ret_verifier,
                                       uint64_t *ret_output);
/* The same for helper `id` of 1 .. p->shares - 1. */
CV_MUST_USE bool cv_prio_verify_helper_of(const struct cv_prio *p, unsigned id, const uint8_t key[CV_PRIO_SEED_BYTES],
                                          const uint8_t *ctx, size_t ctx_len, const uint8_t nonce[CV_PRIO_NONCE_BYTES],
                                          const uint8_t seed[CV_PRIO_SEED_BYTES], uint64_t *ret_verifier,
                                          uint64_t *ret_output);

/* Whether the measurement is in range. Both arrays have p->verifier_elements numbers; nothing is accepted if one of
 * them is CV_FIELD_P or more. */
CV_MUST_USE bool cv_prio_accepts(const struct cv_prio *p, const uint64_t *verifier_leader,
                                 const uint64_t *verifier_helper);
/* The same for the sum of all verifier shares. */
CV_MUST_USE bool cv_prio_decides(const struct cv_prio *p, const uint64_t *verifier);

#endif
