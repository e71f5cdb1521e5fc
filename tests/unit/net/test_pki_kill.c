/* SPDX-License-Identifier: Apache-2.0 */
/* Each change of a CA, killed before each step on the disk: what is left can be used, and the same call ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/net/crl.h"
#include "deploy/launcher/pki/index.h"
#include "deploy/launcher/pki/make.h"
#include "deploy/launcher/pki/revoke.h"
#include "tests/support/folder.h"

enum { DAY_S = 86400, KILLED = 9, STEPS_LEAST = 8, STEPS_MOST = 80 };

static struct folder folder;
static unsigned steps_left; /* 0: never killed */

static void step(void) {
  if (steps_left > 0 && --steps_left == 0) {
    _exit(KILLED);
  }
}

/* These stand in for the C library's, which is what a linker does with a program's own functions. */
int fsync(int fd) {
  step();
  return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to) {
  step();
  return (int)syscall(SYS_renameat2, -100, from, -100, to, 0);
}

int unlink(const char *path) {
  step();
  return (int)syscall(SYS_unlinkat, -100, path, 0);
}

/* --- the changes --- */

static const char *const MADE[] = {"worker/1=made"}, *const NEW[] = {"requester/r=new"};

static enum cv_err make(const char *const *word, bool renew, bool new_key) {
  const struct cv_pki_make plan = {.ca_folder = "ca",
                                   .ca_name = "test",
                                   .ca_valid_s = 9 * DAY_S,
                                   .valid_s = DAY_S,
                                   .renew = renew,
                                   .new_key = new_key};
  struct cv_pki_party *party;
  CV_TRY(cv_pki_parties_parse(word, 1, "ca", &party, NULL));
  enum cv_err err = cv_pki_make(&plan, party, 1, NULL);
  cv_pki_parties_free(party, 1);
  return err;
}

static enum cv_err make_new(void) {
  return make(NEW, false, false);
}

static enum cv_err make_renewed(void) {
  return make(MADE, true, false);
}

static enum cv_err make_new_key(void) {
  return make(MADE, true, true);
}

static enum cv_err renew_one(void) {
  const struct cv_pki_request request = {.identity = "worker/1", .valid_s = DAY_S};
  struct cv_pki_files files;
  bool is_new;
  return cv_pki_renew("ca", "made", &request, &files, &is_new, NULL);
}

static enum cv_err renew_key(void) {
  const struct cv_pki_request request = {.identity = "worker/1", .valid_s = DAY_S, .new_key = true};
  struct cv_pki_files files;
  bool is_new;
  return cv_pki_renew("ca", "made", &request, &files, &is_new, NULL);
}

static void ignore(void *data, const struct cv_pki_entry *entry) {
}

static enum cv_err revoke_two(void) {
  return cv_pki_revoke("ca", "worker/2", ignore, NULL, NULL);
}

/* --- what must hold --- */

static bool fits(const char *party) {
  struct cv_pki_files files;
  struct cv_pki_pair pair;
  (void)snprintf(files.cert, sizeof(files.cert), "%s/cert.pem", party);
  (void)snprintf(files.key, sizeof(files.key), "%s/key.pem", party);
  if (cv_pki_read_pair(&files, &pair, NULL) != CV_OK) {
    return false;
  }
  cv_pki_pair_fini(&pair);
  return true;
}

static const struct cv_pki_entry *entry_of(const struct cv_pki_index *index, const char *path) {
  X509 *cert;
  struct cv_serial serial;
  assert_int_equal(cv_pki_read_cert(path, &cert, NULL), CV_OK);
  assert_non_null(cert);
  assert_true(cv_serial_of(cert, &serial));
  X509_free(cert);
  return cv_pki_index_find(index, &serial);
}

/* The CA's list is whole at any time, and says what `is_revoked` says once the change is complete. */
static void expect_list(bool is_complete, bool is_revoked) {
  struct cv_crls crls;
  struct cv_why why;
  X509 *ca, *two;
  STACK_OF(X509) *cas = sk_X509_new_null();
  assert_int_equal(cv_pki_read_cert("ca/ca.pem", &ca, NULL), CV_OK);
  assert_int_equal(cv_pki_read_cert("two/cert.pem", &two, NULL), CV_OK);
  assert_true(sk_X509_push(cas, ca));
  if (cv_crls_load("ca/crl.pem", cas, (int64_t)time(NULL), &crls, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  enum cv_crl_verdict verdict = cv_crls_judge(&crls, two, (int64_t)time(NULL));
  assert_true(!is_complete || (verdict == CV_CRL_REVOKED) == is_revoked);
  cv_crls_fini(&crls);
  sk_X509_pop_free(cas, X509_free);
  X509_free(two);
}

/* A certificate in its place is always listed, so it can always be revoked. */
static void expect_listed(void) {
  struct cv_pki_index index;
  assert_int_equal(cv_pki_index_read("ca/index.tsv", &index, NULL), CV_OK);
  assert_non_null(entry_of(&index, "made/cert.pem"));
  assert_non_null(entry_of(&index, "two/cert.pem"));
  if (access("new/cert.pem", F_OK) == 0) {
    assert_non_null(entry_of(&index, "new/cert.pem"));
  }
  cv_pki_index_close(&index);
}

static void set_up_parties(void) {
  static const char *const two[] = {"worker/2=two"};
  assert_int_equal(system("rm -rf ca made two new"), 0);
  assert_int_equal(cv_pki_make_ca("ca", "test", 9 * DAY_S, NULL), CV_OK);
  assert_int_equal(make(MADE, false, false), CV_OK);
  assert_int_equal(make(two, false, false), CV_OK);
}

/* Returns false once the change is complete before the given step. */
static bool kill_at(unsigned at, enum cv_err (*change)(void)) {
  pid_t child = fork();
  int status;
  assert_true(child >= 0);
  if (child == 0) {
    steps_left = at;
    _exit(change() == CV_OK ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_true(WEXITSTATUS(status) == KILLED || WEXITSTATUS(status) == 0);
  return WEXITSTATUS(status) == KILLED;
}

static void kill_everywhere(enum cv_err (*change)(void), bool revokes) {
  unsigned at = 1;
  for (bool was_killed = true; was_killed && at < STEPS_MOST; at++) {
    set_up_parties();
    was_killed = kill_at(at, change);
    expect_listed();
    expect_list(!was_killed, revokes);
    /* The quiet repair first: what make does when it runs again, without a renewal. */
    assert_int_equal(make(MADE, false, false), CV_OK);
    assert_true(fits("made"));
    assert_int_equal(change(), CV_OK);
    assert_true(fits("made"));
    assert_true(change != make_new || fits("new"));
    expect_listed();
    expect_list(true, revokes);
  }
  assert_in_range(at, STEPS_LEAST, STEPS_MOST - 1);
}

static void test_renew(void **state) {
  kill_everywhere(renew_one, false);
}

static void test_renew_key(void **state) {
  kill_everywhere(renew_key, false);
}

static void test_make_new_key(void **state) {
  kill_everywhere(make_new_key, false);
}

static void test_make_renewed(void **state) {
  kill_everywhere(make_renewed, false);
}

static void test_make_new(void **state) {
  kill_everywhere(make_new, false);
}

static void test_revoke(void **state) {
  kill_everywhere(revoke_two, true);
}

static int setup(void **state) {
  folder_make(&folder);
  return chdir(folder.path);
}

static int teardown(void **state) {
  char command[128];
  (void)snprintf(command, sizeof(command), "rm -rf %s", folder.path);
  return chdir("/") == 0 ? system(command) : -1;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_renew, setup, teardown),
      cmocka_unit_test_setup_teardown(test_renew_key, setup, teardown),
      cmocka_unit_test_setup_teardown(test_make_new_key, setup, teardown),
      cmocka_unit_test_setup_teardown(test_make_renewed, setup, teardown),
      cmocka_unit_test_setup_teardown(test_make_new, setup, teardown),
      cmocka_unit_test_setup_teardown(test_revoke, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
