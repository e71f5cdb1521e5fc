/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <dirent.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "deploy/launcher/pki/pki.h"

enum { DAY_S = 86400 };

struct fixture {
  char folder[64], ca[80], out[80];
};

static int setup(void **state) {
  struct fixture *fixture = calloc(1, sizeof(*fixture));
  if (fixture == NULL) {
    return -1;
  }
  (void)snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/crowdveil-pki-XXXXXX");
  if (mkdtemp(fixture->folder) == NULL) {
    return -1;
  }
  (void)snprintf(fixture->ca, sizeof(fixture->ca), "%s/ca", fixture->folder);
  (void)snprintf(fixture->out, sizeof(fixture->out), "%s/out", fixture->folder);
  *state = fixture;
  return cv_pki_make_ca(fixture->ca, "test", 30 * DAY_S, NULL) == CV_OK ? 0 : -1;
}

static int teardown(void **state) {
  struct fixture *fixture = *state;
  char command[128];
  (void)snprintf(command, sizeof(command), "rm -rf %s", fixture->folder);
  int status = system(command);
  free(fixture);
  return status;
}

static void expect_mode(const char *path, mode_t mode) {
  struct stat found;
  assert_int_equal(stat(path, &found), 0);
  assert_int_equal(found.st_mode & 07777, mode);
}

static unsigned count_files(const char *path) {
  DIR *dir = opendir(path);
  unsigned count = 0;
  for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
    count += entry->d_name[0] != '.';
  }
  if (dir != NULL) {
    (void)closedir(dir);
  }
  return count;
}

static enum cv_err issue_full(struct fixture *fixture, const char *identity, int64_t valid_s, bool renew,
                              struct cv_pki_files *files, struct cv_why *why) {
  static const char *const local[] = {"localhost", "127.0.0.1"};
  struct cv_pki_request request = {
      .identity = identity, .hosts = local, .hosts_n = CV_COUNT(local), .valid_s = valid_s, .renew = renew};
  return cv_pki_issue(fixture->ca, fixture->out, &request, files, why);
}

static enum cv_err issue(struct fixture *fixture, const char *identity) {
  struct cv_why why = {{0}};
  enum cv_err err = issue_full(fixture, identity, DAY_S, false, NULL, &why);
  assert_true((err == CV_OK) == (why.text[0] == '\0'));
  return err;
}

static X509 *read_cert(const char *path) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
  (void)fclose(file);
  assert_non_null(cert);
  return cert;
}

static char *slurp(const char *path) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  char *text = calloc(1, 65536);
  assert_non_null(text);
  assert_true(fread(text, 1, 65535, file) > 0);
  (void)fclose(file);
  return text;
}

static void test_modes_and_names(void **state) {
  struct fixture *fixture = *state;
  struct cv_pki_files files;
  char path[160];
  mode_t old = umask(0); /* with the widest umask */
  assert_int_equal(issue_full(fixture, "gateway/1-500", DAY_S, false, &files, NULL), CV_OK);
  (void)umask(old);
  expect_mode(fixture->ca, 0700);
  expect_mode(fixture->out, 0700);
  (void)snprintf(path, sizeof(path), "%s/ca.key", fixture->ca);
  expect_mode(path, 0600);
  (void)snprintf(path, sizeof(path), "%s/ca.pem", fixture->ca);
  expect_mode(path, 0644);
  expect_mode(files.key, 0600);
  expect_mode(files.cert, 0644);
  (void)snprintf(path, sizeof(path), "%s/gateway-1-500.pem", fixture->out);
  assert_string_equal(files.cert, path);
  (void)snprintf(path, sizeof(path), "%s/gateway-1-500.key", fixture->out);
  assert_string_equal(files.key, path);
}

/* A party's folder has all the files that it needs, and nothing of another party's. */
static void test_a_folder_of_its_own(void **state) {
  struct fixture *fixture = *state;
  char own[160], copy[160];
  assert_int_equal(issue(fixture, "broker/main"), CV_OK);
  assert_int_equal(count_files(fixture->out), 4);
  (void)snprintf(own, sizeof(own), "%s/ca.pem", fixture->ca);
  (void)snprintf(copy, sizeof(copy), "%s/ca.pem", fixture->out);
  expect_mode(copy, 0644);
  char *expected = slurp(own), *found = slurp(copy);
  assert_string_equal(found, expected);
  free(expected);
  free(found);
  /* Into a folder where the certificate cannot be written nothing is written. */
  assert_int_equal(issue(fixture, "broker/main"), CV_ERR_EXISTS);
  assert_int_equal(count_files(fixture->out), 4);
}

static void test_what_is_in_a_certificate(void **state) {
  struct fixture *fixture = *state;
  static const char *const hosts[] = {"broker.example", "10.0.0.7", "fd00::7"};
  struct cv_pki_request request = {
      .identity = "crowdveil:broker/main", .hosts = hosts, .hosts_n = CV_COUNT(hosts), .valid_s = 3 * DAY_S};
  struct cv_pki_files files;
  assert_int_equal(cv_pki_issue(fixture->ca, fixture->out, &request, &files, NULL), CV_OK);
  X509 *cert = read_cert(files.cert);
  char path[160];
  (void)snprintf(path, sizeof(path), "%s/ca.pem", fixture->ca);
  X509 *ca = read_cert(path);
  assert_int_equal(X509_verify(cert, X509_get0_pubkey(ca)), 1);
  assert_int_equal(X509_verify(ca, X509_get0_pubkey(ca)), 1);
  assert_int_equal(X509_check_ca(ca), 1);
  assert_int_equal(X509_get_pathlen(ca), 0);
  assert_int_equal(X509_check_ca(cert), 0);
  assert_int_equal(X509_check_host(cert, "broker.example", 0, 0, NULL), 1);
  assert_int_equal(X509_check_ip_asc(cert, "10.0.0.7", 0), 1);
  assert_int_equal(X509_check_ip_asc(cert, "fd00::7", 0), 1);
  assert_int_equal(X509_check_host(cert, "other.example", 0, 0, NULL), 0);
  assert_int_equal(X509_check_purpose(cert, X509_PURPOSE_SSL_CLIENT, 0), 1);
  assert_int_equal(X509_check_purpose(cert, X509_PURPOSE_SSL_SERVER, 0), 1);
  int days;
  int seconds;
  assert_int_equal(ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)), 1);
  assert_in_range(days * DAY_S + seconds, 3 * DAY_S - 60, 3 * DAY_S);
  assert_true(X509_cmp_current_time(X509_get0_notBefore(cert)) < 0);
  X509_free(cert);
  X509_free(ca);
}

static void test_serials_differ(void **state) {
  struct fixture *fixture = *state;
  struct cv_pki_files a;
  struct cv_pki_files b;
  assert_int_equal(issue_full(fixture, "worker/1", DAY_S, false, &a, NULL), CV_OK);
  assert_int_equal(issue_full(fixture, "worker/2", DAY_S, false, &b, NULL), CV_OK);
  X509 *first = read_cert(a.cert);
  X509 *second = read_cert(b.cert);
  assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(first), X509_get0_serialNumber(second)), 0);
  assert_int_equal(ASN1_STRING_length(X509_get0_serialNumber(first)), 20);
  X509_free(first);
  X509_free(second);
}

static void test_expired(void **state) {
  struct fixture *fixture = *state;
  struct cv_pki_files files;
  assert_int_equal(issue_full(fixture, "worker/1", -10, false, &files, NULL), CV_OK);
  X509 *cert = read_cert(files.cert);
  assert_true(X509_cmp_current_time(X509_get0_notAfter(cert)) < 0);
  assert_true(ASN1_TIME_compare(X509_get0_notBefore(cert), X509_get0_notAfter(cert)) < 0);
  X509_free(cert);
}

static void test_overlaps(void **state) {
  struct fixture *fixture = *state;
  struct cv_why why;
  assert_int_equal(issue(fixture, "gateway/10-20"), CV_OK);
  static const char *const bad[] = {"worker/10",     "worker/20",     "gateway/1-10",
                                    "gateway/20-30", "gateway/12-13", "gateway/1-100"};
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    assert_int_equal(issue(fixture, bad[i]), CV_ERR_EXISTS);
  }
  assert_int_equal(count_files(fixture->out), 4);
  assert_int_equal(issue_full(fixture, "worker/15", DAY_S, false, NULL, &why), CV_ERR_EXISTS);
  assert_non_null(strstr(why.text, "worker/15: overlaps gateway/10-20, which has a certificate already"));
  assert_int_equal(issue(fixture, "worker/9"), CV_OK);
  assert_int_equal(issue(fixture, "gateway/21-30"), CV_OK);
  /* Roles without workers do not overlap with anything. */
  assert_int_equal(issue(fixture, "broker/a"), CV_OK);
  assert_int_equal(issue(fixture, "thirdparty/a"), CV_OK);
  /* An expired certificate is no obstacle, nor is a renewal of the same identity; a similar identity is. */
  assert_int_equal(issue_full(fixture, "worker/40", -10, false, NULL, NULL), CV_OK);
  assert_int_equal(issue(fixture, "gateway/40-41"), CV_OK);
  (void)snprintf(fixture->out, sizeof(fixture->out), "%s/new", fixture->folder);
  assert_int_equal(issue_full(fixture, "gateway/10-20", DAY_S, true, NULL, NULL), CV_OK);
  assert_int_equal(issue_full(fixture, "gateway/10-19", DAY_S, true, NULL, NULL), CV_ERR_EXISTS);
}

static void test_nothing_is_overwritten(void **state) {
  struct fixture *fixture = *state;
  struct cv_pki_files files;
  char path[160];
  struct cv_why why;
  assert_int_equal(issue_full(fixture, "broker/b", DAY_S, false, &files, NULL), CV_OK);
  char *key = slurp(files.key);
  (void)snprintf(path, sizeof(path), "%s/index.tsv", fixture->ca);
  char *index = slurp(path);
  assert_int_equal(issue_full(fixture, "broker/b", DAY_S, true, NULL, &why), CV_ERR_EXISTS);
  assert_non_null(strstr(why.text, "broker-b.key: File exists"));
  /* A certificate exists already: the new key is removed. */
  assert_int_equal(unlink(files.key), 0);
  assert_int_equal(issue_full(fixture, "broker/b", DAY_S, true, NULL, &why), CV_ERR_EXISTS);
  assert_non_null(strstr(why.text, "broker-b.pem: File exists"));
  assert_int_equal(access(files.key, F_OK), -1);
  char *index_after = slurp(path);
  assert_string_equal(index, index_after);
  (void)snprintf(path, sizeof(path), "%s/ca.key", fixture->ca);
  char *before = slurp(path);
  assert_int_equal(cv_pki_make_ca(fixture->ca, "again", DAY_S, &why), CV_ERR_EXISTS);
  char *after = slurp(path);
  assert_string_equal(before, after);
  assert_int_equal(count_files(fixture->ca), 4);
  free(key);
  free(index);
  free(index_after);
  free(before);
  free(after);
}

static void test_failures_leave_nothing(void **state) {
  struct fixture *fixture = *state;
  struct cv_why why;
  char nowhere[128];
  static const char *const injected[] = {"a,URI:crowdveil:broker/x"};
  struct cv_pki_request request = {
      .identity = "worker/1", .hosts = injected, .hosts_n = CV_COUNT(injected), .valid_s = DAY_S};
  assert_int_equal(cv_pki_issue(fixture->ca, fixture->out, &request, NULL, &why), CV_ERR_FORMAT);
  assert_non_null(strstr(why.text, "is neither an IP address nor a DNS name"));
  assert_int_equal(access(fixture->out, F_OK), -1);
  assert_int_equal(issue(fixture, "worker/0"), CV_ERR_FORMAT);
  assert_int_equal(issue(fixture, "king/1"), CV_ERR_FORMAT);
  assert_int_equal(issue(fixture, "broker/../../x"), CV_ERR_FORMAT);
  assert_int_equal(access(fixture->out, F_OK), -1);
  (void)snprintf(nowhere, sizeof(nowhere), "%s/no/ca", fixture->folder);
  assert_int_equal(cv_pki_make_ca(nowhere, "x", DAY_S, &why), CV_ERR_IO);
  assert_int_equal(cv_pki_issue(nowhere, fixture->out, &request, NULL, &why), CV_ERR_NOT_FOUND);
  assert_non_null(strstr(why.text, "make the CA first"));
  assert_int_equal(access(fixture->out, F_OK), -1);
}

static void test_damaged_index_is_named(void **state) {
  struct fixture *fixture = *state;
  char path[160];
  struct cv_why why;
  assert_int_equal(issue(fixture, "worker/1"), CV_OK);
  (void)snprintf(path, sizeof(path), "%s/index.tsv", fixture->ca);
  FILE *file = fopen(path, "a");
  assert_non_null(file);
  assert_true(fputs("junk\n", file) >= 0);
  (void)fclose(file);
  assert_int_equal(issue_full(fixture, "worker/2", DAY_S, false, NULL, &why), CV_ERR_DAMAGED);
  assert_non_null(strstr(why.text, "index.tsv:2: expected SERIAL, IDENTITY, SECONDS"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_modes_and_names, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_folder_of_its_own, setup, teardown),
      cmocka_unit_test_setup_teardown(test_what_is_in_a_certificate, setup, teardown),
      cmocka_unit_test_setup_teardown(test_serials_differ, setup, teardown),
      cmocka_unit_test_setup_teardown(test_expired, setup, teardown),
      cmocka_unit_test_setup_teardown(test_overlaps, setup, teardown),
      cmocka_unit_test_setup_teardown(test_nothing_is_overwritten, setup, teardown),
      cmocka_unit_test_setup_teardown(test_failures_leave_nothing, setup, teardown),
      cmocka_unit_test_setup_teardown(test_damaged_index_is_named, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
