/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/split.h"

#include "common/base/grid.h"
#include "common/base/le.h"
#include "common/base/local.h"
#include "common/base/mechanisms.h"

/* docs/protocol.md, "Two brokers". */
#define LABEL "crowdveil two brokers 1"
enum {
  LABEL_BYTES = sizeof(LABEL) - 1,
  CONTEXT_BYTES =
      LABEL_BYTES + 2 * CV_DIGEST_BYTES + CV_SPLIT_DATABASE_BYTES + 8 + CV_DIGEST_BYTES + 4 + 8 + CV_DIGEST_BYTES,
  LINK_BYTES = 8 + 8 + 4 + CV_SPLIT_NONCE_BYTES,
};
/* VDAF's numbers of the algorithms. */
enum { PRIO3_COUNT = 1, PRIO3_SUM = 2 };

uint64_t cv_split_maximum(uint32_t score_bits) {
  return score_bits == CV_SPLIT_BIT ? 1 : UINT64_C(1) << (CV_SPLIT_SCORE - 1);
}

uint64_t cv_split_scale(uint32_t score_bits) {
  return (uint64_t)CV_GRID / cv_split_maximum(score_bits);
}

uint32_t cv_split_bits_of(bool tokens_are_bits) {
  return tokens_are_bits ? CV_SPLIT_BIT : CV_SPLIT_SCORE;
}

bool cv_split_tokens_are_bits(const struct cv_spec *spec) {
  struct cv_local local;
  return spec->pairs || (cv_local_init(&spec->privatizer, spec->arms, &local, NULL) == CV_OK && local.bits);
}

static enum cv_err check_bits(const struct cv_spec *spec, struct cv_why *why) {
  if (spec->score_bits != CV_SPLIT_BIT && spec->score_bits != CV_SPLIT_SCORE) {
    return cv_fail(why, CV_ERR_INVALID, "score_bits is %u with two brokers; expected %d or %d", spec->score_bits,
                   CV_SPLIT_BIT, CV_SPLIT_SCORE);
  }
  return spec->score_bits == CV_SPLIT_BIT || !cv_split_tokens_are_bits(spec)
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "score_bits is %u, but each token is one bit (%s); expected %d",
                       spec->score_bits, spec->pairs ? "pairs" : spec->privatizer.name, CV_SPLIT_BIT);
}

enum cv_err cv_split_check(const struct cv_spec *spec, struct cv_why *why) {
  if (spec->brokers == 0) {
    return spec->score_bits == 0
               ? CV_OK
               : cv_fail(why, CV_ERR_INVALID, "score_bits is %u with one broker; expected 0", spec->score_bits);
  }
  if (spec->brokers != 2) {
    return cv_fail(why, CV_ERR_INVALID, "brokers is %u; expected 2, or 0 for one broker", spec->brokers);
  }
  CV_TRY(check_bits(spec, why));
  if (spec->edges > 0) {
    return cv_fail(why, CV_ERR_INVALID,
                   "two brokers with a feedback graph; expected no graph: a proof is about one score");
  }
  if (!cv_local_is_bounded(cv_local_find(spec->privatizer.name))) {
    return cv_fail(why, CV_ERR_INVALID, "privatizer %s with two brokers; expected one whose tokens lie from 0 to 1",
                   spec->privatizer.name);
  }
  const struct cv_traits *traits = cv_traits_of(spec->mechanism.name);
  /* An unknown mechanism is refused by whoever has the table of algorithms. */
  return traits->name == NULL || cv_traits_covers(traits)
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "mechanism %s with two brokers; expected one whose noise protects every token: %s",
                       spec->mechanism.name, cv_traits_list(cv_traits_covers).text);
}

enum cv_err cv_split_spec(const struct cv_spec *spec, cv_digest_fn *digest, struct cv_digest *ret) {
  struct cv_buf stored = {0};
  cv_spec_encode(spec, &stored);
  bool ok = cv_buf_ok(&stored);
  if (ok) {
    digest("", 0, stored.data, stored.len, ret);
  }
  cv_buf_fini(&stored);
  return ok ? CV_OK : CV_ERR_NOMEM;
}

void cv_split_context(const struct cv_split *split, const struct cv_duo *duo, uint64_t campaign, cv_digest_fn *digest,
                      struct cv_digest *ret) {
  uint8_t bytes[CONTEXT_BYTES];
  uint8_t *at = cv_le_put_bytes(bytes, LABEL, LABEL_BYTES);
  at = cv_le_put_bytes(at, duo->broker.bytes, CV_DIGEST_BYTES);
  at = cv_le_put_bytes(at, duo->cobroker.bytes, CV_DIGEST_BYTES);
  at = cv_le_put_bytes(at, split->database, CV_SPLIT_DATABASE_BYTES);
  at = cv_le_put(at, campaign, 8);
  at = cv_le_put_bytes(at, split->spec.bytes, CV_DIGEST_BYTES);
  at = cv_le_put(at, split->score_bits == CV_SPLIT_BIT ? PRIO3_COUNT : PRIO3_SUM, 4);
  at = cv_le_put(at, cv_split_maximum(split->score_bits), 8);
  at = cv_le_put_bytes(at, split->key.bytes, CV_DIGEST_BYTES);
  digest(bytes, (size_t)(at - bytes), "", 0, ret);
}

void cv_split_bound(const struct cv_digest *context, const struct cv_split_token *token,
                    uint8_t ret[CV_SPLIT_BOUND_BYTES]) {
  uint8_t *at = cv_le_put_bytes(ret, context->bytes, CV_DIGEST_BYTES);
  at = cv_le_put(at, token->plan, 8);
  at = cv_le_put(at, token->arm, 4);
  at = cv_le_put(at, token->place, 8);
  at = cv_le_put(at, token->worker, 8);
  at = cv_le_put(at, token->slot, 4);
  (void)cv_le_put_bytes(at, token->nonce, CV_SPLIT_NONCE_BYTES);
}

void cv_split_seal_nonce(uint64_t counter, uint8_t ret[CV_SPLIT_SEAL_NONCE_BYTES]) {
  for (int i = 0; i < CV_SPLIT_SEAL_NONCE_BYTES; i++) {
    ret[i] = i < 4 ? 0 : (uint8_t)(counter >> (8 * (CV_SPLIT_SEAL_NONCE_BYTES - 1 - i)));
  }
}

void cv_split_chain(struct cv_digest *hash, const struct cv_split_token *token, cv_digest_fn *digest) {
  uint8_t link[LINK_BYTES];
  uint8_t *at = cv_le_put(link, token->place, 8);
  at = cv_le_put(at, token->worker, 8);
  at = cv_le_put(at, token->slot, 4);
  at = cv_le_put_bytes(at, token->nonce, CV_SPLIT_NONCE_BYTES);
  cv_digest_extend(hash, link, (size_t)(at - link), digest);
}
