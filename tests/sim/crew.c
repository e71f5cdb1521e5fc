/* SPDX-License-Identifier: Apache-2.0 */
/* An honest gateway: the workers' core as in worker/main.c. */
#include <stdlib.h>

#include "tests/sim/net.h"
#include "worker/core.h"

enum { TIMER_FLUSH, FLUSH_MS = 20 };

struct self {
  struct cv_crew *crew;
  struct cv_rng_seeded rng;
  struct end *end; /* NULL: not connected */
};

static enum cv_err score(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  const struct world *world = data;
  *ret_score = world_score(&world->scenario, arm, at->place);
  return CV_OK;
}

/* Kept at once: what is queued now leaves no earlier. */
static void give(void *data, uint64_t worker, uint32_t scores) {
  struct world *world = data;
  world->given[worker] = scores;
}

static void flush(struct party *party) {
  struct self *self = party->self;
  struct world *world = party->world;
  struct cv_crowd_frame frame;
  party_enter(party);
  bool any = self->end != NULL && cv_crew_flush(self->crew, party_mono_ms(party), &frame);
  party_leave(party);
  if (!any || party->exits) {
    return;
  }
  CV_REQUIRE(cv_crowd_encode(&frame, &world->encoding, &world->bytes) == CV_OK);
  net_send(self->end, world->bytes.data, world->bytes.len);
  cv_buf_clear(&world->bytes);
}

static void opened(struct party *party, struct end *end) {
  struct self *self = party->self;
  self->end = end;
  cv_crew_opened(self->crew, party_mono_ms(party));
  flush(party);
}

static void frame(struct party *party, struct end *end, const uint8_t *bytes, size_t n) {
  struct self *self = party->self;
  struct world *world = party->world;
  struct cv_crowd_frame frame;
  struct cv_why why;
  CV_REQUIRE(cv_crowd_decode(bytes, n, &world->decoding, &frame) == CV_OK);
  party_enter(party);
  enum cv_err err = cv_crew_frame(self->crew, &frame, party_mono_ms(party), &why);
  party_leave(party);
  if (party->exits) {
    return;
  }
  if (err == CV_OK) {
    flush(party);
    return;
  }
  world_log(world, "%s: the broker broke the protocol: %s", party->identity.name, why.text);
  if (!world->rolled_back) {
    world_fail(world, "%s closes on the broker: %s", party->identity.name, why.text);
  }
  net_close(end);
  cv_crew_closed(self->crew);
  self->end = NULL;
}

static void closed(struct party *party, struct end *end) {
  struct self *self = party->self;
  if (self->end == end) {
    cv_crew_closed(self->crew);
    self->end = NULL;
  }
}

static void timer(struct party *party, int which) {
  flush(party);
  party_after(party, FLUSH_MS, TIMER_FLUSH);
}

static bool start(struct party *party, struct cv_why *why) {
  struct world *world = party->world;
  struct self *self = calloc(1, sizeof(*self));
  CV_REQUIRE(self != NULL);
  party->self = self;
  cv_rng_seeded_init(&self->rng, world->scenario.seed, 77, 5 + party->number, party->life);
  const struct cv_crew_config config = {
      .first = party->identity.first,
      .last = party->identity.last,
      .concurrency = world->scenario.concurrency,
      .accept = {.privatizers = "none randomized-response laplace",
                 .mechanisms = "none hybrid binary binary-honaker kary segments doubling batch per-item",
                 .epsilon_micro = 10000000,
                 .tokens = world->scenario.own_tokens},
      .campaign = "sim",
      .arms = world->scenario.arms,
      .hires = world->scenario.budget_micro > 0,
      .score = score,
      .score_data = world,
      .given = &world->given[party->identity.first],
      .give = give,
      .give_data = world,
      .rng = &self->rng.rng,
      .privatizer_seeded = true,
      .privatizer_seed = world->scenario.seed,
  };
  party_after(party, FLUSH_MS, TIMER_FLUSH);
  return cv_crew_new(&config, &self->crew, why) == CV_OK;
}

static void stop(struct party *party) {
  struct self *self = party->self;
  cv_crew_free(self->crew);
  free(self);
}

const struct party_ops party_crew = {
    .start = start, .stop = stop, .opened = opened, .frame = frame, .closed = closed, .timer = timer};
