/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for TLS files, in a child process whose lines show when it waits. */
#include "common/config/channel.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/config/file.h"

enum { LONG_MS = 60000, WENT_ON = 100, MASK_CHANGED = 101 };

static struct cv_channel_settings channel_of(uint64_t wait_ms) {
  static char ca[320], cert[320], key[320];
  (void)snprintf(ca, sizeof(ca), "%s", folder_file(&folder, "ca.pem"));
  (void)snprintf(cert, sizeof(cert), "%s", folder_file(&folder, "cert.pem"));
  (void)snprintf(key, sizeof(key), "%s", folder_file(&folder, "key.pem"));
  return (struct cv_channel_settings){.ca = ca, .cert = cert, .key = key, .wait_ms = wait_ms};
}

/* Atomically, by a rename, as files are installed. */
static void put(const char *path) {
  char beside[330];
  (void)snprintf(beside, sizeof(beside), "%s.new", path);
  FILE *file = fopen(beside, "w");
  assert_non_null(file);
  (void)fclose(file);
  assert_int_equal(rename(beside, path), 0);
}

static void take_away(const struct cv_channel_settings *channel) {
  (void)unlink(channel->ca);
  (void)unlink(channel->cert);
  (void)unlink(channel->key);
}

struct child {
  pid_t pid;
  FILE *lines;
};

/* Its exit status is the result of the wait. */
static struct child start(const struct cv_channel_settings *channel) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    sigset_t before, after;
    (void)dup2(ends[1], STDERR_FILENO);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)sigprocmask(SIG_SETMASK, NULL, &before);
    int status = cv_channel_wait("sample", channel);
    (void)sigprocmask(SIG_SETMASK, NULL, &after);
    bool same = sigismember(&before, SIGTERM) == sigismember(&after, SIGTERM) &&
                sigismember(&before, SIGINT) == sigismember(&after, SIGINT);
    _exit(!same ? MASK_CHANGED : status < 0 ? WENT_ON : status);
  }
  (void)close(ends[1]);
  struct child child = {.pid = pid, .lines = fdopen(ends[0], "r")};
  assert_non_null(child.lines);
  return child;
}

/* The line is "sample: <before><path><after>". */
static void expect_line(struct child *child, const char *before, const char *path, const char *after) {
  char line[512], expected[512];
  (void)snprintf(expected, sizeof(expected), "sample: %s%s%s\n", before, path, after);
  assert_non_null(fgets(line, sizeof(line), child->lines));
  assert_string_equal(line, expected);
}

/* No further line, and this status. */
static void expect_end(struct child *child, int expected) {
  char line[512];
  int status;
  assert_null(fgets(line, sizeof(line), child->lines));
  (void)fclose(child->lines);
  assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), expected);
}

static void nothing_is_waited_for_without_the_setting(void **state) {
  struct cv_channel_settings channel = channel_of(0);
  struct child child = start(&channel);
  expect_end(&child, WENT_ON);
}

static void files_that_are_there_are_not_waited_for(void **state) {
  struct cv_channel_settings channel = channel_of(LONG_MS);
  put(channel.ca);
  put(channel.cert);
  put(channel.key);
  struct child child = start(&channel);
  expect_end(&child, WENT_ON);
  take_away(&channel);
}

static void it_goes_on_when_the_last_one_comes(void **state) {
  struct cv_channel_settings channel = channel_of(LONG_MS);
  put(channel.ca);
  struct child child = start(&channel);
  expect_line(&child, "waiting up to 60 s for ", channel.cert, "");
  put(channel.cert);
  put(channel.key);
  expect_end(&child, WENT_ON);
  take_away(&channel);
}

static void the_list_of_denied_ones_is_waited_for_too(void **state) {
  struct cv_channel_settings channel = channel_of(LONG_MS);
  char denied[320];
  (void)snprintf(denied, sizeof(denied), "%s", folder_file(&folder, "denied"));
  channel.denied = denied;
  put(channel.ca);
  put(channel.cert);
  put(channel.key);
  struct child child = start(&channel);
  expect_line(&child, "waiting up to 60 s for ", denied, "");
  put(denied);
  expect_end(&child, WENT_ON);
  take_away(&channel);
  (void)unlink(denied);
}

static void the_signed_list_is_waited_for_too(void **state) {
  struct cv_channel_settings channel = channel_of(LONG_MS);
  char crl[320];
  (void)snprintf(crl, sizeof(crl), "%s", folder_file(&folder, "crl.pem"));
  channel.crl = crl;
  put(channel.ca);
  put(channel.cert);
  put(channel.key);
  struct child child = start(&channel);
  expect_line(&child, "waiting up to 60 s for ", crl, "");
  put(crl);
  expect_end(&child, WENT_ON);
  take_away(&channel);
  (void)unlink(crl);
}

static void its_time_ends(void **state) {
  struct cv_channel_settings channel = channel_of(120);
  uint64_t start_ms = cv_clock_mono_ms();
  struct child child = start(&channel);
  expect_line(&child, "waiting up to 120 ms for ", channel.ca, "");
  expect_line(&child, "", channel.ca, ": still missing after 120 ms; expected a readable file (wait_for_files)");
  expect_end(&child, CV_CHANNEL_ABSENT);
  assert_true(cv_clock_mono_ms() - start_ms >= 120);
}

static void what_is_no_file_is_named_so(void **state) {
  struct cv_channel_settings channel = channel_of(60);
  assert_int_equal(mkdir(channel.ca, 0700), 0);
  struct child child = start(&channel);
  expect_line(&child, "waiting up to 60 ms for ", channel.ca, "");
  expect_line(&child, "", channel.ca, ": Is a directory after 60 ms; expected a readable file (wait_for_files)");
  expect_end(&child, CV_CHANNEL_ABSENT);
  assert_int_equal(rmdir(channel.ca), 0);
}

static void a_signal_ends_it(void **state) {
  static const int signals[] = {SIGTERM, SIGINT};
  struct cv_channel_settings channel = channel_of(LONG_MS);
  for (size_t i = 0; i < CV_COUNT(signals); i++) {
    struct child child = start(&channel);
    expect_line(&child, "waiting up to 60 s for ", channel.ca, "");
    assert_int_equal(kill(child.pid, signals[i]), 0);
    expect_line(&child, "stopped by a signal while waiting for ", channel.ca, "");
    expect_end(&child, CV_CHANNEL_STOPPED);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_waited_for_without_the_setting),
      cmocka_unit_test(files_that_are_there_are_not_waited_for),
      cmocka_unit_test(it_goes_on_when_the_last_one_comes),
      cmocka_unit_test(the_list_of_denied_ones_is_waited_for_too),
      cmocka_unit_test(the_signed_list_is_waited_for_too),
      cmocka_unit_test(its_time_ends),
      cmocka_unit_test(what_is_no_file_is_named_so),
      cmocka_unit_test(a_signal_ends_it),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
