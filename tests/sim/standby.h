/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of two brokers that share a database: broker/standby.c as it is, with a storage thread that takes time, over the
 * simulated server. While that thread works the broker ticks, and may die, be frozen, cut off, overtaken or asked to
 * stop.
 *
 * What the standby must do is checked here (S in truth.h).
 */
#ifndef CV_SIM_STANDBY_H
#define CV_SIM_STANDBY_H

#include "common/daemon/turn.h"
#include "tests/sim/world.h"

struct cv_broker_store;
struct standby;

/* What the standby needs of its broker, as the functions of struct cv_standby. */
struct standby_ops {
  enum cv_err (*load)(struct party *party, struct cv_broker_store *store, struct cv_why *why);
  void (*unload)(struct party *party);
  void (*active)(struct party *party);
};

/* The party's timers with these numbers are standby_timer()'s. */
enum { STANDBY_WORK = 100, STANDBY_WORKED };

/* After an error, too, it is to be closed. */
CV_MUST_USE enum cv_err standby_open(struct party *party, struct cv_turn *turn, const struct standby_ops *ops,
                                     struct standby **ret, struct cv_why *why);
void standby_tick(struct standby *standby);
void standby_timer(struct standby *standby, int which);
/* A batch with rows has been committed. */
void standby_stored(struct standby *standby);
/* The term that it loads is still the database's. */
bool standby_is_latest(const struct standby *standby);
/* The server does not answer. */
bool standby_is_silent(const struct standby *standby);
void standby_leave(struct standby *standby);
/* `lingers`: the server does not learn that the process has ended. */
void standby_close(struct standby *standby, bool lingers);

/* The standby of a broker that is up; NULL: it has none. */
struct standby *broker_standby(const struct party *broker);
/* The broker has a step to make, makes it now, and has the term after it. */
bool standby_overtakes(struct party *broker);
/* Begins to watch how long no broker serves. */
void standby_watch(struct world *world);
/* A fault of this kind happens to the brokers or their server. */
void standby_shaken(struct world *world, enum fault fault);

#endif
