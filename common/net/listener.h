/* SPDX-License-Identifier: Apache-2.0 */
/* A listener: a port that accepts connections (peer.h). */
#ifndef CV_NET_LISTENER_H
#define CV_NET_LISTENER_H

#include <uv.h>

#include "common/base/err.h"
#include "common/net/peer.h"
#include "common/net/peer_limits.h"
#include "common/net/tls.h"

struct cv_listener;
/*
 * `address` is HOST:PORT or [IPV6]:PORT; with port 0 the system chooses (see cv_listener_port). The listener takes its
 * own reference to `tls` and copies `ops` and `limits`. At the limit of unfinished handshakes, it closes the oldest
 * handshake of the address that has most of them (callers.h); connections that have not yet sent a complete TLS hello
 * have a separate limit. At the limit of connections, it closes a peer that has just finished its handshake; an eighth
 * of the connections is reserved for peers other than workers and gateways. Raises the process's limit of open files as
 * needed; CV_ERR_LIMIT if the system does not allow so many.
 */
CV_MUST_USE enum cv_err cv_listener_start(uv_loop_t *loop, const char *address, struct cv_tls *tls,
                                          const struct cv_peer_ops *ops, void *data, const struct cv_net_limits *limits,
                                          struct cv_listener **ret, struct cv_why *why);
/* The same in two steps: connections to a port that is bound and does not listen yet are refused at once. */
CV_MUST_USE enum cv_err cv_listener_bind(uv_loop_t *loop, const char *address, struct cv_tls *tls,
                                         const struct cv_peer_ops *ops, void *data, const struct cv_net_limits *limits,
                                         struct cv_listener **ret, struct cv_why *why);
CV_MUST_USE enum cv_err cv_listener_listen(struct cv_listener *listener, struct cv_why *why);
unsigned cv_listener_port(const struct cv_listener *listener);
/* New connections use this context from now on; open peers that fail its checks are closed. */
void cv_listener_set_tls(struct cv_listener *listener, struct cv_tls *tls);
/* Stops accepting; open peers stay open, unfinished handshakes are closed. The loop frees the listener. */
void cv_listener_stop(struct cv_listener *listener);

#endif
