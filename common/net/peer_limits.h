/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of each connection, and of all connections of a listener together (peer.h, listener.h). */
#ifndef CV_NET_PEER_LIMITS_H
#define CV_NET_PEER_LIMITS_H

#include <stddef.h>

struct cv_net_limits {
  size_t frame_bytes;   /* largest frame; cv_peer_widen() permits larger ones */
  size_t wide_bytes;    /* of all unfinished frames that are over frame_bytes, together */
  size_t queue_bytes;   /* largest write queue of a peer */
  unsigned connections; /* largest number of open peers of a listener */
  unsigned handshakes;  /* unfinished handshakes, before and after the hello, and closing connections */
  unsigned hellos;      /* TLS hellos answered per second for one address (callers.h) */
  unsigned handshake_ms;
  unsigned frame_ms;   /* timeout from a frame's first byte to its last, and of the first frame */
  unsigned silence_ms; /* at least 1000; noticed within twice that */
};
extern const struct cv_net_limits CV_NET_DEFAULTS; /* 256 KiB, 128 MiB, 4 MiB, 1024, 128, 200, 10 s, 30 s, 20 s */

#endif
