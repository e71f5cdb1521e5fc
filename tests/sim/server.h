/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database server that two brokers share, and its replica, as far as the brokers can tell: sessions, the lock, the
 * fence, and commits that wait for the replica. The order of a takeover is the product's (broker/store/term.h), and so
 * is what a standby does (standby.h).
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

/* What happens to a load: at one of its reads the session is lost, a row is damaged, or another broker, which takes the
 * server's word that the session has ended, begins a term. */
enum harm { HARM_NONE, HARM_LOST, HARM_DAMAGED, HARM_OVERTAKEN, HARM_COUNT };

struct server *server_new(struct world *world);
void server_free(struct server *server);

/* A broker's session, with its anchor at the path; after an error, too, it is to be closed. The broker can die at each
 * of its steps. */
CV_MUST_USE enum cv_err session_open(struct party *party, const char *anchor, struct session **ret, struct cv_why *why);
/* The broker's process has ended. `lingers`: the server does not learn of it. */
void session_close(struct session *session, bool lingers);
/* One attempt to get the term; the store of this term. After an error the session begins again without a lock. */
CV_MUST_USE enum cv_err session_step(struct session *session, bool *ret_taken, struct cv_why *why);
CV_MUST_USE enum cv_err session_store(struct session *session, struct cv_broker_store **ret, struct cv_why *why);
/* Gives the lock back. */
void session_leave(struct session *session);
const struct cv_term *session_term(const struct session *session);
/* "broker N": whose the latest term is; "": there was none. */
void session_tell_holder(const struct session *session, char *to, size_t size);
/* Its term is the database's. */
bool session_is_latest(const struct session *session);
/* All that it has read since its term began is of that term: a fenced commit came after. */
bool session_is_proven(const struct session *session);
/* A row that it has read since its term began was another than the one that is stored. */
bool session_is_harmed(const struct session *session);
/* The server was replaced, and the session's broker does not know it yet: commits are not answered. */
bool session_is_silent(const struct session *session);
/* A fenced commit without rows. */
CV_MUST_USE enum cv_err session_beat(struct session *session, struct cv_why *why);

/* ---- faults ---- */

void server_next(struct server *server, enum fate fate);
/* At the n-th read of a load from now on. */
void server_harm(struct server *server, enum harm harm, uint32_t n);
/* A fault of the server's goes on: it is restored, or a commit is in doubt. */
bool server_is_disturbed(const struct server *server);
/* The connection of the one who has the lock is cut. */
void server_cut(struct server *server);
/* The replica takes over; the old server is still there for whoever is connected to it, but has no replica. */
void server_promote(struct server *server);
/* A copy is made; then the copy is put in the place of the database, or a fork of the copy with higher numbers; then
 * the database is put back. False: not yet. */
void server_copy(struct server *server);
bool server_restore(struct server *server, uint64_t anchored);
void server_put_back(struct server *server);
/* From here on commits are stored; a harm that was planned still comes. */
void server_calm(struct server *server);

/* Calls `take` with the bytes of every row. */
void server_bytes(const struct server *server, void (*take)(void *taker, const uint8_t *bytes, size_t n), void *taker);

#endif
