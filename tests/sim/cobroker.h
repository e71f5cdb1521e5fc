/* SPDX-License-Identifier: Apache-2.0 */
/* The co-broker of a world that has one. */
#ifndef CV_SIM_COBROKER_H
#define CV_SIM_COBROKER_H

#include "common/base/split.h"
#include "tests/sim/world.h"

struct cv_cobroker;

/* The core of a co-broker that is up. */
struct cv_cobroker *cobroker_core(const struct party *cobroker);
/* The list of revoked certificates gets this one: its sessions end. */
void cobroker_revoke(struct party *cobroker, const char *serial);
/* The keys of broker and co-broker. */
struct cv_duo world_duo(const struct world *world);

#endif
