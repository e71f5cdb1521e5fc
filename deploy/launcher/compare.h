/* SPDX-License-Identifier: Apache-2.0 */
/* Two rankings of the same items, side by side. */
#ifndef CV_LAUNCHER_COMPARE_H
#define CV_LAUNCHER_COMPARE_H

#include <jansson.h>
#include <stdio.h>

#include "deploy/launcher/compared.h"

/* CV_ERR_INVALID unless both have the same items with the same true classes. `path` names their files. */
CV_MUST_USE enum cv_err cv_compare_check(const struct cv_compared of[2], const char *const path[2], struct cv_why *why);

/*
 * The next two take results that cv_compare_check() accepts. Items are in the order of their true classes, or, where
 * these are unknown, of the first result's classes, undecided ones last.
 */

/* Prints a line an item, then totals, in 80 columns up to 9,999,999,999 tokens; long names are cut. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_compare_print(const struct cv_compared of[2], FILE *to);
/* One object, as docs/campaigns.md says. NULL when out of memory. The caller owns it. */
json_t *cv_compare_json(const struct cv_compared of[2]);

#endif
