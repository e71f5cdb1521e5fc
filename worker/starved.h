/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory, jansson reports a syntax error or drops a part of the text. So failed allocations are recorded: watch,
 * parse, and ask before anything of the result is used. One thread only.
 */
#ifndef CV_WORKER_STARVED_H
#define CV_WORKER_STARVED_H

#include <stdbool.h>

/* From now on jansson allocates through this module, which forgets what failed before. */
void cv_starved_watch(void);
/* Whether an allocation has failed since. */
bool cv_starved_failed(void);

#endif
