/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a data file of a million ratings of 3,000 films by 5,000 persons, in each format: as commands and gateways do
 * before a campaign. Prints for each the time and the largest memory of a process of its own.
 *
 *   bench-rows [ROWS]
 *
 * What bounds it: for csv the bytes (23 a row; a state machine goes through them one by one) and two look-ups in
 * hash tables; unpacking adds a third (gzip) or a tenth (zstd); a query has SQLite's machine in place of the parser;
 * for JSON Lines it is jansson, which makes an object of each line.
 */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/bench/bench.h"
#include "worker/data.h"

enum { FILMS = 3000, PERSONS = 5000, ROW_BYTES = 96, RUNS = 5 };

static const char *const names[] = {"r.csv", "r.csv.gz", "r.csv.zst", "r.jsonl", "r.db"};
static char folder[] = "/dev/shm/crowdveil-bench-XXXXXX", path[64];

static const char *path_of(const char *name) {
  (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
  return path;
}

struct row {
  unsigned film, person, stars;
};

static struct row row_at(uint64_t i) {
  uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 29;
  return (struct row){(unsigned)(x % FILMS), (unsigned)((x >> 20) % PERSONS), (unsigned)((x >> 40) % 9 + 2)};
}

static void save(const char *name, const void *bytes, size_t n) {
  FILE *file = fopen(path_of(name), "wb");
  CV_REQUIRE(file != NULL && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
}

static void write_text(uint64_t rows, const char *name, bool is_json) {
  size_t used, size = 100 + (size_t)rows * ROW_BYTES;
  char *text = malloc(size);
  CV_REQUIRE(text != NULL);
  used = (size_t)snprintf(text, size, "%s", is_json ? "" : "person,film,stars,time\n");
  for (uint64_t i = 0; i < rows; i++) {
    struct row row = row_at(i);
    used += (size_t)snprintf(text + used, size - used,
                             is_json ? "{\"person\":%u,\"film\":%u,\"stars\":%.1f,\"time\":%lu}\n" : "%u,%u,%.1f,%lu\n",
                             row.person, row.film, row.stars / 2.0, 1600000000 + i);
  }
  save(name, text, used);
  if (!is_json) {
    size_t room = ZSTD_compressBound(used), n;
    char *packed = malloc(room);
    CV_REQUIRE(packed != NULL);
    n = ZSTD_compress(packed, room, text, used, 3);
    CV_REQUIRE(!ZSTD_isError(n));
    save("r.csv.zst", packed, n);
    free(packed);
    gzFile gzip = gzopen(path_of("r.csv.gz"), "wb6");
    CV_REQUIRE(gzip != NULL && gzwrite(gzip, text, (unsigned)used) == (int)used && gzclose(gzip) == Z_OK);
  }
  free(text);
}

static void write_database(uint64_t rows) {
  sqlite3 *db;
  sqlite3_stmt *add;
  CV_REQUIRE(sqlite3_open(path_of("r.db"), &db) == SQLITE_OK);
  CV_REQUIRE(sqlite3_exec(db, "CREATE TABLE r (person INT, film INT, stars REAL, time INT); BEGIN", NULL, NULL, NULL) ==
             SQLITE_OK);
  CV_REQUIRE(sqlite3_prepare_v2(db, "INSERT INTO r VALUES (?, ?, ?, ?)", -1, &add, NULL) == SQLITE_OK);
  for (uint64_t i = 0; i < rows; i++) {
    struct row row = row_at(i);
    (void)sqlite3_bind_int64(add, 1, row.person);
    (void)sqlite3_bind_int64(add, 2, row.film);
    (void)sqlite3_bind_double(add, 3, row.stars / 2.0);
    (void)sqlite3_bind_int64(add, 4, (sqlite3_int64)(1600000000 + i));
    CV_REQUIRE(sqlite3_step(add) == SQLITE_DONE && sqlite3_reset(add) == SQLITE_OK);
  }
  CV_REQUIRE(sqlite3_finalize(add) == SQLITE_OK && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK &&
             sqlite3_close(db) == SQLITE_OK);
}

static double read_once(const char *name, bool has_persons) {
  static char query[] = "SELECT person, film, stars FROM r";
  struct cv_items_csv ask = {
      .file = path, .item_column = "film", .score_column = "stars", .delimiter = ',', .query = query};
  struct cv_data data;
  struct cv_why why;
  (void)path_of(name);
  (void)snprintf(ask.worker_column, sizeof(ask.worker_column), "%s", has_persons ? "person" : "");
  ask.format = strcmp(name, "r.jsonl") == 0 ? CV_FORMAT_JSONL
               : strcmp(name, "r.db") == 0  ? CV_FORMAT_SQLITE
                                            : CV_FORMAT_CSV;
  double start = cv_bench_seconds();
  if (cv_data_read(&ask, false, &data, &why) != CV_OK) {
    (void)fprintf(stderr, "%s\n", why.text);
    exit(1);
  }
  double took = cv_bench_seconds() - start;
  cv_data_fini(&data);
  return took;
}

/* In a process of its own, whose memory is that of the reader. */
static void measure(const char *name, bool has_persons) {
  (void)fflush(stdout);
  pid_t child = fork();
  CV_REQUIRE(child >= 0);
  if (child == 0) {
    double took[RUNS];
    struct rusage before, after;
    (void)getrusage(RUSAGE_SELF, &before);
    for (int run = 0; run < RUNS; run++) {
      took[run] = read_once(name, has_persons);
    }
    (void)getrusage(RUSAGE_SELF, &after);
    qsort(took, RUNS, sizeof(*took), cv_bench_compare);
    (void)printf("%-10s %-8s median %6.3f s of CPU, best %6.3f s; memory %+ld KiB\n", name,
                 has_persons ? "persons" : "", took[RUNS / 2], took[0], after.ru_maxrss - before.ru_maxrss);
    (void)fflush(stdout);
    _exit(0);
  }
  int status;
  CV_REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

/* Files are made by a child, too, so that its memory does not count. */
static void make(uint64_t rows) {
  pid_t child = fork();
  CV_REQUIRE(child >= 0);
  if (child == 0) {
    write_text(rows, "r.csv", false);
    write_text(rows, "r.jsonl", true);
    write_database(rows);
    _exit(0);
  }
  int status;
  CV_REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv) {
  uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
  CV_REQUIRE(mkdtemp(folder) != NULL);
  make(rows);
  for (size_t i = 0; i < CV_COUNT(names); i++) {
    measure(names[i], false);
    measure(names[i], true);
  }
  for (size_t i = 0; i < CV_COUNT(names); i++) {
    (void)unlink(path_of(names[i]));
  }
  return rmdir(folder) == 0 ? 0 : 1;
}
