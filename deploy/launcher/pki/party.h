/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to pki: the names in a party's certificate. */
#ifndef CV_DEPLOY_PKI_PARTY_H
#define CV_DEPLOY_PKI_PARTY_H

#include <openssl/x509.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/net/identity.h"

enum { CV_PKI_ALT_NAMES_BYTES = 4096, CV_PKI_HOSTS_MAX = 32 };

/* Parses "crowdveil:worker/17" or "worker/17". CV_ERR_FORMAT otherwise. */
CV_MUST_USE enum cv_err cv_pki_identity(const char *text, struct cv_identity *ret, struct cv_why *why);
/* Formats identity and hosts for OpenSSL. CV_ERR_FORMAT for an invalid host, CV_ERR_LIMIT for too many hosts. */
CV_MUST_USE enum cv_err cv_pki_alt_names(const struct cv_identity *identity, const char *const *hosts, size_t hosts_n,
                                         char ret[CV_PKI_ALT_NAMES_BYTES], struct cv_why *why);
/* CV_ERR_INVALID if peers dial such a party, and it has no host. */
CV_MUST_USE enum cv_err cv_pki_check_hosts(const struct cv_identity *identity, size_t hosts_n, struct cv_why *why);

/* Host names and IP addresses, owned. */
struct cv_pki_hosts {
  char *host[CV_PKI_HOSTS_MAX];
  size_t n;
};
/* Those in a certificate; at most CV_PKI_HOSTS_MAX of them. */
CV_MUST_USE enum cv_err cv_pki_hosts_of(const X509 *cert, struct cv_pki_hosts *ret, struct cv_why *why);
void cv_pki_hosts_fini(struct cv_pki_hosts *hosts);

#endif
