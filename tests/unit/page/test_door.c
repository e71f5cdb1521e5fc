/* SPDX-License-Identifier: Apache-2.0 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
// clang-format on

#include "common/page/door.h"

static const struct cv_door door = {
    .token = "0123456789abcdef0123456789abcdef", .port = 7480, .hosts = "pages.example, other"};
#define COOKIE "crowdveil-7480=0123456789abcdef0123456789abcdef"

/* The name of the cookie as a value. */
#define A_COOKIE "a=" COOKIE

static bool has_cookie(const struct cv_door *of, const char *cookie) {
  const struct cv_door_guesses guesses = cv_door_guesses(of, cookie);
  return cv_door_opens(of, &guesses);
}

static bool has_token(const struct cv_door *of, const char *token) {
  const struct cv_door_guesses guesses = cv_door_guess(token);
  return cv_door_opens(of, &guesses);
}

static void the_cookie_stands_for_the_token(void **state) {
  static const char *const good[] = {COOKIE, "a=b; " COOKIE, COOKIE "; c=d", "crowdveil-7480=x; " COOKIE, "; ;" COOKIE};
  static const char *const bad[] = {"",
                                    "crowdveil-7480=",
                                    "crowdveil-748=0123456789abcdef0123456789abcdef",
                                    "xcrowdveil-7480=0123456789abcdef0123456789abcdef",
                                    COOKIE "0",
                                    "crowdveil-7480=0123456789abcdef0123456789abcde",
                                    "crowdveil-7480=0123456789abcdef0123456789abcdeF",
                                    A_COOKIE};
  for (size_t i = 0; i < CV_COUNT(good); i++) {
    assert_true(has_cookie(&door, good[i]));
  }
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    assert_false(has_cookie(&door, bad[i]));
  }
  assert_false(has_cookie(&door, NULL));
}

/* A head has room for thousands of them, and each is compared with the token of each person. */
static void so_many_guesses_count(void **state) {
#define WRONG_7                                                                                            \
  "crowdveil-7480=a;crowdveil-7480=b;crowdveil-7480=c;crowdveil-7480=d;crowdveil-7480=e;crowdveil-7480=f;" \
  "crowdveil-7480=g;"
  assert_true(has_cookie(&door, WRONG_7 COOKIE));
  assert_false(has_cookie(&door, WRONG_7 "crowdveil-7480=h;" COOKIE));
}

static void an_empty_token_opens_nothing(void **state) {
  static const struct cv_door open = {.port = 1};
  assert_false(has_token(&open, ""));
  assert_false(has_cookie(&open, "crowdveil-1="));
}

static void the_cookie_that_is_set_is_accepted(void **state) {
  struct cv_door_cookie cookie = cv_door_cookie(&door);
  assert_string_equal(cookie.text, COOKIE "; HttpOnly; SameSite=Strict; Path=/");
  assert_true(has_cookie(&door, cookie.text));
}

static void only_the_own_host_and_origin_may_ask(void **state) {
  static const struct {
    const char *host, *origin;
    bool good;
  } visits[] = {
      {"127.0.0.1:7480", NULL, true},
      {"localhost", "http://localhost", true},
      {"[::1]:7480", "http://[::1]:7480", true},
      {"pages.example:80", "http://pages.example:80", true},
      {"OTHER", "HTTP://other", true},
      {NULL, NULL, false},
      {"", NULL, false},
      {"pages.example.evil", NULL, false},
      {"evilpages.example", NULL, false},
      {"pages.example:", NULL, false},
      {"pages.example:123456", NULL, false},
      {"pages.example:80x", NULL, false},
      {"127.0.0.1:7480", "http://127.0.0.1", false},
      {"127.0.0.1:7480", "http://localhost:7480", false},
      {"127.0.0.1:7480", "https://127.0.0.1:7480", false},
      {"127.0.0.1:7480", "null", false},
      {"127.0.0.1:7480", "", false},
  };
  for (size_t i = 0; i < CV_COUNT(visits); i++) {
    struct cv_why why = {.text = ""};
    const struct cv_door_visit visit = {.host = visits[i].host, .origin = visits[i].origin};
    enum cv_err err = cv_door_check_origin(&door, &visit, &why);
    assert_int_equal(err, visits[i].good ? CV_OK : CV_ERR_DENIED);
    assert_true(visits[i].good || strstr(why.text, "expected") != NULL);
  }
}

/* A page of another port of this host gets the cookie, too: SameSite does not know ports. */
static void who_changes_something_names_its_origin(void **state) {
  static const struct {
    const char *origin, *site, *mode;
    bool reads, changes;
  } visits[] = {
      {NULL, NULL, NULL, true, false},
      {"http://localhost", NULL, NULL, true, true},
      {NULL, "same-origin", "cors", true, true},
      {"http://localhost", "same-origin", "navigate", true, true},
      {NULL, "", NULL, false, false},
      {NULL, "Same-Origin", NULL, false, false},
      {NULL, "none", "navigate", true, false},
      {NULL, "cross-site", "navigate", true, false},
      {NULL, "same-site", "no-cors", false, false},
      {NULL, "cross-site", "no-cors", false, false},
      {NULL, "cross-site", NULL, false, false},
      {"http://localhost", "cross-site", "navigate", true, false},
      {"http://localhost:81", "same-origin", "cors", false, false},
      {"null", NULL, NULL, false, false},
  };
  for (size_t i = 0; i < 2 * CV_COUNT(visits); i++) {
    struct cv_why why = {.text = ""};
    bool changes = i % 2 == 1, good = changes ? visits[i / 2].changes : visits[i / 2].reads;
    const struct cv_door_visit visit = {.host = "localhost",
                                        .origin = visits[i / 2].origin,
                                        .site = visits[i / 2].site,
                                        .mode = visits[i / 2].mode,
                                        .changes = changes};
    assert_int_equal(cv_door_check_origin(&door, &visit, &why), good ? CV_OK : CV_ERR_DENIED);
    assert_true(good || strstr(why.text, "expected") != NULL);
  }
}

static void a_token_is_long_and_plain(void **state) {
  assert_true(cv_door_is_token(door.token));
  assert_true(cv_door_is_token("a-Token_of_32_letters-0123456789"));
  assert_false(cv_door_is_token(door.token + 1));
  assert_false(cv_door_is_token("0123456789abcdef 123456789abcdef"));
  assert_false(cv_door_is_token("0123456789abcdef;123456789abcdef"));
}

static void a_number_has_digits_only(void **state) {
  static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "1x", "0x1", "12345678901234567890"};
  uint64_t number = 7;
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    assert_false(cv_door_number(bad[i], &number));
  }
  assert_false(cv_door_number(NULL, &number));
  assert_int_equal(number, 7);
  assert_true(cv_door_number("9999999999999999999", &number) && number == UINT64_C(9999999999999999999));
  assert_true(cv_door_number("0", &number) && number == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_cookie_stands_for_the_token),
      cmocka_unit_test(so_many_guesses_count),
      cmocka_unit_test(an_empty_token_opens_nothing),
      cmocka_unit_test(the_cookie_that_is_set_is_accepted),
      cmocka_unit_test(only_the_own_host_and_origin_may_ask),
      cmocka_unit_test(who_changes_something_names_its_origin),
      cmocka_unit_test(a_token_is_long_and_plain),
      cmocka_unit_test(a_number_has_digits_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
