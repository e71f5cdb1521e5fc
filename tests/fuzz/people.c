/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program or a person answers. First byte: which. Then an answer line (exchange.h), the body of a form's post
 * (form_post.h), or a command to split into words (spawner.h). No message contains what was answered: it may be a
 * score.
 */
#include "common/base/grid.h"
#include "tests/fuzz/fuzz.h"
#include "worker/exchange.h"
#include "worker/form_post.h"
#include "worker/spawner.h"

enum { STEPS = 10, SHORT = 4 /* a shorter text may be in any message by chance */ };

static void check_line(const char *text, size_t n) {
  struct cv_exchange_answer answer;
  struct cv_why why = {.text = ""};
  if (cv_exchange_read(text, n, &answer, &why) != CV_OK) {
    fuzz_line(why.text);
    CV_REQUIRE(strlen(text) <= SHORT || strstr(why.text, text) == NULL ||
               strstr("expected a score or decline", text) != NULL);
    return;
  }
  CV_REQUIRE(answer.declines || (answer.score >= 0 && answer.score <= CV_GRID));
  CV_REQUIRE(!answer.has_id || answer.id > 0);
}

static void check_post(const char *text, size_t n) {
  struct cv_form_post post;
  struct cv_why why = {.text = ""};
  if (cv_form_read(text, n, STEPS, &post, &why) != CV_OK) {
    fuzz_line(why.text);
    return;
  }
  CV_REQUIRE(strlen(post.secret) == CV_FORM_SECRET_BYTES - 1);
  CV_REQUIRE(post.kind != CV_FORM_SCORE || (post.value >= 0 && post.value <= CV_GRID));
}

static void check_command(char *text, size_t n) {
  char *words[8];
  size_t found = cv_spawner_words(text, words, CV_COUNT(words));
  CV_REQUIRE(found <= CV_COUNT(words));
  for (size_t i = 0; i < found; i++) {
    CV_REQUIRE(words[i] >= text && words[i] + strlen(words[i]) <= text + n);
    CV_REQUIRE(i == 0 || words[i] > words[i - 1]);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  if (n == 0) {
    return 0;
  }
  char *text = fuzz_text(bytes + 1, n - 1);
  if (bytes[0] % 3 == 0) {
    check_line(text, n - 1);
  } else if (bytes[0] % 3 == 1) {
    check_post(text, n - 1);
  } else {
    check_command(text, strlen(text));
  }
  free(text);
  return 0;
}
