/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian numbers in fixed layouts: what is hashed, sealed or bound must be the same bytes for every party. */
#ifndef CV_BASE_LE_H
#define CV_BASE_LE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Writes the lowest `n` bytes of `value`, 1 .. 8; returns the end. */
static inline uint8_t *cv_le_put(uint8_t *at, uint64_t value, size_t n) {
  for (size_t i = 0; i < n; i++) {
    at[i] = (uint8_t)(value >> (8 * i));
  }
  return at + n;
}

/* Writes `n` bytes as they are; returns the end. */
static inline uint8_t *cv_le_put_bytes(uint8_t *at, const void *bytes, size_t n) {
  memcpy(at, bytes, n);
  return at + n;
}

#endif
