/* SPDX-License-Identifier: Apache-2.0 */
#include "common/prio/prove.h"

#include <string.h>

#include "common/prio/poly.h"
#include "common/prio/share.h"

enum { ARITY_END = 2 };

void cv_prio_prove(const struct cv_prio *p, const uint8_t *ctx, size_t ctx_len, const uint8_t seed[CV_PRIO_SEED_BYTES],
                   const uint64_t *measurement, uint64_t *ret) {
  uint64_t even[ARITY_END][CV_PRIO_VALUES_END / 2], odd[ARITY_END][CV_PRIO_VALUES_END / 2];
  uint64_t share_of_one = cv_field_add(p->share_of_one, p->share_of_one);
  CV_REQUIRE(p->arity == 1 || p->arity == ARITY_END);
  cv_prio_expand(p, CV_PRIO_PROVE_RANDOMNESS, ctx, ctx_len, seed, (const uint8_t[]){1}, 1, ret, p->arity);
  for (unsigned j = 0; j < p->arity; j++) {
    cv_prio_wire(p, j, measurement, ret, even[j]);
    memcpy(odd[j], even[j], p->points * sizeof(*even[j]));
    cv_poly_between(odd[j], p->points, p->inverse_root, share_of_one);
  }
  uint64_t *gadget = ret + p->arity;
  for (unsigned i = 0; i < p->points; i++) {
    gadget[2 * i] = cv_prio_gadget(p, even[0][i], even[p->arity - 1][i]);
    if (i + 1 < p->points) {
      gadget[2 * i + 1] = cv_prio_gadget(p, odd[0][i], odd[p->arity - 1][i]);
    }
  }
}
