/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a query of an SQLite database of another program. The query is one SELECT. The database is opened for reading
 * only, and as an immutable file if no log of changes lies next to it, so that not even a lock or a shared-memory file
 * is written. The file must not change meanwhile.
 *
 * Neither the query nor the views of the database can do more than read its tables: an authorizer refuses every other
 * action, and functions whose result differs between two readers. A query may neither recurse nor run without end.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/text.h"
#include "worker/budget.h"
#include "worker/column.h"
#include "worker/feed.h"
#include "worker/spill.h"

enum { STEPS = 1 << 14, SQL_BYTES = 1 << 16, PATTERN_BYTES = 256 };
/* Instructions of SQLite's machine: some minutes. A row of a plain query takes about ten. */
static const uint64_t STEPS_MAX = UINT64_C(1) << 34;

struct reader {
  sqlite3 *db;
  sqlite3_stmt *query;
  int item_at, score_at, worker_at;
  uint64_t steps, steps_max;
  bool is_limited;  /* limit_memory() was called */
  char refused[80]; /* what the authorizer refused; "": nothing */
  struct stat before;
};

static enum cv_err no_memory(const struct cv_feed *feed, struct cv_why *why) {
  return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", feed->ask->file);
}

/* What a query may sort and group outside memory. */
static uint64_t temporary_bytes(const struct cv_feed *feed) {
  enum { TIMES_MEMORY = 16 };
  return cv_budget_bytes(feed->ask->memory) * TIMES_MEMORY;
}

/* SQLite does not say whether the system had no more or the limit was reached: then what it held at most and the
 * largest piece that it asked for are more than the limit together. */
static enum cv_err lacks_memory(const struct cv_feed *feed, struct cv_why *why) {
  const uint64_t most = cv_budget_bytes(feed->ask->memory);
  sqlite3_int64 held = 0, asked = 0, now;
  (void)sqlite3_status64(SQLITE_STATUS_MEMORY_USED, &now, &held, 0);
  (void)sqlite3_status64(SQLITE_STATUS_MALLOC_SIZE, &now, &asked, 0);
  if ((uint64_t)(held + asked) < most) {
    return no_memory(feed, why);
  }
  return cv_fail(why, CV_ERR_LIMIT,
                 "%s: items.query takes more than %llu MiB of memory in SQLite; expected a simpler one, or a larger "
                 "items.memory",
                 feed->ask->file, (unsigned long long)(most >> 20));
}

/* Of all that SQLite has in this process, which is little beside a query; until the last database is closed. */
static atomic_uint limited;

static void limit_memory(uint64_t most) {
  sqlite3_int64 now, high;
  limited++;
  (void)sqlite3_hard_heap_limit64((sqlite3_int64)most);
  (void)sqlite3_status64(SQLITE_STATUS_MEMORY_USED, &now, &high, 1);
  (void)sqlite3_status64(SQLITE_STATUS_MALLOC_SIZE, &now, &high, 1);
}

/* ---- what a query may do ---- */

/* Two readers of the file must get the same rows. */
static bool is_steady(const char *function) {
  static const char *const others[] = {"random",         "randomblob",        "current_time",  "current_date",
                                       "changes",        "current_timestamp", "total_changes", "last_insert_rowid",
                                       "load_extension", "fts3_tokenizer"};
  for (size_t i = 0; i < CV_COUNT(others); i++) {
    if (sqlite3_stricmp(function, others[i]) == 0) {
      return false;
    }
  }
  return true;
}

static int authorize(void *data, int action, const char *first, const char *second, const char *database,
                     const char *view) {
  struct reader *reader = data;
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      if (is_steady(second)) {
        return SQLITE_OK;
      }
      cv_text_print(reader->refused, sizeof(reader->refused), "the function %s()", cv_text_piece(second).text);
      return SQLITE_DENY;
    case SQLITE_RECURSIVE:
      cv_text_print(reader->refused, sizeof(reader->refused), "a recursive query");
      return SQLITE_DENY;
    default:
      cv_text_print(reader->refused, sizeof(reader->refused), "a statement that does more than read");
      return SQLITE_DENY;
  }
}

static int count_steps(void *data) {
  struct reader *reader = data;
  reader->steps += STEPS;
  return reader->steps > reader->steps_max;
}

/* ---- opening ---- */

/* Says what SQLite says. */
static enum cv_err failed(const struct cv_feed *feed, int code, struct cv_why *why) {
  const struct reader *reader = feed->reader;
  const char *path = feed->ask->file, *text = reader->db == NULL ? sqlite3_errstr(code) : sqlite3_errmsg(reader->db);
  if (reader->refused[0] != '\0') {
    return cv_fail(why, CV_ERR_INVALID, "%s: items.query has %s; expected one SELECT that reads tables", path,
                   reader->refused);
  }
  switch (code & 0xff) {
    case SQLITE_NOMEM:
      return lacks_memory(feed, why);
    case SQLITE_FULL:
      return cv_fail(why, CV_ERR_LIMIT,
                     "%s: items.query sorts or groups more than %llu MiB of temporary files, or the disk is full; "
                     "expected a simpler one, or a larger items.memory",
                     path, (unsigned long long)(temporary_bytes(feed) >> 20));
    case SQLITE_INTERRUPT:
      return cv_fail(why, CV_ERR_LIMIT, "%s: items.query takes more than %llu steps; expected a simpler one", path,
                     (unsigned long long)reader->steps_max);
    case SQLITE_NOTADB:
      return cv_fail(why, CV_ERR_DAMAGED, "%s: not an SQLite database", path);
    case SQLITE_CORRUPT:
      return cv_fail(why, CV_ERR_DAMAGED, "%s: the database is damaged: %s", path, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return cv_fail(why, CV_ERR_STATE, "%s: another program writes the database; expected one that rests", path);
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return cv_fail(why, CV_ERR_IO, "%s: cannot be read: %s", path, text);
    default:
      return cv_fail(why, CV_ERR_INVALID, "%s: items.query fails: %s", path, text);
  }
}

/* A log that has not been merged into the file: its changes belong to the database. */
static bool has_log(const char *path) {
  static const char *const endings[] = {"-wal", "-journal"};
  for (size_t i = 0; i < CV_COUNT(endings); i++) {
    char name[4096];
    struct stat about;
    int n = snprintf(name, sizeof(name), "%s%s", path, endings[i]);
    if (n > 0 && (size_t)n < sizeof(name) && stat(name, &about) == 0 && about.st_size > 0) {
      return true;
    }
  }
  return false;
}

/* The path as a URI, with every byte as %41, since some could mean something else. NULL: no memory. */
static char *make_uri(const char *path) {
  sqlite3_str *uri = sqlite3_str_new(NULL);
  sqlite3_str_appendall(uri, "file:");
  for (const char *at = path; *at != '\0'; at++) {
    sqlite3_str_appendf(uri, "%%%02X", (unsigned char)*at);
  }
  sqlite3_str_appendall(uri, has_log(path) ? "?mode=ro" : "?mode=ro&immutable=1");
  return sqlite3_str_finish(uri);
}

static enum cv_err open_database(struct cv_feed *feed, struct cv_why *why) {
  struct reader *reader = feed->reader;
  const char *path = feed->ask->file;
  if (stat(path, &reader->before) != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
  }
  if (!S_ISREG(reader->before.st_mode)) {
    return cv_fail(why, CV_ERR_IO, "%s: not a regular file; expected an SQLite database", path);
  }
  char *uri = make_uri(path);
  if (uri == NULL) {
    return no_memory(feed, why);
  }
  limit_memory(cv_budget_bytes(feed->ask->memory));
  reader->is_limited = true;
  const char *vfs = cv_spill_vfs(temporary_bytes(feed));
  int code = vfs == NULL
                 ? SQLITE_NOMEM
                 : sqlite3_open_v2(uri, &reader->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, vfs);
  sqlite3_free(uri);
  if (code != SQLITE_OK) {
    return failed(feed, code, why);
  }
  (void)sqlite3_db_config(reader->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  (void)sqlite3_db_config(reader->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  (void)sqlite3_db_config(reader->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
  (void)sqlite3_limit(reader->db, SQLITE_LIMIT_LENGTH, CV_FEED_LINE_BYTES);
  (void)sqlite3_limit(reader->db, SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES);
  (void)sqlite3_limit(reader->db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_BYTES); /* long ones take long */
  (void)sqlite3_limit(reader->db, SQLITE_LIMIT_ATTACHED, 0);
  (void)sqlite3_set_authorizer(reader->db, authorize, reader);
  sqlite3_progress_handler(reader->db, STEPS, count_steps, reader);
  return CV_OK;
}

/* ---- the query ---- */

static enum cv_err prepare(struct cv_feed *feed, struct cv_why *why) {
  struct reader *reader = feed->reader;
  const char *rest;
  int code = sqlite3_prepare_v3(reader->db, feed->ask->query, -1, 0, &reader->query, &rest);
  if (code != SQLITE_OK) {
    return failed(feed, code, why);
  }
  sqlite3_stmt *second = NULL;
  code = sqlite3_prepare_v3(reader->db, rest, -1, 0, &second, NULL);
  bool is_one = code == SQLITE_OK && second == NULL;
  (void)sqlite3_finalize(second);
  if (code == SQLITE_NOMEM) {
    return no_memory(feed, why);
  }
  if (!is_one) {
    return cv_fail(why, CV_ERR_INVALID, "%s: items.query has more than one statement; expected one SELECT",
                   feed->ask->file);
  }
  if (reader->query == NULL || sqlite3_column_count(reader->query) == 0 || sqlite3_stmt_isexplain(reader->query) != 0 ||
      sqlite3_stmt_readonly(reader->query) == 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s: items.query is no query; expected one SELECT", feed->ask->file);
  }
  return CV_OK;
}

static const char *column_at(const void *data, uint32_t i) {
  const struct reader *reader = data;
  const char *name = sqlite3_column_name(reader->query, (int)i);
  return name == NULL ? "" : name; /* no memory: the step that follows fails, too */
}

static enum cv_err find_column(const struct cv_feed *feed, const char *name, int *ret, struct cv_why *why) {
  const struct reader *reader = feed->reader;
  const struct cv_columns columns = {
      .count = (uint32_t)sqlite3_column_count(reader->query), .name = column_at, .data = reader};
  uint32_t found;
  enum cv_err err = cv_column_find(&columns, name, &found, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s: items.query", feed->ask->file);
    return err;
  }
  *ret = (int)found;
  return CV_OK;
}

static enum cv_err open_sqlite(struct cv_feed *feed, struct cv_why *why) {
  const struct cv_items_csv *ask = feed->ask;
  struct reader *reader = calloc(1, sizeof(*reader));
  if (reader == NULL) {
    return no_memory(feed, why);
  }
  feed->reader = reader;
  reader->steps_max = ask->steps > 0 ? ask->steps : STEPS_MAX;
  CV_TRY(open_database(feed, why));
  CV_TRY(prepare(feed, why));
  CV_TRY(find_column(feed, ask->item_column, &reader->item_at, why));
  CV_TRY(find_column(feed, ask->score_column, &reader->score_at, why));
  if (ask->worker_column[0] != '\0') {
    CV_TRY(find_column(feed, ask->worker_column, &reader->worker_at, why));
  }
  for (int i = 0; i < sqlite3_column_count(reader->query); i++) {
    if (!cv_feed_wants(ask, column_at(reader, (uint32_t)i))) {
      cv_feed_leave(feed, column_at(reader, (uint32_t)i));
    }
  }
  return CV_OK;
}

/* ---- rows ---- */

/* A text or a number as text; a NULL as `null`. */
static enum cv_err take_text(const struct cv_feed *feed, int column, const char *null, const char **ret,
                             struct cv_why *why) {
  const struct reader *reader = feed->reader;
  int type = sqlite3_column_type(reader->query, column);
  if (type == SQLITE_NULL) {
    *ret = null;
    return CV_OK;
  }
  const char *text = type == SQLITE_BLOB ? NULL : (const char *)sqlite3_column_text(reader->query, column);
  if (type != SQLITE_BLOB && text == NULL) {
    return no_memory(feed, why);
  }
  if (text == NULL || strlen(text) != (size_t)sqlite3_column_bytes(reader->query, column)) {
    return cv_fail(why, CV_ERR_INVALID, "%s: %s is %s; expected a text or a number",
                   cv_feed_place(feed->ask, feed->at).text, cv_text_piece(column_at(reader, (uint32_t)column)).text,
                   text == NULL ? "a BLOB" : "a text with a zero byte");
  }
  *ret = text;
  return CV_OK;
}

static enum cv_err take_score(const struct cv_feed *feed, struct cv_feed_row *ret, struct cv_why *why) {
  const struct reader *reader = feed->reader;
  int type = sqlite3_column_type(reader->query, reader->score_at);
  if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
    ret->text = NULL;
    ret->number = sqlite3_column_double(reader->query, reader->score_at);
    return CV_OK;
  }
  return take_text(feed, reader->score_at, "null", &ret->text, why);
}

/* An immutable file is read without a lock: a writer is noticed only afterwards. */
static enum cv_err check_unchanged(const struct cv_feed *feed, struct cv_why *why) {
  const struct stat *before = &((const struct reader *)feed->reader)->before;
  struct stat after;
  bool is_same = stat(feed->ask->file, &after) == 0 && after.st_ino == before->st_ino &&
                 after.st_size == before->st_size && after.st_mtim.tv_sec == before->st_mtim.tv_sec &&
                 after.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
  return is_same ? CV_OK : cv_fail(why, CV_ERR_IO, "%s: the database changed during reading", feed->ask->file);
}

static enum cv_err next_sqlite(struct cv_feed *feed, struct cv_feed_row *ret, bool *ret_end, struct cv_why *why) {
  const struct reader *reader = feed->reader;
  int code = sqlite3_step(reader->query);
  *ret_end = code == SQLITE_DONE;
  if (code == SQLITE_DONE) {
    return check_unchanged(feed, why);
  }
  if (code != SQLITE_ROW) {
    return failed(feed, code, why);
  }
  feed->at++;
  CV_TRY(take_text(feed, reader->item_at, "", &ret->item, why));
  ret->worker = NULL;
  if (feed->ask->worker_column[0] != '\0') {
    CV_TRY(take_text(feed, reader->worker_at, "", &ret->worker, why));
  }
  return take_score(feed, ret, why);
}

static void close_sqlite(void *data) {
  struct reader *reader = data;
  (void)sqlite3_finalize(reader->query);
  (void)sqlite3_close(reader->db);
  if (reader->is_limited && --limited == 0) {
    (void)sqlite3_hard_heap_limit64(0);
  }
  free(reader);
}

const struct cv_feed_class cv_feed_sqlite = {.open = open_sqlite, .next = next_sqlite, .close = close_sqlite};
