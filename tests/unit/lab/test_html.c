/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in a page are only text, and drawings in it share no names. */
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

static enum cv_err embed(const char *svg, const char *prefix, const char *label, char **ret, struct cv_why *why) {
  size_t bytes;
  folder_write(&folder, "drawing.svg", svg);
  FILE *to = open_memstream(ret, &bytes);
  assert_non_null(to);
  enum cv_err err = cv_lab_html_svg(folder.path, "drawing", prefix, label, to, why);
  (void)fclose(to);
  return err;
}

static void test_drawings_have_names_of_their_own(void **state) {
  char *found;
  assert_int_equal(
      embed("<?xml version=\"1.0\"?>\n<svg width=\"9\">\n<title>Gnuplot</title><desc>made</desc>"
            "<path id='p'/><g id=\"q\"/><use xlink:href='#p' fill=\"url(#q)\"/><a stroke='#0072b2'/></svg>\n",
            "e1-", "a \"drawing\"", &found, NULL),
      CV_OK);
  assert_string_equal(found,
                      "<svg role=\"img\" aria-label=\"a &quot;drawing&quot;\" width=\"9\">\n"
                      "<path id='e1-p'/><g id=\"e1-q\"/><use xlink:href='#e1-p' fill=\"url(#e1-q)\"/>"
                      "<a stroke='#0072b2'/></svg>\n");
  free(found);
}

static void test_what_is_no_drawing_is_said(void **state) {
  struct cv_why why = {0};
  char *found;
  assert_int_equal(embed("nothing", "e1-", "", &found, &why), CV_ERR_FORMAT);
  assert_non_null(strstr(why.text, "/drawing.svg: no drawing"));
  assert_string_equal(found, "");
  free(found);
  assert_int_equal(cv_lab_html_svg(folder.path, "other", "", "", stdout, &why), CV_ERR_IO);
  assert_non_null(strstr(why.text, "/other.svg: No such file or directory"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text_is_text),
      cmocka_unit_test(test_drawings_have_names_of_their_own),
      cmocka_unit_test(test_what_is_no_drawing_is_said),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
