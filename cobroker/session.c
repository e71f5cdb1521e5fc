/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/session.h"

#include <stdlib.h>
#include <string.h>

#include "cobroker/campaign.h"
#include "cobroker/conn.h"
#include "cobroker/core.h"
#include "cobroker/state.h"
#include "common/base/array.h"

enum { CROWDED_MS = 5000, UNKNOWN_MS = 1000 };

static void session_free(struct cv_cobroker_session *session) {
  explicit_bzero(session, sizeof(*session));
  free(session);
}

/* Removes the session from its connection's list. */
static void detach(struct cv_cobroker_session *session) {
  if (session->conn == NULL) {
    return;
  }
  for (struct cv_cobroker_session **at = &session->conn->sessions; *at != NULL; at = &(*at)->next) {
    if (*at == session) {
      *at = session->next;
      break;
    }
  }
  session->conn = NULL;
}

static void drop(struct cv_cobroker *core, struct cv_cobroker_session *session) {
  detach(session);
  HASH_DEL(core->sessions, session);
  session_free(session);
}

/* Whether its certificate has ended. */
static bool is_over(const struct cv_cobroker *core, const struct cv_cobroker_session *session, const void *unused) {
  return session->identity.until_ms != 0 && core->wall_ms >= session->identity.until_ms;
}

const struct cv_cobroker_session *cv_cobroker_session_find(struct cv_cobroker *core,
                                                           const struct cv_cobroker_campaign *campaign,
                                                           const uint8_t id[CV_SPLIT_SESSION_BYTES], uint64_t worker) {
  struct cv_cobroker_session *session = NULL;
  HASH_FIND(hh, core->sessions, id, CV_SPLIT_SESSION_BYTES, session);
  bool fits = session != NULL && session->campaign == campaign->id && !is_over(core, session, NULL) &&
              cv_identity_vouches_for(&session->identity, worker);
  return fits ? session : NULL;
}

void cv_cobroker_sessions_leave(struct cv_cobroker_conn *conn) {
  while (conn->sessions != NULL) {
    detach(conn->sessions);
  }
}

/* Ends every session that `ends` says; returns how many. */
static size_t end_those(struct cv_cobroker *core, const void *data,
                        bool (*ends)(const struct cv_cobroker *core, const struct cv_cobroker_session *session,
                                     const void *data)) {
  struct cv_cobroker_session *session = core->sessions, *next;
  size_t ended = 0;
  for (; session != NULL; session = next) {
    next = session->hh.next;
    if (ends(core, session, data)) {
      drop(core, session);
      ended++;
    }
  }
  return ended;
}

static bool is_of(const struct cv_cobroker *core, const struct cv_cobroker_session *session, const void *campaign) {
  return session->campaign == *(const uint32_t *)campaign;
}

void cv_cobroker_sessions_purge(struct cv_cobroker *core, uint32_t campaign) {
  (void)end_those(core, &campaign, is_of);
}

void cv_cobroker_sessions_expire(struct cv_cobroker *core) {
  (void)end_those(core, NULL, is_over);
}

static bool is_revoked(const struct cv_cobroker *core, const struct cv_cobroker_session *session, const void *data) {
  const struct cv_cobroker_revoked *revoked = data;
  return revoked->has(revoked->data, session->identity.serial);
}

size_t cv_cobroker_sessions_revoke(struct cv_cobroker *core, const struct cv_cobroker_revoked *revoked) {
  return end_those(core, revoked, is_revoked);
}

void cv_cobroker_sessions_free(struct cv_cobroker *core) {
  CV_TABLE_DRAIN(core->sessions, session_free);
}

/* Whether the session is replaced by the newer one: it is of the same campaign and vouches for some of its workers.
 * Certificates with common workers are not connected at the same time (core.c). */
static bool is_replaced(const struct cv_cobroker *core, const struct cv_cobroker_session *session, const void *data) {
  const struct cv_cobroker_session *newer = data;
  return session->campaign == newer->campaign && cv_identity_overlaps(&session->identity, &newer->identity);
}

/* Makes room for one more session: the oldest one whose connection is gone makes way. False if there is none. */
static bool make_room(struct cv_cobroker *core) {
  if (HASH_COUNT(core->sessions) < core->config.sessions) {
    return true;
  }
  for (struct cv_cobroker_session *each = core->sessions; each != NULL; each = each->hh.next) {
    if (each->conn == NULL) {
      drop(core, each);
      return true;
    }
  }
  return false;
}

static void draw_id(struct cv_rng *rng, uint8_t ret[CV_SPLIT_SESSION_BYTES]) {
  for (size_t i = 0; i < CV_SPLIT_SESSION_BYTES; i += sizeof(uint64_t)) {
    uint64_t bits = cv_rng_u64(rng);
    memcpy(ret + i, &bits, sizeof(bits));
  }
}

/* Begins a session; the table owns it. */
static enum cv_err begin(struct cv_cobroker *core, struct cv_cobroker_conn *conn,
                         const struct cv_cobroker_campaign *campaign, struct cv_cobroker_session **ret,
                         struct cv_why *why) {
  struct cv_cobroker_session *session = calloc(1, sizeof(*session));
  uint32_t *entered = session == NULL ? NULL : CV_ARRAY_PUSH(conn->entered, conn->entered_count, conn->entered_cap);
  if (entered == NULL) {
    free(session);
    return CV_ERR_NOMEM;
  }
  *entered = campaign->id;
  session->campaign = campaign->id;
  session->identity = conn->identity;
  draw_id(core->config.key, session->id);
  enum cv_err err = core->config.export_key(core->config.crypto_data, conn->shell, &campaign->context, session->key);
  err = err == CV_OK ? CV_TABLE_ADD(core->sessions, id, session) : err;
  if (err != CV_OK) {
    session_free(session);
    return cv_fail(why, err, "cannot begin a session: %s", cv_err_text(err));
  }
  session->conn = conn;
  session->next = conn->sessions;
  conn->sessions = session;
  *ret = session;
  return CV_OK;
}

static enum cv_err say(struct cv_cobroker *core, struct cv_cobroker_conn *conn,
                       const struct cv_cobroker_campaign *campaign, const struct cv_cobroker_session *session) {
  const struct cv_spec *spec = &campaign->spec;
  struct cv_share_session message = {.terms = {.id = campaign->id,
                                               .privatizer = spec->privatizer,
                                               .mechanism = spec->mechanism,
                                               .epsilon_micro = spec->epsilon_micro,
                                               .tokens_per_worker = spec->tokens_per_worker,
                                               .arms = spec->arms,
                                               .pairs = spec->pairs,
                                               .repeat = spec->repeat,
                                               .scale = spec->scale,
                                               .split = campaign->split}};
  memcpy(message.terms.name, spec->name, sizeof(message.terms.name));
  memcpy(message.terms.requester, campaign->requester, sizeof(message.terms.requester));
  memcpy(message.id, session->id, sizeof(message.id));
  return cv_cobroker_say_session(&conn->gather, &message);
}

static enum cv_err turn(struct cv_cobroker_conn *conn, uint64_t campaign, uint32_t again_ms, const char *why) {
  return cv_cobroker_say_turned(&conn->gather,
                                &(struct cv_share_turned){.campaign = campaign, .why = why, .again_ms = again_ms});
}

/* Whether the connection has entered the campaign before; *ret is its session if that is still one. */
static bool has_entered(const struct cv_cobroker_conn *conn, uint32_t campaign, struct cv_cobroker_session **ret) {
  for (*ret = conn->sessions; *ret != NULL && (*ret)->campaign != campaign; *ret = (*ret)->next) {
  }
  for (size_t i = 0; i < conn->entered_count; i++) {
    if (conn->entered[i] == campaign) {
      return true;
    }
  }
  return false;
}

enum cv_err cv_cobroker_enter(struct cv_cobroker *core, struct cv_cobroker_conn *conn, uint64_t id,
                              struct cv_why *why) {
  const struct cv_cobroker_campaign *campaign = cv_cobroker_campaign_find(core, id);
  struct cv_cobroker_session *session;
  core->said = true;
  conn->gathered++;
  if (campaign == NULL) {
    /* The broker may open it a moment later; after its end nobody enters it again. */
    bool is_over = cv_cobroker_archive_find(&core->archive, id) != NULL || id <= core->archive.past.campaigns;
    return turn(conn, id, is_over ? 0 : UNKNOWN_MS, is_over ? "the campaign has ended" : "the campaign is not open");
  }
  if (has_entered(conn, campaign->id, &session)) {
    return session != NULL
               ? say(core, conn, campaign, session)
               : cv_fail(why, CV_ERR_STATE, "the session of campaign %u is over; expected Enter on a new connection",
                         campaign->id);
  }
  const struct cv_cobroker_session newer = {.campaign = campaign->id, .identity = conn->identity};
  (void)end_those(core, &newer, is_replaced);
  if (!make_room(core)) {
    return turn(conn, id, CROWDED_MS, "there are too many sessions");
  }
  CV_TRY(begin(core, conn, campaign, &session, why));
  return say(core, conn, campaign, session);
}
