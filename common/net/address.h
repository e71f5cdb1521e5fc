/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of sockets, as text. */
#ifndef CV_NET_ADDRESS_H
#define CV_NET_ADDRESS_H

#include <stddef.h>
#include <uv.h>

#include "common/base/address.h"

/* Writes the peer's address, "127.0.0.1:4711", or "?" if unknown. */
void cv_sockaddr_text(const uv_tcp_t *tcp, char *text, size_t size);
/* Port of a socket address. */
unsigned cv_sockaddr_port(const struct sockaddr *address);

#endif
