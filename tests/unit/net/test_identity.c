/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/net/identity.h"

static void test_good(void **state) {
  static const struct {
    const char *uri;
    enum cv_role role;
    const char *name;
    uint64_t first, last;
  } cases[] = {
      {"crowdveil:worker/17", CV_ROLE_WORKER, "17", 17, 17},
      {"crowdveil:worker/18446744073709551615", CV_ROLE_WORKER, "18446744073709551615", UINT64_MAX, UINT64_MAX},
      {"crowdveil:gateway/1-500000", CV_ROLE_GATEWAY, "1-500000", 1, 500000},
      {"crowdveil:gateway/7-7", CV_ROLE_GATEWAY, "7-7", 7, 7},
      {"crowdveil:broker/b-1.example_x", CV_ROLE_BROKER, "b-1.example_x", 0, 0},
      {"crowdveil:thirdparty/T", CV_ROLE_THIRDPARTY, "T", 0, 0},
      {"crowdveil:cobroker/second", CV_ROLE_COBROKER, "second", 0, 0},
      {"crowdveil:requester/alice", CV_ROLE_REQUESTER, "alice", 0, 0},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_identity identity;
    struct cv_why why = {{0}};
    assert_int_equal(cv_identity_parse(cases[i].uri, &identity, &why), CV_OK);
    assert_int_equal(identity.role, cases[i].role);
    assert_string_equal(identity.name, cases[i].name);
    assert_true(identity.first == cases[i].first && identity.last == cases[i].last);
  }
}

static void test_bad(void **state) {
  static const char *const cases[] = {
      "",
      "crowdveil:",
      "crowdveil:worker",
      "crowdveil:worker/",
      "crowdveil:worker/0",
      "crowdveil:worker/017",
      "crowdveil:worker/-1",
      "crowdveil:worker/+1",
      "crowdveil:worker/ 1",
      "crowdveil:worker/1 ",
      "crowdveil:worker/1-2",
      "crowdveil:worker/1/2",
      "crowdveil:worker/18446744073709551616",
      "crowdveil:worker/99999999999999999999999",
      "crowdveil:gateway/5",
      "crowdveil:gateway/5-",
      "crowdveil:gateway/-5",
      "crowdveil:gateway/5-4",
      "crowdveil:gateway/0-4",
      "crowdveil:gateway/1-2-3",
      "crowdveil:gateway/1-02",
      "crowdveil:broker/",
      "crowdveil:broker/a b",
      "crowdveil:broker/a/b",
      "crowdveil:broker/a\nb",
      "crowdveil:broker/\xc3\xa9",
      "crowdveil:none/x",
      "crowdveil:admin/x",
      "crowdveil:Worker/1",
      "crowdveil:workers/1",
      "crowdveil:co-broker/x",
      "Crowdveil:worker/1",
      "http://worker/1",
      "crowdveil:broker/0123456789012345678901234567890123456789012345678901234567890123",
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_identity identity = {.role = CV_ROLE_NONE, .first = 42};
    struct cv_why why = {{0}};
    if (cv_identity_parse(cases[i], &identity, &why) != CV_ERR_FORMAT) {
      fail_msg("accepted: %s", cases[i]);
    }
    assert_int_equal(identity.first, 42);
    assert_true(strlen(why.text) > 0);
    assert_null(strchr(why.text, '\n'));
  }
}

static struct cv_identity parse(const char *uri) {
  struct cv_identity identity;
  assert_int_equal(cv_identity_parse(uri, &identity, NULL), CV_OK);
  return identity;
}

static void test_ranges(void **state) {
  struct cv_identity worker = parse("crowdveil:worker/5");
  struct cv_identity gateway = parse("crowdveil:gateway/5-9");
  struct cv_identity other = parse("crowdveil:gateway/10-20");
  struct cv_identity around = parse("crowdveil:gateway/1-100");
  struct cv_identity broker = parse("crowdveil:broker/b");
  assert_true(cv_identity_vouches_for(&worker, 5));
  assert_false(cv_identity_vouches_for(&worker, 6));
  assert_true(cv_identity_vouches_for(&gateway, 5));
  assert_true(cv_identity_vouches_for(&gateway, 9));
  assert_false(cv_identity_vouches_for(&gateway, 4));
  assert_false(cv_identity_vouches_for(&gateway, 10));
  assert_false(cv_identity_vouches_for(&broker, 0));
  assert_true(cv_identity_overlaps(&worker, &gateway));
  assert_true(cv_identity_overlaps(&gateway, &worker));
  assert_false(cv_identity_overlaps(&gateway, &other));
  assert_true(cv_identity_overlaps(&around, &other));
  assert_true(cv_identity_overlaps(&other, &around));
  assert_false(cv_identity_overlaps(&broker, &broker));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_good),
      cmocka_unit_test(test_bad),
      cmocka_unit_test(test_ranges),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
