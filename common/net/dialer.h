/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dialer: keeps one connection (peer.h) open until it is stopped. Retries with back-off and jitter: 100 ms, doubling
 * to 5 s, and 100 ms again after a connection that was open for a quarter of a second.
 *
 * A party may have several addresses: processes with one name and key, of which one is active and the others refuse
 * connections. The dialer then tries all of them, one after the other and without a pause, before it backs off, for at
 * most CV_DIAL_DELAY_MS. An attempt (TCP and TLS) gets CV_DIAL_ATTEMPT_MS, so that a host that is off and answers
 * nothing delays the others little; the limit doubles with each cycle that has failed, to CV_DIAL_ATTEMPT_MOST_MS, so
 * that a slow host is reached, too. (Looking up a name is not bounded.)
 *
 * After a lost connection the first attempt goes to the address after the lost one, whatever the reason. If the process
 * there has died, or has handed over to another one, it would be in vain to ask its address first, and cost a whole
 * attempt if the host has died, too. If only the network has failed, the other process is a standby, whose refusal
 * costs one round trip.
 *
 * A process that stands still (SIGSTOP) keeps its connections, while another one serves already. So a dialer with
 * several addresses that has heard nothing for CV_DIAL_SILENCE_MS knocks (knock.h) at all the others, about once a
 * second, until the peer speaks again. If a process answers there, the silent connection is dropped without a goodbye,
 * and the cycle begins with that address. Being silent is enough: a worker without work hears nothing either and must
 * not stay with a broker that has been replaced. Nothing is risked by it, as only the one active process answers. Only
 * if two addresses lead to the same process, which they must not, a quiet connection would move back and forth;
 * therefore CV_DIAL_STAY_MS pass between two such moves, less than what a successor needs to take over. A peer that is
 * paused (peer.h) is not silent.
 *
 * Each address has a TLS session of its own to resume: the tickets of one process mean nothing to another one. It is
 * kept until its address answers.
 */
#ifndef CV_NET_DIALER_H
#define CV_NET_DIALER_H

#include <stdint.h>
#include <uv.h>

#include "common/base/err.h"
#include "common/net/peer.h"
#include "common/net/peer_limits.h"
#include "common/net/tls.h"

enum {
  CV_DIAL_ATTEMPT_MS = 1000,
  CV_DIAL_ATTEMPT_MOST_MS = 4000,
  CV_DIAL_DELAY_MS = 500,
  CV_DIAL_SILENCE_MS = 1000,
  CV_DIAL_STAY_MS = 2000,
};

struct cv_dialer;
/*
 * `addresses`: one, or a list (base/address.h); CV_ERR_FORMAT. Host names are resolved, and all hosts that they stand
 * for are tried. `data` becomes the data of each peer. `failed` (may be NULL) gets one line for each cycle over all
 * addresses that does not reach `opened`; `closed` is called only for connections that were `opened`. On a client,
 * `opened` also means that the server has accepted the client's certificate. `jitter_seed` spreads clients that start
 * at the same time.
 */
CV_MUST_USE enum cv_err cv_dialer_start(uv_loop_t *loop, const char *addresses, struct cv_tls *tls,
                                        const struct cv_peer_ops *ops, void *data,
                                        void (*failed)(void *data, const struct cv_why *why),
                                        const struct cv_net_limits *limits, uint64_t jitter_seed,
                                        struct cv_dialer **ret, struct cv_why *why);
void cv_dialer_set_tls(struct cv_dialer *dialer, struct cv_tls *tls);
/* Stops retrying and closes the open peer. The loop frees the dialer. */
void cv_dialer_stop(struct cv_dialer *dialer);

#endif
