/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in a page are only text, small pictures are in it, and large drawings beside it. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>
#include <string.h>

#include "lab/report/html.h"
#include "tests/support/own_folder.h"

static void assert_text(const char *text, const char *expected) {
  char *found = NULL;
  size_t bytes;
  FILE *to = open_memstream(&found, &bytes);
  assert_non_null(to);
  cv_lab_html_text(text, to);
  (void)fclose(to);
  assert_string_equal(found, expected);
  free(found);
}

static void test_text_is_text(void **state) {
  assert_text("<b a=\"1\" c='2'>&amp;", "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
  assert_text("\xc3\xa9 \xe2\x9c\x93", "\xc3\xa9 \xe2\x9c\x93");
  assert_text("a\nb\tc", "a\nb\tc");
  /* a control character, a character cut short, one that is none */
  assert_text("a\x1b[0m\xc3", "a?[0m?");
  assert_text("\xff<", "?&lt;");
  assert_text("", "");
}

static enum cv_err embed(const char *png, char **ret, struct cv_why *why) {
  size_t bytes;
  folder_write(&folder, "small.png", png);
  FILE *to = open_memstream(ret, &bytes);
  assert_non_null(to);
  enum cv_err err = cv_lab_html_thumbnail(folder.path, "small", "a \"figure\"", to, why);
  (void)fclose(to);
  return err;
}

/* The texts after the slash by another program: printf '\x89PNG\r\n\x1a\n...' | base64 */
static void test_thumbnails_are_in_the_page(void **state) {
  static const char *const pictures[][2] = {{"\x89PNG\r\n\x1a\n", "iVBORw0KGgo="},
                                            {"\x89PNG\r\n\x1a\nx", "iVBORw0KGgp4"},
                                            {"\x89PNG\r\n\x1a\nxyz", "iVBORw0KGgp4eXo="},
                                            {"\x89PNG\r\n\x1a\nxy", "iVBORw0KGgp4eQ=="}};
  for (size_t i = 0; i < CV_COUNT(pictures); i++) {
    char *found, expected[200];
    assert_int_equal(embed(pictures[i][0], &found, NULL), CV_OK);
    (void)snprintf(expected, sizeof(expected), "<img alt=\"a &quot;figure&quot;\" src=\"data:image/png;base64,%s\">",
                   pictures[i][1]);
    assert_string_equal(found, expected);
    free(found);
  }
}

static void test_large_drawings_stay_beside_the_page(void **state) {
  char *found = NULL;
  size_t bytes;
  FILE *to = open_memstream(&found, &bytes);
  cv_lab_html_drawing("a-b", "it's <b>", to);
  (void)fclose(to);
  assert_string_equal(found,
                      "<a href=\"a-b.svg\"><img loading=\"lazy\" src=\"a-b.svg\" alt=\"it&#39;s &lt;b&gt;\"></a>\n");
  free(found);
}

static void test_what_is_no_picture_is_said(void **state) {
  struct cv_why why = {0};
  char *found;
  assert_int_equal(embed("nothing", &found, &why), CV_ERR_FORMAT);
  assert_non_null(strstr(why.text, "/small.png: no picture"));
  assert_string_equal(found, "");
  free(found);
  assert_int_equal(cv_lab_html_thumbnail(folder.path, "other", "", stdout, &why), CV_ERR_IO);
  assert_non_null(strstr(why.text, "/other.png: No such file or directory"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text_is_text),
      cmocka_unit_test(test_thumbnails_are_in_the_page),
      cmocka_unit_test(test_large_drawings_stay_beside_the_page),
      cmocka_unit_test(test_what_is_no_picture_is_said),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
