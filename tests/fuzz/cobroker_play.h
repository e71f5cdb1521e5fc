/* SPDX-License-Identifier: Apache-2.0 */
/* What bytes make happen in a co-broker's world. */
#ifndef CV_FUZZ_COBROKER_PLAY_H
#define CV_FUZZ_COBROKER_PLAY_H

#include "tests/fuzz/cobroker_world.h"

/* The next event: one byte, which is its place in a list, and its arguments. False when it has ended the world: a
 * damaged disk was refused. */
bool play_event(struct world *world, struct cv_reader *in);
/* A flush and a commit. */
void play_turn(struct world *world);
/* The process ends, and starts again; the batch in flight may have been stored. False as above. */
bool play_crash(struct world *world, bool stored);

#endif
