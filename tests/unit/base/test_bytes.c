/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, readers, arenas, texts, and lines for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/grid.h"
#include "common/base/result.h"
#include "common/base/text.h"

static void what_is_put_is_read(void **state) {
  struct cv_buf buf = {0};
  cv_buf_put_u8(&buf, 0xfe);
  cv_buf_put_u32(&buf, 0x01020304);
  cv_buf_put_u64(&buf, UINT64_MAX - 1);
  cv_buf_put_f64(&buf, -0.1);
  cv_buf_put_bytes(&buf, "abc", 3);
  cv_buf_put_bytes(&buf, NULL, 0);
  assert_true(cv_buf_ok(&buf));
  static const uint8_t head[] = {0xfe, 4, 3, 2, 1, 0xfe, 0xff};
  assert_memory_equal(buf.data, head, sizeof(head));
  struct cv_reader reader = cv_reader_over(buf.data, buf.len);
  size_t n = 9;
  assert_int_equal(cv_read_u8(&reader), 0xfe);
  assert_int_equal(cv_read_u32(&reader), 0x01020304);
  assert_true(cv_read_u64(&reader) == UINT64_MAX - 1);
  assert_true(cv_read_f64(&reader) == -0.1);
  assert_memory_equal(cv_read_bytes(&reader, &n), "abc", 3);
  assert_int_equal(n, 3);
  assert_false(cv_reader_done(&reader));
  (void)cv_read_bytes(&reader, &n);
  assert_int_equal(n, 0);
  assert_true(cv_reader_done(&reader));
  cv_buf_fini(&buf);
}

static void a_text_is_read_whole_or_not_at_all(void **state) {
  static const struct {
    const char *bytes;
    size_t n;
    bool fits;
  } cases[] = {{"", 0, true}, {"abc", 3, true}, {"abcd", 4, false}, {"a\0c", 3, false}, {"\0", 1, false}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_buf buf = {0};
    char text[4] = "xyz";
    cv_buf_put_bytes(&buf, cases[i].bytes, cases[i].n);
    struct cv_reader reader = cv_reader_over(buf.data, buf.len);
    cv_read_text(&reader, text, sizeof(text));
    assert_int_equal(cv_reader_done(&reader), cases[i].fits);
    assert_string_equal(text, cases[i].fits ? cases[i].bytes : "");
    reader = cv_reader_over(buf.data, buf.len - 1); /* cut */
    cv_read_text(&reader, text, sizeof(text));
    assert_true(reader.failed);
    assert_string_equal(text, "");
    cv_buf_fini(&buf);
  }
}

static void a_short_read_latches(void **state) {
  static const uint8_t bytes[] = {1, 2, 3};
  struct cv_reader reader = cv_reader_over(bytes, sizeof(bytes));
  assert_int_equal(cv_read_u32(&reader), 0);
  assert_true(reader.failed);
  assert_int_equal(cv_read_u8(&reader), 0); /* present, but after the error */
  assert_false(cv_reader_done(&reader));
  reader = cv_reader_over(NULL, 0);
  assert_true(cv_reader_done(&reader));
  assert_int_equal(cv_read_u64(&reader), 0);
  assert_true(reader.failed);
}

static void a_length_beyond_the_end_is_refused(void **state) {
  struct cv_buf buf = {0};
  cv_buf_put_u32(&buf, UINT32_MAX);
  cv_buf_put(&buf, "xyz", 3);
  struct cv_reader reader = cv_reader_over(buf.data, buf.len);
  size_t n = 77;
  assert_null(cv_read_bytes(&reader, &n));
  assert_int_equal(n, 77);
  assert_true(reader.failed);
  cv_buf_fini(&buf);
}

static void a_buffer_grows_and_latches(void **state) {
  struct cv_buf buf = {0};
  for (uint32_t i = 0; i < 100000; i++) {
    cv_buf_put_u32(&buf, i);
  }
  assert_int_equal(buf.len, 400000);
  struct cv_reader reader = cv_reader_over(buf.data, buf.len);
  for (uint32_t i = 0; i < 100000; i++) {
    assert_int_equal(cv_read_u32(&reader), i);
  }
  size_t cap = buf.cap;
  cv_buf_clear(&buf);
  assert_true(buf.len == 0 && buf.cap == cap && buf.data != NULL);
  assert_int_equal(cv_buf_reserve(&buf, SIZE_MAX), CV_ERR_NOMEM);
  assert_true(cv_buf_ok(&buf)); /* a failed reserve leaves the buffer unchanged */
  cv_buf_put(&buf, "x", SIZE_MAX / 2);
  assert_false(cv_buf_ok(&buf));
  cv_buf_put_u8(&buf, 1);
  assert_false(cv_buf_ok(&buf));
  assert_int_equal(buf.len, 0);
  cv_buf_clear(&buf);
  cv_buf_put_u8(&buf, 1);
  assert_true(cv_buf_ok(&buf) && buf.len == 1);
  cv_buf_fini(&buf);
  cv_buf_fini(NULL);
}

static void an_arena_is_bounded(void **state) {
  struct cv_arena arena;
  assert_int_equal(cv_arena_init(&arena, 64), CV_OK);
  uint8_t *first = cv_arena_alloc(&arena, 1), *second = cv_arena_alloc(&arena, 17);
  assert_non_null(first);
  assert_ptr_equal(second, first + 16);
  assert_null(cv_arena_alloc(&arena, 17));
  assert_null(cv_arena_alloc(&arena, SIZE_MAX));
  assert_null(cv_arena_alloc(&arena, SIZE_MAX - 14));
  assert_null(cv_arena_array(&arena, SIZE_MAX / 2, 4));
  memset(arena.base, 0xff, arena.size);
  uint32_t *cleared = cv_arena_array(&arena, 4, sizeof(*cleared));
  assert_non_null(cleared);
  assert_true(cleared[0] == 0 && cleared[3] == 0);
  assert_null(cv_arena_alloc(&arena, 1));
  cv_arena_reset(&arena);
  assert_ptr_equal(cv_arena_alloc(&arena, 64), arena.base);
  cv_arena_fini(&arena);
  cv_arena_fini(NULL);
}

/* Beyond its first block an arena has memory only between a use and the next reset. */
static void an_arena_grows_and_shrinks(void **state) {
  struct cv_arena arena;
  assert_int_equal(cv_arena_init(&arena, 5 * (size_t)CV_ARENA_BLOCK), CV_OK);
  for (int round = 0; round < 2; round++) {
    uint8_t *first = cv_arena_alloc(&arena, CV_ARENA_BLOCK),
            *second = cv_arena_alloc(&arena, 2 * (size_t)CV_ARENA_BLOCK);
    assert_true(first != NULL && second != NULL);
    memset(first, 1, CV_ARENA_BLOCK);
    memset(second, 2, 2 * (size_t)CV_ARENA_BLOCK);
    assert_non_null(cv_arena_alloc(&arena, 1));
    assert_null(cv_arena_alloc(&arena, 2 * (size_t)CV_ARENA_BLOCK));
    assert_true(arena.blocks <= 5 * (size_t)CV_ARENA_BLOCK);
    cv_arena_reset(&arena);
    assert_int_equal(arena.blocks, CV_ARENA_BLOCK);
  }
  cv_arena_bound(&arena, 2 * (size_t)CV_ARENA_BLOCK);
  assert_non_null(cv_arena_alloc(&arena, CV_ARENA_BLOCK));
  assert_null(cv_arena_alloc(&arena, CV_ARENA_BLOCK + 16));
  assert_non_null(cv_arena_alloc(&arena, CV_ARENA_BLOCK));
  assert_null(cv_arena_alloc(&arena, 1));
  cv_arena_fini(&arena);
}

static void a_line_is_cut(void **state) {
  struct cv_why why;
  char longest[2000];
  memset(longest, 'x', sizeof(longest) - 1);
  longest[sizeof(longest) - 1] = '\0';
  assert_int_equal(cv_fail(&why, CV_ERR_LIMIT, "%s", longest), CV_ERR_LIMIT);
  assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
  cv_why_prefix(&why, "%s", "file:1:2");
  assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
  assert_memory_equal(why.text, "file:1:2: xxx", 13);
  cv_why_prefix(&why, "%s", longest);
  assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
  assert_int_equal(cv_fail(&why, CV_ERR_IO, "%d of %d", 1, 2), CV_ERR_IO);
  cv_why_prefix(&why, "campaign %d", 7);
  assert_string_equal(why.text, "campaign 7: 1 of 2");
  assert_int_equal(cv_fail(NULL, CV_ERR_IO, "nobody listens"), CV_ERR_IO);
  cv_why_prefix(NULL, "nobody");
}

static void out_of_memory_is_final(void **state) {
  struct cv_why why = {.text = "as it was"};
  bool failed = false;
  assert_int_equal(cv_unless_failed(&failed, CV_OK, &why), CV_OK);
  assert_int_equal(cv_unless_failed(&failed, CV_ERR_DENIED, &why), CV_ERR_DENIED);
  assert_false(failed);
  assert_string_equal(why.text, "as it was");
  assert_int_equal(cv_unless_failed(&failed, CV_ERR_NOMEM, NULL), CV_ERR_NOMEM);
  assert_true(failed);
  assert_int_equal(cv_unless_failed(&failed, CV_OK, &why), CV_ERR_NOMEM);
  assert_string_equal(why.text, "out of memory");
}

static void a_line_is_clean(void **state) {
  struct cv_why why;
  char longest[sizeof(why.text) + 9];
  (void)cv_fail(&why, CV_ERR_IO, "%s: na\xc3\xafve\n\x1b[31m\xff\x01", "file");
  assert_string_equal(why.text, "file: na\xc3\xafve??[31m??");
  cv_why_prefix(&why, "%s", "a\tb");
  assert_string_equal(why.text, "a?b: file: na\xc3\xafve??[31m??");
  for (size_t i = 0; i + 1 < sizeof(longest); i += 2) {
    memcpy(&longest[i], "\xc3\xaf", 2);
  }
  longest[sizeof(longest) - 1] = '\0';
  (void)cv_fail(&why, CV_ERR_IO, "%s", longest); /* an odd number of bytes: cut inside a character */
  assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
  assert_true(cv_text_is_clean(why.text, strlen(why.text)));
}

static void every_code_has_words(void **state) {
  assert_string_equal(cv_err_text(CV_OK), "no error");
  assert_string_equal(cv_err_text(CV_ERR_VERSION), "unsupported version");
  assert_string_equal(cv_err_text((enum cv_err)999), "unknown error");
  for (int end = 0; end < CV_END_COUNT; end++) {
    assert_string_not_equal(cv_end_text((enum cv_end)end), "unknown");
  }
  assert_string_equal(cv_end_text(CV_END_COUNT), "unknown");
}

static void texts_are_cleaned(void **state) {
  static const struct {
    const char *from, *to;
  } cases[] = {
      {"plain", "plain"},
      {"a\nb\x1b[1m", "a?b?[1m"},
      {"caf\xc3\xa9", "caf\xc3\xa9"},
      {"cut \xe2\x82", "cut ??"},
      {"\xc0\xaf\xed\xa0\x80", "?????"},
      {"\xf4\x8f\xbf\xbf\xf4\x90\x80\x80", "\xf4\x8f\xbf\xbf????"},
      {"\xc2\x9b\xc2\xa0", "??\xc2\xa0"},
      {"", ""},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    char text[32];
    size_t n = strlen(cases[i].from);
    memcpy(text, cases[i].from, n + 1);
    assert_int_equal(cv_text_is_clean(text, n), strcmp(cases[i].from, cases[i].to) == 0);
    cv_text_clean(text, n);
    assert_string_equal(text, cases[i].to);
    assert_true(cv_text_is_clean(text, n));
  }
}

/* Clean text of whoever wrote it, but not what a line, a page or a log may show. */
static void what_turns_or_hides_is_replaced(void **state) {
  static const char *const cases[][2] = {
      {"a\u202eb\u202c", "a???b???"},                                        /* an override */
      {"\u2066a\u2069 \u2067b\u2069", "???a??? ???b???"},                    /* isolates */
      {"\u2068a\u2069 \u2069", "???a??? ???"},                               /* of nothing that needs one */
      {"\u2068\u05d0", "???\u05d0"},                                         /* open */
      {"\u2068\u05d0\u2069 1\u2069", "\u2068\u05d0\u2069 1???"},             /* as a name is shown */
      {"\u2068\u05d0\u2068\u05d1\u2069 1", "\u2068\u05d0???\u05d1\u2069 1"}, /* one within another */
      {"\u2068\u05d0\u202e\u2069", "\u2068\u05d0???\u2069"},
      {"a\u200bb\u2060\ufeff\u00ad\u180e",
       "a???b????????"
       "???"},                        /* zero width */
      {"a\u2028b\u2029", "a???b???"}, /* ends of lines */
      {"\U000e0041\U000e0001",
       "????"
       "????"},                                                                         /* tags */
      {"\U0001f3f4\U000e0067\U000e007f!", "\U0001f3f4\U000e0067\U000e007f!"},           /* of a flag */
      {"\u0645\u200c\u0646\u200d\u05d0\u200f", "\u0645\u200c\u0646\u200d\u05d0\u200f"}, /* joiners and marks of names */
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    char text[64];
    size_t n = strlen(cases[i][0]);
    memcpy(text, cases[i][0], n + 1);
    cv_text_clean(text, n);
    assert_string_equal(text, cases[i][1]);
    cv_text_clean(text, n);
    assert_string_equal(text, cases[i][1]);
  }
}

static void scores_lie_on_the_grid(void **state) {
  assert_int_equal(cv_grid_from(0), 0);
  assert_int_equal(cv_grid_from(1), CV_GRID);
  assert_int_equal(cv_grid_from(0.5), CV_GRID / 2);
  assert_int_equal(cv_grid_from(-3), 0);
  assert_int_equal(cv_grid_from(1e300), CV_GRID);
  assert_int_equal(cv_grid_from(__builtin_nan("")), 0);
  assert_int_equal(cv_grid_from(0.49 / (double)CV_GRID), 0);
  assert_int_equal(cv_grid_from(0.51 / (double)CV_GRID), 1);
  for (int64_t x = 0; x <= CV_GRID; x += 997) {
    assert_int_equal(cv_grid_from(cv_grid_to(x)), x);
  }
}

static void a_csv_field_is_quoted(void **state) {
  char field[16];
  cv_text_csv("a, \"b\"", field, sizeof(field));
  assert_string_equal(field, "\"a, \"\"b\"\"\"");
  cv_text_csv("", field, 4);
  assert_string_equal(field, "\"\"");
}

/* As a spreadsheet needs it, and read back. */
static void a_csv_field_is_no_formula(void **state) {
  static const char *const cases[][2] = {
      {"=1+1", "\"'=1+1\""},        {"-Foo", "\"'-Foo\""}, {"@x", "\"'@x\""},   {"+", "\"'+\""},
      {"\tq", "\"'\tq\""},          {"\r", "\"'\r\""},     {"'=a", "\"''=a\""}, {"''-", "\"'''-\""},
      {"'quoted", "\"'quoted\""},   {"a=b", "\"a=b\""},    {"'", "\"'\""},      {"''", "\"''\""},
      {"=\"a\"", "\"'=\"\"a\"\"\""}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    char field[32], plain[32];
    size_t n = 0;
    cv_text_csv(cases[i][0], field, 2 * strlen(cases[i][0]) + 4);
    assert_string_equal(field, cases[i][1]);
    for (const char *at = field + 1; at[1] != '\0'; at += 1 + (at[0] == '"')) {
      plain[n++] = *at;
    }
    plain[n] = '\0';
    assert_string_equal(cv_text_of_csv(plain), cases[i][0]);
  }
}

static void a_time_is_in_seconds_if_it_can_be(void **state) {
  assert_string_equal(cv_text_time(2000).text, "2 s");
  assert_string_equal(cv_text_time(1500).text, "1500 ms");
  assert_string_equal(cv_text_time(0).text, "0 s");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_put_is_read),
      cmocka_unit_test(a_text_is_read_whole_or_not_at_all),
      cmocka_unit_test(a_short_read_latches),
      cmocka_unit_test(a_length_beyond_the_end_is_refused),
      cmocka_unit_test(a_buffer_grows_and_latches),
      cmocka_unit_test(an_arena_is_bounded),
      cmocka_unit_test(an_arena_grows_and_shrinks),
      cmocka_unit_test(a_line_is_cut),
      cmocka_unit_test(out_of_memory_is_final),
      cmocka_unit_test(a_line_is_clean),
      cmocka_unit_test(every_code_has_words),
      cmocka_unit_test(texts_are_cleaned),
      cmocka_unit_test(what_turns_or_hides_is_replaced),
      cmocka_unit_test(a_csv_field_is_no_formula),
      cmocka_unit_test(a_csv_field_is_quoted),
      cmocka_unit_test(a_time_is_in_seconds_if_it_can_be),
      cmocka_unit_test(scores_lie_on_the_grid),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
