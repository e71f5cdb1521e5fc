/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/net.h"

#include <stdlib.h>
#include <string.h>

enum { BACKOFF_MIN_MS = 20, BACKOFF_MS = 400, SILENCE_MS = 1500 };

static void dial_later(struct party *party, uint64_t delay_ms);

static void arrive(struct world *world, struct event *event) {
  struct end *end = event->about;
  struct parcel *parcel = end->first;
  if (parcel == NULL) {
    return;
  }
  end->first = parcel->next;
  if (end->first == NULL) {
    end->last = &end->first;
  }
  struct party *party = end->party;
  if (end->open) {
    if (parcel->last) {
      end->open = false;
      world_log(world, "%s: connection %llu ends", party->identity.name, (unsigned long long)end->link->number);
      party->ops->closed(party, end);
      if (end == &end->link->end[0]) {
        dial_later(party, BACKOFF_MIN_MS + world_below(world, BACKOFF_MS));
      }
    } else {
      party->ops->frame(party, end, parcel->bytes, parcel->n);
    }
  }
  free(parcel);
}

/* Puts something on its way to `end`. */
static void post(struct end *end, const void *bytes, size_t n, bool last, uint64_t delay_ms) {
  struct world *world = end->party->world;
  struct parcel *parcel = malloc(sizeof(*parcel) + n);
  CV_REQUIRE(parcel != NULL);
  *parcel = (struct parcel){.n = n, .last = last};
  if (n > 0) {
    memcpy(parcel->bytes, bytes, n);
  }
  *end->last = parcel;
  end->last = &parcel->next;
  uint64_t at_ms = world->now_ms + delay_ms;
  end->arrival_ms = at_ms > end->arrival_ms ? at_ms : end->arrival_ms;
  world_at(world, end->arrival_ms - world->now_ms, arrive, end->party, end, 0);
}

static uint64_t travel_ms(struct world *world) {
  uint64_t slow = world_chance(world, 2) ? 10 : 1;
  return 1 + world_below(world, world->scenario.delay_ms * slow);
}

void net_send(struct end *end, const void *bytes, size_t n) {
  if (end->open && !end->other->deaf) {
    post(end->other, bytes, n, false, travel_ms(end->party->world));
  }
}

/* Loses what is on its way to `end`, but for the first of it, and ends the stream there. */
static void sever(struct end *end, uint64_t silence_ms) {
  if (end->deaf) {
    return;
  }
  struct world *world = end->party->world;
  struct parcel **at = &end->first;
  while (*at != NULL && !world_chance(world, 40)) {
    at = &(*at)->next;
  }
  while (*at != NULL) {
    struct parcel *lost = *at;
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
  if (end == &end->link->end[0] && end->party->up) {
    dial_later(end->party, BACKOFF_MIN_MS + world_below(end->party->world, BACKOFF_MS));
  }
}

void net_cut(struct world *world, struct link *link) {
  sever(&link->end[0], SILENCE_MS);
  sever(&link->end[1], SILENCE_MS);
}

void net_gone(struct party *party) {
  for (struct link *link = party->world->links; link != NULL; link = link->next) {
    for (int i = 0; i < 2; i++) {
      struct end *end = &link->end[i];
      if (end->party == party && end->open) {
        end->open = false;
        end->deaf = true;
        sever(end->other, SILENCE_MS);
      }
    }
  }
}

struct link *net_any(struct world *world) {
  uint64_t open = 0;
  for (struct link *link = world->links; link != NULL; link = link->next) {
    open += link->end[0].open && link->end[1].open;
  }
  uint64_t chosen = open == 0 ? 0 : world_below(world, open);
  for (struct link *link = world->links; link != NULL; link = link->next) {
    if (link->end[0].open && link->end[1].open && chosen-- == 0) {
      return link;
    }
  }
  return NULL;
}

static void dial(struct world *world, struct event *event) {
  struct party *party = event->party, *to = party->dials;
  if (!to->up || (world->calm_ms == 0 && world_chance(world, 5))) {
    dial_later(party, BACKOFF_MIN_MS + world_below(world, BACKOFF_MS));
    return;
  }
  struct link *link = calloc(1, sizeof(*link));
  CV_REQUIRE(link != NULL);
  *link = (struct link){.next = world->links, .number = ++world->link_count};
  world->links = link;
  for (int i = 0; i < 2; i++) {
    link->end[i] = (struct end){.link = link,
                                .party = i == 0 ? party : to,
                                .other = &link->end[1 - i],
                                .open = true,
                                .last = &link->end[i].first};
  }
  world_log(world, "%s: connection %llu to %s", party->identity.name, (unsigned long long)link->number,
            to->identity.name);
  to->ops->opened(to, &link->end[1]);
  if (link->end[0].open) {
    party->ops->opened(party, &link->end[0]);
  }
}

static void dial_later(struct party *party, uint64_t delay_ms) {
  world_at(party->world, delay_ms, dial, party, NULL, 0);
}

void net_started(struct party *party) {
  if (party->dials != NULL) {
    dial_later(party, 1 + world_below(party->world, BACKOFF_MIN_MS));
  }
}

void net_fini(struct world *world) {
  while (world->links != NULL) {
    struct link *link = world->links;
    world->links = link->next;
    for (int i = 0; i < 2; i++) {
      while (link->end[i].first != NULL) {
        struct parcel *parcel = link->end[i].first;
        link->end[i].first = parcel->next;
        free(parcel);
      }
    }
    free(link);
  }
}
