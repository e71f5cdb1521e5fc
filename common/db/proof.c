/* SPDX-License-Identifier: Apache-2.0 */
/* The preupdate hook reports each change of a row; the sums are updated at once, and restored if the transaction
 * fails. */
#define SQLITE_ENABLE_PREUPDATE_HOOK 1 /* its declarations */
#include "common/db/proof.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/rng.h"
#include "common/base/table.h"
#include "common/db/db_hook.h"

enum {
  ROOT_GROUP = -1,
  ROOT_PART = 255,
  SUM_PART = 254,
  LANE_BYTES = 8 + CV_PROOF_CODE_BYTES,
  SEAL_HEAD = 12, /* bytes of nonce at the beginning and tag at the end of a sealed value that enter the code */
  SEAL_TAIL = 16,
  NAMED_COLUMNS = 2, /* columns that identify a row in messages */
};

/* The number of rows, and the sum of the second halves of their codes modulo 2^128. */
struct lane {
  uint64_t rows, low, high;
};

struct group {
  int64_t number;
  bool is_dirty;
  size_t stored_parts; /* the sums of so many parts are on disk, and in `stored`; of fewer in an older database */
  struct group *next_dirty;
  struct lane now[CV_PROOF_PARTS_MAX], then[CV_PROOF_PARTS_MAX];
  uint8_t stored[CV_PROOF_PARTS_MAX * LANE_BYTES], next[CV_PROOF_PARTS_MAX * LANE_BYTES];
  UT_hash_handle hh;
};

/* Indexes of the columns; -1 for none. */
struct columns {
  int count, group, code, sealed;
};

struct sums {
  struct cv_db *db;
  struct cv_proof_config config;
  struct cv_proof_part part[CV_PROOF_PARTS_MAX];
  struct columns columns[CV_PROOF_PARTS_MAX];
  struct group *groups, *dirty;
  struct lane now, then; /* sums over all groups */
  struct cv_buf bytes;
  enum cv_err err; /* error of the hook, which cannot return it */
};

struct code {
  uint8_t bytes[2 * CV_PROOF_CODE_BYTES];
};

/* ---- codes ---- */

/* A checksum of two chains over the words, against accidents only. */
static struct code checksum(const uint8_t *bytes, size_t n) {
  uint64_t a = n, b = ~(uint64_t)n;
  for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, bytes + i, n - i < sizeof(word) ? n - i : sizeof(word));
    a = cv_mix64(a ^ word);
    b = cv_mix64((b << 1 | b >> 63) + word + CV_RNG_GOLDEN);
  }
  /* The length starts both chains, so that trailing zero bytes count. */
  const uint64_t parts[] = {cv_mix64(a + 1), cv_mix64(b + 1), cv_mix64(a + b), cv_mix64(a - b)};
  struct code code;
  struct cv_buf out = {.data = code.bytes, .cap = sizeof(code.bytes)};
  for (size_t i = 0; i < CV_COUNT(parts); i++) {
    cv_buf_put_u64(&out, parts[i]);
  }
  return code;
}

static enum cv_err code_of_bytes(struct sums *sums, struct code *ret) {
  if (!cv_buf_ok(&sums->bytes)) {
    return CV_ERR_NOMEM;
  }
  if (sums->config.code != NULL) {
    return sums->config.code(sums->config.data, sums->bytes.data, sums->bytes.len, ret->bytes);
  }
  *ret = checksum(sums->bytes.data, sums->bytes.len);
  return CV_OK;
}

/* Sums do not depend on the order of rows, so that a change costs two codes and not a pass over the table. */
static void add(struct lane *lane, const struct lane *more) {
  lane->rows += more->rows;
  lane->high += more->high + (lane->low > UINT64_MAX - more->low);
  lane->low += more->low;
}

static void take(struct lane *lane, const struct lane *less) {
  lane->rows -= less->rows;
  lane->high -= less->high + (lane->low < less->low);
  lane->low -= less->low;
}

static struct lane lane_of(const struct code *code) {
  struct cv_reader half = cv_reader_over(code->bytes + CV_PROOF_CODE_BYTES, CV_PROOF_CODE_BYTES);
  struct lane lane = {.rows = 1};
  lane.low = cv_read_u64(&half);
  lane.high = cv_read_u64(&half);
  return lane;
}

static enum cv_err code_of_lane(struct sums *sums, uint8_t kind, uint8_t part, int64_t group, const struct lane *lane,
                                struct code *ret) {
  cv_buf_clear(&sums->bytes);
  cv_buf_put_u8(&sums->bytes, kind);
  cv_buf_put_u8(&sums->bytes, part);
  cv_buf_put_u64(&sums->bytes, (uint64_t)group);
  cv_buf_put_u64(&sums->bytes, lane->rows);
  cv_buf_put_u64(&sums->bytes, lane->low);
  cv_buf_put_u64(&sums->bytes, lane->high);
  return code_of_bytes(sums, ret);
}

/* ---- rows ---- */

/* The source of a row's values: a statement, the hook (old or new values), or the arguments of the SQL function. */
struct row {
  sqlite3_stmt *stmt;
  sqlite3 *old, *new;
  sqlite3_value **argument; /* the row without the code's column */
};

static void put_bytes(struct cv_buf *out, int type, const uint8_t *bytes, size_t n, bool is_sealed) {
  cv_buf_put_u8(out, (uint8_t)type);
  /* Nonce and tag stand for the whole value: the cipher authenticates the rest, and rows of megabytes stay cheap. */
  if (is_sealed && n >= SEAL_HEAD + SEAL_TAIL) {
    cv_buf_put_u32(out, (uint32_t)n);
    cv_buf_put(out, bytes, SEAL_HEAD);
    cv_buf_put(out, bytes + n - SEAL_TAIL, SEAL_TAIL);
  } else {
    cv_buf_put_bytes(out, bytes, n);
  }
}

static void put_integer(struct cv_buf *out, int64_t value) {
  cv_buf_put_u8(out, SQLITE_INTEGER);
  cv_buf_put_u64(out, (uint64_t)value);
}

/* SQLite may store a REAL with an integer value as INTEGER, so both give the same code. */
static void put_real(struct cv_buf *out, double value) {
  if (value >= -0x1p62 && value <= 0x1p62 && (double)(int64_t)value == value) {
    put_integer(out, (int64_t)value);
  } else {
    cv_buf_put_u8(out, SQLITE_FLOAT);
    cv_buf_put_f64(out, value);
  }
}

static void put_column(struct cv_buf *out, sqlite3_stmt *stmt, int i, bool is_sealed) {
  int type = sqlite3_column_type(stmt, i);
  if (type == SQLITE_INTEGER) {
    put_integer(out, sqlite3_column_int64(stmt, i));
  } else if (type == SQLITE_FLOAT) {
    put_real(out, sqlite3_column_double(stmt, i));
  } else if (type == SQLITE_NULL) {
    cv_buf_put_u8(out, SQLITE_NULL);
  } else {
    const uint8_t *bytes = type == SQLITE_TEXT ? sqlite3_column_text(stmt, i) : sqlite3_column_blob(stmt, i);
    put_bytes(out, type, bytes, (size_t)sqlite3_column_bytes(stmt, i), is_sealed);
  }
}

static void put_value(struct cv_buf *out, sqlite3_value *value, bool is_sealed) {
  int type = sqlite3_value_type(value);
  if (type == SQLITE_INTEGER) {
    put_integer(out, sqlite3_value_int64(value));
  } else if (type == SQLITE_FLOAT) {
    put_real(out, sqlite3_value_double(value));
  } else if (type == SQLITE_NULL) {
    cv_buf_put_u8(out, SQLITE_NULL);
  } else {
    const uint8_t *bytes = type == SQLITE_TEXT ? sqlite3_value_text(value) : sqlite3_value_blob(value);
    put_bytes(out, type, bytes, (size_t)sqlite3_value_bytes(value), is_sealed);
  }
}

static enum cv_err value_of(const struct row *row, int column, int code, sqlite3_value **ret) {
  if (row->argument != NULL) {
    *ret = row->argument[column - (code >= 0 && column > code)];
    return CV_OK;
  }
  int failed =
      row->old != NULL ? sqlite3_preupdate_old(row->old, column, ret) : sqlite3_preupdate_new(row->new, column, ret);
  return failed == SQLITE_OK ? CV_OK : CV_ERR_NOMEM;
}

static enum cv_err code_of_row(struct sums *sums, size_t part, const struct row *row, struct code *ret) {
  const struct columns *columns = &sums->columns[part];
  cv_buf_clear(&sums->bytes);
  /* The part is covered, too: a row cannot be moved to another table with the same columns. */
  cv_buf_put_u8(&sums->bytes, (uint8_t)part);
  for (int i = 0; i < columns->count; i++) {
    bool is_sealed = i == columns->sealed;
    if (i == columns->code) {
      continue;
    }
    if (row->stmt != NULL) {
      put_column(&sums->bytes, row->stmt, i, is_sealed);
    } else {
      sqlite3_value *value;
      CV_TRY(value_of(row, i, columns->code, &value));
      put_value(&sums->bytes, value, is_sealed);
    }
  }
  return code_of_bytes(sums, ret);
}

/* ---- sums ---- */

static enum cv_err group_of(struct sums *sums, int64_t number, struct group **ret) {
  struct group *group;
  HASH_FIND(hh, sums->groups, &number, sizeof(number), group);
  if (group == NULL) {
    group = calloc(1, sizeof(*group));
    if (group == NULL) {
      return CV_ERR_NOMEM;
    }
    group->number = number;
    if (CV_TABLE_ADD(sums->groups, number, group) != CV_OK) {
      free(group);
      return CV_ERR_NOMEM;
    }
  }
  *ret = group;
  return CV_OK;
}

static void mark(struct sums *sums, struct group *group) {
  if (!group->is_dirty) {
    group->is_dirty = true;
    group->next_dirty = sums->dirty;
    sums->dirty = group;
  }
}

static enum cv_err count_change(struct sums *sums, size_t part, const struct row *row, bool comes) {
  const struct columns *columns = &sums->columns[part];
  struct code code;
  struct group *group;
  int64_t number = 0;
  if (columns->group >= 0) {
    sqlite3_value *value;
    CV_TRY(value_of(row, columns->group, -1, &value));
    number = sqlite3_value_int64(value);
  }
  CV_TRY(group_of(sums, number, &group));
  CV_TRY(code_of_row(sums, part, row, &code));
  struct lane lane = lane_of(&code);
  (comes ? add : take)(&group->now[part], &lane);
  (comes ? add : take)(&sums->now, &lane);
  mark(sums, group);
  return CV_OK;
}

static void on_change(void *data, sqlite3 *handle, int op, const char *database, const char *table,
                      sqlite3_int64 old_key, sqlite3_int64 new_key) {
  struct sums *sums = data;
  size_t part = 0;
  while (part < sums->config.parts && strcmp(sums->part[part].table, table) != 0) {
    part++;
  }
  if (part == sums->config.parts || sums->err != CV_OK) {
    return;
  }
  /* A change outside a transaction would be stored before its sums. */
  CV_REQUIRE(sqlite3_get_autocommit(handle) == 0);
  const struct row old = {.old = handle}, new = {.new = handle};
  if (op != SQLITE_INSERT) {
    sums->err = count_change(sums, part, &old, false);
  }
  if (op != SQLITE_DELETE && sums->err == CV_OK) {
    sums->err = count_change(sums, part, &new, true);
  }
}

static void row_code(sqlite3_context *context, int arguments, sqlite3_value **argument) {
  struct sums *sums = sqlite3_user_data(context);
  struct code code;
  int part = sqlite3_value_int(argument[0]);
  if (part < 0 || (size_t)part >= sums->config.parts || sums->columns[part].code < 0 ||
      arguments != sums->columns[part].count) { /* argument 0 is the part, in place of the code */
    sqlite3_result_error(context, "row_code: arguments do not fit the table", -1);
    return;
  }
  const struct row row = {.argument = argument + 1};
  if (code_of_row(sums, (size_t)part, &row, &code) != CV_OK) {
    sqlite3_result_error_nomem(context);
    return;
  }
  sqlite3_result_blob(context, code.bytes, CV_PROOF_CODE_BYTES, SQLITE_TRANSIENT);
}

/* ---- writing ---- */

static bool is_empty(const struct sums *sums, const struct group *group) {
  uint64_t rows = 0;
  for (size_t i = 0; i < sums->config.parts; i++) {
    rows |= group->now[i].rows;
  }
  return rows == 0;
}

/* The values to store for a changed group: new codes of its sums. */
static enum cv_err encode_group(struct sums *sums, struct group *group) {
  struct cv_buf out = {.data = group->next, .cap = sizeof(group->next)};
  for (size_t i = 0; i < sums->config.parts; i++) {
    struct code code;
    /* Unchanged tables of the group keep their code: a commit costs one code per table that it changed. */
    if (i < group->stored_parts && memcmp(&group->now[i], &group->then[i], sizeof(group->now[i])) == 0) {
      cv_buf_put(&out, group->stored + i * LANE_BYTES, LANE_BYTES);
      continue;
    }
    CV_TRY(code_of_lane(sums, SUM_PART, (uint8_t)i, group->number, &group->now[i], &code));
    cv_buf_put_u64(&out, group->now[i].rows);
    cv_buf_put(&out, code.bytes, CV_PROOF_CODE_BYTES);
  }
  return CV_OK;
}

static enum cv_err put(struct sums *sums, int64_t group, const uint8_t *bytes, size_t n, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(sums->db, "INSERT INTO proof VALUES (?, ?) ON CONFLICT DO UPDATE SET codes = excluded.codes",
                       &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, group);
  (void)sqlite3_bind_blob(stmt, 2, bytes, (int)n, SQLITE_STATIC);
  return cv_db_run(sums->db, stmt, why);
}

static enum cv_err no_memory(const struct sums *sums, enum cv_err err, struct cv_why *why) {
  return cv_fail(why, err, "%s: %s", cv_db_path(sums->db), cv_err_text(err));
}

static enum cv_err write_group(struct sums *sums, struct group *group, struct cv_why *why) {
  sqlite3_stmt *stmt;
  /* Groups come and go with campaigns; the root's sum has a row less, so that deletion is no way to hide rows. */
  if (is_empty(sums, group)) {
    CV_TRY(cv_db_prepare(sums->db, "DELETE FROM proof WHERE grp = ?", &stmt, why));
    (void)sqlite3_bind_int64(stmt, 1, group->number);
    return cv_db_run(sums->db, stmt, why);
  }
  enum cv_err err = encode_group(sums, group);
  return err == CV_OK ? put(sums, group->number, group->next, sums->config.parts * LANE_BYTES, why)
                      : no_memory(sums, err, why);
}

static enum cv_err write_root(struct sums *sums, struct cv_why *why) {
  struct code code;
  enum cv_err err = code_of_lane(sums, ROOT_PART, 0, ROOT_GROUP, &sums->now, &code);
  return err == CV_OK ? put(sums, ROOT_GROUP, code.bytes, CV_PROOF_CODE_BYTES, why) : no_memory(sums, err, why);
}

static enum cv_err write_sums(void *data, struct cv_why *why) {
  struct sums *sums = data;
  /* The hook cannot stop a statement, but its error stops the commit. */
  if (sums->err != CV_OK) {
    return no_memory(sums, sums->err, why);
  }
  for (struct group *group = sums->dirty; group != NULL; group = group->next_dirty) {
    CV_TRY(write_group(sums, group, why));
  }
  return sums->dirty == NULL ? CV_OK : write_root(sums, why);
}

static struct group *pop_dirty(struct sums *sums) {
  struct group *group = sums->dirty;
  if (group != NULL) {
    sums->dirty = group->next_dirty;
    group->is_dirty = false;
  }
  return group;
}

static void keep_sums(void *data) {
  struct sums *sums = data;
  for (struct group *group = pop_dirty(sums); group != NULL; group = pop_dirty(sums)) {
    memcpy(group->then, group->now, sizeof(group->then));
    memcpy(group->stored, group->next, sizeof(group->stored));
    group->stored_parts = sums->config.parts;
    if (is_empty(sums, group)) {
      CV_REQUIRE(sums->groups != NULL);
      HASH_DEL(sums->groups, group);
      free(group);
    }
  }
  sums->then = sums->now;
}

static void undo_sums(void *data) {
  struct sums *sums = data;
  for (struct group *group = pop_dirty(sums); group != NULL; group = pop_dirty(sums)) {
    memcpy(group->now, group->then, sizeof(group->now));
  }
  /* An error of the hook belonged to the transaction that is undone. */
  sums->now = sums->then;
  sums->err = CV_OK;
}

static void group_free(struct group *group) {
  free(group);
}

static void free_sums(void *data) {
  struct sums *sums = data;
  CV_TABLE_DRAIN(sums->groups, group_free);
  cv_buf_fini(&sums->bytes);
  free(sums);
}

static const struct cv_db_hook hook = {
    .committing = write_sums, .committed = keep_sums, .rolled_back = undo_sums, .closed = free_sums};

/* ---- reading ---- */

/* Reports a damaged row by its leading integer columns: "campaign 2, number 7". */
static enum cv_err fail_row(const struct sums *sums, size_t part, sqlite3_stmt *stmt, struct cv_why *why) {
  char name[128] = "";
  int named = 0;
  for (int i = 0; i < sums->columns[part].count && named < NAMED_COLUMNS; i++) {
    if (sqlite3_column_type(stmt, i) != SQLITE_INTEGER) {
      break;
    }
    size_t used = strlen(name);
    (void)sqlite3_snprintf((int)(sizeof(name) - used), name + used, "%s%s %lld", named++ > 0 ? ", " : "",
                           sqlite3_column_name(stmt, i), sqlite3_column_int64(stmt, i));
  }
  return cv_fail(why, CV_ERR_DAMAGED, "%s: table %s, row %s: not as it was stored; expected its code to fit",
                 cv_db_path(sums->db), sums->part[part].table, name);
}

/* Checks all rows of the statement, and adds them to the sums of their groups, or to `one`. */
static enum cv_err read_rows(struct sums *sums, size_t part, sqlite3_stmt *stmt, struct lane *one, struct cv_why *why) {
  const struct columns *columns = &sums->columns[part];
  int found;
  for (;;) {
    struct code code;
    struct group *group = NULL;
    CV_TRY(cv_db_step(sums->db, stmt, &found, why));
    if (found == 0) {
      return CV_OK;
    }
    const struct row row = {.stmt = stmt};
    enum cv_err err = code_of_row(sums, part, &row, &code);
    if (err == CV_OK && !sums->config.is_new && columns->code >= 0 &&
        (sqlite3_column_bytes(stmt, columns->code) != CV_PROOF_CODE_BYTES ||
         memcmp(sqlite3_column_blob(stmt, columns->code), code.bytes, CV_PROOF_CODE_BYTES) != 0)) {
      return fail_row(sums, part, stmt, why);
    }
    /* At the start rows go to their groups' sums; a later check of one group only compares. */
    if (err == CV_OK && one == NULL) {
      err = group_of(sums, columns->group < 0 ? 0 : sqlite3_column_int64(stmt, columns->group), &group);
    }
    if (err != CV_OK) {
      return no_memory(sums, err, why);
    }
    struct lane lane = lane_of(&code);
    add(one != NULL ? one : &group->now[part], &lane);
  }
}

/* Prepares a statement outside the cache, whose keys are addresses of literals. */
static enum cv_err open_rows(struct sums *sums, const struct cv_proof_part *part, bool one_group, sqlite3_stmt **ret,
                             struct cv_why *why) {
  char *sql = one_group ? sqlite3_mprintf("SELECT * FROM \"%w\" WHERE \"%w\" = ?", part->table, part->group)
                        : sqlite3_mprintf("SELECT * FROM \"%w\"", part->table);
  int code = sql == NULL ? SQLITE_NOMEM : sqlite3_prepare_v2(cv_db_handle(sums->db), sql, -1, ret, NULL);
  sqlite3_free(sql);
  enum cv_err err = code == SQLITE_OK ? CV_OK : cv_db_failed(sums->db, code, why);
  return err == CV_ERR_DB ? CV_ERR_DAMAGED : err; /* the table or a column is missing */
}

static int column_named(sqlite3_stmt *stmt, const char *name) {
  for (int i = 0; name != NULL && i < sqlite3_column_count(stmt); i++) {
    if (strcmp(sqlite3_column_name(stmt, i), name) == 0) {
      return i;
    }
  }
  return -1;
}

static enum cv_err find_columns(struct sums *sums, struct cv_why *why) {
  for (size_t i = 0; i < sums->config.parts; i++) {
    const struct cv_proof_part *part = &sums->part[i];
    sqlite3_stmt *stmt = NULL;
    CV_TRY(open_rows(sums, part, false, &stmt, why));
    struct columns columns = {.count = sqlite3_column_count(stmt),
                              .group = column_named(stmt, part->group),
                              .code = column_named(stmt, part->code),
                              .sealed = column_named(stmt, part->sealed)};
    (void)sqlite3_finalize(stmt);
    sums->columns[i] = columns;
    if ((columns.group < 0) != (part->group == NULL) || (columns.code < 0) != (part->code == NULL) ||
        (columns.sealed < 0) != (part->sealed == NULL)) {
      return cv_fail(why, CV_ERR_DAMAGED, "%s: table %s: a column is missing", cv_db_path(sums->db), part->table);
    }
  }
  return CV_OK;
}

static enum cv_err read_part(struct sums *sums, size_t part, struct cv_why *why) {
  sqlite3_stmt *stmt = NULL;
  CV_TRY(open_rows(sums, &sums->part[part], false, &stmt, why));
  enum cv_err err = read_rows(sums, part, stmt, NULL, why);
  (void)sqlite3_finalize(stmt);
  return err;
}

/* Reads the stored codes of all groups and the root code; *ret_root is empty if there is none. */
static enum cv_err read_stored(struct sums *sums, struct cv_buf *root, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int found;
  CV_TRY(cv_db_prepare(sums->db, "SELECT grp, codes FROM proof", &stmt, why));
  for (;;) {
    CV_TRY(cv_db_step(sums->db, stmt, &found, why));
    if (found == 0) {
      return cv_buf_ok(root) ? CV_OK : no_memory(sums, CV_ERR_NOMEM, why);
    }
    int64_t number = sqlite3_column_int64(stmt, 0);
    size_t n = (size_t)sqlite3_column_bytes(stmt, 1);
    struct group *group = NULL;
    enum cv_err err = CV_OK;
    if (number == ROOT_GROUP) {
      cv_buf_put(root, sqlite3_column_blob(stmt, 1), n);
    } else if (n % LANE_BYTES != 0 || n > sums->config.parts * LANE_BYTES) {
      err = cv_fail(why, CV_ERR_DAMAGED, "%s: table proof, row %lld: %zu bytes; expected %zu", cv_db_path(sums->db),
                    (long long)number, n, sums->config.parts * LANE_BYTES);
    } else if (group_of(sums, number, &group) == CV_OK) {
      memcpy(group->stored, sqlite3_column_blob(stmt, 1), n);
      group->stored_parts = n / LANE_BYTES; /* fewer in a database of before the last parts were added */
    } else {
      err = no_memory(sums, CV_ERR_NOMEM, why);
    }
    if (err != CV_OK) {
      (void)sqlite3_reset(stmt);
      return err;
    }
  }
}

static enum cv_err fail_group(const struct sums *sums, size_t part, const struct group *group, const struct lane *is,
                              uint64_t expected, struct cv_why *why) {
  char of[64] = "";
  if (sums->part[part].group != NULL) {
    (void)sqlite3_snprintf((int)sizeof(of), of, ", %s %lld", sums->part[part].group, (long long)group->number);
  }
  return is->rows == expected
             ? cv_fail(why, CV_ERR_DAMAGED,
                       "%s: table %s%s: a row was changed, or restored from an older copy; expected the %llu rows that "
                       "were stored",
                       cv_db_path(sums->db), sums->part[part].table, of, (unsigned long long)expected)
             : cv_fail(why, CV_ERR_DAMAGED, "%s: table %s%s: %llu rows; expected the %llu that were stored",
                       cv_db_path(sums->db), sums->part[part].table, of, (unsigned long long)is->rows,
                       (unsigned long long)expected);
}

/* Compares a part's sums with the stored codes, group by group. */
static enum cv_err check_part(struct sums *sums, size_t part, struct cv_why *why) {
  for (const struct group *group = sums->groups; group != NULL; group = group->hh.next) {
    const struct lane *lane = &group->now[part];
    struct cv_reader stored = cv_reader_over(group->stored + part * LANE_BYTES, LANE_BYTES);
    uint64_t expected = cv_read_u64(&stored);
    bool is_stored = part < group->stored_parts;
    struct code code;
    /* The root's code covers this, too: a part cannot be cut off together with its rows. */
    if (!is_stored && lane->rows == 0) {
      continue;
    }
    enum cv_err err = code_of_lane(sums, SUM_PART, (uint8_t)part, group->number, lane, &code);
    if (err != CV_OK) {
      return no_memory(sums, err, why);
    }
    if (!is_stored || expected != lane->rows || memcmp(stored.at, code.bytes, CV_PROOF_CODE_BYTES) != 0) {
      return fail_group(sums, part, group, lane, expected, why);
    }
  }
  return CV_OK;
}

static void total(struct sums *sums) {
  for (struct group *group = sums->groups; group != NULL; group = group->hh.next) {
    for (size_t i = 0; i < sums->config.parts; i++) {
      add(&sums->now, &group->now[i]);
    }
    memcpy(group->then, group->now, sizeof(group->then));
  }
  sums->then = sums->now;
}

static enum cv_err check_root(struct sums *sums, const struct cv_buf *root, struct cv_why *why) {
  struct code code;
  enum cv_err err = code_of_lane(sums, ROOT_PART, 0, ROOT_GROUP, &sums->now, &code);
  if (err != CV_OK) {
    return no_memory(sums, err, why);
  }
  return root->len == CV_PROOF_CODE_BYTES && memcmp(root->data, code.bytes, CV_PROOF_CODE_BYTES) == 0
             ? CV_OK
             : cv_fail(why, CV_ERR_DAMAGED,
                       "%s: table proof: a part of the database was restored from an older copy; expected all of it to "
                       "be of one commit",
                       cv_db_path(sums->db));
}

static enum cv_err check_all(struct sums *sums, const struct cv_buf *root, struct cv_why *why) {
  bool has_sums = root->len > 0;
  for (size_t i = 0; i < sums->config.parts; i++) {
    /* Rows by their own codes first, because such a message names the row; then the sums, which also find missing
     * rows. */
    CV_TRY(read_part(sums, i, why));
    CV_TRY(has_sums ? check_part(sums, i, why) : CV_OK);
  }
  total(sums);
  if (!has_sums && sums->groups != NULL) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s: table proof: no codes of the rows; expected those that were stored",
                   cv_db_path(sums->db));
  }
  return has_sums ? check_root(sums, root, why) : CV_OK;
}

/* ---- beginning ---- */

/* The commit writes the sums of the new database's rows. */
static enum cv_err sum_new(struct sums *sums, struct cv_why *why) {
  for (size_t i = 0; i < sums->config.parts; i++) {
    CV_TRY(read_part(sums, i, why));
  }
  total(sums);
  for (struct group *group = sums->groups; group != NULL; group = group->hh.next) {
    mark(sums, group);
  }
  sums->config.is_new = false;
  return CV_OK;
}

static enum cv_err begin(struct sums *sums, struct cv_why *why) {
  sqlite3 *handle = cv_db_handle(sums->db);
  struct cv_buf root = {0};
  CV_TRY(find_columns(sums, why));
  /* DIRECTONLY: a view or trigger that was added to the file must not be able to make codes. */
  int failed = sqlite3_create_function_v2(
      handle, "row_code", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, sums, row_code, NULL, NULL, NULL);
  if (failed != SQLITE_OK) {
    return no_memory(sums, CV_ERR_NOMEM, why);
  }
  enum cv_err err = sums->config.is_new ? CV_OK : read_stored(sums, &root, why);
  if (err == CV_OK) {
    err = sums->config.is_new ? sum_new(sums, why) : check_all(sums, &root, why);
  }
  cv_buf_fini(&root);
  if (err == CV_OK) {
    (void)sqlite3_preupdate_hook(handle, on_change, sums);
  }
  return err;
}

static enum cv_err find_table(struct cv_db *db, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int found;
  CV_TRY(cv_db_prepare(db, "SELECT 1 FROM sqlite_schema WHERE name = 'proof'", &stmt, why));
  CV_TRY(cv_db_step(db, stmt, &found, why));
  (void)sqlite3_reset(stmt);
  return found != 0
             ? CV_OK
             : cv_fail(why, CV_ERR_DAMAGED, "%s: table proof is missing; expected codes of the rows", cv_db_path(db));
}

enum cv_err cv_proof_begin(struct cv_db *db, const struct cv_proof_config *config, struct cv_why *why) {
  CV_REQUIRE(config->parts <= CV_PROOF_PARTS_MAX && cv_db_hook_data(db) == NULL);
  CV_TRY(find_table(db, why));
  struct sums *sums = calloc(1, sizeof(*sums));
  if (sums == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", cv_db_path(db));
  }
  sums->db = db;
  sums->config = *config;
  memcpy(sums->part, config->part, config->parts * sizeof(*config->part));
  cv_db_set_hook(db, &hook, sums); /* the database frees it: its preupdate hook and SQL function use it */
  return begin(sums, why);
}

static enum cv_err check_group_part(struct sums *sums, size_t part, const struct group *group, struct cv_why *why) {
  struct lane lane = {0};
  sqlite3_stmt *stmt = NULL;
  CV_TRY(open_rows(sums, &sums->part[part], true, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, group->number);
  enum cv_err err = read_rows(sums, part, stmt, &lane, why);
  /* The sums in memory are the reference: they follow every change since the start, which checked them against the
   * disk. */
  (void)sqlite3_finalize(stmt);
  CV_TRY(err);
  return memcmp(&lane, &group->now[part], sizeof(lane)) == 0
             ? CV_OK
             : fail_group(sums, part, group, &lane, group->now[part].rows, why);
}

enum cv_err cv_proof_check(struct cv_db *db, int64_t number, struct cv_why *why) {
  struct sums *sums = cv_db_hook_data(db);
  const struct group none = {.number = number};
  struct group *group;
  if (sums == NULL) {
    return CV_OK;
  }
  CV_REQUIRE(sums->dirty == NULL);
  HASH_FIND(hh, sums->groups, &number, sizeof(number), group);
  for (size_t i = 0; i < sums->config.parts; i++) {
    if (sums->part[i].group != NULL) {
      CV_TRY(check_group_part(sums, i, group == NULL ? &none : group, why));
    }
  }
  return CV_OK;
}
