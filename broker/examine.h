/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on the state of a stopped broker: examine it, and recover it. Both print findings. */
#ifndef CV_BROKER_EXAMINE_H
#define CV_BROKER_EXAMINE_H

#include "broker/shell.h"

/* Returns the exit status: 1 if a problem was found. Changes nothing. */
int cv_broker_examine(const struct cv_broker_settings *settings);
/* Returns 0 if the daemon can start now, else 1. */
int cv_broker_recover_state(const struct cv_broker_settings *settings);

#endif
