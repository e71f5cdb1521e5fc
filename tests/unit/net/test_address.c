/* SPDX-License-Identifier: Apache-2.0 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
// clang-format on

#include "common/admin/host.h"
#include "common/net/address.h"

static void an_address_has_a_host_and_a_port(void **state) {
  static const struct {
    const char *text, *host, *port;
  } good[] = {
      {"127.0.0.1:4711", "127.0.0.1", "4711"}, {"broker.example:0", "broker.example", "0"},
      {"[::1]:65535", "::1", "65535"},         {"[fe80::1%eth0]:1", "fe80::1%eth0", "1"},
      {"broker_1:80", "broker_1", "80"},
  };
  for (size_t i = 0; i < CV_COUNT(good); i++) {
    struct cv_address address;
    assert_int_equal(cv_address_parse(good[i].text, &address, NULL), CV_OK);
    assert_string_equal(address.host, good[i].host);
    assert_string_equal(address.port, good[i].port);
  }
}

static void what_is_no_address_is_refused(void **state) {
  static const char *const bad[] = {"",          ":80",      "host",        "host:",      "host:65536",
                                    "host:8o",   "host: 80", "::1:80",      "[]:80",      "[::1]",
                                    "[::1:80",   "a b:80",   "ho\x1bst:1",  "host\n:80",  "\xff\xfe:1",
                                    "[::1]x:80", "a/b:80",   "host:000080", "user@host:1"};
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_address address;
    struct cv_why why = {.text = ""};
    assert_int_equal(cv_address_parse(bad[i], &address, &why), CV_ERR_FORMAT);
    assert_non_null(strstr(why.text, "expected HOST:PORT or [IPV6]:PORT"));
  }
}

static void a_list_has_addresses_and_nothing_else(void **state) {
  static const struct {
    const char *text;
    size_t count;
    const char *last;
  } good[] = {{"a:1", 1, "a:1"},
              {"a:1,b.example:2", 2, "b.example:2"},
              {" a:1 ,\t[::1]:2,", 2, "[::1]:2"},
              {"a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8", CV_ADDRESSES_MAX, "a:8"}};
  static const struct {
    const char *text, *message;
  } bad[] = {
      {"", "'' is not an address; expected HOST:PORT or [IPV6]:PORT"},
      {" , ", "' , ' is not an address; expected HOST:PORT or [IPV6]:PORT"},
      {"a:1,b", "'b' is not an address; expected HOST:PORT or [IPV6]:PORT"},
      {"a:1;b:2", "'a:1;b:2' is not an address; expected HOST:PORT or [IPV6]:PORT"},
      {"a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8 a:9", "'a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8 a:9' has more than 8 addresses"}};
  struct cv_addresses addresses;
  for (size_t i = 0; i < CV_COUNT(good); i++) {
    assert_int_equal(cv_addresses_parse(good[i].text, &addresses, NULL), CV_OK);
    assert_int_equal(addresses.count, good[i].count);
    assert_string_equal(addresses.text[addresses.count - 1], good[i].last);
  }
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_why why = {.text = ""};
    assert_int_equal(cv_addresses_parse(bad[i].text, &addresses, &why), CV_ERR_FORMAT);
    assert_string_equal(why.text, bad[i].message);
  }
  char longest[400];
  memset(longest, 'h', sizeof(longest));
  memcpy(longest + sizeof(longest) - 4, ":80", 4);
  assert_int_equal(cv_addresses_parse(longest, &addresses, NULL), CV_ERR_FORMAT);
}

static void a_local_host_is_nothing_more(void **state) {
  static const char *const good[] = {"localhost", "LocalHost:1", "127.0.0.1:65535",
                                     "[::1]",     "[::1]:9000",  "localhost:"};
  static const char *const bad[] = {"",     "localhostx",    "localhost.",        "localhost:80.evil.example",
                                    "evil", "localhost:80 ", "127.0.0.1:8o",      "127.0.0.1@evil.example",
                                    "[::1", "::1",           "localhost:1234567", "xlocalhost"};
  for (size_t i = 0; i < CV_COUNT(good); i++) {
    assert_true(cv_host_is_local(good[i]));
  }
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    assert_false(cv_host_is_local(bad[i]));
  }
}

static void a_loopback_address_is_no_name_that_looks_like_one(void **state) {
  static const struct {
    const char *text;
    bool is;
  } cases[] = {
      {"127.0.0.1:80", true}, {"127.5.6.7:80", true},    {"[::1]:80", true},     {"localhost:80", true},
      {"0.0.0.0:80", false},  {"127.example:80", false}, {"[::2]:80", false},    {"localhost.evil:80", false},
      {"10.0.0.1:80", false}, {"1.127.0.0:80", false},   {"[127::1]:80", false}, {"lost.test:80", false},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_address address;
    assert_int_equal(cv_address_parse(cases[i].text, &address, NULL), CV_OK);
    assert_int_equal(cv_address_is_loopback(&address), cases[i].is);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_address_has_a_host_and_a_port),
      cmocka_unit_test(what_is_no_address_is_refused),
      cmocka_unit_test(a_list_has_addresses_and_nothing_else),
      cmocka_unit_test(a_local_host_is_nothing_more),
      cmocka_unit_test(a_loopback_address_is_no_name_that_looks_like_one),
  };
  return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
