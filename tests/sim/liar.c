/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile gateway. It answers with values out of range, twice, late, or not at all; it sends old tickets again with
 * other values once they are acknowledged, and forged tickets; it answers assignments of other hostile gateways; and it
 * lets far too many workers arrive, in some worlds each with a wish for one arm, which may not exist. One with a wide
 * certificate lets workers with distant numbers arrive, which decline their assignments or do not answer.
 *
 * It also gives honest first answers, so that its later attacks meet places that it has filled itself.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "proto/codec/crowd.h"
#include "tests/sim/fuzz.h"
#include "tests/sim/net.h"
#include "tests/sim/tally.h"

enum {
  TIMER_ACT,
  ACT_MS = 40,
  KEPT = 64,
  LATE = 16,
  TOKENS = 64,
  ARRIVALS = 40,
  FAVOURITES = 8,
  FAR = 200,
  APART = 1 << 15
};

struct self {
  uint8_t kept[KEPT][CV_TICKET_BYTES]; /* acknowledged, or refused */
  size_t kept_n;
  struct answer late[LATE]; /* to be given when their workers have newer assignments */
  size_t late_n;
  struct cv_token token[TOKENS];
  struct answer said[TOKENS];
  size_t tokens;
  struct cv_decline decline[TOKENS];
  size_t declines;
  bool muddled; /* the arrivals of this connection are unknown: a frame was fuzzed */
};

static void put_token(struct self *self, const struct answer *answer) {
  if (self->tokens < TOKENS) {
    struct cv_token *token = &self->token[self->tokens];
    struct answer *said = &self->said[self->tokens++];
    *said = *answer;
    memcpy(token->ticket, answer->ticket, CV_TICKET_BYTES);
    token->values = said->values;
    token->value = said->value;
  }
}

/* The most harmful values for a place that is filled already: `values` of them. */
static void put_lie(struct self *self, struct world *world, const uint8_t *ticket, size_t values) {
  struct answer lie = {.values = values};
  memcpy(lie.ticket, ticket, sizeof(lie.ticket));
  for (size_t i = 0; i < CV_COUNT(lie.value); i++) {
    lie.value[i] = world_chance(world, 50) ? 0 : CV_GRID;
  }
  put_token(self, &lie);
}

/* With one value out of range. */
static void put_bad(struct self *self, struct world *world, const struct answer *answer, int64_t value) {
  struct answer bad = *answer;
  bad.value[bad.values == 1 ? 0 : world_below(world, bad.values)] = value;
  put_token(self, &bad);
}

/* With too few values, or too many. */
static void put_miscounted(struct self *self, struct world *world, const struct answer *answer) {
  struct answer bad = *answer;
  do {
    bad.values = 1 + world_below(world, CV_COUNT(bad.value));
  } while (bad.values == answer->values);
  put_token(self, &bad);
}

static struct answer honest(struct world *world, const struct cv_assign *assign) {
  const uint32_t *arm = assign->arms == 1 ? &assign->arm.one : assign->arm.many;
  struct answer answer = {.values = assign->arms};
  CV_REQUIRE(assign->arms <= SCENARIO_ARMS);
  for (uint32_t i = 0; i < assign->arms; i++) {
    uint32_t played = scenario_arm(&world->scenario, arm[0]), shown = scenario_arm(&world->scenario, arm[i]);
    bool is_gold = played >= world->scenario.arms; /* whatever it says of them, some of its workers are found */
    answer.value[i] = is_gold ? CV_GRID / 2 : world_shown(&world->scenario, played, assign->place, shown);
  }
  memcpy(answer.ticket, assign->ticket, sizeof(answer.ticket));
  return answer;
}

/* A worker of a wide certificate, or a number that a flipped bit has produced. */
static bool is_far(const struct world *world, uint64_t worker) {
  return worker > (uint64_t)(world->scenario.pools + world->scenario.liars) * world->scenario.pool_workers;
}

static void answer(struct party *party, const struct cv_assign *assign) {
  struct self *self = party->self;
  struct world *world = party->world;
  const struct cv_local *law = &world->scenario.applied.law;
  if (is_far(world, assign->worker)) {
    if (self->declines < TOKENS && world_chance(world, 70)) {
      struct cv_decline *decline = &self->decline[self->declines++];
      *decline = (struct cv_decline){.has_ticket = true, .why = "far away"};
      memcpy(decline->ticket, assign->ticket, sizeof(decline->ticket));
    }
    return;
  }
  const struct answer truly = honest(world, assign);
  if (world->scenario.graph && world_chance(world, 20)) {
    put_miscounted(self, world, &truly);
  }
  switch (world_below(world, 7)) {
    case 0: /* no answer for now */
      self->late[self->late_n++ % LATE] = truly;
      return;
    case 6:
      world->league[world->league_n++ % WORLD_LEAGUE] = truly;
      return;
    case 1:
      put_bad(self, world, &truly, world_chance(world, 50) ? law->high + 1 : law->low - 1);
      return;
    case 2:
      put_token(self, &truly);
      put_lie(self, world, assign->ticket, truly.values); /* the first answer counts */
      return;
    case 3:
      put_bad(self, world, &truly, INT64_MIN);
      put_token(self, &truly);
      return;
    default:
      put_token(self, &truly);
      return;
  }
}

static void misbehave(struct party *party) {
  struct self *self = party->self;
  struct world *world = party->world;
  for (size_t i = 0; i < 4 && self->kept_n > 0; i++) {
    uint8_t ticket[CV_TICKET_BYTES];
    memcpy(ticket, self->kept[world_below(world, self->kept_n < KEPT ? self->kept_n : KEPT)], sizeof(ticket));
    if (world_chance(world, 40)) {
      ticket[world_below(world, CV_TICKET_BYTES)] ^= (uint8_t)(1U << world_below(world, 8));
    }
    put_lie(self, world, ticket, world->scenario.graph ? 1 + world_below(world, SCENARIO_ARMS) : 1);
  }
}

static void answer_late(struct party *party) {
  struct self *self = party->self;
  struct world *world = party->world;
  if (self->late_n > 0 && world_chance(world, 20)) {
    put_token(self, &self->late[world_below(world, self->late_n < LATE ? self->late_n : LATE)]);
  }
}

static uint64_t somebody(const struct party *party) {
  struct world *world = party->world;
  if (party->identity.last >= SCENARIO_FAR && world_chance(world, 50)) {
    return SCENARIO_FAR + world_below(world, FAR) * APART;
  }
  return party->identity.first +
         world_below(world, world_chance(world, 60) ? FAVOURITES : world->scenario.pool_workers);
}

static void answer_for_another(struct party *party) {
  struct world *world = party->world;
  uint64_t n = world->league_n < WORLD_LEAGUE ? world->league_n : WORLD_LEAGUE;
  if (n > 0 && world_chance(world, 20)) {
    put_token(party->self, &world->league[world_below(world, n)]);
  }
}

/* The arm that a worker wishes for wherever liars have wishes: always the same. */
static uint32_t wish_of(const struct world *world, uint64_t worker) {
  uint32_t arms = world->scenario.arms;
  return worker % 4 == 0   ? CV_WISH_NONE
         : worker % 4 == 1 ? (worker % 8 == 1 ? arms : CV_WISH_NONE - 1)
                           : (uint32_t)(worker / 4 % arms);
}

/* 16, for workers that are not hired: a hired worker gets the arm that it is hired for. */
static void check_wish(const struct party *party, const struct cv_assign *assign) {
  const struct self *self = party->self;
  uint32_t wish = wish_of(party->world, assign->worker);
  uint32_t arm = assign->arms == 1 ? assign->arm.one : assign->arm.many[0];
  if (!party->world->scenario.wishes || self->muddled || party->world->scenario.budget_micro > 0 ||
      party->world->scenario.golds > 0) { /* beside gold items wishes do not count */
    return;
  }
  tally_add(TALLY_WISHED, wish == arm);
  if (wish != CV_WISH_NONE && wish != arm) {
    world_fail(party->world, "16: worker %llu of a liar came for arm %u and is dealt arm %u",
               (unsigned long long)assign->worker, wish, arm);
  }
}

/* One more arrival, with one wish too many or too few. */
static void put_miscounted_wishes(struct cv_buf *bytes, bool more) {
  static const uint8_t two_of_one[] = {0x1a, 7, 0x0a, 1, 1, 0x1a, 2, 0, 1},
                       one_of_two[] = {0x1a, 7, 0x0a, 2, 1, 2, 0x1a, 1, 0};
  cv_buf_put(bytes, more ? two_of_one : one_of_two, sizeof(two_of_one));
}

static void flush(struct party *party, size_t arrivals) {
  struct self *self = party->self;
  struct world *world = party->world;
  uint64_t worker[ARRIVALS];
  uint32_t wish[ARRIVALS];
  struct cv_arrive arrive = {.workers = arrivals, .worker = worker, .credit = 8};
  arrive.wish = world->scenario.wishes ? wish : NULL;
  for (size_t i = 0; i < arrivals; i++) {
    worker[i] = somebody(party);
    wish[i] = wish_of(world, worker[i]);
  }
  struct cv_crowd_frame frame = {
      .hello = {.present = !party->greeted, .version = CV_WIRE_VERSION, .program = "liar"},
      .tokens = self->tokens,
      .token = self->token,
      .declines = self->declines,
      .decline = self->decline,
      .arrives = 1,
      .arrive = &arrive,
  };
  bool fuzz = world_chance(world, 3);
  for (size_t i = 0; fuzz && i < self->tokens; i++) { /* a genuine ticket with another value would be counted */
    for (size_t j = 0; j < CV_TICKET_BYTES; j++) {
      self->token[i].ticket[j] ^= 0xff;
    }
  }
  party->greeted = true;
  self->tokens = self->declines = 0;
  CV_REQUIRE(cv_crowd_encode(&frame, &world->encoding, &world->bytes) == CV_OK);
  if (world->scenario.wishes && world_chance(world, 1)) {
    put_miscounted_wishes(&world->bytes, world_chance(world, 50));
  }
  self->muddled = self->muddled || fuzz;
  if (fuzz) {
    fuzz_send(world, party->end);
  } else {
    net_send(party->end, world->bytes.data, world->bytes.len);
  }
  cv_buf_clear(&world->bytes);
}

static void opened(struct party *party, struct end *end) {
  struct self *self = party->self;
  party_opened(party, end);
  self->tokens = self->declines = 0;
  self->muddled = false;
}

static void keep(struct self *self, const uint8_t *ticket) {
  memcpy(self->kept[self->kept_n++ % KEPT], ticket, CV_TICKET_BYTES);
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
    check_wish(party, &frame.assign[i]);
    answer(party, &frame.assign[i]);
  }
  if (self->tokens + self->declines > 0) {
    flush(party, 0);
  }
}

static void timer(struct party *party, int which) {
  struct world *world = party->world;
  if (party->end != NULL && !world->finished) {
    misbehave(party);
    answer_late(party);
    answer_for_another(party);
    flush(party, world_chance(world, 10) ? ARRIVALS : world_below(world, 4));
    if (world_chance(world, 2)) {
      net_close(party->end); /* disconnects, with its open assignments */
      party->end = NULL;
    }
  }
  party_after(party, ACT_MS, TIMER_ACT);
}

static bool start(struct party *party, struct cv_why *why) {
  party_self_new(party, sizeof(struct self));
  party_after(party, ACT_MS, TIMER_ACT);
  return true;
}

const struct party_ops party_liar = {
    .start = start, .stop = party_self_free, .opened = opened, .frame = frame, .closed = party_closed, .timer = timer};
