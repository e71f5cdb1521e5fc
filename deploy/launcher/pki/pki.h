/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificates of a deployment: one CA in a folder of its own (ca.pem, ca.key, index.tsv) and, for each party, a
 * certificate and a key (ROLE-NAME.pem, ROLE-NAME.key; worker-17.pem, gateway-1-500.pem). ECDSA P-256 throughout.
 *
 * Keys are created with mode 0600, certificates with 0644, folders with 0700. No file is ever overwritten. A call that
 * fails leaves no file behind and says why in one line.
 */
#ifndef CV_DEPLOY_PKI_H
#define CV_DEPLOY_PKI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Paths of what was made. */
struct cv_pki_files {
  char cert[4096];
  char key[4096];
};

/*
 * Makes a CA in `folder`, which may exist but must not hold one yet (CV_ERR_EXISTS); its parent must exist. `name` is
 * what the certificate shows. `valid_s` seconds from now; negative: expired that long ago, for tests.
 */
CV_MUST_USE enum cv_err cv_pki_make_ca(const char *folder, const char *name, int64_t valid_s, struct cv_why *why);

struct cv_pki_request {
  const char *identity;     /* "crowdveil:worker/17" or "worker/17" */
  const char *const *hosts; /* DNS names and IP addresses of a party that others dial */
  size_t hosts_n;
  int64_t valid_s; /* as above */
  bool renew;      /* permits an identity that has a certificate already; it may not overlap any other even so */
};

/*
 * Issues a certificate into `folder` (made if missing), and puts the CA's beside it if there is none. Worker ids that
 * another certificate of this CA vouches for and that has not expired are refused (CV_ERR_EXISTS), as are files that
 * are there. `ret` may be NULL.
 */
CV_MUST_USE enum cv_err cv_pki_issue(const char *ca_folder, const char *folder, const struct cv_pki_request *request,
                                     struct cv_pki_files *ret, struct cv_why *why);

#endif
