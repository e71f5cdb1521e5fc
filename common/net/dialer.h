/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dialer: keeps one connection (peer.h) open until it is stopped. Retries with back-off and jitter: 100 ms, doubling
 * to 5 s, and 100 ms again after a connection that was open for a quarter of a second.
 */
#ifndef CV_NET_DIALER_H
#define CV_NET_DIALER_H

#include <stdint.h>
#include <uv.h>

#include "common/base/err.h"
#include "common/net/peer.h"
#include "common/net/peer_limits.h"
#include "common/net/tls.h"

struct cv_dialer;
/*
 * Resolves host names and tries all their addresses. `data` becomes the data of each peer. `failed` (may be NULL) gets
 * one line for each attempt that does not reach `opened`; `closed` is called only for connections that were `opened`.
 * On a client, `opened` also means that the server has accepted the client's certificate. `jitter_seed` spreads clients
 * that start at the same time.
 */
CV_MUST_USE enum cv_err cv_dialer_start(uv_loop_t *loop, const char *address, struct cv_tls *tls,
                                        const struct cv_peer_ops *ops, void *data,
                                        void (*failed)(void *data, const struct cv_why *why),
                                        const struct cv_net_limits *limits, uint64_t jitter_seed,
                                        struct cv_dialer **ret, struct cv_why *why);
void cv_dialer_set_tls(struct cv_dialer *dialer, struct cv_tls *tls);
/* Stops retrying and closes the open peer. The loop frees the dialer. */
void cv_dialer_stop(struct cv_dialer *dialer);

#endif
