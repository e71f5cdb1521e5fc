/* SPDX-License-Identifier: Apache-2.0 */
/* All certificates of a deployment at once, repeatedly, from any state that an earlier run left. */
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

#include "common/net/certificate.h"
#include "deploy/launcher/pki/make.h"
#include "tests/support/folder.h"

enum { DAY_S = 86400, PROCESSES = 6, TEXT_BYTES = 8192 };

static struct folder folder;
static int64_t ca_valid_s = DAY_S;

static int setup(void **state) {
  folder_make(&folder);
  return chdir(folder.path);
}

static int teardown(void **state) {
  char command[128];
  (void)snprintf(command, sizeof(command), "rm -rf %s", folder.path);
  return chdir("/") == 0 ? system(command) : -1;
}

struct told {
  enum cv_err err;
  enum cv_pki_done done[3];
  int64_t until_s[3];
  char text[480];
};

static struct told make_for(const char *const *word, size_t words, int64_t valid_s, bool renew) {
  const struct cv_pki_make make = {
      .ca_folder = "ca", .ca_name = "test", .ca_valid_s = ca_valid_s, .valid_s = valid_s, .renew = renew};
  struct cv_pki_party *party;
  struct cv_why why = {.text = ""};
  struct told told = {.err = cv_pki_parties_parse(word, words, "ca", &party, &why)};
  if (told.err == CV_OK) {
    told.err = cv_pki_make(&make, party, words, &why);
    for (size_t i = 0; i < words; i++) {
      told.done[i] = party[i].done;
      told.until_s[i] = party[i].until_s;
    }
    cv_pki_parties_free(party, words);
  }
  (void)snprintf(told.text, sizeof(told.text), "%s", why.text);
  return told;
}

static const char *const two[] = {"broker/main@localhost,127.0.0.1=broker", "gateway/1-9=gateway"};

static struct told make_two(void) {
  return make_for(two, 2, DAY_S, false);
}

static void expect_done(const struct told *told, enum cv_pki_done broker, enum cv_pki_done gateway) {
  assert_string_equal(told->text, "");
  assert_int_equal(told->err, CV_OK);
  assert_int_equal(told->done[0], broker);
  assert_int_equal(told->done[1], gateway);
}

static struct cv_pki_files files_in(const char *party) {
  struct cv_pki_files files;
  (void)snprintf(files.cert, sizeof(files.cert), "%s/cert.pem", party);
  (void)snprintf(files.key, sizeof(files.key), "%s/key.pem", party);
  return files;
}

static void expect_whole(const char *party) {
  struct cv_pki_files files = files_in(party);
  struct cv_pki_pair pair;
  char path[64];
  assert_int_equal(cv_pki_read_pair(&files, &pair, NULL), CV_OK);
  cv_pki_pair_fini(&pair);
  X509 *ca;
  (void)snprintf(path, sizeof(path), "%s/ca.pem", party);
  assert_int_equal(cv_pki_read_cert("ca/ca.pem", &ca, NULL), CV_OK);
  assert_true(cv_pki_file_has(path, ca));
  X509_free(ca);
  (void)snprintf(path, sizeof(path), "%s/key.pem.new", party);
  assert_int_equal(access(path, F_OK), -1);
}

/* The contents of every file, with names. */
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
  (void)fputs(text, file);
  (void)fclose(file);
}

static void expect_mode(const char *path, mode_t mode) {
  struct stat found;
  assert_int_equal(stat(path, &found), 0);
  assert_int_equal(found.st_mode & 07777, mode);
}

static unsigned count_lines(const char *path) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  unsigned lines = 0;
  for (int c; (c = getc(file)) != EOF;) {
    lines += c == '\n';
  }
  (void)fclose(file);
  return lines;
}

static void test_once_and_again(void **state) {
  static char before[TEXT_BYTES], after[TEXT_BYTES];
  assert_int_equal(mkdir("ca", 0755), 0); /* a mounted, empty volume */
  assert_int_equal(mkdir("broker", 0755), 0);
  struct told told = make_two();
  expect_done(&told, CV_PKI_MADE, CV_PKI_MADE);
  expect_whole("broker");
  expect_whole("gateway");
  expect_mode("broker/key.pem", 0600);
  expect_mode("broker/cert.pem", 0644);
  expect_mode("broker/ca.pem", 0644);
  read_all(before);
  told = make_two();
  expect_done(&told, CV_PKI_THERE, CV_PKI_THERE);
  assert_in_range(told.until_s[0], time(NULL) + DAY_S - 60, time(NULL) + DAY_S);
  read_all(after);
  assert_string_equal(before, after);
}

static void test_renewal(void **state) {
  struct told told = make_two();
  expect_done(&told, CV_PKI_MADE, CV_PKI_MADE);
  told = make_for(two, 1, -60, true);
  assert_int_equal(told.done[0], CV_PKI_RENEWED);
  told = make_two();
  expect_done(&told, CV_PKI_RENEWED, CV_PKI_THERE); /* it had expired */
  told = make_for(two, 2, 9 * DAY_S, true);
  expect_done(&told, CV_PKI_RENEWED, CV_PKI_RENEWED);
  assert_true(told.until_s[0] < time(NULL) + DAY_S + 60); /* as long as its CA's */
  expect_whole("broker");
  expect_mode("broker/key.pem", 0600);
}

static void read_key(const char *party, char text[TEXT_BYTES]) {
  char path[64];
  (void)snprintf(path, sizeof(path), "%s/key.pem", party);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, TEXT_BYTES - 1, file)] = '\0';
  (void)fclose(file);
}

/* A renewed certificate has the key of the old one, also after it has expired. */
static void test_the_key_stays(void **state) {
  static char before[TEXT_BYTES], after[TEXT_BYTES];
  struct told told = make_two();
  expect_done(&told, CV_PKI_MADE, CV_PKI_MADE);
  read_key("broker", before);
  told = make_for(two, 1, -60, true);
  told = make_two();
  expect_done(&told, CV_PKI_RENEWED, CV_PKI_THERE); /* it had expired */
  expect_whole("broker");
  read_key("broker", after);
  assert_string_equal(before, after);
}

/* The files left by a run that was killed, at each step of a new folder and of a renewal. */
static void test_what_an_interrupted_run_leaves(void **state) {
  assert_int_equal(mkdir("ca", 0700), 0);
  put("ca/index.tsv", "");
  put("ca/ca.key", "half a k");
  put("ca/ca.pem.new", "half a c");
  assert_int_equal(mkdir("broker", 0700), 0);
  put("broker/key.pem.new", "half a k");
  struct told told = make_two();
  expect_done(&told, CV_PKI_MADE, CV_PKI_MADE);
  expect_whole("broker");
  assert_int_equal(rename("broker/key.pem", "broker/key.pem.new"), 0);
  assert_int_equal(rename("broker/cert.pem", "broker/cert.pem.new"), 0);
  assert_int_equal(unlink("broker/ca.pem"), 0);
  assert_int_equal(rename("gateway/cert.pem", "gateway/cert.pem.new"), 0); /* the key has been renamed already */
  unsigned issued = count_lines("ca/index.tsv");
  told = make_two();
  expect_done(&told, CV_PKI_MADE, CV_PKI_MADE);
  assert_int_equal(count_lines("ca/index.tsv"), issued); /* those of the interrupted run are used */
  expect_whole("broker");
  assert_int_equal(unlink("broker/ca.pem"), 0);
  assert_int_equal(system("cp broker/key.pem gateway/key.pem; cp broker/key.pem broker/key.pem.new"), 0);
  told = make_two();
  expect_done(&told, CV_PKI_THERE, CV_PKI_RENEWED);
  expect_whole("broker");
  expect_whole("gateway");
}

static void expect_refused(const char *word, enum cv_err err, const char *says) {
  static char before[TEXT_BYTES], after[TEXT_BYTES];
  const char *const words[] = {"requester/eve=eve", word};
  read_all(before);
  struct told told = make_for(words, 2, DAY_S, true);
  if (told.err != err || strstr(told.text, says) == NULL) {
    fail_msg("%s: %s: %s; expected %s: %s", word, cv_err_text(told.err), told.text, cv_err_text(err), says);
  }
  assert_int_equal(access("eve", F_OK), -1);
  read_all(after);
  assert_string_equal(before, after);
}

static void test_wrong_words(void **state) {
  static const struct {
    const char *word;
    enum cv_err err;
    const char *says;
  } wrong[] = {
      {"broker/main", CV_ERR_FORMAT, "\"broker/main\": expected IDENTITY[@HOST[,HOST]...]=FOLDER"},
      {"broker/main=", CV_ERR_FORMAT, "expected IDENTITY"},
      {"=x", CV_ERR_FORMAT, "is not crowdveil:ROLE/NAME"},
      {"king/arthur=x", CV_ERR_FORMAT, "unknown role"},
      {"worker/0=x", CV_ERR_FORMAT, "worker/ID with ID from 1"},
      {"broker/b=x", CV_ERR_INVALID, "broker/b: no host; expected each host name or IP address that others dial"},
      {"thirdparty/b=x", CV_ERR_INVALID, "thirdparty/b: no host"},
      {"broker/b@=x", CV_ERR_FORMAT, "host '' is neither"},
      {"broker/b@a,,c=x", CV_ERR_FORMAT, "host '' is neither"},
      {"broker/b@a b=x", CV_ERR_FORMAT, "host 'a b' is neither"},
      {"broker/b@a@b=x", CV_ERR_FORMAT, "host 'a@b' is neither"},
      {"broker/b@1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1=x", CV_ERR_LIMIT, "32 hosts"},
      {"broker/b@h=no/x", CV_ERR_INVALID, "no/x: parent folder: No such file"},
      {"broker/b@h=ca/ca.pem", CV_ERR_INVALID, "not a folder; expected a folder, or a path that does not exist"},
      {"broker/b@h=nowhere", CV_ERR_INVALID, "nowhere: No such file or directory; expected a folder"},
      {"broker/b@h=./ca/", CV_ERR_INVALID, "is the folder of the CA"},
      {"broker/b@h=broker/../eve/", CV_ERR_INVALID, "is also the folder of requester/eve"},
      {"requester/eve=x", CV_ERR_INVALID, "requester/eve is given twice"},
      {"broker/other@h=broker", CV_ERR_EXISTS,
       "cert.pem: the certificate is of broker/main; expected one of broker/other"},
      {"gateway/1-8=x", CV_ERR_EXISTS, "overlaps gateway/1-9, which has a certificate already"},
      {"worker/9=x", CV_ERR_EXISTS, "overlaps gateway/1-9, which has a certificate already"},
      {"broker/b@h=junk", CV_ERR_FORMAT, "junk/cert.pem: not a certificate in PEM form"},
      {"broker/b@h=stranger", CV_ERR_EXISTS, "stranger/cert.pem: issued by another CA"},
      {"broker/x@h=trusts", CV_ERR_EXISTS, "trusts/ca.pem: not the certificate of the CA in ca"},
  };
  struct told told = make_two();
  static const char *const host[] = {"h"};
  const struct cv_pki_request request = {.identity = "broker/b", .hosts = host, .hosts_n = 1, .valid_s = DAY_S};
  assert_int_equal(told.err, CV_OK);
  assert_int_equal(cv_pki_make_ca("other", "other", DAY_S, NULL), CV_OK);
  assert_int_equal(cv_pki_issue("other", "stranger", &request, NULL, NULL), CV_OK);
  assert_int_equal(rename("stranger/broker-b.pem", "stranger/cert.pem"), 0);
  assert_int_equal(mkdir("trusts", 0700), 0);
  assert_int_equal(rename("stranger/ca.pem", "trusts/ca.pem"), 0);
  assert_int_equal(mkdir("junk", 0700), 0);
  put("junk/cert.pem", "junk\n");
  assert_int_equal(symlink("gone", "nowhere"), 0);
  for (size_t i = 0; i < CV_COUNT(wrong); i++) {
    expect_refused(wrong[i].word, wrong[i].err, wrong[i].says);
  }
}

static void test_overlaps_among_the_words(void **state) {
  const char *const words[] = {"gateway/1-4=a", "worker/4=b"};
  struct told told = make_for(words, 2, DAY_S, false);
  assert_int_equal(told.err, CV_ERR_INVALID);
  assert_string_equal(told.text, "\"worker/4=b\": worker/4 overlaps gateway/1-4; expected each worker once");
  assert_int_equal(access("ca", F_OK), -1);
}

static void test_a_ca_that_is_not_whole(void **state) {
  ca_valid_s = -60;
  struct told told = make_two();
  ca_valid_s = DAY_S;
  assert_int_equal(told.err, CV_ERR_INVALID);
  assert_int_equal(access("ca", F_OK), -1); /* no folder is left where nothing could be made */
  assert_int_equal(cv_pki_make_ca("ca", "expired", -60, NULL), CV_OK);
  told = make_two();
  assert_int_equal(told.err, CV_ERR_STATE);
  assert_non_null(strstr(told.text, "ca/ca.pem: the CA has expired"));
  assert_int_equal(unlink("ca/index.tsv"), 0);
  told = make_two();
  assert_int_equal(told.err, CV_ERR_EXISTS);
  assert_non_null(strstr(told.text, "the CA has no index.tsv"));
  put("ca/index.tsv", "AB12\tcrowdveil:worker/3\t1\t1\t-\t-\n");
  assert_int_equal(unlink("ca/ca.pem"), 0);
  told = make_two();
  assert_int_equal(told.err, CV_ERR_DAMAGED);
  assert_non_null(strstr(told.text, "ca/ca.pem: missing, but ca/index.tsv lists issued certificates"));
  assert_int_equal(access("broker", F_OK), -1);
}

/* As many identities at once as there can be, all of them new, then all renewed. */
static void run_at_once(bool renew) {
  pid_t pid[PROCESSES];
  for (size_t i = 0; i < CV_COUNT(pid); i++) {
    pid[i] = fork();
    assert_true(pid[i] >= 0);
    if (pid[i] == 0) {
      _exit(make_for(two, 2, DAY_S, renew).err == CV_OK ? 0 : 1);
    }
  }
  for (size_t i = 0; i < CV_COUNT(pid); i++) {
    int status;
    assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
    assert_int_equal(status, 0);
  }
  expect_whole("broker");
  expect_whole("gateway");
}

static void test_many_at_once(void **state) {
  run_at_once(false);
  assert_int_equal(count_lines("ca/index.tsv"), 2);
  run_at_once(true);
  assert_int_equal(count_lines("ca/index.tsv"), 2 + 2 * PROCESSES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_once_and_again, setup, teardown),
      cmocka_unit_test_setup_teardown(test_renewal, setup, teardown),
      cmocka_unit_test_setup_teardown(test_the_key_stays, setup, teardown),
      cmocka_unit_test_setup_teardown(test_what_an_interrupted_run_leaves, setup, teardown),
      cmocka_unit_test_setup_teardown(test_wrong_words, setup, teardown),
      cmocka_unit_test_setup_teardown(test_overlaps_among_the_words, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_ca_that_is_not_whole, setup, teardown),
      cmocka_unit_test_setup_teardown(test_many_at_once, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
