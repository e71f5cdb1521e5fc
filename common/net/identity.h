/* SPDX-License-Identifier: Apache-2.0 */
/* The identity in a certificate: a URI in the subject alternative name, `crowdveil:ROLE/NAME`. */
#ifndef CV_NET_IDENTITY_H
#define CV_NET_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/digest.h"
#include "common/base/err.h"
#include "common/base/spec.h"

enum { CV_SERIAL_HEX = 44 };

enum cv_role {
  CV_ROLE_NONE,
  CV_ROLE_REQUESTER,
  CV_ROLE_WORKER,
  CV_ROLE_GATEWAY,
  CV_ROLE_BROKER,
  CV_ROLE_THIRDPARTY,
  CV_ROLE_COBROKER,
  CV_ROLE_COUNT,
};

struct cv_identity {
  enum cv_role role;
  char name[CV_NAME_BYTES];   /* as in the certificate, after the slash */
  uint64_t first, last;       /* range of worker ids, both included; for a worker first == last */
  char serial[CV_SERIAL_HEX]; /* of its certificate: upper case hexadecimal without leading zeros; "": not known */
  struct cv_digest key;       /* fingerprint of its public key: SHA-256 of the DER form (SubjectPublicKeyInfo); zeros:
                                 not known */
  uint64_t until_ms;          /* its certificate's notAfter, wall clock since 1970; 0: not known */
};

/* "requester", ...; never NULL. */
const char *cv_role_text(enum cv_role role);
/*
 * Parses `crowdveil:worker/17`, `crowdveil:gateway/1-500000`, `crowdveil:broker/NAME`. Ids are decimal without leading
 * zeros, at least 1; FIRST <= LAST; party.h defines NAME. CV_ERR_FORMAT otherwise.
 */
CV_MUST_USE enum cv_err cv_identity_parse(const char *uri, struct cv_identity *ret, struct cv_why *why);
bool cv_identity_vouches_for(const struct cv_identity *identity, uint64_t worker);
bool cv_identity_overlaps(const struct cv_identity *a, const struct cv_identity *b);

#endif
