/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/peers.h"

#include <string.h>

#include "tests/sim/tally.h"
#include "tests/sim/truth.h"

/* 12: a worker that is asked, or whose token counts, is in the range of the peer's certificate. */
static void check_range(struct world *world, const struct party *peer, const struct cv_crowd_frame *frame) {
  for (size_t i = 0; i < frame->assigns; i++) {
    if (!cv_identity_vouches_for(&peer->identity, frame->assign[i].worker)) {
      world_fail(world, "12: %s is asked for worker %llu", peer->identity.name,
                 (unsigned long long)frame->assign[i].worker);
    }
  }
  for (size_t i = 0; i < frame->acks; i++) {
    struct cv_ticket ticket;
    bool counts = frame->ack[i].verdict == CV_VERDICT_ACCEPTED || frame->ack[i].verdict == CV_VERDICT_DUPLICATE;
    if (counts && cv_ticket_open(frame->ack[i].ticket, world_tagger(world), &ticket) == CV_OK &&
        !cv_identity_vouches_for(&peer->identity, ticket.worker)) {
      world_fail(world, "12: %s gives a token for worker %llu", peer->identity.name, (unsigned long long)ticket.worker);
    }
  }
}

/* 12: a peer that is replaced has connected again. */
static void check_replaced(const struct end *end) {
  const struct party *peer = end->other->party;
  for (const struct cable *cable = peer->world->cables; cable != end->cable; cable = cable->next) { /* later ones */
    const struct cv_identity *other = &cable->end[0].party->identity;
    if (other->role == peer->identity.role && strcmp(other->name, peer->identity.name) == 0) {
      return;
    }
  }
  world_fail(peer->world, "12: %s is replaced without a newer connection", peer->identity.name);
}

void peers_told(const struct end *end, const struct cv_crowd_frame *frame) {
  check_range(end->party->world, end->other->party, frame);
  if (frame->goodbye != NULL) {
    check_replaced(end);
  }
}

/* The tallies are in the order of enum rival. */
void peers_joined(const struct party *peer, bool joined) {
  const struct world *world = peer->world;
  for (uint32_t i = 0; i < world->scenario.rivals; i++) {
    const struct party *rival = &world->party[world->first_rival + i];
    if (joined) {
      tally_add(TALLY_SAME, peer == rival && world->scenario.rival[i] == RIVAL_SAME);
    } else if (peer == rival) {
      tally((enum tally)(TALLY_AWAY_WORKER + world->scenario.rival[i]));
    } else if (rival->end != NULL && peer->ops != &party_rival) {
      tally((enum tally)(TALLY_WAITS_WORKER + world->scenario.rival[i]));
    }
  }
}
