/* SPDX-License-Identifier: Apache-2.0 */
/* The file of denied serial numbers: sorted, upper case, no leading zeros, or one line that names the faulty line. */
#include "common/net/denied.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct fuzz_file file;
  struct cv_denied denied = {0};
  struct cv_why why = {.text = ""};
  fuzz_file_make(&file, bytes, n);
  if (cv_denied_load(file.path, &denied, &why) == CV_OK) {
    CV_REQUIRE(denied.count <= CV_DENIED_MAX);
    for (size_t i = 0; i < denied.count; i++) {
      const char *hex = denied.serial[i].hex;
      CV_REQUIRE(hex[0] != '\0' && hex[0] != '0' && hex[strspn(hex, "0123456789ABCDEF")] == '\0');
      CV_REQUIRE(i == 0 || strcmp(denied.serial[i - 1].hex, hex) <= 0);
    }
    cv_denied_fini(&denied);
  } else {
    fuzz_line(why.text);
    CV_REQUIRE(strncmp(why.text, file.path, strlen(file.path)) == 0);
  }
  fuzz_file_drop(&file);
  return 0;
}
