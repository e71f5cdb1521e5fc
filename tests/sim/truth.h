/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold (docs and tests number them):
 *   1 a token that was acknowledged is in exactly one epoch's sum, once; an epoch has exactly the planned tokens
 *   2 a release that may have left the broker never changes, nor does the noise of an epoch that was opened
 *   3 what leaves was charged before: workers' accounts, arms' epsilon
 *   4 what the third-party has can be replayed
 *   6 queues are bounded
 *   7 with noise that is a function of the place, the end is that of the run without faults
 * Told what is said and stored, it fails the world at the first thing that does not fit. It knows each place's score.
 */
#ifndef CV_SIM_TRUTH_H
#define CV_SIM_TRUTH_H

#include "broker/core.h"
#include "tests/sim/ranker.h"
#include "tests/sim/world.h"

struct truth *truth_new(struct world *world);
void truth_free(struct truth *truth);

/* The broker's core has closed a batch; it is stored and anchored; it has started again from what was stored. */
void truth_flushed(struct truth *truth, struct cv_broker *core);
void truth_stored(struct truth *truth, uint64_t commit);
void truth_restarted(struct truth *truth, struct cv_broker *core);
/* Leaves the broker. */
void truth_told_crowd(struct truth *truth, const struct cv_crowd_frame *frame);
void truth_told_rank(struct truth *truth, const struct cv_rank_frame *frame);
void truth_thirdparty_lost(struct truth *truth);
/* Reaches the requester. */
void truth_finished(struct truth *truth, const struct cv_finished *finished);
void truth_exported(struct truth *truth, const struct cv_part *part);

/* Going back: the snapshot's moment, whether enough has happened since, whether the database is behind its anchor. */
void truth_snapshot(struct truth *truth);
bool truth_has_moved(const struct truth *truth);
bool truth_is_behind(const struct truth *truth);
void truth_rolled_back(struct truth *truth);

/* Everybody has been told the end and it is quiet. */
void truth_end(struct truth *truth);

/* For the one that looks into the tickets that the broker says something about. */
const struct cv_tagger *world_tagger(struct world *world);

#endif
