/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/duels.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/names.h"
#include "common/base/table.h"
#include "common/base/text.h"
#include "worker/budget.h"
#include "worker/records.h"
#include "worker/remarks.h"

struct item {
  bool is_number;
  double number;
  uint32_t arm;
  struct cv_spelling spelling;
  UT_hash_handle hh;
  char name[]; /* in its normal form; spelling.h */
};

/* A row: the score of `item` against `versus`. */
struct row {
  const struct item *item, *versus;
  double score;
};

struct reading {
  const struct cv_duels_ask *ask;
  struct cv_records records;
  uint32_t columns, item_at, versus_at, score_at;
  struct item *items; /* by name */
  struct row *row;
  size_t rows, rows_cap;
  struct cv_budget budget; /* for rows; items are few */
};

#define LINE(reading) (reading)->ask->path, (unsigned long long)(reading)->records.start

/* ---- rows ---- */

static enum cv_err read_header(struct reading *reading, struct cv_why *why) {
  const struct cv_duels_ask *ask = reading->ask;
  bool end;
  CV_TRY(cv_records_next(&reading->records, &end, why));
  if (end) {
    return cv_fail(why, CV_ERR_INVALID, "%s:1: the file is empty; expected a header line with columns %s, %s and %s",
                   ask->path, ask->item_column, ask->versus_column, ask->score_column);
  }
  reading->columns = reading->records.fields;
  CV_TRY(cv_records_column(&reading->records, ask->item_column, &reading->item_at, why));
  CV_TRY(cv_records_column(&reading->records, ask->versus_column, &reading->versus_at, why));
  return cv_records_column(&reading->records, ask->score_column, &reading->score_at, why);
}

static enum cv_err add_item(struct reading *reading, const char *name, const char *typed, struct item **ret,
                            struct cv_why *why) {
  if (HASH_COUNT(reading->items) == CV_PAIRS_ARMS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "%s:%llu: too many different items at \"%s\"; expected at most %d", LINE(reading),
                   cv_text_piece(name).text, CV_PAIRS_ARMS_MAX);
  }
  struct item *item = calloc(1, sizeof(*item) + cv_spelling_bytes(name, typed));
  if (item != NULL) {
    cv_spelling_begin(&item->spelling, name, typed, reading->records.start, item->name);
    item->is_number = cv_records_number(name, &item->number);
  }
  if (item == NULL || CV_TABLE_ADD_TEXT(reading->items, name, item) != CV_OK) {
    free(item);
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", reading->ask->path);
  }
  *ret = item;
  return CV_OK;
}

/* The item with the name in this column, a new one if there is none. */
static enum cv_err find_item(struct reading *reading, uint32_t at, const char *column, const struct item **ret,
                             struct cv_why *why) {
  const char *typed = cv_records_field(&reading->records, at);
  char name[CV_ITEM_BYTES];
  struct item *item;
  struct cv_why reason;
  HASH_FIND_STR(reading->items, typed, item);
  if (item == NULL) {
    if (cv_name_normalize(typed, name, sizeof(name), &reason) != CV_OK) {
      return cv_fail(why, CV_ERR_INVALID, "%s:%llu: %s %s", LINE(reading), column, reason.text);
    }
    HASH_FIND_STR(reading->items, name, item);
  }
  if (item == NULL) {
    CV_TRY(add_item(reading, name, typed, &item, why));
  }
  cv_spelling_meet(&item->spelling, item->name, typed, reading->records.start);
  *ret = item;
  return CV_OK;
}

static enum cv_err parse_score(const struct reading *reading, double *ret, struct cv_why *why) {
  const struct cv_duels_ask *ask = reading->ask;
  const char *text = cv_records_field(&reading->records, reading->score_at);
  double score;
  if (!cv_records_number(text, &score) || !(score >= ask->low && score <= ask->high)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s:%llu: %s is \"%s\"; expected a number from %.10g, the item lost, to %.10g, it won",
                   LINE(reading), ask->score_column, cv_text_piece(text).text, ask->low, ask->high);
  }
  *ret = (score - ask->low) / (ask->high - ask->low);
  return CV_OK;
}

/* For one more row. */
static enum cv_err take_memory(struct reading *reading, struct cv_why *why) {
  char place[400];
  if (reading->rows < reading->rows_cap) {
    return CV_OK;
  }
  cv_text_print(place, sizeof(place), "%s:%llu", LINE(reading));
  return cv_budget_take(&reading->budget, (reading->rows_cap + 1) * sizeof(*reading->row), place, why);
}

static enum cv_err read_rows(struct reading *reading, struct cv_why *why) {
  const struct cv_duels_ask *ask = reading->ask;
  CV_TRY(read_header(reading, why));
  for (;;) {
    bool end;
    struct row row;
    CV_TRY(cv_records_row(&reading->records, reading->columns, &end, why));
    if (end) {
      return CV_OK;
    }
    CV_TRY(find_item(reading, reading->item_at, ask->item_column, &row.item, why));
    CV_TRY(find_item(reading, reading->versus_at, ask->versus_column, &row.versus, why));
    CV_TRY(parse_score(reading, &row.score, why));
    if (row.item == row.versus) {
      return cv_fail(why, CV_ERR_INVALID, "%s:%llu: \"%s\" is compared with itself; expected two items", LINE(reading),
                     cv_text_piece(row.item->name).text);
    }
    CV_TRY(take_memory(reading, why));
    struct row *to = CV_ARRAY_PUSH(reading->row, reading->rows, reading->rows_cap);
    if (to == NULL) {
      return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", ask->path);
    }
    *to = row;
  }
}

/* ---- numbering, as data.c does ---- */

static int by_bytes(const struct item *a, const struct item *b) {
  return strcmp(a->name, b->name);
}

static int by_number(const struct item *a, const struct item *b) {
  return a->number < b->number ? -1 : a->number > b->number ? 1 : by_bytes(a, b);
}

static enum cv_err number_items(struct reading *reading, struct cv_duels *duels, struct cv_why *why) {
  bool all_numbers = true;
  for (const struct item *item = reading->items; item != NULL; item = item->hh.next) {
    all_numbers = all_numbers && item->is_number;
  }
  if (all_numbers) {
    HASH_SORT(reading->items, by_number);
  } else {
    HASH_SORT(reading->items, by_bytes);
  }
  struct cv_names names = {0};
  struct cv_remarks_spellings spellings = {&duels->notes, reading->ask->path, "line", "item", 0};
  for (struct item *item = reading->items; item != NULL; item = item->hh.next) {
    item->arm = duels->items++;
    cv_names_add(&names, item->name);
    cv_remarks_spelling(&spellings, item->name, &item->spelling);
  }
  cv_remarks_spellings_end(&spellings);
  enum cv_err err = cv_names_take(&names, &duels->name);
  cv_names_fini(&names);
  return err == CV_OK ? CV_OK : cv_fail(why, err, "%s: out of memory", reading->ask->path);
}

/* ---- pairs ---- */

/* Turns sums and numbers of rows into means; CV_ERR_INVALID with the first two items that never met. */
static enum cv_err divide(const struct reading *reading, const uint32_t *met, struct cv_duels *duels,
                          struct cv_why *why) {
  const size_t n = duels->items;
  for (size_t a = 0; a < n; a++) {
    for (size_t b = 0; b < n; b++) {
      if (a != b && met[a * n + b] == 0) {
        return cv_fail(why, CV_ERR_INVALID,
                       "%s: \"%s\" and \"%s\" never met; expected a row of every two items, since each is compared "
                       "with each",
                       reading->ask->path, cv_text_piece(duels->name[a]).text, cv_text_piece(duels->name[b]).text);
      }
      duels->pairs.chance[a * n + b] /= a == b ? 1 : met[a * n + b];
    }
  }
  return CV_OK;
}

static enum cv_err count_pairs(const struct reading *reading, struct cv_duels *duels, struct cv_why *why) {
  const size_t n = duels->items;
  if (n < 2 || reading->rows < n * (n - 1) / 2) { /* before memory for all pairs */
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: %zu items in %zu rows; expected at least two items, and a row of every two of them",
                   reading->ask->path, n, reading->rows);
  }
  duels->pairs = (struct cv_pairs){
      .arms = duels->items, .rows = reading->rows, .chance = calloc(n * n, sizeof(*duels->pairs.chance))};
  uint32_t *met = calloc(n * n, sizeof(*met));
  enum cv_err err = CV_OK;
  if (duels->pairs.chance == NULL || met == NULL) {
    err = cv_fail(why, CV_ERR_NOMEM, "%s: out of memory for %zu items", reading->ask->path, n);
  }
  for (size_t i = 0; i < reading->rows && err == CV_OK; i++) {
    const struct row *row = &reading->row[i];
    size_t mine = row->item->arm * n + row->versus->arm, theirs = row->versus->arm * n + row->item->arm;
    duels->pairs.chance[mine] += row->score;
    duels->pairs.chance[theirs] += 1 - row->score;
    met[mine]++;
    met[theirs]++;
  }
  err = err == CV_OK ? divide(reading, met, duels, why) : err;
  free(met);
  return err;
}

enum cv_err cv_duels_read(const struct cv_duels_ask *ask, struct cv_duels *ret, struct cv_why *why) {
  struct reading reading = {.ask = ask, .budget = {.most = cv_budget_bytes(ask->memory)}};
  struct cv_duels duels = {0};
  CV_TRY(cv_records_open(ask->path, ask->delimiter, &reading.records, why));
  enum cv_err err = read_rows(&reading, why);
  if (err == CV_OK) {
    err = number_items(&reading, &duels, why);
  }
  if (err == CV_OK) {
    err = count_pairs(&reading, &duels, why);
  }
  CV_TABLE_DRAIN(reading.items, free);
  free(reading.row);
  cv_records_close(&reading.records);
  if (err != CV_OK) {
    cv_duels_fini(&duels);
    return err;
  }
  *ret = duels;
  return CV_OK;
}

void cv_duels_fini(struct cv_duels *duels) {
  if (duels == NULL) {
    return;
  }
  free(duels->name);
  cv_pairs_fini(&duels->pairs);
  *duels = (struct cv_duels){0};
}
