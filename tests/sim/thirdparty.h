/* SPDX-License-Identifier: Apache-2.0 */
/* What the third-party tells the truth about: in words that both know. */
#ifndef CV_SIM_THIRDPARTY_H
#define CV_SIM_THIRDPARTY_H

#include "proto/codec/rank.h"
#include "tests/sim/world.h"

/* Leaves the third-party. */
void truth_thirdparty_told(struct truth *truth, const struct cv_rank_frame *frame);
/* Is stored at the third-party. */
void truth_thirdparty_stored(struct truth *truth, uint64_t campaign, uint64_t releases, uint64_t plans);

/* Runs the policy again over the third-party's database, by way of a file at `path`; then it does nothing more. */
void thirdparty_replay(struct party *party, const char *path);

#endif
