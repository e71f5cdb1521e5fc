/* SPDX-License-Identifier: Apache-2.0 */
/* The open assignments of a connection: a list by deadline and a list of free places, in one array. */
#include <stdlib.h>

#include "broker/state.h"

static const uint32_t NONE = CV_LEASE_NONE;

void cv_lease_unlink(struct cv_broker_conn *conn, uint32_t at) {
  struct cv_lease *lease = &conn->lease[at];
  *(lease->before == NONE ? &conn->lease_first : &conn->lease[lease->before].after) = lease->after;
  *(lease->after == NONE ? &conn->lease_last : &conn->lease[lease->after].before) = lease->before;
  lease->campaign = 0;
  lease->after = conn->lease_free;
  conn->lease_free = at;
  conn->outstanding--;
}

enum cv_err cv_lease_room(struct cv_broker_conn *conn) {
  if (conn->lease_free != NONE) {
    return CV_OK;
  }
  uint32_t cap = conn->leases == 0 ? 64 : conn->leases * 2;
  struct cv_lease *grown = realloc(conn->lease, cap * sizeof(*grown));
  if (grown == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = conn->leases; i < cap; i++) {
    grown[i] = (struct cv_lease){.after = i + 1 < cap ? i + 1 : NONE};
  }
  conn->lease = grown;
  conn->lease_free = conn->leases;
  conn->leases = cap;
  return CV_OK;
}

uint32_t cv_lease_link(struct cv_broker_conn *conn, const struct cv_lease *terms) {
  uint32_t at = conn->lease_free;
  struct cv_lease *lease = &conn->lease[at];
  conn->lease_free = lease->after;
  *lease = *terms;
  lease->before = conn->lease_last;
  lease->after = NONE;
  *(conn->lease_last == NONE ? &conn->lease_first : &conn->lease[conn->lease_last].after) = at;
  conn->lease_last = at;
  conn->outstanding++;
  return at;
}
