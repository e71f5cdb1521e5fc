/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/compare.h"

#include "tests/fuzz/fuzz.h"

/* A result that was read has the same items as itself, and can be shown beside itself. */
static void show(const struct cv_compared *compared) {
  static const char *const path[2] = {"a", "b"};
  const struct cv_compared of[2] = {*compared, *compared};
  struct cv_why why;
  char *text = NULL;
  size_t n = 0;
  CV_REQUIRE(cv_compare_check(of, path, &why) == CV_OK);
  FILE *to = open_memstream(&text, &n);
  CV_REQUIRE(to != NULL && cv_compare_print(of, to) == CV_OK && fclose(to) == 0);
  /* No name of the file moves the cursor. */
  for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    CV_REQUIRE(cv_text_is_clean(line, (size_t)(end - line)));
  }
  free(text);
  json_t *all = cv_compare_json(of);
  CV_REQUIRE(all != NULL && json_array_size(json_object_get(all, "items")) == compared->items);
  json_decref(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct fuzz_file file;
  struct cv_compared compared;
  struct cv_why why = {.text = ""};
  fuzz_file_make(&file, bytes, n);
  if (cv_compared_read(file.path, &compared, &why) == CV_OK) {
    show(&compared);
    cv_compared_fini(&compared);
  } else {
    fuzz_line(why.text);
  }
  fuzz_file_drop(&file);
  return 0;
}
