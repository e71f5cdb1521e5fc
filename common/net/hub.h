/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to common/net: shared state of all connections of one loop: buffers for one read, and work that is done once
 * per turn of the loop, just before the loop waits.
 */
#ifndef CV_NET_HUB_H
#define CV_NET_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/base/buf.h"
#include "common/base/err.h"

/* An SSL object may hold one unfinished record besides what a read brings. */
enum { CV_HUB_READ_BYTES = 128 * 1024, CV_HUB_PLAIN_BYTES = CV_HUB_READ_BYTES + 32 * 1024 };
/* Bytes read per turn from all peers together, and the minimum for each peer. */
enum { CV_HUB_TURN_BYTES = 1024 * 1024, CV_HUB_LEAST_BYTES = 8 * 1024 };

/* Work for the end of a turn, done once even if scheduled several times; the owner sets `run` and `data`. */
struct cv_hub_work {
  void (*run)(void *data);
  void *data;
  bool is_due;
  struct cv_hub_work *prev, *next;
};

struct cv_hub {
  uv_loop_t *loop;
  unsigned refs;
  uv_prepare_t turn;
  struct cv_hub_work *due;  /* scheduled for the end of this turn, in order */
  uint64_t turns;           /* so far */
  size_t wide_bytes;        /* received of unfinished frames over the usual limit, by all peers */
  unsigned busy, were_busy; /* peers that have sent data in this turn, and in the previous one */
  struct cv_buf out;        /* ciphertext on its way to the kernel; empty between calls */
  uint8_t read[CV_HUB_READ_BYTES];
  uint8_t plain[CV_HUB_PLAIN_BYTES];
  struct cv_hub *prev, *next;
};

/* Returns the hub of a loop, creating it at first use. */
CV_MUST_USE enum cv_err cv_hub_ref(uv_loop_t *loop, struct cv_hub **ret, struct cv_why *why);
/* Schedule work for the end of this turn; cancel it. */
void cv_hub_make_due(struct cv_hub *hub, struct cv_hub_work *work);
void cv_hub_not_due(struct cv_hub *hub, struct cv_hub_work *work);
/* The number of bytes to read from one peer in this turn: CV_HUB_READ_BYTES, or less if many peers send. */
size_t cv_hub_share(const struct cv_hub *hub);
/* Drops a reference; the loop frees the hub after the last one. */
void cv_hub_unref(struct cv_hub *hub);

#endif
