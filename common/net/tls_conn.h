/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/net: one TLS connection over memory buffers, without a network. */
#ifndef CV_NET_TLS_CONN_H
#define CV_NET_TLS_CONN_H

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/net/tls.h"

enum { CV_REKEYS_MAX = 32 };

/* Must not be moved while open. */
struct cv_tls_conn {
  SSL *ssl;
  struct cv_tls *made_by; /* the context that `ssl` was created from */
  const uint8_t *in;      /* received ciphertext, not yet read; borrowed */
  size_t in_left;
  struct cv_buf *out;                        /* ciphertext to send is appended here; borrowed */
  SSL_SESSION **slot;                        /* a client's place for a session to resume; NULL for none */
  bool greeted;                              /* server: a complete hello was received */
  bool turned_away;                          /* server: the hello was not answered */
  bool (*answers)(struct cv_tls_conn *conn); /* server: may the received hello be answered? NULL: yes */
  bool ticket_seen;                          /* client: the server has accepted our certificate */
  unsigned rekeys;                           /* key updates by the other side; the owner reduces the count over time */
  struct cv_why refusal;                     /* why we rejected the other side's certificate; empty otherwise */
};

/* Takes a reference; cv_tls_unref() drops it, and the last one frees the context. */
void cv_tls_ref(struct cv_tls *tls);
/* `conn` must be all zero except for `out`, `slot` and `answers`. */
CV_MUST_USE enum cv_err cv_tls_conn_open(struct cv_tls *tls, struct cv_tls_conn *conn, struct cv_why *why);
/* A client, once there is a connection, as one that is refused must not cost the session: offers the session in its
 * slot, and uses it up, as using a ticket twice would link two connections. */
void cv_tls_conn_offer(struct cv_tls_conn *conn);
void cv_tls_conn_close(struct cv_tls_conn *conn);
/* The result of a successful check. */
struct cv_tls_passed {
  struct cv_identity identity;
  int64_t until_s; /* seconds since 1970: when the first certificate of the chain, including the CA's, expires */
};
/*
 * Verifies the other side's certificate against `tls` after a finished handshake, from signature to role, whichever
 * context created the connection and whether or not the session was resumed.
 */
CV_MUST_USE enum cv_err cv_tls_conn_check(const struct cv_tls *tls, const struct cv_tls_conn *conn,
                                          struct cv_tls_passed *ret, struct cv_why *why);

#endif
