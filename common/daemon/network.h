/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's way to its peers: the TLS contexts, the listener and the dialers of its configuration. */
#ifndef CV_DAEMON_NETWORK_H
#define CV_DAEMON_NETWORK_H

#include "common/daemon/daemon.h"
#include "common/net/dialer.h"
#include "common/net/listener.h"

struct cv_network {
  const struct cv_daemon_config *config; /* set by the caller; the rest is zero */
  struct cv_tls *server;                 /* NULL: the daemon does not listen */
  struct cv_listener *listener;
  struct cv_network_dial {
    struct cv_tls *tls; /* NULL: no address */
    struct cv_dialer *dialer;
  } dial[CV_DAEMON_DIALS];
};

/* With a test's clock all peers have to be on this machine, CV_ERR_INVALID; the log says that there is one. */
CV_MUST_USE enum cv_err cv_network_check_clock(const struct cv_daemon_config *config, struct cv_why *why);
/* Reads the TLS files, before anything is opened. */
CV_MUST_USE enum cv_err cv_network_load(struct cv_network *network, struct cv_why *why);
/* Any context of this party: all are made from the same files. */
const struct cv_tls *cv_network_own(const struct cv_network *network);
/* The roles that it dials: set of 1u << enum cv_role. */
unsigned cv_network_dialled(const struct cv_daemon_config *config);

/* Takes the port, without listening yet. */
CV_MUST_USE enum cv_err cv_network_bind(struct cv_network *network, uv_loop_t *loop, struct cv_lane *newcomer,
                                        struct cv_why *why);
/* Listens and dials; `newcomer` is the data of each peer, and of failed[i], which is told of attempts to reach dial
 * i. */
typedef void cv_network_failed_fn(void *data, const struct cv_why *why);
CV_MUST_USE enum cv_err cv_network_open(struct cv_network *network, uv_loop_t *loop, struct cv_lane *newcomer,
                                        cv_network_failed_fn *const failed[CV_DAEMON_DIALS], struct cv_rng *rng,
                                        struct cv_why *why);
/* Accepts no more peers, stops dialling and closes what was dialled. */
void cv_network_stop(struct cv_network *network);
/* After the loop has ended. */
void cv_network_fini(struct cv_network *network);

/* Contexts from the files as they are now; NULL where there was none. */
struct cv_network_renewed {
  struct cv_tls *server, *client[CV_DAEMON_DIALS];
};
/* Makes all contexts anew, or none: a bad file leaves the daemon as it was. */
CV_MUST_USE enum cv_err cv_network_renew(const struct cv_network *network, struct cv_network_renewed *ret,
                                         struct cv_why *why);
/* Any of them. */
const struct cv_tls *cv_network_renewed_own(const struct cv_network_renewed *renewed);
/* Replaces the contexts, and takes those of `renewed` over. Open connections are checked again: a revoked certificate
 * loses its connection. */
void cv_network_use(struct cv_network *network, const struct cv_network_renewed *renewed);

#endif
