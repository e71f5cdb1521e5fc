/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole deployment in one process on virtual time. A seed determines its world: the campaign, the crowd, the faults
 * and the order of all events. Events are taken from a heap, one after another. A party can die at any of its steps; it
 * starts again from what its disk has kept.
 */
#ifndef CV_SIM_WORLD_H
#define CV_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/rng.h"
#include "common/crypto/ring.h"
#include "common/net/identity.h"
#include "proto/codec/crowd.h"
#include "tests/sim/scenario.h"
#include "tests/sim/vfs.h"
#include "worker/quality/persons.h"

enum { WORLD_PARTIES = 16, WORLD_DIALS = 2, WORLD_LEAGUE = 8, WORLD_LINES = 40, WORLD_LINE = 160 };

struct world;
struct party;
struct part;
struct end;

struct party_ops {
  /* Starts from the disk's contents. False and a line: it refuses to start. */
  bool (*start)(struct party *party, struct cv_why *why);
  /* Frees the party's memory; its disk is dead by then. */
  void (*stop)(struct party *party);
  void (*opened)(struct party *party, struct end *end);
  void (*frame)(struct party *party, struct end *end, const uint8_t *bytes, size_t n);
  void (*closed)(struct party *party, struct end *end);
  void (*timer)(struct party *party, int which);
};

struct party {
  const struct party_ops *ops;
  struct world *world;
  struct cv_identity identity;
  struct party *dials[WORLD_DIALS]; /* none: it is dialled */
  struct disk *disk;                /* NULL: it stores nothing */
  void *self;                       /* its state while it is up */
  struct end *end;                  /* of a dialling party, while it is open */
  bool greeted;                     /* its first frame has been sent on it */
  uint32_t number, life;
  bool up;
  bool dead;  /* died in this event */
  bool exits; /* stops by itself in this event */
  bool hostile;
  bool stays_away;     /* dials no more */
  bool listens;        /* others can connect to it */
  bool rebooted;       /* its monotonic clock has restarted */
  uint64_t boot_ms;    /* time of the restart */
  uint64_t stalled_ms; /* it handles no event before this time */
  uint64_t stood_ms;   /* end of its last standstill: what it should have done before, it does then */
  uint64_t starves;    /* the n-th allocation in the core's next call that makes so many fails; 0 = none */
  uint64_t refusals_seen;
  int fuse;          /* of a party without a simulated disk: steps until it dies; 0 = it does not */
  bool is_full;      /* there is no space for what it stores next */
  struct part *part; /* of an honest gateway while it is up */
};

/* The answer to one assignment; it may have more values than there are arms. */
struct answer {
  uint8_t ticket[CV_TICKET_BYTES];
  int64_t value[SCENARIO_ARMS + 2];
  size_t values;
};

struct event {
  uint64_t at_ms, turn;
  void (*run)(struct world *world, struct event *event);
  struct party *party;
  uint32_t life; /* of the party: the event is not for later ones */
  void *about;
  int which;
};

struct cable;
struct server;
struct truth;
struct two;

struct world {
  struct scenario scenario;
  struct cv_rng_seeded seeded;
  struct cv_rng *rng;
  uint64_t now_ms, turn, events;
  int64_t wall_jump_ms;
  uint64_t jumps; /* of the wall clock, so far */
  struct event *heap;
  size_t heap_n, heap_cap;
  struct party party[WORLD_PARTIES];
  size_t parties;
  struct party *broker, *thirdparty, *impostor, *requester[SCENARIO_REQUESTERS]; /* NULL: no impostor */
  struct party *cobroker;                                                        /* NULL: there is none */
  /* A second broker, which shares a database with the first one, and the one of them that began the latest term and has
   * not ended. All NULL: there is one broker. */
  struct party *second, *active;
  struct server *server;
  bool *is_served; /* by term: a broker has served in it */
  /* The last fault of brokers and server; since when none serves that could, and how long that may be. */
  uint64_t shaken_ms, unserved_ms, bound_ms;
  enum fault shaken_by;
  uint32_t room;                  /* numbers of campaigns are below: some campaigns are submitted again */
  size_t first_pool, first_rival; /* indices of the parties; those up to the end are crowd */
  struct disk disk_broker, disk_thirdparty, disk_cobroker, disk_second;
  struct cable *cables;
  uint64_t cable_count;
  struct truth *truth;
  struct two *two;                    /* NULL: no campaigns with two brokers */
  uint32_t lies;                      /* told so far */
  bool lied, blamed;                  /* and a log has named a liar */
  bool forgot;                        /* the co-broker, with its anchor: what it told is gone */
  struct cv_ring ring, snapshot_ring; /* the key file, now and at the snapshot */
  struct cv_ring ring_cobroker;       /* the co-broker's, which stays */
  struct cv_key_id tickets;           /* of the key of tickets at the last start */
  bool has_tickets, tickets_renewed;  /* it is known; it is the one after the recovery */
  struct cv_arena decoding, encoding;
  struct cv_buf bytes;
  uint32_t faults;                                              /* injected so far */
  uint64_t calm_ms;                                             /* time of the last fault; 0 = faults go on */
  struct disk snapshot, snapshot_thirdparty, snapshot_cobroker; /* of their disks, for a rollback */
  uint64_t snapshot_commit;                                     /* of the co-broker */
  uint32_t *given;                    /* by worker, as its gateway stores it: survives its restarts */
  struct cv_persons persons;          /* and their rows; all zero: workers are not persons */
  bool *row_given;                    /* by row, as the gateways keep it */
  uint64_t *taken;                    /* rows of parts that have left, see parts.h; NULL: no parts */
  struct answer league[WORLD_LEAGUE]; /* assignments that hostile parties received and share */
  size_t league_n;
  bool has_snapshot, has_snapshot_thirdparty, has_snapshot_cobroker, rolled_back;
  bool recovered;                /* from the older database; the truth knows what it has lost */
  int64_t live_early, live_late; /* allocations after a quarter of the campaigns, and after all */
  uint32_t done;                 /* a bit for each requester that has all results */
  bool finished, failed, verbose;
  char failure[600];
  char line[WORLD_LINES][WORLD_LINE];
  uint64_t lines;
};

/* Runs the seed; false if a check failed: then the failure and the last lines are in `world`. */
bool world_run(struct world *world, uint64_t seed);
void world_fini(struct world *world);
/* Prints the failure and the last lines to standard error. */
void world_tell(const struct world *world);

void world_log(struct world *world, const char *fmt, ...) CV_PRINTF(2, 3);
/* Records a failure; only the first one is kept. */
void world_fail(struct world *world, const char *fmt, ...) CV_PRINTF(2, 3);
uint64_t world_wall_ms(const struct world *world);
/* Time since its machine was started, roughly. */
uint64_t party_mono_ms(const struct party *party);
uint64_t world_below(struct world *world, uint64_t bound);
bool world_chance(struct world *world, uint32_t percent);

void world_at(struct world *world, uint64_t delay_ms, void (*run)(struct world *, struct event *), struct party *party,
              void *about, int which);
void party_after(struct party *party, uint64_t delay_ms, int which);
/* Around each call of a core: an allocation may fail in it, and the party then stops. */
void party_enter(struct party *party);
void party_leave(struct party *party);
/* For parties whose `self` is zeroed memory at the start and owns nothing. */
void party_self_new(struct party *party, size_t size);
void party_self_free(struct party *party);
/* For parties that dial and do nothing else on these events. */
void party_opened(struct party *party, struct end *end);
void party_closed(struct party *party, struct end *end);
/* One step: false if the party is dead from here on. */
bool party_step(struct party *party);
void party_start(struct party *party);
/* The party dies at once and starts again later. */
void party_die(struct party *party, uint64_t restart_ms);
struct party *world_add(struct world *world, const struct party_ops *ops, enum cv_role role, const char *name,
                        uint64_t first, uint64_t last);

struct cv_broker;
/* Where a broker's anchor is, on its own disk. */
struct broker_anchor {
  char path[16];
};
struct broker_anchor broker_anchor(const struct party *broker);
/* The broker that serves; NULL if none does. */
struct party *world_broker(const struct world *world);
/* Asks the broker to stop: it does so when nothing is outstanding, or a lease later; if it shares a database, at once.
 */
void broker_drain(struct party *broker);
/* Asks the broker to wrap its keys by the current key of `world->ring`. */
void broker_rekey(struct party *broker);
/* The core of a broker that is up. */
struct cv_broker *broker_core(const struct party *broker);
struct cv_broker_campaign;
/* The campaign, read from the database if it has ended; NULL if it was purged or does not exist. */
struct cv_broker_campaign *broker_campaign(const struct party *broker, uint32_t id);

/* The score of a place, on the grid, and its token after the privatizer: the same for every worker. */
int64_t world_score(const struct scenario *scenario, uint32_t arm, uint64_t place);
int64_t world_value(const struct scenario *scenario, uint32_t arm, uint64_t place);
/* The same in the unit of shares, with two brokers; of a value, as the place rounds it. */
uint64_t world_measured(const struct scenario *scenario, uint32_t arm, uint64_t place, int64_t value);
/* The score for `arm` by a worker that has the place of `played`. */
int64_t world_shown(const struct scenario *scenario, uint32_t played, uint64_t place, uint32_t arm);

extern const struct party_ops party_broker, party_thirdparty, party_cobroker, party_requester, party_pest, party_pool,
    party_liar, party_liar_two, party_rival, party_impostor;
struct cv_identity rival_identity(const struct scenario *scenario, uint32_t number);

#endif
