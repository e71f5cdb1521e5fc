/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query of an SQLite database. Bit 0 of the first byte: what follows is a database, for a query that uses its view;
 * else it is a query of a small database. The other bits select the rules (data.h). Whatever the query says, the
 * database keeps its bytes and nothing appears next to it.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "tests/fuzz/data.h"

enum { STEPS = 1 << 18, DATABASE_BYTES = 1 << 16 };

/* SQLite follows links to the name of a file in memory, which then is not found: it needs one with a name. */
static char folder[] = "/tmp/crowdveil-fuzz-XXXXXX", path[sizeof(folder) + 8];

static void leave(void) {
  (void)unlink(path);
  (void)rmdir(folder);
}

static void write_file(const uint8_t *bytes, size_t n) {
  FILE *file = fopen(path, "wb");
  CV_REQUIRE(file != NULL && (n == 0 || fwrite(bytes, 1, n, file) == n) && fclose(file) == 0);
}

static size_t read_file(uint8_t *bytes) {
  FILE *file = fopen(path, "rb");
  CV_REQUIRE(file != NULL);
  size_t n = fread(bytes, 1, DATABASE_BYTES, file);
  CV_REQUIRE(fclose(file) == 0);
  return n;
}

/* The database for queries; the input of the other kind replaces it for a moment. */
static size_t make_folder(uint8_t *bytes) {
  sqlite3 *db;
  CV_REQUIRE(mkdtemp(folder) != NULL);
  (void)snprintf(path, sizeof(path), "%s/r.db", folder);
  CV_REQUIRE(atexit(leave) == 0);
  CV_REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
  CV_REQUIRE(sqlite3_exec(db,
                          "CREATE TABLE rating (item TEXT, score REAL, who TEXT, note BLOB);"
                          "INSERT INTO rating VALUES ('a', 1, 'x', NULL), ('b', 2.5, 'y', x'00ff');"
                          "INSERT INTO rating VALUES ('a', NULL, 'x', 3);"
                          "CREATE VIEW good AS SELECT item, score, who FROM rating WHERE score > 0;",
                          NULL, NULL, NULL) == SQLITE_OK);
  CV_REQUIRE(sqlite3_close(db) == SQLITE_OK);
  return read_file(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  static uint8_t small[DATABASE_BYTES], after[DATABASE_BYTES];
  static char given[] = "SELECT item, score, who FROM good";
  static size_t small_n;
  if (n < 1 || n > DATABASE_BYTES) {
    return 0;
  }
  small_n = small_n > 0 ? small_n : make_folder(small);
  bool is_database = (bytes[0] & 1) != 0;
  char *text = is_database ? NULL : fuzz_text(bytes + 1, n - 1);
  const uint8_t *before = is_database ? bytes + 1 : small;
  size_t before_n = is_database ? n - 1 : small_n;
  write_file(before, before_n);
  fuzz_data(
      (struct cv_items_csv){
          .format = CV_FORMAT_SQLITE, .file = path, .query = is_database ? given : text, .steps = STEPS},
      bytes[0]);
  CV_REQUIRE(read_file(after) == before_n && memcmp(after, before, before_n) == 0);
  CV_REQUIRE(unlink(path) == 0 && rmdir(folder) == 0 && mkdir(folder, 0700) == 0);
  free(text);
  return 0;
}
