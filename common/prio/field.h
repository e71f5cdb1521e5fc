/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Field64 of draft-irtf-cfrg-vdaf: integers modulo the prime p = 2^64 - 2^32 + 1.
 *
 * An element is a uint64_t below p; all arguments and results are. Every function takes the same time for all
 * elements: no branch and no index depends on one.
 */
#ifndef CV_PRIO_FIELD_H
#define CV_PRIO_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define CV_FIELD_P           UINT64_C(0xffffffff00000001)
#define CV_FIELD_BYTES       8
#define CV_FIELD_ROOT_BITS   32                 /* the multiplicative group has 2^32-th roots of unity */
#define CV_FIELD_INTEGER_END (INT64_C(1) << 62) /* see cv_field_lift() */

typedef __uint128_t cv_field_product; /* of two elements, or any integer of 128 bits */

/* All ones if `condition` is 1, zero if it is 0, in a way that the compiler does not turn into a branch. */
static inline uint64_t cv_field_mask(uint64_t condition) {
  __asm__("" : "+r"(condition));
  return -condition;
}

static inline uint64_t cv_field_sub(uint64_t a, uint64_t b) {
  return a - b + (CV_FIELD_P & cv_field_mask(a < b));
}

static inline uint64_t cv_field_add(uint64_t a, uint64_t b) {
  return cv_field_sub(a, CV_FIELD_P - b); /* p - 0 = p is no element, but a - p + p is a */
}

static inline uint64_t cv_field_neg(uint64_t a) {
  return cv_field_sub(0, a);
}

/* The element that is congruent to x. */
static inline uint64_t cv_field_reduce(cv_field_product x) {
  const uint64_t fold = UINT64_C(0xffffffff); /* 2^64 = fold and 2^96 = -1 modulo p */
  uint64_t low = (uint64_t)x, high = (uint64_t)(x >> 64);
  uint64_t top = high >> 32, middle = (high & fold) * fold;
  uint64_t sum = low - top - (fold & cv_field_mask(low < top));
  uint64_t all = sum + middle;
  all += fold & cv_field_mask(all < sum);
  return all - (CV_FIELD_P & cv_field_mask(all >= CV_FIELD_P));
}

static inline uint64_t cv_field_mul(uint64_t a, uint64_t b) {
  return cv_field_reduce((cv_field_product)a * b);
}

/* a to the power of e. The time depends on e, which must be public. */
uint64_t cv_field_pow(uint64_t a, uint64_t e);
/* 1/a; 0 for 0. */
uint64_t cv_field_inv(uint64_t a);

/* The principal 2^bits-th root of unity, 7^(2^32 - 1) to the power of 2^(32 - bits); bits <= CV_FIELD_ROOT_BITS. */
uint64_t cv_field_root(unsigned bits);

/* The element of an integer. */
uint64_t cv_field_of_int(int64_t x);
/* The integer of (-p/2, p/2) that is congruent to a. False, with *ret unchanged, if its magnitude is
 * CV_FIELD_INTEGER_END or more. Whether it is, must be public. */
CV_MUST_USE bool cv_field_lift(uint64_t a, int64_t *ret);

/* True if all n numbers are elements: below p. Whether they are, must be public. */
CV_MUST_USE bool cv_field_holds(const uint64_t *number, size_t n);

/* Elements as the draft has them on the wire: 8 bytes each, little-endian. */
void cv_field_encode(const uint64_t *element, size_t n, uint8_t *ret);
/* From 8 n bytes. False, with *ret unchanged, if one is p or more; whether one is, must be public. */
CV_MUST_USE bool cv_field_decode(const uint8_t *bytes, size_t n, uint64_t *ret);

#endif
