/* SPDX-License-Identifier: Apache-2.0 */
/* Which peers of the broker speak for which workers (12 in truth.h). */
#ifndef CV_SIM_PEERS_H
#define CV_SIM_PEERS_H

#include "tests/sim/net.h"

/* The broker sends this frame. */
void peers_told(const struct end *end, const struct cv_crowd_frame *frame);
/* The broker has taken the peer, or turned it away. */
void peers_joined(const struct party *peer, bool joined);

#endif
