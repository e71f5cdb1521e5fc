/* SPDX-License-Identifier: Apache-2.0 */
/* A fingerprint of a data set (FNV-1a, not cryptographic): equal for equal ones, else different with overwhelming
 * probability. */
#ifndef CV_QUALITY_PRINT_H
#define CV_QUALITY_PRINT_H

#include <stddef.h>
#include <stdint.h>

#define CV_PRINT_EMPTY UINT64_C(0xcbf29ce484222325)

static inline uint64_t cv_print_byte(uint64_t print, uint8_t byte) {
  return (print ^ byte) * UINT64_C(0x100000001b3);
}

static inline uint64_t cv_print_number(uint64_t print, uint64_t number) {
  for (int i = 0; i < 8; i++) {
    print = cv_print_byte(print, (uint8_t)(number >> (8 * i)));
  }
  return print;
}

/* With its end, so that two texts in a row are told from one. */
static inline uint64_t cv_print_text(uint64_t print, const char *text) {
  do {
    print = cv_print_byte(print, (uint8_t)*text);
  } while (*text++ != '\0');
  return print;
}

#endif
