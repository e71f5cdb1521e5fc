/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/net.h"

#include <stdlib.h>
#include <string.h>

#include "proto/codec/frame.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"

enum { BACKOFF_MIN_MS = 20, BACKOFF_MS = 400, SILENCE_MS = 1500, IN_FLIGHT_BYTES = 8 * CV_FRAME_BYTES };

static void dial_later(struct party *party, int which, uint64_t delay_ms);

/* Bytes, or (none) the end of the stream. */
struct piece {
  struct piece *next;
  size_t n;
  bool last;
  uint8_t bytes[];
};

static void ended(struct end *end) {
  struct party *party = end->party;
  end->open = false;
  tally_add(TALLY_CUT_INSIDE, cv_splitter_holds(&end->splitter));
  world_log(party->world, "%s: connection %llu ends", party->identity.name, (unsigned long long)end->cable->number);
  party->ops->closed(party, end);
  if (end == &end->cable->end[0]) {
    dial_later(party, end->cable->dial, BACKOFF_MIN_MS + world_below(party->world, BACKOFF_MS));
  }
}

/* The bytes are not frames: as in common/net/peer.c, the connection is closed. */
static void break_off(struct end *end, const char *why) {
  struct party *party = end->party, *peer = end->other->party;
  tally(TALLY_REFUSED_STREAM);
  world_log(party->world, "%s: %s broke the framing: %s", party->identity.name, peer->identity.name, why);
  if (!peer->hostile) {
    world_fail(party->world, "%s closes on %s, which is honest: %s", party->identity.name, peer->identity.name, why);
  }
  net_close(end);
  party->ops->closed(party, end);
}

static void take(struct end *end, const struct piece *piece) {
  struct cv_why why;
  const uint8_t *frame;
  size_t n, frames = 0;
  bool held = cv_splitter_holds(&end->splitter);
  enum cv_err err = CV_OK;
  tally(TALLY_PIECES);
  cv_splitter_give(&end->splitter, piece->bytes, piece->n);
  while (end->open && (err = cv_splitter_next(&end->splitter, &frame, &n, &why)) == CV_OK) {
    tally(TALLY_FRAMES);
    tally_add(TALLY_SPLIT, held && frames == 0);
    frames++;
    end->party->ops->frame(end->party, end, frame, n);
  }
  tally_add(TALLY_JOINED, frames > 1);
  CV_REQUIRE(cv_splitter_keep(&end->splitter) == CV_OK);
  if (end->open && err != CV_ERR_NOT_FOUND) {
    break_off(end, why.text);
  }
}

static void arrive(struct world *world, struct event *event) {
  struct end *end = event->about;
  struct piece *piece = end->first;
  if (piece == NULL) {
    return;
  }
  end->first = piece->next;
  if (end->first == NULL) {
    end->last = &end->first;
  }
  end->in_flight -= piece->n;
  if (end->open && piece->last) {
    ended(end);
  } else if (end->open) {
    take(end, piece);
  }
  free(piece);
}

/* Schedules the arrival of a piece at `end`. */
static void post(struct end *end, const void *bytes, size_t n, bool last, uint64_t delay_ms) {
  struct world *world = end->party->world;
  struct piece *piece = malloc(sizeof(*piece) + n);
  CV_REQUIRE(piece != NULL);
  *piece = (struct piece){.n = n, .last = last};
  if (n > 0) {
    memcpy(piece->bytes, bytes, n);
  }
  *end->last = piece;
  end->last = &piece->next;
  end->in_flight += n;
  uint64_t at_ms = world->now_ms + delay_ms;
  end->arrival_ms = at_ms > end->arrival_ms ? at_ms : end->arrival_ms;
  world_at(world, end->arrival_ms - world->now_ms, arrive, end->party, end, 0);
}

/* Appends to the piece that is already in flight, and arrives with it. */
static void join(struct end *end, const void *bytes, size_t n) {
  struct piece **at = &end->first;
  while ((*at)->next != NULL) {
    at = &(*at)->next;
  }
  struct piece *longer = realloc(*at, sizeof(*longer) + (*at)->n + n);
  CV_REQUIRE(longer != NULL);
  memcpy(longer->bytes + longer->n, bytes, n);
  longer->n += n;
  end->in_flight += n;
  *at = longer;
  end->last = &longer->next;
}

static uint64_t travel_ms(struct world *world) {
  uint64_t slow = world_chance(world, 2) ? 10 : 1;
  return 1 + world_below(world, world->scenario.delay_ms * slow);
}

void net_send_bytes(struct end *end, const void *bytes, size_t n) {
  enum { PIECES = 4, JOIN = 20, SPLIT = 30 /* percent */ };
  struct world *world = end->party->world;
  struct end *to = end->other;
  if (!end->open || to->deaf || n == 0) {
    return;
  }
  if (to->first != NULL && world_chance(world, JOIN)) {
    join(to, bytes, n);
    return;
  }
  uint64_t pieces = world_chance(world, SPLIT) ? 2 + world_below(world, PIECES - 1) : 1;
  for (size_t at = 0; at < n;) {
    size_t most = n - at, some = --pieces == 0 || pieces > PIECES ? most : 1 + (size_t)world_below(world, most);
    post(to, (const uint8_t *)bytes + at, some, false, travel_ms(world));
    at += some;
  }
  if (to->in_flight > IN_FLIGHT_BYTES) {
    world_fail(world, "6: %zu bytes are on their way from %s to %s", to->in_flight, end->party->identity.name,
               to->party->identity.name);
  }
}

void net_send(struct end *end, const void *bytes, size_t n) {
  uint8_t *whole = malloc(CV_FRAME_HEADER + n);
  CV_REQUIRE(whole != NULL && n <= CV_FRAME_BYTES);
  cv_frame_header(whole, n);
  memcpy(whole + CV_FRAME_HEADER, bytes, n);
  net_send_bytes(end, whole, CV_FRAME_HEADER + n);
  free(whole);
}

void net_send_frame(struct end *end, const struct cv_wire *wire, const void *frame) {
  struct world *world = end->party->world;
  CV_REQUIRE(wire->encode(frame, &world->encoding, &world->bytes) == CV_OK);
  if (world->two != NULL && (end->party == world->broker || end->party == world->cobroker)) {
    truth_overhear(world->truth, end->party->identity.name, world->bytes.data, world->bytes.len);
  }
  net_send(end, world->bytes.data, world->bytes.len);
  cv_buf_clear(&world->bytes);
}

/* Drops what is in flight to `end`, except its first bytes, and ends the stream there. */
static void sever(struct end *end, uint64_t silence_ms) {
  if (end->deaf) {
    return;
  }
  struct world *world = end->party->world;
  size_t kept = world_chance(world, 40) ? 0 : (size_t)world_below(world, end->in_flight + 1);
  end->in_flight = 0;
  struct piece **at = &end->first;
  while (*at != NULL && end->in_flight < kept) {
    (*at)->n = (*at)->n < kept - end->in_flight ? (*at)->n : kept - end->in_flight;
    end->in_flight += (*at)->n;
    at = &(*at)->next;
  }
  while (*at != NULL) {
    struct piece *lost = *at;
    *at = lost->next;
    free(lost);
  }
  end->last = at;
  end->deaf = true;
  post(end, NULL, 0, true, travel_ms(world) + world_below(world, silence_ms));
}

void net_close(struct end *end) {
  if (!end->open) {
    return;
  }
  end->open = false;
  end->deaf = true;
  if (!end->other->deaf) {
    end->other->deaf = true;
    post(end->other, NULL, 0, true, travel_ms(end->party->world));
  }
  if (end == &end->cable->end[0] && end->party->up) {
    dial_later(end->party, end->cable->dial, BACKOFF_MIN_MS + world_below(end->party->world, BACKOFF_MS));
  }
}

void net_cut(struct world *world, struct cable *cable) {
  tally(TALLY_CUT);
  sever(&cable->end[0], SILENCE_MS);
  sever(&cable->end[1], SILENCE_MS);
}

void net_gone(struct party *party) {
  for (struct cable *cable = party->world->cables; cable != NULL; cable = cable->next) {
    for (int i = 0; i < 2; i++) {
      struct end *end = &cable->end[i];
      if (end->party == party && end->open) {
        end->open = false;
        end->deaf = true;
        sever(end->other, SILENCE_MS);
      }
    }
  }
}

static bool is_open(const struct cable *cable, const struct party *party) {
  bool is_its = party == NULL || cable->end[0].party == party || cable->end[1].party == party;
  return is_its && cable->end[0].open && cable->end[1].open;
}

struct cable *net_any_of(struct world *world, const struct party *party) {
  uint64_t open = 0;
  for (struct cable *cable = world->cables; cable != NULL; cable = cable->next) {
    open += is_open(cable, party);
  }
  uint64_t chosen = open == 0 ? 0 : world_below(world, open);
  for (struct cable *cable = world->cables; cable != NULL; cable = cable->next) {
    if (is_open(cable, party) && chosen-- == 0) {
      return cable;
    }
  }
  return NULL;
}

struct cable *net_any(struct world *world) {
  return net_any_of(world, NULL);
}

struct cable *net_between(struct world *world, const struct party *dialler, const struct party *listener) {
  for (struct cable *cable = world->cables; cable != NULL; cable = cable->next) {
    if (is_open(cable, dialler) && cable->end[0].party == dialler && cable->end[1].party == listener) {
      return cable;
    }
  }
  return NULL;
}

static void dial(struct world *world, struct event *event) {
  struct party *party = event->party, *to = party->dials[event->which];
  if (party->stays_away) {
    return;
  }
  if (to == world->broker && world->second != NULL && world_chance(world, 50)) {
    to = world->second; /* its other address */
  }
  if (to == world->thirdparty && world->impostor != NULL && world->calm_ms == 0 && world_chance(world, 50)) {
    to = world->impostor;
  }
  if (!to->up || !to->listens || (world->calm_ms == 0 && world_chance(world, 5))) {
    dial_later(party, event->which, BACKOFF_MIN_MS + world_below(world, BACKOFF_MS));
    return;
  }
  struct cable *cable = calloc(1, sizeof(*cable));
  CV_REQUIRE(cable != NULL);
  *cable = (struct cable){.next = world->cables, .number = ++world->cable_count, .dial = event->which};
  world->cables = cable;
  for (int i = 0; i < 2; i++) {
    cable->end[i] = (struct end){.cable = cable,
                                 .party = i == 0 ? party : to,
                                 .other = &cable->end[1 - i],
                                 .open = true,
                                 .last = &cable->end[i].first};
    cv_splitter_init(&cable->end[i].splitter, CV_FRAME_BYTES);
  }
  world_log(world, "%s: connection %llu to %s", party->identity.name, (unsigned long long)cable->number,
            to->identity.name);
  to->ops->opened(to, &cable->end[1]);
  if (cable->end[0].open) {
    party->ops->opened(party, &cable->end[0]);
  }
}

static void dial_later(struct party *party, int which, uint64_t delay_ms) {
  world_at(party->world, delay_ms, dial, party, NULL, which);
}

void net_started(struct party *party) {
  for (int i = 0; i < WORLD_DIALS; i++) {
    if (party->dials[i] != NULL) {
      dial_later(party, i, 1 + world_below(party->world, BACKOFF_MIN_MS));
    }
  }
}

void net_fini(struct world *world) {
  while (world->cables != NULL) {
    struct cable *cable = world->cables;
    world->cables = cable->next;
    for (int i = 0; i < 2; i++) {
      while (cable->end[i].first != NULL) {
        struct piece *piece = cable->end[i].first;
        cable->end[i].first = piece->next;
        free(piece);
      }
      cv_splitter_fini(&cable->end[i].splitter);
    }
    free(cable);
  }
}
