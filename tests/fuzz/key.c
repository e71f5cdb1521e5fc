/* SPDX-License-Identifier: Apache-2.0 */
/* A key file: 32 bytes that only its owner can read, or no key. The first byte is the file's mode. */
#include <sys/stat.h>

#include "common/crypto/crypto.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct fuzz_file file;
  struct cv_key key;
  struct cv_why why = {.text = ""};
  if (n < 1) {
    return 0;
  }
  mode_t mode = (bytes[0] & 0x80) != 0 ? 0600 : bytes[0] & 0777;
  fuzz_file_make(&file, bytes + 1, n - 1);
  CV_REQUIRE(fchmod(file.fd, mode) == 0);
  if (cv_key_read(file.path, &key, &why) == CV_OK) {
    CV_REQUIRE(n - 1 == CV_KEY_BYTES && (mode & 077) == 0 && memcmp(key.bytes, bytes + 1, CV_KEY_BYTES) == 0);
    cv_key_wipe(&key);
  } else {
    fuzz_line(why.text);
    CV_REQUIRE(n - 1 != CV_KEY_BYTES || (mode & 077) != 0);
  }
  fuzz_file_drop(&file);
  return 0;
}
