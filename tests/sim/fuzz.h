/* SPDX-License-Identifier: Apache-2.0 */
/* Malformed input, for the hostile parties. */
#ifndef CV_SIM_FUZZ_H
#define CV_SIM_FUZZ_H

#include "tests/sim/net.h"

/* Sends the bytes in world->bytes with some of them changed, removed or added, or a stream that cannot be split into
 * frames. */
void fuzz_send(struct world *world, struct end *end);

#endif
