/* SPDX-License-Identifier: Apache-2.0 */
#include "common/prio/verify.h"

#include <string.h>

#include "common/prio/public.h"
#include "common/prio/query.h"
#include "common/prio/share.h"

/* The measurement that an encoding stands for; so shares of one become shares of the other. */
static uint64_t measurement_of(const struct cv_prio *p, const uint64_t *encoded) {
  unsigned last = p->measurement_elements - 1;
  uint64_t sum = cv_field_mul(encoded[last], p->last_weight);
  for (unsigned i = 0; i < last; i++) {
    sum = cv_field_add(sum, cv_field_reduce((cv_field_product)encoded[i] << i));
  }
  return sum;
}

static bool verify(const struct cv_prio *p, const uint8_t *key, const uint8_t *ctx, size_t ctx_len,
                   const uint8_t *nonce, const uint64_t *share, uint64_t *ret_verifier, uint64_t *ret_output) {
  uint64_t rand[CV_PRIO_BITS_END + 1];
  uint8_t binder[1 + CV_PRIO_NONCE_BYTES] = {1};
  memcpy(binder + 1, nonce, CV_PRIO_NONCE_BYTES);
  CV_REQUIRE(ctx_len <= CV_PRIO_CONTEXT_BYTES);
  cv_prio_expand(p, CV_PRIO_QUERY_RANDOMNESS, ctx, ctx_len, key, binder, sizeof(binder), rand, p->query_elements);
  if (!cv_prio_query(p, share, rand, ret_verifier)) {
    return false;
  }
  *ret_output = measurement_of(p, share);
  return true;
}

bool cv_prio_verify_leader(const struct cv_prio *p, const uint8_t key[CV_PRIO_SEED_BYTES], const uint8_t *ctx,
                           size_t ctx_len, const uint8_t nonce[CV_PRIO_NONCE_BYTES], const uint8_t *share,
                           size_t length, uint64_t *ret_verifier, uint64_t *ret_output) {
  uint64_t element[CV_PRIO_ELEMENTS_END];
  return length == p->leader_bytes && cv_field_decode(share, length / CV_FIELD_BYTES, element) &&
         verify(p, key, ctx, ctx_len, nonce, element, ret_verifier, ret_output);
}

bool cv_prio_verify_helper_of(const struct cv_prio *p, unsigned id, const uint8_t key[CV_PRIO_SEED_BYTES],
                              const uint8_t *ctx, size_t ctx_len, const uint8_t nonce[CV_PRIO_NONCE_BYTES],
                              const uint8_t seed[CV_PRIO_SEED_BYTES], uint64_t *ret_verifier, uint64_t *ret_output) {
  uint64_t element[CV_PRIO_ELEMENTS_END];
  cv_prio_helper_share(p, id, ctx, ctx_len, seed, element);
  return verify(p, key, ctx, ctx_len, nonce, element, ret_verifier, ret_output);
}

bool cv_prio_verify_helper(const struct cv_prio *p, const uint8_t key[CV_PRIO_SEED_BYTES], const uint8_t *ctx,
                           size_t ctx_len, const uint8_t nonce[CV_PRIO_NONCE_BYTES],
                           const uint8_t seed[CV_PRIO_SEED_BYTES], uint64_t *ret_verifier, uint64_t *ret_output) {
  return cv_prio_verify_helper_of(p, 1, key, ctx, ctx_len, nonce, seed, ret_verifier, ret_output);
}

bool cv_prio_decides(const struct cv_prio *p, const uint64_t *verifier) {
  if (!cv_field_holds(verifier, p->verifier_elements)) {
    return false;
  }
  uint64_t wrong = verifier[0] | (cv_prio_gadget(p, verifier[1], verifier[p->arity]) ^ verifier[1 + p->arity]);
  return cv_prio_public(wrong == 0);
}

bool cv_prio_accepts(const struct cv_prio *p, const uint64_t *verifier_leader, const uint64_t *verifier_helper) {
  uint64_t sum[CV_PRIO_MAX_VERIFIER_ELEMENTS] = {0};
  size_t n = p->verifier_elements;
  if (!cv_field_holds(verifier_leader, n) || !cv_field_holds(verifier_helper, n)) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    sum[i] = cv_field_add(verifier_leader[i], verifier_helper[i]);
  }
  return cv_prio_decides(p, sum);
}
