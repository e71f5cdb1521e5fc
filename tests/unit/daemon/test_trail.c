/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: its chain through restarts, crashes and rotations, and what a peer can put into it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/crypto/crypto.h"
#include "common/daemon/trail.h"
#include "common/daemon/trail_line.h"

enum { TEXT_BYTES = 65536 };

struct fixture {
  char folder[64], path[96], aside[96], text[TEXT_BYTES];
  struct cv_trail *trail;
};

static void open_it(struct fixture *fixture) {
  struct cv_why why;
  if (cv_trail_open(fixture->path, "crowdveil-broker", &fixture->trail, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static void close_it(struct fixture *fixture) {
  cv_trail_close(fixture->trail);
  fixture->trail = NULL;
}

static int setup(void **state) {
  struct fixture *fixture = calloc(1, sizeof(*fixture));
  (void)snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/crowdveil-trail-XXXXXX");
  if (mkdtemp(fixture->folder) == NULL) {
    return -1;
  }
  (void)snprintf(fixture->path, sizeof(fixture->path), "%s/audit", fixture->folder);
  (void)snprintf(fixture->aside, sizeof(fixture->aside), "%s/audit.1", fixture->folder);
  open_it(fixture);
  *state = fixture;
  return 0;
}

static int teardown(void **state) {
  struct fixture *fixture = *state;
  close_it(fixture);
  (void)unlink(fixture->path);
  (void)unlink(fixture->aside);
  (void)rmdir(fixture->folder);
  free(fixture);
  return 0;
}

static void write_it(struct fixture *fixture) {
  struct cv_why why;
  assert_true(cv_trail_flush(fixture->trail));
  if (cv_trail_write(fixture->trail, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static void say(struct fixture *fixture, const char *name, const char *refused) {
  const struct cv_event event = {
      .what = "submit", .actor = "requester/alice", .serial = "2A", .campaign = 7, .name = name, .refused = refused};
  cv_trail_add(fixture->trail, &event, 1, 1000);
}

static const char *read_it(struct fixture *fixture, const char *path) {
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  size_t n = fread(fixture->text, 1, TEXT_BYTES - 1, file);
  fixture->text[n] = '\0';
  (void)fclose(file);
  return fixture->text;
}

static void append(struct fixture *fixture, const char *text) {
  FILE *file = fopen(fixture->path, "ae");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

/* Whether the text is one chain from number `first` on; `*last` is the digest before it, then of its last line. Returns
 * the number of lines. */
static unsigned follow(const char *text, uint64_t first, char last[CV_TRAIL_HEX]) {
  unsigned lines = 0;
  for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1, lines++) {
    struct cv_trail_line line;
    struct cv_digest digest;
    size_t n = (size_t)(end - text);
    if (cv_trail_line_read(text, n, &line)) {
      assert_int_equal(line.number, first + lines);
      assert_string_equal(line.previous, last);
    }
    cv_sha256(text, n, NULL, 0, &digest);
    cv_trail_line_hex(&digest, last);
  }
  assert_string_equal(text, "");
  return lines;
}

static void begin(char last[CV_TRAIL_HEX]) {
  memset(last, '0', CV_TRAIL_HEX - 1);
  last[CV_TRAIL_HEX - 1] = '\0';
}

static void test_a_line_says_who_did_what(void **state) {
  struct fixture *fixture = *state;
  say(fixture, "tea", NULL);
  write_it(fixture);
  assert_string_equal(
      read_it(fixture, fixture->path),
      "{\"time\":\"1970-01-01T00:00:01.000Z\",\"program\":\"crowdveil-broker\",\"event\":\"submit\","
      "\"actor\":\"requester/alice\",\"serial\":\"2A\",\"campaign\":7,\"name\":\"tea\",\"outcome\":\"done\",\"n\":1,"
      "\"previous\":\"0000000000000000000000000000000000000000000000000000000000000000\"}\n");
  struct stat info;
  assert_int_equal(stat(fixture->path, &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
}

/* A name that a peer has chosen ends neither the string nor the line. */
static void test_names_are_escaped(void **state) {
  struct fixture *fixture = *state;
  say(fixture, "\"}\n{\\ \x01 \xff caf\xc3\xa9 \xe2\x80", "a\rb");
  write_it(fixture);
  const char *text = read_it(fixture, fixture->path);
  assert_non_null(strstr(text, "\"name\":\"\\\"}\\u000a{\\\\ \\u0001 \\ufffd caf\xc3\xa9 \\ufffd\\ufffd\","));
  assert_non_null(strstr(text, "\"outcome\":\"refused\",\"reason\":\"a\\u000db\","));
  assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void test_the_chain_goes_on_after_a_restart(void **state) {
  struct fixture *fixture = *state;
  char last[CV_TRAIL_HEX];
  for (unsigned i = 0; i < 3; i++) {
    say(fixture, "one", NULL);
    say(fixture, "two", NULL);
    write_it(fixture);
    close_it(fixture);
    open_it(fixture);
  }
  begin(last);
  assert_int_equal(follow(read_it(fixture, fixture->path), 1, last), 6);
}

/* Power fails while a line is written, twice. What is left of it counts as a line. */
static void test_a_torn_line_is_ended_and_counted(void **state) {
  struct fixture *fixture = *state;
  char last[CV_TRAIL_HEX];
  say(fixture, "one", NULL);
  write_it(fixture);
  for (unsigned i = 0; i < 2; i++) {
    close_it(fixture);
    append(fixture, i == 0 ? "{\"time\":\"1970-01-01T00:00" : "\n{\"ti");
    open_it(fixture);
  }
  say(fixture, "two", NULL);
  write_it(fixture);
  begin(last);
  assert_int_equal(follow(read_it(fixture, fixture->path), 1, last), 4);
}

static void refuse(struct fixture *fixture, const char *path, enum cv_err expected, const char *words) {
  struct cv_trail *other;
  struct cv_why why;
  assert_int_equal(cv_trail_open(path, "crowdveil-broker", &other, &why), expected);
  if (strstr(why.text, words) == NULL) {
    fail_msg("%s", why.text);
  }
}

static void test_what_is_no_audit_log_is_left_alone(void **state) {
  struct fixture *fixture = *state;
  static const char *const others[] = {"listen: 127.0.0.1:0\n", "state", "{\"time\":\"x\"}\n{}\n"};
  close_it(fixture);
  for (size_t i = 0; i < CV_COUNT(others); i++) {
    (void)unlink(fixture->path);
    append(fixture, others[i]);
    refuse(fixture, fixture->path, CV_ERR_FORMAT, "its last line is not of an audit log");
    assert_string_equal(read_it(fixture, fixture->path), others[i]);
  }
  refuse(fixture, "/dev/null", CV_ERR_INVALID, "/dev/null is not a regular file");
  refuse(fixture, "/nowhere/audit", CV_ERR_NOT_FOUND, "/nowhere/audit: cannot open: No such file");
}

static void test_a_log_has_one_writer(void **state) {
  struct fixture *fixture = *state;
  refuse(fixture, fixture->path, CV_ERR_STATE, "another program writes to this file");
}

static void test_after_a_rotation_the_new_file_continues_the_chain(void **state) {
  struct fixture *fixture = *state;
  char last[CV_TRAIL_HEX];
  struct cv_why why;
  say(fixture, "old", NULL);
  write_it(fixture);
  assert_int_equal(cv_trail_reopen(fixture->trail, &why), CV_OK); /* nothing was renamed */
  say(fixture, "old, too", NULL);
  write_it(fixture);
  assert_int_equal(rename(fixture->path, fixture->aside), 0);
  say(fixture, "until it is opened again", NULL);
  write_it(fixture);
  for (unsigned i = 0; i < 2; i++) { /* two signals before the next line */
    assert_int_equal(cv_trail_reopen(fixture->trail, &why), CV_OK);
  }
  say(fixture, "new", NULL);
  write_it(fixture);
  close_it(fixture);
  open_it(fixture);
  say(fixture, "after a restart", NULL);
  write_it(fixture);
  begin(last);
  assert_int_equal(follow(read_it(fixture, fixture->aside), 1, last), 3);
  assert_int_equal(follow(read_it(fixture, fixture->path), 4, last), 2);
}

static void test_a_rotation_that_fails_keeps_the_old_file(void **state) {
  struct fixture *fixture = *state;
  struct cv_why why;
  say(fixture, "old", NULL);
  write_it(fixture);
  assert_int_equal(rename(fixture->path, fixture->aside), 0);
  append(fixture, "mine\n");
  assert_int_equal(cv_trail_reopen(fixture->trail, &why), CV_ERR_EXISTS);
  assert_non_null(strstr(why.text, "not a new file"));
  say(fixture, "still old", NULL);
  write_it(fixture);
  assert_non_null(strstr(read_it(fixture, fixture->aside), "still old"));
  assert_string_equal(read_it(fixture, fixture->path), "mine\n");
}

static unsigned count(const char *text, const char *word) {
  unsigned n = 0;
  while ((text = strstr(text, word)) != NULL) {
    text++;
    n++;
  }
  return n;
}

/* Requests that are refused cost a peer nothing, so their lines are bounded; what was done is always written. */
static void test_refusals_are_bounded(void **state) {
  struct fixture *fixture = *state;
  struct cv_event event = {.what = "cancel", .actor = "requester/alice", .refused = "no campaign 9 of alice"};
  for (unsigned i = 0; i < 1000; i++) {
    cv_trail_add(fixture->trail, &event, CV_TRAIL_MINUTE_MS, 0);
  }
  say(fixture, "one that was done", NULL);
  event.actor = "requester/bob";
  cv_trail_add(fixture->trail, &event, CV_TRAIL_MINUTE_MS + 1, 0);
  cv_trail_tick(fixture->trail, 2 * CV_TRAIL_MINUTE_MS, 0);
  event.actor = "requester/alice";
  cv_trail_add(fixture->trail, &event, 2 * CV_TRAIL_MINUTE_MS + 1, 0);
  write_it(fixture);
  const char *text = read_it(fixture, fixture->path);
  assert_int_equal(count(text, "no campaign 9"), CV_TRAIL_REFUSALS + 2);
  assert_int_equal(count(text, "one that was done"), 1);
  assert_int_equal(count(text, "requester/bob"), 1);
  assert_non_null(strstr(text, "\"event\":\"refusals\""));
  assert_non_null(strstr(text, "\"more\":990,"));
}

static void test_dropped_lines_are_not_written(void **state) {
  struct fixture *fixture = *state;
  say(fixture, "never happened", NULL);
  cv_trail_drop(fixture->trail);
  assert_false(cv_trail_is_pending(fixture->trail));
  say(fixture, "happened", NULL);
  write_it(fixture);
  assert_int_equal(count(read_it(fixture, fixture->path), "happened"), 1);
}

static void test_without_a_log_nothing_is_kept(void **state) {
  const struct cv_event event = {.what = "start"};
  cv_trail_add(NULL, &event, 0, 0);
  assert_false(cv_trail_is_pending(NULL));
  assert_false(cv_trail_flush(NULL));
  assert_int_equal(cv_trail_write(NULL, NULL), CV_OK);
  assert_int_equal(cv_trail_reopen(NULL, NULL), CV_OK);
  cv_trail_close(NULL);
}

static void test_only_whole_lines_are_read(void **state) {
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
  static const char *const wrong[] = {"",
                                      "\"}",
                                      ZEROS "\"}",
                                      ",\"previous\":\"" ZEROS "\"}",
                                      ",\"n\":,\"previous\":\"" ZEROS "\"}",
                                      ",\"n\":1,\"previous\":\"" ZEROS "\"}",
                                      "{\"time\":\"\",\"n\":0,\"previous\":\"" ZEROS "\"}",
                                      "{\"time\":\"\",\"n\":01,\"previous\":\"" ZEROS "\"}",
                                      "{\"time\":\"\",\"n\":1,\"previous\":\"" ZEROS "\"} ",
                                      "{\"time\":\"\",\"n\":12345678901234567890,\"previous\":\"" ZEROS "\"}",
                                      "{\"time\":\"\",\"n\":1,\"previous\":\"G" ZEROS "\"}"};
  struct cv_trail_line line;
  for (size_t i = 0; i < CV_COUNT(wrong); i++) {
    assert_false(cv_trail_line_read(wrong[i], strlen(wrong[i]), &line));
  }
  static const char right[] = "{\"time\":\"\",\"n\":1234567890123456789,\"previous\":\"" ZEROS "\"}";
  assert_true(cv_trail_line_read(right, sizeof(right) - 1, &line));
  assert_true(line.number == UINT64_C(1234567890123456789));
  assert_string_equal(line.previous, ZEROS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_a_line_says_who_did_what),
      TEST(test_names_are_escaped),
      TEST(test_the_chain_goes_on_after_a_restart),
      TEST(test_a_torn_line_is_ended_and_counted),
      TEST(test_what_is_no_audit_log_is_left_alone),
      TEST(test_a_log_has_one_writer),
      TEST(test_after_a_rotation_the_new_file_continues_the_chain),
      TEST(test_a_rotation_that_fails_keeps_the_old_file),
      TEST(test_refusals_are_bounded),
      TEST(test_dropped_lines_are_not_written),
      cmocka_unit_test(test_without_a_log_nothing_is_kept),
      cmocka_unit_test(test_only_whole_lines_are_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
