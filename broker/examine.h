/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker's program does with its own stopped state: examine it, and recover it. Both print findings. */
#ifndef CV_BROKER_EXAMINE_H
#define CV_BROKER_EXAMINE_H

#include "broker/shell.h"

/* The exit status: 1 if something is wrong. Changes nothing. */
int cv_broker_examine(const struct cv_broker_settings *settings);
/* 0 if the daemon can start now, 1 if it cannot. */
int cv_broker_recover_state(const struct cv_broker_settings *settings);

#endif
