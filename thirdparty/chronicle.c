/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/chronicle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "thirdparty/retell.h"

enum { SLICE_MS = 4 };

struct entry {
  struct cv_chronicle_entry shown;
  struct cv_retell *retell; /* under way */
  bool has_failed;          /* until it is asked for again */
  uint64_t used;
};

struct cv_chronicle {
  struct cv_db *db;
  struct entry entry[CV_CHRONICLE_MAX];
  uint64_t uses;
  bool has_begun;
};

enum cv_err cv_chronicle_new(struct cv_db *db, struct cv_chronicle **ret) {
  struct cv_chronicle *chronicle = calloc(1, sizeof(*chronicle));
  if (chronicle == NULL) {
    return CV_ERR_NOMEM;
  }
  chronicle->db = db;
  *ret = chronicle;
  return CV_OK;
}

static void clear(struct entry *entry) {
  cv_history_free(entry->shown.history);
  cv_retell_free(entry->retell);
  *entry = (struct entry){0};
}

void cv_chronicle_free(struct cv_chronicle *chronicle) {
  if (chronicle != NULL) {
    for (size_t i = 0; i < CV_CHRONICLE_MAX; i++) {
      clear(&chronicle->entry[i]);
    }
    free(chronicle);
  }
}

void cv_chronicle_begin(struct cv_chronicle *chronicle) {
  chronicle->has_begun = true;
}

static struct entry *used(struct cv_chronicle *chronicle, struct entry *entry) {
  entry->used = ++chronicle->uses;
  return entry;
}

static struct entry *by_id(struct cv_chronicle *chronicle, int64_t id) {
  for (size_t i = 0; i < CV_CHRONICLE_MAX; i++) {
    if (chronicle->entry[i].shown.id == id) {
      return &chronicle->entry[i];
    }
  }
  return NULL;
}

static struct entry *by_key(struct cv_chronicle *chronicle, const struct cv_thirdparty_campaign_key *key) {
  for (size_t i = 0; i < CV_CHRONICLE_MAX; i++) {
    struct entry *entry = &chronicle->entry[i];
    if (entry->shown.id != 0 && entry->shown.key.campaign == key->campaign &&
        strcmp(entry->shown.key.broker, key->broker) == 0) {
      return entry;
    }
  }
  return NULL;
}

/* An empty entry, or that of the history which was used least lately. */
static struct entry *make_room(struct cv_chronicle *chronicle) {
  struct entry *oldest = &chronicle->entry[0];
  for (size_t i = 1; i < CV_CHRONICLE_MAX; i++) {
    oldest = chronicle->entry[i].used < oldest->used ? &chronicle->entry[i] : oldest;
  }
  clear(oldest);
  return used(chronicle, oldest);
}

/* ---- batches ---- */

/* The id of a campaign in the database; 0 if it cannot be read: the history is then made when it is asked for. */
static int64_t find_id(struct cv_db *db, const struct cv_thirdparty_campaign_key *key) {
  sqlite3_stmt *stmt;
  int row;
  if (cv_db_prepare(db, "SELECT id FROM campaign WHERE broker = ? AND number = ?", &stmt, NULL) != CV_OK) {
    return 0;
  }
  (void)sqlite3_bind_text(stmt, 1, key->broker, -1, SQLITE_STATIC);
  (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)key->campaign);
  int64_t id = cv_db_step(db, stmt, &row, NULL) == CV_OK && row != 0 ? sqlite3_column_int64(stmt, 0) : 0;
  (void)sqlite3_reset(stmt);
  return id;
}

static struct entry *add(struct cv_chronicle *chronicle, const struct cv_delta *delta) {
  struct cv_history *history;
  int64_t id = find_id(chronicle->db, &delta->key);
  if (id == 0 || cv_history_new(&delta->spec, &history) != CV_OK) {
    return NULL;
  }
  struct entry *entry = make_room(chronicle);
  entry->shown = (struct cv_chronicle_entry){.id = id, .key = delta->key, .history = history};
  return entry;
}

bool cv_chronicle_take(struct cv_chronicle *chronicle, const struct cv_thirdparty_batch *batch, uint64_t now_ms) {
  bool taken = false;
  for (const struct cv_delta *delta = batch->first; delta != NULL && chronicle->has_begun; delta = delta->next) {
    struct entry *entry = delta->created ? add(chronicle, delta) : by_key(chronicle, &delta->key);
    /* A history that is being made from the database comes to this batch there. */
    if (entry == NULL || entry->shown.history == NULL) {
      continue;
    }
    taken = true;
    /* Without memory for one step the history is made again when it is asked for. */
    if (cv_history_take(used(chronicle, entry)->shown.history, delta, now_ms) != CV_OK) {
      clear(entry);
    }
  }
  return taken;
}

/* ---- asking ---- */

const struct cv_chronicle_entry *cv_chronicle_at(struct cv_chronicle *chronicle, int64_t id) {
  struct entry *entry = id <= 0 ? NULL : by_id(chronicle, id);
  return entry == NULL || entry->shown.history == NULL ? NULL : &used(chronicle, entry)->shown;
}

enum cv_chronicle_found cv_chronicle_find(struct cv_chronicle *chronicle, int64_t id,
                                          const struct cv_chronicle_entry **ret) {
  struct entry *entry = id <= 0 ? NULL : by_id(chronicle, id);
  struct cv_retell *retell;
  cv_chronicle_begin(chronicle);
  if (entry != NULL && entry->has_failed) {
    clear(entry);
    return CV_CHRONICLE_FAILED;
  }
  if (entry == NULL) {
    struct cv_why why;
    enum cv_err err = id <= 0 ? CV_ERR_NOT_FOUND : cv_retell_new(chronicle->db, id, &retell, &why);
    if (err != CV_OK) {
      return err == CV_ERR_NOT_FOUND ? CV_CHRONICLE_ABSENT : CV_CHRONICLE_FAILED;
    }
    entry = make_room(chronicle);
    entry->shown = (struct cv_chronicle_entry){.id = id, .key = *cv_retell_key(retell)};
    entry->retell = retell;
  }
  *ret = &used(chronicle, entry)->shown;
  return entry->shown.history != NULL ? CV_CHRONICLE_HERE : CV_CHRONICLE_LATER;
}

/* ---- making ---- */

static struct entry *to_make(struct cv_chronicle *chronicle) {
  for (size_t i = 0; i < CV_CHRONICLE_MAX; i++) {
    if (chronicle->entry[i].retell != NULL) {
      return &chronicle->entry[i];
    }
  }
  return NULL;
}

bool cv_chronicle_has_work(const struct cv_chronicle *chronicle) {
  for (size_t i = 0; i < CV_CHRONICLE_MAX; i++) {
    if (chronicle->entry[i].retell != NULL) {
      return true;
    }
  }
  return false;
}

bool cv_chronicle_work(struct cv_chronicle *chronicle, bool *ret_failed, struct cv_why *why) {
  struct entry *entry = to_make(chronicle);
  uint64_t until_ms = cv_clock_mono_ms() + SLICE_MS;
  bool done = false;
  *ret_failed = false;
  while (entry != NULL && !done && !*ret_failed && cv_clock_mono_ms() < until_ms) {
    *ret_failed = cv_retell_go_on(entry->retell, &done, why) != CV_OK;
  }
  if (entry == NULL || !(done || *ret_failed)) {
    return false;
  }
  if (done) {
    entry->shown.history = cv_retell_take(entry->retell);
  } else {
    cv_why_prefix(why, "the history of campaign %" PRIu64 " of broker %s", entry->shown.key.campaign,
                  entry->shown.key.broker);
  }
  cv_retell_free(entry->retell);
  entry->retell = NULL;
  entry->has_failed = *ret_failed;
  return true;
}
