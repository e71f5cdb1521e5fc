/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gateway that means harm: it answers with what is out of range, or twice, or late, or not at all; sends old tickets
 * again with other values once they are acknowledged, and forged ones; and lets far too many workers arrive.
 *
 * An honest first answer is part of its repertoire, so that what it does later meets places that it has filled.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "proto/codec/crowd.h"
#include "tests/sim/fuzz.h"
#include "tests/sim/net.h"

enum { TIMER_ACT, ACT_MS = 40, KEPT = 64, LATE = 16, TOKENS = 64, ARRIVALS = 40, FAVOURITES = 8 };

struct ticket {
  uint8_t bytes[CV_TICKET_BYTES];
  int64_t value;
};

struct self {
  struct end *end;
  struct ticket kept[KEPT]; /* acknowledged, or refused */
  size_t kept_n;
  struct ticket late[LATE]; /* to be answered when their workers have others */
  size_t late_n;
  bool greeted;
  struct cv_token token[TOKENS];
  int64_t value[TOKENS];
  size_t tokens;
};

static void put_token(struct self *self, const uint8_t *ticket, int64_t value) {
  if (self->tokens < TOKENS) {
    struct cv_token *token = &self->token[self->tokens];
    memcpy(token->ticket, ticket, CV_TICKET_BYTES);
    self->value[self->tokens] = value;
    token->values = 1;
    token->value = &self->value[self->tokens++];
  }
}

/* The worst that can be said about a place that is filled already. */
static int64_t lie(struct world *world) {
  return world_chance(world, 50) ? 0 : CV_GRID;
}

static void answer(struct party *party, const struct cv_assign *assign) {
  struct self *self = party->self;
  struct world *world = party->world;
  const struct cv_local *law = &world->scenario.applied.law;
  int64_t value = world_value(&world->scenario, assign->arm.one, assign->place);
  switch (world_below(world, 6)) {
    case 0: /* silence, for now */
      self->late[self->late_n % LATE].value = value;
      memcpy(self->late[self->late_n++ % LATE].bytes, assign->ticket, CV_TICKET_BYTES);
      return;
    case 1:
      put_token(self, assign->ticket, world_chance(world, 50) ? law->high + 1 : law->low - 1);
      return;
    case 2:
      put_token(self, assign->ticket, value);
      put_token(self, assign->ticket, lie(world)); /* the first one counts */
      return;
    case 3:
      put_token(self, assign->ticket, INT64_MIN);
      put_token(self, assign->ticket, value);
      return;
    default:
      put_token(self, assign->ticket, value);
      return;
  }
}

static void misbehave(struct party *party) {
  struct self *self = party->self;
  struct world *world = party->world;
  for (size_t i = 0; i < 4 && self->kept_n > 0; i++) {
    struct ticket ticket = self->kept[world_below(world, self->kept_n < KEPT ? self->kept_n : KEPT)];
    if (world_chance(world, 40)) {
      ticket.bytes[world_below(world, CV_TICKET_BYTES)] ^= (uint8_t)(1U << world_below(world, 8));
    }
    put_token(self, ticket.bytes, lie(world));
  }
}

static void answer_late(struct party *party) {
  struct self *self = party->self;
  struct world *world = party->world;
  if (self->late_n > 0 && world_chance(world, 20)) {
    const struct ticket *ticket = &self->late[world_below(world, self->late_n < LATE ? self->late_n : LATE)];
    put_token(self, ticket->bytes, ticket->value);
  }
}

static void flush(struct party *party, size_t arrivals) {
  struct self *self = party->self;
  struct world *world = party->world;
  uint64_t worker[ARRIVALS];
  struct cv_arrive arrive = {.workers = arrivals, .worker = worker, .credit = 8};
  for (size_t i = 0; i < arrivals; i++) {
    worker[i] =
        party->identity.first + world_below(world, world_chance(world, 60) ? FAVOURITES : world->scenario.crew_workers);
  }
  struct cv_crowd_frame frame = {
      .hello = {.present = !self->greeted, .version = CV_WIRE_VERSION, .program = "liar"},
      .tokens = self->tokens,
      .token = self->token,
      .arrives = 1,
      .arrive = &arrive,
  };
  bool fuzz = world_chance(world, 3);
  for (size_t i = 0; fuzz && i < self->tokens; i++) { /* a genuine ticket with another value would simply count */
    for (size_t j = 0; j < CV_TICKET_BYTES; j++) {
      self->token[i].ticket[j] ^= 0xff;
    }
  }
  self->greeted = true;
  self->tokens = 0;
  CV_REQUIRE(cv_crowd_encode(&frame, &world->encoding, &world->bytes) == CV_OK);
  if (fuzz) {
    fuzz_send(world, self->end);
  } else {
    net_send(self->end, world->bytes.data, world->bytes.len);
  }
  cv_buf_clear(&world->bytes);
}

static void opened(struct party *party, struct end *end) {
  struct self *self = party->self;
  self->end = end;
  self->greeted = false;
  self->tokens = 0;
}

static void keep(struct self *self, const uint8_t *ticket) {
  memcpy(self->kept[self->kept_n++ % KEPT].bytes, ticket, CV_TICKET_BYTES);
}

static void frame(struct party *party, struct end *end, const uint8_t *bytes, size_t n) {
  struct self *self = party->self;
  struct world *world = party->world;
  struct cv_crowd_frame frame;
  CV_REQUIRE(cv_crowd_decode(bytes, n, &world->decoding, &frame) == CV_OK);
  for (size_t i = 0; i < frame.acks; i++) {
    if (frame.ack[i].verdict == CV_VERDICT_ACCEPTED || frame.ack[i].verdict == CV_VERDICT_DUPLICATE) {
      keep(self, frame.ack[i].ticket);
    }
  }
  for (size_t i = 0; i < frame.assigns; i++) {
    answer(party, &frame.assign[i]);
  }
  if (self->tokens > 0) {
    flush(party, 0);
  }
}

static void closed(struct party *party, struct end *end) {
  struct self *self = party->self;
  self->end = self->end == end ? NULL : self->end;
}

static void timer(struct party *party, int which) {
  struct self *self = party->self;
  struct world *world = party->world;
  if (self->end != NULL && !world->finished) {
    misbehave(party);
    answer_late(party);
    flush(party, world_chance(world, 10) ? ARRIVALS : world_below(world, 4));
    if (world_chance(world, 2)) {
      net_close(self->end); /* vanishes, with what it was given */
      self->end = NULL;
    }
  }
  party_after(party, ACT_MS, TIMER_ACT);
}

static bool start(struct party *party, struct cv_why *why) {
  party->self = calloc(1, sizeof(struct self));
  CV_REQUIRE(party->self != NULL);
  party_after(party, ACT_MS, TIMER_ACT);
  return true;
}

static void stop(struct party *party) {
  free(party->self);
}

const struct party_ops party_liar = {
    .start = start, .stop = stop, .opened = opened, .frame = frame, .closed = closed, .timer = timer};
