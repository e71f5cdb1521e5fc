/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of a world: of the kinds that its scenario has, one after another; after the last one, none. */
#ifndef CV_SIM_FAULTS_H
#define CV_SIM_FAULTS_H

#include "tests/sim/world.h"

void faults_start(struct world *world);
/* No more faults from here on. */
void faults_end(struct world *world);
/* The co-broker's disk goes back to an older copy: first it is copied, at the next call put back. */
void faults_roll_back_cobroker(struct world *world);

/* The party handles no event for this time, and then all of them. */
void faults_stand_still(struct party *party, uint64_t ms);
/* The broker, for this fault; of two that share a database mostly the active one. */
struct party *faults_some_broker(struct world *world, enum fault fault);
/* One of the faults of a shared database. */
void faults_of_server(struct world *world, enum fault fault);

#endif
