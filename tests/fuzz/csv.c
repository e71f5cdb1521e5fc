/* SPDX-License-Identifier: Apache-2.0 */
/* A data file; the first byte selects the delimiter and whether there are a scale and persons. */
#include "worker/data.h"

#include "common/base/grid.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  if (n < 1) {
    return 0;
  }
  struct fuzz_file file;
  struct cv_data data;
  struct cv_why why = {.text = ""};
  fuzz_file_make(&file, bytes + 1, n - 1);
  const struct cv_items_csv ask = {.format = CV_FORMAT_CSV,
                                   .file = file.path,
                                   .item_column = "item",
                                   .score_column = "score",
                                   .worker_column = {(bytes[0] & 4) != 0 ? 'w' : '\0', 'h', 'o'},
                                   .delimiter = (bytes[0] & 1) != 0 ? '\t' : ',',
                                   .has_scale = (bytes[0] & 2) != 0,
                                   .scale_low = 0,
                                   .scale_high = 5,
                                   .skips_missing = (bytes[0] & 8) != 0,
                                   .top = (bytes[0] & 16) != 0 ? 2 : 0,
                                   .least_rows = (bytes[0] & 32) != 0 ? 2 : 0};
  if (cv_data_read(&ask, &data, &why) == CV_OK) {
    CV_REQUIRE(data.items >= 1 && data.items <= CV_ARMS_MAX);
    for (uint32_t i = 0; i < data.items; i++) {
      CV_REQUIRE(cv_name_is_item(data.name[i]) && data.rows.start[i] < data.rows.start[i + 1]);
    }
    for (uint64_t i = 0; i < data.rows.start[data.items]; i++) {
      CV_REQUIRE(data.rows.value[i] <= CV_GRID);
    }
    CV_REQUIRE(data.rows.arms == data.items && data.scale.low < data.scale.high);
    CV_REQUIRE((data.persons.persons > 0) == (ask.worker_column[0] != '\0'));
    for (uint64_t i = 0; data.persons.persons > 0 && i < data.persons.start[data.persons.persons]; i++) {
      CV_REQUIRE(data.persons.arm[i] < data.items && data.persons.value[i] <= CV_GRID);
    }
    cv_data_fini(&data);
  } else {
    fuzz_line(why.text);
  }
  fuzz_file_drop(&file);
  return 0;
}
