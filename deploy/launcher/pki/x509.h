/* SPDX-License-Identifier: Apache-2.0 */
/* Inside pki: making certificates in memory. */
#ifndef CV_DEPLOY_PKI_X509_H
#define CV_DEPLOY_PKI_X509_H

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_PKI_SERIAL_HEX = 44 };

struct cv_pki_pair {
  X509 *cert;
  EVP_PKEY *key;
};

void cv_pki_pair_fini(struct cv_pki_pair *pair);

struct cv_pki_plan {
  const char *name;       /* common name */
  const char *alt_names;  /* in OpenSSL's notation; NULL for a CA */
  int64_t now, not_after; /* seconds since 1970 */
};

/* A fresh key and a certificate for it, signed by `ca`, or by itself if that is NULL. */
CV_MUST_USE enum cv_err cv_pki_pair_make(const struct cv_pki_plan *plan, const struct cv_pki_pair *ca,
                                         struct cv_pki_pair *ret, struct cv_why *why);
/* Upper-case hex. */
CV_MUST_USE enum cv_err cv_pki_serial(const X509 *cert, char ret[CV_PKI_SERIAL_HEX], struct cv_why *why);

#endif
