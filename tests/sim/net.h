/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections between parties. Each is a byte stream both ways, as TCP gives it to TLS: what is sent arrives in order,
 * after a while, in pieces that have nothing to do with the frames in them, or not at all once the stream is cut, at
 * any byte; the two ends hear of that at different times. The pieces go through the frame splitter that the daemons
 * have. Who dials goes on dialling.
 *
 * Left out is TLS itself: a stream whose bytes were changed ends there, which is a cut. Within a connection nothing is
 * repeated or overtaken; a frame comes twice only because somebody sends it again on another connection.
 */
#ifndef CV_SIM_NET_H
#define CV_SIM_NET_H

#include "common/net/frame.h"
#include "tests/sim/world.h"

struct piece;

/* One end; `first`: what is on its way to it. */
struct end {
  struct cable *cable;
  struct party *party;
  struct end *other;
  void *data; /* the party's */
  bool open;  /* its party knows it as open */
  bool deaf;  /* nothing more gets on its way to it */
  struct piece *first, **last;
  uint64_t arrival_ms; /* of the last piece */
  size_t in_flight;    /* bytes on their way to it */
  struct cv_splitter splitter;
};

struct cable {
  struct cable *next;
  struct end end[2]; /* who dialled, who was dialled */
  uint64_t number;
};

/* The party has started: it dials, if it does. */
void net_started(struct party *party);
/* The party is gone; its peers hear of it by and by. */
void net_gone(struct party *party);
/* A frame: its length goes before it. */
void net_send(struct end *end, const void *bytes, size_t n);
/* Bytes as they are: for those who break the framing. */
void net_send_bytes(struct end *end, const void *bytes, size_t n);
/* What has been sent still arrives. */
void net_close(struct end *end);
void net_cut(struct world *world, struct cable *cable);
/* Some connection that is open; NULL if none is. */
struct cable *net_any(struct world *world);
void net_fini(struct world *world);

#endif
