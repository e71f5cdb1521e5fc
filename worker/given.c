/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/given.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/db/proof.h"

struct cv_given {
  struct cv_db *db;
  uint64_t first, last;
  uint32_t *scores;
  bool *noted;     /* by worker: it is in the list below */
  uint32_t *which; /* workers whose counts are not stored, from the first on */
  uint32_t count;
};

static const char *const steps[] = {
    "CREATE TABLE given (worker INTEGER PRIMARY KEY, scores INTEGER NOT NULL CHECK (scores BETWEEN 1 AND 4294967295))",
    CV_PROOF_TABLE};

static const struct cv_db_schema schema = {
    .application_id = 0x43565747, /* "CVWG" */
    .steps = steps,
    .count = (int)CV_COUNT(steps),
};

static enum cv_err load(struct cv_given *given, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(given->db, "SELECT worker, scores FROM given WHERE worker BETWEEN ?1 AND ?2", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)given->first);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)given->last);
  for (;;) {
    CV_TRY(cv_db_step(given->db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    given->scores[(uint64_t)sqlite3_column_int64(stmt, 0) - given->first] = (uint32_t)sqlite3_column_int64(stmt, 1);
  }
}

/* A count that a disk or a slip has changed would give tokens away that were given already. */
static enum cv_err prove(struct cv_given *given, struct cv_why *why) {
  static const struct cv_proof_part part = {.table = "given"};
  const struct cv_proof_config config = {.part = &part, .parts = 1, .adopts = true};
  enum cv_proof proof;
  return cv_proof_begin(given->db, &config, &proof, why);
}

static enum cv_err open_file(struct cv_given *given, const char *state, struct cv_why *why) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof(path), "%s/given.db", state) >= (int)sizeof(path)) {
    return cv_fail(why, CV_ERR_INVALID, "state: the path is too long");
  }
  CV_TRY(cv_db_open(path, NULL, &schema, &given->db, why));
  CV_TRY(prove(given, why));
  return load(given, why);
}

enum cv_err cv_given_open(const char *state, uint64_t first, uint64_t last, struct cv_given **ret, struct cv_why *why) {
  struct cv_given *given = calloc(1, sizeof(*given));
  if (given == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  given->first = first;
  given->last = last;
  given->scores = calloc(last - first + 1, sizeof(*given->scores));
  given->noted = calloc(last - first + 1, sizeof(*given->noted));
  given->which = calloc(last - first + 1, sizeof(*given->which));
  bool has_room = given->scores != NULL && given->noted != NULL && given->which != NULL;
  enum cv_err err = has_room ? open_file(given, state, why) : cv_fail(why, CV_ERR_NOMEM, "out of memory");
  if (err != CV_OK) {
    cv_given_close(given);
    return err;
  }
  *ret = given;
  return CV_OK;
}

void cv_given_close(struct cv_given *given) {
  if (given == NULL) {
    return;
  }
  cv_db_close(given->db);
  free(given->scores);
  free(given->noted);
  free(given->which);
  free(given);
}

const uint32_t *cv_given_scores(const struct cv_given *given) {
  return given->scores;
}

void cv_given_note(struct cv_given *given, uint64_t worker, uint32_t scores) {
  uint32_t at = (uint32_t)(worker - given->first);
  given->scores[at] = scores;
  if (!given->noted[at]) {
    given->noted[at] = true;
    given->which[given->count++] = at;
  }
}

static enum cv_err write_all(struct cv_given *given, struct cv_why *why) {
  CV_TRY(cv_db_begin(given->db, why));
  for (uint32_t i = 0; i < given->count; i++) {
    sqlite3_stmt *stmt;
    CV_TRY(cv_db_prepare(given->db, "INSERT OR REPLACE INTO given (worker, scores) VALUES (?1, ?2)", &stmt, why));
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)(given->first + given->which[i]));
    (void)sqlite3_bind_int64(stmt, 2, given->scores[given->which[i]]);
    CV_TRY(cv_db_run(given->db, stmt, why));
  }
  return cv_db_commit(given->db, why);
}

enum cv_err cv_given_keep(struct cv_given *given, struct cv_why *why) {
  if (given->count == 0) {
    return CV_OK;
  }
  enum cv_err err = write_all(given, why);
  if (err != CV_OK) {
    cv_db_rollback(given->db);
    return err;
  }
  for (uint32_t i = 0; i < given->count; i++) {
    given->noted[given->which[i]] = false;
  }
  given->count = 0;
  return CV_OK;
}
