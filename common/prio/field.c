/* SPDX-License-Identifier: Apache-2.0 */
#include "common/prio/field.h"

#include <endian.h>
#include <string.h>

#include "common/prio/public.h"

uint64_t cv_field_pow(uint64_t a, uint64_t e) {
  uint64_t power = 1;
  for (; e > 0; e >>= 1) {
    power = (e & 1) != 0 ? cv_field_mul(power, a) : power;
    a = cv_field_mul(a, a);
  }
  return power;
}

uint64_t cv_field_inv(uint64_t a) {
  return cv_field_pow(a, CV_FIELD_P - 2);
}

uint64_t cv_field_root(unsigned bits) {
  CV_REQUIRE(bits <= CV_FIELD_ROOT_BITS);
  uint64_t root = cv_field_pow(7, UINT64_C(0xffffffff));
  for (unsigned i = bits; i < CV_FIELD_ROOT_BITS; i++) {
    root = cv_field_mul(root, root);
  }
  return root;
}

uint64_t cv_field_of_int(int64_t x) {
  return (uint64_t)x + (CV_FIELD_P & cv_field_mask((uint64_t)x >> 63));
}

bool cv_field_lift(uint64_t a, int64_t *ret) {
  const uint64_t end = CV_FIELD_INTEGER_END;
  if (cv_prio_public(a < end)) {
    *ret = (int64_t)a;
    return true;
  }
  if (cv_prio_public(a > CV_FIELD_P - end)) {
    *ret = -(int64_t)(CV_FIELD_P - a);
    return true;
  }
  return false;
}

bool cv_field_holds(const uint64_t *number, size_t n) {
  uint64_t over = 0;
  for (size_t i = 0; i < n; i++) {
    over |= number[i] >= CV_FIELD_P;
  }
  return cv_prio_public(over == 0);
}

void cv_field_encode(const uint64_t *element, size_t n, uint8_t *ret) {
  for (size_t i = 0; i < n; i++) {
    uint64_t word = htole64(element[i]);
    memcpy(ret + CV_FIELD_BYTES * i, &word, sizeof(word));
  }
}

static uint64_t element_at(const uint8_t *bytes, size_t i) {
  uint64_t word;
  memcpy(&word, bytes + CV_FIELD_BYTES * i, sizeof(word));
  return le64toh(word);
}

bool cv_field_decode(const uint8_t *bytes, size_t n, uint64_t *ret) {
  uint64_t over = 0;
  for (size_t i = 0; i < n; i++) {
    over |= element_at(bytes, i) >= CV_FIELD_P;
  }
  if (cv_prio_public(over != 0)) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    ret[i] = element_at(bytes, i);
  }
  return true;
}
