/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t cv_row_u64(sqlite3_stmt *stmt, int column) {
  return (uint64_t)sqlite3_column_int64(stmt, column);
}

static bool read_digest(sqlite3_stmt *stmt, int column, struct cv_digest *ret) {
  if (sqlite3_column_bytes(stmt, column) != CV_DIGEST_BYTES) {
    return false;
  }
  memcpy(ret->bytes, sqlite3_column_blob(stmt, column), CV_DIGEST_BYTES);
  return true;
}

static bool read_text(sqlite3_stmt *stmt, int column, char *to, size_t size) {
  const char *text = (const char *)sqlite3_column_text(stmt, column);
  return text != NULL && snprintf(to, size, "%s", text) < (int)size;
}

static enum cv_err read_campaign(sqlite3_stmt *stmt, struct cv_stored_campaign *ret) {
  struct cv_thirdparty_campaign_row *row = &ret->row;
  struct cv_reader reader = cv_reader_over(sqlite3_column_blob(stmt, 4), (size_t)sqlite3_column_bytes(stmt, 4));
  int64_t end = sqlite3_column_int64(stmt, 6);
  /* Checksums find accidents only, so that a row with a fitting checksum may still hold anything: every field is
   * checked. */
  bool good = read_text(stmt, 1, ret->key.broker, sizeof(ret->key.broker)) && read_digest(stmt, 5, &ret->spec_digest) &&
              read_text(stmt, 7, row->note, sizeof(row->note)) && read_digest(stmt, 10, &row->releases_hash) &&
              read_digest(stmt, 12, &row->plans_hash) && end >= 0 && end < CV_END_COUNT;
  ret->key.campaign = cv_row_u64(stmt, 2);
  ret->seed = cv_row_u64(stmt, 3);
  row->end = good ? (enum cv_end)end : CV_END_NONE;
  row->closed = sqlite3_column_int64(stmt, 8) != 0;
  row->releases = cv_row_u64(stmt, 9);
  row->accepted = cv_row_u64(stmt, 11);
  row->plan = cv_row_u64(stmt, 13);
  row->decisions = cv_row_u64(stmt, 14);
  row->policy_done = sqlite3_column_int64(stmt, 15) != 0;
  enum cv_err err = good ? cv_spec_decode(&reader, &ret->spec) : CV_ERR_DAMAGED;
  /* A spec that does not pass the checks is damage, too: the policy is made from it. */
  return err == CV_OK ? cv_spec_check(&ret->spec, NULL) : err;
}

enum cv_err cv_thirdparty_rows_campaign(struct cv_db *db, sqlite3_int64 *id, struct cv_stored_campaign *ret,
                                        bool *ret_found, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db,
                       "SELECT id, broker, number, seed, spec, spec_digest, end_code, note, closed, releases,"
                       " releases_hash, plans_accepted, plans_hash, last_plan, decisions, policy_done"
                       " FROM campaign WHERE id > ? ORDER BY id LIMIT 1",
                       &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, *id);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  if (row == 0) {
    *ret_found = false;
    return CV_OK;
  }
  struct cv_stored_campaign stored = {0};
  sqlite3_int64 found = sqlite3_column_int64(stmt, 0);
  /* Read before the step below: it ends the statement, whose columns `stored` is copied from. */
  enum cv_err read = read_campaign(stmt, &stored);
  enum cv_err err = cv_db_step(db, stmt, &row, why);
  if (err == CV_OK && read == CV_ERR_NOMEM) {
    err = cv_fail(why, read, "out of memory");
  } else if (err == CV_OK && read != CV_OK) {
    err = cv_fail(why, CV_ERR_DAMAGED, "row %lld of table campaign is damaged", (long long)found);
  }
  if (err != CV_OK) {
    cv_stored_campaign_fini(&stored);
    return err;
  }
  *id = found;
  *ret = stored;
  *ret_found = true;
  return CV_OK;
}

static const char wants[] =
    "SELECT arm, tokens, opponent FROM plan_want LEFT JOIN plan_opponent"
    "  USING (campaign, plan, position) WHERE campaign = ? AND plan = ? ORDER BY position";

enum cv_err cv_thirdparty_rows_wants(struct cv_db *db, sqlite3_int64 id, uint64_t number, uint32_t arms,
                                     struct cv_plan *ret_plan, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db, wants, &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)number);
  struct cv_plan plan = {.number = number, .want = calloc(arms, sizeof(*plan.want))};
  if (plan.want == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  enum cv_err err = cv_db_step(db, stmt, &row, why);
  while (err == CV_OK && row != 0) {
    int64_t arm = sqlite3_column_int64(stmt, 0), tokens = sqlite3_column_int64(stmt, 1);
    /* `arms` wants have room; one more would be written behind them. */
    bool is_named = sqlite3_column_type(stmt, 2) != SQLITE_NULL;
    int64_t opponent = sqlite3_column_int64(stmt, 2);
    if (plan.wants == arms || arm < 0 || arm >= arms || tokens < 0 || tokens > UINT32_MAX ||
        (is_named && (opponent < 0 || opponent >= arms || opponent == arm))) {
      err = cv_fail(why, CV_ERR_DAMAGED, "plan %" PRIu64 " has an invalid want", number);
      (void)sqlite3_reset(stmt);
      break;
    }
    plan.want[plan.wants++] = (struct cv_want){
        .arm = (uint32_t)arm, .tokens = (uint32_t)tokens, .opponent = is_named ? (uint32_t)opponent + 1 : 0};
    err = cv_db_step(db, stmt, &row, why);
  }
  if (err != CV_OK) {
    free(plan.want);
    return err;
  }
  *ret_plan = plan;
  return CV_OK;
}

static bool read_release(sqlite3_stmt *stmt, struct cv_release *ret) {
  int64_t arm = sqlite3_column_int64(stmt, 2), tokens = sqlite3_column_int64(stmt, 3);
  *ret = (struct cv_release){.number = cv_row_u64(stmt, 0), .plan = cv_row_u64(stmt, 1)};
  ret->arm = (uint32_t)arm;
  ret->tokens = (uint64_t)tokens;
  ret->noisy_sum = sqlite3_column_int64(stmt, 4);
  ret->last = sqlite3_column_int64(stmt, 5) != 0;
  /* Means divide by the number of tokens. */
  return arm >= 0 && arm < CV_ARMS_MAX && tokens >= 0 && cv_release_is_whole(ret);
}

static enum cv_err read_noise(struct cv_db *db, sqlite3_int64 id, struct cv_release *release, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(
      db, "SELECT scale, count FROM release_noise WHERE campaign = ? AND release = ? ORDER BY position", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)release->number);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  while (row != 0) {
    int64_t count = sqlite3_column_int64(stmt, 1);
    if (release->noise.groups == CV_NOISE_GROUPS_MAX || count < 1 || count > UINT32_MAX) {
      (void)sqlite3_reset(stmt);
      return cv_fail(why, CV_ERR_DAMAGED, "release %" PRIu64 " has invalid noise", release->number);
    }
    release->noise.group[release->noise.groups++] =
        (struct cv_noise_group){.scale = sqlite3_column_double(stmt, 0), .count = (uint32_t)count};
    CV_TRY(cv_db_step(db, stmt, &row, why));
  }
  return CV_OK;
}

enum cv_err cv_thirdparty_rows_releases(struct cv_db *db, sqlite3_int64 id, uint64_t first, uint64_t last,
                                        cv_thirdparty_rows_release_fn *each, void *data, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db,
                       "SELECT r.number, r.plan, r.arm, r.tokens, r.noisy_sum, u.arm IS NOT NULL FROM release r"
                       " LEFT JOIN used_up u ON u.campaign = r.campaign AND u.release = r.number"
                       " WHERE r.campaign = ? AND r.plan BETWEEN ? AND ? ORDER BY r.number",
                       &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)first);
  /* UINT64_MAX stands for all later plans; as a signed number it would be -1. */
  (void)sqlite3_bind_int64(stmt, 3, last > INT64_MAX ? INT64_MAX : (sqlite3_int64)last);
  enum cv_err err = cv_db_step(db, stmt, &row, why);
  while (err == CV_OK && row != 0) {
    struct cv_release release;
    if (!read_release(stmt, &release)) {
      err = cv_fail(why, CV_ERR_DAMAGED, "release %" PRIu64 " has an invalid arm or number of tokens", release.number);
    }
    err = err != CV_OK ? err : read_noise(db, id, &release, why);
    err = err != CV_OK ? err : each(data, &release, why);
    if (err != CV_OK) {
      (void)sqlite3_reset(stmt);
      return err;
    }
    err = cv_db_step(db, stmt, &row, why);
  }
  return err;
}

static struct cv_decision read_decision(sqlite3_stmt *stmt) {
  const char *kind = (const char *)sqlite3_column_text(stmt, 0);
  return (struct cv_decision){
      /* Any other word counts as a removal; if it is not one, the comparison finds a disagreement. */
      .kind = kind != NULL && strcmp(kind, "settle") == 0 ? CV_DECISION_SETTLE : CV_DECISION_REMOVE,
      .arm = (uint32_t)sqlite3_column_int64(stmt, 1),
      .rank_class = (uint32_t)sqlite3_column_int64(stmt, 2),
      .tokens = cv_row_u64(stmt, 3),
      .mean = sqlite3_column_double(stmt, 4),
      .radius = sqlite3_column_double(stmt, 5),
      .reference = sqlite3_column_double(stmt, 6)};
}

enum cv_err cv_thirdparty_rows_decisions(struct cv_db *db, sqlite3_int64 id, uint64_t plan,
                                         cv_thirdparty_rows_decision_fn *each, void *data, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db,
                       "SELECT kind, arm, class, tokens, mean, radius, reference, number, release FROM decision"
                       " WHERE campaign = ? AND plan = ? ORDER BY number",
                       &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)plan);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  while (row != 0) {
    const struct cv_stored_decision stored = {
        .number = cv_row_u64(stmt, 7), .plan = plan, .release = cv_row_u64(stmt, 8), .decision = read_decision(stmt)};
    each(data, &stored);
    CV_TRY(cv_db_step(db, stmt, &row, why));
  }
  return CV_OK;
}

static enum cv_err read_parked(struct cv_db *db, sqlite3_int64 id, struct cv_standing *standing, size_t n,
                               struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db, "SELECT arm, last_class, held FROM parked WHERE campaign = ? ORDER BY arm", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  /* Both lists are in order of arms. */
  for (size_t i = 0; row != 0 && i < n; i++) {
    if (standing[i].arm == (uint32_t)sqlite3_column_int64(stmt, 0)) {
      standing[i].rank_last = (uint32_t)sqlite3_column_int64(stmt, 1);
      standing[i].held = (enum cv_held)sqlite3_column_int64(stmt, 2);
      CV_TRY(cv_db_step(db, stmt, &row, why));
    }
  }
  if (row != 0) {
    (void)sqlite3_reset(stmt);
    return cv_fail(why, CV_ERR_DAMAGED, "an arm without a standing is parked");
  }
  return CV_OK;
}

static enum cv_err read_contradictions(struct cv_db *db, sqlite3_int64 id, struct cv_standing *standing, size_t n,
                                       struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db, "SELECT arm FROM contradiction WHERE campaign = ? ORDER BY arm", &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  for (size_t i = 0; row != 0 && i < n; i++) {
    if (standing[i].arm == (uint32_t)sqlite3_column_int64(stmt, 0)) {
      standing[i].contradicts = true;
      CV_TRY(cv_db_step(db, stmt, &row, why));
    }
  }
  if (row != 0) {
    (void)sqlite3_reset(stmt);
    return cv_fail(why, CV_ERR_DAMAGED, "an arm without a standing has a contradiction");
  }
  return CV_OK;
}

enum cv_err cv_thirdparty_rows_standings(struct cv_db *db, sqlite3_int64 id, uint32_t arms,
                                         struct cv_standing *standing, size_t *ret_n, struct cv_why *why) {
  sqlite3_stmt *stmt;
  int row;
  size_t n = 0;
  CV_TRY(cv_db_prepare(db, "SELECT arm, class, tokens, mean, radius FROM standing WHERE campaign = ? ORDER BY arm",
                       &stmt, why));
  (void)sqlite3_bind_int64(stmt, 1, id);
  CV_TRY(cv_db_step(db, stmt, &row, why));
  while (row != 0) {
    if (n == arms) {
      (void)sqlite3_reset(stmt);
      return cv_fail(why, CV_ERR_DAMAGED, "the campaign has more standings than arms");
    }
    standing[n++] = (struct cv_standing){.arm = (uint32_t)sqlite3_column_int64(stmt, 0),
                                         .rank_class = (uint32_t)sqlite3_column_int64(stmt, 1),
                                         .tokens = cv_row_u64(stmt, 2),
                                         .mean = sqlite3_column_double(stmt, 3),
                                         .radius = sqlite3_column_double(stmt, 4),
                                         .noise = (double)NAN};
    CV_TRY(cv_db_step(db, stmt, &row, why));
  }
  *ret_n = n;
  CV_TRY(read_contradictions(db, id, standing, n, why));
  return read_parked(db, id, standing, n, why);
}
