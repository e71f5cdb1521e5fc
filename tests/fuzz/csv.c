/* SPDX-License-Identifier: Apache-2.0 */
/* A comma or tab separated data file; the first byte selects the delimiter and the rules (data.h). */
#include "tests/fuzz/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  if (n < 1) {
    return 0;
  }
  struct fuzz_file file;
  fuzz_file_make(&file, bytes + 1, n - 1);
  fuzz_data((struct cv_items_csv){.file = file.path, .delimiter = (bytes[0] & 1) != 0 ? '\t' : ','}, bytes[0]);
  fuzz_file_drop(&file);
  return 0;
}
