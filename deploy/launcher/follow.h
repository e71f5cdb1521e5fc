/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a campaign to its end and prints progress and result, for watch and submit --watch. For a campaign against an
 * adversary it also requests the export: regret depends on the order of the pulls, which the result does not have.
 */
#ifndef CV_LAUNCHER_FOLLOW_H
#define CV_LAUNCHER_FOLLOW_H

#include "deploy/launcher/client.h"
#include "deploy/launcher/outcome.h"
#include "deploy/launcher/progress.h"
#include "prepare/prepare.h"

struct cv_follow {
  const struct cv_config_table *table; /* names the command in messages */
  struct cv_view view;
  struct cv_progress hindered; /* the last one shown */
  struct cv_outcome_known known;
  struct cv_spec described;             /* the spec as the broker describes it; arms 0: none */
  const struct cv_adversary *adversary; /* the adversary, if its gains are known; else NULL */
  struct cv_outcome outcome;
  struct cv_export export;
  bool json; /* the result is printed as up --json does, and everything else on standard error */
  bool is_finished;
  int status; /* once it has ended */
};

/*
 * `prepared` is the campaign's file, or NULL, and outlives `follow`. `is_seed_known`: it was prepared with the workers'
 * seed, so the truth of drawn items is known. Names and truth come from the file; a file of another campaign is ignored
 * with one line on standard error. The rest comes from the broker's description, if there is one.
 */
void cv_follow_init(struct cv_follow *follow, const struct cv_config_table *table, const struct cv_prepared *prepared,
                    bool is_seed_known);
/* From now on: the result as one JSON object. */
void cv_follow_json(struct cv_follow *follow);
void cv_follow_fini(struct cv_follow *follow);
/* A cv_lost_fn: clears the view, for the line that follows. */
void cv_follow_lost(void *follow);
/* Handles the answers to a Watch. The Watch must request a description unless the file certainly is the campaign's. */
enum cv_answer cv_follow_answer(struct cv_follow *follow, struct cv_client *client, const struct cv_order_frame *frame);

#endif
