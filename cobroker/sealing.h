/* SPDX-License-Identifier: Apache-2.0 */
/* The option --seal: the co-broker's master key replaced, or looked at (broker/both/rotate.h). */
#ifndef CV_COBROKER_SEALING_H
#define CV_COBROKER_SEALING_H

#include "cobroker/shell.h"

/* For a mode other than CV_ROTATE_RUN. Returns the exit status. */
CV_MUST_USE int cv_cobroker_seal(const struct cv_cobroker_settings *settings);

#endif
