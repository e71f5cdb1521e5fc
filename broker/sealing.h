/* SPDX-License-Identifier: Apache-2.0 */
/* The option --seal: the broker's master key replaced, or looked at (both/rotate.h). */
#ifndef CV_BROKER_SEALING_H
#define CV_BROKER_SEALING_H

#include "broker/shell.h"

/* For a mode other than CV_ROTATE_RUN. Returns the exit status. */
CV_MUST_USE int cv_broker_seal(const struct cv_broker_settings *settings);

#endif
