/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer whose certificate covers workers that another certificate covers as well. It connects, lets some of them
 * arrive, gives no token, and disconnects. The peer that was connected first keeps its connection.
 */
#include <stdio.h>
#include <string.h>

#include "proto/codec/crowd.h"
#include "tests/sim/net.h"

enum { TIMER_ACT, ACT_MS = 60, ARRIVALS = 3, EDGE = 3 };

struct cv_identity rival_identity(const struct scenario *scenario, uint32_t number) {
  uint64_t first = 1 + (uint64_t)scenario->rival_victim * scenario->pool_workers;
  uint64_t last = first + scenario->pool_workers - 1, worker = first + scenario->rival_worker;
  struct cv_identity identity = {.role = CV_ROLE_GATEWAY, .first = worker, .last = worker};
  switch (scenario->rival[number]) {
    case RIVAL_WORKER:
      identity.role = CV_ROLE_WORKER;
      break;
    case RIVAL_ALONE:
      break;
    case RIVAL_AROUND:
      identity.first = first - (first > 1);
      identity.last = last + 1;
      break;
    case RIVAL_INSIDE:
      identity.first = first + 1;
      identity.last = last - 1;
      break;
    case RIVAL_BELOW:
      identity.first = first > EDGE ? first - EDGE : 1;
      identity.last = first;
      break;
    case RIVAL_ABOVE:
      identity.first = last;
      identity.last = last + EDGE;
      break;
    default:
      identity.first = first;
      identity.last = last;
      break;
  }
  if (identity.role == CV_ROLE_WORKER) {
    (void)snprintf(identity.name, sizeof(identity.name), "%llu", (unsigned long long)identity.first);
  } else {
    (void)snprintf(identity.name, sizeof(identity.name), "%llu-%llu", (unsigned long long)identity.first,
                   (unsigned long long)identity.last);
  }
  return identity;
}

static void opened(struct party *party, struct end *end) {
  struct world *world = party->world;
  uint64_t worker[ARRIVALS], n = party->identity.last - party->identity.first + 1;
  struct cv_arrive arrive = {.workers = n < ARRIVALS ? n : ARRIVALS, .worker = worker, .credit = 2};
  const struct cv_crowd_frame frame = {
      .hello = {.present = true, .version = CV_WIRE_VERSION, .program = "rival"}, .arrives = 1, .arrive = &arrive};
  party_opened(party, end);
  for (size_t i = 0; i < arrive.workers; i++) {
    worker[i] = party->identity.first + world_below(world, n);
  }
  net_send_frame(end, &CV_CROWD_WIRE, &frame);
}

static void frame(struct party *party, struct end *end, const uint8_t *bytes, size_t n) {
  struct cv_crowd_frame frame;
  CV_REQUIRE(cv_crowd_decode(bytes, n, &party->world->decoding, &frame) == CV_OK);
}

static void timer(struct party *party, int which) {
  struct world *world = party->world;
  party->stays_away = world->calm_ms != 0;
  if (party->end != NULL && (party->stays_away || world_chance(world, 15))) {
    net_close(party->end);
    party->end = NULL;
  }
  party_after(party, ACT_MS, TIMER_ACT);
}

static bool start(struct party *party, struct cv_why *why) {
  party_after(party, ACT_MS, TIMER_ACT);
  return true;
}

const struct party_ops party_rival = {
    .start = start, .stop = party_self_free, .opened = opened, .frame = frame, .closed = party_closed, .timer = timer};
