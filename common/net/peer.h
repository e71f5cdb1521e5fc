/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections over libuv: TCP, TLS through memory BIOs, length-prefixed frames. One loop, one thread.
 *
 * A peer is open from `opened` to `closed`. After cv_peer_close() or a failure `closed` comes exactly once, from the
 * loop, never from inside a call; then the peer is gone. Every limit is enforced here: handshake 10 s, frame size, the
 * time that a frame takes from its first byte to its last (and the first frame from the start), bytes queued for
 * writing (a peer that does not read is closed), key updates, connections and unfinished handshakes of a listener, and
 * silence: a host that answers neither data nor keepalive probes, or takes no data, for `silence_ms` is given up, in
 * whichever direction packets are lost. No peer gets more than a share of each turn of the loop, however much it sends.
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
#include "common/base/refusals.h"
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
/* Who it is, for a log: "gateway/1-9", or its host ("127.0.0.1") before `opened`. */
void cv_peer_who(const struct cv_peer *peer, char *ret, size_t size);
/* In `closed`: which of the limits here, or of the checks of a handshake, ended it; CV_REFUSALS for none. */
enum cv_refusal cv_peer_refusal(const struct cv_peer *peer);

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
  unsigned connections; /* largest number of open peers of a listener */
  unsigned
      handshakes; /* largest number of its unfinished handshakes, with and without a hello, and of those being closed */
  unsigned hellos; /* of an address, answered a second (callers.h) */
  unsigned handshake_ms;
  unsigned frame_ms;   /* from a frame's first byte to its last, and to the first frame */
  unsigned silence_ms; /* at least 1000; noticed within twice that */
};
extern const struct cv_net_limits CV_NET_DEFAULTS; /* 256 KiB, 4 MiB, 1024, 128, 200, 10 s, 30 s, 20 s */

/* A listener. */
struct cv_listener;
/*
 * `address` is HOST:PORT or [IPV6]:PORT; port 0 lets the system choose (see cv_listener_port). `tls` gets a reference
 * more; `ops` and `limits` are copied. Where there are too many unfinished handshakes, the oldest of the address that
 * has most of them is given up (callers.h); those that have not said a whole hello have places of their own. One that
 * has finished its handshake while all places for connections are taken is closed; workers and gateways leave an eighth
 * of those to others. Raises the process's limit of open files as far as all that needs; CV_ERR_LIMIT if the system
 * does not allow as many.
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
