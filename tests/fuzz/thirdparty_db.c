/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third-party's database with cells changed: a campaign with two plans behind it is stored once, then each input
 * edits a copy (table, column, row, kind of value, value: 5 bytes or more an edit) as somebody with sqlite3 could. The
 * daemon comes up and talks to its broker, or says in one line why not; so does replay.
 */
#include <fcntl.h>
#include <sqlite3.h>

#include "common/crypto/crypto.h"
#include "tests/fuzz/fuzz.h"
#include "thirdparty/core.h"
#include "thirdparty/replay.h"
#include "thirdparty/store.h"

enum { ARMS = 3, CELLS = 128, EDITS = 6, FILE_BYTES = 1 << 20 };

static char path[64];
static uint8_t *template;
static size_t template_n;
static struct cell { char table[32], column[32]; } cell[CELLS];
static size_t cells;

static void note(void *data, const char *peer, const char *line) {
  (void)data;
  (void)peer;
  fuzz_line(line);
}

static struct cv_ranker *ranker_new(struct cv_rng_seeded *rng) {
  const struct cv_ranker_setup setup = {
      .digest = cv_sha256, .rng = &rng->rng, .program = "fuzz", .note = note, .limits = CV_RANKER_DEFAULTS};
  struct cv_ranker *ranker;
  cv_rng_seeded_init(rng, 1, 0, 0, 0);
  CV_REQUIRE(cv_ranker_new(&setup, &ranker) == CV_OK);
  return ranker;
}

static void drop_files(void) {
  static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
  for (size_t i = 0; i < CV_COUNT(ends); i++) {
    char name[80];
    (void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
    (void)unlink(name);
  }
}

/* ---- the template ---- */

static const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION, .program = "fuzz"};

/* Stores and takes what leaves; the last plan that was asked for is accepted and released. */
static void turn(struct cv_ranker *ranker, struct cv_ranker_link *link, struct cv_store *store, uint64_t *releases) {
  struct cv_batch batch;
  struct cv_ranker_out out;
  struct cv_why why = {.text = ""};
  struct cv_rank_release release[ARMS];
  size_t n = 0;
  CV_REQUIRE(cv_ranker_flush(ranker, &batch) == CV_OK && cv_store_apply(store, &batch, &why) == CV_OK);
  cv_batch_fini(&batch);
  cv_ranker_committed(ranker);
  while (cv_ranker_next(ranker, &out)) {
    for (size_t i = 0; i < out.frame->plans; i++) {
      const struct cv_plan *plan = &out.frame->plan[i].plan;
      for (n = 0; n < plan->wants && n < ARMS; n++) {
        release[n] = (struct cv_rank_release){.campaign = 1};
        release[n].release = (struct cv_release){.number = ++*releases,
                                                 .plan = plan->number,
                                                 .arm = plan->want[n].arm,
                                                 .tokens = plan->number * plan->want[n].tokens,
                                                 .noise = {1, {{2, 1}}}};
        release[n].release.noisy_sum = (int64_t)(release[n].release.tokens << (17 + n));
      }
    }
  }
  struct cv_rank_number accept = {.campaign = 1, .number = n == 0 ? 0 : release[0].release.plan};
  const struct cv_rank_frame frame = {.releases = n, .release = release, .accepted = 1, .accept = &accept};
  const struct cv_rank_frame first = {.accepted = 1, .accept = &accept};
  if (n > 0) {
    CV_REQUIRE(cv_ranker_frame(ranker, link, &first) == CV_OK && cv_ranker_frame(ranker, link, &frame) == CV_OK);
  }
}

static void converse(struct cv_store *store) {
  struct cv_rng_seeded rng;
  struct cv_ranker *ranker = ranker_new(&rng);
  struct cv_ranker_link *link;
  struct cv_label names[ARMS] = {{"a"}, {"b"}, {"c"}};
  struct cv_rank_open open = {.spec = {.name = "fuzz",
                                       .arms = ARMS,
                                       .names = names,
                                       .epsilon_micro = 250000,
                                       .tokens_per_worker = 1,
                                       .tokens = 1 << 30,
                                       .policy = {.name = "ppar"},
                                       .mechanism = {.name = "hybrid"},
                                       .privatizer = {.name = "none"}},
                              .position = {.campaign = 1}};
  uint64_t releases = 0;
  CV_REQUIRE(cv_params_set_number(&open.spec.policy.params, "alpha", 0.05) == CV_OK);
  CV_REQUIRE(cv_params_set_number(&open.spec.policy.params, "tokens_per_round", 10) == CV_OK);
  CV_REQUIRE(cv_ranker_connected(ranker, "alice", NULL, &link) == CV_OK);
  CV_REQUIRE(cv_ranker_frame(ranker, link, &(struct cv_rank_frame){.hello = hello, .opens = 1, .open = &open}) ==
             CV_OK);
  for (int i = 0; i < 3; i++) {
    turn(ranker, link, store, &releases);
  }
  CV_REQUIRE(releases >= 2 * ARMS);
  cv_ranker_free(ranker);
}

static int keep_cell(void *data, int n, char **value, char **name) {
  (void)data;
  (void)name;
  CV_REQUIRE(n == 2 && cells < CELLS);
  (void)snprintf(cell[cells].table, sizeof(cell[cells].table), "%s", value[0]);
  (void)snprintf(cell[cells++].column, sizeof(cell[cells].column), "%s", value[1]);
  return 0;
}

static void make_template(void) {
  struct cv_store *store;
  struct cv_why why = {.text = ""};
  sqlite3 *db;
  (void)snprintf(path, sizeof(path), "/dev/shm/crowdveil-fuzz-%d.db", (int)getpid());
  drop_files();
  (void)atexit(drop_files);
  CV_REQUIRE(cv_store_open(path, NULL, &store, &why) == CV_OK);
  converse(store);
  cv_store_close(store);
  CV_REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
  CV_REQUIRE(sqlite3_exec(db,
                          "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c"
                          " WHERE m.type = 'table' ORDER BY 1, 2",
                          keep_cell, NULL, NULL) == SQLITE_OK);
  CV_REQUIRE(sqlite3_close(db) == SQLITE_OK && cells > 40);
  FILE *file = fopen(path, "rb");
  template = malloc(FILE_BYTES);
  CV_REQUIRE(file != NULL && template != NULL);
  template_n = fread(template, 1, FILE_BYTES, file);
  CV_REQUIRE(fclose(file) == 0 && template_n > 0 && template_n < FILE_BYTES);
}

/* ---- an input ---- */

static void bind_value(sqlite3_stmt *stmt, struct cv_reader *in, uint8_t kind) {
  static const int64_t special[] = {0, 1, -1, 2, 3, 4096, INT64_MAX, INT64_MIN, UINT32_MAX, 1 << 20};
  uint8_t byte = cv_read_u8(in);
  size_t left = (size_t)(in->end - in->at), n = byte < left ? byte : left;
  switch (kind % 6) {
    case 0:
      (void)sqlite3_bind_int64(stmt, 1, special[byte % CV_COUNT(special)]);
      break;
    case 1:
      (void)sqlite3_bind_int64(stmt, 1, (int64_t)cv_read_u64(in));
      break;
    case 2:
      (void)sqlite3_bind_double(stmt, 1, cv_read_f64(in));
      break;
    case 3:
      (void)sqlite3_bind_text(stmt, 1, (const char *)cv_read(in, n), (int)n, SQLITE_TRANSIENT);
      break;
    case 4:
      (void)sqlite3_bind_blob(stmt, 1, cv_read(in, n), (int)n, SQLITE_TRANSIENT);
      break;
    default:
      (void)sqlite3_bind_null(stmt, 1);
  }
}

/* The cells of a column that equal that of one row; what the schema does not allow is not done. */
static void edit(sqlite3 *db, struct cv_reader *in) {
  const struct cell *at = &cell[cv_read_u8(in) % cells];
  unsigned row = cv_read_u8(in) % 8;
  uint8_t kind = cv_read_u8(in);
  char sql[300];
  sqlite3_stmt *stmt;
  if (kind >= 0xf8) {
    (void)snprintf(sql, sizeof(sql), "DELETE FROM %s WHERE %s IS (SELECT %s FROM %s LIMIT 1 OFFSET %u) AND ?1 IS NOT 7",
                   at->table, at->column, at->column, at->table, row);
  } else if (kind >= 0xe0) { /* one byte of a blob */
    (void)snprintf(sql, sizeof(sql), "UPDATE %s SET %s = CAST(substr(%s, 1, %u) || char(?1) || substr(%s, %u) AS BLOB)",
                   at->table, at->column, at->column, kind * row, at->column, kind * row + 2);
  } else {
    (void)snprintf(sql, sizeof(sql),
                   "UPDATE OR IGNORE %s SET %s = ?1 WHERE %s IS (SELECT %s FROM %s LIMIT 1 OFFSET %u)", at->table,
                   at->column, at->column, at->column, at->table, row);
  }
  CV_REQUIRE(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK);
  bind_value(stmt, in, kind >= 0xe0 ? 0 : kind);
  (void)sqlite3_step(stmt);
  (void)sqlite3_finalize(stmt);
}

static void write_copy(struct cv_reader *in) {
  sqlite3 *db;
  drop_files();
  int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  CV_REQUIRE(fd >= 0 && write(fd, template, template_n) == (ssize_t)template_n && close(fd) == 0);
  CV_REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
  CV_REQUIRE(sqlite3_exec(db, "PRAGMA ignore_check_constraints = 1; PRAGMA synchronous = 0", NULL, NULL, NULL) ==
             SQLITE_OK);
  for (int i = 0; i < EDITS && in->at < in->end; i++) {
    edit(db, in);
  }
  CV_REQUIRE(sqlite3_close(db) == SQLITE_OK);
}

static enum cv_err restore(void *data, const struct cv_stored_campaign *stored, struct cv_why *why) {
  return cv_ranker_restore(data, stored, why);
}

static void come_up(void) {
  struct cv_rng_seeded rng;
  struct cv_store *store;
  struct cv_ranker_link *link;
  struct cv_ranker_out out;
  struct cv_batch batch;
  struct cv_why why = {.text = ""};
  if (cv_store_open(path, NULL, &store, &why) != CV_OK) {
    fuzz_line(why.text);
    return;
  }
  struct cv_ranker *ranker = ranker_new(&rng);
  if (cv_store_load(store, restore, ranker, &why) == CV_OK) {
    CV_REQUIRE(cv_ranker_connected(ranker, "alice", NULL, &link) == CV_OK);
    CV_REQUIRE(cv_ranker_frame(ranker, link, &(struct cv_rank_frame){.hello = hello}) == CV_OK);
    CV_REQUIRE(cv_ranker_flush(ranker, &batch) == CV_OK);
    cv_batch_fini(&batch);
    cv_ranker_committed(ranker);
    while (cv_ranker_next(ranker, &out)) {
    }
  } else {
    fuzz_line(why.text);
  }
  cv_ranker_free(ranker);
  cv_store_close(store);
}

static void hear_verdict(void *data, const struct cv_stored_campaign *campaign,
                         const struct cv_replay_verdict *verdict) {
  (void)data;
  (void)campaign;
  if (!verdict->agrees) {
    fuzz_line(verdict->first.text);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct cv_reader in = cv_reader_over(bytes, n);
  struct cv_why why = {.text = ""};
  if (template == NULL) {
    make_template();
  }
  write_copy(&in);
  if (cv_replay_database(path, hear_verdict, NULL, &why) != CV_OK) {
    fuzz_line(why.text);
  }
  come_up();
  return 0;
}
