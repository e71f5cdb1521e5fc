/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be said about a party's certificate, its key, the CA, and the clock that judges them. */
#ifndef CV_LAUNCHER_CERTIFICATES_H
#define CV_LAUNCHER_CERTIFICATES_H

#include "common/net/identity.h"
#include "deploy/launcher/findings.h"

struct cv_certificates {
  const char *ca, *cert, *key;
  unsigned roles; /* that the party may have: 1u << enum cv_role */
};

/* `now` is seconds since 1970. *ret_name gets the certificate's name ("" if it cannot be read), CV_NAME_BYTES. */
void cv_certificates_examine(const struct cv_certificates *files, int64_t now, struct cv_findings *findings,
                             char *ret_name);

#endif
