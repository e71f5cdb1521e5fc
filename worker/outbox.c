/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

void cv_worker_outbox_fini(struct cv_worker_outbox *outbox) {
  free(outbox->worker);
  free(outbox->wish);
  free(outbox->token);
  free(outbox->decline);
  *outbox = (struct cv_worker_outbox){0};
}

void cv_worker_outbox_clear(struct cv_worker_outbox *outbox) {
  outbox->arrivals = outbox->tokens = outbox->declines = 0;
  /* Tokens of earlier batches are sent; see cv_worker_outbox_holds(). */
  outbox->batch++;
}

enum cv_err cv_worker_outbox_arrive(struct cv_worker_outbox *outbox, uint64_t worker, uint32_t wish) {
  CV_TRY(CV_ARRAY_ROOM(outbox->worker, outbox->arrivals + 1, outbox->worker_cap));
  CV_TRY(CV_ARRAY_ROOM(outbox->wish, outbox->arrivals + 1, outbox->wish_cap));
  outbox->worker[outbox->arrivals] = worker;
  outbox->wish[outbox->arrivals++] = wish;
  return CV_OK;
}

enum cv_err cv_worker_outbox_token(struct cv_worker_outbox *outbox, struct cv_pending *pending) {
  struct cv_token *token = CV_ARRAY_PUSH(outbox->token, outbox->tokens, outbox->token_cap);
  if (token == NULL) {
    return CV_ERR_NOMEM;
  }
  const struct cv_pending_split *split = pending->split;
  /* Borrowed: values and shares stay in the pending entry until its Ack. */
  *token = (struct cv_token){.values = split == NULL ? pending->values : 0,
                             .value = split == NULL ? pending->value : NULL,
                             .share = split == NULL ? NULL : &split->share};
  memcpy(token->ticket, pending->ticket, sizeof(token->ticket));
  pending->batch = outbox->batch;
  return CV_OK;
}

bool cv_worker_outbox_holds(const struct cv_worker_outbox *outbox, const struct cv_pending *pending) {
  return pending->batch == outbox->batch;
}

struct cv_decline *cv_worker_outbox_decline(struct cv_worker_outbox *outbox) {
  struct cv_decline *decline = CV_ARRAY_PUSH(outbox->decline, outbox->declines, outbox->decline_cap);
  if (decline != NULL) {
    *decline = (struct cv_decline){0};
  }
  return decline;
}

/* Splits the arrivals into Arrive messages of at most CV_ARRIVE_MOST workers; without arrivals one empty Arrive carries
 * the credit. */
static void fill_arrives(struct cv_worker_outbox *outbox, uint32_t credit, bool wishes, struct cv_crowd_frame *frame) {
  size_t said = 0;
  do {
    /* arrive() in core.c bounds the arrivals of a flush by the waiting line. */
    CV_REQUIRE(frame->arrives < CV_ARRIVES_MOST);
    size_t left = outbox->arrivals - said, workers = left < CV_ARRIVE_MOST ? left : CV_ARRIVE_MOST;
    outbox->arrive[frame->arrives++] = (struct cv_arrive){.workers = workers,
                                                          .worker = workers == 0 ? NULL : outbox->worker + said,
                                                          .wish = workers == 0 || !wishes ? NULL : outbox->wish + said,
                                                          .credit = credit};
    said += workers;
  } while (said < outbox->arrivals);
}

enum cv_err cv_worker_outbox_spent(struct cv_worker_outbox *outbox, uint64_t campaign, const char *why,
                                   const uint32_t *arm, size_t arms) {
  struct cv_decline *decline = cv_worker_outbox_decline(outbox);
  if (decline == NULL) {
    return CV_ERR_NOMEM;
  }
  decline->campaign = campaign;
  decline->why = why;
  decline->used_up = true;
  decline->arm = arm;
  decline->arms = arms;
  return CV_OK;
}

void cv_worker_outbox_frame(struct cv_worker_outbox *outbox, uint32_t credit, bool say_credit, bool wishes,
                            struct cv_crowd_frame *ret) {
  *ret = (struct cv_crowd_frame){.arrive = outbox->arrive,
                                 .tokens = outbox->tokens,
                                 .token = outbox->token,
                                 .declines = outbox->declines,
                                 .decline = outbox->decline};
  /* Once per connection an Arrive is sent even without workers: the broker assigns nothing before it knows the
   * credit. */
  if (outbox->arrivals > 0 || say_credit) {
    fill_arrives(outbox, credit, wishes, ret);
  }
}
