/* SPDX-License-Identifier: Apache-2.0 */
/* The next frame to a connection of workers, in arrays that are reused. */
#ifndef CV_BROKER_OUTBOX_H
#define CV_BROKER_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/codec/crowd.h"

struct cv_broker_outbox {
  struct cv_crowd_frame frame; /* its arrays, and the lists in them, are owned */
  size_t assigns_cap, acks_cap, backoffs_cap, campaigns_cap, dones_cap;
};

/* Whether the frame has nothing to send. */
bool cv_broker_outbox_is_empty(const struct cv_crowd_frame *frame);
/* Empties the frame after it was sent; keeps the allocated memory unless it is large. */
void cv_broker_outbox_empty(struct cv_broker_outbox *out);
void cv_broker_outbox_fini(struct cv_broker_outbox *out);

#endif
