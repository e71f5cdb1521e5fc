/* SPDX-License-Identifier: Apache-2.0 */
#include "common/prio/prio.h"

#include "common/prio/field.h"

static unsigned bits_of(uint64_t x) {
  return 64 - (unsigned)__builtin_clzll(x);
}

/* The smallest power of two above n. */
static unsigned points_for(unsigned n) {
  return 1U << bits_of(n);
}

static void set_lengths(struct cv_prio *p) {
  bool count = p->circuit == CV_PRIO_COUNT;
  unsigned bits = count ? 1 : bits_of(p->max);
  p->measurement_elements = bits;
  p->arity = count ? 2 : 1;
  p->points = points_for(bits);
  p->proof_elements = p->arity + 2 * p->points - 1;
  p->query_elements = bits > 1 ? bits + 1 : 1;
  p->verifier_elements = 1 + p->arity + 1;
  p->leader_bytes = CV_FIELD_BYTES * (size_t)(p->measurement_elements + p->proof_elements);
  p->verifier_bytes = CV_FIELD_BYTES * p->verifier_elements;
  p->rand_bytes = (size_t)CV_PRIO_SEED_BYTES * p->shares;
  p->last_weight = p->max - ((UINT64_C(1) << (bits - 1)) - 1);
}

static void set_roots(struct cv_prio *p) {
  uint64_t n = 2 * p->points;
  uint64_t inverse = cv_field_inv(cv_field_root(bits_of(n) - 1)), power = 1;
  for (size_t i = 0; i < CV_COUNT(p->inverse_root); i++) {
    p->inverse_root[i] = i < p->points ? power : 0;
    power = cv_field_mul(power, inverse);
  }
  p->share_of_one = cv_field_inv(n);
}

enum cv_err cv_prio_init_shares(struct cv_prio *ret, enum cv_prio_circuit circuit, uint64_t max, unsigned shares) {
  if (shares < 2 || shares > UINT8_MAX || max < 1 || max > (circuit == CV_PRIO_COUNT ? 1 : CV_FIELD_P - 1)) {
    return CV_ERR_LIMIT;
  }
  ret->circuit = circuit;
  ret->max = max;
  ret->shares = shares;
  set_lengths(ret);
  set_roots(ret);
  return CV_OK;
}

enum cv_err cv_prio_init(struct cv_prio *ret, enum cv_prio_circuit circuit, uint64_t max) {
  return cv_prio_init_shares(ret, circuit, max, 2);
}
