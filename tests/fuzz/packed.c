/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a file that is packed with gzip or zstd, as the first byte says. */
#include "tests/fuzz/fuzz.h"
#include "worker/bytes.h"

enum { MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  if (n < 1) {
    return 0;
  }
  struct fuzz_file file;
  struct cv_bytes in;
  struct cv_why why = {.text = ""};
  enum cv_packing packing = (bytes[0] & 1) != 0 ? CV_PACKING_ZSTD : CV_PACKING_GZIP;
  size_t count = 0;
  fuzz_file_make(&file, bytes + 1, n - 1);
  CV_REQUIRE(cv_bytes_open(file.path, packing, MOST, &in, &why) == CV_OK);
  for (; cv_bytes_get(&in) != EOF; count++) {
  }
  CV_REQUIRE(count <= MOST);
  if (cv_bytes_check(&in, &why) != CV_OK) {
    fuzz_line(why.text);
  }
  CV_REQUIRE(cv_bytes_get(&in) == EOF);
  cv_bytes_close(&in);
  fuzz_file_drop(&file);
  return 0;
}
