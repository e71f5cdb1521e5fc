/* SPDX-License-Identifier: Apache-2.0 */
/* The normal form of a name, and how it is shown. */
#include <stdlib.h>
#include <string.h>

#include "common/base/names.h"
#include "common/base/normal.h"
#include "common/base/text.h"
#include "common/base/width.h"
#include "tests/fuzz/fuzz.h"

static void check_shown(const char *name) {
  static const size_t columns[] = {1, 2, 7, 40};
  struct cv_text_shown shown = cv_text_shown(name);
  CV_REQUIRE(cv_text_is_clean(shown.text, strlen(shown.text)));
  CV_REQUIRE(strcmp(shown.text, name) == 0 || cv_text_runs_left(name));
  CV_REQUIRE(cv_width_of(shown.text) == cv_width_of(name));
  for (size_t i = 0; i < CV_COUNT(columns); i++) {
    shown = cv_width_cut(name, columns[i], "~");
    CV_REQUIRE(cv_width_of(shown.text) <= columns[i] && cv_text_is_clean(shown.text, strlen(shown.text)));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  char *typed = malloc(n + 1), name[CV_ITEM_BYTES], again[CV_ITEM_BYTES];
  struct cv_why why = {.text = ""};
  CV_REQUIRE(typed != NULL);
  if (n > 0) {
    memcpy(typed, bytes, n);
  }
  typed[n] = '\0';
  enum cv_err err = cv_name_normalize(typed, name, sizeof(name), &why);
  if (err == CV_OK) {
    CV_REQUIRE(cv_name_is_item(name) && cv_name_is_normal(name, sizeof(name)));
    CV_REQUIRE(cv_name_normalize(name, again, sizeof(again), NULL) == CV_OK && strcmp(name, again) == 0);
    CV_REQUIRE(cv_name_is_normal(typed, sizeof(name)) == (strcmp(typed, name) == 0));
    check_shown(name);
  } else {
    CV_REQUIRE(err == CV_ERR_FORMAT || err == CV_ERR_INVALID);
    fuzz_line(why.text);
    CV_REQUIRE(!cv_name_is_normal(typed, sizeof(name)));
  }
  free(typed);
  return 0;
}
