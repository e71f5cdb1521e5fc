/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/names.h"
#include "worker/quality/print.h"
#include "worker/remarks.h"
#include "worker/tally.h"

/* Items and persons of the tally, by their number in the file: the arm, or the place of the person's next row. */
struct layout {
  uint32_t *arm;
  uint64_t *next;        /* of each arm: the index of its next row */
  uint64_t *person_next; /* of each person; NULL without a worker column */
};

static void fini_layout(struct layout *layout) {
  free(layout->arm);
  free(layout->next);
  free(layout->person_next);
}

static enum cv_err choose_scale(const struct cv_tally *tally, bool needs_one, struct cv_scale *ret,
                                struct cv_why *why) {
  const struct cv_items_csv *ask = tally->ask;
  const struct cv_scale seen = {.low = tally->extent.low, .high = tally->extent.high};
  bool is_declared = cv_scale_is_declared(&ask->scale);
  *ret = is_declared ? ask->scale : seen;
  return is_declared || (!needs_one && cv_scale_is_declared(&seen)) ? CV_OK : cv_remarks_ask_scale(tally, why);
}

/* Numbers the arms; start[] follows from the items' rows. */
static enum cv_err lay_out_items(const struct cv_tally *tally, struct layout *layout, struct cv_data *data) {
  uint32_t items = HASH_COUNT(tally->items), arms = tally->kept;
  data->items = arms;
  data->rows = (struct cv_rows){.arms = arms,
                                .start = calloc((size_t)arms + 1, sizeof(*data->rows.start)),
                                .value = calloc(tally->kept_rows, sizeof(*data->rows.value))};
  layout->arm = calloc(items, sizeof(*layout->arm));
  layout->next = calloc(arms, sizeof(*layout->next));
  if (data->rows.start == NULL || data->rows.value == NULL || layout->arm == NULL || layout->next == NULL) {
    return CV_ERR_NOMEM;
  }
  struct cv_names names = {0};
  for (const struct cv_tally_item *item = tally->items; item != NULL; item = item->hh.next) {
    layout->arm[item->index] = item->arm;
    if (item->arm != UINT32_MAX) {
      cv_names_add(&names, item->name); /* those that stay come first, in the order of arms */
      layout->next[item->arm] = data->rows.start[item->arm];
      data->rows.start[item->arm + 1] = data->rows.start[item->arm] + item->rows;
    }
  }
  enum cv_err err = cv_names_take(&names, &data->name);
  cv_names_fini(&names);
  return err;
}

/*
 * The number of the person whose first row is the `nth` among those of so many persons: in an order that depends on
 * nothing but how many they are. So every reader of a file numbers its persons alike, and gateways, which have persons
 * in a row by number and are not equally fast, do not draw from different parts of the file.
 */
static uint32_t number_of(uint32_t persons, uint32_t nth) {
  enum { KEY = 0x5045 /* any: nothing in a file depends on it */ };
  return (uint32_t)cv_permute(KEY, persons, nth);
}

/* Sets where each person's rows begin; its number among the others is that of its worker. */
static enum cv_err lay_out_persons(const struct cv_tally *tally, struct layout *layout, struct cv_persons *ret) {
  uint32_t all = HASH_COUNT(tally->persons), persons = 0;
  if (all == 0) {
    return CV_OK;
  }
  uint64_t *rows = layout->person_next = calloc(all, sizeof(*rows));
  if (rows == NULL) {
    return CV_ERR_NOMEM;
  }
  for (const struct cv_tally_block *block = tally->first; block != NULL; block = block->next) {
    for (uint32_t i = 0; i < block->rows; i++) {
      rows[block->person[i]] += layout->arm[block->item[i]] != UINT32_MAX;
    }
  }
  for (uint32_t i = 0; i < all; i++) {
    persons += rows[i] > 0;
  }
  CV_TRY(cv_persons_init(ret, persons, tally->kept_rows));
  for (uint32_t i = 0, nth = 0; i < all; i++) {
    if (rows[i] > 0) {
      ret->start[number_of(persons, nth++) + 1] = rows[i];
    }
  }
  for (uint32_t i = 0; i < persons; i++) {
    ret->start[i + 1] += ret->start[i];
  }
  for (uint32_t i = 0, nth = 0; i < all; i++) {
    rows[i] = rows[i] > 0 ? ret->start[number_of(persons, nth++)] : 0;
  }
  return CV_OK;
}

/* Stores each row at its place, and frees the tally's rows block by block. */
static void put_rows(struct cv_tally *tally, struct layout *layout, struct cv_data *data) {
  while (tally->first != NULL) {
    struct cv_tally_block *block = tally->first;
    for (uint32_t i = 0; i < block->rows; i++) {
      uint32_t arm = layout->arm[block->item[i]];
      if (arm == UINT32_MAX) {
        continue;
      }
      double position = cv_extent_position(data->scale.low, data->scale.high, block->score[i]);
      uint32_t value = (uint32_t)cv_grid_from(position);
      data->rows.value[layout->next[arm]++] = value;
      if (layout->person_next != NULL) {
        uint64_t at = layout->person_next[block->person[i]]++;
        data->persons.arm[at] = arm;
        data->persons.value[at] = value;
      }
    }
    tally->first = block->next;
    free(block);
  }
  tally->last = NULL;
}

static uint64_t print_of(const struct cv_data *data) {
  const struct cv_persons *persons = &data->persons;
  uint64_t print = cv_print_number(CV_PRINT_EMPTY, data->items);
  for (uint32_t i = 0; i < data->items; i++) {
    print = cv_print_number(cv_print_text(print, data->name[i]), data->rows.start[i + 1]);
  }
  for (uint64_t row = 0; row < data->rows.start[data->items]; row++) {
    print = cv_print_number(print, data->rows.value[row]);
  }
  for (uint32_t i = 0; i < persons->persons; i++) {
    print = cv_print_number(print, persons->start[i + 1]);
    for (uint64_t row = persons->start[i]; row < persons->start[i + 1]; row++) {
      print = cv_print_number(cv_print_number(print, persons->arm[row]), persons->value[row]);
    }
  }
  return print == 0 ? 1 : print;
}

static enum cv_err make_data(struct cv_tally *tally, bool needs_scale, struct cv_data *data, struct cv_why *why) {
  struct layout layout = {0};
  CV_TRY(cv_tally_choose(tally, why));
  CV_TRY(choose_scale(tally, needs_scale, &data->scale, why));
  enum cv_err err = lay_out_items(tally, &layout, data);
  if (err == CV_OK) {
    err = lay_out_persons(tally, &layout, &data->persons);
  }
  if (err == CV_OK) {
    put_rows(tally, &layout, data);
    data->print = print_of(data);
    cv_remarks_make(tally, data->persons.persons, &data->notes);
  } else {
    (void)cv_fail(why, err, "%s: %s for %llu rows", tally->ask->file, cv_err_text(err),
                  (unsigned long long)tally->kept_rows);
  }
  fini_layout(&layout);
  return err;
}

enum cv_err cv_data_read(const struct cv_items_csv *ask, bool needs_scale, struct cv_data *ret, struct cv_why *why) {
  struct cv_tally *tally = calloc(1, sizeof(*tally));
  struct cv_data data = {0};
  if (tally == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", ask->file);
  }
  enum cv_err err = cv_tally_read(ask, tally, why);
  if (err == CV_OK) {
    err = make_data(tally, needs_scale, &data, why);
  }
  cv_tally_fini(tally);
  free(tally);
  if (err != CV_OK) {
    cv_data_fini(&data);
    return err;
  }
  *ret = data;
  return CV_OK;
}

void cv_data_fini(struct cv_data *data) {
  if (data == NULL) {
    return;
  }
  free(data->name);
  cv_rows_fini(&data->rows);
  cv_persons_fini(&data->persons);
  *data = (struct cv_data){0};
}
