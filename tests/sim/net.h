/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections between parties. Each is a stream both ways: frames arrive in order, after a while, or not at all once it
 * is cut, and the two ends hear of that at different times. Who dials goes on dialling.
 */
#ifndef CV_SIM_NET_H
#define CV_SIM_NET_H

#include "tests/sim/world.h"

struct parcel {
  struct parcel *next;
  size_t n;
  bool last; /* the end of the stream */
  uint8_t bytes[];
};

/* One end; `next`: what is on its way to it. */
struct end {
  struct link *link;
  struct party *party;
  struct end *other;
  void *data; /* the party's */
  bool open;  /* its party knows it as open */
  bool deaf;  /* nothing more gets on its way to it */
  struct parcel *first, **last;
  uint64_t arrival_ms; /* of the last parcel */
};

struct link {
  struct link *next;
  struct end end[2]; /* who dialled, who was dialled */
  uint64_t number;
};

/* The party has started: it dials, if it does. */
void net_started(struct party *party);
/* The party is gone; its peers hear of it by and by. */
void net_gone(struct party *party);
void net_send(struct end *end, const void *bytes, size_t n);
/* What has been sent still arrives. */
void net_close(struct end *end);
void net_cut(struct world *world, struct link *link);
/* Some connection that is open; NULL if none is. */
struct link *net_any(struct world *world);
void net_fini(struct world *world);

#endif
