/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/outbox.h"

#include <stdlib.h>
#include <string.h>

static enum cv_err grow(void **array, size_t count, size_t *cap, size_t size) {
  if (count < *cap) {
    return CV_OK;
  }
  size_t more = *cap == 0 ? 64 : *cap * 2;
  void *grown = realloc(*array, more * size);
  if (grown == NULL) {
    return CV_ERR_NOMEM;
  }
  *array = grown;
  *cap = more;
  return CV_OK;
}

void cv_outbox_fini(struct cv_outbox *outbox) {
  free(outbox->worker);
  free(outbox->wish);
  free(outbox->token);
  free(outbox->decline);
  *outbox = (struct cv_outbox){0};
}

void cv_outbox_clear(struct cv_outbox *outbox) {
  outbox->arrivals = outbox->tokens = outbox->declines = 0;
  outbox->batch++;
}

enum cv_err cv_outbox_arrive(struct cv_outbox *outbox, uint64_t worker, uint32_t wish) {
  void *workers = outbox->worker, *wishes = outbox->wish;
  CV_TRY(grow(&workers, outbox->arrivals, &outbox->worker_cap, sizeof(*outbox->worker)));
  outbox->worker = workers;
  CV_TRY(grow(&wishes, outbox->arrivals, &outbox->wish_cap, sizeof(*outbox->wish)));
  outbox->wish = wishes;
  outbox->worker[outbox->arrivals] = worker;
  outbox->wish[outbox->arrivals++] = wish;
  return CV_OK;
}

enum cv_err cv_outbox_token(struct cv_outbox *outbox, struct cv_pending *pending) {
  void *array = outbox->token;
  CV_TRY(grow(&array, outbox->tokens, &outbox->token_cap, sizeof(*outbox->token)));
  outbox->token = array;
  struct cv_token *token = &outbox->token[outbox->tokens++];
  memcpy(token->ticket, pending->ticket, sizeof(token->ticket));
  token->values = pending->values;
  token->value = pending->value;
  pending->batch = outbox->batch;
  return CV_OK;
}

bool cv_outbox_holds(const struct cv_outbox *outbox, const struct cv_pending *pending) {
  return pending->batch == outbox->batch;
}

struct cv_decline *cv_outbox_decline(struct cv_outbox *outbox) {
  void *array = outbox->decline;
  if (grow(&array, outbox->declines, &outbox->decline_cap, sizeof(*outbox->decline)) != CV_OK) {
    return NULL;
  }
  outbox->decline = array;
  struct cv_decline *decline = &outbox->decline[outbox->declines++];
  *decline = (struct cv_decline){0};
  return decline;
}
