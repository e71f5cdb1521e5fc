/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session with PostgreSQL (libpq 15). Statements are queued and sent together, and one wait, with a deadline,
 * collects their results (libpq's pipeline). Parameters and results are binary. Only this module maps SQLSTATE to enum
 * cv_err:
 *
 *   CV_ERR_CLOSED   the session is lost, or did not answer in time: what it was asked for may or may not have happened
 *   CV_ERR_DENIED   a refused password, certificate or privilege; a server that only reads
 *   CV_ERR_STATE    a violated NOT NULL: the fence of a broker's commit
 *   CV_ERR_EXISTS   a duplicate key
 *   CV_ERR_IO       the server's disk
 *   CV_ERR_LIMIT    the server has sent more than such an answer has: the session is over
 *   CV_ERR_DB       all else
 *
 * Messages begin with "PostgreSQL at HOST:PORT/DATABASE". Blocks the calling thread, for as long as the deadline at
 * most; one thread at a time may use a session.
 *
 * libpq keeps whatever a server sends (meter.h). Here a server may send 256 KiB before the session is there, 16 KiB for
 * a wait and 512 bytes more for each command, and 96 MiB where rows are read; what libpq makes of it in memory is at
 * most some four times as large.
 */
#ifndef CV_PG_H
#define CV_PG_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/pg/uri.h"

struct cv_pg;

/*
 * Connects to the first host that writes. CV_ERR_INVALID if the environment has a parameter of libpq that the URI does
 * not say. `name` is told to the server as the application's. `timeout_ms` bounds this
 * call, and later every wait for results.
 */
CV_MUST_USE enum cv_err cv_pg_open(const struct cv_pg_uri *uri, const char *name, unsigned timeout_ms,
                                   struct cv_pg **ret, struct cv_why *why);
/* Ends the session, which also ends its transaction and releases its locks. NULL does nothing. */
void cv_pg_close(struct cv_pg *pg);
/* "PostgreSQL at HOST:PORT/DATABASE" */
const char *cv_pg_where(const struct cv_pg *pg);

/* ---- statements ---- */

enum { CV_PG_ARGS = 12 };

/* The parameters of a statement, $1 first. Values are borrowed until the statement is queued. */
struct cv_pg_args {
  int n;
  unsigned type[CV_PG_ARGS];
  const char *value[CV_PG_ARGS];
  int length[CV_PG_ARGS];
  uint8_t whole[CV_PG_ARGS][8]; /* room for numbers */
};
/* Of type bigint, bytea and text. */
void cv_pg_arg_int(struct cv_pg_args *args, uint64_t value);
void cv_pg_arg_bytes(struct cv_pg_args *args, const void *bytes, size_t n);
void cv_pg_arg_text(struct cv_pg_args *args, const char *text);

/* An array of bigint or bytea as a parameter, built an element at a time. */
struct cv_pg_array {
  struct cv_buf buf;
  uint32_t count;
  bool is_bytes;
};
void cv_pg_array_fini(struct cv_pg_array *array);
/* Makes it empty. */
void cv_pg_array_begin(struct cv_pg_array *array, bool is_bytes);
void cv_pg_array_int(struct cv_pg_array *array, uint64_t value);
void cv_pg_array_bytes(struct cv_pg_array *array, const void *bytes, size_t n);
/* CV_ERR_NOMEM if the array has not got the memory that it needed. */
CV_MUST_USE enum cv_err cv_pg_arg_array(struct cv_pg_args *args, struct cv_pg_array *array);

/*
 * Queues a statement, which is prepared when it is used for the first time; `sql` is a string literal, and its address
 * identifies it. `args` may be NULL. `*keep`, if `keep` is not NULL, gets the result at cv_pg_wait(): the caller clears
 * it with PQclear(), also after an error, unless it is NULL then.
 */
CV_MUST_USE enum cv_err cv_pg_queue(struct cv_pg *pg, const char *sql, const struct cv_pg_args *args, PGresult **keep,
                                    struct cv_why *why);
/*
 * Sends what is queued and waits for all results. The first error counts: the server skips all that was queued after
 * it, a COMMIT among them. A WARNING of the server is an error (CV_ERR_STATE), too.
 */
CV_MUST_USE enum cv_err cv_pg_wait(struct cv_pg *pg, struct cv_why *why);
/* Queues one statement and waits. */
CV_MUST_USE enum cv_err cv_pg_run(struct cv_pg *pg, const char *sql, const struct cv_pg_args *args, PGresult **keep,
                                  struct cv_why *why);
/* As cv_pg_run(), for many rows or large ones. */
CV_MUST_USE enum cv_err cv_pg_read(struct cv_pg *pg, const char *sql, const struct cv_pg_args *args, PGresult **keep,
                                   struct cv_why *why);
/* Runs several statements without parameters or results, as one transaction. */
CV_MUST_USE enum cv_err cv_pg_script(struct cv_pg *pg, const char *sql, struct cv_why *why);

/* ---- results: whole numbers or boolean; bytea or text. NULL is 0 and has no bytes. ---- */

uint64_t cv_pg_int(const PGresult *result, int row, int column);
const uint8_t *cv_pg_bytes(const PGresult *result, int row, int column, size_t *ret_n);
/* Copies a column of exactly `n` bytes; false if it has another length. */
bool cv_pg_copy(const PGresult *result, int row, int column, void *to, size_t n);
bool cv_pg_is_null(const PGresult *result, int row, int column);

#endif
