/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

/* Appends a copy of the message to one of the frame's arrays. */
#define SAY(array, count, cap, message)                      \
  __extension__({                                            \
    __typeof__(array) at = CV_ARRAY_PUSH(array, count, cap); \
    if (at != NULL) {                                        \
      *at = (message);                                       \
    }                                                        \
    at == NULL ? CV_ERR_NOMEM : CV_OK;                       \
  })

enum cv_err cv_cobroker_say_session(struct cv_cobroker_outbox *out, const struct cv_share_session *message) {
  return SAY(out->frame.session, out->frame.sessions, out->sessions_cap, *message);
}

enum cv_err cv_cobroker_say_plan_opened(struct cv_cobroker_outbox *out, uint64_t campaign, uint64_t plan) {
  const struct cv_share_number message = {.campaign = campaign, .number = plan};
  return SAY(out->frame.plan_opened, out->frame.plans_opened, out->plans_opened_cap, message);
}

enum cv_err cv_cobroker_say_closed(struct cv_cobroker_outbox *out, const struct cv_share_closed *message) {
  return SAY(out->frame.half, out->frame.closed, out->closed_cap, *message);
}

/* A copy of a message's text, NULL for NULL. */
static enum cv_err copy(const char *text, const char **ret) {
  *ret = text == NULL ? NULL : strdup(text);
  return text != NULL && *ret == NULL ? CV_ERR_NOMEM : CV_OK;
}

static enum cv_err free_unless(enum cv_err err, const void *owned) {
  if (err != CV_OK) {
    free((void *)(uintptr_t)owned);
  }
  return err;
}

enum cv_err cv_cobroker_say_turned(struct cv_cobroker_outbox *out, const struct cv_share_turned *message) {
  struct cv_share_turned own = *message;
  CV_TRY(copy(message->why, &own.why));
  return free_unless(SAY(out->frame.turn, out->frame.turned, out->turned_cap, own), own.why);
}

enum cv_err cv_cobroker_say_opened(struct cv_cobroker_outbox *out, const struct cv_share_opened *message) {
  struct cv_share_opened own = *message;
  CV_TRY(copy(message->refused, &own.refused));
  return free_unless(SAY(out->frame.open_answer, out->frame.opened, out->opened_cap, own), own.refused);
}

enum cv_err cv_cobroker_say_plan_refused(struct cv_cobroker_outbox *out, const struct cv_share_refused *message) {
  struct cv_share_refused own = *message;
  CV_TRY(copy(message->why, &own.why));
  return free_unless(SAY(out->frame.plan_refused, out->frame.plans_refused, out->plans_refused_cap, own), own.why);
}

enum cv_err cv_cobroker_say_ended(struct cv_cobroker_outbox *out, const struct cv_share_end *message) {
  struct cv_share_end own = *message;
  CV_TRY(copy(message->why, &own.why));
  return free_unless(SAY(out->frame.end, out->frame.ended, out->ended_cap, own), own.why);
}

enum cv_err cv_cobroker_say_answers(struct cv_cobroker_outbox *out, const struct cv_share_answers *message) {
  struct cv_share_answers own = *message;
  own.answer = malloc(message->answers);
  if (own.answer == NULL) {
    return CV_ERR_NOMEM;
  }
  memcpy(own.answer, message->answer, message->answers);
  return free_unless(SAY(out->frame.answer, out->frame.answers, out->answers_cap, own), own.answer);
}

void cv_cobroker_unsay_closed(struct cv_cobroker_outbox *out, uint64_t campaign) {
  struct cv_share_closed *half = out->frame.half;
  size_t kept = 0;
  for (size_t i = 0; i < out->frame.closed; i++) {
    if (half[i].campaign != campaign) {
      half[kept++] = half[i];
    }
  }
  if (kept < out->frame.closed) {
    explicit_bzero(&half[kept], (out->frame.closed - kept) * sizeof(*half));
  }
  out->frame.closed = kept;
}

bool cv_cobroker_outbox_is_empty(const struct cv_share_frame *frame) {
  return frame->sessions + frame->turned + frame->opened + frame->plans_opened + frame->plans_refused + frame->answers +
                 frame->closed + frame->ended ==
             0 &&
         frame->goodbye == NULL && !frame->hello.present;
}

static void free_text(const char *text) {
  free((void *)(uintptr_t)text);
}

/* Frees what the messages point to, and wipes what is secret in them. */
static void free_messages(struct cv_share_frame *frame) {
  for (size_t i = 0; i < frame->turned; i++) {
    free_text(frame->turn[i].why);
  }
  for (size_t i = 0; i < frame->opened; i++) {
    free_text(frame->open_answer[i].refused);
    explicit_bzero(frame->open_answer[i].key, sizeof(frame->open_answer[i].key));
  }
  for (size_t i = 0; i < frame->plans_refused; i++) {
    free_text(frame->plan_refused[i].why);
  }
  for (size_t i = 0; i < frame->answers; i++) {
    free(frame->answer[i].answer);
  }
  for (size_t i = 0; i < frame->closed; i++) {
    explicit_bzero(&frame->half[i].half, sizeof(frame->half[i].half));
  }
  for (size_t i = 0; i < frame->ended; i++) {
    free_text(frame->end[i].why);
  }
}

void cv_cobroker_outbox_fini(struct cv_cobroker_outbox *out) {
  free_messages(&out->frame);
  free(out->frame.session);
  free(out->frame.turn);
  free(out->frame.open_answer);
  free(out->frame.plan_opened);
  free(out->frame.plan_refused);
  free(out->frame.answer);
  free(out->frame.half);
  free(out->frame.end);
  *out = (struct cv_cobroker_outbox){0};
}

void cv_cobroker_outbox_empty(struct cv_cobroker_outbox *out) {
  enum { KEPT = 256 };
  struct cv_share_frame *frame = &out->frame;
  /* One large frame would otherwise keep its memory for as long as the connection lasts. */
  if (out->sessions_cap + out->turned_cap + out->answers_cap + out->closed_cap + out->ended_cap > KEPT) {
    cv_cobroker_outbox_fini(out);
    return;
  }
  free_messages(frame);
  frame->sessions = frame->turned = frame->opened = frame->plans_opened = frame->plans_refused = 0;
  frame->answers = frame->closed = frame->ended = 0;
  frame->hello.present = false;
  frame->goodbye = NULL;
}
