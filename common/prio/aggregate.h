/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregate shares of Prio3Count and Prio3Sum: the sum of output shares, one element, cv_field_add() for each. On the
 * wire it is as in the draft, so that a collector of another implementation can add the shares of all aggregators.
 */
#ifndef CV_PRIO_AGGREGATE_H
#define CV_PRIO_AGGREGATE_H

#include "common/prio/field.h"

#define CV_PRIO_AGGREGATE_BYTES CV_FIELD_BYTES

static inline void cv_prio_aggregate_encode(uint64_t share, uint8_t ret[CV_PRIO_AGGREGATE_BYTES]) {
  cv_field_encode(&share, 1, ret);
}

/* False, with *ret unchanged, if the bytes are not an element. */
CV_MUST_USE static inline bool cv_prio_aggregate_decode(const uint8_t *bytes, size_t n, uint64_t *ret) {
  return n == CV_PRIO_AGGREGATE_BYTES && cv_field_decode(bytes, 1, ret);
}

#endif
