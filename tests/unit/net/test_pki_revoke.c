/* SPDX-License-Identifier: Apache-2.0 */
/* Revoking and renewing: the index, the signed list, and what an interruption leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "common/base/fingerprint.h"
#include "common/net/certificate.h"
#include "common/net/crl.h"
#include "deploy/launcher/pki/index.h"
#include "deploy/launcher/pki/make.h"
#include "deploy/launcher/pki/revoke.h"
#include "tests/support/folder.h"

enum { DAY_S = 86400, TEXT_BYTES = 8192, PROCESSES = 8, CA_DAYS = 3650 };

static struct folder folder;
static const char *const hosts[] = {"localhost", "10.0.0.7", "fd00::7"};

static int setup(void **state) {
  folder_make(&folder);
  assert_int_equal(chdir(folder.path), 0);
  return cv_pki_make_ca("ca", "test", (int64_t)CA_DAYS * DAY_S, NULL) == CV_OK ? 0 : -1;
}

static int teardown(void **state) {
  char command[128];
  (void)snprintf(command, sizeof(command), "rm -rf %s", folder.path);
  return chdir("/") == 0 ? system(command) : -1;
}

static enum cv_err issue_for(const char *out, const char *identity, int64_t valid_s, bool renew,
                             struct cv_pki_files *files, struct cv_why *why) {
  const struct cv_pki_request request = {
      .identity = identity, .hosts = hosts, .hosts_n = CV_COUNT(hosts), .valid_s = valid_s, .renew = renew};
  return cv_pki_issue("ca", out, &request, files, why);
}

static struct cv_pki_files issue(const char *out, const char *identity) {
  struct cv_pki_files files;
  struct cv_why why;
  if (issue_for(out, identity, DAY_S, false, &files, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return files;
}

static enum cv_err renew_with(const char *out, const char *identity, bool new_key, bool *ret_is_new,
                              struct cv_why *why) {
  const struct cv_pki_request request = {.identity = identity, .valid_s = 2 * DAY_S, .new_key = new_key};
  struct cv_pki_files files;
  return cv_pki_renew("ca", out, &request, &files, ret_is_new, why);
}

static enum cv_err renew(const char *out, const char *identity, struct cv_why *why) {
  bool is_new;
  return renew_with(out, identity, false, &is_new, why);
}

static X509 *read_cert(const char *path) {
  X509 *cert;
  assert_int_equal(cv_pki_read_cert(path, &cert, NULL), CV_OK);
  assert_non_null(cert);
  return cert;
}

static struct cv_serial serial_in(const char *path) {
  X509 *cert = read_cert(path);
  struct cv_serial serial;
  assert_true(cv_serial_of(cert, &serial));
  X509_free(cert);
  return serial;
}

static X509_CRL *read_list(const char *path) {
  FILE *file = fopen(path, "r");
  bool is_damaged;
  assert_non_null(file);
  X509_CRL *list = cv_crl_read(file, &is_damaged);
  (void)fclose(file);
  assert_non_null(list);
  return list;
}

static int64_t number_of(const X509_CRL *list) {
  ASN1_INTEGER *number = X509_CRL_get_ext_d2i(list, NID_crl_number, NULL, NULL);
  int64_t value = 0;
  assert_true(number != NULL && ASN1_INTEGER_get_int64(&value, number));
  ASN1_INTEGER_free(number);
  return value;
}

/* What OpenSSL's own verification with revocation says: X509_V_OK, X509_V_ERR_CERT_REVOKED, ... */
static int verify(const char *path, const char *crl) {
  X509_STORE *store = X509_STORE_new();
  X509_STORE_CTX *context = X509_STORE_CTX_new();
  X509 *ca = read_cert("ca/ca.pem"), *cert = read_cert(path);
  X509_CRL *list = read_list(crl);
  assert_true(X509_STORE_add_cert(store, ca) && X509_STORE_add_crl(store, list));
  assert_true(X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_X509_STRICT));
  assert_true(X509_STORE_CTX_init(context, store, cert, NULL));
  (void)X509_verify_cert(context);
  int code = X509_STORE_CTX_get_error(context);
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  X509_CRL_free(list);
  X509_free(ca);
  X509_free(cert);
  return code;
}

static void count(void *data, const struct cv_pki_entry *entry) {
  assert_true(entry->revoked > 0);
  ++*(unsigned *)data;
}

static unsigned revoked(const char *what) {
  unsigned told = 0;
  struct cv_why why;
  if (cv_pki_revoke("ca", what, count, &told, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return told;
}

static const char *state_of(const struct cv_serial *serial) {
  struct cv_pki_index index;
  assert_int_equal(cv_pki_index_read("ca/index.tsv", &index, NULL), CV_OK);
  const struct cv_pki_entry *entry = cv_pki_index_find(&index, serial);
  const char *state = entry == NULL ? "unknown" : cv_pki_entry_state(entry, (int64_t)time(NULL));
  cv_pki_index_close(&index);
  return state;
}

static void read_all(char text[TEXT_BYTES]) {
  assert_int_equal(system("find . -type f ! -name .all | sort | xargs -r tail -v -n +1 > .all"), 0);
  FILE *file = fopen(".all", "r");
  assert_non_null(file);
  text[fread(text, 1, TEXT_BYTES - 1, file)] = '\0';
  (void)fclose(file);
}

static void put(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

/* --- revoking --- */

static void test_a_new_ca_has_an_empty_list(void **state) {
  struct stat found;
  X509_CRL *list = read_list("ca/crl.pem");
  X509 *ca = read_cert("ca/ca.pem");
  assert_true(cv_crl_is_of(list, ca));
  assert_true(sk_X509_REVOKED_num(X509_CRL_get_REVOKED(list)) <= 0);
  assert_in_range(cv_crl_end_s(list), time(NULL) + 90 * DAY_S, time(NULL) + 92 * DAY_S);
  assert_int_equal(stat("ca/crl.pem", &found), 0);
  assert_int_equal(found.st_mode & 07777, 0644);
  X509_CRL_free(list);
  X509_free(ca);
}

static void test_openssl_agrees(void **state) {
  struct cv_pki_files one = issue("one", "worker/1"), two = issue("two", "worker/2");
  assert_int_equal(verify(one.cert, "one/crl.pem"), X509_V_OK);
  X509_CRL *before = read_list("ca/crl.pem");
  assert_int_equal(revoked("worker/1"), 1);
  assert_int_equal(verify(one.cert, "ca/crl.pem"), X509_V_ERR_CERT_REVOKED);
  assert_int_equal(verify(two.cert, "ca/crl.pem"), X509_V_OK);
  X509_CRL *after = read_list("ca/crl.pem");
  assert_true(number_of(after) > number_of(before));
  struct cv_serial serial = serial_in(one.cert);
  assert_string_equal(state_of(&serial), "revoked");
  X509_CRL_free(before);
  X509_CRL_free(after);
}

/* Of an identity all certificates that could be used; by its serial number a single one. */
static void test_which_ones(void **state) {
  struct cv_pki_files first = issue("one", "worker/1"), second, expired;
  assert_int_equal(issue_for("two", "worker/1", DAY_S, true, &second, NULL), CV_OK);
  assert_int_equal(issue_for("three", "worker/9", -60, false, &expired, NULL), CV_OK);
  char text[128] = "0";
  struct cv_serial serial = serial_in(first.cert);
  assert_string_equal(state_of(&serial), "superseded");
  for (const char *c = serial.hex; *c != '\0'; c++) { /* as openssl prints it: 0a:bc */
    (void)snprintf(text + strlen(text), 4, "%s%c", (c - serial.hex) % 2 == 0 ? ":" : "", *c | 0x20);
  }
  assert_int_equal(revoked(text), 1);
  assert_int_equal(verify(first.cert, "ca/crl.pem"), X509_V_ERR_CERT_REVOKED);
  assert_int_equal(verify(second.cert, "ca/crl.pem"), X509_V_OK);
  assert_int_equal(revoked("crowdveil:worker/1"), 2);
  assert_int_equal(verify(second.cert, "ca/crl.pem"), X509_V_ERR_CERT_REVOKED);
  assert_int_equal(revoked("worker/1"), 2); /* again: nothing new */
  unsigned told = 0;
  assert_int_equal(cv_pki_revoke("ca", "worker/9", count, &told, NULL), CV_ERR_NOT_FOUND);
  serial = serial_in(expired.cert);
  assert_string_equal(state_of(&serial), "expired");
  assert_int_equal(revoked(serial.hex), 1);
}

static void test_what_is_refused_changes_nothing(void **state) {
  static const struct {
    const char *what;
    enum cv_err err;
    const char *says;
  } wrong[] = {
      {"worker/2", CV_ERR_NOT_FOUND, "ca/index.tsv: no unexpired certificate of \"worker/2\""},
      {"abcdef01", CV_ERR_NOT_FOUND, "no certificate of \"abcdef01\""},
      {"king/arthur", CV_ERR_FORMAT, "unknown role"},
      {"worker/0", CV_ERR_FORMAT, "worker/ID"},
      {"", CV_ERR_FORMAT, "\"\": expected ROLE/NAME or a serial number in hex"},
      {"0000", CV_ERR_FORMAT, "expected ROLE/NAME or a serial number in hex"},
      {"worker 2", CV_ERR_FORMAT, "expected ROLE/NAME or a serial number in hex"},
      {"123456789012345678901234567890123456789012345678901234567890", CV_ERR_FORMAT, "a serial number in hex"},
  };
  static char before[TEXT_BYTES], after[TEXT_BYTES];
  (void)issue("one", "worker/1");
  read_all(before);
  for (size_t i = 0; i < CV_COUNT(wrong); i++) {
    struct cv_why why = {.text = ""};
    enum cv_err err = cv_pki_revoke("ca", wrong[i].what, count, NULL, &why);
    if (err != wrong[i].err || strstr(why.text, wrong[i].says) == NULL) {
      fail_msg("%s: %s: %s", wrong[i].what, cv_err_text(err), why.text);
    }
    read_all(after);
    assert_string_equal(before, after);
  }
}

/* A list lasts as long as the certificates that exist, so nobody is locked out by its end; never longer than its CA. */
static void test_how_long_a_list_lasts(void **state) {
  struct cv_pki_files files;
  assert_int_equal(issue_for("one", "worker/1", 400 * DAY_S, false, &files, NULL), CV_OK);
  X509_CRL *list = read_list("one/crl.pem");
  X509 *cert = read_cert(files.cert);
  assert_true(cv_crl_end_s(list) >= cv_certificate_end_s(cert));
  X509_CRL_free(list);
  X509_free(cert);
  assert_int_equal(issue_for("two", "worker/2", 9000LL * DAY_S, false, &files, NULL), CV_OK);
  X509 *ca = read_cert("ca/ca.pem");
  cert = read_cert(files.cert);
  list = read_list("two/crl.pem");
  assert_true(cv_certificate_end_s(cert) == cv_certificate_end_s(ca));
  assert_true(cv_crl_end_s(list) == cv_certificate_end_s(ca));
  X509_CRL_free(list);
  X509_free(cert);
  X509_free(ca);
}

/* --- interruptions --- */

/* Between the index and the list; or the list was lost or damaged. The next command of any kind repairs it. */
static void test_a_revocation_that_was_interrupted(void **state) {
  struct cv_pki_files one = issue("one", "worker/1");
  static const char *const harm[] = {"cp old ca/crl.pem",
                                     "rm ca/crl.pem",
                                     "echo junk > ca/crl.pem",
                                     "cp ca/ca.pem ca/crl.pem",
                                     "echo half > ca/crl.pem.new; cp old ca/crl.pem",
                                     "echo half > ca/index.tsv.new; rm ca/crl.pem"};
  assert_int_equal(system("cp ca/crl.pem old"), 0);
  (void)revoked("worker/1");
  for (size_t i = 0; i < CV_COUNT(harm); i++) {
    char out[16], identity[32];
    assert_int_equal(system(harm[i]), 0);
    if (i % 2 == 0) {
      (void)revoked("worker/1");
    } else {
      (void)snprintf(out, sizeof(out), "out%zu", i);
      (void)snprintf(identity, sizeof(identity), "requester/r%zu", i);
      (void)issue(out, identity);
    }
    assert_int_equal(verify(one.cert, "ca/crl.pem"), X509_V_ERR_CERT_REVOKED);
  }
}

static void expect_pair(const char *cert, const char *key) {
  struct cv_pki_files files;
  struct cv_pki_pair pair;
  (void)snprintf(files.cert, sizeof(files.cert), "%s", cert);
  (void)snprintf(files.key, sizeof(files.key), "%s", key);
  assert_int_equal(cv_pki_read_pair(&files, &pair, NULL), CV_OK);
  cv_pki_pair_fini(&pair);
}

static void test_renewing_in_place(void **state) {
  struct cv_pki_files files = issue("broker", "broker/main");
  struct cv_serial before = serial_in(files.cert);
  struct stat found;
  struct cv_why why;
  if (renew("broker", "broker/main", &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  struct cv_serial after = serial_in(files.cert);
  expect_pair(files.cert, files.key);
  assert_string_not_equal(before.hex, after.hex);
  assert_string_equal(state_of(&before), "superseded");
  assert_string_equal(state_of(&after), "valid");
  assert_int_equal(stat(files.key, &found), 0);
  assert_int_equal(found.st_mode & 07777, 0600);
  X509 *cert = read_cert(files.cert);
  assert_int_equal(X509_check_host(cert, "localhost", 0, 0, NULL), 1); /* the hosts stay */
  assert_int_equal(X509_check_ip_asc(cert, "10.0.0.7", 0), 1);
  assert_int_equal(X509_check_ip_asc(cert, "fd00::7", 0), 1);
  X509_free(cert);
  /* A revoked one is renewed, too: the key may have been stolen. */
  (void)revoked("broker/main");
  assert_int_equal(renew("broker", "broker/main", NULL), CV_OK);
  assert_int_equal(verify(files.cert, "broker/crl.pem"), X509_V_OK);
}

static struct cv_fingerprint fingerprint_in(const char *path) {
  struct cv_identity identity;
  X509 *cert = read_cert(path);
  assert_int_equal(cv_certificate_identity(cert, &identity, NULL), CV_OK);
  X509_free(cert);
  return cv_fingerprint_of(&identity.key);
}

/* By its key a co-broker is known to the broker and to the workers: it stays unless it may have been stolen. */
static void test_the_key_stays(void **state) {
  struct cv_pki_files files = issue("co", "cobroker/second");
  const struct cv_fingerprint before = fingerprint_in(files.cert);
  bool is_new = true;
  assert_int_equal(renew_with("co", "cobroker/second", false, &is_new, NULL), CV_OK);
  assert_false(is_new);
  expect_pair(files.cert, files.key);
  assert_string_equal(fingerprint_in(files.cert).text, before.text);
  assert_int_equal(renew_with("co", "cobroker/second", true, &is_new, NULL), CV_OK);
  assert_true(is_new);
  expect_pair(files.cert, files.key);
  const struct cv_fingerprint second = fingerprint_in(files.cert);
  assert_string_not_equal(second.text, before.text);
  (void)revoked("cobroker/second");
  assert_int_equal(renew_with("co", "cobroker/second", false, &is_new, NULL), CV_OK);
  assert_true(is_new);
  const struct cv_fingerprint third = fingerprint_in(files.cert);
  assert_string_not_equal(third.text, second.text);
  /* A key that belongs to another certificate is of no use. */
  struct cv_pki_files other = issue("other", "cobroker/third");
  (void)other;
  assert_int_equal(system("cp other/cobroker-third.key co/cobroker-second.key"), 0);
  assert_int_equal(renew_with("co", "cobroker/second", false, &is_new, NULL), CV_OK);
  assert_true(is_new);
  expect_pair(files.cert, files.key);
  assert_string_not_equal(fingerprint_in(files.cert).text, fingerprint_in(other.cert).text);
}

static void test_renewals_that_are_refused(void **state) {
  static char before[TEXT_BYTES], after[TEXT_BYTES];
  struct cv_why why;
  (void)issue("one", "worker/1");
  (void)issue("gateway", "gateway/5-9");
  assert_int_equal(system("cp one/worker-1.pem one/requester-eve.pem; cp one/worker-1.key one/requester-eve.key"), 0);
  assert_int_equal(cv_pki_make_ca("other", "test", DAY_S, NULL), CV_OK);
  const struct cv_pki_request request = {.identity = "worker/3", .valid_s = DAY_S};
  assert_int_equal(cv_pki_issue("other", "foreign", &request, NULL, NULL), CV_OK);
  read_all(before);
  assert_int_equal(renew("one", "worker/2", &why), CV_ERR_NOT_FOUND);
  assert_non_null(strstr(why.text, "one/worker-2.pem: No such file; expected the certificate to renew there"));
  assert_int_equal(renew("one", "requester/eve", &why), CV_ERR_EXISTS);
  assert_non_null(strstr(why.text, "the certificate is of worker/1; expected one of requester/eve"));
  assert_int_equal(renew("foreign", "worker/3", &why), CV_ERR_EXISTS);
  assert_non_null(strstr(why.text, "issued by another CA"));
  assert_int_equal(renew("one", "worker/0", &why), CV_ERR_FORMAT);
  read_all(after);
  assert_string_equal(before, after);
}

/* A daemon that runs as another user can read what root has renewed for it. */
static void test_the_owner_stays(void **state) {
  struct cv_pki_files files = issue("broker", "broker/main");
  const char *const paths[] = {files.cert, files.key, "broker/crl.pem"};
  if (geteuid() != 0) {
    skip();
  }
  for (size_t i = 0; i < CV_COUNT(paths); i++) {
    assert_int_equal(chown(paths[i], 4711, 4712), 0);
  }
  (void)issue("other", "worker/1");
  (void)revoked("worker/1");
  assert_int_equal(renew("broker", "broker/main", NULL), CV_OK);
  for (size_t i = 0; i < CV_COUNT(paths); i++) {
    struct stat found;
    assert_int_equal(stat(paths[i], &found), 0);
    assert_int_equal(found.st_uid, 4711);
    assert_int_equal(found.st_gid, 4712);
  }
}

static void test_hosts_are_required(void **state) {
  const struct cv_pki_request request = {.identity = "broker/main", .valid_s = DAY_S};
  struct cv_why why;
  assert_int_equal(cv_pki_issue("ca", "out", &request, NULL, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "broker/main: no host; expected each host name or IP address that others dial");
  assert_int_equal(access("out", F_OK), -1);
}

/* --- by make --- */

static enum cv_pki_done make(const char *word, bool renew, char *text) {
  const struct cv_pki_make make = {
      .ca_folder = "ca", .ca_name = "test", .ca_valid_s = 9 * DAY_S, .valid_s = DAY_S, .renew = renew};
  struct cv_pki_party *party;
  struct cv_why why = {.text = ""};
  assert_int_equal(cv_pki_parties_parse(&word, 1, "ca", &party, &why), CV_OK);
  enum cv_err err = cv_pki_make(&make, party, 1, &why);
  enum cv_pki_done done = party->done;
  assert_true((err == CV_OK) == (done != CV_PKI_NOTHING));
  cv_pki_parties_free(party, 1);
  if (text != NULL) {
    (void)snprintf(text, sizeof(why.text), "%s", why.text);
  }
  return done;
}

static void test_make_renews_no_revoked_one(void **state) {
  char text[480];
  assert_int_equal(make("worker/1=one", false, NULL), CV_PKI_MADE);
  struct cv_serial before = serial_in("one/cert.pem");
  (void)revoked("worker/1");
  assert_int_equal(make("worker/1=one", false, NULL), CV_PKI_REVOKED);
  struct cv_serial after = serial_in("one/cert.pem");
  assert_string_equal(before.hex, after.hex);
  assert_int_equal(verify("one/cert.pem", "one/crl.pem"), X509_V_ERR_CERT_REVOKED); /* the list was copied */
  assert_int_equal(make("worker/1=elsewhere", false, text), CV_PKI_NOTHING);
  assert_non_null(strstr(text, "worker/1: its certificate "));
  assert_non_null(strstr(text, "expected --renew to make another"));
  assert_int_equal(access("elsewhere", F_OK), -1);
  assert_int_equal(make("worker/1=one", true, NULL), CV_PKI_RENEWED);
  assert_int_equal(verify("one/cert.pem", "one/crl.pem"), X509_V_OK);
}

static void test_no_second_certificate(void **state) {
  char text[480];
  struct cv_why why;
  (void)issue("one", "requester/alice");
  assert_int_equal(issue_for("two", "requester/alice", DAY_S, false, NULL, &why), CV_ERR_EXISTS);
  struct cv_serial serial = serial_in("one/requester-alice.pem");
  assert_non_null(strstr(why.text, serial.hex));
  assert_non_null(strstr(why.text, "requester/alice: has a certificate already"));
  assert_non_null(strstr(why.text, "expected --renew to make another"));
  assert_int_equal(access("two", F_OK), -1);
  assert_int_equal(make("requester/alice=two", false, text), CV_PKI_NOTHING);
  assert_non_null(strstr(text, serial.hex));
  assert_int_equal(make("requester/alice=two", true, NULL), CV_PKI_MADE);
}

/* While a CA is replaced a party has the lists of both, and only that of the CA at hand is replaced. */
static void test_the_list_of_another_ca_stays(void **state) {
  assert_int_equal(make("worker/1=one", false, NULL), CV_PKI_MADE);
  assert_int_equal(cv_pki_make_ca("other", "test", DAY_S, NULL), CV_OK);
  assert_int_equal(system("cat other/ca.pem >> one/ca.pem; cat other/crl.pem >> one/crl.pem"), 0);
  assert_int_equal(make("worker/2=two", false, NULL), CV_PKI_MADE);
  (void)revoked("worker/2");
  assert_int_equal(make("worker/1=one", false, NULL), CV_PKI_THERE);
  struct cv_crls crls;
  struct cv_why why;
  STACK_OF(X509) *cas = sk_X509_new_null();
  X509 *ours = read_cert("ca/ca.pem"), *theirs = read_cert("other/ca.pem"), *gone = read_cert("two/cert.pem");
  assert_true(sk_X509_push(cas, ours) && sk_X509_push(cas, theirs));
  if (cv_crls_load("one/crl.pem", cas, (int64_t)time(NULL), &crls, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_int_equal(cv_crls_judge(&crls, gone, (int64_t)time(NULL)), CV_CRL_REVOKED);
  cv_crls_fini(&crls);
  X509_free(gone);
  sk_X509_pop_free(cas, X509_free);
  put("one/crl.pem", "junk\n");
  assert_int_equal(make("worker/1=one", false, NULL), CV_PKI_THERE);
  X509_CRL *repaired = read_list("one/crl.pem");
  X509_CRL_free(repaired);
}

/* --- the index --- */

/* As a program before 0.3.0 wrote it. */
static void test_an_index_of_three_fields_is_refused_with_advice(void **state) {
  static const char index[] = "AB12\tcrowdveil:worker/3\t1\nCD34\tcrowdveil:broker/b\t9999999999\n";
  char found[sizeof(index)] = "";
  struct cv_why why = {.text = ""};
  put("ca/index.tsv", index);
  assert_int_equal(cv_pki_revoke("ca", "cd34", count, NULL, &why), CV_ERR_VERSION);
  assert_string_equal(why.text,
                      "ca/index.tsv: an index of a Crowdveil before 0.3.0, whose files are not read; make a "
                      "new CA in another folder: crowdveil pki make");
  FILE *file = fopen("ca/index.tsv", "re");
  assert_non_null(file);
  assert_int_equal(fread(found, 1, sizeof(found), file), sizeof(index) - 1);
  assert_int_equal(fclose(file), 0);
  assert_string_equal(found, index);
}

static void test_damaged_lines_are_named(void **state) {
  static const char *const bad[] = {"AB12\tcrowdveil:worker/3\n",
                                    "AB12\tcrowdveil:worker/3\t1\t2\t3\n",
                                    "AB12\tcrowdveil:worker/3\t1\t2\t3\t4\t5\n",
                                    "AB12\tcrowdveil:worker/3\t1\t2\tx\t4\n",
                                    "AG12\tcrowdveil:worker/3\t1\t2\t3\t4\n",
                                    "AB12\tcrowdveil:worker/3\t1\t2\t3\t4", /* cut */
                                    "\n"};
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    char text[128];
    struct cv_why why = {.text = ""};
    (void)snprintf(text, sizeof(text), "CD34\tcrowdveil:broker/b\t9\t-\t-\t-\n%s", bad[i]);
    put("ca/index.tsv", text);
    assert_int_equal(cv_pki_revoke("ca", "cd34", count, NULL, &why), CV_ERR_DAMAGED);
    assert_non_null(strstr(why.text, "ca/index.tsv:2: expected SERIAL, IDENTITY, SECONDS"));
  }
}

/* All at once: nothing is lost, whoever is first. */
static void test_many_at_once(void **state) {
  pid_t pid[PROCESSES];
  for (size_t i = 0; i < CV_COUNT(pid); i++) {
    char out[16], identity[32];
    (void)snprintf(out, sizeof(out), "out%zu", i);
    (void)snprintf(identity, sizeof(identity), "worker/%zu", i + 1);
    (void)issue(out, identity);
  }
  for (size_t i = 0; i < CV_COUNT(pid); i++) {
    pid[i] = fork();
    assert_true(pid[i] >= 0);
    if (pid[i] == 0) {
      char out[16], identity[32];
      unsigned told = 0;
      (void)snprintf(out, sizeof(out), "out%zu", i);
      (void)snprintf(identity, sizeof(identity), "worker/%zu", i + 1);
      _exit((i % 2 == 0 ? renew(out, identity, NULL) : cv_pki_revoke("ca", identity, count, &told, NULL)) != CV_OK);
    }
  }
  for (size_t i = 0; i < CV_COUNT(pid); i++) {
    int status;
    assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
    assert_int_equal(status, 0);
  }
  for (size_t i = 0; i < CV_COUNT(pid); i++) {
    char path[32];
    (void)snprintf(path, sizeof(path), "out%zu/worker-%zu.pem", i, i + 1);
    assert_int_equal(verify(path, "ca/crl.pem"), i % 2 == 0 ? X509_V_OK : X509_V_ERR_CERT_REVOKED);
  }
  struct cv_pki_index index;
  assert_int_equal(cv_pki_index_read("ca/index.tsv", &index, NULL), CV_OK);
  assert_int_equal(index.count, PROCESSES + PROCESSES / 2);
  cv_pki_index_close(&index);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_new_ca_has_an_empty_list, setup, teardown),
      cmocka_unit_test_setup_teardown(test_openssl_agrees, setup, teardown),
      cmocka_unit_test_setup_teardown(test_which_ones, setup, teardown),
      cmocka_unit_test_setup_teardown(test_what_is_refused_changes_nothing, setup, teardown),
      cmocka_unit_test_setup_teardown(test_how_long_a_list_lasts, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_revocation_that_was_interrupted, setup, teardown),
      cmocka_unit_test_setup_teardown(test_renewing_in_place, setup, teardown),
      cmocka_unit_test_setup_teardown(test_the_key_stays, setup, teardown),
      cmocka_unit_test_setup_teardown(test_renewals_that_are_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(test_the_owner_stays, setup, teardown),
      cmocka_unit_test_setup_teardown(test_hosts_are_required, setup, teardown),
      cmocka_unit_test_setup_teardown(test_make_renews_no_revoked_one, setup, teardown),
      cmocka_unit_test_setup_teardown(test_no_second_certificate, setup, teardown),
      cmocka_unit_test_setup_teardown(test_the_list_of_another_ca_stays, setup, teardown),
      cmocka_unit_test_setup_teardown(test_an_index_of_three_fields_is_refused_with_advice, setup, teardown),
      cmocka_unit_test_setup_teardown(test_damaged_lines_are_named, setup, teardown),
      cmocka_unit_test_setup_teardown(test_many_at_once, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
