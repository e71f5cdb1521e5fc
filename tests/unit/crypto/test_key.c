/* SPDX-License-Identifier: Apache-2.0 */
/* Key files: private, whole, and never overwritten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/crypto/crypto.h"
#include "tests/support/folder.h"

static struct folder folder;

static int set_up(void **state) {
  (void)state;
  folder_make(&folder);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  folder_remove(&folder);
  return 0;
}

static void write_file(const char *path, size_t n, mode_t mode) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  assert_true(fd >= 0);
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(write(fd, "k", 1), 1);
  }
  assert_int_equal(fchmod(fd, mode), 0);
  assert_int_equal(close(fd), 0);
}

/* Refused with this error and a line that names the file and contains `about`; the output stays as it was. */
static void assert_refused(const char *path, enum cv_err expected, const char *about) {
  struct cv_key key;
  struct cv_why why = {{0}};
  memset(key.bytes, 0x77, sizeof(key.bytes));
  assert_int_equal(cv_key_read(path, &key, &why), expected);
  assert_non_null(strstr(why.text, path));
  assert_non_null(strstr(why.text, about));
  assert_null(strchr(why.text, '\n'));
  assert_int_equal(key.bytes[0], 0x77);
}

static void test_created_key_is_private_and_reads_back(void **state) {
  (void)state;
  const char *path = folder_file(&folder, "key");
  struct cv_key made, other, found;
  struct stat info;
  mode_t old = umask(0);
  assert_int_equal(cv_key_create(path, &made, NULL), CV_OK);
  assert_int_equal(cv_key_create(folder_file(&folder, "other"), &other, NULL), CV_OK);
  (void)umask(old);
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
  assert_int_equal(info.st_size, CV_KEY_BYTES);
  assert_int_equal(cv_key_read(path, &found, NULL), CV_OK);
  assert_memory_equal(found.bytes, made.bytes, sizeof(made.bytes));
  assert_memory_not_equal(other.bytes, made.bytes, sizeof(made.bytes));
}

static void test_existing_file_is_never_overwritten(void **state) {
  (void)state;
  const char *path = folder_file(&folder, "key");
  struct cv_key made, found;
  struct cv_why why = {{0}};
  assert_int_equal(cv_key_create(path, &made, NULL), CV_OK);
  assert_int_equal(cv_key_create(path, &found, &why), CV_ERR_EXISTS);
  assert_non_null(strstr(why.text, path));
  assert_int_equal(cv_key_read(path, &found, NULL), CV_OK);
  assert_memory_equal(found.bytes, made.bytes, sizeof(made.bytes));
}

static void test_missing_folder_is_named(void **state) {
  (void)state;
  struct cv_key key;
  struct cv_why why = {{0}};
  const char *path = folder_file(&folder, "no/key");
  assert_int_equal(cv_key_create(path, &key, &why), CV_ERR_IO);
  assert_non_null(strstr(why.text, path));
}

static void test_key_that_others_can_read_is_refused(void **state) {
  (void)state;
  static const mode_t mode[] = {0640, 0604, 0620, 0601, 0666};
  for (size_t i = 0; i < CV_COUNT(mode); i++) {
    const char *path = folder_file(&folder, "key");
    write_file(path, CV_KEY_BYTES, mode[i]);
    assert_refused(path, CV_ERR_DENIED, "expected 0600");
    assert_int_equal(unlink(path), 0);
  }
}

static void test_wrong_length_is_refused(void **state) {
  (void)state;
  static const size_t length[] = {0, 31, 33, 64};
  for (size_t i = 0; i < CV_COUNT(length); i++) {
    const char *path = folder_file(&folder, "key");
    write_file(path, length[i], 0600);
    assert_refused(path, CV_ERR_FORMAT, "32 bytes");
    assert_int_equal(unlink(path), 0);
  }
}

static void test_what_is_no_file_is_refused(void **state) {
  (void)state;
  const char *pipe_path = folder_file(&folder, "pipe");
  assert_int_equal(mkfifo(pipe_path, 0600), 0);
  assert_refused(pipe_path, CV_ERR_INVALID, "not a regular file");
  assert_refused(folder.path, CV_ERR_INVALID, "not a regular file");
  assert_refused(folder_file(&folder, "none"), CV_ERR_NOT_FOUND, "No such file");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_created_key_is_private_and_reads_back, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_existing_file_is_never_overwritten, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_missing_folder_is_named, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_key_that_others_can_read_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_wrong_length_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_what_is_no_file_is_refused, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
