/* SPDX-License-Identifier: Apache-2.0 */
/* The file of issued certificates: a range in it is never issued again, whatever else the file contains. */
#include "deploy/launcher/pki/index.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  static const char entry[] = "\nAB12\tcrowdveil:gateway/10-20\t5000\n";
  struct cv_identity asked;
  struct fuzz_file file;
  struct cv_pki_index index;
  struct cv_why why = {.text = ""};
  bool ends_clean = n == 0 || bytes[n - 1] == '\n';
  CV_REQUIRE(cv_identity_parse("crowdveil:worker/15", &asked, NULL) == CV_OK);
  fuzz_file_make(&file, bytes, n);
  CV_REQUIRE(write(file.fd, ends_clean ? entry + 1 : entry, strlen(entry) - ends_clean) > 0);
  enum cv_err err = cv_pki_index_open(file.path, false, &index, &why);
  if (err == CV_OK) {
    CV_REQUIRE(cv_pki_index_check(&index, &asked, false, 1000, &why) == CV_ERR_EXISTS);
    cv_pki_index_close(&index);
  } else {
    CV_REQUIRE(err == CV_ERR_DAMAGED || err == CV_ERR_VERSION);
  }
  fuzz_line(why.text);
  fuzz_file_drop(&file);
  return 0;
}
