/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections over libuv: TCP, TLS through memory BIOs, length-prefixed frames. One loop, one thread.
 *
 * A peer is open from `opened` to `closed`. After cv_peer_close() or a failure `closed` comes exactly once, from the
 * loop, never from inside a call; then the peer is gone. Every limit is enforced here: handshake 10 s, frame size,
 * bytes queued for writing (a peer that does not read is closed), connections of a listener, and silence: a host that
 * answers neither data nor keepalive probes, or takes no data, for `silence_ms` is given up, in whichever direction
 * packets are lost.
 *
 * The first listener or dialer of a program makes it ignore SIGPIPE, unless it has a handler for it.
 *
 * Writing: cv_peer_send() queues; everything queued in one turn of the loop leaves in as few full TLS records and
 * system calls as possible.
 */
#ifndef CV_NET_PEER_H
#define CV_NET_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/base/err.h"
#include "common/net/identity.h"
#include "common/net/tls.h"

struct cv_peer;

struct cv_peer_ops {
  /* The handshake is done and the other side's identity checked. */
  void (*opened)(struct cv_peer *peer, const struct cv_identity *identity);
  /* One whole frame, without its length; the bytes are borrowed for the call. */
  void (*frame)(struct cv_peer *peer, const uint8_t *bytes, size_t n);
  /* The end; `why` is one line. Without `opened` if the handshake failed (but a dialer tells that to `failed`). */
  void (*closed)(struct cv_peer *peer, const struct cv_why *why);
};

/* `data` is the owner's, set when the peer is made and changed at will. */
void *cv_peer_data(const struct cv_peer *peer);
void cv_peer_set_data(struct cv_peer *peer, void *data);
/* "127.0.0.1:4711", for messages. */
const char *cv_peer_address(const struct cv_peer *peer);
/* NULL before `opened`. */
const struct cv_identity *cv_peer_identity(const struct cv_peer *peer);

/*
 * Queues one frame of at least one byte. CV_ERR_LIMIT if it is over the frame limit or more than the write limit would
 * be queued: nothing is queued, and the caller closes the peer or waits for cv_peer_queued() to fall. CV_ERR_CLOSED
 * once closing.
 */
CV_MUST_USE enum cv_err cv_peer_send(struct cv_peer *peer, const void *bytes, size_t n);
size_t cv_peer_queued(const struct cv_peer *peer); /* bytes not yet handed to the kernel */
/* Stops and resumes reading (back-pressure). */
void cv_peer_pause(struct cv_peer *peer);
void cv_peer_resume(struct cv_peer *peer);
/*
 * Sends what is queued as far as it goes within a second, then closes; what still arrives is dropped, no `frame` comes
 * any more. `why` is what `closed` will say; of several calls and failures the first one counts.
 */
void cv_peer_close(struct cv_peer *peer, const char *why);

struct cv_net_limits {
  size_t frame_bytes;   /* largest frame */
  size_t queue_bytes;   /* largest write queue of a peer */
  unsigned connections; /* largest number of peers of a listener */
  unsigned handshake_ms;
  unsigned silence_ms; /* at least 1000; noticed within twice that */
};
extern const struct cv_net_limits CV_NET_DEFAULTS; /* 256 KiB, 8 MiB, 1024, 10 s, 20 s */

/* A listener. */
struct cv_listener;
/*
 * `address` is HOST:PORT or [IPV6]:PORT; port 0 lets the system choose (see cv_listener_port). `tls` gets a reference
 * more; `ops` and `limits` are copied. A connection over the limit is closed at once and nobody is told.
 */
CV_MUST_USE enum cv_err cv_listener_start(uv_loop_t *loop, const char *address, struct cv_tls *tls,
                                          const struct cv_peer_ops *ops, void *data, const struct cv_net_limits *limits,
                                          struct cv_listener **ret, struct cv_why *why);
unsigned cv_listener_port(const struct cv_listener *listener);
/* New connections use this context from now on; live peers that do not pass it are closed. */
void cv_listener_set_tls(struct cv_listener *listener, struct cv_tls *tls);
/* Stops accepting; open peers stay, handshakes are given up. The listener is freed by the loop. */
void cv_listener_stop(struct cv_listener *listener);

/*
 * A dialer: one connection that is made again until it is stopped, with back-off and jitter (100 ms doubling to 5 s,
 * and from the start again after a connection that was open for a quarter of a second).
 */
struct cv_dialer;
/*
 * Host names are resolved, all their addresses tried. `data` becomes the data of each peer. An attempt that does not
 * get as far as `opened` is told to `failed` (may be NULL) with one line, and only there; `closed` comes for what was
 * `opened`. A client's `opened` means that the server has accepted its certificate, too.
 * `jitter_seed` spreads clients that start together.
 */
CV_MUST_USE enum cv_err cv_dialer_start(uv_loop_t *loop, const char *address, struct cv_tls *tls,
                                        const struct cv_peer_ops *ops, void *data,
                                        void (*failed)(void *data, const struct cv_why *why),
                                        const struct cv_net_limits *limits, uint64_t jitter_seed,
                                        struct cv_dialer **ret, struct cv_why *why);
void cv_dialer_set_tls(struct cv_dialer *dialer, struct cv_tls *tls);
/* Makes no further attempt and closes the open peer. The dialer is freed by the loop. */
void cv_dialer_stop(struct cv_dialer *dialer);

#endif
