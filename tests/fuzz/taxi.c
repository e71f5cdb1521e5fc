/* SPDX-License-Identifier: Apache-2.0 */
/* A file of taxi trips; the first byte selects which of area, top and least_trips are set. */
#include "worker/taxi.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  if (n < 1) {
    return 0;
  }
  struct fuzz_file file;
  struct cv_taxis taxis;
  struct cv_why why = {.text = ""};
  fuzz_file_make(&file, bytes + 1, n - 1);
  const struct cv_items_taxi items = {.file = file.path,
                                      .area = (bytes[0] & 1) != 0 ? 8 : 0,
                                      .top = (bytes[0] & 2) != 0 ? 2 : 0,
                                      .least_trips = (bytes[0] & 4) != 0 ? 2 : 0,
                                      .cost_per_mile = (bytes[0] & 8) != 0 ? 1e-6 : 1};
  if (cv_taxis_read(&items, &taxis, &why) == CV_OK) {
    CV_REQUIRE(taxis.drivers >= 1 && taxis.drivers <= (items.top > 0 ? items.top : CV_ARMS_MAX));
    CV_REQUIRE(taxis.trips >= taxis.drivers * (items.least_trips > 0 ? items.least_trips : 1));
    for (uint32_t i = 0; i < taxis.drivers; i++) {
      CV_REQUIRE(cv_name_is_item(taxis.name[i]));
      CV_REQUIRE(taxis.cost_micro[i] >= 1 && taxis.cost_micro[i] <= CV_COST_MAX_MICRO);
    }
    cv_taxis_fini(&taxis);
  } else {
    fuzz_line(why.text);
  }
  fuzz_file_drop(&file);
  return 0;
}
