/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/text.h"
#include "worker/data.h"
#include "worker/records.h"

static enum cv_err no_memory(const struct cv_tally *tally, struct cv_why *why) {
  return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", tally->ask->file);
}

static enum cv_err take_memory(struct cv_tally *tally, size_t bytes, uint64_t at, struct cv_why *why) {
  return cv_budget_take(&tally->budget, bytes, cv_feed_place(tally->ask, at).text, why);
}

/* ---- scores ---- */

static bool is_missing(const char *text) {
  static const char *const words[] = {"", "na", "nan", "null"};
  text += strspn(text, " \t");
  size_t n = strlen(text);
  for (; n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'); n--) {
  }
  for (size_t i = 0; i < CV_COUNT(words); i++) {
    if (strlen(words[i]) == n && strncasecmp(text, words[i], n) == 0) {
      return true;
    }
  }
  return false;
}

static enum cv_err check_score(const struct cv_items_csv *ask, uint64_t at, double score, struct cv_why *why) {
  if (!isfinite(score)) {
    return cv_fail(why, CV_ERR_INVALID, "%s: %s is not a finite number", cv_feed_place(ask, at).text,
                   ask->score_column);
  }
  bool fits = !cv_scale_is_declared(&ask->scale) || (score >= ask->scale.low && score <= ask->scale.high);
  return fits || ask->clamps
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "%s: %s %.10g is outside %.10g..%.10g, the campaign's scale; expected a score inside, or "
                       "items.outside: clamp to count it as the nearer end",
                       cv_feed_place(ask, at).text, ask->score_column, score, ask->scale.low, ask->scale.high);
}

/* Moves a score outside the scale to the nearer end of it. */
static double clamp(struct cv_tally *tally, double score, uint64_t at) {
  const struct cv_scale *scale = &tally->ask->scale;
  double inside = score < scale->low ? scale->low : score > scale->high ? scale->high : score;
  if (tally->ask->clamps && (inside < score || inside > score)) {
    tally->first_clamped = tally->clamped++ == 0 ? at : tally->first_clamped;
    return inside;
  }
  return score;
}

/* *ret_missing: the row has no score and is skipped. */
static enum cv_err take_score(const struct cv_items_csv *ask, uint64_t at, const struct cv_feed_row *row,
                              bool *ret_missing, double *ret, struct cv_why *why) {
  double score = row->number;
  *ret_missing = row->text != NULL && is_missing(row->text);
  if (*ret_missing) {
    return ask->skips_missing
               ? CV_OK
               : cv_fail(why, CV_ERR_INVALID,
                         "%s: %s \"%s\" is no score; expected a number, or items.missing: skip to leave such rows out",
                         cv_feed_place(ask, at).text, ask->score_column, cv_text_piece(row->text).text);
  }
  if (row->text != NULL && !cv_records_number(row->text, &score)) {
    return cv_fail(why, CV_ERR_INVALID, "%s: %s \"%s\" is not a number", cv_feed_place(ask, at).text, ask->score_column,
                   cv_text_piece(row->text).text);
  }
  CV_TRY(check_score(ask, at, score, why));
  *ret = score;
  return CV_OK;
}

/* ---- items and persons ---- */

/* Counted while reading: a wrong column would otherwise fill the memory with one item per row first. */
static enum cv_err check_more_items(const struct cv_tally *tally, const char *name, uint64_t at, struct cv_why *why) {
  bool chooses = tally->ask->top > 0 || tally->ask->least_rows > 0;
  uint32_t most = chooses ? CV_DATA_ITEMS_MAX : CV_ARMS_MAX;
  if (HASH_COUNT(tally->items) < most) {
    return CV_OK;
  }
  return cv_fail(why, CV_ERR_LIMIT, "%s: too many different items at \"%s\"; expected at most %u%s",
                 cv_feed_place(tally->ask, at).text, cv_text_piece(name).text, most,
                 chooses ? "" : ", or items.top or items.min_rows to leave some out");
}

/* Writes the normal form of a name that was typed in this row. */
static enum cv_err normalize(const struct cv_tally *tally, const char *column, const char *typed, uint64_t at,
                             char name[CV_ITEM_BYTES], struct cv_why *why) {
  struct cv_why reason;
  return cv_name_normalize(typed, name, CV_ITEM_BYTES, &reason) == CV_OK
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "%s: %s %s", cv_feed_place(tally->ask, at).text, column, reason.text);
}

static enum cv_err add_item(struct cv_tally *tally, const char *name, const char *typed, uint64_t at,
                            struct cv_tally_item **ret, struct cv_why *why) {
  size_t bytes = sizeof(struct cv_tally_item) + cv_spelling_bytes(name, typed);
  CV_TRY(check_more_items(tally, name, at, why));
  CV_TRY(take_memory(tally, bytes, at, why));
  struct cv_tally_item *item = calloc(1, bytes);
  if (item == NULL) {
    return no_memory(tally, why);
  }
  cv_spelling_begin(&item->spelling, name, typed, at, item->name);
  item->is_number = cv_records_number(name, &item->number);
  item->index = HASH_COUNT(tally->items);
  if (CV_TABLE_ADD_TEXT(tally->items, name, item) != CV_OK) {
    free(item);
    return no_memory(tally, why);
  }
  *ret = item;
  return CV_OK;
}

static enum cv_err find_item(struct cv_tally *tally, const char *typed, uint64_t at, struct cv_tally_item **ret,
                             struct cv_why *why) {
  char name[CV_ITEM_BYTES];
  HASH_FIND_STR(tally->items, typed, *ret);
  if (*ret != NULL) { /* most rows: nothing to normalize */
    cv_spelling_meet_normal(&(*ret)->spelling, at);
    return CV_OK;
  }
  CV_TRY(normalize(tally, tally->ask->item_column, typed, at, name, why));
  HASH_FIND_STR(tally->items, name, *ret);
  if (*ret == NULL) {
    return add_item(tally, name, typed, at, ret, why);
  }
  cv_spelling_meet(&(*ret)->spelling, name, typed, at);
  return CV_OK;
}

static enum cv_err add_person(struct cv_tally *tally, const char *name, const char *typed, uint64_t at,
                              struct cv_tally_person **ret, struct cv_why *why) {
  if (HASH_COUNT(tally->persons) == CV_PERSONS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "%s: too many different workers; expected at most %d",
                   cv_feed_place(tally->ask, at).text, CV_PERSONS_MAX);
  }
  size_t bytes = sizeof(struct cv_tally_person) + cv_spelling_bytes(name, typed);
  CV_TRY(take_memory(tally, bytes, at, why));
  struct cv_tally_person *person = calloc(1, bytes);
  if (person == NULL) {
    return no_memory(tally, why);
  }
  cv_spelling_begin(&person->spelling, name, typed, at, person->name);
  person->index = HASH_COUNT(tally->persons);
  if (CV_TABLE_ADD_TEXT(tally->persons, name, person) != CV_OK) {
    free(person);
    return no_memory(tally, why);
  }
  *ret = person;
  return CV_OK;
}

static enum cv_err find_person(struct cv_tally *tally, const char *typed, uint64_t at, uint32_t *ret,
                               struct cv_why *why) {
  struct cv_tally_person *person;
  char name[CV_ITEM_BYTES];
  HASH_FIND_STR(tally->persons, typed, person);
  if (person != NULL) {
    cv_spelling_meet_normal(&person->spelling, at);
    *ret = person->index;
    return CV_OK;
  }
  CV_TRY(normalize(tally, tally->ask->worker_column, typed, at, name, why));
  HASH_FIND_STR(tally->persons, name, person);
  if (person == NULL) {
    CV_TRY(add_person(tally, name, typed, at, &person, why));
  }
  cv_spelling_meet(&person->spelling, name, typed, at);
  *ret = person->index;
  return CV_OK;
}

/* ---- rows ---- */

/* Room for one more row in the last block. */
static enum cv_err make_room(struct cv_tally *tally, uint64_t at, struct cv_why *why) {
  if (tally->last != NULL && tally->last->rows < CV_TALLY_BLOCK) {
    return CV_OK;
  }
  size_t persons = tally->ask->worker_column[0] == '\0' ? 0 : CV_TALLY_BLOCK;
  size_t bytes = sizeof(struct cv_tally_block) + persons * sizeof(uint32_t);
  CV_TRY(take_memory(tally, bytes, at, why));
  struct cv_tally_block *block = malloc(bytes);
  if (block == NULL) {
    return no_memory(tally, why);
  }
  block->next = NULL;
  block->rows = 0;
  if (tally->last == NULL) {
    tally->first = block;
  } else {
    tally->last->next = block;
  }
  tally->last = block;
  return CV_OK;
}

static enum cv_err add_row(struct cv_tally *tally, const struct cv_feed_row *row, uint64_t at, struct cv_why *why) {
  struct cv_tally_item *item = NULL;
  bool is_missing_score;
  double score = 0;
  CV_TRY(take_score(tally->ask, at, row, &is_missing_score, &score, why));
  CV_TRY(find_item(tally, row->item, at, &item, why));
  if (is_missing_score) {
    tally->first_skipped = tally->skipped++ == 0 ? at : tally->first_skipped;
    return CV_OK;
  }
  CV_TRY(make_room(tally, at, why));
  struct cv_tally_block *block = tally->last;
  if (row->worker != NULL) {
    CV_TRY(find_person(tally, row->worker, at, &block->person[block->rows], why));
  }
  score = clamp(tally, score, at);
  block->score[block->rows] = score;
  block->item[block->rows++] = item->index;
  item->rows++;
  tally->rows++;
  cv_extent_add(&tally->extent, score, at);
  return CV_OK;
}

static enum cv_err read_rows(struct cv_tally *tally, struct cv_feed *feed, struct cv_why *why) {
  for (;;) {
    struct cv_feed_row row = {0};
    bool end;
    CV_TRY(cv_feed_next(feed, &row, &end, why));
    if (end) {
      return CV_OK;
    }
    CV_TRY(add_row(tally, &row, feed->at, why));
  }
}

enum cv_err cv_tally_read(const struct cv_items_csv *ask, struct cv_tally *ret, struct cv_why *why) {
  struct cv_feed feed;
  *ret = (struct cv_tally){.ask = ask, .budget = {.most = cv_budget_bytes(ask->memory)}};
  CV_TRY(cv_feed_open(ask, &feed, why));
  enum cv_err err = read_rows(ret, &feed, why);
  ret->unused = feed.unused;
  memcpy(ret->unused_names, feed.unused_names, sizeof(ret->unused_names));
  cv_feed_close(&feed);
  if (err != CV_OK) {
    cv_tally_fini(ret);
  }
  return err;
}

void cv_tally_fini(struct cv_tally *tally) {
  CV_TABLE_DRAIN(tally->items, free);
  CV_TABLE_DRAIN(tally->persons, free);
  for (struct cv_tally_block *block = tally->first, *next; block != NULL; block = next) {
    next = block->next;
    free(block);
  }
  *tally = (struct cv_tally){0};
}

/* ---- choice ---- */

static int by_bytes(const struct cv_tally_item *a, const struct cv_tally_item *b) {
  return strcmp(a->name, b->name);
}

static int by_number(const struct cv_tally_item *a, const struct cv_tally_item *b) {
  return a->number < b->number ? -1 : a->number > b->number ? 1 : by_bytes(a, b);
}

static int by_rows(const struct cv_tally_item *a, const struct cv_tally_item *b) {
  return a->rows > b->rows ? -1 : a->rows < b->rows;
}

static int by_arm(const struct cv_tally_item *a, const struct cv_tally_item *b) {
  return a->arm < b->arm ? -1 : a->arm > b->arm;
}

/* Sorted, so that arms do not depend on the order of the rows: 2 comes before 10 if all names are numbers. */
static void sort_by_name(struct cv_tally *tally) {
  bool all_numbers = true;
  for (const struct cv_tally_item *item = tally->items; item != NULL; item = item->hh.next) {
    all_numbers = all_numbers && item->is_number;
  }
  if (all_numbers) {
    HASH_SORT(tally->items, by_number);
  } else {
    HASH_SORT(tally->items, by_bytes);
  }
}

static enum cv_err check_kept(const struct cv_tally *tally, struct cv_why *why) {
  const struct cv_items_csv *ask = tally->ask;
  if (tally->kept > CV_ARMS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "%s: %u items have at least %llu rows; expected at most %d: set items.top",
                   ask->file, tally->kept, (unsigned long long)ask->least_rows, CV_ARMS_MAX);
  }
  if (tally->kept > 0) {
    return CV_OK;
  }
  if (tally->rows > 0) { /* `items` is sorted by rows */
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: the item with most rows, \"%s\", has %llu; expected at least items.min_rows, %llu", ask->file,
                   cv_text_piece(tally->items->name).text, (unsigned long long)tally->items->rows,
                   (unsigned long long)ask->least_rows);
  }
  return cv_fail(why, CV_ERR_INVALID, "%s: no rows %s; expected at least one", ask->file,
                 tally->skipped > 0                ? "with a score"
                 : ask->format == CV_FORMAT_SQLITE ? "in the query's result"
                 : ask->format == CV_FORMAT_JSONL  ? "in the file"
                                                   : "after the header");
}

enum cv_err cv_tally_choose(struct cv_tally *tally, struct cv_why *why) {
  uint64_t least = tally->ask->least_rows > 0 ? tally->ask->least_rows : 1;
  uint32_t most = tally->ask->top > 0 ? tally->ask->top : UINT32_MAX;
  /* Names first: sorting by rows keeps the order of those with equally many. */
  sort_by_name(tally);
  uint32_t place = 0;
  for (struct cv_tally_item *item = tally->items; item != NULL; item = item->hh.next) {
    item->arm = place++; /* for now the place among all items */
  }
  HASH_SORT(tally->items, by_rows);
  for (struct cv_tally_item *item = tally->items; item != NULL; item = item->hh.next) {
    tally->bare += item->rows == 0;
    if (item->rows >= least && tally->kept < most) {
      tally->kept++;
      tally->kept_rows += item->rows;
    } else {
      item->arm = UINT32_MAX;
    }
  }
  CV_TRY(check_kept(tally, why));
  HASH_SORT(tally->items, by_arm);
  struct cv_tally_item *item = tally->items;
  for (uint32_t arm = 0; arm < tally->kept; arm++, item = item->hh.next) {
    item->arm = arm;
  }
  return CV_OK;
}
