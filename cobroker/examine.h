/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on a co-broker's state: examine or recover that of a stopped one, which prints findings, and check a
 * copy. */
#ifndef CV_COBROKER_EXAMINE_H
#define CV_COBROKER_EXAMINE_H

#include "cobroker/shell.h"

/* Returns the exit status: 1 if a problem was found. Changes nothing. */
int cv_cobroker_examine(const struct cv_cobroker_settings *settings);
/* Returns 0 if the daemon can start now, else 1. */
int cv_cobroker_recover_state(const struct cv_cobroker_settings *settings);

/* A cv_backup_check_fn over struct cv_cobroker_settings. It reads the seal key, which the rows' codes need. */
CV_MUST_USE enum cv_err cv_cobroker_check_copy(const void *settings, const char *path, uint64_t *ret_commit,
                                               struct cv_why *why);

#endif
