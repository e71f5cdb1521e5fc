/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/outbox.h"

#include <stdlib.h>

bool cv_broker_outbox_is_empty(const struct cv_crowd_frame *frame) {
  return frame->assigns + frame->acks + frame->backoffs + frame->campaigns + frame->dones == 0 &&
         frame->goodbye == NULL && !frame->hello.present;
}

/* Frees the memory that assignments and backoffs own. */
static void free_lists(struct cv_crowd_frame *frame) {
  for (size_t i = 0; i < frame->backoffs; i++) {
    free((void *)(uintptr_t)frame->backoff[i].worker);
  }
  for (size_t i = 0; i < frame->assigns; i++) {
    if (frame->assign[i].arms > 1) {
      free((void *)(uintptr_t)frame->assign[i].arm.many);
    }
  }
}

void cv_broker_outbox_fini(struct cv_broker_outbox *out) {
  free_lists(&out->frame);
  free(out->frame.assign);
  free(out->frame.ack);
  free(out->frame.backoff);
  free(out->frame.campaign);
  free(out->frame.done);
  *out = (struct cv_broker_outbox){0};
}

void cv_broker_outbox_empty(struct cv_broker_outbox *out) {
  enum { KEPT = 4096 };
  struct cv_crowd_frame *frame = &out->frame;
  /* One large frame would otherwise keep its memory for as long as the connection lasts. */
  if (out->assigns_cap + out->acks_cap + out->backoffs_cap > KEPT) {
    cv_broker_outbox_fini(out);
    return;
  }
  free_lists(frame);
  frame->assigns = frame->acks = frame->backoffs = frame->campaigns = frame->dones = 0;
  frame->hello.present = false;
  frame->goodbye = NULL;
}
