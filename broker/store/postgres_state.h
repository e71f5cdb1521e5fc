/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a PostgreSQL store, for its own files only (postgres*.c). */
#ifndef CV_BROKER_STORE_POSTGRES_STATE_H
#define CV_BROKER_STORE_POSTGRES_STATE_H

#include "broker/store/backend.h"
#include "broker/store/remote.h"
#include "broker/store/term.h"
#include "common/base/table.h"
#include "common/pg/pg.h"

/* Of a row's code: which table and column it belongs to. Stored: numbers stay. */
enum cv_postgres_part {
  CV_POSTGRES_CAMPAIGN = 1,
  CV_POSTGRES_STATE,
  CV_POSTGRES_STANDINGS,
  CV_POSTGRES_PLAN,
  CV_POSTGRES_RELEASE,
  CV_POSTGRES_LEDGER,
  CV_POSTGRES_RECOVERY,
  CV_POSTGRES_ENDED,
  CV_POSTGRES_META,
  CV_POSTGRES_TERM,
};

enum { CV_POSTGRES_CODE_BYTES = 16 };

/* A wrapped key in memory: the vault reads keys in the middle of a commit, which must not wait for the server. */
struct cv_postgres_key {
  struct {
    uint32_t campaign, use;
  } at;
  struct cv_vault_row row;
  UT_hash_handle hh;
};

/* Operations of one kind in a row, which become one statement. */
struct cv_postgres_group {
  enum cv_op_kind kind;
  size_t rows, bytes;
  struct cv_pg_array campaign, number, value, extra; /* extra: codes, or kinds of chunks */
};

struct cv_remote {
  char *name, *address; /* of this broker; owned */
  bool replicated;
  struct cv_pg_uri uri;
  struct cv_ring ring;
  struct cv_pg *pg; /* NULL: not connected */
  bool is_checked;  /* server, schema and keys fit */
  struct cv_term term;
  struct cv_mac *mac;           /* of the rows' codes */
  uint64_t system_id, timeline; /* of the server, when a term was begun */
  struct cv_postgres_key *keys;
  /* The holder's session as it was seen last, and since when it has stood still, or has waited for a replica. */
  uint64_t holder_pid, holder_backend, holder_state, still_since_ms, waits_since_ms;
  /* the commit that is being made */
  bool in_commit;
  struct cv_anchor_mark next;
  struct cv_postgres_group group;
  struct cv_buf scratch;
  PGresult *fence, *replica;
  struct cv_remote_view view;
};

/* The backend of the active broker; closing it does nothing. */
struct cv_backend cv_postgres_backend(struct cv_remote *remote);
/* The vault's rows. */
struct cv_vault_rows cv_postgres_keys(struct cv_remote *remote);
/* Reads them. CV_ERR_DAMAGED. */
CV_MUST_USE enum cv_err cv_postgres_keys_load(struct cv_remote *remote, struct cv_why *why);
void cv_postgres_keys_forget(struct cv_remote *remote);

/* The code of a value. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_postgres_code(struct cv_remote *remote, enum cv_postgres_part part, uint32_t campaign,
                                         uint64_t number, const void *bytes, size_t n,
                                         uint8_t ret[CV_POSTGRES_CODE_BYTES]);
/* The code of a mark: the row `meta`. */
CV_MUST_USE enum cv_err cv_postgres_mark_code(struct cv_remote *remote, const struct cv_anchor_mark *mark,
                                              uint8_t ret[CV_POSTGRES_CODE_BYTES]);

/* Reads which anchors recoveries have taken in. CV_ERR_DAMAGED. */
CV_MUST_USE enum cv_err cv_postgres_taken_load(struct cv_remote *remote, struct cv_why *why);

/* A fenced transaction without rows: the database's mark becomes `mark`, or stays. */
CV_MUST_USE enum cv_err cv_postgres_touch(struct cv_remote *remote, struct cv_why *why);

#endif
