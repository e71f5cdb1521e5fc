/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/chain.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/le.h"
#include "common/base/spec.h"

/* docs/protocol.md, "Chains". */
enum { RELEASE_BYTES = 8 + 8 + 4 + 8 + 8 + 4 + CV_NOISE_GROUPS_MAX * 12 + 1, PLAN_BYTES = 8 + 4, WANT_BYTES = 12 };

static uint8_t *put_f64(uint8_t *at, double value) {
  uint64_t bits;
  _Static_assert(sizeof(bits) == sizeof(value), "a double has 64 bits");
  /* The bits, not the value: a hash must not depend on how a number is printed. */
  memcpy(&bits, &value, sizeof(bits));
  return cv_le_put(at, bits, 8);
}

void cv_chain_release(struct cv_digest *hash, const struct cv_release *release, cv_digest_fn *digest) {
  CV_REQUIRE(release->noise.groups <= CV_NOISE_GROUPS_MAX);
  /* Both parties and the test client compute the same bytes; the layout is part of the protocol. */
  uint8_t record[RELEASE_BYTES];
  uint8_t *at = cv_le_put(record, release->number, 8);
  at = cv_le_put(at, release->plan, 8);
  at = cv_le_put(at, release->arm, 4);
  at = cv_le_put(at, release->tokens, 8);
  at = cv_le_put(at, (uint64_t)release->noisy_sum, 8);
  at = cv_le_put(at, release->noise.groups, 4);
  for (uint32_t i = 0; i < release->noise.groups; i++) {
    at = put_f64(at, release->noise.group[i].scale);
    at = cv_le_put(at, release->noise.group[i].count, 4);
  }
  at = release->last ? cv_le_put(at, 1, 1) : at;
  cv_digest_extend(hash, record, (size_t)(at - record), digest);
}

enum cv_err cv_chain_plan(struct cv_digest *hash, const struct cv_plan *plan, cv_digest_fn *digest) {
  CV_REQUIRE(plan->wants <= CV_ARMS_MAX);
  bool names_opponent = false;
  uint8_t *record = malloc(PLAN_BYTES + plan->wants * (size_t)WANT_BYTES);
  if (record == NULL) {
    return CV_ERR_NOMEM;
  }
  uint8_t *at = cv_le_put(record, plan->number, 8);
  at = cv_le_put(at, plan->wants, 4);
  for (uint32_t i = 0; i < plan->wants; i++) {
    at = cv_le_put(at, plan->want[i].arm, 4);
    at = cv_le_put(at, plan->want[i].tokens, 4);
    names_opponent = names_opponent || plan->want[i].opponent != 0;
  }
  /* Only then, so that the chains of all other plans are what they were before there were opponents. */
  for (uint32_t i = 0; names_opponent && i < plan->wants; i++) {
    at = cv_le_put(at, plan->want[i].opponent, 4);
  }
  cv_digest_extend(hash, record, (size_t)(at - record), digest);
  free(record);
  return CV_OK;
}
