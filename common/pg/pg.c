/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pg/pg.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/pg/meter.h"

enum {
  STATEMENTS = 64, /* prepared in a session */
  /* What a server may send: until the session is there; for a wait, and for each command of it; and for rows. */
  CONNECT_BYTES = 256 << 10,
  ANSWER_BYTES = 16 << 10,
  COMMAND_BYTES = 512,
  ROWS_BYTES = 96 << 20,
  /* Types of PostgreSQL's catalogue. */
  OID_BYTEA = 17,
  OID_INT8 = 20,
  OID_TEXT = 25,
  OID_BYTEA_ARRAY = 1001,
  OID_INT8_ARRAY = 1016,
};

#define NO_FILE "/nonexistent/crowdveil"

/* One queued command: a statement, or that it is prepared. */
struct command {
  PGresult **keep;
};

struct cv_pg {
  PGconn *conn;
  char where[400];
  unsigned timeout_ms;
  const char *prepared[STATEMENTS];
  unsigned prepared_count;
  struct command *command;
  size_t commands, cap;
  struct cv_pg_meter meter;
  bool warned;
  struct cv_why warning;
};

const char *cv_pg_where(const struct cv_pg *pg) {
  return pg->where;
}

/* ---- errors ---- */

static enum cv_err error_of(const char *state) {
  static const struct {
    const char *prefix;
    enum cv_err err;
  } known[] = {
      {"23502", CV_ERR_STATE},  {"23505", CV_ERR_EXISTS}, {"28", CV_ERR_DENIED},     {"42501", CV_ERR_DENIED},
      {"25006", CV_ERR_DENIED}, {"53", CV_ERR_IO},        {"58", CV_ERR_IO},         {"57P", CV_ERR_CLOSED},
      {"08", CV_ERR_CLOSED},    {"25P03", CV_ERR_CLOSED}, {"XX001", CV_ERR_DAMAGED},
  };
  for (size_t i = 0; state != NULL && i < CV_COUNT(known); i++) {
    if (strncmp(state, known[i].prefix, strlen(known[i].prefix)) == 0) {
      return known[i].err;
    }
  }
  return state == NULL ? CV_ERR_CLOSED : CV_ERR_DB;
}

static enum cv_err fail_text(const struct cv_pg *pg, enum cv_err err, const char *text, struct cv_why *why) {
  return cv_fail(why, err, "%.120s: %.*s", pg->where, (int)strcspn(text, "\n"), text);
}

static enum cv_err fail_over(const struct cv_pg *pg, struct cv_why *why) {
  return cv_fail(why, CV_ERR_LIMIT, "%.120s: the server has sent more than such an answer has", pg->where);
}

static enum cv_err fail_conn(const struct cv_pg *pg, struct cv_why *why) {
  /* libpq prefixes what concerns the connection with its address, which is in `where` already. */
  const char *text = PQerrorMessage(pg->conn), *fatal = strstr(text, "FATAL:  "), *failed = strstr(text, "failed: ");
  bool is_denied = strstr(text, "authentication failed") != NULL || strstr(text, "no password supplied") != NULL ||
                   strstr(text, "read-only") != NULL || strstr(text, "channel binding") != NULL ||
                   strstr(text, "requirepeer") != NULL;
  bool is_lost = strstr(text, "SSL SYSCALL error: EOF detected") != NULL ||
                 strstr(text, "server closed the connection unexpectedly") != NULL;
  if (pg->meter.is_over) {
    return fail_over(pg, why);
  }
  return is_lost ? cv_fail(why, CV_ERR_CLOSED,
                           "%.120s: the server has ended the session without a word; its log says why", pg->where)
                 : fail_text(pg, is_denied ? CV_ERR_DENIED : CV_ERR_CLOSED,
                             fatal != NULL    ? fatal + 8
                             : failed != NULL ? failed + 8
                                              : text,
                             why);
}

static enum cv_err fail_result(const struct cv_pg *pg, const PGresult *result, struct cv_why *why) {
  const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return text == NULL ? fail_conn(pg, why) : fail_text(pg, error_of(state), text, why);
}

/* After a connection has ended: what the server said before is still to be taken. */
static enum cv_err fail_read(const struct cv_pg *pg, struct cv_why *why) {
  if (pg->meter.is_over) {
    return fail_over(pg, why);
  }
  PGresult *result = PQgetResult(pg->conn);
  enum cv_err err = fail_result(pg, result, why);
  PQclear(result);
  return err;
}

static void on_notice(void *data, const PGresult *result) {
  struct cv_pg *pg = data;
  const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity != NULL && strcmp(severity, "WARNING") == 0 && !pg->warned) {
    pg->warned = true;
    (void)fail_result(pg, result, &pg->warning);
  }
}

/* ---- reading ---- */

/* Reads what has come. False after the connection's end, or if it is more than was allowed. */
static bool consume(struct cv_pg *pg) {
  return cv_pg_meter_admits(&pg->meter, pg->conn) && PQconsumeInput(pg->conn) == 1 && !pg->meter.is_over;
}

/* Nobody listens: libpq would keep them. */
static void drop_notifications(struct cv_pg *pg) {
  for (PGnotify *one; (one = PQnotifies(pg->conn)) != NULL;) {
    PQfreemem(one);
  }
}

/* ---- connecting ---- */

/* False if the deadline passes before. */
static bool wait_for(struct pollfd *fd, uint64_t until_ms) {
  int n = 0;
  for (uint64_t now_ms; n <= 0 && (now_ms = cv_clock_mono_ms()) < until_ms;) {
    n = poll(fd, 1, (int)cv_clock_sleep_ms(until_ms - now_ms));
  }
  return n > 0;
}

/* Waits for the socket; CV_ERR_CLOSED if the deadline has passed. */
static enum cv_err await(const struct cv_pg *pg, bool writes, uint64_t until_ms, short *ret, struct cv_why *why) {
  struct pollfd fd = {.fd = PQsocket(pg->conn), .events = (short)(POLLIN | (writes ? POLLOUT : 0))};
  if (!wait_for(&fd, until_ms)) {
    return cv_fail(why, CV_ERR_CLOSED, "%.120s: no answer within %u ms", pg->where, pg->timeout_ms);
  }
  *ret = fd.revents;
  return CV_OK;
}

/* A parameter of libpq. "": left out. */
struct given {
  const char *key, *value;
};

static bool is_given(const char *const *keys, const char *key) {
  while (*keys != NULL && strcmp(*keys, key) != 0) {
    keys++;
  }
  return *keys != NULL;
}

/* libpq takes from the environment what it is not given: another address, a password for whoever asks. */
static enum cv_err check_environment(const char *const *keys, struct cv_why *why) {
  PQconninfoOption *options = PQconninfoParse("", NULL);
  enum cv_err err = options == NULL ? cv_fail(why, CV_ERR_NOMEM, "out of memory") : CV_OK;
  for (const PQconninfoOption *option = options; err == CV_OK && option->keyword != NULL; option++) {
    if (option->envvar != NULL && getenv(option->envvar) != NULL && !is_given(keys, option->keyword)) {
      err = cv_fail(why, CV_ERR_INVALID, "%s in the environment; expected the store's URI to say all", option->envvar);
    }
  }
  PQconninfoFree(options);
  return err;
}

static enum cv_err start(struct cv_pg *pg, const struct given *given, size_t n, struct cv_why *why) {
  enum { MOST = 24 };
  const char *keys[MOST + 1] = {NULL}, *values[MOST + 1] = {NULL};
  CV_REQUIRE(n <= MOST);
  for (size_t i = 0, at = 0; i < n; i++) {
    if (given[i].value[0] != '\0') {
      keys[at] = given[i].key;
      values[at++] = given[i].value;
    }
  }
  CV_TRY(check_environment(keys, why));
  pg->conn = PQconnectStartParams(keys, values, 0);
  return pg->conn == NULL ? cv_fail(why, CV_ERR_NOMEM, "out of memory") : CV_OK;
}

static enum cv_err begin_connecting(struct cv_pg *pg, const struct cv_pg_uri *uri, size_t host, const char *name,
                                    struct cv_why *why) {
  bool has_password = uri->passfile[0] != '\0';
  const struct given given[] = {
      {"host", uri->host_of[host]},
      {"port", uri->port_of[host]},
      {"user", uri->user},
      {"dbname", uri->database},
      {"sslmode", uri->sslmode},
      {"sslrootcert", uri->rootcert},
      {"sslcert", uri->cert[0] == '\0' ? NO_FILE : uri->cert}, /* not one of the user's home */
      {"sslkey", uri->key},
      {"passfile", has_password ? uri->passfile : NO_FILE}, /* nor its passwords */
      /* A password is told to nobody else than the server of this TLS connection. */
      {"channel_binding", has_password ? "require" : "prefer"},
      {"requirepeer", uri->peer},
      {"gssencmode", "disable"},
      {"application_name", name},
      {"client_encoding", "UTF8"},
      {"target_session_attrs", "read-write"},
      {"keepalives_idle", "5"},
      {"keepalives_interval", "1"},
      {"keepalives_count", "3"},
      {"tcp_user_timeout", "5000"},
  };
  return start(pg, given, CV_COUNT(given), why);
}

/* What is said before TLS, nobody vouches for: it is not read, but for the one letter that TLS begins. */
static bool begins_tls(const struct cv_pg *pg) {
  char letter = 'S';
  bool waits = PQstatus(pg->conn) == CONNECTION_SSL_STARTUP && PQsslInUse(pg->conn) == 0;
  return !waits || recv(PQsocket(pg->conn), &letter, 1, MSG_PEEK | MSG_DONTWAIT) != 1 || letter == 'S' || letter == 'N';
}

static enum cv_err go_on_connecting(struct cv_pg *pg, PostgresPollingStatusType *status, struct cv_why *why) {
  if (!begins_tls(pg)) {
    return cv_fail(why, CV_ERR_CLOSED, "%.120s: no TLS from what listens there; expected PostgreSQL with ssl on",
                   pg->where);
  }
  *status = cv_pg_meter_admits(&pg->meter, pg->conn) ? PQconnectPoll(pg->conn) : PGRES_POLLING_FAILED;
  return *status == PGRES_POLLING_FAILED ? fail_conn(pg, why) : CV_OK;
}

static enum cv_err finish_connecting(struct cv_pg *pg, struct cv_why *why) {
  uint64_t until_ms = cv_clock_mono_ms() + pg->timeout_ms;
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  if (PQstatus(pg->conn) == CONNECTION_BAD) {
    return fail_conn(pg, why);
  }
  cv_pg_meter_allow(&pg->meter, CONNECT_BYTES);
  while (status != PGRES_POLLING_OK) {
    struct pollfd fd = {.fd = PQsocket(pg->conn), .events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT};
    if (!wait_for(&fd, until_ms)) {
      return cv_fail(why, CV_ERR_CLOSED, "%.120s: no connection within %u ms", pg->where, pg->timeout_ms);
    }
    CV_TRY(go_on_connecting(pg, &status, why));
  }
  return CV_OK;
}

/* One host; a host that answers nothing must not keep the next one waiting for longer than its share of the time. */
static enum cv_err open_host(const struct cv_pg_uri *uri, size_t host, const char *name, unsigned timeout_ms,
                             struct cv_pg **ret, struct cv_why *why) {
  struct cv_pg *pg = calloc(1, sizeof(*pg));
  if (pg == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  pg->timeout_ms = timeout_ms / (unsigned)uri->addresses;
  (void)snprintf(pg->where, sizeof(pg->where), "PostgreSQL at %s/%s", uri->address[host], uri->database);
  enum cv_err err = begin_connecting(pg, uri, host, name, why);
  err = err == CV_OK ? finish_connecting(pg, why) : err;
  if (err == CV_OK && (PQsetnonblocking(pg->conn, 1) != 0 || PQenterPipelineMode(pg->conn) != 1)) {
    err = fail_conn(pg, why);
  }
  if (err != CV_OK) {
    cv_pg_close(pg);
    return err;
  }
  pg->timeout_ms = timeout_ms;
  (void)PQsetNoticeReceiver(pg->conn, on_notice, pg);
  *ret = pg;
  return CV_OK;
}

enum cv_err cv_pg_open(const struct cv_pg_uri *uri, const char *name, unsigned timeout_ms, struct cv_pg **ret,
                       struct cv_why *why) {
  struct cv_why all = {.text = ""}, one;
  enum cv_err err = CV_ERR_CLOSED;
  for (size_t i = 0; i < uri->addresses && err != CV_OK; i++) {
    size_t n = strlen(all.text);
    enum cv_err failed = open_host(uri, i, name, timeout_ms, ret, &one);
    /* That the other host only reads says less than why this one is not reached. */
    err = failed == CV_OK || i == 0 || err == CV_ERR_DENIED ? failed : err;
    (void)snprintf(all.text + n, sizeof(all.text) - n, "%s%.230s", n == 0 ? "" : "; ", one.text);
  }
  return err == CV_OK ? err : cv_fail(why, err, "%s", all.text);
}

void cv_pg_close(struct cv_pg *pg) {
  if (pg == NULL) {
    return;
  }
  PQfinish(pg->conn);
  free(pg->command);
  free(pg);
}

/* ---- parameters ---- */

static void put_big(uint8_t *to, uint64_t value, size_t n) {
  for (size_t i = 0; i < n; i++) {
    to[i] = (uint8_t)(value >> (8 * (n - 1 - i)));
  }
}

static void arg(struct cv_pg_args *args, unsigned type, const void *bytes, size_t n) {
  CV_REQUIRE(args->n < CV_PG_ARGS);
  args->type[args->n] = type;
  /* libpq takes a null pointer for NULL. */
  args->value[args->n] = n == 0 ? "" : bytes;
  args->length[args->n++] = (int)n;
}

void cv_pg_arg_int(struct cv_pg_args *args, uint64_t value) {
  CV_REQUIRE(args->n < CV_PG_ARGS);
  uint8_t *whole = args->whole[args->n];
  put_big(whole, value, sizeof(args->whole[0]));
  arg(args, OID_INT8, whole, sizeof(args->whole[0]));
}

void cv_pg_arg_bytes(struct cv_pg_args *args, const void *bytes, size_t n) {
  arg(args, OID_BYTEA, bytes, n);
}

void cv_pg_arg_text(struct cv_pg_args *args, const char *text) {
  arg(args, OID_TEXT, text, strlen(text));
}

/* An array's head: dimensions, whether it has NULLs, type, length, lower bound; then each element with its length. */
enum { ARRAY_HEAD = 20, LENGTH_AT = 12 };

void cv_pg_array_fini(struct cv_pg_array *array) {
  cv_buf_fini(&array->buf);
}

static void put_u32(struct cv_buf *buf, uint32_t value) {
  uint8_t bytes[4];
  put_big(bytes, value, sizeof(bytes));
  cv_buf_put(buf, bytes, sizeof(bytes));
}

void cv_pg_array_begin(struct cv_pg_array *array, bool is_bytes) {
  cv_buf_clear(&array->buf);
  array->count = 0;
  array->is_bytes = is_bytes;
  const uint32_t head[] = {1, 0, is_bytes ? OID_BYTEA : OID_INT8, 0, 1};
  for (size_t i = 0; i < CV_COUNT(head); i++) {
    put_u32(&array->buf, head[i]);
  }
}

void cv_pg_array_bytes(struct cv_pg_array *array, const void *bytes, size_t n) {
  put_u32(&array->buf, (uint32_t)n);
  cv_buf_put(&array->buf, bytes, n);
  array->count++;
}

void cv_pg_array_int(struct cv_pg_array *array, uint64_t value) {
  uint8_t bytes[8];
  put_big(bytes, value, sizeof(bytes));
  cv_pg_array_bytes(array, bytes, sizeof(bytes));
}

enum cv_err cv_pg_arg_array(struct cv_pg_args *args, struct cv_pg_array *array) {
  if (!cv_buf_ok(&array->buf)) {
    return CV_ERR_NOMEM;
  }
  put_big(array->buf.data + LENGTH_AT, array->count, 4);
  arg(args, array->is_bytes ? OID_BYTEA_ARRAY : OID_INT8_ARRAY, array->buf.data, array->buf.len);
  return CV_OK;
}

/* ---- statements ---- */

static enum cv_err remember(struct cv_pg *pg, PGresult **keep, struct cv_why *why) {
  if (pg->commands == pg->cap) {
    size_t cap = pg->cap == 0 ? 32 : 2 * pg->cap;
    struct command *more = reallocarray(pg->command, cap, sizeof(*more));
    if (more == NULL) {
      return cv_fail(why, CV_ERR_NOMEM, "out of memory");
    }
    pg->command = more;
    pg->cap = cap;
  }
  pg->command[pg->commands++] = (struct command){.keep = keep};
  if (keep != NULL) {
    *keep = NULL;
  }
  return CV_OK;
}

/* The statement's name; the first time it is prepared. */
static enum cv_err prepare(struct cv_pg *pg, const char *sql, const struct cv_pg_args *args, char name[16],
                           struct cv_why *why) {
  unsigned i = 0;
  while (i < pg->prepared_count && pg->prepared[i] != sql) {
    i++;
  }
  (void)snprintf(name, 16, "s%u", i);
  if (i < pg->prepared_count) {
    return CV_OK;
  }
  CV_REQUIRE(i < STATEMENTS);
  CV_TRY(remember(pg, NULL, why));
  if (PQsendPrepare(pg->conn, name, sql, args->n, args->type) != 1) {
    return fail_conn(pg, why);
  }
  pg->prepared[pg->prepared_count++] = sql;
  return CV_OK;
}

enum cv_err cv_pg_queue(struct cv_pg *pg, const char *sql, const struct cv_pg_args *args, PGresult **keep,
                        struct cv_why *why) {
  static const struct cv_pg_args none = {.n = 0};
  static const int binary[CV_PG_ARGS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  char name[16];
  args = args == NULL ? &none : args;
  CV_TRY(prepare(pg, sql, args, name, why));
  CV_TRY(remember(pg, keep, why));
  return PQsendQueryPrepared(pg->conn, name, args->n, args->value, args->length, binary, 1) == 1 ? CV_OK
                                                                                                 : fail_conn(pg, why);
}

/* Sends all that is queued; reads meanwhile, as the server stops reading when nobody reads its answers. */
static enum cv_err flush(struct cv_pg *pg, uint64_t until_ms, struct cv_why *why) {
  for (;;) {
    short ready = 0;
    int left = PQflush(pg->conn);
    if (left <= 0) {
      return left == 0 ? CV_OK : fail_conn(pg, why);
    }
    CV_TRY(await(pg, true, until_ms, &ready, why));
    if ((ready & ~POLLOUT) != 0 && !consume(pg)) {
      return fail_read(pg, why);
    }
  }
}

/* The next result; NULL ends a command. `is_good`: no result was an error. Then a text of an error means that libpq had
 * no memory for the end of the pipeline, and waits for it in vain. */
static enum cv_err next_result(struct cv_pg *pg, bool is_good, uint64_t until_ms, PGresult **ret, struct cv_why *why) {
  while (PQisBusy(pg->conn) == 1) {
    short ready = 0;
    if (is_good && PQerrorMessage(pg->conn)[0] != '\0') {
      return fail_conn(pg, why);
    }
    CV_TRY(await(pg, false, until_ms, &ready, why));
    if (!consume(pg)) {
      return fail_read(pg, why);
    }
  }
  *ret = PQgetResult(pg->conn);
  return CV_OK;
}

/* Whether a result tells of an error; of those after the first it says only that they were skipped. */
static enum cv_err judge(const struct cv_pg *pg, const PGresult *result, struct cv_why *why) {
  switch (PQresultStatus(result)) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_PIPELINE_SYNC:
    case PGRES_EMPTY_QUERY:
      return CV_OK;
    case PGRES_PIPELINE_ABORTED:
      return cv_fail(why, CV_ERR_DB, "%.120s: a statement was skipped", pg->where);
    default:
      return fail_result(pg, result, why);
  }
}

/* An error of libpq itself, for one without memory: what it has not understood of the answer does not come again. */
static bool is_of_client(const PGresult *result) {
  return PQresultStatus(result) == PGRES_FATAL_ERROR && PQresultErrorField(result, PG_DIAG_SQLSTATE) == NULL;
}

/* The first result that is an error. */
struct complaint {
  enum cv_err err;
  struct cv_why why;
};

/* Takes all results of one command. */
static enum cv_err take(struct cv_pg *pg, const struct command *command, uint64_t until_ms, struct complaint *first,
                        struct cv_why *why) {
  for (bool is_sync = false; !is_sync;) {
    PGresult *result = NULL;
    CV_TRY(next_result(pg, first->err == CV_OK, until_ms, &result, why));
    if (result == NULL) {
      return PQstatus(pg->conn) == CONNECTION_OK ? CV_OK : fail_conn(pg, why);
    }
    is_sync = PQresultStatus(result) == PGRES_PIPELINE_SYNC; /* nothing follows it */
    if (first->err == CV_OK) {
      first->err = judge(pg, result, &first->why);
    }
    if (is_of_client(result)) {
      PQclear(result);
      *why = first->why;
      return first->err;
    }
    if (command != NULL && command->keep != NULL && first->err == CV_OK) {
      PQclear(*command->keep);
      *command->keep = result;
    } else {
      PQclear(result);
    }
  }
  return CV_OK;
}

static enum cv_err collect(struct cv_pg *pg, struct complaint *first, struct cv_why *why) {
  uint64_t until_ms = cv_clock_mono_ms() + pg->timeout_ms;
  if (PQpipelineSync(pg->conn) != 1) {
    return fail_conn(pg, why);
  }
  CV_TRY(flush(pg, until_ms, why));
  for (size_t i = 0; i < pg->commands; i++) {
    CV_TRY(take(pg, &pg->command[i], until_ms, first, why));
  }
  return take(pg, NULL, until_ms, first, why);
}

/* Of a command whose results are all taken: its first error, or else its first warning. */
static enum cv_err outcome(const struct cv_pg *pg, const struct complaint *first, struct cv_why *why) {
  if (first->err != CV_OK) {
    *why = first->why;
    return first->err;
  }
  return pg->warned ? cv_fail(why, CV_ERR_STATE, "%s", pg->warning.text) : CV_OK;
}

static enum cv_err wait_within(struct cv_pg *pg, size_t bytes, struct cv_why *why) {
  struct complaint first = {.err = CV_OK};
  pg->warned = false;
  cv_pg_meter_allow(&pg->meter, bytes);
  enum cv_err err = collect(pg, &first, why);
  pg->commands = 0;
  drop_notifications(pg);
  /* Of a session that has ended, what the server said of it says more than what the connection's end looks like. */
  if (first.err != CV_ERR_CLOSED) {
    CV_TRY(err);
  }
  return outcome(pg, &first, why);
}

enum cv_err cv_pg_wait(struct cv_pg *pg, struct cv_why *why) {
  return wait_within(pg, ANSWER_BYTES + pg->commands * COMMAND_BYTES, why);
}

enum cv_err cv_pg_read(struct cv_pg *pg, const char *sql, const struct cv_pg_args *args, PGresult **keep,
                       struct cv_why *why) {
  CV_TRY(cv_pg_queue(pg, sql, args, keep, why));
  return wait_within(pg, ROWS_BYTES, why);
}

enum cv_err cv_pg_run(struct cv_pg *pg, const char *sql, const struct cv_pg_args *args, PGresult **keep,
                      struct cv_why *why) {
  CV_TRY(cv_pg_queue(pg, sql, args, keep, why));
  return cv_pg_wait(pg, why);
}

enum cv_err cv_pg_script(struct cv_pg *pg, const char *sql, struct cv_why *why) {
  /* Several statements in one text are for the simple protocol, which the pipeline has not. */
  if (PQexitPipelineMode(pg->conn) != 1 || PQsendQuery(pg->conn, sql) != 1) {
    return fail_conn(pg, why);
  }
  struct complaint first = {.err = CV_OK};
  uint64_t until_ms = cv_clock_mono_ms() + pg->timeout_ms;
  pg->warned = false;
  cv_pg_meter_allow(&pg->meter, ANSWER_BYTES);
  CV_TRY(flush(pg, until_ms, why));
  CV_TRY(take(pg, NULL, until_ms, &first, why));
  if (PQenterPipelineMode(pg->conn) != 1) {
    return fail_conn(pg, why);
  }
  return outcome(pg, &first, why);
}

/* ---- results ---- */

uint64_t cv_pg_int(const PGresult *result, int row, int column) {
  const uint8_t *bytes = (const uint8_t *)PQgetvalue(result, row, column);
  uint64_t value = 0;
  for (int i = 0; i < PQgetlength(result, row, column); i++) {
    value = value << 8 | bytes[i];
  }
  return value;
}

const uint8_t *cv_pg_bytes(const PGresult *result, int row, int column, size_t *ret_n) {
  *ret_n = (size_t)PQgetlength(result, row, column);
  return (const uint8_t *)PQgetvalue(result, row, column);
}

bool cv_pg_copy(const PGresult *result, int row, int column, void *to, size_t n) {
  size_t length;
  const uint8_t *bytes = cv_pg_bytes(result, row, column, &length);
  if (length != n) {
    return false;
  }
  memcpy(to, bytes, n);
  return true;
}

bool cv_pg_is_null(const PGresult *result, int row, int column) {
  return PQgetisnull(result, row, column) == 1;
}
