/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/certificate.h"

#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "common/net/serial.h"

/* Zeros if the key has no DER form: then it is nobody's fingerprint. */
static struct cv_digest fingerprint(const X509 *cert) {
  struct cv_digest digest = {{0}};
  unsigned char *der = NULL;
  int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der);
  if (n <= 0 || EVP_Digest(der, (size_t)n, digest.bytes, NULL, EVP_sha256(), NULL) != 1) {
    digest = (struct cv_digest){{0}};
  }
  OPENSSL_free(der);
  return digest;
}

enum cv_err cv_certificate_identity(X509 *cert, struct cv_identity *ret, struct cv_why *why) {
  GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
  const char *found = NULL;
  unsigned count = 0;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) {
      continue;
    }
    const char *uri = (const char *)ASN1_STRING_get0_data(name->d.uniformResourceIdentifier);
    size_t n = (size_t)ASN1_STRING_length(name->d.uniformResourceIdentifier);
    if (n >= 10 && memcmp(uri, "crowdveil:", 10) == 0) {
      /* A name with a zero byte would be cut by C functions to another party's name: it becomes one that is refused. */
      found = memchr(uri, '\0', n) == NULL ? uri : "crowdveil:?";
      count++;
    }
  }
  enum cv_err err;
  /* Exactly one: with two, each side could read another role from the same certificate. */
  if (count == 1) {
    err = cv_identity_parse(found, ret, why);
  } else {
    err = cv_fail(why, CV_ERR_DENIED, "certificate has %s, expected one URI crowdveil:ROLE/NAME",
                  count == 0 ? "no identity" : "more than one identity");
  }
  GENERAL_NAMES_free(names);
  struct cv_serial serial;
  if (err == CV_OK && cv_serial_of(cert, &serial)) {
    memcpy(ret->serial, serial.hex, sizeof(ret->serial));
  }
  if (err == CV_OK) {
    ret->key = fingerprint(cert);
    ret->until_ms = cv_certificate_end_s(cert) * 1000;
  }
  return err;
}

struct cv_date cv_certificate_date(int64_t at_s) {
  struct cv_date date = {.text = "an unknown time"};
  time_t seconds = (time_t)at_s;
  struct tm tm;
  if (at_s != 0 && gmtime_r(&seconds, &tm) != NULL) {
    (void)strftime(date.text, sizeof(date.text), "%Y-%m-%d %H:%M UTC", &tm);
  }
  return date;
}

int64_t cv_certificate_time_s(const ASN1_TIME *at) {
  struct tm tm;
  return ASN1_TIME_to_tm(at, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

int64_t cv_certificate_end_s(const X509 *cert) {
  /* An end that cannot be read counts as long past. */
  return cv_certificate_time_s(X509_get0_notAfter(cert));
}
