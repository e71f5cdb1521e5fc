/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial's values are one JSON text instead of a row each: a piece may have 2^20 values, and a view with json_each()
 * shows them as rows to other programs all the same.
 */
#include "lab/result/archive.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/db/proof.h"

/* Upper limit of a number's text: at most 24 characters and a comma. */
enum { NUMBER_BYTES = 32 };

struct cv_lab_archive {
  struct cv_db *db;
  char *path;
};

/* The views are for other readers; this program uses the tables only. */
static const char *const steps[] = {
    "CREATE TABLE experiment ("
    "  one INTEGER PRIMARY KEY CHECK (one = 1),"
    "  name TEXT NOT NULL,"
    "  text TEXT NOT NULL,"
    "  text_sha256 TEXT NOT NULL,"
    "  seed INTEGER NOT NULL,"
    "  token_level INTEGER NOT NULL CHECK (token_level IN (0, 1)),"
    "  program TEXT NOT NULL,"
    "  settings INTEGER NOT NULL,"
    "  series INTEGER NOT NULL,"
    "  moments INTEGER NOT NULL,"
    "  metrics INTEGER NOT NULL,"
    "  data_files INTEGER NOT NULL);"
    "CREATE TABLE data_file (number INTEGER PRIMARY KEY, path TEXT NOT NULL, bytes INTEGER NOT NULL,"
    "  sha256 TEXT NOT NULL);"
    "CREATE TABLE series (number INTEGER PRIMARY KEY, name TEXT NOT NULL);"
    "CREATE TABLE point (number INTEGER PRIMARY KEY, x REAL);"
    "CREATE TABLE metric (number INTEGER PRIMARY KEY, name TEXT NOT NULL);"
    "CREATE TABLE trial ("
    "  id INTEGER PRIMARY KEY,"
    "  setting INTEGER NOT NULL,"
    "  replicate INTEGER NOT NULL,"
    "  numbers TEXT NOT NULL,"
    "  code BLOB,"
    "  UNIQUE (setting, replicate));"
    "CREATE VIEW result AS"
    "  SELECT s.name AS series, p.x AS x, m.name AS metric, t.replicate AS replicate, n.value AS value"
    "  FROM experiment e CROSS JOIN trial t CROSS JOIN json_each(t.numbers) n"
    "  JOIN series s ON s.number = n.key / (e.moments * e.metrics)"
    "  JOIN point p ON p.number = t.setting + n.key / e.metrics % e.moments"
    "  JOIN metric m ON m.number = n.key % e.metrics;"
    "CREATE VIEW summary AS"
    "  SELECT series, x, metric, avg(value) AS mean, count(value) AS n FROM result GROUP BY series, x, "
    "metric;" CV_PROOF_TABLE,
};
static const struct cv_db_schema schema = {
    .application_id = 0x43564c42, /* "CVLB" */
    .steps = steps,
    .count = CV_COUNT(steps),
    .first = 3,
    .advice = "move it away, and run the experiment again",
};

/* Checksums detect values that a disk has changed. A new part must be added at the end. */
enum { PART_TRIAL = 5 };
static const struct cv_proof_part parts[] = {
    {.table = "experiment"}, {.table = "data_file"}, {.table = "series"},
    {.table = "point"},      {.table = "metric"},    [PART_TRIAL] = {.table = "trial", .code = "code"},
};
_Static_assert(PART_TRIAL == 5, "put_trial says so in SQL");

static enum cv_err prove(struct cv_lab_archive *archive, struct cv_why *why) {
  const struct cv_proof_config config = {.part = parts, .parts = CV_COUNT(parts)};
  return cv_proof_begin(archive->db, &config, why);
}

static enum cv_err no_memory(const struct cv_lab_archive *archive, struct cv_why *why) {
  return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", archive->path);
}

static enum cv_err open_with(const char *path, bool readonly, struct cv_lab_archive **ret, struct cv_why *why) {
  struct cv_lab_archive *archive = calloc(1, sizeof(*archive));
  char *copy = strdup(path);
  enum cv_err err = archive == NULL || copy == NULL ? cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path)
                    : readonly                      ? cv_db_open_readonly(path, &schema, &archive->db, why)
                                                    : cv_db_open(path, NULL, &schema, &archive->db, why);
  if (err == CV_OK) {
    /* Before anything is read: a row that does not match its checksum must not become a result. */
    err = prove(archive, why);
    if (err != CV_OK) {
      cv_db_close(archive->db);
    }
  }
  if (err != CV_OK) {
    free(archive);
    free(copy);
    return err;
  }
  archive->path = copy;
  *ret = archive;
  return CV_OK;
}

enum cv_err cv_lab_archive_open(const char *path, struct cv_lab_archive **ret, struct cv_why *why) {
  return open_with(path, false, ret, why);
}

enum cv_err cv_lab_archive_open_readonly(const char *path, struct cv_lab_archive **ret, struct cv_why *why) {
  return open_with(path, true, ret, why);
}

void cv_lab_archive_close(struct cv_lab_archive *archive) {
  if (archive != NULL) {
    cv_db_close(archive->db);
    free(archive->path);
    free(archive);
  }
}

enum cv_err cv_lab_archive_begin(struct cv_lab_archive *archive, struct cv_why *why) {
  return cv_db_begin(archive->db, why);
}

enum cv_err cv_lab_archive_commit(struct cv_lab_archive *archive, struct cv_why *why) {
  return cv_db_commit(archive->db, why);
}

void cv_lab_archive_rollback(struct cv_lab_archive *archive) {
  cv_db_rollback(archive->db);
}

/* ---- the origin, written ---- */

/* Binds without a copy: `text` must live until the statement has run. */
static void bind_text(sqlite3_stmt *stmt, int at, const char *text) {
  (void)sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

static enum cv_err put_label(struct cv_db *db, const char *sql, size_t number, const char *text, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db, sql, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)number);
  bind_text(stmt, 2, text);
  return cv_db_run(db, stmt, why);
}

static enum cv_err put_x(struct cv_db *db, size_t number, double x, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db, "INSERT INTO point VALUES (?, ?)", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)number);
  (void)sqlite3_bind_double(stmt, 2, x); /* NAN becomes NULL */
  return cv_db_run(db, stmt, why);
}

static enum cv_err put_file(struct cv_db *db, size_t number, const struct cv_lab_data_file *file, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db, "INSERT INTO data_file VALUES (?, ?, ?, ?)", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)number);
  bind_text(stmt, 2, file->path);
  (void)sqlite3_bind_int64(stmt, 3, (sqlite3_int64)file->bytes);
  bind_text(stmt, 4, file->sha256);
  return cv_db_run(db, stmt, why);
}

static enum cv_err put_parts(struct cv_db *db, const struct cv_lab_origin *origin, struct cv_why *why) {
  static const char series[] = "INSERT INTO series VALUES (?, ?)", metric[] = "INSERT INTO metric VALUES (?, ?)";
  for (size_t i = 0; i < origin->series; i++) {
    CV_TRY(put_label(db, series, i, origin->series_name[i].text, why));
  }
  for (size_t i = 0; i < origin->metrics; i++) {
    CV_TRY(put_label(db, metric, i, origin->metric_name[i].text, why));
  }
  for (size_t i = 0; i < origin->points; i++) {
    CV_TRY(put_x(db, i, origin->x[i], why));
  }
  for (size_t i = 0; i < origin->files; i++) {
    CV_TRY(put_file(db, i, &origin->file[i], why));
  }
  return CV_OK;
}

enum cv_err cv_lab_archive_put_origin(struct cv_lab_archive *archive, const struct cv_lab_origin *origin,
                                      struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(archive->db, "INSERT INTO experiment VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", &stmt, why));
  bind_text(stmt, 1, origin->name);
  bind_text(stmt, 2, origin->text);
  bind_text(stmt, 3, origin->text_sha256);
  (void)sqlite3_bind_int64(stmt, 4, (sqlite3_int64)origin->seed);
  (void)sqlite3_bind_int64(stmt, 5, origin->token_level);
  bind_text(stmt, 6, origin->program);
  (void)sqlite3_bind_int64(stmt, 7, (sqlite3_int64)origin->settings);
  (void)sqlite3_bind_int64(stmt, 8, (sqlite3_int64)origin->series);
  (void)sqlite3_bind_int64(stmt, 9, (sqlite3_int64)cv_lab_origin_moments(origin));
  (void)sqlite3_bind_int64(stmt, 10, (sqlite3_int64)origin->metrics);
  (void)sqlite3_bind_int64(stmt, 11, (sqlite3_int64)origin->files);
  CV_TRY(cv_db_run(archive->db, stmt, why));
  return put_parts(archive->db, origin, why);
}

/* ---- the origin, read ---- */

static bool read_text(sqlite3_stmt *stmt, int column, char *to, size_t size) {
  const char *text = (const char *)sqlite3_column_text(stmt, column);
  size_t n = (size_t)sqlite3_column_bytes(stmt, column);
  if (text == NULL || n >= size || strlen(text) != n) {
    return false;
  }
  memcpy(to, text, n + 1);
  return true;
}

static char *copy_text(sqlite3_stmt *stmt, int column, size_t most) {
  size_t n = (size_t)sqlite3_column_bytes(stmt, column);
  char *to = n <= most ? malloc(n + 1) : NULL;
  if (to != NULL && !read_text(stmt, column, to, n + 1)) {
    free(to);
    return NULL;
  }
  return to;
}

static bool read_size(sqlite3_stmt *stmt, int column, size_t most, size_t *ret) {
  sqlite3_int64 value = sqlite3_column_int64(stmt, column);
  *ret = (size_t)value;
  return sqlite3_column_type(stmt, column) == SQLITE_INTEGER && value >= 0 && value <= (sqlite3_int64)most;
}

static enum cv_err damaged(const struct cv_lab_archive *archive, const char *table, struct cv_why *why) {
  return cv_fail(why, CV_ERR_DAMAGED, "%s: damaged: table %s is not as crowdveil-lab writes it", archive->path, table);
}

static bool read_sizes(sqlite3_stmt *stmt, struct cv_lab_origin *origin) {
  size_t moments = 0;
  bool good = read_size(stmt, 6, CV_LAB_NUMBERS_MAX, &origin->settings) &&
              read_size(stmt, 7, CV_LAB_NUMBERS_MAX, &origin->series) &&
              read_size(stmt, 8, CV_LAB_NUMBERS_MAX, &moments) &&
              read_size(stmt, 9, CV_LAB_NUMBERS_MAX, &origin->metrics);
  /* Either settings or moments are points (origin.h): the file stores both, and points follow. */
  origin->points = origin->settings > 1 ? origin->settings : moments;
  return good && (origin->settings == 1 || moments == 1) && cv_lab_origin_is_valid(origin);
}

static bool read_experiment(sqlite3_stmt *stmt, struct cv_lab_origin *origin) {
  size_t token_level = 0;
  char sha256[CV_LAB_HEX_BYTES];
  origin->name = copy_text(stmt, 0, CV_LAB_TEXT_MAX);
  origin->text = copy_text(stmt, 1, CV_LAB_TEXT_MAX);
  origin->seed = (uint64_t)sqlite3_column_int64(stmt, 3);
  if (origin->name == NULL || origin->text == NULL ||
      !read_text(stmt, 2, origin->text_sha256, sizeof(origin->text_sha256)) || !read_size(stmt, 4, 1, &token_level) ||
      !read_text(stmt, 5, origin->program, sizeof(origin->program)) || !read_sizes(stmt, origin)) {
    return false;
  }
  origin->token_level = token_level != 0;
  /* The text decides what the values mean: a changed one would give them to other series or points. */
  cv_lab_sha256_hex(origin->text, strlen(origin->text), sha256);
  return strcmp(sha256, origin->text_sha256) == 0;
}

static enum cv_err read_head(struct cv_lab_archive *archive, struct cv_lab_origin *origin, size_t *ret_files,
                             struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(archive->db,
                       "SELECT name, text, text_sha256, seed, token_level, program, settings, series, moments,"
                       " metrics, data_files FROM experiment",
                       &stmt, why));
  CV_TRY(cv_db_step(archive->db, stmt, &row, why));
  if (row == 0) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: has no results yet", archive->path);
  }
  bool good = read_experiment(stmt, origin) && read_size(stmt, 10, CV_LAB_FILES_MAX, ret_files);
  (void)sqlite3_reset(stmt);
  return good ? CV_OK : damaged(archive, "experiment", why);
}

/* Takes one row of a table whose first column counts from 0; false if the row is invalid. */
typedef bool take_fn(sqlite3_stmt *stmt, struct cv_lab_origin *origin, size_t at);

static bool take_series(sqlite3_stmt *stmt, struct cv_lab_origin *origin, size_t at) {
  return read_text(stmt, 1, origin->series_name[at].text, CV_LAB_NAME);
}

static bool take_metric(sqlite3_stmt *stmt, struct cv_lab_origin *origin, size_t at) {
  return read_text(stmt, 1, origin->metric_name[at].text, CV_LAB_NAME);
}

static bool take_point(sqlite3_stmt *stmt, struct cv_lab_origin *origin, size_t at) {
  origin->x[at] = sqlite3_column_type(stmt, 1) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(stmt, 1);
  return true;
}

static bool take_file(sqlite3_stmt *stmt, struct cv_lab_origin *origin, size_t at) {
  struct cv_lab_data_file *file = &origin->file[at];
  file->path = copy_text(stmt, 1, CV_LAB_TEXT_MAX);
  file->bytes = (uint64_t)sqlite3_column_int64(stmt, 2);
  return file->path != NULL && read_text(stmt, 3, file->sha256, sizeof(file->sha256));
}

struct part {
  const char *table, *sql;
  take_fn *take;
};

static const struct part series_part = {"series", "SELECT number, name FROM series ORDER BY number", take_series},
                         metric_part = {"metric", "SELECT number, name FROM metric ORDER BY number", take_metric},
                         point_part = {"point", "SELECT number, x FROM point ORDER BY number", take_point},
                         file_part = {"data_file", "SELECT number, path, bytes, sha256 FROM data_file ORDER BY number",
                                      take_file};

/* Reads a table, which must have exactly `count` rows. */
static enum cv_err read_part(struct cv_lab_archive *archive, const struct part *part, size_t count,
                             struct cv_lab_origin *origin, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  size_t at = 0; /* the tables must number their rows 0, 1, 2, ...: values refer to these numbers */
  CV_TRY(cv_db_prepare(archive->db, part->sql, &stmt, why));
  CV_TRY(cv_db_step(archive->db, stmt, &row, why));
  while (row != 0) {
    if (at == count || sqlite3_column_int64(stmt, 0) != (sqlite3_int64)at || !part->take(stmt, origin, at)) {
      (void)sqlite3_reset(stmt);
      return damaged(archive, part->table, why);
    }
    at++;
    CV_TRY(cv_db_step(archive->db, stmt, &row, why));
  }
  return at == count ? CV_OK : damaged(archive, part->table, why);
}

static enum cv_err read_origin(struct cv_lab_archive *archive, struct cv_lab_origin *origin, struct cv_why *why) {
  size_t files = 0;
  CV_TRY(read_head(archive, origin, &files, why));
  origin->series_name = calloc(origin->series, sizeof(*origin->series_name));
  origin->metric_name = calloc(origin->metrics, sizeof(*origin->metric_name));
  origin->x = calloc(origin->points, sizeof(*origin->x));
  origin->file = calloc(files + 1, sizeof(*origin->file));
  if (origin->series_name == NULL || origin->metric_name == NULL || origin->x == NULL || origin->file == NULL) {
    return no_memory(archive, why);
  }
  origin->files = files;
  CV_TRY(read_part(archive, &series_part, origin->series, origin, why));
  CV_TRY(read_part(archive, &metric_part, origin->metrics, origin, why));
  CV_TRY(read_part(archive, &point_part, origin->points, origin, why));
  return read_part(archive, &file_part, files, origin, why);
}

enum cv_err cv_lab_archive_origin(struct cv_lab_archive *archive, struct cv_lab_origin *ret, struct cv_why *why) {
  struct cv_lab_origin origin = {0};
  enum cv_err err = read_origin(archive, &origin, why);
  if (err != CV_OK) {
    cv_lab_origin_fini(&origin);
    return err;
  }
  *ret = origin;
  return CV_OK;
}

/* ---- trials ---- */

static json_t *json_of(double number) {
  return isnan(number) ? json_null() : json_real(number); /* returns NULL for an infinite number */
}

static char *text_of(const double *numbers, size_t n) {
  json_t *list = json_array();
  bool good = list != NULL;
  for (size_t i = 0; good && i < n; i++) {
    good = json_array_append_new(list, json_of(numbers[i])) == 0;
  }
  /* 17 digits give back the same double: a resumed run must equal an uninterrupted one, bit by bit. */
  char *text = good ? json_dumps(list, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(list);
  return text;
}

static bool are_storable(const double *numbers, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (isinf(numbers[i])) {
      return false;
    }
  }
  return true;
}

enum cv_err cv_lab_archive_put(struct cv_lab_archive *archive, uint64_t setting, uint64_t replicate,
                               const double *numbers, size_t n, struct cv_why *why) {
  sqlite3_stmt *stmt;
  /* JSON has no infinity, and NAN already stands for a missing value. */
  if (!are_storable(numbers, n)) {
    return cv_fail(why, CV_ERR_INVALID, "setting %" PRIu64 ", replicate %" PRIu64 ": a number is infinite", setting + 1,
                   replicate + 1);
  }
  CV_TRY(cv_db_prepare(archive->db,
                       /* One statement computes the row's number and its checksum, which covers the number. */
                       "INSERT INTO trial WITH next (id) AS (SELECT coalesce(max(id), 0) + 1 FROM trial)"
                       " SELECT id, ?1, ?2, ?3, row_code(5, id, ?1, ?2, ?3) FROM next",
                       &stmt, why));
  char *text = text_of(numbers, n);
  if (text == NULL) {
    return no_memory(archive, why);
  }
  (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)setting);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)replicate);
  bind_text(stmt, 3, text);
  enum cv_err err = cv_db_run(archive->db, stmt, why);
  free(text);
  return err;
}

/* Parses a list of exactly `n` numbers or nulls. */
static bool parse(const char *text, size_t bytes, double *numbers, size_t n) {
  json_error_t error;
  /* The length is checked first, so that a damaged file cannot make the parser allocate without a limit. */
  json_t *list = text != NULL && bytes <= n * NUMBER_BYTES + 2 ? json_loadb(text, bytes, 0, &error) : NULL;
  bool good = json_is_array(list) && json_array_size(list) == n;
  for (size_t i = 0; good && i < n; i++) {
    const json_t *one = json_array_get(list, i);
    good = json_is_number(one) || json_is_null(one);
    numbers[i] = json_is_number(one) ? json_number_value(one) : (double)NAN;
  }
  json_decref(list);
  return good;
}

static enum cv_err read_numbers(struct cv_lab_archive *archive, sqlite3_stmt *stmt, int column, double *numbers,
                                size_t n, struct cv_why *why) {
  const char *text = (const char *)sqlite3_column_text(stmt, column);
  size_t bytes = (size_t)sqlite3_column_bytes(stmt, column);
  return parse(text, bytes, numbers, n)
             ? CV_OK
             : cv_fail(why, CV_ERR_DAMAGED, "%s: damaged: a trial is not a list of %zu numbers", archive->path, n);
}

enum cv_err cv_lab_archive_get(struct cv_lab_archive *archive, uint64_t setting, uint64_t replicate, double *numbers,
                               size_t n, bool *ret_found, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(archive->db, "SELECT numbers FROM trial WHERE setting = ? AND replicate = ?", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)setting);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)replicate);
  CV_TRY(cv_db_step(archive->db, stmt, &row, why));
  enum cv_err err = row == 0 ? CV_OK : read_numbers(archive, stmt, 0, numbers, n, why);
  (void)sqlite3_reset(stmt);
  if (err == CV_OK) {
    *ret_found = row != 0;
  }
  return err;
}

enum cv_err cv_lab_archive_replicates(struct cv_lab_archive *archive, uint64_t *ret, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  size_t count = 0;
  CV_TRY(cv_db_prepare(archive->db, "SELECT ifnull(max(replicate), -1) + 1 FROM trial", &stmt, why));
  CV_TRY(cv_db_step(archive->db, stmt, &row, why));
  /* A damaged number would make the caller allocate a dataset of that size. */
  bool good = row != 0 && read_size(stmt, 0, CV_LAB_REPLICATES_MAX, &count);
  (void)sqlite3_reset(stmt);
  if (!good) {
    return damaged(archive, "trial", why);
  }
  *ret = count;
  return CV_OK;
}

static enum cv_err hand_in(struct cv_lab_archive *archive, sqlite3_stmt *stmt, const struct cv_lab_origin *origin,
                           double *numbers, cv_lab_trial_fn *trial, void *data, struct cv_why *why) {
  size_t setting = 0, replicate = 0;
  if (!read_size(stmt, 0, origin->settings - 1, &setting) ||
      !read_size(stmt, 1, CV_LAB_REPLICATES_MAX - 1, &replicate)) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s: damaged: setting %lld, replicate %lld; expected settings below %zu",
                   archive->path, (long long)sqlite3_column_int64(stmt, 0), (long long)sqlite3_column_int64(stmt, 1),
                   origin->settings);
  }
  CV_TRY(read_numbers(archive, stmt, 2, numbers, cv_lab_origin_numbers(origin), why));
  return trial(data, setting, replicate, numbers, why);
}

static enum cv_err each_of(struct cv_lab_archive *archive, const struct cv_lab_origin *origin, double *numbers,
                           cv_lab_trial_fn *trial, void *data, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(archive->db, "SELECT setting, replicate, numbers FROM trial ORDER BY setting, replicate", &stmt,
                       why));
  CV_TRY(cv_db_step(archive->db, stmt, &row, why));
  while (row != 0) {
    enum cv_err err = hand_in(archive, stmt, origin, numbers, trial, data, why);
    if (err != CV_OK) {
      (void)sqlite3_reset(stmt); /* an open statement would keep the file locked */
      return err;
    }
    CV_TRY(cv_db_step(archive->db, stmt, &row, why));
  }
  return CV_OK;
}

enum cv_err cv_lab_archive_each(struct cv_lab_archive *archive, const struct cv_lab_origin *origin,
                                cv_lab_trial_fn *trial, void *data, struct cv_why *why) {
  double *numbers = calloc(cv_lab_origin_numbers(origin), sizeof(*numbers));
  if (numbers == NULL) {
    return no_memory(archive, why);
  }
  enum cv_err err = each_of(archive, origin, numbers, trial, data, why);
  free(numbers);
  return err;
}
