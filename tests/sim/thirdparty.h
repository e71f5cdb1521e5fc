/* SPDX-License-Identifier: Apache-2.0 */
/* What the third-party reports to the truth, in types that both include. */
#ifndef CV_SIM_THIRDPARTY_H
#define CV_SIM_THIRDPARTY_H

#include "proto/codec/rank.h"
#include "tests/sim/world.h"

/* The frame leaves the third-party. */
void truth_thirdparty_told(struct truth *truth, const struct cv_rank_frame *frame);
/* The third-party has stored this state. */
void truth_thirdparty_stored(struct truth *truth, uint64_t campaign, uint64_t releases, uint64_t plans);

/* Runs the policy again over the third-party's database, which is copied to a file at `path`. The third-party must
 * not run afterwards. */
void thirdparty_replay(struct party *party, const char *path);

#endif
