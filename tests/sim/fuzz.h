/* SPDX-License-Identifier: Apache-2.0 */
/* For those who mean harm. */
#ifndef CV_SIM_FUZZ_H
#define CV_SIM_FUZZ_H

#include "tests/sim/net.h"

/* Sends what is in world->bytes with some bytes changed, cut off or added, or a stream that is no frames. */
void fuzz_send(struct world *world, struct end *end);

#endif
