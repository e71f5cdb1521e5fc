/* SPDX-License-Identifier: Apache-2.0 */
/* Why no share may be verified under two keys; see opening.h. */
#include <stdio.h>

#include "common/base/rng.h"
#include "common/base/split.h"
#include "common/prio/field.h"
#include "common/prio/shard.h"
#include "common/prio/verify.h"
#include "lab/audit/opening.h"
#include "lab/audit/subjects.h"

static const uint8_t context[] = "audit";

static void draw(struct cv_rng *rng, uint8_t *ret, size_t n) {
  for (size_t i = 0; i < n; i++) {
    ret[i] = (uint8_t)cv_rng_u64(rng);
  }
}

static enum cv_err look(const struct cv_prio *prio, const uint8_t *key, const uint8_t *nonce, const uint8_t *leader,
                        const uint8_t *helper, struct cv_opening *ret) {
  uint64_t one[CV_PRIO_MAX_VERIFIER_ELEMENTS], other[CV_PRIO_MAX_VERIFIER_ELEMENTS], output;
  if (!cv_prio_verify_leader(prio, key, context, sizeof(context), nonce, leader, prio->leader_bytes, one, &output) ||
      !cv_prio_verify_helper(prio, key, context, sizeof(context), nonce, helper, other, &output)) {
    return CV_ERR_STATE;
  }
  return cv_opening_init(ret, prio, key, context, sizeof(context), nonce,
                         cv_field_add(one[CV_OPENING_WIRE], other[CV_OPENING_WIRE]));
}

/* The co-broker sees the broker's verifier share of one token, twice: under the same key, or under another one. */
static enum cv_err run_once(const struct cv_audit_subject *self, const struct cv_prio *prio, bool neighbour,
                            struct cv_rng *rng, int64_t *row) {
  uint8_t nonce[CV_PRIO_NONCE_BYTES], rand[CV_PRIO_MAX_RAND_BYTES], key[2][CV_PRIO_SEED_BYTES];
  uint8_t leader[CV_PRIO_MAX_LEADER_BYTES], helper[CV_PRIO_SEED_BYTES];
  struct cv_opening seen[2];
  draw(rng, nonce, sizeof(nonce));
  draw(rng, rand, sizeof(rand));
  draw(rng, key[0], sizeof(key[0]));
  draw(rng, key[1], sizeof(key[1]));
  cv_prio_shard(prio, context, sizeof(context), neighbour ? prio->max : 0, nonce, rand, leader, helper);
  CV_TRY(look(prio, key[0], nonce, leader, helper, &seen[0]));
  CV_TRY(look(prio, key[self->is_sound ? 0 : 1], nonce, leader, helper, &seen[1]));
  row[0] = (int64_t)seen[0].value;
  row[1] = (int64_t)seen[1].value;
  row[2] = cv_opening_solve(&seen[0], &seen[1]);
  return CV_OK;
}

static enum cv_err sample(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                          int64_t *row) {
  struct cv_prio prio;
  struct cv_rng_seeded seeded;
  CV_TRY(cv_prio_init(&prio, CV_PRIO_SUM, cv_split_maximum(CV_SPLIT_SCORE)));
  cv_rng_seeded_init(&seeded, stream, CV_RNG_ROUNDING, 0, 0);
  for (uint64_t run = 0; run < runs; run++, row += self->width) {
    CV_TRY(run_once(self, &prio, neighbour, &seeded.rng, row));
  }
  return CV_OK;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  static const char *const names[] = {"verifier", "second verifier", "opened"};
  (void)snprintf(text, CV_AUDIT_TEXT, "%s", names[at]);
}

void cv_audit_verify_key(bool second, struct cv_audit_subject *ret) {
  *ret = (struct cv_audit_subject){.is_sound = !second, .epsilon = 0, .width = 3, .sample = sample, .label = label};
  (void)snprintf(ret->part, sizeof(ret->part), "two-brokers");
  (void)snprintf(ret->setting, sizeof(ret->setting), second ? "a share under two keys" : "a share under one key");
}
