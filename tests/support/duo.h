/* SPDX-License-Identifier: Apache-2.0 */
/* Both brokers of a campaign, as a test needs them: keys, terms, and what they find in a token together. */
#ifndef CV_TESTS_DUO_H
#define CV_TESTS_DUO_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/crypto/crypto.h"
#include "common/prio/field.h"
#include "common/prio/verify.h"
#include "worker/split.h"

/* What the pool asks of its surroundings. The seal is no cipher: it shows the seed, the counter and what is bound. */
struct duo {
  struct cv_session_ops ops;
  struct cv_rng_seeded fresh;
  uint8_t verify_key[CV_PRIO_SEED_BYTES];
  struct cv_duo keys;
  struct cv_split split;    /* of the terms */
  struct cv_digest context; /* under which the last session was opened */
  bool is_closed;           /* the connection has gone */
  int open;                 /* keys that are open */
  uint64_t next;            /* counter that the next token must have */
};

static inline enum cv_err duo_open(void *data, const struct cv_digest *context, void **ret) {
  struct duo *duo = data;
  if (duo->is_closed) {
    return CV_ERR_CLOSED;
  }
  struct cv_digest *key = malloc(sizeof(*key));
  if (key == NULL) {
    return CV_ERR_NOMEM;
  }
  *key = duo->context = *context;
  duo->open++;
  duo->next = 0;
  *ret = key;
  return CV_OK;
}

static inline void duo_close(void *data, void *key) {
  struct duo *duo = data;
  duo->open--;
  free(key);
}

static inline void duo_tag(const struct cv_digest *key, uint64_t counter, const uint8_t *bound, struct cv_digest *ret) {
  cv_sha256(&counter, sizeof(counter), bound, CV_SPLIT_BOUND_BYTES, ret);
  cv_sha256(ret->bytes, sizeof(ret->bytes), key->bytes, sizeof(key->bytes), ret);
}

static inline enum cv_err duo_seal(void *data, void *key, uint64_t counter, const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                                   const uint8_t seed[CV_SPLIT_SEED_BYTES], uint8_t ret[CV_SPLIT_SEALED_BYTES]) {
  struct duo *duo = data;
  struct cv_digest tag;
  CV_REQUIRE(counter == duo->next++); /* each counter once for a key, in order */
  duo_tag(key, counter, bound, &tag);
  memcpy(ret, seed, CV_SPLIT_SEED_BYTES);
  memcpy(ret + CV_SPLIT_SEED_BYTES, tag.bytes, CV_SPLIT_SEALED_BYTES - CV_SPLIT_SEED_BYTES);
  return CV_OK;
}

static inline void duo_init(struct duo *duo, uint32_t score_bits) {
  memset(duo, 0, sizeof(*duo));
  cv_rng_seeded_init(&duo->fresh, 7, 0, 0, 0);
  memset(duo->verify_key, 0x5a, sizeof(duo->verify_key));
  memset(duo->keys.broker.bytes, 0xb0, CV_DIGEST_BYTES);
  memset(duo->keys.cobroker.bytes, 0xc0, CV_DIGEST_BYTES);
  duo->split.score_bits = score_bits;
  memset(duo->split.database, 0xdb, sizeof(duo->split.database));
  memset(duo->split.spec.bytes, 0x5e, CV_DIGEST_BYTES);
  cv_sha256(duo->verify_key, sizeof(duo->verify_key), "", 0, &duo->split.key);
  duo->ops = (struct cv_session_ops){.digest = cv_sha256,
                                     .fresh = &duo->fresh.rng,
                                     .open = duo_open,
                                     .seal = duo_seal,
                                     .close = duo_close,
                                     .data = duo};
}

/*
 * What both brokers find in a share of this token: the measurement, or -1 if they refuse it. `context` is the one that
 * both compute from their keys and terms.
 */
static inline int64_t duo_judge(const struct duo *duo, const struct cv_token_share *share,
                                const struct cv_digest *context, const struct cv_split_token *token) {
  struct cv_prio prio;
  struct cv_digest tag;
  uint8_t bound[CV_SPLIT_BOUND_BYTES];
  uint64_t leader[CV_PRIO_MAX_VERIFIER_ELEMENTS], helper[CV_PRIO_MAX_VERIFIER_ELEMENTS], output[2];
  bool is_bit = duo->split.score_bits == CV_SPLIT_BIT;
  CV_REQUIRE(cv_prio_init(&prio, is_bit ? CV_PRIO_COUNT : CV_PRIO_SUM, is_bit ? 1 : 1 << 14) == CV_OK);
  cv_split_bound(context, token, bound);
  duo_tag(context, share->counter, bound, &tag);
  if (memcmp(tag.bytes, share->sealed + CV_SPLIT_SEED_BYTES, 16) != 0 ||
      memcmp(token->nonce, share->nonce, sizeof(share->nonce)) != 0) {
    return -1;
  }
  if (!cv_prio_verify_leader(&prio, duo->verify_key, context->bytes, CV_DIGEST_BYTES, share->nonce, share->leader,
                             share->leader_bytes, leader, &output[0]) ||
      !cv_prio_verify_helper(&prio, duo->verify_key, context->bytes, CV_DIGEST_BYTES, share->nonce, share->sealed,
                             helper, &output[1]) ||
      !cv_prio_accepts(&prio, leader, helper)) {
    return -1;
  }
  return (int64_t)cv_field_add(output[0], output[1]);
}

#endif
