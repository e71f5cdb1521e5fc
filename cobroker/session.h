/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: a worker or gateway enters a campaign, and from then on the seeds of its tokens come through the broker,
 * sealed with the session's key. A session vouches for the workers of its certificate. It survives its connection, so
 * that what is on the way still opens; it ends with the certificate, with the campaign, when a newer one of the same
 * workers replaces it, and when room is needed and its connection is gone. Sessions are in memory only.
 */
#ifndef CV_COBROKER_SESSION_H
#define CV_COBROKER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/split.h"
#include "common/base/table.h"
#include "common/net/identity.h"

struct cv_cobroker;
struct cv_cobroker_campaign;
struct cv_cobroker_conn;
struct cv_cobroker_revoked;

struct cv_cobroker_session {
  uint8_t id[CV_SPLIT_SESSION_BYTES];
  UT_hash_handle hh;
  uint32_t campaign;
  struct cv_identity identity;
  uint8_t key[CV_SPLIT_SEED_BYTES];
  struct cv_cobroker_conn *conn;    /* NULL: gone */
  struct cv_cobroker_session *next; /* of the same connection */
};

/* Handles an Enter: the connection gets a Session or a Turned. CV_ERR_STATE with the reason if it has had a session of
 * this campaign that is over: its key must not be used again. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_enter(struct cv_cobroker *core, struct cv_cobroker_conn *conn, uint64_t campaign,
                                          struct cv_why *why);
/* The session if it is one of the campaign and vouches for the worker; else NULL. */
const struct cv_cobroker_session *cv_cobroker_session_find(struct cv_cobroker *core,
                                                           const struct cv_cobroker_campaign *campaign,
                                                           const uint8_t id[CV_SPLIT_SESSION_BYTES], uint64_t worker);
/* The connection is gone; its sessions stay. */
void cv_cobroker_sessions_leave(struct cv_cobroker_conn *conn);
/* Ends those of the campaign; those whose certificate has ended; those whose certificate was revoked, of which it
 * returns the number; all. */
void cv_cobroker_sessions_purge(struct cv_cobroker *core, uint32_t campaign);
void cv_cobroker_sessions_expire(struct cv_cobroker *core);
size_t cv_cobroker_sessions_revoke(struct cv_cobroker *core, const struct cv_cobroker_revoked *revoked);
void cv_cobroker_sessions_free(struct cv_cobroker *core);

#endif
