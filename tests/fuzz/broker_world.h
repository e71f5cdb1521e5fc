/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker's core with all its peers: a disk, connections, a third-party that remembers, workers that keep their
 * assignments, a co-broker. A harness drives it by bytes; outputs are checked here against earlier ones.
 */
#ifndef CV_FUZZ_BROKER_WORLD_H
#define CV_FUZZ_BROKER_WORLD_H

#include "cobroker/core.h"
#include "cobroker/restore.h"
#include "common/crypto/crypto.h"
#include "tests/fuzz/broker_disk.h"
#include "tests/sim/seen.h"

enum { PEERS = 8, CAMPAIGNS = 8, ASSIGNED = 256, RELEASES = 64, WORKERS = 64, LEASE_MS = 1000 };

struct peer {
  struct cv_broker_conn *conn; /* NULL: not connected */
  unsigned who;                /* its row of world_identity */
  uint32_t told;               /* campaigns whose terms this connection has received, a bit each */
  uint32_t came_for[WORKERS];  /* by worker, its wishes, a bit for each arm; 1 << 31: any */
};

struct assigned {
  uint8_t ticket[CV_TICKET_BYTES];
  uint64_t campaign, place, worker, plan;
  uint32_t arm, slot;
  bool is_split; /* its share was made once: `leader` and `share` */
  uint8_t leader[CV_SPLIT_LEADER_MOST];
  struct cv_token_share share;
};

/* A release that has left the broker. */
struct sent {
  uint64_t plan, tokens;
  int64_t noisy_sum;
  uint32_t arm, groups;
};

/* A campaign as the third-party has it, and as the world has received it. */
struct heard {
  uint32_t arms, items; /* as the third-party and as the workers know them; with gold items there are more items */
  uint64_t epsilon_micro;
  bool exact, opened;          /* without noise; the third-party has been asked to open it on this connection */
  struct cv_position position; /* of the third-party */
  struct sent release[RELEASES];
  uint64_t releases;     /* of them, from number 1 on */
  struct cv_terms terms; /* of two brokers, or all zero */
  bool covers_all;       /* a release has the sum of all tokens of its arm so far */
  const char *owner;     /* NULL: not known */
  bool numbered;         /* the requester that submitted it first has received its number */
};

/* The co-broker (broker_co.h). */
struct co {
  struct cv_cobroker *core;
  struct cv_cobroker_conn *broker, *crowd;
  struct peer *peer; /* the broker's end of the link to `broker`; both NULL while it is down */
  struct cv_cobroker_batch batch;
  struct cv_rng_seeded random;
  uint8_t session[CAMPAIGNS][CV_SPLIT_SESSION_BYTES];
  bool has_session[CAMPAIGNS];
  uint64_t shards, lives;
  bool lied; /* it has said what no honest one says */
};

struct world {
  struct cv_broker *core;
  struct cv_broker_config config;
  struct cv_rng_seeded noise;
  struct disk disk;
  struct cv_broker_batch batch;
  bool in_flight, stores; /* a flush whose batch is not stored yet; whether it must be stored */
  bool damaged;           /* a stored row was changed: earlier promises do not hold any more */
  struct peer peer[PEERS];
  struct assigned assigned[ASSIGNED]; /* the newest ones */
  size_t assignments;
  struct heard heard[CAMPAIGNS];
  struct seen places, payers; /* acknowledged as counted */
  struct co co;
  uint64_t spent_micro[WORKERS];
  uint32_t unprotected_in[WORKERS]; /* the campaign that the worker gave exact sums to; 0: it is protected */
  uint64_t now_ms, wall_ms;
};

extern const struct cv_identity world_identity[];
enum { IDENTITIES = 7, REQUESTER_FIRST = 4, REQUESTER_LAST = 5, THIRDPARTY = 6, COBROKER = 7, PUPPET = 8 };

void world_begin(struct world *world, uint8_t settings);
void world_end(struct world *world);

/* Makes a core from the disk; without damage that must succeed. False if a damaged disk is refused. */
bool world_restart(struct world *world);
/* The core's result for a frame of this peer: an error ends the connection, as in the daemon. */
void world_answered(struct world *world, struct peer *peer, enum cv_err err, const struct cv_why *why);
void world_join(struct world *world, unsigned who);
void world_leave(struct world *world, struct peer *peer);

void world_flush(struct world *world);
/* Stores the batch and delivers its outputs. */
void world_store(struct world *world);

/* The score of a place, the same for every worker, in grid units. */
int64_t world_value(uint64_t campaign, uint32_t arm, uint64_t place);
struct heard *world_heard(struct world *world, uint64_t campaign);

#endif
