/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections between parties. Each is a byte stream in both directions, as TCP gives it to TLS: what is sent arrives
 * in order, with a delay, in pieces that are independent of the frames in them, or not at all once the stream is cut,
 * at any byte. The two ends learn of a cut at different times. The pieces go through the daemons' frame splitter. A
 * party that dials goes on dialling.
 *
 * TLS itself is left out: it ends a stream whose bytes were changed, which is a cut here. Within a connection nothing
 * is repeated or overtaken; a frame arrives twice only if a party sends it again on another connection.
 */
#ifndef CV_SIM_NET_H
#define CV_SIM_NET_H

#include "common/base/wire.h"
#include "common/net/frame.h"
#include "tests/sim/world.h"

struct piece;

/* One end of a connection; `first`: the pieces in flight to it. */
struct end {
  struct cable *cable;
  struct party *party;
  struct end *other;
  void *data; /* the party's */
  bool open;  /* as its party knows */
  bool deaf;  /* nothing further is scheduled for it */
  struct piece *first, **last;
  uint64_t arrival_ms; /* of the last piece */
  size_t in_flight;    /* bytes in flight to it */
  struct cv_splitter splitter;
};

struct cable {
  struct cable *next;
  struct end end[2]; /* of the dialler, of the listener */
  int dial;          /* which of the dialler's */
  uint64_t number;
};

/* The party has started: it dials if it is a dialler. */
void net_started(struct party *party);
/* The party has ended; its peers learn of it later. */
void net_gone(struct party *party);
/* Encodes a frame of the schema and sends it. */
void net_send_frame(struct end *end, const struct cv_wire *wire, const void *frame);
/* Sends an encoded frame, with its length in front. */
void net_send(struct end *end, const void *bytes, size_t n);
/* Sends raw bytes: for parties that break the framing. */
void net_send_bytes(struct end *end, const void *bytes, size_t n);
/* Closes this end; what was sent before still arrives. */
void net_close(struct end *end);
void net_cut(struct world *world, struct cable *cable);
/* A random open connection, of anybody or of this party; the open one between two parties. NULL if there is none. */
struct cable *net_any(struct world *world);
struct cable *net_any_of(struct world *world, const struct party *party);
struct cable *net_between(struct world *world, const struct party *dialler, const struct party *listener);
void net_fini(struct world *world);

#endif
