/* SPDX-License-Identifier: Apache-2.0 */
/* The list of denied serial numbers: comments of any length, and the right line number in a message. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <string.h>

#include "common/net/denied.h"
#include "tests/support/folder.h"

static enum cv_err load(const char *head, int comment, const char *tail, size_t tail_n, struct cv_denied *ret,
                        struct cv_why *why) {
  struct folder folder;
  folder_make(&folder);
  const char *path = folder_file(&folder, "denied");
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  assert_true(fprintf(file, "%s# %*s\n", head, comment, "why") > 0);
  assert_int_equal(fwrite(tail, 1, tail_n, file), tail_n);
  assert_int_equal(fclose(file), 0);
  enum cv_err err = cv_denied_load(path, ret, why);
  folder_remove(&folder);
  return err;
}

static void test_a_comment_is_as_long_as_it_likes(void **state) {
  static const int lengths[] = {1, 250, 253, 254, 255, 256, 257, 511, 512, 100000};
  for (size_t i = 0; i < CV_COUNT(lengths); i++) {
    struct cv_denied denied;
    struct cv_why why = {.text = ""};
    if (load("0a:0B ", lengths[i], "\n ff # another", 14, &denied, &why) != CV_OK) {
      fail_msg("%d: %s", lengths[i], why.text);
    }
    assert_int_equal(denied.count, 2);
    assert_string_equal(denied.serial[0].hex, "A0B");
    assert_string_equal(denied.serial[1].hex, "FF");
    assert_true(cv_denied_lists(&denied, "A0B") && cv_denied_lists(&denied, "FF"));
    assert_false(cv_denied_lists(&denied, "A0") || cv_denied_lists(&denied, "1FF"));
    assert_true(cv_denied_lists(&denied, "")); /* a serial number that is not known */
    cv_denied_fini(&denied);
  }
}

static void test_an_empty_list_has_nothing(void **state) {
  const struct cv_denied none = {0};
  assert_false(cv_denied_lists(&none, "A0B") || cv_denied_lists(&none, ""));
}

static void test_the_line_is_the_right_one(void **state) {
  static const struct {
    const char *tail;
    size_t n;
  } wrong[] = {{"12\nno number\n", 13}, {"\n1\0002\n", 5}, {"7\n8 9 x", 7}};
  for (size_t i = 0; i < CV_COUNT(wrong); i++) {
    struct cv_denied denied;
    struct cv_why why = {.text = ""};
    assert_int_equal(load("\n\n", 700, wrong[i].tail, wrong[i].n, &denied, &why), CV_ERR_FORMAT);
    if (strstr(why.text, "denied:5: expected one serial number in hex a line") == NULL) {
      fail_msg("%zu: %s", i, why.text);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_comment_is_as_long_as_it_likes),
      cmocka_unit_test(test_an_empty_list_has_nothing),
      cmocka_unit_test(test_the_line_is_the_right_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
