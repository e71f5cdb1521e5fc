/* SPDX-License-Identifier: Apache-2.0 */
#include "common/prio/share.h"

#include <string.h>

#include "common/prio/xof.h"

enum { PROOFS = 1, CLASS_VDAF = 0 };

void cv_prio_expand(const struct cv_prio *p, enum cv_prio_usage usage, const uint8_t *ctx, size_t ctx_len,
                    const uint8_t seed[CV_PRIO_SEED_BYTES], const uint8_t *binder, size_t binder_len, uint64_t *ret,
                    size_t n) {
  struct cv_xof xof;
  uint8_t tag[8] = {CV_PRIO_VERSION, CLASS_VDAF, 0, 0, 0, (uint8_t)p->circuit, 0, (uint8_t)usage};
  cv_xof_init(&xof, seed, CV_PRIO_SEED_BYTES, tag, sizeof(tag), ctx, ctx_len, binder, binder_len);
  cv_xof_elements(&xof, ret, n);
}

void cv_prio_helper_share(const struct cv_prio *p, unsigned id, const uint8_t *ctx, size_t ctx_len,
                          const uint8_t seed[CV_PRIO_SEED_BYTES], uint64_t *ret) {
  CV_REQUIRE(id >= 1 && id < p->shares);
  uint8_t binder[2] = {PROOFS, (uint8_t)id};
  cv_prio_expand(p, CV_PRIO_MEASUREMENT_SHARE, ctx, ctx_len, seed, binder + 1, 1, ret, p->measurement_elements);
  cv_prio_expand(p, CV_PRIO_PROOF_SHARE, ctx, ctx_len, seed, binder, 2, ret + p->measurement_elements,
                 p->proof_elements);
}

void cv_prio_wire(const struct cv_prio *p, unsigned wire, const uint64_t *measurement, const uint64_t *wire_seed,
                  uint64_t *ret) {
  ret[0] = wire_seed[wire];
  for (unsigned i = 1; i < p->points; i++) {
    ret[i] = i <= p->measurement_elements ? measurement[i - 1] : 0; /* both wires of Prio3Count have the same input */
  }
}
