/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A co-broker's core with all its peers: a disk, a broker that keeps what an honest one keeps, gateways that keep their
 * sessions. A harness drives it by bytes; outputs are checked here against earlier ones.
 */
#ifndef CV_FUZZ_COBROKER_WORLD_H
#define CV_FUZZ_COBROKER_WORLD_H

#include "common/crypto/crypto.h"
#include "common/prio/prio.h"
#include "tests/fuzz/cobroker_disk.h"
#include "tests/sim/seen.h"

enum {
  PEERS = 6,
  CAMPAIGNS = 3,
  ARMS = 3,
  TOKENS = 8, /* of a batch */
  BATCHES = 64,
  CLOSINGS = 32,
  PLACES = 512, /* of an arm */
  SESSIONS = 16,
  WORKERS = 64
};

struct peer {
  struct cv_cobroker_conn *conn; /* NULL: not connected */
  unsigned who;                  /* its row of world_identity */
  uint64_t serial;               /* of the connection: its keys follow from it */
};

/* A session as its gateway knows it. */
struct session {
  uint8_t id[CV_SPLIT_SESSION_BYTES], key[CV_SPLIT_SEED_BYTES];
  uint64_t campaign; /* 0: none */
  unsigned who;      /* its row of world_identity */
  bool revoked;      /* that row's certificate was, since it began */
  uint64_t counter, first, last;
};

/* A token on its way: what the broker has of it, and what it should not know. */
struct part {
  struct cv_share_pending sent;
  uint64_t output; /* the broker's share of the score */
  uint64_t score;
  uint32_t arm;
  uint64_t place;       /* as the gateway knows both */
  bool bent;            /* something in it was changed after it was sealed */
  uint64_t first, last; /* of its session's workers */
};

struct sent {
  struct part part[TOKENS];
  size_t parts;
  uint8_t answer[TOKENS];
  bool answered;
};

/* A closing that an honest broker commits, with the arm's sums over its accepted tokens: of earlier epochs, and of this
 * one. */
struct closing {
  struct cv_share_close sent;
  uint64_t share[2], exact[2];
  bool has_half;
  uint64_t half;
};

enum { FREE, UNDERWAY, BOOKED };

struct arm {
  uint64_t first, want, filled;
  uint64_t share, exact;           /* of the open epoch */
  uint64_t past_share, past_exact; /* of all earlier ones */
  struct cv_digest chain;
  uint8_t place[PLACES];
  bool spent;
};

/* A campaign as the broker has it. */
struct deal {
  struct cv_spec spec;
  bool described; /* the spec is complete */
  uint8_t database[CV_SPLIT_DATABASE_BYTES];
  uint64_t deadline_ms;
  bool told;        /* opened on this connection */
  bool lied;        /* the broker has said about it what an honest one does not say */
  bool rekeyed;     /* the co-broker has another key since it was described */
  bool over;        /* the co-broker has said that it has ended */
  enum cv_end said; /* the reason that the broker gave */
  bool has_key;
  uint8_t key[CV_SPLIT_SEED_BYTES];
  struct cv_digest context;
  struct cv_prio prio;
  uint64_t plans, batches, booked, done, closings;
  struct cv_digest plans_hash, batches_hash, closings_hash;
  struct cv_plan asked; /* the next plan, or the last one; its wants are `want` */
  struct cv_want want[ARMS];
  bool asks; /* the co-broker has not opened it yet */
  struct arm arm[ARMS];
  struct sent sent[BATCHES + 1];
  struct closing closing[CLOSINGS + 1];
  uint64_t payers; /* slots that were tried */
};

struct world {
  struct cv_cobroker *core;
  struct cv_cobroker_config config;
  struct cv_rng_seeded noise, key; /* they go on after a restart */
  struct disk disk;
  struct cv_cobroker_batch batch;
  bool in_flight, stores; /* a flush whose batch is not stored yet; whether it must be stored */
  bool damaged;           /* a stored row was changed: earlier promises do not hold any more */
  struct peer peer[PEERS];
  struct session session[SESSIONS]; /* the newest ones */
  size_t sessions;
  struct deal deal[CAMPAIGNS];
  struct seen places, slots, questions; /* accepted */
  uint64_t serial, shards, now_ms, wall_ms;
};

extern const struct cv_identity world_identity[];
enum { IDENTITIES = 7, BROKER = 0, STRANGER = 6 };

void world_begin(struct world *world, uint8_t settings);
void world_end(struct world *world);
/* Makes a core from the disk; without damage that must succeed. False if a damaged disk is refused. */
bool world_restart(struct world *world);
/* The core's result for a frame of this peer: an error ends the connection, as in the daemon. */
void world_answered(struct world *world, struct peer *peer, enum cv_err err, const struct cv_why *why);
void world_join(struct world *world, unsigned who);
void world_leave(struct world *world, struct peer *peer);
/* The certificate of these peers is revoked: their sessions end. */
void world_revoke(struct world *world, unsigned who);
/* The co-broker has this one of several own keys from now on. */
void world_renew(struct world *world, uint8_t key);
/* The connected broker; NULL. */
struct peer *world_broker(struct world *world);
void world_flush(struct world *world);
/* Stores the batch and delivers its outputs. */
void world_store(struct world *world);

/* Seals a helper's seed as the co-broker of this world opens it. */
void world_seal(const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter, const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                const uint8_t seed[CV_SPLIT_SEED_BYTES], uint8_t ret[CV_SPLIT_SEALED_BYTES]);

#endif
