/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's configuration file, with a rule of each type. */
#include "common/base/address.h"
#include "tests/support/settings.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct fuzz_file file;
  struct settings settings = {0};
  struct cv_why why = {.text = ""};
  fuzz_file_make(&file, bytes, n);
  if (cv_config_load(&settings_table, file.path, &settings, &why) == CV_OK) {
    CV_REQUIRE(settings.state != NULL && settings.listen != NULL && settings.level >= 0 && settings.level < 3);
    struct cv_addresses addresses;
    CV_REQUIRE(settings.brokers == NULL || cv_addresses_parse(settings.brokers, &addresses, NULL) == CV_OK);
    cv_config_fini(&settings_table, &settings);
  } else {
    fuzz_line(why.text);
    CV_REQUIRE(settings.state == NULL && settings.listen == NULL);
  }
  fuzz_file_drop(&file);
  return 0;
}
