/* SPDX-License-Identifier: Apache-2.0 */
/* What both sides of Prio3 have in common: how seeds become shares, and the gadgets. For shard.c and verify.c only. */
#ifndef CV_PRIO_SHARE_H
#define CV_PRIO_SHARE_H

#include "common/prio/field.h"
#include "common/prio/prio.h"

enum {
  CV_PRIO_BITS_END = 64,                                        /* elements of a measurement, at most */
  CV_PRIO_VALUES_END = 256,                                     /* values of a gadget polynomial */
  CV_PRIO_ELEMENTS_END = CV_PRIO_BITS_END + CV_PRIO_VALUES_END, /* of a share: measurement, wire seed, 255 values */
};

enum cv_prio_usage {
  CV_PRIO_MEASUREMENT_SHARE = 1,
  CV_PRIO_PROOF_SHARE = 2,
  CV_PRIO_PROVE_RANDOMNESS = 4,
  CV_PRIO_QUERY_RANDOMNESS = 5,
};

/* n elements from a seed, for this use. */
void cv_prio_expand(const struct cv_prio *p, enum cv_prio_usage usage, const uint8_t *ctx, size_t ctx_len,
                    const uint8_t seed[CV_PRIO_SEED_BYTES], const uint8_t *binder, size_t binder_len, uint64_t *ret,
                    size_t n);

/* The share of helper `id`: the elements of the measurement, then those of the proof. */
void cv_prio_helper_share(const struct cv_prio *p, unsigned id, const uint8_t *ctx, size_t ctx_len,
                          const uint8_t seed[CV_PRIO_SEED_BYTES], uint64_t *ret);

/* The gadget: the product of two inputs, or x^2 - x of one, which is then given twice. */
static inline uint64_t cv_prio_gadget(const struct cv_prio *p, uint64_t input, uint64_t other) {
  uint64_t product = cv_field_mul(input, other);
  return p->arity == 2 ? product : cv_field_sub(product, input);
}

/* The p->points values of the wire polynomial of input `wire`: the seed, the inputs of all calls, zeros. */
void cv_prio_wire(const struct cv_prio *p, unsigned wire, const uint64_t *measurement, const uint64_t *wire_seed,
                  uint64_t *ret);

#endif
