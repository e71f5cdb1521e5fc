/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/session.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/fingerprint.h"

enum cv_err cv_session_new(const struct cv_session_ops *ops, const struct cv_terms *terms, uint64_t workers,
                           struct cv_session **ret, struct cv_why *why) {
  uint32_t bits = terms->split.score_bits;
  if (bits != CV_SPLIT_BIT && bits != CV_SPLIT_SCORE) {
    return cv_fail(why, CV_ERR_DENIED, "shares of %u bits; expected %d or %d", bits, CV_SPLIT_BIT, CV_SPLIT_SCORE);
  }
  struct cv_session *session = calloc(1, sizeof(*session));
  if (session == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  session->ops = ops;
  session->terms = *terms;
  enum cv_prio_circuit circuit = bits == CV_SPLIT_BIT ? CV_PRIO_COUNT : CV_PRIO_SUM;
  CV_REQUIRE(cv_prio_init(&session->prio, circuit, cv_split_maximum(bits)) == CV_OK);
  if (cv_slots_init(&session->slots, workers, terms->tokens_per_worker) != CV_OK) {
    cv_session_free(session);
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  *ret = session;
  return CV_OK;
}

void cv_session_free(struct cv_session *session) {
  if (session == NULL) {
    return;
  }
  cv_session_end(session);
  cv_slots_fini(&session->slots);
  free(session);
}

/* ---- the terms of both ---- */

static bool is_same_param(const struct cv_param *a, const struct cv_param *b) {
  return strcmp(a->key, b->key) == 0 && a->is_text == b->is_text &&
         (a->is_text ? strcmp(a->text, b->text) == 0 : a->number == b->number);
}

static bool is_same_choice(const struct cv_choice *a, const struct cv_choice *b) {
  bool same = strcmp(a->name, b->name) == 0 && a->params.count == b->params.count;
  for (uint32_t i = 0; same && i < a->params.count; i++) {
    same = is_same_param(&a->params.item[i], &b->params.item[i]);
  }
  return same;
}

/* What differs, all fields but the lease, of which a co-broker knows nothing; NULL: nothing. */
static const char *difference(const struct cv_terms *a, const struct cv_terms *b) {
  const struct {
    const char *what;
    bool same;
  } field[] = {
      {"campaign", a->id == b->id},
      {"name", strcmp(a->name, b->name) == 0},
      {"requester", strcmp(a->requester, b->requester) == 0},
      {"privatizer", is_same_choice(&a->privatizer, &b->privatizer)},
      {"mechanism", is_same_choice(&a->mechanism, &b->mechanism)},
      {"epsilon", a->epsilon_micro == b->epsilon_micro},
      {"number of tokens per worker", a->tokens_per_worker == b->tokens_per_worker},
      {"number of arms", a->arms == b->arms},
      {"kind of score", a->pairs == b->pairs && a->split.score_bits == b->split.score_bits},
      {"rule on repeated questions", a->repeat == b->repeat},
      {"scale", cv_scale_is_same(&a->scale, &b->scale)},
      {"database of the broker", memcmp(a->split.database, b->split.database, sizeof(a->split.database)) == 0},
      {"spec", cv_digest_is_same(&a->split.spec, &b->split.spec)},
      {"verify key", cv_digest_is_same(&a->split.key, &b->split.key)},
  };
  for (size_t i = 0; i < CV_COUNT(field); i++) {
    if (!field[i].same) {
      return field[i].what;
    }
  }
  return NULL;
}

static enum cv_err check_broker(const struct cv_session *session, const struct cv_digest *broker, struct cv_why *why) {
  return !session->is_pinned || cv_digest_is_same(&session->duo.broker, broker)
             ? CV_OK
             : cv_fail(why, CV_ERR_DENIED,
                       "the broker has another key than in the campaign's first session; expected the same key until "
                       "the campaign ends");
}

enum cv_err cv_session_check(const struct cv_session *session, const struct cv_terms *terms,
                             const struct cv_digest *broker, struct cv_why *why) {
  const char *what = difference(&session->terms, terms);
  if (what != NULL) {
    return cv_fail(why, CV_ERR_DENIED, "the broker tells another %s than before; expected terms that do not change",
                   what);
  }
  return check_broker(session, broker, why);
}

/* ---- the session ---- */

bool cv_session_asks(struct cv_session *session, uint64_t now_ms) {
  if (session->state != CV_SESSION_NONE || now_ms < session->due_ms) {
    return false;
  }
  session->state = CV_SESSION_ASKED;
  return true;
}

static enum cv_err check_asked(const struct cv_session *session, struct cv_why *why) {
  return session->state == CV_SESSION_ASKED
             ? CV_OK
             : cv_fail(why, CV_ERR_STATE, "the co-broker answers for campaign %llu, which was not asked",
                       (unsigned long long)session->terms.id);
}

static enum cv_err check_cobroker(const struct cv_session *session, const struct cv_digest *cobroker,
                                  struct cv_why *why) {
  return !session->is_pinned || cv_digest_is_same(&session->duo.cobroker, cobroker)
             ? CV_OK
             : cv_fail(why, CV_ERR_DENIED,
                       "the co-broker has another key than in the campaign's first session; expected the same key "
                       "until the campaign ends");
}

enum cv_err cv_session_begin(struct cv_session *session, const struct cv_duo *duo, const struct cv_share_session *told,
                             struct cv_why *why) {
  CV_TRY(check_asked(session, why));
  const char *what = difference(&session->terms, &told->terms);
  if (what != NULL) {
    return cv_fail(why, CV_ERR_DENIED, "broker and co-broker tell another %s; expected the same terms of both", what);
  }
  CV_TRY(check_broker(session, &duo->broker, why));
  CV_TRY(check_cobroker(session, &duo->cobroker, why));
  /* Of the keys that this pool sees on its own connections, never of keys that somebody tells. */
  cv_split_context(&session->terms.split, duo, session->terms.id, session->ops->digest, &session->context);
  enum cv_err err = session->ops->open(session->ops->data, &session->context, &session->key);
  if (err != CV_OK) {
    return cv_fail(why, err, err == CV_ERR_NOMEM ? "out of memory" : "the connection to the co-broker has gone");
  }
  session->duo = *duo;
  session->is_pinned = true;
  memcpy(session->id, told->id, sizeof(session->id));
  session->counter = 0;
  session->state = CV_SESSION_STANDS;
  return CV_OK;
}

enum cv_err cv_session_turn(struct cv_session *session, uint32_t again_ms, uint64_t now_ms, struct cv_why *why) {
  CV_TRY(check_asked(session, why));
  session->state = CV_SESSION_NONE;
  session->due_ms = now_ms + again_ms;
  return CV_OK;
}

void cv_session_end(struct cv_session *session) {
  if (session->key != NULL) {
    session->ops->close(session->ops->data, session->key);
  }
  session->key = NULL;
  session->state = CV_SESSION_NONE;
  session->due_ms = 0;
}
