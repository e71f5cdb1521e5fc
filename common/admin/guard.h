/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which connections of a server leave, so that others find room: those that take too long, and those that are too many.
 * Pure: time is an argument, and each step takes the same time, however many connections there are.
 *
 * A connection owes something unless it waits for the server. When there are too many, one that owes leaves: the oldest
 * of the address that has most of them, where an age counts from the beginning of what is owed. So an attacker's
 * connections push out each other, and not those of other addresses.
 */
#ifndef CV_ADMIN_GUARD_H
#define CV_ADMIN_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum cv_guest_state {
  CV_GUEST_HEAD,   /* owes the head of its first request */
  CV_GUEST_BODY,   /* owes the rest of a request */
  CV_GUEST_ANSWER, /* owes to read an answer, or the present piece of one */
  CV_GUEST_KEPT,   /* owes the head of a further request */
  CV_GUEST_WAITS,  /* waits for the server */
  CV_GUEST_STATES
};

struct cv_guard_limits {
  unsigned connections;         /* in all */
  unsigned address;             /* of one address, of those that owe something */
  unsigned heads;               /* in CV_GUEST_HEAD */
  unsigned most;                /* that can ever be there: also those that are dropped and have not left yet */
  uint64_t ms[CV_GUEST_STATES]; /* longest time in a state; 0: no limit */
};

struct cv_guard;
struct cv_guest;

/* `drop` ends the connection of `whose`, for which cv_guard_leave() follows later. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_guard_new(const struct cv_guard_limits *limits, void (*drop)(void *whose),
                                     struct cv_guard **ret);
/* No guest may be there. NULL does nothing. */
void cv_guard_free(struct cv_guard *guard);

/* A new connection, in CV_GUEST_HEAD. `address`: its number; a crowd, such as all that comes through a proxy, may have
 * more connections than an address. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_guard_enter(struct cv_guard *guard, uint64_t address, bool is_crowd, void *whose,
                                       uint64_t now_ms, struct cv_guest **ret);
/* Also from a state into itself, which begins anew. */
void cv_guard_move(struct cv_guard *guard, struct cv_guest *guest, enum cv_guest_state to, uint64_t now_ms);
/* The connection counts for another address from now on; for the one it has if memory is out. */
void cv_guard_rename(struct cv_guard *guard, struct cv_guest *guest, uint64_t address, bool is_crowd);
enum cv_guest_state cv_guest_state(const struct cv_guest *guest);
void cv_guard_leave(struct cv_guard *guard, struct cv_guest *guest);

/* Drops those whose time is over. */
void cv_guard_expire(struct cv_guard *guard, uint64_t now_ms);
/* When the next time is over; UINT64_MAX: never. */
uint64_t cv_guard_due_ms(const struct cv_guard *guard);

#endif
