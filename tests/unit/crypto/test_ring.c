/* SPDX-License-Identifier: Apache-2.0 */
/* Files of master keys: private, whole, replaced at once, and never lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/crypto/ring.h"
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

enum { SECONDS = 1763967600 };

static void write_bytes(const char *path, const char *bytes, size_t n, mode_t mode) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes, n), n);
  assert_int_equal(fchmod(fd, mode), 0);
  assert_int_equal(close(fd), 0);
}

static void write_file(const char *path, size_t n, mode_t mode) {
  char bytes[128];
  memset(bytes, 'k', sizeof(bytes));
  write_bytes(path, bytes, n, mode);
}

static size_t read_file(const char *path, char *to, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  ssize_t n = read(fd, to, size - 1);
  assert_true(n >= 0);
  to[n] = '\0';
  assert_int_equal(close(fd), 0);
  return (size_t)n;
}

/* Refused with this error and a line that names the file and contains `about`; the output stays as it was. */
static void assert_refused(const char *path, enum cv_err expected, const char *about) {
  struct cv_ring ring = {.n = 77};
  struct cv_why why = {{0}};
  assert_int_equal(cv_ring_read(path, &ring, &why), expected);
  assert_non_null(strstr(why.text, path));
  if (strstr(why.text, about) == NULL) {
    fail_msg("\"%s\" is not in \"%s\"", about, why.text);
  }
  assert_null(strchr(why.text, '\n'));
  assert_int_equal(ring.n, 77);
}

static void assert_same(const struct cv_ring *a, const struct cv_ring *b) {
  assert_int_equal(a->n, b->n);
  for (size_t i = 0; i < a->n; i++) {
    assert_int_equal(a->item[i].number, b->item[i].number);
    assert_int_equal(a->item[i].made_s, b->item[i].made_s);
    assert_memory_equal(a->item[i].key->bytes, b->item[i].key->bytes, CV_KEY_BYTES);
  }
}

static void test_created_key_is_private_and_reads_back(void **state) {
  (void)state;
  const char *path = folder_file(&folder, "key");
  struct cv_ring made, other, found;
  struct stat info;
  mode_t old = umask(0);
  assert_int_equal(cv_ring_create(path, SECONDS, &made, NULL), CV_OK);
  assert_int_equal(cv_ring_create(folder_file(&folder, "other"), SECONDS, &other, NULL), CV_OK);
  (void)umask(old);
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
  assert_int_equal(cv_ring_read(path, &found, NULL), CV_OK);
  assert_same(&found, &made);
  assert_int_equal(made.n, 1);
  assert_int_equal(made.item[0].number, 1);
  assert_int_equal(made.item[0].made_s, SECONDS);
  assert_memory_not_equal(other.item[0].key->bytes, made.item[0].key->bytes, CV_KEY_BYTES);
  cv_ring_fini(&made);
  cv_ring_fini(&other);
  cv_ring_fini(&found);
}

/* As a program before 0.3.0 made it. */
static void test_plain_key_is_refused_with_advice(void **state) {
  (void)state;
  const char *path = folder_file(&folder, "key");
  write_file(path, CV_KEY_BYTES, 0600);
  assert_refused(path, CV_ERR_VERSION,
                 "key: a key of 32 bytes, of a Crowdveil before 0.3.0, whose files are not read; move the files in the "
                 "state folder, the anchor and the seal key away together, and set up anew");
}

/* A new key in front of an old one, then alone. The file is replaced: a file that others know by another name stays. */
static void test_replaced_file_has_the_new_keys_and_the_old_owner(void **state) {
  (void)state;
  const char *path = folder_file(&folder, "key");
  struct cv_ring ring, found;
  struct stat before, after;
  assert_int_equal(cv_ring_create(path, SECONDS, &ring, NULL), CV_OK);
  assert_int_equal(chmod(path, 0400), 0);
  assert_int_equal(stat(path, &before), 0);
  assert_int_equal(cv_ring_renew(&ring, SECONDS), CV_OK);
  assert_int_equal(cv_ring_replace(path, &ring, NULL), CV_OK);
  assert_int_equal(cv_ring_read(path, &found, NULL), CV_OK);
  assert_same(&found, &ring);
  assert_int_equal(found.n, 2);
  assert_int_equal(found.item[0].number, 2);
  assert_int_equal(found.item[1].number, 1);
  assert_int_equal(stat(path, &after), 0);
  assert_int_equal(after.st_mode, before.st_mode);
  assert_int_equal(after.st_uid, before.st_uid);
  cv_ring_fini(&found);
  cv_ring_cut(&ring, 1);
  assert_int_equal(cv_ring_replace(path, &ring, NULL), CV_OK);
  assert_int_equal(cv_ring_read(path, &found, NULL), CV_OK);
  assert_same(&found, &ring);
  assert_int_equal(access(folder_file(&folder, "key.new"), F_OK), -1);
  cv_ring_fini(&ring);
  cv_ring_fini(&found);
}

static void test_replaced_bytes_are_overwritten_unless_they_are_a_copy(void **state) {
  (void)state;
  static const char zeros[256];
  const char *path = folder_file(&folder, "key");
  char bytes[256];
  for (int has_copy = 0; has_copy < 2; has_copy++) {
    struct cv_ring ring;
    assert_int_equal(cv_ring_create(path, SECONDS, &ring, NULL), CV_OK);
    int old = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(old >= 0);
    if (has_copy) {
      assert_int_equal(link(path, folder_file(&folder, "copy")), 0);
    }
    assert_int_equal(cv_ring_renew(&ring, SECONDS), CV_OK);
    assert_int_equal(cv_ring_replace(path, &ring, NULL), CV_OK);
    ssize_t n = read(old, bytes, sizeof(bytes));
    assert_true(n > 2 * CV_KEY_BYTES && n < (ssize_t)sizeof(bytes));
    assert_int_equal(memcmp(bytes, zeros, (size_t)n) == 0, !has_copy);
    assert_int_equal(close(old), 0);
    cv_ring_fini(&ring);
    assert_int_equal(unlink(path), 0);
  }
}

static void test_a_link_stays_a_link(void **state) {
  (void)state;
  const char *path = folder_file(&folder, "key"), *name = folder_file(&folder, "link");
  struct cv_ring ring, found;
  struct stat info;
  assert_int_equal(cv_ring_create(path, SECONDS, &ring, NULL), CV_OK);
  assert_int_equal(symlink(path, name), 0);
  assert_int_equal(cv_ring_renew(&ring, SECONDS), CV_OK);
  assert_int_equal(cv_ring_replace(name, &ring, NULL), CV_OK);
  assert_int_equal(lstat(name, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(cv_ring_read(path, &found, NULL), CV_OK);
  assert_same(&found, &ring);
  cv_ring_fini(&ring);
  cv_ring_fini(&found);
}

/* What a run that was killed has left does not stop the next one, and does not stay. */
static void test_rest_of_a_killed_run_is_removed(void **state) {
  (void)state;
  const char *path = folder_file(&folder, "key"), *rest = folder_file(&folder, "key.new");
  struct cv_ring ring;
  assert_int_equal(cv_ring_create(path, SECONDS, &ring, NULL), CV_OK);
  write_file(rest, 40, 0600);
  assert_int_equal(cv_ring_replace(path, &ring, NULL), CV_OK);
  assert_int_equal(access(rest, F_OK), -1);
  cv_ring_fini(&ring);
}

static void test_only_one_program_changes_the_file(void **state) {
  (void)state;
  const char *path = folder_file(&folder, "key");
  struct cv_ring ring;
  struct cv_why why = {{0}};
  int first, second;
  assert_int_equal(cv_ring_create(path, SECONDS, &ring, NULL), CV_OK);
  assert_int_equal(cv_ring_lock(path, &first, NULL), CV_OK);
  assert_int_equal(cv_ring_lock(path, &second, &why), CV_ERR_STATE);
  assert_non_null(strstr(why.text, "another program is changing the key file"));
  assert_int_equal(close(first), 0);
  assert_int_equal(cv_ring_lock(path, &second, NULL), CV_OK);
  assert_int_equal(close(second), 0);
  cv_ring_fini(&ring);
}

static void test_existing_file_is_never_overwritten(void **state) {
  (void)state;
  const char *path = folder_file(&folder, "key");
  struct cv_ring made, found;
  struct cv_why why = {{0}};
  assert_int_equal(cv_ring_create(path, SECONDS, &made, NULL), CV_OK);
  assert_int_equal(cv_ring_create(path, SECONDS, &found, &why), CV_ERR_EXISTS);
  assert_non_null(strstr(why.text, path));
  assert_int_equal(cv_ring_read(path, &found, NULL), CV_OK);
  assert_same(&found, &made);
  cv_ring_fini(&made);
  cv_ring_fini(&found);
}

static void test_missing_folder_is_named(void **state) {
  (void)state;
  struct cv_ring ring;
  struct cv_why why = {{0}};
  const char *path = folder_file(&folder, "no/key");
  assert_int_equal(cv_ring_create(path, SECONDS, &ring, &why), CV_ERR_IO);
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
    assert_refused(path, CV_ERR_FORMAT, "not a key file");
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

#define HEAD  "crowdveil seal keys 1\n"
#define KEY_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define KEY_B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

static void test_text_is_read_in_its_order(void **state) {
  (void)state;
  static const char text[] = HEAD "7 1763967600 " KEY_A "\n3 0 " KEY_B "\n";
  struct cv_ring ring;
  struct cv_key_id absent = {{0}};
  assert_int_equal(cv_ring_parse("key", text, sizeof(text) - 1, &ring, NULL), CV_OK);
  assert_int_equal(ring.n, 2);
  assert_int_equal(ring.item[0].number, 7);
  assert_int_equal(ring.item[0].made_s, SECONDS);
  assert_int_equal(ring.item[0].key->bytes[1], 0x11);
  assert_int_equal(ring.item[1].number, 3);
  assert_int_equal(ring.item[1].key->bytes[1], 0xee);
  struct cv_key_id id = cv_key_id(ring.item[1].key);
  assert_ptr_equal(cv_ring_find(&ring, &id), ring.item[1].key);
  assert_null(cv_ring_find(&ring, &absent));
  assert_int_equal(strlen(cv_ring_names(&ring).text), 8 + 2 + 8);
  cv_ring_fini(&ring);
}

/* Each part of the file, cut off or wrong; and no line shows a part of a key. */
static void test_other_text_is_refused_with_its_line(void **state) {
  (void)state;
  static const struct {
    const char *text, *about;
  } cases[] = {
      {HEAD, "line 2: missing; expected a key"},
      {HEAD "1 0 " KEY_A, "line 2: not a key, or cut off"},
      {HEAD "1 0 00112233\n", "line 2: not a key, or cut off"},
      {HEAD "1 0 " KEY_A "\n\n", "line 3: not a key"},
      {HEAD "1 0 " KEY_A "00\n", "line 2: not a key"},
      {HEAD "1 0  " KEY_A "\n", "line 2: not a key"},
      {HEAD "1 0 00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff\n", "line 2: not a key"},
      {HEAD "01 0 " KEY_A "\n", "line 2: not a key"},
      {HEAD "-1 0 " KEY_A "\n", "line 2: not a key"},
      {HEAD "1 99999999999999999999 " KEY_A "\n", "line 2: not a key"},
      {HEAD "1000000000 0 " KEY_A "\n", "line 2: not a key"},
      {HEAD "0 0 " KEY_A "\n", "line 2: wrong number"},
      {HEAD "1 0 " KEY_A "\n2 0 " KEY_B "\n", "line 3: wrong number"},
      {HEAD "2 0 " KEY_A "\n1 0 " KEY_A "\n", "line 3: a key a second time"},
      {"crowdveil seal keys 2\n1 0 " KEY_A "\n", "not a key file"},
      {"Crowdveil", "not a key file (9 bytes)"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    const char *path = folder_file(&folder, "key");
    write_bytes(path, cases[i].text, strlen(cases[i].text), 0600);
    assert_refused(path, CV_ERR_FORMAT, cases[i].about);
    struct cv_ring ring;
    struct cv_why why = {{0}};
    assert_int_equal(cv_ring_read(path, &ring, &why), CV_ERR_FORMAT);
    assert_null(strstr(why.text, "00112233"));
    assert_int_equal(unlink(path), 0);
  }
}

/* Cut at any byte, a file is refused. */
static void test_cut_file_is_refused(void **state) {
  (void)state;
  static const char text[] = HEAD "2 1763967600 " KEY_A "\n1 0 " KEY_B "\n";
  size_t whole = strlen(HEAD "2 1763967600 " KEY_A "\n");
  for (size_t n = 0; n < sizeof(text) - 1; n++) {
    struct cv_ring ring;
    if (n != whole) { /* there the first key alone is a file, too */
      assert_int_equal(cv_ring_parse("key", text, n, &ring, NULL), CV_ERR_FORMAT);
    }
  }
}

static void test_a_ring_has_a_bound(void **state) {
  (void)state;
  struct cv_ring ring = {.n = 0}, found;
  const char *path = folder_file(&folder, "key");
  char text[2048];
  for (size_t i = 0; i < CV_RING_KEYS; i++) {
    assert_int_equal(cv_ring_renew(&ring, UINT64_MAX >> 1), CV_OK);
  }
  assert_int_equal(cv_ring_renew(&ring, 0), CV_ERR_LIMIT);
  ring.item[0].number = 999999999;
  write_file(path, CV_KEY_BYTES, 0600);
  assert_int_equal(cv_ring_replace(path, &ring, NULL), CV_OK);
  assert_int_equal(cv_ring_read(path, &found, NULL), CV_OK);
  assert_same(&found, &ring);
  cv_ring_fini(&found);
  /* one more line: more keys than are accepted */
  for (uint32_t i = 0; i < CV_RING_KEYS; i++) {
    ring.item[i].number = 20 - i;
  }
  assert_int_equal(cv_ring_replace(path, &ring, NULL), CV_OK);
  size_t n = read_file(path, text, sizeof(text));
  n += (size_t)snprintf(text + n, sizeof(text) - n, "1 0 " KEY_A "\n");
  struct cv_why why = {{0}};
  assert_int_equal(cv_ring_parse("key", text, n, &found, &why), CV_ERR_FORMAT);
  assert_non_null(strstr(why.text, "too many keys; expected at most 8"));
  cv_ring_fini(&ring);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_created_key_is_private_and_reads_back, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_plain_key_is_refused_with_advice, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_replaced_file_has_the_new_keys_and_the_old_owner, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_replaced_bytes_are_overwritten_unless_they_are_a_copy, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_link_stays_a_link, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_rest_of_a_killed_run_is_removed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_only_one_program_changes_the_file, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_existing_file_is_never_overwritten, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_missing_folder_is_named, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_key_that_others_can_read_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_wrong_length_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_what_is_no_file_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_text_is_read_in_its_order, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_other_text_is_refused_with_its_line, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_cut_file_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_ring_has_a_bound, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
