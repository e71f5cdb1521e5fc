/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a share that was verified under two keys gives its measurement away. A verifier that is put together has a value
 * of the polynomial through a random number, the seed, and the measurement's bits, at a point that follows from verify
 * key and nonce. One such value says nothing: the seed hides the bits. From two values at different points the seed can
 * be eliminated. Of Prio3Sum.
 */
#ifndef CV_LAB_AUDIT_OPENING_H
#define CV_LAB_AUDIT_OPENING_H

#include "common/prio/prio.h"

/* What is known of a token's verifier under one key: value = seed * of_seed + bit * of_bits, all bits the same. */
struct cv_opening {
  uint64_t value, of_seed, of_bits;
};

enum { CV_OPENING_WIRE = 1 /* the element of a verifier that is the value */ };

/* Sets the equation of a value under this key. CV_ERR_STATE if the nonce cannot be used. */
CV_MUST_USE enum cv_err cv_opening_init(struct cv_opening *ret, const struct cv_prio *prio, const uint8_t *key,
                                        const uint8_t *context, size_t context_len, const uint8_t *nonce,
                                        uint64_t value);
/* 1 if the measurement is 0, 2 if it is the largest; 0 if both fit, or neither does. */
int64_t cv_opening_solve(const struct cv_opening *one, const struct cv_opening *other);

#endif
