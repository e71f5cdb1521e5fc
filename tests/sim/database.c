/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/database.h"

#include <stdlib.h>
#include <string.h>

#include "broker/batch.h"
#include "common/base/array.h"
#include "common/base/table.h"

struct row {
  struct at {
    uint32_t kind, campaign, chunk, zero;
    uint64_t number;
  } at;
  uint64_t commit, term;
  uint8_t *bytes;
  size_t n;
  UT_hash_handle hh;
};

static uint8_t *copy_bytes(const uint8_t *bytes, size_t n) {
  uint8_t *copy = malloc(n + 1);
  CV_REQUIRE(copy != NULL);
  if (n > 0) {
    memcpy(copy, bytes, n);
  }
  return copy;
}

/* ---- rows ---- */

static void free_row(struct row *row) {
  free(row->bytes);
  free(row);
}

static void delete_row(struct database *database, struct row *row) {
  HASH_DEL(database->rows, row);
  free_row(row);
}

static struct row *find(const struct database *database, const struct at *at) {
  struct row *row;
  HASH_FIND(hh, database->rows, at, sizeof(*at), row);
  return row;
}

static void add_row(struct database *database, const struct row *like) {
  struct row *row = malloc(sizeof(*row));
  CV_REQUIRE(row != NULL);
  *row = *like;
  row->bytes = copy_bytes(like->bytes, like->n);
  CV_REQUIRE(CV_TABLE_ADD(database->rows, at, row) == CV_OK);
}

void database_fini(struct database *database) {
  CV_TABLE_DRAIN(database->rows, free_row);
  cv_lineage_fini(&database->lineage);
}

void database_copy(const struct database *from, struct database *to) {
  *to = *from;
  to->rows = NULL;
  to->lineage = (struct cv_lineage){.n = 0};
  for (const struct row *row = from->rows; row != NULL; row = row->hh.next) {
    add_row(to, row);
  }
  for (size_t i = 0; i < from->lineage.n; i++) {
    CV_REQUIRE(cv_lineage_add(&to->lineage, &from->lineage.item[i]) == CV_OK);
  }
}

/* ---- changes ---- */

void changes_add(struct changes *changes, const struct change *change) {
  CV_REQUIRE(CV_ARRAY_ROOM(changes->item, changes->n + 1, changes->cap) == CV_OK);
  struct change *item = &changes->item[changes->n++];
  *item = *change;
  item->bytes = copy_bytes(change->bytes, change->n);
}

void changes_clear(struct changes *changes) {
  for (size_t i = 0; i < changes->n; i++) {
    free(changes->item[i].bytes);
  }
  free(changes->item);
  *changes = (struct changes){.n = 0};
}

/* Where the row of a change is: only some kinds have more than one row of a campaign. */
static struct at place(const struct change *change) {
  struct at at = {.kind = change->kind, .campaign = change->campaign};
  switch (change->kind) {
    case CV_OP_JOURNAL:
      at.number = change->commit;
      break;
    case CV_OP_UNCHUNK:
      at.kind = CV_OP_CHUNK;
      at.chunk = change->chunk;
      at.number = change->number;
      break;
    case CV_OP_FORGET:
      at.kind = CV_OP_ENDED;
      break;
    case CV_OP_CHUNK:
      at.chunk = change->chunk;
      at.number = change->number;
      break;
    case CV_OP_PLAN:
    case CV_OP_RELEASE:
    case CV_OP_LEDGER:
    case CV_OP_RECOVERY:
    case DATABASE_KEY:
      at.number = change->number;
      break;
    default:
      break;
  }
  return at;
}

static bool is_only_inserted(uint32_t kind) {
  return kind == CV_OP_CAMPAIGN || kind == CV_OP_PLAN || kind == CV_OP_RELEASE || kind == CV_OP_RECOVERY ||
         kind == CV_OP_JOURNAL;
}

/* Whether a change deletes the row, which it does not name. */
static bool deletes(const struct change *change, const struct row *row) {
  uint32_t kind = row->at.kind;
  bool is_its = row->at.campaign == change->campaign, is_all = change->number == CV_DROP_ALL;
  switch (change->kind) {
    case CV_OP_TRIM:
      return kind == CV_OP_JOURNAL && row->commit < change->number;
    case CV_OP_PURGE:
      return is_its && (kind == CV_OP_JOURNAL || kind == CV_OP_CHUNK);
    case DATABASE_KEYS_DROPPED:
      return is_its && kind == DATABASE_KEY;
    case CV_OP_DROP:
      return is_its && (((kind == CV_OP_PLAN || kind == CV_OP_RELEASE) && row->at.number <= change->number) ||
                        (is_all && (kind == CV_OP_LEDGER || kind == CV_OP_CAMPAIGN || kind == CV_OP_STATE ||
                                    kind == CV_OP_STANDINGS)));
    default:
      return false;
  }
}

static void delete_some(struct database *database, const struct change *change) {
  struct row *row, *next;
  HASH_ITER(hh, database->rows, row, next) {
    if (deletes(change, row)) {
      delete_row(database, row);
    }
  }
}

static void make(struct database *database, const struct change *change) {
  struct row like = {
      .at = place(change), .commit = change->commit, .term = change->term, .bytes = change->bytes, .n = change->n};
  struct row *row = find(database, &like.at);
  switch (change->kind) {
    case CV_OP_TRIM:
    case CV_OP_PURGE:
    case CV_OP_DROP:
    case DATABASE_KEYS_DROPPED:
      delete_some(database, change);
      return;
    default:
      break;
  }
  if (row != NULL) {
    delete_row(database, row);
  }
  if (change->kind != CV_OP_UNCHUNK && change->kind != CV_OP_FORGET) {
    add_row(database, &like);
  }
}

bool database_apply(struct database *database, const struct changes *changes) {
  for (size_t i = 0; i < changes->n; i++) {
    const struct at at = place(&changes->item[i]);
    if (is_only_inserted(at.kind) && find(database, &at) != NULL) {
      return false;
    }
  }
  for (size_t i = 0; i < changes->n; i++) {
    make(database, &changes->item[i]);
  }
  return true;
}

void database_mark(struct database *database, const struct cv_anchor_mark *mark) {
  if (mark->commit != database->mark.commit) {
    database->prior = database->mark.hash;
  }
  database->mark = *mark;
}

/* ---- reading ---- */

static uint32_t kind_of(enum cv_backend_query query) {
  static const uint32_t kinds[] = {[CV_BACKEND_CAMPAIGN] = CV_OP_CAMPAIGN,   [CV_BACKEND_PLAN] = CV_OP_PLAN,
                                   [CV_BACKEND_RELEASE] = CV_OP_RELEASE,     [CV_BACKEND_LEDGER] = CV_OP_LEDGER,
                                   [CV_BACKEND_STANDINGS] = CV_OP_STANDINGS, [CV_BACKEND_STATE] = CV_OP_STATE,
                                   [CV_BACKEND_ENDED] = CV_OP_ENDED,         [CV_BACKEND_RECOVERY] = CV_OP_RECOVERY,
                                   [CV_BACKEND_CHUNK] = CV_OP_CHUNK,         [CV_BACKEND_JOURNAL] = CV_OP_JOURNAL};
  return kinds[query];
}

static int compare(const void *a, const void *b) {
  const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;
  const uint64_t of_x[] = {x->at.kind == CV_OP_JOURNAL ? x->commit : 0, x->at.campaign, x->at.number, x->at.chunk};
  const uint64_t of_y[] = {y->at.kind == CV_OP_JOURNAL ? y->commit : 0, y->at.campaign, y->at.number, y->at.chunk};
  for (size_t i = 0; i < CV_COUNT(of_x); i++) {
    if (of_x[i] != of_y[i]) {
      return of_x[i] < of_y[i] ? -1 : 1;
    }
  }
  return 0;
}

enum cv_err database_each(const struct database *database, enum cv_backend_query query, uint32_t campaign,
                          void (*each_term)(void *owner, uint64_t term), void *owner, cv_backend_row_fn *take,
                          void *taker, struct cv_why *why) {
  bool is_of_all = query >= CV_BACKEND_ENDED, is_sealed = query >= CV_BACKEND_CHUNK;
  size_t n = 0;
  enum cv_err err = CV_OK;
  struct row **found = malloc((HASH_COUNT(database->rows) + 1) * sizeof(struct row *));
  CV_REQUIRE(found != NULL);
  for (struct row *row = database->rows; row != NULL; row = row->hh.next) {
    if (row->at.kind == kind_of(query) && (is_of_all || row->at.campaign == campaign)) {
      found[n++] = row;
    }
  }
  qsort(found, n, sizeof(*found), compare);
  for (size_t i = 0; err == CV_OK && i < n; i++) {
    const struct row *row = found[i];
    const struct cv_backend_row given = {
        .campaign = query == CV_BACKEND_RECOVERY ? (uint32_t)row->at.number : row->at.campaign,
        .chunk = row->at.chunk,
        .number = query == CV_BACKEND_JOURNAL || query == CV_BACKEND_LEDGER ? 0 : row->at.number,
        .commit = is_sealed ? row->commit : 0,
        .bytes = row->bytes,
        .n = row->n};
    if (is_sealed) {
      each_term(owner, row->term);
    }
    err = take(taker, &given, why);
  }
  free(found);
  return err;
}

uint32_t database_next_open(const struct database *database, uint32_t after) {
  uint32_t least = 0;
  for (const struct row *row = database->rows; row != NULL; row = row->hh.next) {
    const struct at ended = {.kind = CV_OP_ENDED, .campaign = row->at.campaign};
    bool is_later = row->at.kind == CV_OP_CAMPAIGN && row->at.campaign > after;
    if (is_later && (least == 0 || row->at.campaign < least) && find(database, &ended) == NULL) {
      least = row->at.campaign;
    }
  }
  return least;
}

bool database_key(const struct database *database, const struct changes *changes, uint32_t campaign, uint32_t use,
                  struct cv_vault_row *ret) {
  const struct at at = {.kind = DATABASE_KEY, .campaign = campaign, .number = use};
  for (size_t i = changes->n; i-- > 0;) {
    const struct change *change = &changes->item[i];
    if (change->kind == DATABASE_KEYS_DROPPED && change->campaign == campaign) {
      return false;
    }
    if (change->kind == DATABASE_KEY && change->campaign == campaign && change->number == use) {
      memcpy(ret, change->bytes, sizeof(*ret));
      return true;
    }
  }
  const struct row *row = find(database, &at);
  if (row != NULL) {
    memcpy(ret, row->bytes, sizeof(*ret));
  }
  return row != NULL;
}

enum cv_err database_keys(const struct database *database,
                          enum cv_err (*take)(void *taker, const struct cv_vault_row *), void *taker) {
  enum cv_err err = CV_OK;
  for (const struct row *row = database->rows; row != NULL && err == CV_OK; row = row->hh.next) {
    struct cv_vault_row key;
    if (row->at.kind == DATABASE_KEY) {
      memcpy(&key, row->bytes, sizeof(key));
      err = take(taker, &key);
    }
  }
  return err;
}

void database_bytes(const struct database *database, void (*take)(void *taker, const uint8_t *bytes, size_t n),
                    void *taker) {
  for (const struct row *row = database->rows; row != NULL; row = row->hh.next) {
    take(taker, row->bytes, row->n);
  }
}
