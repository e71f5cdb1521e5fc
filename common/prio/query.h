/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a proof, on a share of it. */
#ifndef CV_PRIO_QUERY_H
#define CV_PRIO_QUERY_H

#include "common/prio/prio.h"

/*
 * From a share of measurement and proof and p->query_elements of query randomness, the share of the verifier: the
 * circuit's output, the wire polynomials and the gadget polynomial at a random point. False, with *ret unchanged, if
 * that point is one at which the polynomials are given.
 */
CV_MUST_USE bool cv_prio_query(const struct cv_prio *p, const uint64_t *share, const uint64_t *rand, uint64_t *ret);

#endif
