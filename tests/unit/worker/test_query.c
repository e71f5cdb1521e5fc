/* SPDX-License-Identifier: Apache-2.0 */
/* A query of an SQLite database as a source of scores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/unit/worker/data.h"
#include "tests/unit/worker/table.h"

#define FILMS                                                                             \
  "CREATE TABLE film (id INTEGER PRIMARY KEY, title TEXT);"                               \
  "CREATE TABLE rating (film INTEGER, who TEXT, stars REAL, day TEXT);"                   \
  "INSERT INTO film VALUES (1, 'Roma'), (2, 'Casa');"                                     \
  "INSERT INTO rating VALUES (1, 'Zoe', 5, 'x'), (2, 'Ann', 1, 'y'), (1, 'Ann', 3, 'z');" \
  "CREATE VIEW seen AS SELECT title, stars, who, day FROM film JOIN rating ON film.id = rating.film;"

struct fixture {
  struct folder folder;
  struct cv_items_csv ask;
  char query[600];
};

static void run(struct fixture *fixture, const char *sql) {
  sqlite3 *db;
  assert_int_equal(sqlite3_open(folder_file(&fixture->folder, "r.db"), &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void make(struct fixture *fixture, const char *sql) {
  *fixture = (struct fixture){
      .ask = {
          .format = CV_FORMAT_SQLITE, .item_column = "title", .score_column = "stars", .scale = {.low = 1, .high = 5}}};
  fixture->ask.query = fixture->query;
  folder_make(&fixture->folder);
  run(fixture, sql);
}

static const struct cv_items_csv *query(struct fixture *fixture, const char *sql) {
  (void)snprintf(fixture->query, sizeof(fixture->query), "%s", sql);
  return &fixture->ask;
}

static void good(struct fixture *fixture, const char *sql, const char *expected, const char *notes) {
  assert_data(&fixture->folder, query(fixture, sql), "r.db", expected, notes);
}

static void bad(struct fixture *fixture, const char *sql, enum cv_err err, const char *line) {
  assert_bad_data(&fixture->folder, query(fixture, sql), "r.db", err, line);
}

static void test_rows_of_a_query(void **state) {
  struct fixture fixture;
  make(&fixture, FILMS);
  good(&fixture, "SELECT * FROM seen", "Casa:0 Roma:1000,500", "r.db: columns not used: who, day\n");
  good(&fixture, "  SELECT title, stars FROM seen ORDER BY stars; -- all\n", "Casa:0 Roma:500,1000", "");
  good(&fixture, "WITH s AS (SELECT film AS title, avg(stars) AS stars FROM rating GROUP BY film) SELECT * FROM s",
       "1:750 2:0", "");
  good(&fixture, "SELECT upper(title) AS title, CAST(stars AS TEXT) AS stars FROM seen WHERE day < 'z'",
       "CASA:0 ROMA:1000", "");
  folder_remove(&fixture.folder);
}

static void test_persons_and_missing_scores(void **state) {
  struct fixture fixture;
  struct cv_data data;
  char path[320];
  make(&fixture, FILMS "INSERT INTO rating VALUES (1, 'Bob', NULL, 'x');");
  bad(&fixture, "SELECT * FROM seen", CV_ERR_INVALID,
      ": row 4: stars \"null\" is no score; expected a number, or items.missing: skip to leave such rows out");
  fixture.ask.skips_missing = true;
  good(&fixture, "SELECT title, stars FROM seen", "Casa:0 Roma:1000,500",
       "r.db: 1 of 4 rows without a score are skipped, the first at row 4\n");
  (void)snprintf(path, sizeof(path), "%s/r.db", fixture.folder.path);
  (void)snprintf(fixture.ask.worker_column, sizeof(fixture.ask.worker_column), "who");
  fixture.ask.file = path;
  assert_int_equal(cv_data_read(query(&fixture, "SELECT * FROM seen"), false, &data, NULL), CV_OK);
  assert_int_equal(data.persons.persons, 2);
  assert_memory_equal(data.persons.start, ((uint64_t[]){0, 1, 3}), 3 * sizeof(uint64_t));
  cv_data_fini(&data);
  folder_remove(&fixture.folder);
}

/* A query may read tables, and nothing else. */
static void test_queries_that_do_more_than_read_are_refused(void **state) {
  static const struct {
    const char *sql, *has;
  } cases[] = {
      {"DELETE FROM rating", "a statement that does more than read"},
      {"INSERT INTO film VALUES (3, 'x') RETURNING title, id AS stars", "a statement that does more than read"},
      {"CREATE TABLE t (a)", "a statement that does more than read"},
      {"ATTACH 'other.db' AS other", "a statement that does more than read"},
      {"PRAGMA user_version", "a statement that does more than read"},
      {"PRAGMA journal_mode = DELETE", "a statement that does more than read"},
      {"BEGIN", "a statement that does more than read"},
      {"SELECT load_extension('x') AS title, 1 AS stars", "the function load_extension()"},
      {"SELECT title, abs(random() % 5) AS stars FROM seen", "the function random()"},
      {"SELECT title, stars FROM seen WHERE day < CURRENT_TIMESTAMP", "the function current_timestamp()"},
      {"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS title, 1 AS stars FROM n",
       "a recursive query"},
  };
  struct fixture fixture;
  make(&fixture, FILMS);
  struct stat before, after;
  assert_int_equal(stat(folder_file(&fixture.folder, "r.db"), &before), 0);
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    char line[200];
    (void)snprintf(line, sizeof(line), ": items.query has %s; expected one SELECT that reads tables", cases[i].has);
    bad(&fixture, cases[i].sql, CV_ERR_INVALID, line);
  }
  /* a view that does it is no way around */
  run(&fixture, "CREATE VIEW wild AS SELECT title, random() % 5 AS stars FROM film");
  bad(&fixture, "SELECT * FROM wild", CV_ERR_INVALID,
      ": items.query has the function random(); expected one SELECT that reads tables");
  run(&fixture, "DROP VIEW wild");
  assert_int_equal(stat(folder_file(&fixture.folder, "r.db"), &after), 0);
  good(&fixture, "SELECT title, stars FROM seen", "Casa:0 Roma:1000,500", "");
  folder_remove(&fixture.folder);
}

static void test_bad_queries(void **state) {
  struct fixture fixture;
  make(&fixture, FILMS);
  bad(&fixture, "SELECT title FROM seen; SELECT 1", CV_ERR_INVALID,
      ": items.query has more than one statement; expected one SELECT");
  bad(&fixture, "SELECT title FROM seen; DROP TABLE film", CV_ERR_INVALID,
      ": items.query has more than one statement; expected one SELECT");
  bad(&fixture, "SELECT title FROM seen; nonsense", CV_ERR_INVALID,
      ": items.query has more than one statement; expected one SELECT");
  bad(&fixture, "", CV_ERR_INVALID, ": items.query is no query; expected one SELECT");
  bad(&fixture, "-- nothing", CV_ERR_INVALID, ": items.query is no query; expected one SELECT");
  bad(&fixture, "EXPLAIN SELECT * FROM seen", CV_ERR_INVALID, ": items.query is no query; expected one SELECT");
  bad(&fixture, "VACUUM", CV_ERR_INVALID, ": items.query is no query; expected one SELECT");
  bad(&fixture, "SELEC 1", CV_ERR_INVALID, ": items.query fails: near \"SELEC\": syntax error");
  bad(&fixture, "SELECT * FROM films", CV_ERR_INVALID, ": items.query fails: no such table: films");
  bad(&fixture, "SELECT title, stars AS rating FROM seen", CV_ERR_INVALID,
      ": items.query: no column \"stars\"; the columns are title, rating");
  bad(&fixture, "SELECT title, stars, title FROM seen", CV_ERR_INVALID,
      ": items.query: two columns are called \"title\"; expected one");
  bad(&fixture, "SELECT title, stars FROM seen WHERE 0", CV_ERR_INVALID,
      ": no rows in the query's result; expected at least one");
  folder_remove(&fixture.folder);
}

static void test_the_work_of_a_query_is_bounded(void **state) {
  struct fixture fixture;
  make(&fixture, FILMS);
  fixture.ask.steps = 1000000;
  bad(&fixture,
      "SELECT 'a' AS title, 1 AS stars FROM rating a, rating b, rating c, rating d, rating e, rating f, rating g, "
      "rating h, rating i, rating j, rating k, rating l, rating m, rating n, rating o, rating p WHERE "
      "a.film + b.film + c.film + d.film + e.film + f.film + g.film + h.film + i.film + j.film + k.film + l.film + "
      "m.film + n.film + o.film + p.film > 99",
      CV_ERR_LIMIT, ": items.query takes more than 1000000 steps; expected a simpler one");
  folder_remove(&fixture.folder);
}

/* A join, also in a view of the database, may have any number of rows, and a row any number of long texts. */
static void test_the_memory_of_a_query_is_bounded(void **state) {
  static const char rows[] =
      ": row 81921: the rows up to here take more than 1 MiB of memory; expected at most that, or a larger "
      "items.memory";
  struct fixture fixture;
  make(&fixture, FILMS
       "CREATE VIEW wide AS SELECT title, 1 AS stars FROM film, rating a, rating b, rating c, rating d, rating e, "
       "rating f, rating g, rating h, rating i, rating j, rating k;");
  fixture.ask.memory = 1;
  bad(&fixture, "SELECT title, stars FROM wide", CV_ERR_LIMIT, rows);
  bad(&fixture,
      "SELECT printf('%.*c', 900000, 'x') AS title, 1 AS stars, printf('%.*c', 900000, 'y') AS a, "
      "printf('%.*c', 900000, 'z') AS b",
      CV_ERR_LIMIT,
      ": items.query takes more than 1 MiB of memory in SQLite; expected a simpler one, or a larger items.memory");
  fixture.ask.memory = 4; /* what is sorted lies in temporary files */
  bad(&fixture, "SELECT title, stars FROM wide ORDER BY title", CV_ERR_LIMIT,
      ": row 344065: the rows up to here take more than 4 MiB of memory; expected at most that, or a larger "
      "items.memory");
  bad(&fixture, "SELECT title, stars FROM wide ORDER BY title, printf('%.*c', 1000, 'x')", CV_ERR_LIMIT,
      ": items.query sorts or groups more than 64 MiB of temporary files, or the disk is full; expected a simpler one, "
      "or "
      "a larger items.memory");
  bad(&fixture,
      "SELECT DISTINCT title, stars, printf('%d %.*c', random, 1000, 'x') FROM (SELECT title, stars, "
      "row_number() OVER () AS random FROM wide)",
      CV_ERR_LIMIT,
      ": items.query sorts or groups more than 64 MiB of temporary files, or the disk is full; expected a simpler one, "
      "or "
      "a larger items.memory");
  for (int i = 0; i < 3; i++) { /* what was written is forgotten with the database */
    good(
        &fixture,
        "SELECT title, max(stars) AS stars FROM (SELECT title, stars, row_number() OVER (ORDER BY printf('%.*c', 1000, "
        "'x')) FROM (SELECT title, stars FROM wide LIMIT 10000)) GROUP BY title",
        "Roma:0", "");
  }
  fixture.ask.memory = 0;
  good(&fixture, "SELECT title, stars FROM seen ORDER BY printf('%.*c', 900000, day) DESC", "Casa:0 Roma:500,1000", "");
  folder_remove(&fixture.folder);
}

static void test_bad_values(void **state) {
  struct fixture fixture;
  make(&fixture, FILMS);
  bad(&fixture, "SELECT NULL AS title, 1 AS stars", CV_ERR_INVALID,
      ": row 1: title \"\" is not a valid name; expected 1 to 255 bytes of printable UTF-8");
  bad(&fixture, "SELECT x'41' AS title, 1 AS stars", CV_ERR_INVALID,
      ": row 1: title is a BLOB; expected a text or a number");
  bad(&fixture, "SELECT 'a' || char(0) || 'b' AS title, 1 AS stars", CV_ERR_INVALID,
      ": row 1: title is a text with a zero byte; expected a text or a number");
  bad(&fixture, "SELECT 'a' AS title, x'41' AS stars", CV_ERR_INVALID,
      ": row 1: stars is a BLOB; expected a text or a number");
  bad(&fixture, "SELECT 'a' AS title, 9e999 AS stars", CV_ERR_INVALID, ": row 1: stars is not a finite number");
  bad(&fixture, "SELECT 'a' AS title, 'many' AS stars", CV_ERR_INVALID, ": row 1: stars \"many\" is not a number");
  bad(&fixture, "SELECT title, stars * 2 AS stars FROM seen", CV_ERR_INVALID,
      ": row 1: stars 10 is outside 1..5, the campaign's scale" OR_CLAMPED);
  folder_remove(&fixture.folder);
}

static void test_what_is_not_a_database(void **state) {
  struct fixture fixture;
  make(&fixture, FILMS);
  char long_text[4096];
  (void)query(&fixture, "SELECT * FROM seen");
  (void)write_text(&fixture.folder, "r.csv", "title,stars\nRoma,5\n");
  assert_bad_data(&fixture.folder, &fixture.ask, "r.csv", CV_ERR_DAMAGED, ": not an SQLite database");
  assert_bad_data(&fixture.folder, &fixture.ask, "none.db", CV_ERR_IO, ": cannot be opened: No such file or directory");
  assert_int_equal(mkdir(folder_file(&fixture.folder, "folder.db"), 0700), 0);
  assert_bad_data(&fixture.folder, &fixture.ask, "folder.db", CV_ERR_IO,
                  ": not a regular file; expected an SQLite database");
  assert_int_equal(rmdir(folder_file(&fixture.folder, "folder.db")), 0);
  /* the pages of the tables, not the schema's */
  memset(long_text, 0xff, sizeof(long_text));
  FILE *file = fopen(folder_file(&fixture.folder, "r.db"), "r+");
  assert_non_null(file);
  assert_int_equal(fseek(file, 2 * 4096, SEEK_SET), 0);
  assert_int_equal(fwrite(long_text, 1, sizeof(long_text), file), sizeof(long_text));
  assert_int_equal(fclose(file), 0);
  bad(&fixture, "SELECT * FROM seen", CV_ERR_DAMAGED, ": the database is damaged: database disk image is malformed");
  folder_remove(&fixture.folder);
}

/* Names that a URI would read as something else; and nothing is written next to the file. */
static void test_the_file_is_only_read(void **state) {
  struct fixture fixture;
  make(&fixture, "PRAGMA journal_mode = WAL;" FILMS);
  (void)query(&fixture, "SELECT title, stars FROM seen");
  assert_int_equal(rename(folder_file(&fixture.folder, "r.db"), folder_file(&fixture.folder, "a?mode=rw#%41.db")), 0);
  assert_data(&fixture.folder, &fixture.ask, "a?mode=rw#%41.db", "Casa:0 Roma:1000,500", "");
  assert_int_not_equal(access(folder_file(&fixture.folder, "a?mode=rw#%41.db-shm"), F_OK), 0);
  assert_int_not_equal(access(folder_file(&fixture.folder, "a?mode=rw#%41.db-wal"), F_OK), 0);
  folder_remove(&fixture.folder);
}

/* Changes that another program has not merged yet belong to the database. */
static void test_a_log_next_to_the_file_is_read_too(void **state) {
  struct fixture fixture;
  sqlite3 *db;
  make(&fixture, "PRAGMA journal_mode = WAL;" FILMS);
  assert_int_equal(sqlite3_open(folder_file(&fixture.folder, "r.db"), &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, "INSERT INTO rating VALUES (2, 'Bob', 5, 'x')", NULL, NULL, NULL), SQLITE_OK);
  good(&fixture, "SELECT title, stars FROM seen", "Casa:0,1000 Roma:1000,500", "");
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
  folder_remove(&fixture.folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_of_a_query),
      cmocka_unit_test(test_persons_and_missing_scores),
      cmocka_unit_test(test_queries_that_do_more_than_read_are_refused),
      cmocka_unit_test(test_bad_queries),
      cmocka_unit_test(test_the_work_of_a_query_is_bounded),
      cmocka_unit_test(test_the_memory_of_a_query_is_bounded),
      cmocka_unit_test(test_bad_values),
      cmocka_unit_test(test_what_is_not_a_database),
      cmocka_unit_test(test_the_file_is_only_read),
      cmocka_unit_test(test_a_log_next_to_the_file_is_read_too),
  };
  return cmocka_run_group_tests_name("query", tests, NULL, NULL);
}
