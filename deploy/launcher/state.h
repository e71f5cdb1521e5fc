/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on a broker's or co-broker's state: its own program does the work; its findings are the command's output. */
#ifndef CV_LAUNCHER_STATE_H
#define CV_LAUNCHER_STATE_H

#include <stdbool.h>

#include "common/config/config.h"

/*
 * Runs `crowdveil-broker --config FILE OPTIONS...`, or crowdveil-cobroker; `options` ends with NULL. `word` is the
 * configuration file, or a folder with broker.yaml. Prints the findings; of a failure only the last one, as the
 * command's error. Returns the exit status.
 */
int cv_state_command(const struct cv_config_table *table, const char *word, const char *const *options, bool json);

#endif
