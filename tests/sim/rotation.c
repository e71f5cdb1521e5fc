/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/rotation.h"

#include <string.h>

#include "common/crypto/secret.h"
#include "tests/sim/tally.h"

void rotation_begin(struct world *world) {
  bool repeats = world->ring.n > 1;
  if (!repeats) {
    CV_REQUIRE(cv_ring_renew(&world->ring, 0) == CV_OK);
  }
  tally_add(TALLY_ROTATIONS_AGAIN, repeats);
  world_log(world, "fault: a rotation of the seal key %s", repeats ? "is repeated" : "begins");
  /* A broker that is down wraps its keys when it starts. */
  if (world->broker->up && !world->broker->dead) {
    broker_rekey(world->broker);
  }
}

void rotation_wrapped(struct world *world) {
  if (world_chance(world, 70)) {
    cv_ring_cut(&world->ring, 1);
    tally(TALLY_ROTATED);
    world_log(world, "the seal key is replaced");
  }
}

void rotation_snapshot(struct world *world) {
  CV_REQUIRE(cv_ring_copy(&world->ring, world->ring.n, &world->snapshot_ring) == CV_OK);
}

/* The keys of that time, at the end, as an operator adds them. */
void rotation_put_back(struct world *world) {
  struct cv_ring *ring = &world->ring;
  for (size_t i = 0; i < world->snapshot_ring.n; i++) {
    const struct cv_ring_key *old = &world->snapshot_ring.item[i];
    struct cv_key_id id = cv_key_id(old->key);
    if (cv_ring_find(ring, &id) == NULL) {
      CV_REQUIRE(ring->n < CV_RING_KEYS);
      ring->item[ring->n] = *old;
      ring->item[ring->n].key = cv_secret_key(old->key);
      CV_REQUIRE(ring->item[ring->n++].key != NULL);
      tally(TALLY_KEYS_PUT_BACK);
    }
  }
}

bool rotation_check_tickets(struct world *world, struct cv_broker_store *store, struct cv_why *why) {
  struct cv_key key;
  if (cv_broker_store_tickets(store, &key, why) != CV_OK) {
    return false;
  }
  struct cv_key_id id = cv_key_id(&key);
  cv_key_wipe(&key);
  bool same = memcmp(&id, &world->tickets, sizeof(id)) == 0, renewed = world->recovered && !world->tickets_renewed;
  if (world->has_tickets && renewed && same) {
    world_fail(world, "17: tickets of the lost time are valid after the recovery");
  }
  if (world->has_tickets && !world->rolled_back && !same) {
    world_fail(world, "17: tickets became void without a recovery");
  }
  world->tickets_renewed = world->recovered;
  world->tickets = id;
  world->has_tickets = true;
  return true;
}

void rotation_fini(struct world *world) {
  cv_ring_fini(&world->ring);
  cv_ring_fini(&world->ring_cobroker);
  cv_ring_fini(&world->snapshot_ring);
}
