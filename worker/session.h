/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool's part in one campaign with two brokers: the session with the co-broker under which it splits tokens, and the
 * slots that its workers have used. Pure; keys stay with the caller.
 *
 *   made -> asks -> begins (the terms of both brokers are equal) -> seals, each counter once -> ends
 *                -> is turned away: asks again later
 *
 * A session ends with its connection, and another begins on the next one. Terms and brokers are pinned for the life of
 * this struct: two keys, or two contexts, under one campaign would give scores away.
 */
#ifndef CV_WORKER_SESSION_H
#define CV_WORKER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/rng.h"
#include "common/prio/prio.h"
#include "proto/codec/share.h"
#include "worker/slots.h"

/* What a session needs of its surroundings; `data` is passed to each. */
struct cv_session_ops {
  cv_digest_fn *digest;
  struct cv_rng *fresh; /* of the system, never a seeded one: nonces, and the randomness that splits a token */
  /* Makes the session's key, of the open connection to the co-broker and bound to the context; *ret is the caller's
   * handle of it, not NULL. CV_ERR_CLOSED if the connection has gone, CV_ERR_NOMEM. */
  enum cv_err (*open)(void *data, const struct cv_digest *context, void **ret);
  /* Encrypts the helper's share under the key; `counter` is used once for each key. CV_ERR_NOMEM. */
  enum cv_err (*seal)(void *data, void *key, uint64_t counter, const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                      const uint8_t seed[CV_SPLIT_SEED_BYTES], uint8_t ret[CV_SPLIT_SEALED_BYTES]);
  void (*close)(void *data, void *key);
  void *data;
};

enum cv_session_state { CV_SESSION_NONE, CV_SESSION_ASKED, CV_SESSION_STANDS };

struct cv_session {
  const struct cv_session_ops *ops;
  struct cv_terms terms; /* of the broker, when the session was made */
  struct cv_prio prio;
  struct cv_slots slots;
  enum cv_session_state state;
  uint64_t due_ms; /* monotonic: not asked for before */
  bool is_pinned;  /* `duo` and `context` are those of the first session */
  struct cv_duo duo;
  struct cv_digest context;
  uint8_t id[CV_SPLIT_SESSION_BYTES];
  uint64_t counter; /* of the next token */
  void *key;        /* NULL: none */
};

/* For terms with a split and at least one token per worker. `ops` is borrowed. CV_ERR_DENIED if score_bits is unknown,
 * with the reason; CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_session_new(const struct cv_session_ops *ops, const struct cv_terms *terms, uint64_t workers,
                                       struct cv_session **ret, struct cv_why *why);
void cv_session_free(struct cv_session *session);

/* Whether the campaign is still the one that the session was made for: CV_ERR_DENIED with the reason if the broker
 * tells other terms, or is another one than in the first session. */
CV_MUST_USE enum cv_err cv_session_check(const struct cv_session *session, const struct cv_terms *terms,
                                         const struct cv_digest *broker, struct cv_why *why);
/* Whether an Enter is due; then it counts as asked for. */
bool cv_session_asks(struct cv_session *session, uint64_t now_ms);
/*
 * The co-broker's answer. CV_ERR_STATE if it was not asked for; CV_ERR_DENIED, with the reason to decline the campaign,
 * if its terms are not those of the broker, or if `duo` is another one than in the first session; CV_ERR_CLOSED,
 * CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_session_begin(struct cv_session *session, const struct cv_duo *duo,
                                         const struct cv_share_session *told, struct cv_why *why);
/* The co-broker gives none now: asks again after `again_ms`. CV_ERR_STATE if it was not asked for. */
CV_MUST_USE enum cv_err cv_session_turn(struct cv_session *session, uint32_t again_ms, uint64_t now_ms,
                                        struct cv_why *why);
/* The connection has gone, and with it the session. */
void cv_session_end(struct cv_session *session);

#endif
