/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on a broker's state: examine and recover that of a stopped one (both print findings), check a copy. */
#ifndef CV_BROKER_EXAMINE_H
#define CV_BROKER_EXAMINE_H

#include "broker/shell.h"

/* Returns the exit status: 1 if a problem was found. Changes nothing. */
int cv_broker_examine(const struct cv_broker_settings *settings);
/* Returns 0 if the daemon can start now, else 1. */
int cv_broker_recover_state(const struct cv_broker_settings *settings);

/* A cv_backup_check_fn over struct cv_broker_settings. It reads the seal key, which the rows' codes need. */
CV_MUST_USE enum cv_err cv_broker_check_copy(const void *settings, const char *path, uint64_t *ret_commit,
                                             struct cv_why *why);

#endif
