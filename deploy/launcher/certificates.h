/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a party's certificate, its key, its CA and its lists of revoked certificates: dates, identity, and whether
 * they belong together.
 */
#ifndef CV_LAUNCHER_CERTIFICATES_H
#define CV_LAUNCHER_CERTIFICATES_H

#include "common/net/identity.h"
#include "deploy/launcher/findings.h"

struct cv_certificates {
  const char *ca, *cert, *key;
  const char *denied, *crl; /* or NULL */
  unsigned roles;           /* roles that the party may have: 1u << enum cv_role */
};

/*
 * Adds the findings about `files`. `now` is in seconds since 1970. *ret_identity is that of the certificate; zeros if
 * the files are not valid.
 */
void cv_certificates_examine(const struct cv_certificates *files, int64_t now, struct cv_findings *findings,
                             struct cv_identity *ret_identity);

#endif
