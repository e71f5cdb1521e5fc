/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/lease.h"

#include <stdlib.h>

#include "common/base/array.h"

static const uint32_t NONE = CV_LEASE_NONE;

void cv_leases_init(struct cv_leases *leases) {
  *leases = (struct cv_leases){.free = NONE, .first = NONE, .last = NONE};
}

void cv_leases_fini(struct cv_leases *leases) {
  free(leases->lease);
  cv_leases_init(leases);
}

enum cv_err cv_leases_reserve(struct cv_leases *leases) {
  if (leases->free != NONE) {
    return CV_OK;
  }
  size_t room = leases->room;
  CV_TRY(CV_ARRAY_ROOM(leases->lease, room + 1, room));
  /* The entries that the array grew by become the free list. */
  for (uint32_t i = leases->room; i < room; i++) {
    leases->lease[i] = (struct cv_lease){.after = i + 1 < room ? i + 1 : NONE};
  }
  leases->free = leases->room;
  leases->room = (uint32_t)room;
  return CV_OK;
}

uint32_t cv_leases_add(struct cv_leases *leases, const struct cv_lease *terms) {
  uint32_t at = leases->free;
  struct cv_lease *lease = &leases->lease[at];
  leases->free = lease->after;
  *lease = *terms;
  /* All leases last equally long, so the end of the list is the place in the order of deadlines. */
  lease->before = leases->last;
  lease->after = NONE;
  *(leases->last == NONE ? &leases->first : &leases->lease[leases->last].after) = at;
  leases->last = at;
  leases->open++;
  return at;
}

struct cv_lease cv_leases_take(struct cv_leases *leases, uint32_t at) {
  struct cv_lease *lease = &leases->lease[at], taken = *lease;
  *(lease->before == NONE ? &leases->first : &leases->lease[lease->before].after) = lease->after;
  *(lease->after == NONE ? &leases->last : &leases->lease[lease->after].before) = lease->before;
  lease->campaign = 0;
  lease->after = leases->free;
  leases->free = at;
  leases->open--;
  return taken;
}

uint32_t cv_leases_find(const struct cv_leases *leases, const struct cv_ticket *ticket) {
  if (ticket->lease >= leases->room) {
    return NONE;
  }
  /* The ticket's entry may have been reused since: only if every field agrees is it still the same assignment. */
  const struct cv_lease *lease = &leases->lease[ticket->lease];
  bool is_same = lease->campaign == ticket->campaign && lease->plan == ticket->plan && lease->item == ticket->item &&
                 lease->position == ticket->position && lease->worker == ticket->worker && lease->slot == ticket->slot;
  return is_same ? ticket->lease : NONE;
}
