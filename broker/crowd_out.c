/* SPDX-License-Identifier: Apache-2.0 */
/* What a crowd connection has gathered to be said: arrays that are reused, and the lists that they own. */
#include <stdlib.h>

#include "broker/state.h"

bool cv_crowd_out_is_empty(const struct cv_crowd_frame *frame) {
  return frame->assigns + frame->acks + frame->backoffs + frame->campaigns + frame->dones == 0 &&
         frame->goodbye == NULL && !frame->hello.present;
}

/* What assignments and backoffs own. */
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

void cv_crowd_out_fini(struct cv_crowd_out *out) {
  free_lists(&out->frame);
  free(out->frame.assign);
  free(out->frame.ack);
  free(out->frame.backoff);
  free(out->frame.campaign);
  free(out->frame.done);
  *out = (struct cv_crowd_out){0};
}

void cv_crowd_out_empty(struct cv_crowd_out *out) {
  enum { KEPT = 4096 };
  struct cv_crowd_frame *frame = &out->frame;
  if (out->assigns_cap + out->acks_cap + out->backoffs_cap > KEPT) {
    cv_crowd_out_fini(out);
    return;
  }
  free_lists(frame);
  frame->assigns = frame->acks = frame->backoffs = frame->campaigns = frame->dones = 0;
  frame->hello.present = false;
  frame->goodbye = NULL;
}

void *cv_crowd_out_grow(void *array, size_t count, size_t *cap, size_t size) {
  if (count < *cap) {
    return array;
  }
  size_t more = *cap == 0 ? 32 : *cap * 2;
  void *grown = realloc(array, more * size);
  if (grown != NULL) {
    *cap = more;
  }
  return grown;
}
