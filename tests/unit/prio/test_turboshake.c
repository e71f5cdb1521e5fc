/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/err.h"
#include "common/prio/field.h"
#include "common/prio/turboshake.h"
#include "common/prio/xof.h"

enum { SHORT = 32, LONG = 10032 };

/* The pattern of RFC 9861: 00 01 .. fa, again and again. */
static uint8_t *pattern(size_t n) {
  uint8_t *bytes = malloc(n + 1);
  assert_non_null(bytes);
  for (size_t i = 0; i < n; i++) {
    bytes[i] = (uint8_t)(i % 0xfb);
  }
  return bytes;
}

static void hash(const uint8_t *message, size_t n, uint8_t domain, uint8_t *ret, size_t ret_n) {
  struct cv_turboshake state;
  cv_turboshake_init(&state);
  cv_turboshake_absorb(&state, message, n);
  cv_turboshake_finish(&state, domain);
  cv_turboshake_squeeze(&state, ret, ret_n);
}

static void check(const char *expected, const uint8_t *bytes) {
  char text[2 * SHORT + 1];
  for (int i = 0; i < SHORT; i++) {
    (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
  }
  assert_string_equal(text, expected);
}

/* Test vectors of RFC 9861, section 5. */
static void test_rfc(void **state) {
  static const struct {
    size_t n;
    const char *expected;
  } patterns[] = {
      {0, "1e415f1c5983aff2169217277d17bb538cd945a397ddec541f1ce41af2c1b74c"},
      {1, "55cedd6f60af7bb29a4042ae832ef3f58db7299f893ebb9247247d856958daa9"},
      {17, "9c97d036a3bac819db70ede0ca554ec6e4c2a1a4ffbfd9ec269ca6a111161233"},
      {17 * 17, "96c77c279e0126f7fc07c9b07f5cdae1e0be60bdbe10620040e75d7223a624d2"},
      {17 * 17 * 17, "d4976eb56bcf118520582b709f73e1d6853e001fdaf80e1b13e0d0599d5fb372"},
  };
  uint8_t out[LONG];
  for (size_t i = 0; i < CV_COUNT(patterns); i++) {
    uint8_t *message = pattern(patterns[i].n);
    hash(message, patterns[i].n, 0x1f, out, SHORT);
    check(patterns[i].expected, out);
    free(message);
  }
  hash(NULL, 0, 0x1f, out, LONG);
  check("a3b9b0385900ce761f22aed548e754da10a5242d62e8c658e3f3a923a7555607", out + LONG - SHORT);
}

/* However message and output are cut, the bytes are the same. */
static void test_pieces(void **state) {
  enum { MESSAGE = 700, OUTPUT = 700 };
  static const size_t steps[] = {1, 7, 8, 41, 167, 168, 169, 336, 500};
  uint8_t *message = pattern(MESSAGE), whole[OUTPUT], pieces[OUTPUT];
  hash(message, MESSAGE, 1, whole, OUTPUT);
  for (size_t i = 0; i < CV_COUNT(steps); i++) {
    struct cv_turboshake shake;
    cv_turboshake_init(&shake);
    for (size_t at = 0; at < MESSAGE; at += steps[i]) {
      cv_turboshake_absorb(&shake, message + at, at + steps[i] < MESSAGE ? steps[i] : MESSAGE - at);
    }
    cv_turboshake_finish(&shake, 1);
    for (size_t at = 0; at < OUTPUT; at += steps[i]) {
      cv_turboshake_squeeze(&shake, pieces + at, at + steps[i] < OUTPUT ? steps[i] : OUTPUT - at);
    }
    assert_memory_equal(pieces, whole, OUTPUT);
  }
  free(message);
}

/* Elements are the words of the output, also when asked for one by one. */
static void test_elements(void **state) {
  enum { ELEMENTS = 64 };
  uint64_t together[ELEMENTS], alone[ELEMENTS];
  uint8_t bytes[8 * ELEMENTS], encoded[8 * ELEMENTS];
  struct cv_xof xof[3];
  for (size_t i = 0; i < CV_COUNT(xof); i++) {
    cv_xof_init(&xof[i], (const uint8_t *)"seed", 4, (const uint8_t *)"ta", 2, (const uint8_t *)"g", i == 2 ? 0 : 1,
                (const uint8_t *)"binder", 6);
  }
  cv_xof_bytes(&xof[0], bytes, sizeof(bytes));
  cv_xof_elements(&xof[1], together, ELEMENTS);
  cv_field_encode(together, ELEMENTS, encoded);
  assert_memory_equal(encoded, bytes, sizeof(bytes)); /* a word of p or above has probability 2^-26 here */
  cv_xof_elements(&xof[2], alone, ELEMENTS);
  assert_memory_not_equal(alone, together, sizeof(alone)); /* of another tag */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rfc),
      cmocka_unit_test(test_pieces),
      cmocka_unit_test(test_elements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
