/* SPDX-License-Identifier: Apache-2.0 */
/* A result as JSON. */
#ifndef CV_LAUNCHER_RESULT_JSON_H
#define CV_LAUNCHER_RESULT_JSON_H

#include <jansson.h>
#include <stdio.h>

#include "deploy/launcher/outcome.h"

/*
 * One object: campaign, policy, classes (arrays of item names, best first), undecided, truth (the same shape, or null),
 * accuracy (of the decided items; or null), wrong (names of decided items; or null), item_tokens (an object: each
 * item's tokens by its name), tokens, rounds, epsilon_spent_micro, seconds, tokens_per_second, over_sum_bound,
 * over_pair_bound (tokens over the bounds of prepare/bound.h; or null). For a policy that is not a ranking: as in
 * pulls.h. NULL when out of memory. The caller owns it.
 */
json_t *cv_result_json(const struct cv_outcome *outcome, const char *policy);
/* Prints it on one line of standard output, with `data` and `unit` of a data file (exposure.h, unit.h), `used_up` and
 * `declined` (hindrance.h). */
void cv_result_print_json(const struct cv_outcome *outcome, const char *policy);

#endif
