/* SPDX-License-Identifier: Apache-2.0 */
/* Serial numbers of certificates as text. */
#ifndef CV_NET_SERIAL_H
#define CV_NET_SERIAL_H

#include <openssl/x509.h>
#include <stdbool.h>

#include "common/net/identity.h"

struct cv_serial {
  char hex[CV_SERIAL_HEX]; /* upper case, no leading zeros */
};

/* Reads a hexadecimal number, with or without leading zeros and colons. Returns false if it is not one, or too long. */
bool cv_serial_parse(const char *text, struct cv_serial *ret);
/* Returns false if memory runs out, or if the number is too long. */
bool cv_serial_of(const X509 *cert, struct cv_serial *ret);

#endif
