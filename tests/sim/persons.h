/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data file of a world whose workers are persons, drawn from the seed: which person has which rows. Some persons
 * have none, some several of one arm; no two rows of a person have the same score.
 */
#ifndef CV_SIM_PERSONS_H
#define CV_SIM_PERSONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/world.h"
#include "worker/quality/persons.h"

/* The persons of all honest gateways, and a few more. */
void persons_draw(const struct scenario *scenario, struct cv_persons *ret);
/* The rows of a worker: none if `from` and `to` are the same. */
void persons_rows(const struct world *world, uint64_t worker, uint64_t *ret_from, uint64_t *ret_to);

#endif
