/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of revoked certificates (CRLs): a PEM file with one list of each CA that a party trusts. */
#ifndef CV_NET_CRL_H
#define CV_NET_CRL_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

struct cv_crl {
  X509_CRL *list;
  int64_t until_s; /* its nextUpdate, seconds since 1970: the list says nothing from then on */
};

struct cv_crls {
  struct cv_crl *crl;
  size_t count, cap;
};

enum cv_crl_verdict {
  CV_CRL_GOOD,
  CV_CRL_REVOKED,
  CV_CRL_EXPIRED, /* the list of its CA has expired, so it is not known whether it is revoked */
  CV_CRL_MISSING, /* no list of its CA, as above */
};

/*
 * Reads the lists of a file. Each must be signed by one of `cas`, be valid at `now_s`, end, and have no critical
 * extension; each of `cas` must have exactly one. Error messages begin with the path. CV_ERR_NOT_FOUND if there is no
 * file, CV_ERR_FORMAT for damaged lists, CV_ERR_DENIED for an expired one, CV_ERR_INVALID otherwise.
 */
CV_MUST_USE enum cv_err cv_crls_load(const char *path, const STACK_OF(X509) * cas, int64_t now_s, struct cv_crls *ret,
                                     struct cv_why *why);
void cv_crls_fini(struct cv_crls *crls);
/* Looks a certificate up that is signed by one of the CAs. */
enum cv_crl_verdict cv_crls_judge(const struct cv_crls *crls, const X509 *cert, int64_t now_s);
/* Whether a list has the serial number, as in an identity; of whichever CA: it is not known who has given it. */
bool cv_crls_list(const struct cv_crls *crls, const char *serial);
/* When the first list expires; INT64_MAX / 1000 if there is no list. */
int64_t cv_crls_end_s(const struct cv_crls *crls);
/* CV_ERR_STATE if a list is older than the one of the same CA in `before`: it would take revocations back. A CA's lists
 * have growing numbers; without them their dates count. Lists that do not name their CA's key are not compared. */
CV_MUST_USE enum cv_err cv_crls_follow(const struct cv_crls *crls, const struct cv_crls *before, const char *path,
                                       struct cv_why *why);
/* How many certificates `crls` has that `other` does not. */
size_t cv_crls_beyond(const struct cv_crls *crls, const struct cv_crls *other);

/* Returns the next list of an open PEM file; NULL at its end, or with *ret_damaged if it is not one. */
X509_CRL *cv_crl_read(FILE *file, bool *ret_damaged);
/* True if the CA has signed the list. */
bool cv_crl_is_of(X509_CRL *list, X509 *ca);
/* The nextUpdate time in seconds since 1970; 0 if there is none. */
int64_t cv_crl_end_s(const X509_CRL *list);

#endif
