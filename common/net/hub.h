/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside common/net: what the connections of one loop share: buffers large enough for whatever one read brings, and the
 * work that is done once per turn of the loop, just before it waits.
 */
#ifndef CV_NET_HUB_H
#define CV_NET_HUB_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/base/buf.h"
#include "common/base/err.h"

struct cv_peer;

/* An SSL object may hold one unfinished record besides what a read brings. */
enum { CV_HUB_READ_BYTES = 128 * 1024, CV_HUB_PLAIN_BYTES = CV_HUB_READ_BYTES + 32 * 1024 };
/* Read in a turn from all peers together, as long as the least is left for each. */
enum { CV_HUB_TURN_BYTES = 1024 * 1024, CV_HUB_LEAST_BYTES = 8 * 1024 };

struct cv_hub {
  uv_loop_t *loop;
  unsigned refs;
  uv_prepare_t turn;
  struct cv_peer *due;      /* peers with work for the end of this turn */
  uint64_t turns;           /* so far */
  unsigned busy, were_busy; /* peers that have sent something in this turn, and in the one before */
  struct cv_buf out;        /* ciphertext on its way to the kernel; empty between calls */
  uint8_t read[CV_HUB_READ_BYTES];
  uint8_t plain[CV_HUB_PLAIN_BYTES];
  struct cv_hub *prev, *next;
};

/* The hub of a loop, made at first use. */
CV_MUST_USE enum cv_err cv_hub_ref(uv_loop_t *loop, struct cv_hub **ret, struct cv_why *why);
/* What one peer may send in this turn: CV_HUB_READ_BYTES, unless so many do that it comes to more than a turn takes. */
size_t cv_hub_share(const struct cv_hub *hub);
/* The last reference gone, the loop frees it. */
void cv_hub_unref(struct cv_hub *hub);

#endif
