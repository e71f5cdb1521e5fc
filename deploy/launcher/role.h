/* SPDX-License-Identifier: Apache-2.0 */
/* Which party a configuration file is for, and the program of that party. */
#ifndef CV_LAUNCHER_ROLE_H
#define CV_LAUNCHER_ROLE_H

#include "common/config/document.h"
#include "common/net/identity.h"

/*
 * Determines the party by the keys that only its configuration has; CV_ROLE_GATEWAY stands for workers, too.
 * CV_ERR_INVALID, with `path` in `why`, if it is no party's.
 */
CV_MUST_USE enum cv_err cv_launcher_role(struct cv_yaml *yaml, const char *path, enum cv_role *ret, struct cv_why *why);
/* "crowdveil-broker" and so on; of a broker whose configuration says `store`, which need not be readable, the program
 * with a client of such databases. */
const char *cv_launcher_program_of(enum cv_role role, const char *config);

#endif
