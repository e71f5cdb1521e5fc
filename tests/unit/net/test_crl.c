/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of revoked certificates: which ones are read, and what they say of a certificate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/net/crl.h"
#include "common/net/serial.h"
#include "deploy/launcher/pki/pki.h"
#include "tests/support/folder.h"
#include "tests/unit/net/lists.h"

enum { DAY_S = 86400 };

static struct folder folder;
static X509 *ours, *others; /* of the two CAs, which have the same name */
static X509 *one, *two, *alien;

static X509 *issue(const char *ca, const char *identity) {
  const struct cv_pki_request request = {.identity = identity, .valid_s = DAY_S};
  struct cv_pki_files files;
  assert_int_equal(cv_pki_issue(ca, "out", &request, &files, NULL), CV_OK);
  return list_cert(files.cert);
}

static int setup(void **state) {
  folder_make(&folder);
  assert_int_equal(chdir(folder.path), 0);
  assert_int_equal(cv_pki_make_ca("ca", "same", 30 * DAY_S, NULL), CV_OK);
  assert_int_equal(cv_pki_make_ca("other", "same", 30 * DAY_S, NULL), CV_OK);
  ours = list_cert("ca/ca.pem");
  others = list_cert("other/ca.pem");
  one = issue("ca", "worker/1");
  two = issue("ca", "worker/2");
  alien = issue("other", "worker/3");
  return 0;
}

static int teardown(void **state) {
  char command[128];
  X509 *all[] = {ours, others, one, two, alien};
  for (size_t i = 0; i < CV_COUNT(all); i++) {
    X509_free(all[i]);
  }
  (void)snprintf(command, sizeof(command), "rm -rf %s", folder.path);
  return chdir("/") == 0 ? system(command) : -1;
}

static enum cv_err load(X509 *const *ca, size_t cas, struct cv_crls *ret, struct cv_why *why) {
  STACK_OF(X509) *stack = sk_X509_new_null();
  for (size_t i = 0; i < cas; i++) {
    assert_true(sk_X509_push(stack, ca[i]) > 0);
  }
  enum cv_err err = cv_crls_load("list", stack, (int64_t)time(NULL), ret, why);
  sk_X509_free(stack);
  return err;
}

static void expect_refused(X509 *const *ca, size_t cas, enum cv_err err, const char *says) {
  struct cv_crls crls;
  struct cv_why why = {.text = ""};
  enum cv_err found = load(ca, cas, &crls, &why);
  if (found != err || strstr(why.text, says) == NULL || strncmp(why.text, "list: ", 6) != 0) {
    fail_msg("%s: %s; expected %s: list: %s", cv_err_text(found), why.text, cv_err_text(err), says);
  }
}

static void put(const char *text, const char *mode) {
  FILE *file = fopen("list", mode);
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static bool lists(const struct cv_crls *crls, const X509 *cert) {
  struct cv_serial serial;
  assert_true(cv_serial_of(cert, &serial));
  return cv_crls_list(crls, serial.hex);
}

static void test_what_it_says(void **state) {
  const X509 *const revoked[] = {two};
  const struct list_plan plan = {.ca = "ca", .from_s = -1, .until_s = 60, .revoked = revoked, .revoked_n = 1};
  int64_t now = (int64_t)time(NULL);
  struct cv_crls crls = {0};
  assert_int_equal(cv_crls_judge(&crls, two, now), CV_CRL_GOOD); /* without a list nothing is revoked */
  assert_false(lists(&crls, two) || cv_crls_list(&crls, ""));
  list_write(&plan, "list", false);
  assert_int_equal(load(&ours, 1, &crls, NULL), CV_OK);
  assert_int_equal(cv_crls_judge(&crls, one, now), CV_CRL_GOOD);
  assert_int_equal(cv_crls_judge(&crls, two, now), CV_CRL_REVOKED);
  assert_int_equal(cv_crls_judge(&crls, ours, now), CV_CRL_GOOD);
  assert_true(lists(&crls, two) && !lists(&crls, one));
  assert_true(cv_crls_list(&crls, "")); /* a serial number that is not known */
  int64_t end_s = cv_crls_end_s(&crls);
  assert_in_range(end_s - now, 59, 61);
  assert_int_equal(cv_crls_judge(&crls, one, end_s - 1), CV_CRL_GOOD);
  assert_int_equal(cv_crls_judge(&crls, one, end_s), CV_CRL_EXPIRED);
  assert_int_equal(cv_crls_judge(&crls, two, end_s), CV_CRL_REVOKED);
  cv_crls_fini(&crls);
}

/* While a CA is replaced there are two lists, in either order, and both count. */
static void test_two_cas(void **state) {
  const X509 *const revoked[] = {one}, *const foreign[] = {alien};
  const struct list_plan first = {.ca = "ca", .from_s = -1, .until_s = 60, .revoked = revoked, .revoked_n = 1};
  const struct list_plan second = {.ca = "other", .from_s = -1, .until_s = 30, .revoked = foreign, .revoked_n = 1};
  X509 *const both[] = {ours, others};
  int64_t now = (int64_t)time(NULL);
  struct cv_crls crls;
  for (int turn = 0; turn < 2; turn++) {
    list_write(turn == 0 ? &first : &second, "list", false);
    list_write(turn == 0 ? &second : &first, "list", true);
    assert_int_equal(load(both, 2, &crls, NULL), CV_OK);
    assert_int_equal(cv_crls_judge(&crls, one, now), CV_CRL_REVOKED);
    assert_int_equal(cv_crls_judge(&crls, two, now), CV_CRL_GOOD);
    assert_int_equal(cv_crls_judge(&crls, alien, now), CV_CRL_REVOKED);
    assert_in_range(cv_crls_end_s(&crls) - now, 29, 31); /* the first of them */
    cv_crls_fini(&crls);
    expect_refused(&ours, 1, CV_ERR_INVALID, "a CRL is not signed by our CA");
  }
  list_write(&first, "list", false);
  expect_refused(both, 2, CV_ERR_INVALID, "no CRL of one of our CAs; expected one of each CA that we trust");
  list_write(&first, "list", true);
  expect_refused(&ours, 1, CV_ERR_INVALID, "two CRLs of the same CA");
}

/* What a reload adds to the lists that were in use. */
static void test_what_is_new(void **state) {
  const X509 *const all[] = {one, two};
  const struct list_plan before = {.ca = "ca", .from_s = -1, .until_s = 60, .revoked = all, .revoked_n = 1};
  const struct list_plan after = {.ca = "ca", .from_s = -1, .until_s = 60, .revoked = all, .revoked_n = 2};
  struct cv_crls old, new, none = {0};
  list_write(&before, "list", false);
  assert_int_equal(load(&ours, 1, &old, NULL), CV_OK);
  list_write(&after, "list", false);
  assert_int_equal(load(&ours, 1, &new, NULL), CV_OK);
  assert_int_equal(cv_crls_beyond(&new, &old), 1);
  assert_int_equal(cv_crls_beyond(&old, &new), 0);
  assert_int_equal(cv_crls_beyond(&new, &none), 2);
  assert_int_equal(cv_crls_beyond(&none, &new), 0);
  cv_crls_fini(&old);
  cv_crls_fini(&new);
}

static void test_an_issuer_without_a_list(void **state) {
  const struct list_plan plan = {.ca = "ca", .from_s = -1, .until_s = 60};
  assert_int_equal(cv_pki_make_ca("third", "another name", DAY_S, NULL), CV_OK);
  X509 *stranger = issue("third", "worker/4");
  struct cv_crls crls;
  list_write(&plan, "list", false);
  assert_int_equal(load(&ours, 1, &crls, NULL), CV_OK);
  assert_int_equal(cv_crls_judge(&crls, stranger, (int64_t)time(NULL)), CV_CRL_MISSING);
  cv_crls_fini(&crls);
  X509_free(stranger);
}

static void test_lists_that_are_refused(void **state) {
  static const struct {
    struct list_plan plan;
    enum cv_err err;
    const char *says;
  } bad[] = {
      {{.ca = "other", .from_s = -9, .until_s = 60}, CV_ERR_INVALID, "a CRL is not signed by our CA"},
      {{.ca = "ca", .from_s = -9, .until_s = -1}, CV_ERR_DENIED, "expected the CA's current crl.pem"},
      {{.ca = "ca", .from_s = -9, .until_s = -1}, CV_ERR_DENIED, "the CRL expired on 2"},
      {{.ca = "ca", .from_s = 60, .until_s = 90}, CV_ERR_INVALID, "the CRL is valid from 2"},
      {{.ca = "ca", .from_s = -9}, CV_ERR_INVALID, "the CRL has no nextUpdate"},
      {{.ca = "ca", .from_s = -9, .until_s = 60, .critical = true}, CV_ERR_INVALID, "has a critical extension"},
  };
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    list_write(&bad[i].plan, "list", false);
    expect_refused(&ours, 1, bad[i].err, bad[i].says);
  }
}

static void test_damage(void **state) {
  const struct list_plan plan = {.ca = "ca", .from_s = -9, .until_s = 60};
  static const char *const junk[] = {"", "junk\n", "-----BEGIN X509 CRL-----\nMIIB\n",
                                     "-----BEGIN X509 CRL-----\nMIIB\n-----END X509 CRL-----\n"};
  expect_refused(&ours, 1, CV_ERR_NOT_FOUND, "No such file or directory");
  for (size_t i = 0; i < CV_COUNT(junk); i++) {
    put(junk[i], "w");
    expect_refused(&ours, 1, CV_ERR_FORMAT, "CRL 1 is damaged or not in PEM form");
  }
  list_write(&plan, "list", false);
  put(junk[3], "a");
  expect_refused(&ours, 1, CV_ERR_FORMAT, "CRL 2 is damaged or not in PEM form");
  /* A certificate instead of a list. */
  assert_int_equal(system("cp ca/ca.pem list"), 0);
  expect_refused(&ours, 1, CV_ERR_FORMAT, "CRL 1 is damaged or not in PEM form");
}

/* Whichever bit of the file is wrong: the signature no longer fits, or the list no longer parses. */
static void test_every_flipped_byte(void **state) {
  const X509 *const revoked[] = {one};
  const struct list_plan plan = {.ca = "ca", .from_s = -9, .until_s = 60, .revoked = revoked, .revoked_n = 1};
  X509_CRL *list = list_make(&plan);
  unsigned char *der = NULL;
  int n = i2d_X509_CRL(list, &der);
  X509_CRL_free(list);
  assert_true(n > 100);
  for (int at = 0; at < n; at++) {
    struct cv_crls crls;
    struct cv_why why = {.text = ""};
    der[at] ^= 0x10;
    FILE *file = fopen("list", "w");
    assert_non_null(file);
    assert_true(PEM_write(file, "X509 CRL", "", der, n) > 0);
    (void)fclose(file);
    der[at] ^= 0x10;
    assert_int_not_equal(load(&ours, 1, &crls, &why), CV_OK);
    assert_memory_equal(why.text, "list: ", 6);
  }
  OPENSSL_free(der);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_what_it_says, setup, teardown),
      cmocka_unit_test_setup_teardown(test_two_cas, setup, teardown),
      cmocka_unit_test_setup_teardown(test_what_is_new, setup, teardown),
      cmocka_unit_test_setup_teardown(test_an_issuer_without_a_list, setup, teardown),
      cmocka_unit_test_setup_teardown(test_lists_that_are_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
      cmocka_unit_test_setup_teardown(test_every_flipped_byte, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
