/* SPDX-License-Identifier: Apache-2.0 */
/* Where the worlds of these tests are stored: in a file, or with WORLD_POSTGRES on a server. Include after cmocka.h. */
#ifndef CV_TESTS_BROKER_STORED_H
#define CV_TESTS_BROKER_STORED_H

#include "broker/store.h"
#include "tests/support/folder.h"
#include "tests/support/machine.h"

struct cv_remote;

#ifdef WORLD_POSTGRES

#include "tests/support/server.h"

enum { STORED_IN_FILE = false };

static inline bool stored_lacks(void) {
  return lacks_server();
}

/* An empty database. */
static inline void stored_make(void) {
  server_reset();
}

static inline enum cv_err stored_open(const struct folder *folder, const struct cv_ring *ring,
                                      struct cv_remote **ret_remote, struct cv_broker_store **ret, struct cv_why *why) {
  const struct cv_remote_config config = {
      .store = server_owner(), .anchor = folder_file(folder, "anchor"), .name = "b", .address = "test:1", .ring = ring};
  bool taken = false;
  unsigned rest_ms;
  CV_TRY(cv_postgres.open(&config, ret_remote, why));
  enum cv_err err = cv_postgres.step(*ret_remote, &taken, &rest_ms, why);
  assert_true(taken || err != CV_OK);
  err = err == CV_OK ? cv_postgres.store(*ret_remote, ret, why) : err;
  if (err != CV_OK) {
    cv_postgres.close(*ret_remote);
  }
  return err;
}

/* Waits until the database can be opened. */
static inline void stored_await(void) {
  server_await_no_holder();
}

static inline void stored_close(struct cv_remote *remote, struct cv_broker_store *store) {
  cv_broker_store_close(store);
  cv_postgres.close(remote);
}

static inline uint64_t stored_number(const struct folder *folder, const char *sql) {
  return server_number(sql);
}

#else

#include <sqlite3.h>

enum { STORED_IN_FILE = true };

static inline bool stored_lacks(void) {
  return false;
}

static inline void stored_make(void) {
}

static inline void stored_await(void) {
}

static inline enum cv_err stored_open(const struct folder *folder, const struct cv_ring *ring,
                                      struct cv_remote **ret_remote, struct cv_broker_store **ret, struct cv_why *why) {
  const struct cv_store_files files = {.database = folder_file(folder, "broker.db"),
                                       .anchor = folder_file(folder, "anchor")};
  return cv_broker_store_open(&files, ring, ret, why);
}

static inline void stored_close(struct cv_remote *remote, struct cv_broker_store *store) {
  cv_broker_store_close(store);
}

/* The one number that a statement selects, while the database is open elsewhere. */
static inline uint64_t stored_number(const struct folder *folder, const char *sql) {
  sqlite3 *db;
  sqlite3_stmt *stmt;
  char path[400];
  (void)snprintf(path, sizeof(path), "file:%s?immutable=1", folder_file(folder, "broker.db"));
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
  uint64_t count = (uint64_t)sqlite3_column_int64(stmt, 0);
  (void)sqlite3_finalize(stmt);
  (void)sqlite3_close(db);
  return count;
}

#endif

static inline void test_there_is_a_server(void **state) {
  assert_true(stored_lacks());
}

/* Runs the group, or says that it is skipped. */
#define STORED_RUN(name, tests)                                                                                    \
  (stored_lacks() ? cmocka_run_group_tests_name(                                                                   \
                        name, ((const struct CMUnitTest[]){cmocka_unit_test(test_there_is_a_server)}), NULL, NULL) \
                  : cmocka_run_group_tests_name(name, tests, NULL, NULL))

#endif
