/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "common/base/err.h"
#include "common/base/rng.h"
#include "common/prio/aggregate.h"
#include "common/prio/field.h"
#include "common/prio/poly.h"

enum { RANDOM = 100000, POINTS_END = 128 };

/* Numbers at which carries change. */
static const uint64_t corners[] = {0,
                                   1,
                                   2,
                                   UINT64_C(0xfffffffe),
                                   UINT64_C(0xffffffff),
                                   UINT64_C(0x100000000),
                                   UINT64_C(0x100000001),
                                   UINT64_C(0x7fffffffffffffff),
                                   UINT64_C(0x8000000000000000),
                                   (CV_FIELD_P - 1) / 2,
                                   (CV_FIELD_P + 1) / 2,
                                   UINT64_C(0xfffffffe00000000),
                                   UINT64_C(0xfffffffeffffffff),
                                   CV_FIELD_P - 2,
                                   CV_FIELD_P - 1};

/* By the definition, with the compiler's division. */
static uint64_t modulo(cv_field_product x) {
  return (uint64_t)(x % CV_FIELD_P);
}

static void check_pair(uint64_t a, uint64_t b) {
  assert_int_equal(cv_field_add(a, b), modulo((cv_field_product)a + b));
  assert_int_equal(cv_field_sub(a, b), modulo((cv_field_product)a + CV_FIELD_P - b));
  assert_int_equal(cv_field_mul(a, b), modulo((cv_field_product)a * b));
  assert_int_equal(cv_field_neg(a), modulo(CV_FIELD_P - a));
  cv_field_product wide = (cv_field_product)a << 64 | b;
  assert_int_equal(cv_field_reduce(wide), modulo(wide));
  assert_int_equal(cv_field_reduce(~wide), modulo(~wide));
}

static void start(struct cv_rng_seeded *rng) {
  cv_rng_seeded_init(rng, 5, CV_RNG_NOISE, 0, 0);
}

static uint64_t draw(struct cv_rng_seeded *rng) {
  return cv_rng_below(&rng->rng, CV_FIELD_P);
}

static void test_operations(void **state) {
  struct cv_rng_seeded rng;
  start(&rng);
  for (size_t i = 0; i < CV_COUNT(corners); i++) {
    for (size_t j = 0; j < CV_COUNT(corners); j++) {
      check_pair(corners[i], corners[j]);
    }
  }
  for (int i = 0; i < RANDOM; i++) {
    check_pair(draw(&rng), draw(&rng));
  }
}

static void test_powers(void **state) {
  struct cv_rng_seeded rng;
  start(&rng);
  assert_int_equal(cv_field_inv(0), 0);
  for (int i = 0; i < 1000; i++) {
    uint64_t a = i < (int)CV_COUNT(corners) ? corners[i] : draw(&rng);
    if (a != 0) {
      assert_int_equal(cv_field_mul(a, cv_field_inv(a)), 1);
    }
    assert_int_equal(cv_field_pow(a, 5), cv_field_mul(a, cv_field_mul(cv_field_mul(a, a), cv_field_mul(a, a))));
  }
  assert_int_equal(cv_field_pow(3, CV_FIELD_P - 1), 1);
}

/* A principal root of order 2^bits; and they belong together. */
static void test_roots(void **state) {
  assert_int_equal(cv_field_root(0), 1);
  assert_int_equal(cv_field_root(1), CV_FIELD_P - 1);
  for (unsigned bits = 1; bits <= CV_FIELD_ROOT_BITS; bits++) {
    assert_int_equal(cv_field_pow(cv_field_root(bits), UINT64_C(1) << (bits - 1)), CV_FIELD_P - 1);
    assert_int_equal(cv_field_mul(cv_field_root(bits), cv_field_root(bits)), cv_field_root(bits - 1));
  }
  assert_int_equal(cv_field_root(CV_FIELD_ROOT_BITS), cv_field_pow(7, UINT64_C(0xffffffff)));
}

static void test_integers(void **state) {
  static const int64_t values[] = {0, 1, -1, 1 << 20, -(1 << 20), CV_FIELD_INTEGER_END - 1, -CV_FIELD_INTEGER_END + 1};
  static const int64_t far[] = {CV_FIELD_INTEGER_END, -CV_FIELD_INTEGER_END, INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < CV_COUNT(values); i++) {
    int64_t lifted = 77;
    assert_true(cv_field_lift(cv_field_of_int(values[i]), &lifted));
    assert_int_equal(lifted, values[i]);
  }
  for (size_t i = 0; i < CV_COUNT(far); i++) {
    int64_t lifted = 77;
    uint64_t element = cv_field_of_int(far[i]);
    assert_true(element < CV_FIELD_P);
    assert_int_equal(cv_field_add(element, cv_field_of_int(-(far[i] / 2))), cv_field_of_int(far[i] - far[i] / 2));
    assert_false(cv_field_lift(element, &lifted));
    assert_int_equal(lifted, 77);
  }
}

static void test_bytes(void **state) {
  const uint64_t elements[] = {0x0123456789abcdef, 0, CV_FIELD_P - 1};
  uint8_t bytes[sizeof(elements)];
  uint64_t decoded[CV_COUNT(elements)] = {7, 7, 7}, share = 7;
  cv_field_encode(elements, CV_COUNT(elements), bytes);
  assert_int_equal(bytes[0], 0xef);
  assert_int_equal(bytes[7], 0x01);
  assert_true(cv_field_decode(bytes, CV_COUNT(elements), decoded));
  assert_memory_equal(decoded, elements, sizeof(elements));
  for (uint64_t above = CV_FIELD_P; above >= CV_FIELD_P; above += UINT64_C(0x3fffffff)) { /* p .. about 2^64 */
    uint64_t wrong[] = {1, 2, above};
    decoded[0] = 7;
    cv_field_encode(wrong, CV_COUNT(wrong), bytes);
    assert_false(cv_field_decode(bytes, CV_COUNT(wrong), decoded));
    assert_int_equal(decoded[0], 7);
    assert_false(cv_prio_aggregate_decode(bytes + 16, CV_PRIO_AGGREGATE_BYTES, &share));
  }
  assert_false(cv_prio_aggregate_decode(bytes, CV_PRIO_AGGREGATE_BYTES - 1, &share));
  assert_false(cv_prio_aggregate_decode(bytes, CV_PRIO_AGGREGATE_BYTES + 1, &share));
  assert_int_equal(share, 7);
  assert_true(cv_prio_aggregate_decode(bytes, CV_PRIO_AGGREGATE_BYTES, &share));
  assert_int_equal(share, 1);
}

/* --- polynomials */

/* By its coefficients. */
static uint64_t horner(const uint64_t *coefficient, size_t n, uint64_t x) {
  uint64_t sum = 0;
  for (size_t i = n; i > 0; i--) {
    sum = cv_field_add(cv_field_mul(sum, x), coefficient[i - 1]);
  }
  return sum;
}

static void check_polynomial(struct cv_rng_seeded *rng, unsigned bits) {
  size_t n = (size_t)1 << bits;
  uint64_t coefficient[POINTS_END], value[POINTS_END], inverse[POINTS_END], double_inverse[POINTS_END];
  uint64_t root = cv_field_root(bits), half_root = cv_field_root(bits + 1), x = draw(rng);
  for (size_t i = 0; i < n; i++) {
    coefficient[i] = draw(rng);
    inverse[i] = cv_field_inv(cv_field_pow(root, i));
    double_inverse[i] = cv_field_inv(cv_field_pow(half_root, i));
  }
  for (size_t i = 0; i < n; i++) {
    value[i] = horner(coefficient, n, cv_field_pow(root, i));
  }
  uint64_t copy[POINTS_END];
  memcpy(copy, value, sizeof(copy));
  assert_int_equal(cv_poly_eval(copy, n, double_inverse, 2, x), cv_field_mul(n, horner(coefficient, n, x)));
  cv_poly_between(value, n, double_inverse, cv_field_inv(n));
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(value[i], horner(coefficient, n, cv_field_pow(half_root, 2 * i + 1)));
  }
  for (size_t i = 0; i < n; i++) {
    value[i] = horner(coefficient, n - 1, cv_field_pow(root, i));
  }
  assert_int_equal(cv_poly_last(value, n, inverse), value[n - 1]);
}

static void test_polynomials(void **state) {
  struct cv_rng_seeded rng;
  start(&rng);
  for (unsigned bits = 1; (1 << bits) <= POINTS_END; bits++) {
    for (int i = 0; i < 20; i++) {
      check_polynomial(&rng, bits);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_operations), cmocka_unit_test(test_powers), cmocka_unit_test(test_roots),
      cmocka_unit_test(test_integers),   cmocka_unit_test(test_bytes),  cmocka_unit_test(test_polynomials),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
