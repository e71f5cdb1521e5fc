/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the simulated server. */
#ifndef CV_SIM_SERVER_STATE_H
#define CV_SIM_SERVER_STATE_H

#include "tests/sim/server.h"

/* A transaction: rows, the new mark, and perhaps a new term. */
struct transaction {
  bool is_open, has_term;
  struct changes changes;
  struct cv_anchor_mark mark;
  struct cv_lineage_term term;
  const struct party *party; /* whose the new term is */
};

struct server {
  struct world *world;
  struct database now;
  bool has_lacking;
  struct database lacking; /* what the replica has, if it lacks commits */
  /* Who has the lock: the session's number, 0 = nobody; when its state has changed last; whether it is in doubt. */
  uint64_t holder, holder_active_ms;
  const struct party *holder_party;
  uint32_t holder_life;
  const struct party *term_party; /* whose the latest term is */
  bool is_in_doubt;
  struct transaction doubt;
  uint64_t cut[2]; /* of each broker, the session whose connection was cut last: it may not have noticed yet */
  uint64_t generation, replaced_ms;
  uint64_t sessions, terms;
  enum fate next;
  enum harm harm;
  uint32_t harm_in;
  bool has_copy, is_restored;
  struct database copy, real;
};

struct session {
  struct server *server;
  struct party *party;
  uint64_t number, generation;
  bool is_lost;
  bool is_loading, is_harmed; /* since its term began, until a commit; has read a damaged row */
  struct cv_term term;
  struct transaction transaction;
  /* The holder as it was seen last, and since when it has stood still. */
  uint64_t seen, seen_active_ms, still_since_ms;
};

/* Of a struct session, as in broker/store/backend.h. */
CV_MUST_USE enum cv_err session_begin(void *data, const struct cv_anchor_mark *mark, struct cv_why *why);
CV_MUST_USE enum cv_err session_commit(void *data, struct cv_why *why);
void session_rollback(void *data);
/* Adds a change to the transaction. */
void session_change(struct session *session, struct change change);
const char *server_name(void *data);

/* The rows of wrapped keys; begins a transaction that may change them, or nothing. */
extern const struct cv_vault_rows_ops SERVER_KEYS;
CV_MUST_USE enum cv_err server_begin_keys(void *data, struct cv_why *why);

#endif
