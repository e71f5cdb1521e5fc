/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL server that tests may use: CROWDVEIL_POSTGRES names its administrator's database. Include after
 * cmocka.h and machine.h. */
#ifndef CV_TESTS_SERVER_H
#define CV_TESTS_SERVER_H

#include <stdlib.h>

#include "broker/store/postgres.h"
#include "common/pg/pg.h"

static inline const char *server_owner(void) {
  return getenv("CROWDVEIL_POSTGRES");
}

static inline bool lacks_server(void) {
  return server_owner() == NULL && is_skipped("no PostgreSQL server", "CROWDVEIL_POSTGRES is not set");
}

static inline struct cv_pg *server_open(void) {
  struct cv_why why;
  struct cv_pg_uri uri;
  struct cv_pg *pg;
  if (cv_pg_uri_parse(server_owner(), &uri, &why) != CV_OK ||
      cv_pg_open(&uri, "crowdveil test", 10000, &pg, &why) != CV_OK) {
    fail_msg("%s", why.text);
    abort();
  }
  return pg;
}

/* Runs statements as the administrator. */
static inline void server_run(const char *sql) {
  struct cv_why why;
  struct cv_pg *pg = server_open();
  if (cv_pg_script(pg, sql, &why) != CV_OK) {
    fail_msg("%s: %s", sql, why.text);
  }
  cv_pg_close(pg);
}

/* The one number that a statement selects from the broker's tables. */
static inline uint64_t server_number(const char *sql) {
  struct cv_why why;
  struct cv_pg *pg = server_open();
  PGresult *result = NULL;
  if (cv_pg_script(pg, "SET search_path = crowdveil", &why) != CV_OK ||
      cv_pg_run(pg, sql, NULL, &result, &why) != CV_OK) {
    fail_msg("%s: %s", sql, why.text);
  }
  uint64_t number = cv_pg_int(result, 0, 0);
  PQclear(result);
  cv_pg_close(pg);
  return number;
}

/* Makes empty tables. The administrator's role is the brokers', too. */
static inline void server_reset(void) {
  struct cv_why why;
  server_run("SET client_min_messages = error; DROP SCHEMA IF EXISTS crowdveil CASCADE");
  if (cv_postgres.migrate(server_owner(), server_owner(), &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

#endif
