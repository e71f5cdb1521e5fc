/* SPDX-License-Identifier: Apache-2.0 */
/* Reads identity and expiry from an X.509 certificate. Verifies nothing. */
#ifndef CV_NET_CERTIFICATE_H
#define CV_NET_CERTIFICATE_H

#include <openssl/x509.h>
#include <stdint.h>

#include "common/net/identity.h"

/*
 * Reads the one crowdveil: URI among the subject alternative names, and the serial number. CV_ERR_DENIED if there is
 * none or more than one URI, CV_ERR_FORMAT if it is not a valid identity.
 */
CV_MUST_USE enum cv_err cv_certificate_identity(X509 *cert, struct cv_identity *ret, struct cv_why *why);
/* The notAfter time in seconds since 1970; 0 if it cannot be read. */
int64_t cv_certificate_end_s(const X509 *cert);

#endif
