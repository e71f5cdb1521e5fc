/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificates of a deployment: one CA in a folder of its own (ca.pem, ca.key, index.tsv) and, for each party, a
 * certificate and a key (ROLE-NAME.pem, ROLE-NAME.key; worker-17.pem, gateway-1-500.pem). ECDSA P-256 throughout.
 *
 * Keys have mode 0600, certificates 0644, folders 0700. No function here overwrites a file. A call that fails leaves no
 * new file and gives the reason in one line.
 */
#ifndef CV_DEPLOY_PKI_H
#define CV_DEPLOY_PKI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Paths of a certificate and its key. */
struct cv_pki_files {
  char cert[4096];
  char key[4096];
};

/*
 * Makes a CA in `folder`, which may exist without a CA (else CV_ERR_EXISTS); its parent must exist. `name` is the
 * common name of the certificate. `valid_s` is its validity from now, in seconds; negative, for tests: already expired.
 */
CV_MUST_USE enum cv_err cv_pki_make_ca(const char *folder, const char *name, int64_t valid_s, struct cv_why *why);

struct cv_pki_request {
  const char *identity;     /* "crowdveil:worker/17" or "worker/17" */
  const char *const *hosts; /* DNS names and IP addresses of a party that accepts connections */
  size_t hosts_n;
  int64_t valid_s; /* as above */
  bool renew;      /* permits an identity that already has a certificate; overlaps with others are still refused */
};

/*
 * Issues a certificate into `folder`, which is made if it does not exist, and copies the CA's certificate there unless
 * the folder has a ca.pem. CV_ERR_EXISTS if a file exists, or if a valid certificate of this CA has some of the worker
 * ids. `ret` may be NULL.
 */
CV_MUST_USE enum cv_err cv_pki_issue(const char *ca_folder, const char *folder, const struct cv_pki_request *request,
                                     struct cv_pki_files *ret, struct cv_why *why);

#endif
