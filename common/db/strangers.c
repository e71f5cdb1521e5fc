/* SPDX-License-Identifier: Apache-2.0 */
#include "common/db/strangers.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/db/db_hook.h"

/* What SQLite itself keeps. Its names are not for triggers and views, but whoever writes the file can give them. */
#define IS_OWN                                                                                  \
  "type IN ('table', 'index') AND (name GLOB 'sqlite_autoindex_*' OR name GLOB 'sqlite_stat?' " \
  "OR name = 'sqlite_sequence')"

/* An empty database that the schema has made. */
static int make_model(const struct cv_db_schema *schema, sqlite3 **ret) {
  sqlite3 *model = NULL;
  int code = sqlite3_open(":memory:", &model);
  for (int i = 0; code == SQLITE_OK && i < schema->count; i++) {
    code = sqlite3_exec(model, schema->steps[i], NULL, NULL, NULL);
  }
  if (code != SQLITE_OK) {
    (void)sqlite3_close(model);
    return code;
  }
  *ret = model;
  return SQLITE_OK;
}

static void tell_stranger(sqlite3_stmt *row, bool is_known, cv_db_stranger_fn *told, void *data) {
  char what[400];
  const char *type = (const char *)sqlite3_column_text(row, 0), *name = (const char *)sqlite3_column_text(row, 1);
  const char *table = (const char *)sqlite3_column_text(row, 2);
  bool is_on = type != NULL && table != NULL && (strcmp(type, "trigger") == 0 || strcmp(type, "index") == 0);
  (void)snprintf(what, sizeof(what), "%.20s %.100s%s%.100s%s", type == NULL ? "object" : type,
                 name == NULL ? "without a name" : name, is_on ? " on " : "", is_on ? table : "",
                 is_known ? ", of another form" : "");
  cv_text_clean(what, strlen(what));
  told(data, what);
}

/* Compares each row of the file's schema, type, name, table and text, with the model. */
static int compare(sqlite3_stmt *row, sqlite3_stmt *same, cv_db_stranger_fn *told, void *data) {
  int code;
  while ((code = sqlite3_step(row)) == SQLITE_ROW) {
    for (int i = 0; i < 2; i++) {
      (void)sqlite3_bind_value(same, i + 1, sqlite3_column_value(row, i));
    }
    bool is_known = sqlite3_step(same) == SQLITE_ROW;
    const char *is = (const char *)sqlite3_column_text(row, 3);
    const char *was = is_known ? (const char *)sqlite3_column_text(same, 0) : NULL;
    if (!is_known || is == NULL || was == NULL || strcmp(is, was) != 0) {
      tell_stranger(row, is_known, told, data);
    }
    (void)sqlite3_reset(same);
  }
  return code;
}

enum cv_err cv_db_strangers(struct cv_db *db, cv_db_stranger_fn *told, void *data, struct cv_why *why) {
  static const char all[] = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE NOT (" IS_OWN ") ORDER BY name";
  sqlite3 *model = NULL;
  sqlite3_stmt *row = NULL, *same = NULL;
  int code = make_model(cv_db_schema(db), &model);
  if (code != SQLITE_OK) {
    return cv_db_failed(db, code, why);
  }
  code = sqlite3_prepare_v2(model, "SELECT sql FROM sqlite_schema WHERE type = ?1 AND name = ?2", -1, &same, NULL);
  code = code == SQLITE_OK ? sqlite3_prepare_v2(cv_db_handle(db), all, -1, &row, NULL) : code;
  code = code == SQLITE_OK ? compare(row, same, told, data) : code;
  (void)sqlite3_finalize(row);
  (void)sqlite3_finalize(same);
  (void)sqlite3_close(model);
  return code == SQLITE_DONE ? CV_OK : cv_db_failed(db, code, why);
}
