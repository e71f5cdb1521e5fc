/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/follow.h"

#include <stdio.h>

#include "common/base/clock.h"

void cv_follow_init(struct cv_follow *follow, const struct cv_prepared *prepared, bool is_seed_known) {
  *follow = (struct cv_follow){.status = 1};
  cv_progress_view_init(&follow->view, stdout);
  if (prepared != NULL) {
    const struct cv_items *items = &prepared->file.items;
    /* Against an adversary means say little: what counts is when an arm was pulled, which only an export tells. */
    bool is_fixed = items->source != CV_SOURCE_ADVERSARY &&
                    (items->source != CV_SOURCE_SYNTHETIC || items->has_seed || is_seed_known);
    follow->known = (struct cv_outcome_known){.kind = prepared->kind,
                                              .spec = &prepared->file.spec,
                                              .name = prepared->source.name,
                                              .mean = is_fixed ? prepared->truth : NULL};
  }
}

static enum cv_answer on_finished(struct cv_follow *follow, const struct cv_finished *finished) {
  struct cv_outcome outcome;
  struct cv_outcome_known known = follow->known;
  if (known.spec != NULL && known.spec->arms != finished->progress.arms) {
    known = (struct cv_outcome_known){0}; /* another campaign's file */
  }
  cv_progress_end(&follow->view);
  if (cv_outcome_init(&outcome, finished, &known) != CV_OK) {
    return CV_ANSWER_FAILED;
  }
  cv_outcome_print(&outcome, stdout);
  cv_outcome_fini(&outcome);
  follow->status = cv_end_status(finished->progress.end);
  return CV_ANSWER_DONE;
}

enum cv_answer cv_follow_answer(struct cv_follow *follow, const struct cv_order_frame *frame) {
  if (frame->kind == CV_ORDER_FINISHED) {
    return on_finished(follow, &frame->as.finished);
  }
  if (frame->kind == CV_ORDER_PROGRESS) {
    cv_progress_show(&follow->view, &frame->as.progress, cv_clock_mono_ms());
  }
  return CV_ANSWER_MORE;
}
