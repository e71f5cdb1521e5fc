/* SPDX-License-Identifier: Apache-2.0 */
/* Reads identity, key and expiry from an X.509 certificate. Verifies nothing. */
#ifndef CV_NET_CERTIFICATE_H
#define CV_NET_CERTIFICATE_H

#include <openssl/x509.h>
#include <stdint.h>

#include "common/net/identity.h"

/*
 * Reads the one crowdveil: URI among the subject alternative names, the serial number and the fingerprint of the public
 * key. CV_ERR_DENIED if there is none or more than one URI, CV_ERR_FORMAT if it is not a valid identity.
 */
CV_MUST_USE enum cv_err cv_certificate_identity(X509 *cert, struct cv_identity *ret, struct cv_why *why);
struct cv_date {
  char text[32];
};
/* A time in seconds since 1970 as "2026-11-24 08:10 UTC"; 0 is "an unknown time". */
struct cv_date cv_certificate_date(int64_t at_s);
/* A time in seconds since 1970; 0 if it cannot be read. */
int64_t cv_certificate_time_s(const ASN1_TIME *at);
/* The notAfter time in seconds since 1970; 0 if it cannot be read. */
int64_t cv_certificate_end_s(const X509 *cert);

#endif
