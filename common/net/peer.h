/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections over libuv: TCP, TLS through memory BIOs, length-prefixed frames. One loop, one thread.
 *
 * A peer is open from `opened` to `closed`. After cv_peer_close() or a failure, `closed` is called exactly once, from
 * the loop, never from inside a call; then the peer is freed. This module enforces all limits: handshake timeout, frame
 * size, time from a frame's first byte to its last (and from the start to the first frame), write queue (a peer that
 * does not read is closed), key updates, connections and unfinished handshakes of a listener. It also closes a
 * connection after `silence_ms` in which the other host acknowledges neither data nor keepalive probes, or takes no
 * data, in whichever direction packets are lost. Each turn of the loop reads only a limited share from each peer.
 *
 * The first listener or dialer of a program makes the process ignore SIGPIPE, unless it has a handler for it.
 *
 * cv_peer_send() queues; all frames queued in one turn of the loop leave in as few full TLS records and system calls as
 * possible.
 */
#ifndef CV_NET_PEER_H
#define CV_NET_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/refusals.h"
#include "common/net/identity.h"

struct cv_peer;

struct cv_peer_ops {
  /* The handshake is complete and the peer's identity is checked. */
  void (*opened)(struct cv_peer *peer, const struct cv_identity *identity);
  /* One complete frame, without its length; the bytes are borrowed for the call. */
  void (*frame)(struct cv_peer *peer, const uint8_t *bytes, size_t n);
  /* The connection has ended; `why` is one line. Called without `opened` if the handshake failed (a dialer calls
   * `failed` instead). */
  void (*closed)(struct cv_peer *peer, const struct cv_why *why);
};

/* The owner's pointer, set when the peer is created; the owner may change it. */
void *cv_peer_data(const struct cv_peer *peer);
void cv_peer_set_data(struct cv_peer *peer, void *data);
/* "127.0.0.1:4711", for messages. */
const char *cv_peer_address(const struct cv_peer *peer);
/* The peer's name for logs: "gateway/1-9", or its host ("127.0.0.1") before `opened`. */
void cv_peer_who(const struct cv_peer *peer, char *ret, size_t size);
/* In `closed`: the limit or handshake check that ended the connection; CV_REFUSALS for none. */
enum cv_refusal cv_peer_refusal(const struct cv_peer *peer);

/*
 * Takes `n` bytes from the connection's TLS exporter (RFC 8446, 7.5): a secret that only its two ends can compute,
 * another one for each label, each context and each connection. From `opened` on; CV_ERR_CLOSED before, CV_ERR_CRYPTO.
 */
CV_MUST_USE enum cv_err cv_peer_export(const struct cv_peer *peer, const char *label, const void *context,
                                       size_t context_n, uint8_t *ret, size_t n);

/*
 * Queues one frame of at least one byte. CV_ERR_LIMIT if the frame is over the frame limit or would exceed the queue
 * limit: nothing is queued, and the caller closes the peer or waits for cv_peer_queued() to fall. CV_ERR_CLOSED once
 * closing.
 */
CV_MUST_USE enum cv_err cv_peer_send(struct cv_peer *peer, const void *bytes, size_t n);
size_t cv_peer_queued(const struct cv_peer *peer); /* bytes not yet handed to the kernel */
/*
 * Permits larger frames, from now on: of `in` bytes to receive, `out` bytes to send (both at least the limit so far).
 * Two of the latter may wait in the queue beyond its own limit. A frame over the usual limit has the time of one for
 * each MiB of it.
 */
void cv_peer_widen(struct cv_peer *peer, size_t in, size_t out);
/* Stops and resumes reading (back-pressure). */
void cv_peer_pause(struct cv_peer *peer);
void cv_peer_resume(struct cv_peer *peer);
/*
 * Sends queued data for at most a second, then closes; received data is dropped, and `frame` is not called any more.
 * `why` is passed to `closed`; of several calls and failures the first one counts.
 */
void cv_peer_close(struct cv_peer *peer, const char *why);

#endif
