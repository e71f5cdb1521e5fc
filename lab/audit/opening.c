/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/opening.h"

#include "common/prio/field.h"
#include "common/prio/verify.h"

/* The wire's value for given bits (all the same) and seed: verifier shares are linear, so that anybody with the key
 * computes it. */
static bool wire_of(const struct cv_prio *prio, const uint8_t *key, const uint8_t *context, size_t context_len,
                    const uint8_t *nonce, uint64_t bit, uint64_t seed, uint64_t *ret) {
  uint64_t element[CV_PRIO_MAX_LEADER_ELEMENTS] = {0}, verifier[CV_PRIO_MAX_VERIFIER_ELEMENTS] = {0}, output;
  uint8_t share[CV_PRIO_MAX_LEADER_BYTES];
  for (unsigned i = 0; i < prio->measurement_elements; i++) {
    element[i] = bit;
  }
  element[prio->measurement_elements] = seed;
  cv_field_encode(element, CV_PRIO_MAX_LEADER_ELEMENTS, share);
  bool good =
      cv_prio_verify_leader(prio, key, context, context_len, nonce, share, prio->leader_bytes, verifier, &output);
  *ret = verifier[CV_OPENING_WIRE];
  return good;
}

enum cv_err cv_opening_init(struct cv_opening *ret, const struct cv_prio *prio, const uint8_t *key,
                            const uint8_t *context, size_t context_len, const uint8_t *nonce, uint64_t value) {
  ret->value = value;
  return wire_of(prio, key, context, context_len, nonce, 0, 1, &ret->of_seed) &&
                 wire_of(prio, key, context, context_len, nonce, 1, 0, &ret->of_bits)
             ? CV_OK
             : CV_ERR_STATE;
}

static bool fits(const struct cv_opening *one, const struct cv_opening *other, uint64_t bit) {
  uint64_t left = cv_field_sub(one->value, cv_field_mul(bit, one->of_bits));
  uint64_t right = cv_field_sub(other->value, cv_field_mul(bit, other->of_bits));
  return cv_field_mul(left, other->of_seed) == cv_field_mul(right, one->of_seed);
}

int64_t cv_opening_solve(const struct cv_opening *one, const struct cv_opening *other) {
  bool zero = fits(one, other, 0), largest = fits(one, other, 1);
  return zero == largest ? 0 : zero ? 1 : 2;
}
