/* SPDX-License-Identifier: Apache-2.0 */
/* A data file; the first byte selects the delimiter and whether there are a scale and persons. */
#include "worker/csv.h"

#include "common/base/grid.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  if (n < 1) {
    return 0;
  }
  struct fuzz_file file;
  struct cv_csv_data data;
  struct cv_why why = {.text = ""};
  fuzz_file_make(&file, bytes + 1, n - 1);
  const struct cv_csv_ask ask = {.path = file.path,
                                 .item_column = "item",
                                 .score_column = "score",
                                 .worker_column = (bytes[0] & 4) != 0 ? "who" : NULL,
                                 .delimiter = (bytes[0] & 1) != 0 ? '\t' : ',',
                                 .has_scale = (bytes[0] & 2) != 0,
                                 .low = 0,
                                 .high = 5};
  if (cv_csv_read(&ask, &data, &why) == CV_OK) {
    CV_REQUIRE(data.items >= 1 && data.items <= CV_ARMS_MAX);
    for (uint32_t i = 0; i < data.items; i++) {
      CV_REQUIRE(cv_name_is_item(data.name[i]) && data.rows.start[i] < data.rows.start[i + 1]);
    }
    for (uint64_t i = 0; i < data.rows.start[data.items]; i++) {
      CV_REQUIRE(data.rows.value[i] <= CV_GRID);
    }
    CV_REQUIRE(data.rows.arms == data.items && data.low < data.high);
    CV_REQUIRE((data.persons.persons > 0) == (ask.worker_column != NULL));
    for (uint64_t i = 0; data.persons.persons > 0 && i < data.persons.start[data.persons.persons]; i++) {
      CV_REQUIRE(data.persons.arm[i] < data.items && data.persons.value[i] <= CV_GRID);
    }
    cv_csv_fini(&data);
  } else {
    fuzz_line(why.text);
  }
  fuzz_file_drop(&file);
  return 0;
}
