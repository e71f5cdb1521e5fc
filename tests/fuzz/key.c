/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of master keys that only its owner can read, or no key. The first byte is the file's mode. A file is read as
 * long as it is whole: without its last byte it is refused.
 */
#include <sys/stat.h>

#include "common/crypto/ring.h"
#include "tests/fuzz/fuzz.h"

static void check_accepted(const struct cv_ring *ring, const char *bytes, size_t n) {
  struct cv_ring cut;
  CV_REQUIRE(ring->n >= 1 && ring->n <= CV_RING_KEYS);
  for (size_t i = 0; i < ring->n; i++) {
    struct cv_key_id id = cv_key_id(ring->item[i].key);
    CV_REQUIRE(ring->item[i].number > 0 && (i == 0 || ring->item[i].number < ring->item[i - 1].number));
    CV_REQUIRE(cv_ring_find(ring, &id) == ring->item[i].key);
  }
  CV_REQUIRE(cv_ring_parse("cut", bytes, n - 1, &cut, NULL) == CV_ERR_FORMAT);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct fuzz_file file;
  struct cv_ring ring;
  struct cv_why why = {.text = ""};
  if (n < 1) {
    return 0;
  }
  mode_t mode = (bytes[0] & 0x80) != 0 ? 0600 : bytes[0] & 0777;
  fuzz_file_make(&file, bytes + 1, n - 1);
  CV_REQUIRE(fchmod(file.fd, mode) == 0);
  if (cv_ring_read(file.path, &ring, &why) == CV_OK) {
    CV_REQUIRE((mode & 077) == 0);
    check_accepted(&ring, (const char *)bytes + 1, n - 1);
    cv_ring_fini(&ring);
  } else {
    fuzz_line(why.text);
  }
  fuzz_file_drop(&file);
  return 0;
}
