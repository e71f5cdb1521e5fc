/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a world: faults of the kinds that its scenario has, one after the other, and then none. */
#ifndef CV_SIM_FAULTS_H
#define CV_SIM_FAULTS_H

#include "tests/sim/world.h"

void faults_start(struct world *world);
/* Everything works from here on. */
void faults_end(struct world *world);

#endif
