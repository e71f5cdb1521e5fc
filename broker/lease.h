/* SPDX-License-Identifier: Apache-2.0 */
/* The open assignments of a connection: in one array, a list in the order of deadlines and a list of free entries. */
#ifndef CV_BROKER_LEASE_H
#define CV_BROKER_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/ticket.h"
#include "common/base/err.h"

#define CV_LEASE_NONE UINT32_MAX

struct cv_lease {
  uint64_t worker;
  uint64_t plan;
  uint64_t deadline_ms;
  uint64_t again_ms; /* from then on its place may also be offered to other workers */
  bool again;        /* its place has been offered again */
  uint32_t campaign; /* 0 = free */
  uint64_t question; /* that the worker is asked (question.h) */
  uint32_t item, position, slot;
  uint32_t before, after; /* list links, CV_LEASE_NONE: none; `after` also links the free list */
};

struct cv_leases {
  struct cv_lease *lease; /* `room` entries; owned */
  uint32_t room;
  uint32_t open;              /* entries in use */
  uint32_t free, first, last; /* entries; CV_LEASE_NONE: none */
};

void cv_leases_init(struct cv_leases *leases);
void cv_leases_fini(struct cv_leases *leases);
/* Reserves room for one more lease. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_leases_reserve(struct cv_leases *leases);
/* Appends a lease, for which room was reserved; returns its entry. */
uint32_t cv_leases_add(struct cv_leases *leases, const struct cv_lease *terms);
/* Removes the lease and returns it. */
struct cv_lease cv_leases_take(struct cv_leases *leases, uint32_t at);
/* The open lease under which the ticket was issued; CV_LEASE_NONE if it has ended. */
uint32_t cv_leases_find(const struct cv_leases *leases, const struct cv_ticket *ticket);

#endif
