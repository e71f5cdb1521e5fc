/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader makes two passes and so needs only 4 bytes per row. The first pass finds the items, their numbers of rows
 * and the range of the scores. Then the items are sorted and numbered. The second pass stores each score at its place.
 */
#include "worker/csv.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/table.h"
#include "common/base/text.h"
#include "worker/records.h"

struct item {
  bool is_number;
  double number;
  uint64_t rows;
  uint64_t next; /* second pass: index of the item's next row */
  uint32_t arm;
  UT_hash_handle hh;
  char name[];
};

struct person {
  uint64_t rows, next;
  UT_hash_handle hh;
  char name[];
};

struct reading {
  const struct cv_csv_ask *ask;
  struct cv_records records;
  uint32_t columns, item_at, score_at, worker_at;
  struct item *items;     /* by name */
  struct person *persons; /* by name, in the file's order; NULL without a worker column */
  uint64_t rows;
  double smallest, largest;
};

#define LINE(reading) (reading)->ask->path, (unsigned long long)(reading)->records.start

static enum cv_err changed(const struct reading *reading, struct cv_why *why) {
  return cv_fail(why, CV_ERR_IO, "%s:%llu: the file changed during reading", LINE(reading));
}

/* ---- the header ---- */

static enum cv_err read_header(struct reading *reading, struct cv_why *why) {
  const struct cv_csv_ask *ask = reading->ask;
  bool end;
  CV_TRY(cv_records_next(&reading->records, &end, why));
  if (end) {
    return cv_fail(why, CV_ERR_INVALID, "%s:1: the file is empty; expected a header line with columns %s and %s",
                   ask->path, ask->item_column, ask->score_column);
  }
  reading->columns = reading->records.fields;
  CV_TRY(cv_records_column(&reading->records, ask->item_column, &reading->item_at, why));
  if (ask->worker_column != NULL) {
    CV_TRY(cv_records_column(&reading->records, ask->worker_column, &reading->worker_at, why));
  }
  return cv_records_column(&reading->records, ask->score_column, &reading->score_at, why);
}

/* ---- rows ---- */

static enum cv_err parse_score(const struct reading *reading, double *ret, struct cv_why *why) {
  const struct cv_csv_ask *ask = reading->ask;
  const char *text = cv_records_field(&reading->records, reading->score_at);
  double score;
  if (!cv_records_number(text, &score)) {
    return cv_fail(why, CV_ERR_INVALID, "%s:%llu: %s \"%s\" is not a number", LINE(reading), ask->score_column,
                   cv_text_piece(text).text);
  }
  if (ask->has_scale && !(score >= ask->low && score <= ask->high)) {
    return cv_fail(why, CV_ERR_INVALID, "%s:%llu: %s %.10g is outside %.10g..%.10g, the campaign's scale",
                   LINE(reading), ask->score_column, score, ask->low, ask->high);
  }
  *ret = score;
  return CV_OK;
}

/* The next row's item name and score; *ret_end at the end. */
static enum cv_err next_row(struct reading *reading, bool *ret_end, const char **ret_name, double *ret_score,
                            struct cv_why *why) {
  CV_TRY(cv_records_row(&reading->records, reading->columns, ret_end, why));
  if (*ret_end) {
    return CV_OK;
  }
  *ret_name = cv_records_field(&reading->records, reading->item_at);
  return parse_score(reading, ret_score, why);
}

static enum cv_err add_item(struct reading *reading, const char *name, struct item **ret, struct cv_why *why) {
  if (!cv_name_is_item(name)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s:%llu: %s \"%s\" is not a valid name; expected 1 to %d bytes of printable UTF-8", LINE(reading),
                   reading->ask->item_column, cv_text_piece(name).text, CV_ITEM_BYTES - 1);
  }
  /* Counted while reading: a wrong column would otherwise fill the memory with one item per row first. */
  if (HASH_COUNT(reading->items) == CV_ARMS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "%s:%llu: too many different items at \"%s\"; expected at most %d", LINE(reading),
                   cv_text_piece(name).text, CV_ARMS_MAX);
  }
  size_t bytes = strlen(name) + 1;
  struct item *item = calloc(1, sizeof(*item) + bytes);
  if (item == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", reading->ask->path);
  }
  memcpy(item->name, name, bytes);
  item->is_number = cv_records_number(name, &item->number);
  if (CV_TABLE_ADD_TEXT(reading->items, name, item) != CV_OK) {
    free(item);
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", reading->ask->path);
  }
  *ret = item;
  return CV_OK;
}

static bool is_person(const char *name) {
  return cv_name_is_item(name) && name[0] != ' ' && name[strlen(name) - 1] != ' ';
}

/* Counts a row of the current record's person. */
static enum cv_err count_person(struct reading *reading, struct cv_why *why) {
  const char *name = cv_records_field(&reading->records, reading->worker_at);
  struct person *person;
  HASH_FIND_STR(reading->persons, name, person);
  if (person == NULL && (!is_person(name) || HASH_COUNT(reading->persons) == CV_PERSONS_MAX)) {
    return is_person(name)
               ? cv_fail(why, CV_ERR_LIMIT, "%s:%llu: too many different workers; expected at most %d", LINE(reading),
                         CV_PERSONS_MAX)
               : cv_fail(why, CV_ERR_INVALID,
                         "%s:%llu: %s \"%s\" is not a valid name; expected 1 to %d bytes of printable UTF-8 without a "
                         "blank at either end",
                         LINE(reading), reading->ask->worker_column, cv_text_piece(name).text, CV_ITEM_BYTES - 1);
  }
  if (person == NULL) {
    size_t bytes = strlen(name) + 1;
    person = calloc(1, sizeof(*person) + bytes);
    if (person == NULL) {
      return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", reading->ask->path);
    }
    memcpy(person->name, name, bytes);
    if (CV_TABLE_ADD_TEXT(reading->persons, name, person) != CV_OK) {
      free(person);
      return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", reading->ask->path);
    }
  }
  person->rows++;
  return CV_OK;
}

static enum cv_err first_pass(struct reading *reading, struct cv_why *why) {
  const char *name = NULL;
  double score = 0;
  reading->smallest = DBL_MAX;
  reading->largest = -DBL_MAX;
  CV_TRY(read_header(reading, why));
  for (;;) {
    bool end;
    CV_TRY(next_row(reading, &end, &name, &score, why));
    if (end) {
      return CV_OK;
    }
    struct item *item;
    HASH_FIND_STR(reading->items, name, item);
    if (item == NULL) {
      CV_TRY(add_item(reading, name, &item, why));
    }
    if (reading->ask->worker_column != NULL) {
      CV_TRY(count_person(reading, why));
    }
    item->rows++;
    reading->rows++;
    reading->smallest = fmin(reading->smallest, score);
    reading->largest = fmax(reading->largest, score);
  }
}

/* ---- numbering ---- */

static int by_bytes(const struct item *a, const struct item *b) {
  return strcmp(a->name, b->name);
}

static int by_number(const struct item *a, const struct item *b) {
  return a->number < b->number ? -1 : a->number > b->number ? 1 : by_bytes(a, b);
}

static void sort_items(struct reading *reading) {
  bool all_numbers = true;
  for (const struct item *item = reading->items; item != NULL; item = item->hh.next) {
    all_numbers = all_numbers && item->is_number;
  }
  if (all_numbers) {
    /* Sorted, so that arms do not depend on the order of the rows: 2 comes before 10 if all names are numbers. */
    HASH_SORT(reading->items, by_number);
  } else {
    HASH_SORT(reading->items, by_bytes);
  }
}

static enum cv_err choose_scale(const struct reading *reading, struct cv_csv_data *data, struct cv_why *why) {
  const struct cv_csv_ask *ask = reading->ask;
  data->low = ask->has_scale ? ask->low : reading->smallest;
  data->high = ask->has_scale ? ask->high : reading->largest;
  if (!(data->low < data->high)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: every %s is %.10g; expected different scores, or items.scale in the campaign file", ask->path,
                   ask->score_column, data->low);
  }
  /* Two finite scores can be further apart than a double can tell. */
  if (!isfinite(data->high - data->low)) {
    return cv_fail(why, CV_ERR_INVALID, "%s: the range of scores, %.10g to %.10g, is too large", ask->path, data->low,
                   data->high);
  }
  return CV_OK;
}

static enum cv_err lay_out_persons(struct reading *reading, struct cv_persons *persons) {
  if (reading->persons == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_persons_init(persons, HASH_COUNT(reading->persons), reading->rows));
  /* Persons keep the order of the file: their place in it is the id of their worker. */
  uint64_t *start = persons->start;
  for (struct person *person = reading->persons; person != NULL; person = person->hh.next, start++) {
    person->next = start[0];
    start[1] = start[0] + person->rows;
  }
  return CV_OK;
}

/* Numbers the items and allocates the result: start[] of each arm and person follows from the counts of pass one. */
static enum cv_err lay_out(struct reading *reading, struct cv_csv_data *data, struct cv_why *why) {
  uint32_t arms = HASH_COUNT(reading->items);
  if (arms == 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s: no rows after the header; expected at least one", reading->ask->path);
  }
  CV_TRY(choose_scale(reading, data, why));
  sort_items(reading);
  data->items = arms;
  data->rows = (struct cv_rows){.arms = arms,
                                .start = calloc(arms + 1, sizeof(*data->rows.start)),
                                .value = calloc(reading->rows, sizeof(*data->rows.value))};
  if (data->rows.start == NULL || data->rows.value == NULL || lay_out_persons(reading, &data->persons) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory for %llu rows", reading->ask->path,
                   (unsigned long long)reading->rows);
  }
  struct cv_names names = {0};
  uint32_t arm = 0;
  for (struct item *item = reading->items; item != NULL; item = item->hh.next, arm++) {
    cv_names_add(&names, item->name);
    item->arm = arm;
    item->next = data->rows.start[arm];
    data->rows.start[arm + 1] = item->next + item->rows;
  }
  enum cv_err err = cv_names_take(&names, &data->name);
  cv_names_fini(&names);
  return err == CV_OK ? err : cv_fail(why, err, "%s: out of memory", reading->ask->path);
}

static enum cv_err put_person(struct reading *reading, struct cv_persons *persons, uint32_t arm, uint32_t value,
                              struct cv_why *why) {
  struct person *person;
  HASH_FIND_STR(reading->persons, cv_records_field(&reading->records, reading->worker_at), person);
  if (person == NULL || person->rows == 0) {
    return changed(reading, why);
  }
  /* As for items: counts of the first pass bound the writes of this one. */
  person->rows--;
  persons->arm[person->next] = arm;
  persons->value[person->next++] = value;
  return CV_OK;
}

static enum cv_err second_pass(struct reading *reading, struct cv_csv_data *data, struct cv_why *why) {
  const char *name = NULL;
  double score = 0;
  /* The header is checked again, too: the file may have been replaced. */
  CV_TRY(cv_records_rewind(&reading->records, why));
  CV_TRY(read_header(reading, why));
  for (uint64_t left = reading->rows;; left--) {
    bool end;
    CV_TRY(next_row(reading, &end, &name, &score, why));
    if (end) {
      return left == 0 ? CV_OK : changed(reading, why);
    }
    struct item *item;
    HASH_FIND_STR(reading->items, name, item);
    /* Any difference to the counts of the first pass would write out of bounds. */
    if (left == 0 || item == NULL || item->rows == 0 || !(score >= data->low && score <= data->high)) {
      return changed(reading, why);
    }
    uint32_t value = (uint32_t)cv_grid_from((score - data->low) / (data->high - data->low));
    if (reading->persons != NULL) {
      CV_TRY(put_person(reading, &data->persons, item->arm, value, why));
    }
    item->rows--;
    data->rows.value[item->next++] = value;
  }
}

enum cv_err cv_csv_read(const struct cv_csv_ask *ask, struct cv_csv_data *ret, struct cv_why *why) {
  struct reading reading = {.ask = ask};
  struct cv_csv_data data = {0};
  CV_TRY(cv_records_open(ask->path, ask->delimiter, &reading.records, why));
  enum cv_err err = first_pass(&reading, why);
  if (err == CV_OK) {
    err = lay_out(&reading, &data, why);
  }
  if (err == CV_OK) {
    err = second_pass(&reading, &data, why);
  }
  CV_TABLE_DRAIN(reading.items, free);
  CV_TABLE_DRAIN(reading.persons, free);
  cv_records_close(&reading.records);
  if (err != CV_OK) {
    cv_csv_fini(&data);
    return err;
  }
  *ret = data;
  return CV_OK;
}

void cv_csv_fini(struct cv_csv_data *data) {
  if (data == NULL) {
    return;
  }
  free(data->name);
  cv_rows_fini(&data->rows);
  cv_persons_fini(&data->persons);
  *data = (struct cv_csv_data){0};
}
