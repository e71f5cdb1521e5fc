/* SPDX-License-Identifier: Apache-2.0 */
/* Inside common/net: a BIO that reads the ciphertext lying in a link and appends to its output. */
#ifndef CV_NET_MEMBIO_H
#define CV_NET_MEMBIO_H

#include <openssl/bio.h>

#include "common/net/tls_link.h"

/* NULL if memory runs out. The link must outlive it. */
BIO *cv_membio_new(struct cv_tls_link *link);

#endif
