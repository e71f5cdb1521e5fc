/* SPDX-License-Identifier: Apache-2.0 */
#include "common/prio/shard.h"

#include <string.h>

#include "common/prio/prove.h"
#include "common/prio/public.h"
#include "common/prio/share.h"

/* Zeros and ones whose sum, weighted by 1, 2, 4, ... and p->last_weight, is the measurement. */
static void encode(const struct cv_prio *p, uint64_t measurement, uint64_t *ret) {
  unsigned last = p->measurement_elements - 1;
  uint64_t ones = (UINT64_C(1) << last) - 1;
  uint64_t over = ones < measurement;
  measurement -= p->last_weight & cv_field_mask(over);
  for (unsigned i = 0; i < last; i++) {
    ret[i] = measurement >> i & 1;
  }
  ret[last] = over;
}

static void subtract(uint64_t *from, const uint64_t *what, size_t n) {
  for (size_t i = 0; i < n; i++) {
    from[i] = cv_field_sub(from[i], what[i]);
  }
}

void cv_prio_shard(const struct cv_prio *p, const uint8_t *ctx, size_t ctx_len, uint64_t measurement,
                   const uint8_t nonce[CV_PRIO_NONCE_BYTES], const uint8_t *rand, uint8_t *ret_leader,
                   uint8_t ret_helper[CV_PRIO_SEED_BYTES]) {
  CV_REQUIRE(cv_prio_public(measurement <= p->max) && ctx_len <= CV_PRIO_CONTEXT_BYTES);
  size_t helpers = p->shares - 1, n = p->measurement_elements + p->proof_elements;
  uint64_t share[CV_PRIO_ELEMENTS_END], other[CV_PRIO_ELEMENTS_END];
  encode(p, measurement, share);
  cv_prio_prove(p, ctx, ctx_len, rand + CV_PRIO_SEED_BYTES * helpers, share, share + p->measurement_elements);
  for (size_t i = 0; i < helpers; i++) {
    cv_prio_helper_share(p, (unsigned)i + 1, ctx, ctx_len, rand + CV_PRIO_SEED_BYTES * i, other);
    subtract(share, other, n);
  }
  cv_field_encode(share, n, ret_leader);
  memcpy(ret_helper, rand, CV_PRIO_SEED_BYTES * helpers);
}
