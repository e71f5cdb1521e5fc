/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a data file of a test and compares what came out. Include after cmocka.h, folder.h and data.h. */
#ifndef CV_TESTS_WORKER_TABLE_H
#define CV_TESTS_WORKER_TABLE_H

#include "common/base/grid.h"
#include "worker/data.h"

/* What follows a score outside the scale. */
#define OR_CLAMPED "; expected a score inside, or items.outside: clamp to count it as the nearer end"

/* The data as "name:value,value name:value", with values in thousandths. */
static inline void show_data(const struct cv_data *data, char *to, size_t size) {
  size_t used = 0;
  to[0] = '\0';
  for (uint32_t arm = 0; arm < data->items; arm++) {
    used += (size_t)snprintf(to + used, size - used, "%s%s:", arm == 0 ? "" : " ", data->name[arm]);
    for (uint64_t i = data->rows.start[arm]; i < data->rows.start[arm + 1]; i++) {
      used += (size_t)snprintf(to + used, size - used, "%s%lld", i == data->rows.start[arm] ? "" : ",",
                               (long long)((data->rows.value[i] * INT64_C(1000) + CV_GRID / 2) / CV_GRID));
    }
  }
}

/* Reads the file `name` of the folder, which must be good, and compares it; `notes` are its notes, one a line. */
static inline void assert_data(const struct folder *folder, const struct cv_items_csv *how, const char *name,
                               const char *expected, const char *notes) {
  char path[320], shown[800], told[2000] = "";
  struct cv_items_csv ask = *how;
  struct cv_data data = {0};
  struct cv_why why = {.text = ""};
  (void)snprintf(path, sizeof(path), "%s/%s", folder->path, name);
  ask.file = path;
  enum cv_err err = cv_data_read(&ask, false, &data, &why);
  assert_string_equal(why.text, "");
  assert_int_equal(err, CV_OK);
  show_data(&data, shown, sizeof(shown));
  assert_string_equal(shown, expected);
  for (uint32_t i = 0; notes != NULL && i < data.notes.count; i++) {
    size_t used = strlen(told);
    (void)snprintf(told + used, sizeof(told) - used, "%s\n", data.notes.note[i].text);
  }
  if (notes != NULL) {
    assert_string_equal(told, notes);
  }
  cv_data_fini(&data);
}

/* Reads a bad file: the message is its path, then `line`. */
static inline void assert_bad_data(const struct folder *folder, const struct cv_items_csv *how, const char *name,
                                   enum cv_err expected, const char *line) {
  char path[320];
  struct cv_items_csv ask = *how;
  struct cv_data data = {.items = 77};
  struct cv_why why = {.text = ""};
  (void)snprintf(path, sizeof(path), "%s/%s", folder->path, name);
  ask.file = path;
  enum cv_err err = cv_data_read(&ask, false, &data, &why);
  assert_says(&why, folder, name, line);
  assert_int_equal(err, expected);
  assert_int_equal(data.items, 77);
}

#endif
