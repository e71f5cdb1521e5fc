/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/export.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct fuzz_file file;
  struct cv_export export;
  struct cv_why why = {.text = ""};
  fuzz_file_make(&file, bytes, n);
  if (cv_export_read_json(file.path, &export, &why) == CV_OK) {
    cv_export_fini(&export);
  } else {
    CV_REQUIRE(why.text[0] != '\0');
  }
  fuzz_file_drop(&file);
  return 0;
}
