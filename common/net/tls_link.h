/* SPDX-License-Identifier: Apache-2.0 */
/* Inside common/net: one TLS connection over memory, without a network. */
#ifndef CV_NET_TLS_LINK_H
#define CV_NET_TLS_LINK_H

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/net/tls.h"

enum { CV_REKEYS_MAX = 32 };

/* Must not move while it is open. */
struct cv_tls_link {
  SSL *ssl;
  struct cv_tls *made_by; /* whose context `ssl` works with */
  const uint8_t *in;      /* ciphertext received and not yet taken; borrowed */
  size_t in_left;
  struct cv_buf *out;                        /* ciphertext to send is appended here; borrowed */
  SSL_SESSION **slot;                        /* a client's place for a session to resume; NULL for none */
  bool greeted;                              /* a server's: a whole hello has come */
  bool turned_away;                          /* and was not answered */
  bool (*answers)(struct cv_tls_link *link); /* a server's: is the hello that has come answered? NULL: yes */
  bool ticket_seen;                          /* a client's: the server has accepted our certificate */
  unsigned rekeys;                           /* key updates of the other side; its owner lets them fade */
  struct cv_why refusal;                     /* why we did not accept the other side's certificate; empty otherwise */
};

/* One more owner; cv_tls_unref() takes one away, and the last one frees it. */
void cv_tls_ref(struct cv_tls *tls);
/* `link` starts as all zero but for `out`, `slot` and `answers`; the session in the slot is used up. */
CV_MUST_USE enum cv_err cv_tls_link_open(struct cv_tls *tls, struct cv_tls_link *link, struct cv_why *why);
void cv_tls_link_close(struct cv_tls_link *link);
/* A certificate that has passed. */
struct cv_tls_passed {
  struct cv_identity identity;
  int64_t until_s; /* since 1970: when the first certificate of its chain, its CA's among them, expires */
};
/*
 * Verifies the other side of a finished handshake against `tls`, from the signature to the role, whichever context made
 * the connection and whether or not the session was resumed.
 */
CV_MUST_USE enum cv_err cv_tls_link_check(const struct cv_tls *tls, const struct cv_tls_link *link,
                                          struct cv_tls_passed *ret, struct cv_why *why);

#endif
