/* SPDX-License-Identifier: Apache-2.0 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
// clang-format on

#include "common/base/rng.h"
#include "common/page/jot.h"

static void assert_jotted(struct cv_buf *buf, const char *expected) {
  cv_buf_put_u8(buf, '\0');
  assert_true(cv_buf_ok(buf));
  assert_string_equal((const char *)buf->data, expected);
  cv_buf_clear(buf);
}

static void values_are_separated_by_commas(void **state) {
  struct cv_buf buf = {0};
  struct cv_jot jot = {.out = &buf};
  cv_jot_open(&jot, '{');
  cv_jot_key(&jot, "a");
  cv_jot_open(&jot, '[');
  cv_jot_whole(&jot, UINT64_MAX);
  cv_jot_bool(&jot, true);
  cv_jot_open(&jot, '{');
  cv_jot_close(&jot, '}');
  cv_jot_null(&jot);
  cv_jot_close(&jot, ']');
  cv_jot_key(&jot, "b");
  cv_jot_number(&jot, 0.1);
  cv_jot_close(&jot, '}');
  assert_jotted(&buf, "{\"a\":[18446744073709551615,true,{},null],\"b\":0.1}");
  cv_buf_fini(&buf);
}

static void a_name_cannot_leave_its_quotes(void **state) {
  struct cv_buf buf = {0};
  struct cv_jot jot = {.out = &buf};
  cv_jot_open(&jot, '[');
  cv_jot_text(&jot, "a\"b\\c</script>");
  cv_jot_text(&jot, "\xc3\xa4\n\x01\xff\xe2\x80\xa8");
  cv_jot_text(&jot, NULL);
  cv_jot_close(&jot, ']');
  cv_buf_put_u8(&buf, '\0');
  const char *text = (const char *)buf.data;
  assert_memory_equal(text, "[\"a\\\"b\\\\c</script>\",\"\xc3\xa4???", 26);
  for (const char *at = text; *at != '\0'; at++) {
    assert_true((unsigned char)*at >= 0x20);
  }
  cv_buf_fini(&buf);
}

static void a_number_reads_back_as_it_was(void **state) {
  struct cv_buf buf = {0};
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 5, 0, 0, 0);
  for (int i = 0; i < 2000; i++) {
    union {
      uint64_t bits;
      double number;
    } value = {.bits = cv_rng_u64(&rng.rng)};
    struct cv_jot jot = {.out = &buf};
    cv_jot_number(&jot, value.number);
    cv_buf_put_u8(&buf, '\0');
    if (isfinite(value.number)) {
      assert_true(strtod((const char *)buf.data, NULL) == value.number);
    } else {
      assert_string_equal((const char *)buf.data, "null");
    }
    cv_buf_clear(&buf);
  }
  cv_buf_fini(&buf);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_separated_by_commas),
      cmocka_unit_test(a_name_cannot_leave_its_quotes),
      cmocka_unit_test(a_number_reads_back_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
