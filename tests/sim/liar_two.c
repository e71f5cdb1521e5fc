/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile gateway in a world with two brokers. Its shares have no proof, or are no elements; its seals are of
 * another token, session or counter, or do not open; it splits one answer twice, sends a score in the clear, answers
 * late, under another ticket or not at all; it asks for sessions again and again, and of campaigns that do not exist.
 * It also gives honest answers.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/prio/field.h"
#include "tests/sim/cobroker.h"
#include "tests/sim/fuzz.h"
#include "tests/sim/net.h"
#include "tests/sim/sealing.h"
#include "tests/sim/tally.h"
#include "worker/session.h"
#include "worker/split.h"

enum { TIMER_ACT, ACT_MS = 40, TOKENS = 64, KEPT = 16, CAMPAIGNS = 16, ARRIVALS = 40, FAVOURITES = 8 };

/* A token with its shares. */
struct split {
  struct cv_token token;
  struct cv_token_share share;
  uint8_t leader[CV_SPLIT_LEADER_MOST + CV_FIELD_BYTES];
  int64_t value;
};

struct self {
  struct end *end, *co;
  bool greeted, greeted_co;
  struct cv_session_ops ops;
  struct cv_rng_seeded fresh;
  struct cv_session *session[CAMPAIGNS]; /* by campaign */
  struct cv_terms terms[CAMPAIGNS];      /* as the broker tells them; id 0: not yet */
  struct split split[TOKENS], kept[KEPT];
  size_t splits, kept_n;
};

/* ---- sessions ---- */

static enum cv_err open_session(void *data, const struct cv_digest *context, void **ret) {
  const struct party *party = data;
  const struct self *self = party->self;
  uint8_t *key = malloc(CV_SPLIT_SEED_BYTES);
  CV_REQUIRE(key != NULL && self->co != NULL);
  sealing_key(self->co, context, key);
  *ret = key;
  return CV_OK;
}

static enum cv_err seal(void *data, void *key, uint64_t counter, const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                        const uint8_t seed[CV_SPLIT_SEED_BYTES], uint8_t ret[CV_SPLIT_SEALED_BYTES]) {
  const struct party *party = data;
  return sealing_close(party->world, key, counter, bound, seed, ret);
}

static void close_session(void *data, void *key) {
  free(key);
}

static void ask_cobroker(struct party *party) {
  struct self *self = party->self;
  struct world *world = party->world;
  uint64_t enter[4];
  struct cv_share_frame frame = {.hello = {.present = !self->greeted_co, .version = CV_WIRE_VERSION, .program = "liar"},
                                 .enter = enter};
  for (uint32_t i = 1; i < CAMPAIGNS && frame.enters < 3; i++) {
    if (self->terms[i].id != 0 && self->session[i] == NULL) {
      CV_REQUIRE(cv_session_new(&self->ops, &self->terms[i], world->scenario.pool_workers, &self->session[i], NULL) ==
                 CV_OK);
    }
    if (self->session[i] != NULL &&
        (cv_session_asks(self->session[i], party_mono_ms(party)) || world_chance(world, 2))) {
      enter[frame.enters++] = i;
    }
  }
  if (world_chance(world, 2)) {
    enter[frame.enters++] = world_below(world, 2 * CAMPAIGNS);
  }
  if (frame.enters == 0 && self->greeted_co) {
    return;
  }
  self->greeted_co = true;
  CV_REQUIRE(cv_share_encode(&frame, &world->encoding, &world->bytes) == CV_OK);
  if (world_chance(world, 5)) {
    fuzz_send(world, self->co);
  } else {
    net_send(self->co, world->bytes.data, world->bytes.len);
  }
  cv_buf_clear(&world->bytes);
}

static void on_share(struct party *party, const struct cv_share_frame *frame) {
  struct self *self = party->self;
  const struct cv_duo duo = world_duo(party->world);
  struct cv_why why;
  for (size_t i = 0; i < frame->sessions; i++) {
    uint64_t id = frame->session[i].terms.id;
    if (id < CAMPAIGNS && self->session[id] != NULL && self->session[id]->state == CV_SESSION_ASKED) {
      (void)!cv_session_begin(self->session[id], &duo, &frame->session[i], &why);
    }
  }
  for (size_t i = 0; i < frame->turned; i++) {
    uint64_t id = frame->turn[i].campaign;
    if (id < CAMPAIGNS && self->session[id] != NULL && self->session[id]->state == CV_SESSION_ASKED) {
      (void)!cv_session_turn(self->session[id], frame->turn[i].again_ms, party_mono_ms(party), &why);
    }
  }
}

/* ---- answers ---- */

static struct split *put(struct self *self, const struct split *split) {
  if (self->splits == TOKENS) {
    return NULL;
  }
  struct split *at = &self->split[self->splits++];
  *at = *split;
  at->share.leader = at->leader;
  at->token.share = split->token.share == NULL ? NULL : &at->share;
  at->token.value = &at->value;
  return at;
}

/* A token that the brokers would count. */
static bool make(struct party *party, const struct cv_assign *assign, struct split *ret) {
  struct self *self = party->self;
  struct world *world = party->world;
  const struct scenario *scenario = &world->scenario;
  struct cv_session *session = assign->campaign < CAMPAIGNS ? self->session[assign->campaign] : NULL;
  if (session == NULL || session->state != CV_SESSION_STANDS) {
    return false;
  }
  struct cv_split_token token = {.plan = assign->plan,
                                 .arm = assign->arm.one,
                                 .place = assign->place,
                                 .worker = assign->worker,
                                 .slot = assign->slot};
  uint64_t measurement =
      (uint64_t)world_value(scenario, assign->arm.one, assign->place) / cv_split_scale(scenario->score_bits);
  *ret = (struct split){.value = CV_GRID};
  CV_REQUIRE(cv_worker_split(session, measurement, &token, ret->leader, &ret->share) == CV_OK);
  memcpy(ret->token.ticket, assign->ticket, CV_TICKET_BYTES);
  ret->token.share = &ret->share;
  return true;
}

static void spoil(struct world *world, struct split *split) {
  struct cv_token_share *share = &split->share;
  uint64_t at = world_below(world, share->leader_bytes / CV_FIELD_BYTES) * CV_FIELD_BYTES;
  switch (world_below(world, 8)) {
    case 0: /* another element: no proof */
      split->leader[at] ^= 1;
      return;
    case 1: /* none */
      memset(split->leader + at, 0xff, CV_FIELD_BYTES);
      return;
    case 2:
      share->leader_bytes += world_chance(world, 50) ? CV_FIELD_BYTES : UINT64_MAX;
      return;
    case 3:
      share->sealed[world_below(world, CV_SPLIT_SEALED_BYTES)] ^= (uint8_t)(1U << world_below(world, 8));
      return;
    case 4:
      share->session[world_below(world, CV_SPLIT_SESSION_BYTES)] ^= 1;
      return;
    case 5:
      share->counter += 1 + world_below(world, 3);
      return;
    case 6: /* in the clear */
      split->token.share = NULL;
      split->token.values = 1;
      return;
    default:
      share->nonce[0] ^= 1;
      return;
  }
}

static void keep(struct self *self, const struct split *split) {
  self->kept[self->kept_n++ % KEPT] = *split;
}

static void answer(struct party *party, const struct cv_assign *assign) {
  struct self *self = party->self;
  struct world *world = party->world;
  struct split split, again;
  uint64_t workers = (uint64_t)(world->scenario.pools + world->scenario.liars) * world->scenario.pool_workers;
  if (assign->worker > workers || assign->arms != 1 || !make(party, assign, &split)) {
    return;
  }
  keep(self, &split);
  switch (world_below(world, 8)) {
    case 0: /* withholds */
      return;
    case 1:
    case 2:
    case 3:
      spoil(world, &split);
      (void)put(self, &split);
      return;
    case 4: /* one answer in two splittings */
      (void)put(self, &split);
      if (make(party, assign, &again)) {
        (void)put(self, &again);
      }
      return;
    case 5: /* spoilt, then not */
      again = split;
      spoil(world, &again);
      (void)put(self, &again);
      (void)put(self, &split);
      return;
    default:
      (void)put(self, &split);
      return;
  }
}

/* What was sent before, or withheld; sometimes with the seal of another one. */
static void repeat(struct party *party) {
  struct self *self = party->self;
  struct world *world = party->world;
  size_t n = self->kept_n < KEPT ? self->kept_n : KEPT;
  for (uint64_t i = world_below(world, 3); n > 0 && i > 0; i--) {
    struct split split = self->kept[world_below(world, n)];
    const struct split *other = &self->kept[world_below(world, n)];
    if (world_chance(world, 30)) {
      memcpy(split.share.sealed, other->share.sealed, sizeof(split.share.sealed));
    } else if (world_chance(world, 20)) {
      memcpy(split.token.ticket, other->token.ticket, CV_TICKET_BYTES);
    }
    split.token.share = &split.share;
    (void)put(self, &split);
  }
}

/* ---- the broker ---- */

static void flush(struct party *party, size_t arrivals) {
  struct self *self = party->self;
  struct world *world = party->world;
  uint64_t worker[ARRIVALS];
  struct cv_arrive arrive = {.workers = arrivals, .worker = worker, .credit = 8};
  struct cv_token token[TOKENS];
  for (size_t i = 0; i < arrivals; i++) {
    uint64_t n = world_chance(world, 60) ? FAVOURITES : world->scenario.pool_workers;
    worker[i] = party->identity.first + world_below(world, n);
  }
  for (size_t i = 0; i < self->splits; i++) {
    token[i] = self->split[i].token;
  }
  struct cv_crowd_frame frame = {.hello = {.present = !self->greeted, .version = CV_WIRE_VERSION, .program = "liar"},
                                 .tokens = self->splits,
                                 .token = token,
                                 .arrives = 1,
                                 .arrive = &arrive};
  self->greeted = true;
  self->splits = 0;
  CV_REQUIRE(cv_crowd_encode(&frame, &world->encoding, &world->bytes) == CV_OK);
  net_send(self->end, world->bytes.data, world->bytes.len);
  cv_buf_clear(&world->bytes);
}

static void on_crowd(struct party *party, const struct cv_crowd_frame *frame) {
  struct self *self = party->self;
  for (size_t i = 0; i < frame->campaigns; i++) {
    const struct cv_terms *terms = &frame->campaign[i];
    if (terms->id < CAMPAIGNS && self->terms[terms->id].id == 0 && terms->split.score_bits != 0) {
      self->terms[terms->id] = *terms;
    }
  }
  for (size_t i = 0; i < frame->assigns; i++) {
    answer(party, &frame->assign[i]);
  }
  if (self->splits > 0 && self->end != NULL) {
    flush(party, 0);
  }
}

static void opened(struct party *party, struct end *end) {
  struct self *self = party->self;
  if (end->other->party == party->world->cobroker) {
    self->co = end;
    self->greeted_co = false;
  } else {
    self->end = end;
    self->greeted = false;
    self->splits = 0;
  }
}

static void closed(struct party *party, struct end *end) {
  struct self *self = party->self;
  if (self->co == end) {
    self->co = NULL;
    for (uint32_t i = 0; i < CAMPAIGNS; i++) {
      if (self->session[i] != NULL) {
        cv_session_end(self->session[i]);
      }
    }
  }
  self->end = self->end == end ? NULL : self->end;
}

static void frame(struct party *party, struct end *end, const uint8_t *bytes, size_t n) {
  struct world *world = party->world;
  if (end->other->party == world->cobroker) {
    struct cv_share_frame share;
    CV_REQUIRE(cv_share_decode(bytes, n, &world->decoding, &share) == CV_OK);
    on_share(party, &share);
  } else {
    struct cv_crowd_frame crowd;
    CV_REQUIRE(cv_crowd_decode(bytes, n, &world->decoding, &crowd) == CV_OK);
    on_crowd(party, &crowd);
  }
}

static void hang_up(struct party *party, struct end *end) {
  if (end != NULL && world_chance(party->world, 2)) {
    net_close(end);
    closed(party, end);
  }
}

static void timer(struct party *party, int which) {
  struct self *self = party->self;
  struct world *world = party->world;
  if (self->end != NULL && !world->finished) {
    repeat(party);
    flush(party, world_chance(world, 10) ? ARRIVALS : world_below(world, 4));
    hang_up(party, self->end);
  }
  if (self->co != NULL && !world->finished) {
    ask_cobroker(party);
    hang_up(party, self->co);
  }
  party_after(party, ACT_MS, TIMER_ACT);
}

static bool start(struct party *party, struct cv_why *why) {
  party_self_new(party, sizeof(struct self));
  struct self *self = party->self;
  cv_rng_seeded_init(&self->fresh, party->world->scenario.seed, 97, party->number, party->life);
  self->ops = (struct cv_session_ops){.digest = cv_sha256,
                                      .fresh = &self->fresh.rng,
                                      .open = open_session,
                                      .seal = seal,
                                      .close = close_session,
                                      .data = party};
  party_after(party, ACT_MS, TIMER_ACT);
  return true;
}

static void stop(struct party *party) {
  struct self *self = party->self;
  for (uint32_t i = 0; i < CAMPAIGNS; i++) {
    cv_session_free(self->session[i]);
  }
  free(self);
}

const struct party_ops party_liar_two = {
    .start = start, .stop = stop, .opened = opened, .frame = frame, .closed = closed, .timer = timer};
