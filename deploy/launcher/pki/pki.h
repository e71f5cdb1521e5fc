/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificates of a deployment: one CA in a folder of its own (ca.pem, ca.key, index.tsv, crl.pem) and, for each
 * party, a certificate and a key (ROLE-NAME.pem, ROLE-NAME.key; worker-17.pem, gateway-1-500.pem). ECDSA P-256
 * throughout. No certificate is valid longer than its CA.
 *
 * Keys have mode 0600, certificates and lists of revoked certificates 0644, folders 0700. Files are replaced by rename,
 * under a lock of the CA, and only where a function says so. A call that fails gives the reason in one line.
 */
#ifndef CV_DEPLOY_PKI_H
#define CV_DEPLOY_PKI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_PKI_CA_DAYS = 3650, CV_PKI_LEAF_DAYS = 90 }; /* validity, unless a person chooses another one */

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
  int64_t valid_s; /* as above; at most until the CA expires */
  bool renew;      /* permits an identity that already has a certificate; overlaps with others are still refused */
  bool new_key;    /* cv_pki_renew(): makes a new key */
};

/*
 * Issues a certificate into `folder`, which is made if it does not exist, copies the CA's certificate there unless the
 * folder has a ca.pem, and the current crl.pem. CV_ERR_EXISTS if a file of the pair exists, if a valid certificate of
 * this CA has some of the worker ids, or if the identity has an unexpired one. CV_ERR_INVALID if a broker or
 * third-party has no host. A failure leaves no new file. `ret` may be NULL.
 */
CV_MUST_USE enum cv_err cv_pki_issue(const char *ca_folder, const char *folder, const struct cv_pki_request *request,
                                     struct cv_pki_files *ret, struct cv_why *why);
/*
 * Replaces the certificate of an identity in `folder`, which `cv_pki_issue` or `cv_pki_make` has made. The key stays,
 * unless `request->new_key` is set, the certificate is revoked, or the key does not belong to it. `request->renew` is
 * not used; without hosts the old ones stay. The old certificate stays valid until it expires or is revoked.
 * *ret_is_new: there is a new key. CV_ERR_NOT_FOUND if there is no certificate, CV_ERR_EXISTS if it is of another
 * identity or CA. After an interruption the folder has the old pair, the new one, or the new key beside the old
 * certificate, with the new one as FILE.new; then the same call, or cv_pki_make(), completes the folder.
 */
CV_MUST_USE enum cv_err cv_pki_renew(const char *ca_folder, const char *folder, const struct cv_pki_request *request,
                                     struct cv_pki_files *ret, bool *ret_is_new, struct cv_why *why);

#endif
