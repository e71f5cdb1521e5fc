/* SPDX-License-Identifier: Apache-2.0 */
/* What hinders a campaign, in lines for its requester: items whose data are used up, why workers declined it, and a
 * co-broker that is away. */
#ifndef CV_LAUNCHER_HINDRANCE_H
#define CV_LAUNCHER_HINDRANCE_H

#include <jansson.h>
#include <stdio.h>

#include "common/base/spec.h"
#include "proto/codec/order.h"

/*
 * Prints nothing, or lines like "data used up: Roma, 312 of 400" and "declined by 2 connections: epsilon ...", each
 * after `indent`. Of items whose data a limit may keep back it does not say that they are used up. `name` of each arm;
 * NULL: not known.
 */
void cv_hindrance_print(const struct cv_progress *progress, const char *const *name, const char *indent, FILE *to);
/* Adds `used_up`, an array of {item, arm, tokens, wanted} (item: its name, or null), and `declined`, one of {why,
 * connections}, to an object. Takes ownership of it; NULL when out of memory. */
json_t *cv_hindrance_json(json_t *object, const struct cv_progress *progress, const char *const *name);
/* "waits for the co-broker, which ..." while it is away, so that nothing goes on; else NULL. */
const char *cv_hindrance_wait(const struct cv_progress *progress);
/* Whether the two have different hindrances of the former kinds. */
bool cv_hindrance_differs(const struct cv_progress *a, const struct cv_progress *b);

#endif
