/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker, or a co-broker, that lies to the other one, or to workers: its core is honest, and some of its messages are
 * changed on their way. What the honest one then does must hold as always (two.h); a lie may end its campaign, and then
 * a log says whose it was.
 */
#ifndef CV_SIM_LIES_H
#define CV_SIM_LIES_H

#include "common/base/log_line.h"
#include "proto/codec/share.h"
#include "tests/sim/net.h"

/* Sends a frame of broker or co-broker, changed if it is one to lie in. */
void lies_send(struct world *world, struct end *end, const struct cv_share_frame *frame);
/* Later both brokers connect anew, and say what they have. */
void lies_meet_again(struct world *world, uint64_t delay_ms);
/* Broker or co-broker has logged a line, or has closed a connection for that reason. */
void lies_noted(struct world *world, const struct cv_note *note);
void lies_blamed(struct world *world, const struct party *peer, const char *why);

#endif
