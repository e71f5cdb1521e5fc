/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data file of a world whose workers are persons, as the seed has it: who has which rows. Some persons have none,
 * some several of one arm; no two rows of a person have the same score.
 */
#ifndef CV_SIM_PERSONS_H
#define CV_SIM_PERSONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/world.h"
#include "worker/quality/persons.h"

/* Of all honest gateways, and a few more. */
void persons_draw(const struct scenario *scenario, struct cv_persons *ret);
/* Whose rows a worker has: none if `from` and `to` are the same. */
void persons_rows(const struct world *world, uint64_t worker, uint64_t *ret_from, uint64_t *ret_to);

#endif
