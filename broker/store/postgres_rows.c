/* SPDX-License-Identifier: Apache-2.0 */
/* Commits and reading: the backend over PostgreSQL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/both/recovery.h"
#include "broker/store/postgres_state.h"
#include "common/base/array.h"
#include "common/base/clock.h"
#include "common/base/table.h"
#include "common/base/text.h"

enum {
  GROUP_BYTES = 8 << 20, /* of a statement */
  REPLICA_MS = 5000,     /* how long a replica may take to have what is committed */
};

/* ---- codes ---- */

enum cv_err cv_postgres_code(struct cv_remote *remote, enum cv_postgres_part part, uint32_t campaign, uint64_t number,
                             const void *bytes, size_t n, uint8_t ret[CV_POSTGRES_CODE_BYTES]) {
  struct cv_buf *scratch = &remote->scratch;
  cv_buf_clear(scratch);
  cv_buf_put(scratch, remote->term.mark.database, sizeof(remote->term.mark.database));
  cv_buf_put_u32(scratch, part);
  cv_buf_put_u32(scratch, campaign);
  cv_buf_put_u64(scratch, number);
  cv_buf_put(scratch, bytes, n);
  return cv_buf_ok(scratch) ? cv_mac_tag(remote->mac, scratch->data, scratch->len, ret, CV_POSTGRES_CODE_BYTES)
                            : CV_ERR_NOMEM;
}

enum cv_err cv_postgres_mark_code(struct cv_remote *remote, const struct cv_anchor_mark *mark,
                                  uint8_t ret[CV_POSTGRES_CODE_BYTES]) {
  uint8_t bytes[CV_DIGEST_BYTES + 5 * sizeof(uint64_t)];
  struct cv_buf out = {.data = bytes, .cap = sizeof(bytes)};
  cv_buf_put(&out, mark->hash.bytes, sizeof(mark->hash.bytes));
  cv_buf_put_u64(&out, mark->term);
  cv_buf_put_u64(&out, mark->totals.campaigns);
  cv_buf_put_u64(&out, mark->totals.releases);
  cv_buf_put_u64(&out, mark->totals.tokens);
  cv_buf_put_u64(&out, mark->totals.promised_micro);
  return cv_postgres_code(remote, CV_POSTGRES_META, 0, mark->commit, bytes, out.len, ret);
}

/* ---- the fence ---- */

/*
 * The first statement of every transaction. A WHERE would affect no row and let the rest commit; a violated NOT NULL
 * ends the transaction. The row is read again, as it is by then, if another transaction has it locked.
 */
static const char fence[] =
    "UPDATE crowdveil.meta SET"
    " last_commit = CASE WHEN term = $1 AND last_commit = $2 AND (disputed IS NULL OR $10 = 1) THEN $3 END,"
    " prior_hash = CASE WHEN last_commit = $3 THEN prior_hash ELSE last_hash END,"
    " last_hash = $4, campaigns = $5, releases = $6, tokens = $7, promised_micro = $8, code = $9";

static enum cv_err queue_fence(struct cv_remote *remote, struct cv_why *why) {
  const struct cv_anchor_mark *mark = &remote->next;
  uint8_t code[CV_POSTGRES_CODE_BYTES];
  struct cv_pg_args args = {.n = 0};
  enum cv_err err = cv_postgres_mark_code(remote, mark, code);
  if (err != CV_OK) {
    return cv_fail(why, err, "the broker's database: %s", cv_err_text(err));
  }
  cv_pg_arg_int(&args, mark->term);
  cv_pg_arg_int(&args, remote->term.mark.commit);
  cv_pg_arg_int(&args, mark->commit);
  cv_pg_arg_bytes(&args, mark->hash.bytes, sizeof(mark->hash.bytes));
  cv_pg_arg_int(&args, mark->totals.campaigns);
  cv_pg_arg_int(&args, mark->totals.releases);
  cv_pg_arg_int(&args, mark->totals.tokens);
  cv_pg_arg_int(&args, mark->totals.promised_micro);
  cv_pg_arg_bytes(&args, code, sizeof(code));
  cv_pg_arg_int(&args, remote->term.recovers);
  return cv_pg_queue(remote->pg, fence, &args, &remote->fence, why);
}

static void forget_results(struct cv_remote *remote) {
  PQclear(remote->fence);
  PQclear(remote->replica);
  remote->fence = remote->replica = NULL;
}

static enum cv_err begin(void *data, const struct cv_anchor_mark *mark, struct cv_why *why) {
  struct cv_remote *remote = data;
  CV_REQUIRE(!remote->in_commit);
  remote->in_commit = true;
  remote->next = *mark;
  forget_results(remote);
  CV_TRY(cv_pg_queue(remote->pg, "BEGIN ISOLATION LEVEL READ COMMITTED", NULL, NULL, why));
  return queue_fence(remote, why);
}

/* ---- rows ---- */

/* A statement for rows of one kind. $1: campaigns, $2: numbers, $3: values, $4: codes or kinds of chunks; $5: the
 * commit, $6: the term. */
struct writer {
  const char *sql;
  enum cv_postgres_part part; /* 0: without a code */
  bool is_numbered;           /* the row is known by the operation's number, too */
};

static const struct writer writers[] = {
    [CV_OP_CAMPAIGN] = {"INSERT INTO crowdveil.campaign (id, image, code)"
                        " SELECT c, v, x FROM unnest($1::bigint[], $3::bytea[], $4::bytea[]) AS u (c, v, x)",
                        CV_POSTGRES_CAMPAIGN},
    [CV_OP_STATE] = {"UPDATE crowdveil.campaign SET state = v, state_code = x"
                     " FROM unnest($1::bigint[], $3::bytea[], $4::bytea[]) AS u (c, v, x) WHERE id = c",
                     CV_POSTGRES_STATE},
    [CV_OP_PLAN] = {"INSERT INTO crowdveil.plan"
                    " SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[])",
                    CV_POSTGRES_PLAN, true},
    [CV_OP_RELEASE] = {"INSERT INTO crowdveil.release"
                       " SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[])",
                       CV_POSTGRES_RELEASE, true},
    [CV_OP_LEDGER] = {"INSERT INTO crowdveil.ledger"
                      " SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[])"
                      " ON CONFLICT (campaign, arm) DO UPDATE SET image = excluded.image, code = excluded.code",
                      CV_POSTGRES_LEDGER, true},
    [CV_OP_RECOVERY] = {"INSERT INTO crowdveil.recovery"
                        " SELECT * FROM unnest($2::bigint[], $3::bytea[], $4::bytea[])",
                        CV_POSTGRES_RECOVERY, true},
    [CV_OP_STANDINGS] = {"UPDATE crowdveil.campaign SET standings = v, standings_code = x"
                         " FROM unnest($1::bigint[], $3::bytea[], $4::bytea[]) AS u (c, v, x) WHERE id = c",
                         CV_POSTGRES_STANDINGS},
    [CV_OP_JOURNAL] = {"INSERT INTO crowdveil.journal (made, campaign, term, sealed)"
                       " SELECT $5, c, $6, v FROM unnest($1::bigint[], $3::bytea[]) AS u (c, v)",
                       0},
    [CV_OP_CHUNK] = {"INSERT INTO crowdveil.chunk (campaign, kind, number, made, term, sealed)"
                     " SELECT c, x, n, $5, $6, v"
                     " FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[]) AS u (c, n, v, x)"
                     " ON CONFLICT (campaign, kind, number) DO UPDATE"
                     " SET made = excluded.made, term = excluded.term, sealed = excluded.sealed",
                     0},
    [CV_OP_UNCHUNK] =
        {"DELETE FROM crowdveil.chunk USING unnest($1::bigint[], $2::bigint[], $4::bigint[]) AS u (c, n, x)"
         " WHERE campaign = c AND number = n AND kind = x",
         0},
    [CV_OP_TRIM] = {"DELETE FROM crowdveil.journal WHERE made < ANY ($2::bigint[])", 0},
    [CV_OP_ENDED] = {"INSERT INTO crowdveil.ended"
                     " SELECT * FROM unnest($1::bigint[], $3::bytea[], $4::bytea[])"
                     " ON CONFLICT (campaign) DO UPDATE SET image = excluded.image, code = excluded.code",
                     CV_POSTGRES_ENDED},
    [CV_OP_FORGET] = {"DELETE FROM crowdveil.ended WHERE campaign = ANY ($1::bigint[])", 0},
};

/* Queues the statement of the gathered rows. */
static enum cv_err close_group(struct cv_remote *remote, struct cv_why *why) {
  struct cv_postgres_group *group = &remote->group;
  struct cv_pg_args args = {.n = 0};
  if (group->rows == 0) {
    return CV_OK;
  }
  group->rows = 0;
  if (cv_pg_arg_array(&args, &group->campaign) != CV_OK || cv_pg_arg_array(&args, &group->number) != CV_OK ||
      cv_pg_arg_array(&args, &group->value) != CV_OK || cv_pg_arg_array(&args, &group->extra) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  cv_pg_arg_int(&args, remote->next.commit);
  cv_pg_arg_int(&args, remote->next.term);
  return cv_pg_queue(remote->pg, writers[group->kind].sql, &args, NULL, why);
}

static void open_group(struct cv_postgres_group *group, enum cv_op_kind kind) {
  group->kind = kind;
  group->bytes = 0;
  cv_pg_array_begin(&group->campaign, false);
  cv_pg_array_begin(&group->number, false);
  cv_pg_array_begin(&group->value, true);
  cv_pg_array_begin(&group->extra, writers[kind].part != 0);
}

/* The history is settled by the transaction that stores what it has cost. */
static enum cv_err settle(struct cv_remote *remote, struct cv_why *why) {
  CV_TRY(close_group(remote, why));
  return cv_pg_queue(remote->pg, "UPDATE crowdveil.meta SET disputed = NULL", NULL, NULL, why);
}

static enum cv_err write(void *data, const struct cv_op *op, const uint8_t *bytes, size_t n, struct cv_why *why) {
  struct cv_remote *remote = data;
  struct cv_postgres_group *group = &remote->group;
  const struct writer *writer = &writers[op->kind];
  CV_REQUIRE(op->kind < CV_COUNT(writers) && writer->sql != NULL);
  if (group->rows > 0 && (group->kind != op->kind || group->bytes > GROUP_BYTES)) {
    CV_TRY(close_group(remote, why));
  }
  if (group->rows == 0) {
    open_group(group, op->kind);
  }
  cv_pg_array_int(&group->campaign, op->campaign);
  cv_pg_array_int(&group->number, op->number);
  cv_pg_array_bytes(&group->value, bytes, n);
  if (writer->part == 0) {
    cv_pg_array_int(&group->extra, op->chunk);
  } else {
    uint8_t code[CV_POSTGRES_CODE_BYTES];
    uint64_t number = writer->is_numbered ? op->number : 0;
    enum cv_err err = cv_postgres_code(remote, writer->part, op->campaign, number, bytes, n, code);
    if (err != CV_OK) {
      return cv_fail(why, err, "the broker's database: %s", cv_err_text(err));
    }
    cv_pg_array_bytes(&group->extra, code, sizeof(code));
  }
  group->rows++;
  group->bytes += n;
  return op->kind == CV_OP_RECOVERY ? settle(remote, why) : CV_OK;
}

static enum cv_err delete_rows(struct cv_remote *remote, const char *sql, uint32_t campaign, struct cv_why *why) {
  struct cv_pg_args args = {.n = 0};
  CV_TRY(close_group(remote, why));
  cv_pg_arg_int(&args, campaign);
  return cv_pg_queue(remote->pg, sql, &args, NULL, why);
}

static enum cv_err delete_upto(struct cv_remote *remote, const char *sql, uint32_t campaign, uint64_t number,
                               struct cv_why *why) {
  struct cv_pg_args args = {.n = 0};
  CV_TRY(close_group(remote, why));
  cv_pg_arg_int(&args, campaign);
  cv_pg_arg_int(&args, number);
  return cv_pg_queue(remote->pg, sql, &args, NULL, why);
}

static enum cv_err purge(void *data, uint32_t campaign, struct cv_why *why) {
  CV_TRY(delete_rows(data, "DELETE FROM crowdveil.journal WHERE campaign = $1", campaign, why));
  return delete_rows(data, "DELETE FROM crowdveil.chunk WHERE campaign = $1", campaign, why);
}

static enum cv_err drop(void *data, uint32_t campaign, uint64_t upto, struct cv_why *why) {
  CV_TRY(delete_upto(data, "DELETE FROM crowdveil.plan WHERE campaign = $1 AND number <= $2", campaign, upto, why));
  CV_TRY(delete_upto(data, "DELETE FROM crowdveil.release WHERE campaign = $1 AND number <= $2", campaign, upto, why));
  if (upto != CV_DROP_ALL) {
    return CV_OK;
  }
  CV_TRY(delete_rows(data, "DELETE FROM crowdveil.ledger WHERE campaign = $1", campaign, why));
  return delete_rows(data, "DELETE FROM crowdveil.campaign WHERE id = $1", campaign, why);
}

/* ---- durable ---- */

/* After the commit: how far the server's own log is on disk, how far that of a synchronous replica, and what kind of
 * replica that is. Positions are bytes since the log's beginning. */
static const char replicas[] =
    "SELECT (here.lsn - '0/0'::pg_lsn)::bigint, (r.flush_lsn - '0/0'::pg_lsn)::bigint, r.sync_state,"
    " current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on'"
    " FROM (SELECT pg_current_wal_flush_lsn() AS lsn) here LEFT JOIN LATERAL"
    " (SELECT flush_lsn, sync_state FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
    "  ORDER BY flush_lsn DESC NULLS LAST LIMIT 1) r ON true";

static void see_replica(struct cv_remote *remote, const PGresult *result) {
  size_t n;
  const char *state = (const char *)cv_pg_bytes(result, 0, 2, &n);
  (void)snprintf(remote->view.replica, sizeof(remote->view.replica), "%.*s", n == 0 ? 4 : (int)n,
                 n == 0 ? "none" : state);
}

/* Waits until a synchronous replica has the log up to where the server's was after the commit. A server whose list of
 * synchronous replicas was emptied commits without one, and says nothing. */
static enum cv_err await_replica(struct cv_remote *remote, struct cv_why *why) {
  uint64_t until_ms = cv_clock_mono_ms() + REPLICA_MS, commit = cv_pg_int(remote->replica, 0, 0);
  for (;;) {
    see_replica(remote, remote->replica);
    bool is_safe = cv_pg_int(remote->replica, 0, 3) != 0;
    if (!is_safe) {
      return cv_fail(why, CV_ERR_STATE, "%s: fsync or full_page_writes is off; expected both on",
                     cv_pg_where(remote->pg));
    }
    if (!remote->replicated || (!cv_pg_is_null(remote->replica, 0, 1) && cv_pg_int(remote->replica, 0, 1) >= commit)) {
      return CV_OK;
    }
    if (cv_pg_is_null(remote->replica, 0, 1) || cv_clock_mono_ms() >= until_ms) {
      return cv_fail(why, CV_ERR_STATE, "%s: no synchronous replica has commit %llu; expected one (store_durability)",
                     cv_pg_where(remote->pg), (unsigned long long)remote->next.commit);
    }
    forget_results(remote);
    CV_TRY(cv_pg_run(remote->pg, replicas, NULL, &remote->replica, why));
  }
}

static enum cv_err finish(struct cv_remote *remote, struct cv_why *why) {
  enum cv_err err = cv_pg_wait(remote->pg, why);
  if (err == CV_ERR_STATE && remote->fence == NULL) {
    return cv_fail(why, err, "%s: term %llu is over: another broker has the database, or its history is disputed",
                   cv_pg_where(remote->pg), (unsigned long long)remote->next.term);
  }
  CV_TRY(err);
  if (strcmp(PQcmdTuples(remote->fence), "1") != 0) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s: no row in crowdveil.meta; expected one", cv_pg_where(remote->pg));
  }
  return await_replica(remote, why);
}

static enum cv_err commit(void *data, struct cv_why *why) {
  struct cv_remote *remote = data;
  CV_TRY(close_group(remote, why));
  CV_TRY(cv_pg_queue(remote->pg, "COMMIT", NULL, NULL, why));
  CV_TRY(cv_pg_queue(remote->pg, replicas, NULL, &remote->replica, why));
  enum cv_err err = finish(remote, why);
  forget_results(remote);
  CV_TRY(err);
  if (remote->next.commit != remote->term.mark.commit) {
    remote->term.prior = remote->term.mark.hash;
  }
  remote->term.mark = remote->next;
  remote->in_commit = false;
  return CV_OK;
}

/* The term is over: nothing else may be asked of the session. */
static void rollback(void *data) {
  struct cv_remote *remote = data;
  forget_results(remote);
  remote->group.rows = 0;
  remote->in_commit = false;
}

enum cv_err cv_postgres_touch(struct cv_remote *remote, struct cv_why *why) {
  struct cv_anchor_mark mark = remote->term.mark;
  enum cv_err err = begin(remote, &mark, why);
  err = err == CV_OK ? commit(remote, why) : err;
  if (err != CV_OK) {
    rollback(remote);
  }
  return err;
}

/* ---- reading ---- */

enum { COLUMNS = 7 }; /* campaign, kind, number, commit, term, value, code */

/* A query as a cursor, and how many rows of it are read at a time. */
struct reader {
  const char *declare, *fetch;
  enum cv_postgres_part part;
};

#define CURSOR   "DECLARE rows NO SCROLL CURSOR FOR SELECT "
#define FEW      "FETCH 4 FROM rows" /* 18 MB each at most */
#define MANY     "FETCH 1000 FROM rows"
#define NOTHING  "0::bigint, 0::bigint, 0::bigint, 0::bigint"
#define NUMBERED "0::bigint, number, 0::bigint, 0::bigint"

static const struct reader readers[] = {
    [CV_BACKEND_CAMPAIGN] = {CURSOR "id, " NOTHING ", image, code FROM crowdveil.campaign WHERE id = $1", FEW,
                             CV_POSTGRES_CAMPAIGN},
    [CV_BACKEND_PLAN] = {CURSOR "campaign, " NUMBERED
                                ", image, code FROM crowdveil.plan WHERE campaign = $1 ORDER BY number",
                         FEW, CV_POSTGRES_PLAN},
    [CV_BACKEND_RELEASE] = {CURSOR "campaign, " NUMBERED
                                   ", image, code FROM crowdveil.release WHERE campaign = $1 ORDER BY number",
                            MANY, CV_POSTGRES_RELEASE},
    [CV_BACKEND_LEDGER] = {CURSOR "campaign, 0::bigint, arm, 0::bigint, 0::bigint, image, code"
                                  " FROM crowdveil.ledger WHERE campaign = $1 ORDER BY arm",
                           MANY, CV_POSTGRES_LEDGER},
    [CV_BACKEND_STANDINGS] = {CURSOR "id, " NOTHING ", standings, standings_code FROM crowdveil.campaign"
                                     " WHERE id = $1 AND standings IS NOT NULL",
                              FEW, CV_POSTGRES_STANDINGS},
    [CV_BACKEND_STATE] = {CURSOR "id, " NOTHING ", state, state_code FROM crowdveil.campaign"
                                 " WHERE id = $1 AND state IS NOT NULL",
                          FEW, CV_POSTGRES_STATE},
    [CV_BACKEND_ENDED] = {CURSOR "campaign, " NOTHING ", image, code FROM crowdveil.ended"
                                 " WHERE $1::bigint IS NOT NULL ORDER BY campaign",
                          MANY, CV_POSTGRES_ENDED},
    [CV_BACKEND_RECOVERY] = {CURSOR "number, " NUMBERED ", image, code FROM crowdveil.recovery"
                                    " WHERE $1::bigint IS NOT NULL ORDER BY number",
                             MANY, CV_POSTGRES_RECOVERY},
    /* By term, so that the vault derives each key once. */
    [CV_BACKEND_CHUNK] = {CURSOR "campaign, kind, number, made, term, sealed, ''::bytea FROM crowdveil.chunk"
                                 " WHERE $1::bigint IS NOT NULL ORDER BY term",
                          MANY, 0},
    [CV_BACKEND_JOURNAL] = {CURSOR "campaign, 0::bigint, 0::bigint, made, term, sealed, ''::bytea"
                                   " FROM crowdveil.journal WHERE $1::bigint IS NOT NULL ORDER BY made, campaign",
                            FEW, 0},
};

/* Checks a row's code, or makes the vault ready for its term. */
static enum cv_err check_row(struct cv_remote *remote, const struct reader *reader, const PGresult *result, int i,
                             const struct cv_backend_row *row, struct cv_why *why) {
  if (reader->part == 0) {
    const struct cv_lineage_term *term = cv_lineage_find(&remote->term.lineage, cv_pg_int(result, i, 4));
    if (term == NULL) {
      return cv_fail(why, CV_ERR_DAMAGED, "the broker's database: a row of campaign %u is of an unknown term",
                     row->campaign);
    }
    cv_vault_set_term(remote->term.vault, term->id);
    return CV_OK;
  }
  uint8_t code[CV_POSTGRES_CODE_BYTES], stored[CV_POSTGRES_CODE_BYTES];
  uint32_t campaign = reader->part == CV_POSTGRES_RECOVERY ? 0 : row->campaign;
  enum cv_err err = cv_postgres_code(remote, reader->part, campaign, row->number, row->bytes, row->n, code);
  if (err != CV_OK) {
    return cv_fail(why, err, "%s", cv_err_text(err));
  }
  return cv_pg_copy(result, i, 6, stored, sizeof(stored)) && memcmp(stored, code, sizeof(code)) == 0
             ? CV_OK
             : cv_fail(why, CV_ERR_DAMAGED,
                       "the broker's database: a row of campaign %u, number %llu, is not as it was stored",
                       row->campaign, (unsigned long long)row->number);
}

static enum cv_err take_rows(struct cv_remote *remote, const struct reader *reader, const PGresult *result,
                             cv_backend_row_fn *take, void *taker, struct cv_why *why) {
  for (int i = 0; i < PQntuples(result); i++) {
    struct cv_backend_row row = {.campaign = (uint32_t)cv_pg_int(result, i, 0),
                                 .chunk = (uint32_t)cv_pg_int(result, i, 1),
                                 .number = cv_pg_int(result, i, 2),
                                 .commit = cv_pg_int(result, i, 3)};
    row.bytes = cv_pg_bytes(result, i, 5, &row.n);
    CV_TRY(check_row(remote, reader, result, i, &row, why));
    CV_TRY(take(taker, &row, why));
  }
  return CV_OK;
}

static enum cv_err read_all(struct cv_remote *remote, const struct reader *reader, uint32_t campaign,
                            cv_backend_row_fn *take, void *taker, struct cv_why *why) {
  struct cv_pg_args args = {.n = 0};
  cv_pg_arg_int(&args, campaign);
  CV_TRY(cv_pg_queue(remote->pg, "BEGIN READ ONLY", NULL, NULL, why));
  CV_TRY(cv_pg_queue(remote->pg, reader->declare, &args, NULL, why));
  for (bool more = true; more;) {
    PGresult *result = NULL;
    enum cv_err err = cv_pg_read(remote->pg, reader->fetch, NULL, &result, why);
    more = err == CV_OK && PQntuples(result) > 0;
    err = err == CV_OK ? take_rows(remote, reader, result, take, taker, why) : err;
    PQclear(result);
    CV_TRY(err);
  }
  return CV_OK;
}

static enum cv_err each(void *data, enum cv_backend_query query, uint32_t campaign, cv_backend_row_fn *take,
                        void *taker, struct cv_why *why) {
  struct cv_remote *remote = data;
  struct cv_why ignored;
  enum cv_err err = read_all(remote, &readers[query], campaign, take, taker, why);
  /* The reader's own error does not end the session, which goes on after the transaction. */
  enum cv_err ended = cv_pg_run(remote->pg, "COMMIT", NULL, NULL, err == CV_OK ? why : &ignored);
  /* What is written belongs to the present term. */
  cv_vault_set_term(remote->term.vault, remote->term.mark.term_id);
  return err == CV_OK ? ended : err;
}

static enum cv_err next_open(void *data, uint32_t after, uint32_t *ret, struct cv_why *why) {
  struct cv_remote *remote = data;
  struct cv_pg_args args = {.n = 0};
  PGresult *result = NULL;
  cv_pg_arg_int(&args, after);
  enum cv_err err = cv_pg_run(remote->pg,
                              "SELECT id FROM crowdveil.campaign WHERE id > $1 AND NOT EXISTS"
                              " (SELECT FROM crowdveil.ended WHERE campaign = id) ORDER BY id LIMIT 1",
                              &args, &result, why);
  uint64_t found = err == CV_OK && PQntuples(result) > 0 ? cv_pg_int(result, 0, 0) : 0;
  PQclear(result);
  if (found > UINT32_MAX) {
    return cv_fail(why, CV_ERR_DAMAGED, "the broker's database: campaign %llu; expected below 2^32",
                   (unsigned long long)found);
  }
  *ret = (uint32_t)found;
  return err;
}

/* Every row's code is checked whenever it is read. */
static enum cv_err check(void *data, uint32_t campaign, struct cv_why *why) {
  return CV_OK;
}

/* Triggers and rules run with our writes. */
static const char find_strangers[] =
    "SELECT left(what, 300)::text FROM ("
    "SELECT 'table ' || relname AS what FROM pg_catalog.pg_class"
    "  WHERE relnamespace = 'crowdveil'::regnamespace AND relkind NOT IN ('i', 'I', 't') AND relname NOT IN"
    "  ('version', 'meta', 'term', 'campaign', 'plan', 'release', 'ledger', 'recovery', 'ended', 'journal', 'chunk',"
    "  'wrapped_key')"
    " UNION ALL SELECT 'index ' || c.relname || ' on ' || r.relname FROM pg_catalog.pg_index i"
    "  JOIN pg_catalog.pg_class c ON c.oid = indexrelid JOIN pg_catalog.pg_class r ON r.oid = indrelid"
    "  WHERE c.relnamespace = 'crowdveil'::regnamespace"
    "  AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conindid = c.oid)"
    " UNION ALL SELECT 'trigger ' || tgname || ' on ' || relname FROM pg_catalog.pg_trigger"
    "  JOIN pg_catalog.pg_class c ON c.oid = tgrelid"
    "  WHERE NOT tgisinternal AND relnamespace = 'crowdveil'::regnamespace"
    " UNION ALL SELECT 'rule ' || rulename || ' on ' || relname FROM pg_catalog.pg_rewrite"
    "  JOIN pg_catalog.pg_class c ON c.oid = ev_class"
    "  WHERE rulename <> '_RETURN' AND relnamespace = 'crowdveil'::regnamespace"
    " UNION ALL SELECT 'policy ' || polname || ' on ' || relname FROM pg_catalog.pg_policy"
    "  JOIN pg_catalog.pg_class c ON c.oid = polrelid WHERE relnamespace = 'crowdveil'::regnamespace"
    " UNION ALL SELECT 'function ' || proname FROM pg_catalog.pg_proc"
    "  WHERE pronamespace = 'crowdveil'::regnamespace) f (what) ORDER BY 1 LIMIT 20";

static enum cv_err strangers(void *data, void (*told)(void *teller, const char *what), void *teller,
                             struct cv_why *why) {
  struct cv_remote *remote = data;
  PGresult *result = NULL;
  enum cv_err err = cv_pg_run(remote->pg, find_strangers, NULL, &result, why);
  for (int i = 0; err == CV_OK && i < PQntuples(result); i++) {
    char what[400];
    (void)snprintf(what, sizeof(what), "%s", PQgetvalue(result, i, 0));
    cv_text_clean(what, strlen(what));
    told(teller, what);
  }
  PQclear(result);
  return err;
}

/* The remote closes its session. */
static void close_backend(void *data) {
}

struct cv_backend cv_postgres_backend(struct cv_remote *remote) {
  static const struct cv_backend_ops ops = {.begin = begin,
                                            .write = write,
                                            .purge = purge,
                                            .drop = drop,
                                            .commit = commit,
                                            .rollback = rollback,
                                            .each = each,
                                            .next_open = next_open,
                                            .check = check,
                                            .strangers = strangers,
                                            .close = close_backend};
  return (struct cv_backend){.ops = &ops, .data = remote};
}

/* ---- recoveries ---- */

static enum cv_err keep_taken(void *taker, const struct cv_backend_row *row, struct cv_why *why) {
  struct cv_term *term = &((struct cv_remote *)taker)->term;
  struct cv_reader image = cv_reader_over(row->bytes, row->n);
  struct cv_recovery recovery;
  enum cv_err err = cv_recovery_read(&image, &recovery);
  for (size_t i = 0; err == CV_OK && i < recovery.takens; i++) {
    struct cv_anchor_place *to = CV_ARRAY_PUSH(term->taken, term->takens, term->takens_cap);
    err = to == NULL ? CV_ERR_NOMEM : CV_OK;
    if (to != NULL) {
      *to = recovery.taken[i];
    }
  }
  return err == CV_OK ? err
                      : cv_fail(why, err, "%s: a row in crowdveil.recovery: %s",
                                cv_pg_where(((struct cv_remote *)taker)->pg), cv_err_text(err));
}

enum cv_err cv_postgres_taken_load(struct cv_remote *remote, struct cv_why *why) {
  remote->term.takens = 0;
  return each(remote, CV_BACKEND_RECOVERY, 0, keep_taken, remote, why);
}

/* ---- wrapped keys ---- */

static void key_free(struct cv_postgres_key *key) {
  free(key);
}

void cv_postgres_keys_forget(struct cv_remote *remote) {
  CV_TABLE_DRAIN(remote->keys, key_free);
}

static struct cv_postgres_key *find(const struct cv_remote *remote, uint32_t campaign, uint32_t use) {
  struct cv_postgres_key probe = {.at = {campaign, use}}, *key;
  HASH_FIND(hh, remote->keys, &probe.at, sizeof(probe.at), key);
  return key;
}

static enum cv_err keep(struct cv_remote *remote, const struct cv_vault_row *row, struct cv_why *why) {
  struct cv_postgres_key *key = find(remote, row->campaign, row->use);
  if (key == NULL) {
    key = calloc(1, sizeof(*key));
    if (key == NULL) {
      return cv_fail(why, CV_ERR_NOMEM, "out of memory");
    }
    key->at.campaign = row->campaign;
    key->at.use = row->use;
    if (CV_TABLE_ADD(remote->keys, at, key) != CV_OK) {
      free(key);
      return cv_fail(why, CV_ERR_NOMEM, "out of memory");
    }
  }
  key->row = *row;
  return CV_OK;
}

static enum cv_err put_key(void *data, const struct cv_vault_row *row, struct cv_why *why) {
  struct cv_remote *remote = data;
  struct cv_pg_args args = {.n = 0};
  CV_TRY(close_group(remote, why));
  cv_pg_arg_int(&args, row->campaign);
  cv_pg_arg_int(&args, row->use);
  cv_pg_arg_bytes(&args, row->master.bytes, sizeof(row->master.bytes));
  cv_pg_arg_bytes(&args, row->wrapped, sizeof(row->wrapped));
  CV_TRY(cv_pg_queue(remote->pg,
                     "INSERT INTO crowdveil.wrapped_key VALUES ($1, $2, $3, $4) ON CONFLICT (campaign, use) DO UPDATE"
                     " SET master = excluded.master, wrapped = excluded.wrapped",
                     &args, NULL, why));
  return keep(remote, row, why);
}

static enum cv_err drop_keys(void *data, uint32_t campaign, struct cv_why *why) {
  struct cv_remote *remote = data;
  struct cv_postgres_key *key = find(remote, campaign, CV_VAULT_SEAL);
  if (key != NULL) {
    HASH_DEL(remote->keys, key);
    free(key);
  }
  return delete_rows(remote, "DELETE FROM crowdveil.wrapped_key WHERE campaign = $1", campaign, why);
}

static enum cv_err get_key(void *data, uint32_t campaign, uint32_t use, struct cv_vault_row *ret, bool *ret_found,
                           struct cv_why *why) {
  const struct cv_postgres_key *key = find(data, campaign, use);
  *ret_found = key != NULL;
  if (key != NULL) {
    *ret = key->row;
  }
  return CV_OK;
}

static bool is_other(const struct cv_postgres_key *key, const struct cv_key_id *master) {
  return memcmp(key->row.master.bytes, master->bytes, sizeof(master->bytes)) != 0;
}

static enum cv_err other_key(void *data, const struct cv_key_id *master, struct cv_vault_row *ret, bool *ret_found,
                             struct cv_why *why) {
  const struct cv_remote *remote = data;
  *ret_found = false;
  for (const struct cv_postgres_key *key = remote->keys; key != NULL && !*ret_found; key = key->hh.next) {
    if (is_other(key, master)) {
      *ret_found = true;
      *ret = key->row;
    }
  }
  return CV_OK;
}

static enum cv_err masters(void *data, enum cv_err (*take)(void *, const struct cv_key_id *, struct cv_why *),
                           void *taker, struct cv_why *why) {
  const struct cv_remote *remote = data;
  for (const struct cv_postgres_key *key = remote->keys; key != NULL; key = key->hh.next) {
    CV_TRY(take(taker, key->row.is_whole ? &key->row.master : NULL, why));
  }
  return CV_OK;
}

static enum cv_err count_keys(void *data, const struct cv_key_id *master, struct cv_vault_count *ret,
                              struct cv_why *why) {
  const struct cv_remote *remote = data;
  *ret = (struct cv_vault_count){.keys = 0};
  for (const struct cv_postgres_key *key = remote->keys; key != NULL; key = key->hh.next) {
    ret->keys++;
    ret->current += !is_other(key, master);
  }
  return CV_OK;
}

static enum cv_err begin_keys(void *data, struct cv_why *why) {
  struct cv_remote *remote = data;
  struct cv_anchor_mark mark = remote->term.mark;
  return begin(remote, &mark, why);
}

/* Old rows stay in the server's log and in its copies until these are gone: the old master key is to be destroyed. */
static enum cv_err scrub(void *data, struct cv_why *why) {
  return CV_OK;
}

static const char *name(void *data) {
  const struct cv_remote *remote = data;
  return cv_pg_where(remote->pg);
}

struct cv_vault_rows cv_postgres_keys(struct cv_remote *remote) {
  static const struct cv_vault_rows_ops ops = {.put = put_key,
                                               .drop = drop_keys,
                                               .get = get_key,
                                               .other = other_key,
                                               .masters = masters,
                                               .count = count_keys,
                                               .begin = begin_keys,
                                               .commit = commit,
                                               .rollback = rollback,
                                               .scrub = scrub,
                                               .name = name};
  return (struct cv_vault_rows){.ops = &ops, .data = remote};
}

enum cv_err cv_postgres_keys_load(struct cv_remote *remote, struct cv_why *why) {
  PGresult *result = NULL;
  cv_postgres_keys_forget(remote);
  enum cv_err err =
      cv_pg_read(remote->pg, "SELECT campaign, use, master, wrapped FROM crowdveil.wrapped_key", NULL, &result, why);
  for (int i = 0; err == CV_OK && i < PQntuples(result); i++) {
    struct cv_vault_row row = {.campaign = (uint32_t)cv_pg_int(result, i, 0), .use = (uint32_t)cv_pg_int(result, i, 1)};
    row.is_whole = cv_pg_copy(result, i, 2, row.master.bytes, sizeof(row.master.bytes)) &&
                   cv_pg_copy(result, i, 3, row.wrapped, sizeof(row.wrapped));
    err = keep(remote, &row, why);
  }
  PQclear(result);
  return err;
}
