/* SPDX-License-Identifier: Apache-2.0 */
/* broker/store/remote.h over the simulated server: what broker/standby.c calls. */
#ifndef CV_SIM_REMOTE_H
#define CV_SIM_REMOTE_H

#include "broker/store/remote.h"
#include "tests/sim/server.h"

/* The table; the next `open` is this party's. */
const struct cv_remote_ops *remote_of(struct party *party);
struct session *remote_session(const struct cv_remote *remote);
/* The server will not learn that the process has ended. */
void remote_linger(struct cv_remote *remote);

#endif
