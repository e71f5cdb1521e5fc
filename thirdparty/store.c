/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "thirdparty/rows.h"

struct cv_thirdparty_store {
  struct cv_db *db;
};

/* Checksums before any row is used: a start must not decide from damaged releases. */
static enum cv_err open_db(const char *path, const char *vfs, struct cv_thirdparty_store *store, struct cv_why *why) {
  CV_TRY(cv_db_open(path, vfs, &CV_THIRDPARTY_SCHEMA, &store->db, why));
  return cv_thirdparty_prove(store->db, why);
}

enum cv_err cv_thirdparty_store_open(const char *path, const char *vfs, struct cv_thirdparty_store **ret,
                                     struct cv_why *why) {
  struct cv_thirdparty_store *store = calloc(1, sizeof(*store));
  if (store == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  enum cv_err err = open_db(path, vfs, store, why);
  if (err != CV_OK) {
    cv_thirdparty_store_close(store);
    return err;
  }
  *ret = store;
  return CV_OK;
}

void cv_thirdparty_store_close(struct cv_thirdparty_store *store) {
  if (store != NULL) {
    cv_db_close(store->db);
    free(store);
  }
}

enum cv_err cv_thirdparty_check_copy(const void *settings, const char *path, uint64_t *ret_commit, struct cv_why *why) {
  struct cv_db *db;
  CV_TRY(cv_db_open_readonly(path, &CV_THIRDPARTY_SCHEMA, &db, why));
  enum cv_err err = cv_thirdparty_prove(db, why);
  cv_db_close(db);
  *ret_commit = 0;
  return err;
}

struct cv_db *cv_thirdparty_store_database(const struct cv_thirdparty_store *store) {
  return store->db;
}

/* ---- writing ---- */

/* SQLITE_STATIC: SQLite does not copy bound values (a copy may fail), so they must live until the statement has run. */
static void bind_text(sqlite3_stmt *stmt, int at, const char *text) {
  (void)sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

/* SQLite has no unsigned 64-bit integers: store the signed number with the same bits. */
static void bind_u64(sqlite3_stmt *stmt, int at, uint64_t value) {
  (void)sqlite3_bind_int64(stmt, at, (sqlite3_int64)value);
}

static void bind_digest(sqlite3_stmt *stmt, int at, const struct cv_digest *digest) {
  (void)sqlite3_bind_blob(stmt, at, digest->bytes, sizeof(digest->bytes), SQLITE_STATIC);
}

static void bind_bytes(sqlite3_stmt *stmt, int at, const struct cv_buf *bytes) {
  (void)sqlite3_bind_blob(stmt, at, bytes->data, (int)bytes->len, SQLITE_STATIC);
}

static void write_params(const struct cv_params *params, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < params->count && used < size; i++) {
    const struct cv_param *param = &params->item[i];
    int n = param->is_text
                ? snprintf(text + used, size - used, "%s%s=%s", i > 0 ? " " : "", param->key, param->text)
                : snprintf(text + used, size - used, "%s%s=%.12g", i > 0 ? " " : "", param->key, param->number);
    used += n > 0 ? (size_t)n : 0;
  }
}

static enum cv_err find_id(struct cv_db *db, const struct cv_thirdparty_campaign_key *key, sqlite3_int64 *ret,
                           struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db, "SELECT id FROM campaign WHERE broker = ? AND number = ?", &stmt, why));
  bind_text(stmt, 1, key->broker);
  bind_u64(stmt, 2, key->campaign);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  if (row == 0) {
    return cv_fail(why, CV_ERR_DAMAGED, "campaign %" PRIu64 " of broker %s is not in the database", key->campaign,
                   key->broker);
  }
  sqlite3_int64 id = sqlite3_column_int64(stmt, 0);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  *ret = id;
  return CV_OK;
}

static enum cv_err insert_names(struct cv_db *db, sqlite3_int64 id, const struct cv_spec *spec, struct cv_why *why) {
  for (uint32_t i = 0; spec->names != NULL && i < spec->arms; i++) {
    sqlite3_stmt *stmt;
    CV_TRY(cv_db_prepare(db, "INSERT INTO item VALUES (?, ?, ?)", &stmt, why));
    (void)sqlite3_bind_int64(stmt, 1, id);
    (void)sqlite3_bind_int64(stmt, 2, i);
    bind_text(stmt, 3, spec->names[i]);
    CV_TRY(cv_db_run(db, stmt, why));
  }
  return CV_OK;
}

static enum cv_err insert_campaign(struct cv_db *db, const struct cv_delta *delta, struct cv_why *why) {
  const struct cv_spec *spec = &delta->spec;
  struct cv_buf bytes = {0};
  char params[CV_PARAMS_MAX * (2 * CV_PARAM_TEXT + 2)];
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db,
                       "INSERT INTO campaign (broker, number, name, arms, policy, policy_parameters, mechanism,"
                       " privatizer, epsilon, token_limit, seed, spec, spec_digest, state, end_code, note, closed,"
                       " releases, releases_hash, plans_accepted, plans_hash, last_plan, decisions, policy_done)"
                       " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?, '', 0, '', 0, 0, x'', 0, x'', 0, 0, 0)",
                       &stmt, why));
  /* For people who read the database; the programs read `spec`. */
  write_params(&spec->policy.params, params, sizeof(params));
  cv_spec_encode(spec, &bytes);
  if (!cv_buf_ok(&bytes)) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  bind_text(stmt, 1, delta->key.broker);
  bind_u64(stmt, 2, delta->key.campaign);
  bind_text(stmt, 3, spec->name);
  (void)sqlite3_bind_int64(stmt, 4, spec->arms);
  bind_text(stmt, 5, spec->policy.name);
  bind_text(stmt, 6, params);
  bind_text(stmt, 7, spec->mechanism.name);
  bind_text(stmt, 8, spec->privatizer.name);
  (void)sqlite3_bind_double(stmt, 9, (double)spec->epsilon_micro / (double)CV_MICRO);
  bind_u64(stmt, 10, spec->tokens);
  bind_u64(stmt, 11, delta->seed);
  bind_bytes(stmt, 12, &bytes);
  bind_digest(stmt, 13, &delta->spec_digest);
  enum cv_err err = cv_db_run(db, stmt, why);
  cv_buf_fini(&bytes);
  return err;
}

static enum cv_err update_row(struct cv_db *db, sqlite3_int64 id, const struct cv_thirdparty_campaign_row *row,
                              struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db,
                       "UPDATE campaign SET state = ?, end_code = ?, note = ?, closed = ?, releases = ?,"
                       " releases_hash = ?, plans_accepted = ?, plans_hash = ?, last_plan = ?, decisions = ?,"
                       " policy_done = ? WHERE id = ?",
                       &stmt, why));
  bind_text(stmt, 1, cv_end_text(row->end));
  (void)sqlite3_bind_int64(stmt, 2, row->end);
  bind_text(stmt, 3, row->note);
  (void)sqlite3_bind_int64(stmt, 4, row->closed);
  bind_u64(stmt, 5, row->releases);
  bind_digest(stmt, 6, &row->releases_hash);
  bind_u64(stmt, 7, row->accepted);
  bind_digest(stmt, 8, &row->plans_hash);
  bind_u64(stmt, 9, row->plan);
  bind_u64(stmt, 10, row->decisions);
  (void)sqlite3_bind_int64(stmt, 11, row->policy_done);
  (void)sqlite3_bind_int64(stmt, 12, id);
  return cv_db_run(db, stmt, why);
}

static enum cv_err delete_rows(struct cv_db *db, const char *sql, sqlite3_int64 id, uint64_t plan, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db, sql, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  bind_u64(stmt, 2, plan);
  return cv_db_run(db, stmt, why);
}

/* The opponent that a want names, if it does. */
static enum cv_err write_opponent(struct cv_db *db, sqlite3_int64 id, const struct cv_plan *plan, uint32_t i,
                                  struct cv_why *why) {
  sqlite3_stmt *stmt;
  if (plan->want[i].opponent == 0) {
    return CV_OK;
  }
  CV_TRY(cv_db_prepare(db, "INSERT INTO plan_opponent VALUES (?, ?, ?, ?)", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  bind_u64(stmt, 2, plan->number);
  (void)sqlite3_bind_int64(stmt, 3, i);
  (void)sqlite3_bind_int64(stmt, 4, plan->want[i].opponent - 1);
  return cv_db_run(db, stmt, why);
}

static enum cv_err write_plan(struct cv_db *db, sqlite3_int64 id, const struct cv_stored_plan *stored,
                              struct cv_why *why) {
  const struct cv_plan *plan = &stored->plan;
  sqlite3_stmt *stmt;
  /* Replaced, with its wants: the broker's record of a number takes the place of a plan that the broker never ran. */
  CV_TRY(cv_db_prepare(db, "INSERT OR REPLACE INTO plan VALUES (?, ?, ?)", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  bind_u64(stmt, 2, plan->number);
  bind_text(stmt, 3, stored->recorded ? "broker" : "policy");
  CV_TRY(cv_db_run(db, stmt, why));
  CV_TRY(delete_rows(db, "DELETE FROM plan_want WHERE campaign = ? AND plan = ?", id, plan->number, why));
  CV_TRY(delete_rows(db, "DELETE FROM plan_opponent WHERE campaign = ? AND plan = ?", id, plan->number, why));
  for (uint32_t i = 0; i < plan->wants; i++) {
    CV_TRY(cv_db_prepare(db, "INSERT INTO plan_want VALUES (?, ?, ?, ?, ?)", &stmt, why));
    (void)sqlite3_bind_int64(stmt, 1, id);
    bind_u64(stmt, 2, plan->number);
    (void)sqlite3_bind_int64(stmt, 3, i);
    (void)sqlite3_bind_int64(stmt, 4, plan->want[i].arm);
    (void)sqlite3_bind_int64(stmt, 5, plan->want[i].tokens);
    CV_TRY(cv_db_run(db, stmt, why));
    CV_TRY(write_opponent(db, id, plan, i, why));
  }
  return CV_OK;
}

static enum cv_err write_release(struct cv_db *db, sqlite3_int64 id, const struct cv_release *release,
                                 struct cv_why *why) {
  sqlite3_stmt *stmt;
  /* No replacement: a release that is applied a second time fails the commit instead of changing what was decided
   * from. */
  CV_TRY(cv_db_prepare(db, "INSERT INTO release VALUES (?, ?, ?, ?, ?, ?, ?)", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  bind_u64(stmt, 2, release->number);
  bind_u64(stmt, 3, release->plan);
  (void)sqlite3_bind_int64(stmt, 4, release->arm);
  bind_u64(stmt, 5, release->tokens);
  (void)sqlite3_bind_int64(stmt, 6, release->noisy_sum);
  double tokens = release->tokens > 0 ? (double)release->tokens : 1; /* an empty one sums to 0 */
  (void)sqlite3_bind_double(stmt, 7, (double)release->noisy_sum / (double)CV_GRID / tokens);
  CV_TRY(cv_db_run(db, stmt, why));
  if (release->last) {
    CV_TRY(cv_db_prepare(db, "INSERT INTO used_up VALUES (?, ?, ?)", &stmt, why));
    (void)sqlite3_bind_int64(stmt, 1, id);
    (void)sqlite3_bind_int64(stmt, 2, release->arm);
    bind_u64(stmt, 3, release->number);
    CV_TRY(cv_db_run(db, stmt, why));
  }
  for (uint32_t i = 0; i < release->noise.groups; i++) {
    CV_TRY(cv_db_prepare(db, "INSERT INTO release_noise VALUES (?, ?, ?, ?, ?)", &stmt, why));
    (void)sqlite3_bind_int64(stmt, 1, id);
    bind_u64(stmt, 2, release->number);
    (void)sqlite3_bind_int64(stmt, 3, i);
    (void)sqlite3_bind_double(stmt, 4, release->noise.group[i].scale);
    (void)sqlite3_bind_int64(stmt, 5, release->noise.group[i].count);
    CV_TRY(cv_db_run(db, stmt, why));
  }
  return CV_OK;
}

static enum cv_err write_decision(struct cv_db *db, sqlite3_int64 id, const struct cv_stored_decision *stored,
                                  struct cv_why *why) {
  const struct cv_decision *decision = &stored->decision;
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db, "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  bind_u64(stmt, 2, stored->number);
  bind_u64(stmt, 3, stored->plan);
  bind_u64(stmt, 4, stored->release);
  bind_text(stmt, 5, decision->kind == CV_DECISION_SETTLE ? "settle" : "remove");
  (void)sqlite3_bind_int64(stmt, 6, decision->arm);
  (void)sqlite3_bind_int64(stmt, 7, decision->rank_class);
  bind_u64(stmt, 8, decision->tokens);
  (void)sqlite3_bind_double(stmt, 9, decision->mean);
  (void)sqlite3_bind_double(stmt, 10, decision->radius);
  (void)sqlite3_bind_double(stmt, 11, decision->reference);
  return cv_db_run(db, stmt, why);
}

static enum cv_err write_parked(struct cv_db *db, sqlite3_int64 id, const struct cv_standing *standing,
                                struct cv_why *why) {
  sqlite3_stmt *stmt;
  if (standing->held == CV_HELD_NO) {
    CV_TRY(cv_db_prepare(db, "DELETE FROM parked WHERE campaign = ? AND arm = ?", &stmt, why));
  } else {
    CV_TRY(cv_db_prepare(db, "INSERT OR REPLACE INTO parked VALUES (?, ?, ?, ?, ?)", &stmt, why));
    (void)sqlite3_bind_int64(stmt, 3, standing->rank_last);
    (void)sqlite3_bind_int64(stmt, 4, standing->held);
    bind_text(stmt, 5, cv_held_text(standing->held));
  }
  (void)sqlite3_bind_int64(stmt, 1, id);
  (void)sqlite3_bind_int64(stmt, 2, standing->arm);
  return cv_db_run(db, stmt, why);
}

static enum cv_err write_contradiction(struct cv_db *db, sqlite3_int64 id, const struct cv_standing *standing,
                                       struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db,
                       standing->contradicts ? "INSERT OR REPLACE INTO contradiction VALUES (?, ?)"
                                             : "DELETE FROM contradiction WHERE campaign = ? AND arm = ?",
                       &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  (void)sqlite3_bind_int64(stmt, 2, standing->arm);
  return cv_db_run(db, stmt, why);
}

static enum cv_err write_standing(struct cv_db *db, sqlite3_int64 id, const struct cv_standing *standing,
                                  struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db, "INSERT OR REPLACE INTO standing VALUES (?, ?, ?, ?, ?, ?)", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  (void)sqlite3_bind_int64(stmt, 2, standing->arm);
  (void)sqlite3_bind_int64(stmt, 3, standing->rank_class);
  bind_u64(stmt, 4, standing->tokens);
  (void)sqlite3_bind_double(stmt, 5, standing->mean);
  (void)sqlite3_bind_double(stmt, 6, standing->radius);
  CV_TRY(cv_db_run(db, stmt, why));
  CV_TRY(write_contradiction(db, id, standing, why));
  return write_parked(db, id, standing, why);
}

static enum cv_err write_state(struct cv_db *db, sqlite3_int64 id, const struct cv_delta *delta, struct cv_why *why) {
  sqlite3_stmt *stmt;
  CV_TRY(cv_db_prepare(db, "INSERT OR REPLACE INTO policy_state VALUES (?, ?, ?)", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  bind_u64(stmt, 2, delta->row.state_plan);
  bind_bytes(stmt, 3, &delta->state);
  return cv_db_run(db, stmt, why);
}

/* The order matters: all other tables refer to the id of the campaign row. */
static enum cv_err write_delta(struct cv_db *db, const struct cv_delta *delta, struct cv_why *why) {
  sqlite3_int64 id = 0;
  if (delta->created) {
    CV_TRY(insert_campaign(db, delta, why));
  }
  CV_TRY(find_id(db, &delta->key, &id, why));
  CV_TRY(delta->created ? insert_names(db, id, &delta->spec, why) : CV_OK);
  CV_TRY(update_row(db, id, &delta->row, why));
  for (size_t i = 0; i < delta->plans; i++) {
    CV_TRY(write_plan(db, id, &delta->plan[i], why));
  }
  for (size_t i = 0; i < delta->releases; i++) {
    CV_TRY(write_release(db, id, &delta->release[i], why));
  }
  for (size_t i = 0; i < delta->decisions; i++) {
    CV_TRY(write_decision(db, id, &delta->decision[i], why));
  }
  for (size_t i = 0; i < delta->standings; i++) {
    CV_TRY(write_standing(db, id, &delta->standing[i], why));
  }
  return delta->has_state ? write_state(db, id, delta, why) : CV_OK;
}

enum cv_err cv_thirdparty_store_commit(struct cv_thirdparty_store *store, const struct cv_thirdparty_batch *batch,
                                       struct cv_why *why) {
  CV_TRY(cv_db_begin(store->db, why));
  /* All campaigns of the batch in one transaction: the letters of all of them wait for it. */
  enum cv_err err = CV_OK;
  for (const struct cv_delta *delta = batch->first; delta != NULL && err == CV_OK; delta = delta->next) {
    err = write_delta(store->db, delta, why);
  }
  if (err == CV_OK) {
    err = cv_db_commit(store->db, why);
  }
  if (err != CV_OK) {
    cv_db_rollback(store->db);
  }
  return err;
}

/* ---- reading ---- */

static enum cv_err load_state(struct cv_db *db, sqlite3_int64 id, struct cv_stored_campaign *stored,
                              struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db, "SELECT plan, state FROM policy_state WHERE campaign = ?", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  if (row == 0) {
    return cv_fail(why, CV_ERR_DAMAGED, "the policy's state is missing");
  }
  stored->row.state_plan = cv_row_u64(stmt, 0);
  cv_buf_put(&stored->state, sqlite3_column_blob(stmt, 1), (size_t)sqlite3_column_bytes(stmt, 1));
  CV_TRY(cv_db_step(db, stmt, &row, why));
  return cv_buf_ok(&stored->state) ? CV_OK : cv_fail(why, CV_ERR_NOMEM, "out of memory");
}

static enum cv_err load_plan(struct cv_db *db, sqlite3_int64 id, struct cv_stored_campaign *stored,
                             struct cv_why *why) {
  enum cv_err err = cv_thirdparty_rows_wants(db, id, stored->row.plan, stored->spec.arms, &stored->plan, why);
  if (err != CV_OK) {
    return err;
  }
  return load_state(db, id, stored, why);
}

static enum cv_err keep_release(void *data, const struct cv_release *release, struct cv_why *why) {
  struct cv_stored_campaign *stored = data;
  /* Each arm of a plan has one release, and a plan names each arm once. */
  if (stored->releases == stored->spec.arms) {
    return cv_fail(why, CV_ERR_DAMAGED, "more releases than arms after plan %" PRIu64, stored->row.state_plan);
  }
  if (stored->release == NULL) {
    stored->release = calloc(stored->spec.arms, sizeof(*stored->release));
    if (stored->release == NULL) {
      return cv_fail(why, CV_ERR_NOMEM, "out of memory");
    }
  }
  stored->release[stored->releases++] = *release;
  return CV_OK;
}

static enum cv_err load_open(struct cv_db *db, sqlite3_int64 id, struct cv_stored_campaign *stored,
                             struct cv_why *why) {
  /* The state includes all plans up to state_plan; only the releases of the plan after it are applied again. */
  CV_TRY(load_plan(db, id, stored, why));
  return cv_thirdparty_rows_releases(db, id, stored->row.state_plan + 1, UINT64_MAX, keep_release, stored, why);
}

/* Hands over the closed campaigns: only their keys are read. */
static enum cv_err load_closed(struct cv_db *db, cv_thirdparty_store_each_fn *each, void *data, struct cv_why *why) {
  sqlite3_stmt *stmt;
  /* From an index alone: a third-party keeps every campaign that it has ever closed. */
  CV_TRY(cv_db_prepare(db, "SELECT broker, number FROM campaign WHERE closed = 1 ORDER BY broker, number", &stmt, why));
  for (;;) {
    int row;
    CV_TRY(cv_db_step(db, stmt, &row, why));
    if (row == 0) {
      return CV_OK;
    }
    struct cv_stored_campaign stored = {.key.campaign = cv_row_u64(stmt, 1), .row.closed = true};
    const char *broker = (const char *)sqlite3_column_text(stmt, 0);
    int n = broker == NULL ? -1 : snprintf(stored.key.broker, sizeof(stored.key.broker), "%s", broker);
    enum cv_err err = n < 0 || (size_t)n >= sizeof(stored.key.broker)
                          ? cv_fail(why, CV_ERR_DAMAGED, "a row of table campaign is damaged: it has no broker")
                          : each(data, &stored, why);
    if (err != CV_OK) {
      (void)sqlite3_reset(stmt);
      return err;
    }
  }
}

/* Sets *id to the next open campaign after *id. */
static enum cv_err next_open(struct cv_db *db, sqlite3_int64 *id, bool *ret_found, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db, "SELECT id FROM campaign WHERE closed = 0 AND id > ? ORDER BY id LIMIT 1", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, *id);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  *ret_found = row != 0;
  *id = row != 0 ? sqlite3_column_int64(stmt, 0) : *id;
  (void)sqlite3_reset(stmt);
  return CV_OK;
}

enum cv_err cv_thirdparty_store_load(struct cv_thirdparty_store *store, cv_thirdparty_store_each_fn *each, void *data,
                                     struct cv_why *why) {
  sqlite3_int64 id = 0;
  CV_TRY(load_closed(store->db, each, data, why));
  for (;;) {
    struct cv_stored_campaign stored = {0};
    bool found;
    /* By number instead of one long statement: restoring reads other tables in between, with statements of its own. */
    CV_TRY(next_open(store->db, &id, &found, why));
    if (!found) {
      return CV_OK;
    }
    /* cv_thirdparty_rows_campaign() finds the next campaign after this number, open or closed: exactly this one. */
    sqlite3_int64 before = id - 1;
    CV_TRY(cv_thirdparty_rows_campaign(store->db, &before, &stored, &found, why));
    enum cv_err err = load_open(store->db, id, &stored, why);
    if (err != CV_OK) {
      cv_why_prefix(why, "campaign %" PRIu64 " of broker %s", stored.key.campaign, stored.key.broker);
    } else {
      err = each(data, &stored, why);
    }
    cv_stored_campaign_fini(&stored);
    CV_TRY(err);
  }
}
