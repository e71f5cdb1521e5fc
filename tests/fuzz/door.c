/* SPDX-License-Identifier: Apache-2.0 */
/* What a stranger sends to the page: Host, Origin, Cookie, a number and Sec-Fetch-Site and -Mode, one a line; a POST if
 * the input has an odd length. Nothing opens it but the token. */
#include "common/page/door.h"

#include "tests/fuzz/fuzz.h"

static const char TOKEN[] = "0123456789abcdef0123456789abcdef";

static bool has_cookie(const struct cv_door *door, const char *cookie) {
  const struct cv_door_guesses guesses = cv_door_guesses(door, cookie);
  return cv_door_opens(door, &guesses);
}

static bool has_token(const struct cv_door *door, const char *token) {
  const struct cv_door_guesses guesses = cv_door_guess(token);
  return cv_door_opens(door, &guesses);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  char *text = fuzz_text(bytes, n), *rest = NULL;
  const char *line[6] = {0};
  size_t lines = 0;
  for (char *at = strtok_r(text, "\n", &rest); at != NULL && lines < 6; at = strtok_r(NULL, "\n", &rest)) {
    line[lines++] = at;
  }
  const struct cv_door_visit visit = {
      .host = line[0], .origin = line[1], .cookie = line[2], .site = line[4], .mode = line[5], .changes = n % 2 == 1};
  struct cv_door door = {.port = 7480, .hosts = "pages.example"};
  struct cv_why why = {.text = ""};
  uint64_t number;
  memcpy(door.token, TOKEN, sizeof(TOKEN));
  if (cv_door_check_origin(&door, &visit, &why) != CV_OK) {
    fuzz_line(why.text);
  } else {
    CV_REQUIRE(!visit.changes || visit.origin != NULL || strcmp(visit.site, "same-origin") == 0);
    CV_REQUIRE(visit.host != NULL && (visit.origin == NULL || strlen(visit.origin) == strlen(visit.host) + 7));
  }
  CV_REQUIRE(!has_cookie(&door, visit.cookie) || strstr(visit.cookie, TOKEN) != NULL);
  CV_REQUIRE(visit.cookie == NULL || has_token(&door, visit.cookie) == (strcmp(visit.cookie, TOKEN) == 0));
  if (cv_door_number(line[3], &number)) {
    char again[24];
    (void)snprintf(again, sizeof(again), "%llu", (unsigned long long)number);
    CV_REQUIRE(strcmp(line[3] + strspn(line[3], "0"), again) == 0 || number == 0);
  }
  free(text);
  return 0;
}
