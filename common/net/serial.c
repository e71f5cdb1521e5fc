/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/serial.h"

#include <ctype.h>
#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>

bool cv_serial_parse(const char *text, struct cv_serial *ret) {
  struct cv_serial serial;
  size_t n = 0;
  for (; *text != '\0'; text++) {
    /* Tools print serial numbers with and without leading zeros and colons. */
    if (*text == ':' || (*text == '0' && n == 0)) {
      continue;
    }
    if (!isxdigit((unsigned char)*text) || n + 1 == sizeof(serial.hex)) {
      return false;
    }
    serial.hex[n++] = (char)toupper((unsigned char)*text);
  }
  serial.hex[n] = '\0';
  if (n > 0) {
    *ret = serial;
  }
  return n > 0;
}

bool cv_serial_of(const X509 *cert, struct cv_serial *ret) {
  BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
  char *hex = number != NULL ? BN_bn2hex(number) : NULL;
  bool ok = hex != NULL && cv_serial_parse(hex, ret);
  OPENSSL_free(hex);
  BN_free(number);
  return ok;
}
