/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL server that tests may use: CROWDVEIL_POSTGRES is the URI of its administrator's database. A program of
 * tests makes a database of its own there. Include after cmocka.h and machine.h. */
#ifndef CV_TESTS_SERVER_H
#define CV_TESTS_SERVER_H

#include <stdlib.h>
#include <unistd.h>

#include "broker/store/postgres.h"
#include "broker/store/postgres_schema.h"
#include "common/pg/pg.h"

/* The administrator's URI, with this program's database in place of "/postgres?". */
static inline const char *server_owner(void) {
  static char uri[800];
  const char *given = getenv("CROWDVEIL_POSTGRES"), *at = strstr(given, "/postgres?");
  assert_non_null(at);
  (void)snprintf(uri, sizeof(uri), "%.*s/test_%d%s", (int)(at - given), given, (int)getpid(), at + strlen("/postgres"));
  return uri;
}

static inline bool lacks_server(void) {
  return getenv("CROWDVEIL_POSTGRES") == NULL && is_skipped("no PostgreSQL server", "CROWDVEIL_POSTGRES is not set");
}

static inline struct cv_pg *server_open_at(const char *text) {
  struct cv_why why;
  struct cv_pg_uri uri;
  struct cv_pg *pg;
  if (cv_pg_uri_parse(text, &uri, &why) != CV_OK || cv_pg_open(&uri, "crowdveil test", 10000, &pg, &why) != CV_OK) {
    fail_msg("%s", why.text);
    abort();
  }
  return pg;
}

static inline void server_run_at(const char *uri, const char *sql) {
  struct cv_why why;
  struct cv_pg *pg = server_open_at(uri);
  if (cv_pg_script(pg, sql, &why) != CV_OK) {
    fail_msg("%s: %s", sql, why.text);
  }
  cv_pg_close(pg);
}

static inline void server_drop(void) {
  char sql[100];
  (void)snprintf(sql, sizeof(sql), "DROP DATABASE test_%d WITH (FORCE)", (int)getpid());
  server_run_at(getenv("CROWDVEIL_POSTGRES"), sql);
}

/* The database is there from the first use on, until the program ends. */
static inline void server_make(void) {
  static pid_t maker;
  char sql[100];
  if (maker == getpid()) {
    return;
  }
  maker = getpid();
  (void)snprintf(sql, sizeof(sql), "CREATE DATABASE test_%d", (int)getpid());
  server_run_at(getenv("CROWDVEIL_POSTGRES"), sql);
  (void)atexit(server_drop);
}

/* The administrator's session, which lasts until the program ends. */
static inline struct cv_pg *server_session(void) {
  static struct cv_pg *session;
  server_make();
  if (session == NULL) {
    session = server_open_at(server_owner());
  }
  return session;
}

/* Runs statements as the administrator. */
static inline void server_run(const char *sql) {
  struct cv_why why;
  if (cv_pg_script(server_session(), sql, &why) != CV_OK) {
    fail_msg("%s: %s", sql, why.text);
  }
}

/* Waits until no broker has the term: its session may end a moment after the broker. */
static inline void server_await_no_holder(void) {
  static const char lock[] = CV_POSTGRES_LOCK;
  char sql[120];
  (void)snprintf(sql, sizeof(sql), "SELECT pg_advisory_lock(%s); SELECT pg_advisory_unlock(%s)", lock, lock);
  server_run(sql);
}

/* The one number that a statement selects from the broker's tables. */
static inline uint64_t server_number(const char *sql) {
  struct cv_why why;
  struct cv_pg *pg = server_session();
  PGresult *result = NULL;
  if (cv_pg_script(pg, "SET search_path = crowdveil", &why) != CV_OK ||
      cv_pg_run(pg, sql, NULL, &result, &why) != CV_OK) {
    fail_msg("%s: %s", sql, why.text);
  }
  uint64_t number = cv_pg_int(result, 0, 0);
  PQclear(result);
  return number;
}

/* Makes empty tables. The administrator's role is the brokers', too. */
static inline void server_reset(void) {
  struct cv_why why, done;
  bool is_new;
  server_run("SET client_min_messages = error; DROP SCHEMA IF EXISTS crowdveil CASCADE");
  if (cv_postgres.migrate(server_owner(), server_owner(), &is_new, &done, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

#endif
