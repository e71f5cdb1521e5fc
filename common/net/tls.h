/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 contexts: mutual, ALPN "crowdveil/1", the same CAs, roles and expected names checked on both sides. Sessions
 * are resumed from a bounded stateful cache (no stateless tickets); they live 5 minutes at most, counted from the full
 * handshake, and never past the peer's notAfter.
 */
#ifndef CV_NET_TLS_H
#define CV_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/net/identity.h"

struct cv_tls;

struct cv_tls_files {
  const char *ca;     /* PEM certificates of one or several CAs */
  const char *cert;   /* PEM certificate of this party */
  const char *key;    /* PEM private key; refused if group or others may read it */
  const char *denied; /* serial numbers of revoked certificates, one hexadecimal number per line; or NULL */
  const char *crl;    /* PEM lists of revoked certificates, one of each CA in `ca`; or NULL */
};

/* The peers that a context accepts. */
struct cv_tls_peers {
  unsigned roles;    /* set of 1u << enum cv_role */
  const char *names; /* accepted names (party.h), borrowed for as long as a context lives; NULL: any name */
  /* The one accepted key, SHA-256 of the public key (identity.h), borrowed likewise; NULL: any key. */
  const struct cv_digest *key;
};

/*
 * Reads and checks the files: they exist and parse, the key belongs to the certificate, the certificate is valid now
 * and signed by the CA, its identity has the role `own`, and each CA has a list of revoked certificates that is valid
 * now, if `crl` is given. Peers are refused, and live connections closed, from the moment that a list expires.
 */
CV_MUST_USE enum cv_err cv_tls_new(const struct cv_tls_files *files, enum cv_role own, struct cv_tls_peers peers,
                                   bool server, struct cv_tls **ret, struct cv_why *why);
/*
 * Reads the files of `old`'s party again, for the same use. CV_ERR_INVALID if the certificate has another identity: a
 * party's identity changes only with a restart. `old` is unchanged.
 */
CV_MUST_USE enum cv_err cv_tls_renew(const struct cv_tls *old, const struct cv_tls_files *files, struct cv_tls **ret,
                                     struct cv_why *why);
/* Drops a reference. Connections hold their own. */
void cv_tls_unref(struct cv_tls *tls);
/* The identity in this party's certificate. */
const struct cv_identity *cv_tls_identity(const struct cv_tls *tls);
/* True if `denied` or `crl` has this party's own certificate. Its peers refuse it once they know. */
bool cv_tls_is_revoked(const struct cv_tls *tls);

/* True if `denied` or `crl` has the serial number, as in an identity; also if that cannot be found out. */
bool cv_tls_refuses(const struct cv_tls *tls, const char *serial);

/* When this party's certificate ends, the first of the CA certificates that vouch for it, and the first CRL (0: there
 * is none); in seconds since 1970. */
struct cv_tls_ends {
  int64_t own_s, ca_s, crl_s;
};
struct cv_tls_ends cv_tls_ends(const struct cv_tls *tls);
/* How many serial numbers `tls` refuses that `other` does not. */
size_t cv_tls_denied_beyond(const struct cv_tls *tls, const struct cv_tls *other);

#endif
