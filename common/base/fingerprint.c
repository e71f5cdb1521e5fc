/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/fingerprint.h"

#include <string.h>

static const char DIGITS[] = "0123456789abcdef";

struct cv_fingerprint cv_fingerprint_of(const struct cv_digest *key) {
  struct cv_fingerprint ret;
  for (size_t i = 0; i < CV_FINGERPRINT_DIGITS; i++) {
    ret.text[i] = DIGITS[key->bytes[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
  }
  ret.text[CV_FINGERPRINT_DIGITS] = '\0';
  return ret;
}

static int digit_of(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

bool cv_fingerprint_read(const char *text, struct cv_digest *ret) {
  struct cv_digest key = {{0}};
  uint8_t any = 0;
  for (size_t i = 0; i < CV_FINGERPRINT_DIGITS; i++) {
    int digit = digit_of(text[i]); /* the terminator is no digit */
    if (digit < 0) {
      return false;
    }
    key.bytes[i / 2] = (uint8_t)(key.bytes[i / 2] << 4 | digit);
    any |= (uint8_t)digit;
  }
  if (any == 0) {
    return false;
  }
  *ret = key;
  return true;
}
