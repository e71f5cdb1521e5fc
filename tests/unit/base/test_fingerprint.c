/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/fingerprint.h"

#define GOOD "00017f80ff9abcdef0123456789abcdef0123456789abcdef0123456789abcde"

static void test_text_and_back(void **state) {
  struct cv_digest key, upper;
  assert_true(cv_fingerprint_read(GOOD "+more", &key)); /* what follows is the caller's */
  assert_int_equal(key.bytes[1], 0x01);
  assert_int_equal(key.bytes[2], 0x7f);
  assert_int_equal(key.bytes[31], 0xde);
  assert_string_equal(cv_fingerprint_of(&key).text, GOOD);
  assert_true(cv_fingerprint_read("00017F80FF9ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDE", &upper));
  assert_true(cv_digest_is_same(&key, &upper));
  upper.bytes[31] ^= 1;
  assert_false(cv_digest_is_same(&key, &upper));
}

static void test_what_is_none(void **state) {
  static const char *const bad[] = {
      "",
      "00017f80ff9abcdef0123456789abcdef0123456789abcdef0123456789abcd",
      "00017f80ff9abcdef0123456789abcdef0123456789abcdef0123456789abcdg",
      " 0017f80ff9abcdef0123456789abcdef0123456789abcdef0123456789abcde",
      "0000000000000000000000000000000000000000000000000000000000000000",
  };
  struct cv_digest key = {.bytes = {7}};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    assert_false(cv_fingerprint_read(bad[i], &key));
    assert_int_equal(key.bytes[0], 7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_and_back), cmocka_unit_test(test_what_is_none)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
