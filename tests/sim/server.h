/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database server that two brokers share, and its replica, as far as the brokers can tell: sessions, the lock, the
 * fence, and commits that wait for the replica. The order of a takeover is the product's (broker/store/term.h).
 *
 * A commit is acknowledged when the replica has it, too. Until then its outcome may be in doubt: nobody else sees it,
 * and its session keeps the lock, even if its broker is dead.
 */
#ifndef CV_SIM_SERVER_H
#define CV_SIM_SERVER_H

#include "broker/store/term.h"
#include "tests/sim/database.h"
#include "tests/sim/world.h"

struct cv_broker_store;
struct server;
struct session;

/* What becomes of the next commit. */
enum fate {
  FATE_STORED,
  FATE_ABORTED,  /* the session ends between fence and COMMIT */
  FATE_UNKNOWN,  /* stored, but the answer is lost */
  FATE_WAITING,  /* it waits for the replica, and its session is lost meanwhile; the outcome is seen later */
  FATE_CANCELED, /* the wait is cancelled: everybody sees it, and the replica lacks it */
  FATE_COUNT
};

struct server *server_new(struct world *world);
void server_free(struct server *server);

/* A broker's session, with its anchor at the path; after an error, too, it is to be closed. */
CV_MUST_USE enum cv_err session_open(struct server *server, const char *anchor, struct session **ret,
                                     struct cv_why *why);
/* The broker's process has ended. `lingers`: the server does not learn of it. */
void session_close(struct session *session, bool lingers);
/* One attempt to get the term; the store of this term. After an error the session begins again without a lock. */
CV_MUST_USE enum cv_err session_step(struct session *session, bool *ret_taken, struct cv_why *why);
CV_MUST_USE enum cv_err session_store(struct session *session, struct cv_broker_store **ret, struct cv_why *why);
/* The server was replaced, and the session's broker does not know it yet: commits are not answered. */
bool session_is_silent(const struct session *session);
/* A fenced commit without rows. */
CV_MUST_USE enum cv_err session_beat(struct session *session, struct cv_why *why);

/* ---- faults ---- */

void server_next(struct server *server, enum fate fate);
/* The connection of the one who has the lock is cut. */
void server_cut(struct server *server);
/* The replica takes over; the old server is still there for whoever is connected to it, but has no replica. */
void server_promote(struct server *server);
/* A copy is made; then the copy is put in the place of the database, or a fork of the copy with higher numbers; then
 * the database is put back. False: not yet. */
void server_copy(struct server *server);
bool server_restore(struct server *server, uint64_t anchored);
void server_put_back(struct server *server);
/* From here on commits are stored. */
void server_calm(struct server *server);

/* Calls `take` with the bytes of every row. */
void server_bytes(const struct server *server, void (*take)(void *taker, const uint8_t *bytes, size_t n), void *taker);

#endif
