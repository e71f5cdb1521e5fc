/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to pki: makes certificates in memory. */
#ifndef CV_DEPLOY_PKI_X509_H
#define CV_DEPLOY_PKI_X509_H

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdint.h>

#include "common/base/err.h"

/* Certificates and CRLs are valid from this many seconds ago, so that a slow clock accepts a new one. */
enum { CV_PKI_SKEW_S = 300 };

struct cv_pki_pair {
  X509 *cert;
  EVP_PKEY *key;
};

void cv_pki_pair_fini(struct cv_pki_pair *pair);

struct cv_pki_plan {
  const char *name;       /* common name */
  const char *alt_names;  /* as from cv_pki_alt_names(); NULL for a CA */
  int64_t now, not_after; /* seconds since 1970 */
  EVP_PKEY *key;          /* the pair gets a reference to it; NULL: a new key */
};

/* Makes a certificate and, unless there is one, its key; signed by `ca`, or self-signed if `ca` is NULL. The caller
 * frees the pair. */
CV_MUST_USE enum cv_err cv_pki_pair_make(const struct cv_pki_plan *plan, const struct cv_pki_pair *ca,
                                         struct cv_pki_pair *ret, struct cv_why *why);

#endif
