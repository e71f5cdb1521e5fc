/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/peer_limits.h"

/* A queue holds sixteen of the largest frames; a frame has half a minute, which 9 KiB/s suffice for. */
const struct cv_net_limits CV_NET_DEFAULTS = {.frame_bytes = 256 * 1024,
                                              .wide_bytes = 128 * 1024 * 1024,
                                              .queue_bytes = 4 * 1024 * 1024,
                                              .connections = 1024,
                                              .handshakes = 128,
                                              .hellos = 200,
                                              .handshake_ms = 10000,
                                              .frame_ms = 30000,
                                              .silence_ms = 20000};
