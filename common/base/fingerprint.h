/* SPDX-License-Identifier: Apache-2.0 */
/* The fingerprint of a party's public key as text: the 64 lower-case hexadecimal digits of its SHA-256. */
#ifndef CV_BASE_FINGERPRINT_H
#define CV_BASE_FINGERPRINT_H

#include <stdbool.h>

#include "common/base/digest.h"

enum { CV_FINGERPRINT_DIGITS = 2 * CV_DIGEST_BYTES };

struct cv_fingerprint {
  char text[CV_FINGERPRINT_DIGITS + 1];
};

struct cv_fingerprint cv_fingerprint_of(const struct cv_digest *key);
/*
 * Reads the 64 digits, in upper or lower case, at the start of a text; the caller looks at what follows. False, and it
 * leaves *ret as it was, if they are not 64 digits, or all zero, which is nobody's fingerprint.
 */
bool cv_fingerprint_read(const char *text, struct cv_digest *ret);

#endif
