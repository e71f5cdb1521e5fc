/* SPDX-License-Identifier: Apache-2.0 */
/* Following a campaign to its end and printing what it came to: for watch, and for submit --watch. */
#ifndef CV_LAUNCHER_FOLLOW_H
#define CV_LAUNCHER_FOLLOW_H

#include "deploy/launcher/client.h"
#include "deploy/launcher/prepare.h"
#include "deploy/launcher/progress.h"
#include "deploy/launcher/table.h"

struct cv_follow {
  struct cv_progress_view view;
  struct cv_outcome_known known;
  int status; /* once it has ended */
};

/*
 * `prepared` is the campaign's file, or NULL. The truth of synthetic items is known only if their seed is:
 * `is_seed_known`.
 */
void cv_follow_init(struct cv_follow *follow, const struct cv_prepared *prepared, bool is_seed_known);
/* For the answers to a Watch. */
enum cv_answer cv_follow_answer(struct cv_follow *follow, const struct cv_order_frame *frame);

#endif
