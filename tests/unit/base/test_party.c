/* SPDX-License-Identifier: Apache-2.0 */
/* Expected names in a configuration: exactly those; `any` cannot be a party's name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "common/base/hello.h"
#include "common/base/party.h"
#include "common/base/spec.h"

static void test_names(void **state) {
  char longest[CV_NAME_BYTES + 1];
  memset(longest, 'a', sizeof(longest) - 2);
  longest[CV_NAME_BYTES - 1] = '\0';
  assert_true(cv_party_is_valid(longest));
  memset(longest, 'a', sizeof(longest) - 1);
  longest[CV_NAME_BYTES] = '\0';
  assert_false(cv_party_is_valid(longest));
  static const char *const good[] = {"main", "7", "a.b-c_D", "Any", "anyone"};
  static const char *const bad[] = {"", "any", "a b", "a,b", "a/b", "caf\xc3\xa9", "a\n", "*"};
  for (size_t i = 0; i < CV_COUNT(good); i++) {
    assert_true(cv_party_is_valid(good[i]));
    assert_true(cv_party_list_is_valid(good[i]));
  }
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    assert_false(cv_party_is_valid(bad[i]));
  }
}

static void test_lists(void **state) {
  assert_true(cv_party_list_is_valid("any"));
  assert_true(cv_party_list_is_valid("alice, bob\tcarol"));
  static const char *const bad[] = {"", " ", ",", "any, alice", "alice any", " any", "alice, b/c"};
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    assert_false(cv_party_list_is_valid(bad[i]));
  }
}

static void test_names_in_a_list(void **state) {
  assert_true(cv_party_list_has("any", "eve"));
  assert_true(cv_party_list_has("alice, bob", "bob"));
  static const char *const others[] = {"Bob", "bo", "bobb", "alice, bob", "any", ""};
  for (size_t i = 0; i < CV_COUNT(others); i++) {
    assert_false(cv_party_list_has("alice, bob", others[i]));
  }
}

static void test_which_party_to_upgrade(void **state) {
  struct cv_why why;
  const struct cv_hello ours = {.present = true, .version = CV_WIRE_VERSION}, older = {.present = true, .version = 1},
                        newer = {.present = true, .version = CV_WIRE_VERSION + 1};
  assert_int_equal(cv_hello_check(&ours, "worker", "broker", &why), CV_OK);
  assert_int_equal(cv_hello_check(&older, "worker", "broker", &why), CV_ERR_VERSION);
  assert_string_equal(why.text, "a hello of wire version 1 from the worker; expected version 3: upgrade the worker");
  assert_int_equal(cv_hello_check(&newer, "worker", "broker", &why), CV_ERR_VERSION);
  assert_string_equal(why.text, "a hello of wire version 4 from the worker; expected version 3: upgrade the broker");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_lists),
      cmocka_unit_test(test_names_in_a_list),
      cmocka_unit_test(test_which_party_to_upgrade),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
