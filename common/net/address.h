/* SPDX-License-Identifier: Apache-2.0 */
/* HOST:PORT, [IPV6]:PORT. */
#ifndef CV_NET_ADDRESS_H
#define CV_NET_ADDRESS_H

#include <stddef.h>
#include <uv.h>

#include "common/base/err.h"

struct cv_address {
  char host[256]; /* without brackets */
  char port[6];
};

/* Parses HOST:PORT; port 0 is valid. CV_ERR_FORMAT. */
CV_MUST_USE enum cv_err cv_address_parse(const char *text, struct cv_address *ret, struct cv_why *why);
/* Writes the peer's address, "127.0.0.1:4711", or "?" if unknown. */
void cv_address_of(const uv_tcp_t *tcp, char *text, size_t size);
/* Port of a socket address. */
unsigned cv_address_port(const struct sockaddr *address);

#endif
