/* SPDX-License-Identifier: Apache-2.0 */
/* An accepted anchor is written back unchanged. */
#include "broker/both/anchor.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct fuzz_file file;
  struct cv_anchor *anchor;
  struct cv_anchor_mark mark;
  struct cv_why why = {.text = ""};
  bool exists;
  fuzz_file_make(&file, bytes, n);
  if (cv_anchor_open(file.path, &anchor, &exists, &mark, &why) == CV_OK) {
    if (exists) {
      char back[320];
      CV_REQUIRE(cv_anchor_write(anchor, &mark, &why) == CV_OK);
      ssize_t got = pread(file.fd, back, sizeof(back), 0);
      CV_REQUIRE(got > 0 && (size_t)got <= n && memcmp(back, bytes, (size_t)got) == 0);
    }
    cv_anchor_close(anchor);
  } else {
    fuzz_line(why.text);
  }
  fuzz_file_drop(&file);
  return 0;
}
