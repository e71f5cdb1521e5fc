/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/export.h"

#include "tests/fuzz/fuzz.h"

/* An export that was read is written, and read again as the same. */
static void check_again(const struct cv_export *export) {
  char *text[2] = {NULL, NULL};
  size_t n[2] = {0, 0};
  struct cv_export again = {0};
  for (size_t i = 0; i < 2; i++) {
    FILE *to = open_memstream(&text[i], &n[i]);
    CV_REQUIRE(to != NULL && cv_export_write_json(i == 0 ? export : &again, to) == CV_OK && fclose(to) == 0);
    if (i == 0) {
      struct fuzz_file file;
      struct cv_why why = {.text = ""};
      fuzz_file_make(&file, (const uint8_t *)text[0], n[0]);
      CV_REQUIRE(cv_export_read_json(file.path, &again, &why) == CV_OK);
      fuzz_file_drop(&file);
    }
  }
  CV_REQUIRE(n[0] == n[1] && memcmp(text[0], text[1], n[0]) == 0);
  free(text[0]);
  free(text[1]);
  cv_export_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct fuzz_file file;
  struct cv_export export;
  struct cv_why why = {.text = ""};
  fuzz_file_make(&file, bytes, n);
  if (cv_export_read_json(file.path, &export, &why) == CV_OK) {
    check_again(&export);
    cv_export_fini(&export);
  } else {
    fuzz_line(why.text);
  }
  fuzz_file_drop(&file);
  return 0;
}
