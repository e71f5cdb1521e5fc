/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the harnesses of data files: reads one and checks what comes out. */
#ifndef CV_FUZZ_DATA_H
#define CV_FUZZ_DATA_H

#include "common/base/grid.h"
#include "common/base/names.h"
#include "tests/fuzz/fuzz.h"
#include "worker/data.h"

/* `choice` selects persons, a scale and which rows and items stay; the file and its format are in `ask`. */
static inline void fuzz_data(struct cv_items_csv ask, uint8_t choice) {
  struct cv_data data;
  struct cv_why why = {.text = ""};
  (void)snprintf(ask.item_column, sizeof(ask.item_column), "item");
  (void)snprintf(ask.score_column, sizeof(ask.score_column), "score");
  (void)snprintf(ask.worker_column, sizeof(ask.worker_column), "%s", (choice & 4) != 0 ? "who" : "");
  ask.scale = (choice & 2) != 0 ? (struct cv_scale){.low = 0, .high = 5} : (struct cv_scale){0};
  ask.clamps = cv_scale_is_declared(&ask.scale) && (choice & 128) != 0;
  ask.skips_missing = (choice & 8) != 0;
  ask.top = (choice & 16) != 0 ? 2 : 0;
  ask.least_rows = (choice & 32) != 0 ? 2 : 0;
  if (cv_data_read(&ask, (choice & 64) != 0, &data, &why) != CV_OK) {
    fuzz_line(why.text);
    return;
  }
  CV_REQUIRE(data.items >= 1 && data.items <= (ask.top > 0 ? ask.top : (uint32_t)CV_ARMS_MAX));
  for (uint32_t i = 0; i < data.items; i++) {
    CV_REQUIRE(cv_name_is_item(data.name[i]) && data.rows.start[i] + ask.least_rows <= data.rows.start[i + 1]);
    CV_REQUIRE(data.rows.start[i] < data.rows.start[i + 1]);
  }
  for (uint64_t i = 0; i < data.rows.start[data.items]; i++) {
    CV_REQUIRE(data.rows.value[i] <= CV_GRID);
  }
  CV_REQUIRE((choice & 64) == 0 || cv_scale_is_declared(&ask.scale));
  CV_REQUIRE(data.rows.arms == data.items && data.scale.low < data.scale.high);
  CV_REQUIRE((data.persons.persons > 0) == (ask.worker_column[0] != '\0'));
  for (uint64_t i = 0; data.persons.persons > 0 && i < data.persons.start[data.persons.persons]; i++) {
    CV_REQUIRE(data.persons.arm[i] < data.items && data.persons.value[i] <= CV_GRID);
  }
  for (uint32_t i = 0; i < data.notes.count; i++) {
    fuzz_line(data.notes.note[i].text);
  }
  cv_data_fini(&data);
}

#endif
