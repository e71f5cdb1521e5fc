/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a peer writes, a line of the log stays one line with the fields that we gave it, in every format. */
#include "common/base/log_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

#define TIME "2026-01-02T03:04:05.678Z"

static struct cv_log_line line_of(const char *peer, const char *text) {
  return (struct cv_log_line){
      .time = TIME, .program = "crowdveil-broker", .note = {.level = CV_LOG_INFO, .peer = peer, .text = text}};
}

typedef size_t encoder(const struct cv_log_line *line, char *to);

static void expect(encoder *encode, const struct cv_log_line *line, const char *expected, size_t n) {
  char bytes[CV_LOG_LINE_BYTES];
  assert_int_equal(encode(line, bytes), n);
  assert_memory_equal(bytes, expected, n);
}
#define EXPECT(encode, line, expected) expect(encode, line, expected, sizeof(expected) - 1)

static void test_text(void **state) {
  struct cv_log_line line = line_of(NULL, "draining on signal 15");
  EXPECT(cv_log_line_text, &line, TIME " crowdveil-broker info: draining on signal 15\n");
  line.note.level = CV_LOG_WARN;
  line.note.peer = "gateway/1-9";
  EXPECT(cv_log_line_text, &line, TIME " crowdveil-broker warning: gateway/1-9: draining on signal 15\n");
}

static void test_json(void **state) {
  struct cv_log_line line = line_of(NULL, "say \"hi\" to C:\\");
  EXPECT(cv_log_line_json, &line,
         "{\"time\":\"" TIME
         "\",\"level\":\"info\",\"program\":\"crowdveil-broker\","
         "\"message\":\"say \\\"hi\\\" to C:\\\\\"}\n");
  line.note = (struct cv_note){
      .level = CV_LOG_DEBUG, .text = "r\xc3\xa9sum\xc3\xa9", .peer = "broker/main", .campaign = 7, .reason = "ticket"};
  EXPECT(cv_log_line_json, &line,
         "{\"time\":\"" TIME
         "\",\"level\":\"debug\",\"program\":\"crowdveil-broker\","
         "\"message\":\"broker/main: r\xc3\xa9sum\xc3\xa9\",\"peer\":\"broker/main\",\"campaign\":7,"
         "\"reason\":\"ticket\"}\n");
}

static void test_journal(void **state) {
  struct cv_log_line line = line_of(NULL, "x=y");
  line.note.level = CV_LOG_ERROR;
  EXPECT(cv_log_line_journal, &line,
         "MESSAGE\n\3\0\0\0\0\0\0\0x=y\nPRIORITY=3\n"
         "SYSLOG_IDENTIFIER\n\x10\0\0\0\0\0\0\0crowdveil-broker\n");
  line.note = (struct cv_note){.level = CV_LOG_INFO, .text = "t", .peer = "a", .campaign = 12, .reason = "value"};
  EXPECT(cv_log_line_journal, &line,
         "MESSAGE\n\4\0\0\0\0\0\0\0a: t\nPRIORITY=6\n"
         "SYSLOG_IDENTIFIER\n\x10\0\0\0\0\0\0\0crowdveil-broker\n"
         "CROWDVEIL_PEER\n\1\0\0\0\0\0\0\0a\nCROWDVEIL_CAMPAIGN=12\n"
         "CROWDVEIL_REASON\n\5\0\0\0\0\0\0\0value\n");
}

/* Each would forge something: a line, a field, an escape of a terminal, the direction of the rest of the line. */
static void test_forgeries(void **state) {
  static const char *const forged[][2] = {
      {"a\nb", "a?b"},
      {"a\r\nb", "a??b"},
      {"\x1b[2J", "?[2J"},
      {"\xc2\x9b"
       "2J",
       "??2J"},      /* CSI as one character */
      {"\x9b", "?"}, /* and as one byte */
      {"a\xe2\x80\xa8"
       "b",
       "a???b"}, /* line separator */
      {"\xe2\x80\xae"
       "evil",
       "???evil"}, /* right to left */
      {"\xe2\x81\xa6", "???"},
      {"\u2068\u05d0\u200f\u2069 1", "\u2068\u05d0\u200f\u2069 1"}, /* a name, in an isolate that ends */
      {"\u2068\u05d0 1", "???\u05d0 1"},
      {"a\u2069\u2068\u05d0\u2069\u2069", "a???\u2068\u05d0\u2069???"},
      {"\u2068a\u2068b\u2069c\u2069\u200e", "???a???b???c??????"},
      {"\u2068x\u2069", "???x???"}, /* nothing in it runs from right to left */
      {"a\u200bb\u00ad\ufeff", "a???b?????"},
      {"\u205f\u2070", "\u205f\u2070"}, /* the neighbours of the last are harmless */
      {"\x7f\x01", "??"},
      {"MESSAGE=x\nPRIORITY=0", "MESSAGE=x?PRIORITY=0"},
      {"\xff\xc0\x80", "???"}};
  for (size_t i = 0; i < CV_COUNT(forged); i++) {
    char bytes[CV_LOG_LINE_BYTES], expected[256];
    const struct cv_log_line line = line_of("p", forged[i][0]);
    int n = snprintf(expected, sizeof(expected), TIME " crowdveil-broker info: p: %s\n", forged[i][1]);
    expect(cv_log_line_text, &line, expected, (size_t)n);
    n = snprintf(expected, sizeof(expected), "\"message\":\"p: %s\",\"peer\":\"p\"}\n", forged[i][1]);
    size_t length = cv_log_line_json(&line, bytes);
    assert_memory_equal(bytes + length - (size_t)n, expected, (size_t)n);
  }
}

static void test_a_peers_name_is_no_way_in_either(void **state) {
  const struct cv_log_line line = line_of("a\nPRIORITY=0\n\"\x1b", "t");
  char bytes[CV_LOG_LINE_BYTES + 1];
  bytes[cv_log_line_json(&line, bytes)] = '\0';
  assert_non_null(strstr(bytes, "\"message\":\"a?PRIORITY=0?\\\"?: t\",\"peer\":\"a?PRIORITY=0?\\\"?\"}\n"));
  bytes[cv_log_line_text(&line, bytes)] = '\0';
  assert_string_equal(bytes, TIME " crowdveil-broker info: a?PRIORITY=0?\"?: t\n");
}

/* The longest texts, of characters that are escaped: nothing is written behind the buffer. */
static void test_long_texts_are_cut(void **state) {
  char text[3 * CV_LOG_TEXT_BYTES], *bytes = malloc(CV_LOG_LINE_BYTES);
  assert_non_null(bytes);
  memset(text, '"', sizeof(text));
  text[sizeof(text) - 1] = '\0';
  struct cv_log_line line = line_of(text, text);
  line.program = line.note.reason = text;
  line.note.campaign = UINT64_MAX;
  assert_in_range(cv_log_line_text(&line, bytes), CV_LOG_TEXT_BYTES, CV_LOG_LINE_BYTES);
  assert_in_range(cv_log_line_json(&line, bytes), 2 * CV_LOG_TEXT_BYTES, CV_LOG_LINE_BYTES);
  assert_in_range(cv_log_line_journal(&line, bytes), CV_LOG_TEXT_BYTES, CV_LOG_LINE_BYTES);
  free(bytes);
}

/* A character that is cut at the end of a text is replaced: the line is still UTF-8. */
static void test_a_cut_character_is_replaced(void **state) {
  char text[2 * CV_LOG_TEXT_BYTES], bytes[CV_LOG_LINE_BYTES];
  for (size_t i = 0; i + 1 < sizeof(text); i += 2) {
    memcpy(text + i, "\xc3\xa9", 2);
  }
  text[sizeof(text) - 1] = text[sizeof(text) - 2] = '\0';
  const struct cv_log_line line = line_of(NULL, text);
  size_t n = cv_log_line_json(&line, bytes);
  assert_true(cv_text_is_clean(bytes, n - 1));
}

static void test_words(void **state) {
  assert_int_equal(cv_log_level_of("error"), CV_LOG_ERROR);
  assert_int_equal(cv_log_level_of("debug"), CV_LOG_DEBUG);
  assert_int_equal(cv_log_level_of("warning"), CV_LOG_LEVELS);
  assert_int_equal(cv_log_level_of(""), CV_LOG_LEVELS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_json),
      cmocka_unit_test(test_journal),
      cmocka_unit_test(test_forgeries),
      cmocka_unit_test(test_a_peers_name_is_no_way_in_either),
      cmocka_unit_test(test_long_texts_are_cut),
      cmocka_unit_test(test_a_cut_character_is_replaced),
      cmocka_unit_test(test_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
