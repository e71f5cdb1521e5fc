/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/net: serial numbers of revoked certificates. */
#ifndef CV_NET_DENIED_H
#define CV_NET_DENIED_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/net/serial.h"

enum { CV_DENIED_MAX = 100000 };

struct cv_denied {
  struct cv_serial *serial; /* sorted */
  size_t count;
};

/* Reads one hexadecimal number per line; ignores empty lines and comments from # on. Error messages begin with
 * FILE:LINE. */
CV_MUST_USE enum cv_err cv_denied_load(const char *path, struct cv_denied *ret, struct cv_why *why);
void cv_denied_fini(struct cv_denied *denied);
bool cv_denied_has(const struct cv_denied *denied, const X509 *cert);
/* The same for a serial number, as in an identity. */
bool cv_denied_lists(const struct cv_denied *denied, const char *serial);
/* How many serial numbers of `denied` are not in `other`. */
size_t cv_denied_beyond(const struct cv_denied *denied, const struct cv_denied *other);

#endif
