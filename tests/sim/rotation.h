/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator who replaces the broker's master key (`world->ring` is the key file): a new key in front, the broker
 * wraps its keys, the old key is dropped. Operator and broker may die in between; the operator repeats it later. Copies
 * of the disk are put back with the keys of their time.
 */
#ifndef CV_SIM_ROTATION_H
#define CV_SIM_ROTATION_H

#include "broker/store.h"
#include "tests/sim/world.h"

/* Begins a rotation, or repeats one that was interrupted. */
void rotation_begin(struct world *world);
/* The broker has wrapped its keys: the operator drops the old ones, or dies before. */
void rotation_wrapped(struct world *world);
/* The broker's disk is copied; the copy will be put back. */
void rotation_snapshot(struct world *world);
void rotation_put_back(struct world *world);
/* 17: tickets are authenticated by the same key over all rotations and restarts, and by another one after a recovery.
 * False if it cannot be read: the broker does not start. */
bool rotation_check_tickets(struct world *world, struct cv_broker_store *store, struct cv_why *why);
void rotation_fini(struct world *world);

#endif
