/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/net: a BIO that reads a connection's received ciphertext and appends to its output. */
#ifndef CV_NET_MEMBIO_H
#define CV_NET_MEMBIO_H

#include <openssl/bio.h>

#include "common/net/tls_conn.h"

/* NULL if memory runs out. The connection must outlive it. */
BIO *cv_membio_new(struct cv_tls_conn *conn);

#endif
