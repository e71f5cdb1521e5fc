/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following a campaign to its end and printing what it came to: for watch, and for submit --watch. Against an adversary
 * it takes more than the result to say what was lost: the campaign's export is asked for, too.
 */
#ifndef CV_LAUNCHER_FOLLOW_H
#define CV_LAUNCHER_FOLLOW_H

#include "deploy/launcher/client.h"
#include "deploy/launcher/outcome.h"
#include "deploy/launcher/prepare.h"
#include "deploy/launcher/progress.h"

struct cv_follow {
  const struct cv_config_table *table; /* of the command, for its messages */
  struct cv_progress_view view;
  struct cv_outcome_known known;
  struct cv_spec described;             /* by the broker; arms 0: not */
  const struct cv_adversary *adversary; /* whose gains are known; or NULL */
  struct cv_outcome outcome;
  struct cv_export export;
  bool is_finished;
  int status; /* once it has ended */
};

/*
 * `prepared` is the campaign's file, or NULL, and outlives this. The truth of items that are drawn is known only if
 * their seed is: `is_seed_known`. Names and truth come from the file, unless it is another campaign's, which is said in
 * one line on standard error; the rest is as the broker describes it, if it does.
 */
void cv_follow_init(struct cv_follow *follow, const struct cv_config_table *table, const struct cv_prepared *prepared,
                    bool is_seed_known);
void cv_follow_fini(struct cv_follow *follow);
/* For the answers to a Watch, which asks for a description unless the file is sure to be the campaign's. */
enum cv_answer cv_follow_answer(struct cv_follow *follow, struct cv_client *client, const struct cv_order_frame *frame);

#endif
