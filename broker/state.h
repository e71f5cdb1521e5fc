/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker's core knows, for its own files only. */
#ifndef CV_BROKER_STATE_H
#define CV_BROKER_STATE_H

#include "broker/archive.h"
#include "broker/chunks.h"
#include "broker/core.h"
#include "broker/ledger.h"
#include "broker/mechanism/mechanism.h"
#include "broker/offers.h"
#include "broker/payroll.h"
#include "broker/recover.h"
#include "common/base/neighbours.h"

enum {
  CV_CREDIT_MAX = 8192,    /* assignments a connection may hold */
  CV_SHARE_MIN = 64,       /* places of an arm any connection may hold */
  CV_PENALTY_MAX = 16,     /* times a silent connection's share is halved */
  CV_PENALTY_NEW = 3,      /* that many times that of one which has not answered yet */
  CV_AGAIN = 8,            /* of a lease, after which a place may be given again */
  CV_BUSY_MAX = 64,        /* workers with an open assignment that a turn passes over */
  CV_PASSED_MAX = 4096,    /* workers for whom others are hired that a turn passes over */
  CV_REQUESTS_MAX = 16,    /* unanswered requests of a requester's connection */
  CV_REQUESTER_CONNS = 16, /* connections of a requester */
  CV_GATHER_ALL = 2048,    /* answers in vain between two flushes, to all connections together ... */
  CV_GATHER_LEAST = 64,    /* ... but so many to each */
  CV_ARRIVALS_MAX = 65536, /* workers that arrive in one frame */
  CV_FOLD_CHUNKS = 4,      /* chunks written a commit when the journal is long */
  CV_PART_RELEASES = 256,  /* releases in one frame */
  CV_FETCHED_MAX = 16,     /* ended campaigns in memory to be served from, one of a requester */
  CV_DROP_ROWS = 512,      /* rows of purged campaigns that go in one commit */
  CV_SPEC_BYTES_MAX = 128 * 1024,
  CV_JOURNAL_BYTES = 1 << 20, /* of journal before chunks are folded, unless configured */
  CV_CHARGES_TODAY = 1,       /* at the end of a campaign's row; rows of version 0.1.0 end before it */
  CV_STALL_MS = 500,          /* between ticks: more, and this process stood still */
};

/* A place that was accepted, as the journal has it. */
struct cv_entry {
  uint64_t index; /* of the play in the arm's stream of plays */
  uint64_t worker;
  uint32_t arm, slot;
  uint32_t shown; /* arms that it showed, the played one included */
};

struct cv_arm {
  struct cv_mechanism *mechanism;
  uint64_t plan;               /* of the open epoch; 0 = none open */
  uint64_t first;              /* plays of all earlier epochs */
  uint64_t round;              /* of the open epoch: plays planned before it, of all arms */
  bool switched;               /* the token planned before it is another arm's */
  uint32_t want, next, filled; /* plays: planned, next position never given, accepted */
  uint64_t before;             /* tokens of all earlier epochs: without a feedback graph as many as plays */
  uint64_t expected, seen;     /* tokens of the open epoch: in all, accepted */
  int64_t sum;                 /* of the open epoch, exact */
  uint32_t *returned;          /* positions to be given again; owned */
  uint32_t returned_count, returned_cap;
  bool touched; /* filled or sum changed since the last batch */
  bool changed; /* anything else did */
  uint64_t dirty_since;
  uint64_t written; /* while restoring: the commit of the stored image */
};

/* A release without what can be derived. */
struct cv_release_row {
  uint64_t number, plan, tokens;
  int64_t noisy_sum;
  uint32_t arm, nth; /* nth release of the arm */
};

/*
 *   OPENING --Opened--> RUNNING --plans, releases--> ... --Result--> ENDED
 *      |                   |
 *      +------- stop ------+--> STOPPING --Result--> ENDED        any --disagreement--> ENDED (frozen)
 */
enum cv_phase { CV_PHASE_OPENING, CV_PHASE_RUNNING, CV_PHASE_STOPPING, CV_PHASE_ENDED };

struct cv_campaign {
  uint32_t id;
  UT_hash_handle hh;
  struct cv_campaign *next_open; /* list of campaigns that have not ended */
  char requester[CV_NAME_BYTES];
  uint8_t client_key[CV_CLIENT_KEY_BYTES];
  struct cv_spec spec;
  struct cv_privacy privacy;
  bool charges_less; /* than it would today: accepted by an earlier version, it gives no more tokens */
  enum cv_phase phase;
  enum cv_end end;
  char thirdparty[CV_NAME_BYTES]; /* the one that has opened it, and keeps it; empty: none has yet */
  bool has_seed;
  uint64_t seed;
  uint64_t submitted_wall_ms, ended_wall_ms;
  uint64_t deadline_wall_ms, deadline_ms; /* 0 = none; the earlier of the two clocks ends it */
  uint64_t active_ms;                     /* last accepted token, or when places were opened */
  uint64_t tokens;                        /* accepted */
  uint64_t reserved;                      /* of open epochs, not yet accepted */

  struct cv_neighbours graph;
  uint32_t shown_most; /* arms that one assignment may show */
  struct cv_arm *arm;  /* spec.arms of them */
  uint32_t cursor;     /* next arm to give places of */
  uint32_t open_arms;  /* arms with an open epoch */
  uint64_t free_places;
  struct cv_chunks places;  /* see cv_epoch_place_bit */
  struct cv_chunks payers;  /* bit worker * tokens_per_worker + slot: counted */
  struct cv_offers offered; /* the same bits: assigned and not yet answered; not stored */

  struct cv_ledger ledger; /* of its arms */
  struct cv_payroll payroll;
  struct cv_release_row *release;
  size_t releases, releases_cap;
  struct cv_digest releases_hash;
  struct cv_plan *plan; /* accepted plans, in order */
  uint64_t planned;     /* tokens of all but the last of them */
  size_t plans, plans_cap;
  struct cv_digest plans_hash;
  struct cv_standing *standing; /* spec.arms of them, by arm */
  bool has_standings;

  /* since the last batch */
  bool fresh, changed, standings_changed, purge, done_told;
  bool settled; /* it has ended, and all of it is stored or in the batch that is */
  bool fetched; /* from there again, to be served from */
  size_t stored_releases, stored_plans;
  struct cv_buf journal; /* struct cv_entry each */
  bool progressed;       /* watchers have not been told */

  /* towards the third-party, on this connection */
  struct {
    bool open_sent, opened, stop_sent;
    uint64_t releases, plans; /* sent up to */
    bool accept_due;
    uint64_t accept;
    bool refuse_due;
    struct cv_rank_refused refused;
    char refused_why[CV_WHY_BYTES];
  } rank;
};

#define CV_LEASE_NONE UINT32_MAX
/* One open assignment of a connection; a doubly linked list in the order of their deadlines. */
struct cv_lease {
  uint64_t worker;
  uint64_t plan;
  uint64_t deadline_ms;
  uint64_t again_ms; /* from then on its place may go to others, too */
  bool again;        /* it may */
  uint32_t campaign; /* 0 = free */
  uint32_t arm, position, slot;
  uint32_t before, after; /* neighbours; after also links the free ones */
};

/* A connection's dealings with one campaign. */
struct cv_dealing {
  uint32_t campaign;
  bool told, declined, done_told;
  uint32_t *held; /* places held, per arm; owned */
};

struct cv_crowd_out {
  struct cv_crowd_frame frame;
  size_t assigns_cap, acks_cap, backoffs_cap, campaigns_cap, dones_cap;
};

/* A request that waits for its answer. */
struct cv_request {
  enum cv_order_kind answer;
  uint32_t campaign;
  uint32_t purged; /* campaigns */
  bool existed;
  char text[CV_WHY_BYTES];
  struct cv_statement *statement; /* owned, with its accounts; NULL: made when its turn comes */
};

/* A worker that has arrived, and the one arm that it has come for; CV_WISH_NONE: any. */
struct cv_waiting {
  uint64_t worker;
  uint32_t wish;
};

struct cv_broker_conn {
  struct cv_broker_conn *next, *prev; /* all connections */
  struct cv_identity identity;
  char who[CV_NAME_BYTES + 16]; /* "gateway/1-9" */
  void *shell;
  bool greeted, hello_sent, close_due, held;
  char goodbye[CV_WHY_BYTES];
  /* crowd */
  uint32_t credit, outstanding;
  uint32_t penalty, answered; /* tokens accepted since the penalty changed */
  struct cv_waiting *waiting; /* ring of workers */
  uint32_t wish;              /* of the one whose turn it is */
  uint32_t waiting_cap, waiting_head, waiting_count;
  struct cv_lease *lease;
  uint32_t leases, lease_free, lease_first, lease_last;
  struct cv_dealing *dealing;
  uint32_t dealings, dealings_cap;
  struct cv_crowd_out gather, ready;
  size_t gathered; /* answers in `gather` to tokens that were not accepted and workers turned away */
  /* order */
  struct cv_request request[CV_REQUESTS_MAX];
  uint32_t requests;
  uint32_t watching; /* campaign; 0 = none */
  bool finish_told, progress_due, describe_due;
  uint64_t progress_ms, progress_tokens; /* when, and at how many tokens, progress was told last */
  struct {
    uint32_t campaign; /* 0 = none running */
    bool begun;
    size_t plans, releases;
  } export;
  uint64_t fetched_nth; /* the last campaign that was fetched for it; 0 = none */
  struct cv_order_frame order;
  struct cv_progress *status; /* owned, of the answer that is ready */
  struct cv_statement *statement;
  struct cv_release *part_release;
  struct cv_plan *part_plan;
  char error[CV_WHY_BYTES];
  bool order_ready;
};

/* A chunk or arm that differs from what is stored, in the order of the first change. */
struct cv_dirty {
  uint32_t campaign;
  enum cv_chunk_kind kind;
  uint64_t number;
  uint64_t since;
};

struct cv_broker {
  struct cv_broker_config config;
  uint64_t commit; /* number of the batch being gathered */
  bool changed;    /* it has to be stored */
  bool said;       /* there is output */
  bool unserved;   /* a connection has had its share of answers, and more of its workers wait for one */
  bool in_flight;
  bool quiet;  /* while restoring: nothing is news */
  bool failed; /* memory ran out: the core is at its end */
  bool draining;
  struct cv_campaign *campaigns; /* by id: those that run, have just ended, or were fetched */
  struct cv_campaign *open;      /* list, oldest first */
  uint32_t open_count;
  struct cv_archive archive;   /* of those that have ended */
  bool wants;                  /* somebody waits for one that has to be fetched */
  uint64_t fetches;            /* so far */
  uint64_t swept_ms;           /* when ended campaigns were looked at for their age */
  struct cv_accounts accounts; /* of the workers */
  struct cv_totals totals;
  struct cv_recovery recovery; /* the last one */
  uint32_t recoveries;
  bool recovery_due;       /* it goes into the next batch */
  uint64_t forgotten_next; /* the next forgotten campaign to close at the third-party */
  struct cv_broker_conn *conns;
  uint32_t crowd_conns, order_conns;
  struct cv_broker_conn *rank; /* the third-party, if connected */
  struct cv_rank_frame rank_frame;
  struct cv_rank_frame rank_goodbye; /* to a connection that another one has replaced */
  struct cv_arena rank_arena;
  bool rank_ready;
  struct cv_broker_conn *cursor; /* of cv_broker_next_out, and of fairness */
  struct cv_broker_conn *fair;
  struct cv_crowd_out *last_out; /* handed out by cv_broker_next_out, emptied at the next call */
  struct cv_dirty *dirty;        /* ring */
  size_t dirty_cap, dirty_head, dirty_count;
  uint64_t journal_bytes; /* written since the last round of folding */
  uint64_t fold_until;    /* the round writes what was dirty at this commit; 0 = no round */
  size_t gathered;
  uint64_t started_ms, ticked_ms, now_ms, wall_ms;
  struct cv_broker_figures figures;
};

/* campaign.c */
struct cv_campaign *cv_campaign_find(struct cv_broker *broker, uint64_t id);
/* `as_before`: accepted by version 0.1.0 and charged as it did. */
CV_MUST_USE enum cv_err cv_campaign_new(struct cv_broker *broker, uint32_t id, const struct cv_spec *spec,
                                        bool as_before, struct cv_campaign **ret);
void cv_campaign_free(struct cv_campaign *campaign);
/* Takes it out of memory, whatever it is at. */
void cv_campaign_drop(struct cv_broker *broker, struct cv_campaign *campaign);
/* A new one counts: its number, and what it can cost a worker. */
void cv_campaign_count(struct cv_broker *broker, const struct cv_campaign *campaign);
/* Of a spec as it was accepted. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_campaign_digest(const struct cv_broker *broker, const struct cv_spec *spec,
                                           struct cv_digest *ret);
/* Its record is made, or made anew, and is in the next batch. */
void cv_campaign_archive(struct cv_broker *broker, const struct cv_campaign *campaign);
void cv_campaign_mark(struct cv_broker *broker, struct cv_campaign *campaign);
/* Ends the giving of places; the third-party will be asked for a result. */
void cv_campaign_stop(struct cv_broker *broker, struct cv_campaign *campaign, enum cv_end end);
/* Ends it without a word: what is secret of it is gone, and it is open no more. */
void cv_campaign_over(struct cv_broker *broker, struct cv_campaign *campaign, enum cv_end end, uint64_t wall_ms);
/* No result will come any more, or it has come. */
void cv_campaign_end(struct cv_broker *broker, struct cv_campaign *campaign, enum cv_end end);
void cv_campaign_progress(const struct cv_broker *broker, const struct cv_campaign *campaign, struct cv_progress *ret);
/* What an arm's first `nth` releases cost together, micro-epsilon. */
uint64_t cv_campaign_cost(const struct cv_campaign *campaign, uint64_t nth);
/* What a token costs its worker that shows so many arms, micro-epsilon. */
uint64_t cv_campaign_charge(const struct cv_campaign *campaign, uint32_t shown);
/* Whether that is left of its lifetime epsilon. Where exact sums leave a worker's first token takes all that is left,
 * and its further ones nothing. */
bool cv_campaign_can_pay(struct cv_broker *broker, struct cv_campaign *campaign, uint64_t worker, uint32_t shown);
#define CV_LIFETIME_SPENT "this worker's lifetime epsilon is spent"
/* Whether the tables have room, for this certificate, for a token of its worker that uses this slot. */
bool cv_campaign_has_room(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_identity *identity,
                          uint64_t worker, uint32_t slot);
/* A worker's slot among the payers. */
uint64_t cv_campaign_payer_bit(const struct cv_campaign *campaign, uint64_t worker, uint32_t slot);
/* The release as it travels: the row with its noise. */
void cv_campaign_release(const struct cv_campaign *campaign, size_t i, struct cv_release *ret);
CV_MUST_USE enum cv_err cv_campaign_set_standings(struct cv_broker *broker, struct cv_campaign *campaign,
                                                  const struct cv_standing *standing, uint32_t n, struct cv_why *why);

/* epoch.c */
CV_MUST_USE enum cv_err cv_epoch_check(const struct cv_broker *broker, const struct cv_campaign *campaign,
                                       const struct cv_plan *plan, struct cv_rank_refused *ret_refused,
                                       struct cv_why *why);
CV_MUST_USE enum cv_err cv_epoch_open(struct cv_broker *broker, struct cv_campaign *campaign,
                                      const struct cv_plan *plan);
CV_MUST_USE enum cv_err cv_epoch_close(struct cv_broker *broker, struct cv_campaign *campaign, uint32_t arm);
/* What the arm's next release costs. */
uint64_t cv_epoch_price(const struct cv_campaign *campaign, uint32_t arm);
/* Numbers the rounds of the last plan's epochs. */
void cv_epoch_number_rounds(struct cv_campaign *campaign);
/* Adds an accepted plan or a release to the campaign's history and its chain. */
CV_MUST_USE enum cv_err cv_epoch_add_plan(struct cv_broker *broker, struct cv_campaign *campaign,
                                          const struct cv_plan *plan);
CV_MUST_USE enum cv_err cv_epoch_add_release(struct cv_broker *broker, struct cv_campaign *campaign,
                                             const struct cv_release_row *row);
uint64_t cv_epoch_place_bit(uint32_t arm, uint64_t index);
/* True if there can be such a place: its bit is that of no other. */
bool cv_epoch_has_place(const struct cv_campaign *campaign, uint32_t arm, uint64_t index);
uint32_t cv_epoch_place_arm(uint64_t bit);
/* Places of an arm that can be given. */
uint32_t cv_arm_free_places(const struct cv_arm *arm);
/* A place to give, skipping filled ones; false if there is none. */
bool cv_arm_take_place(struct cv_campaign *campaign, uint32_t arm, uint32_t *ret_position);
CV_MUST_USE enum cv_err cv_arm_return_place(struct cv_campaign *campaign, uint32_t arm, uint32_t position);

/* shown.c: what an assignment shows */
/* The arm, which has an open epoch with a place free, and its neighbours that the plan names; returns how many. */
uint32_t cv_shown_list(const struct cv_campaign *campaign, uint32_t arm, uint32_t list[CV_VALUES_MAX]);
/* How many tokens of each want's arm a plan comes to. */
void cv_shown_by(const struct cv_campaign *campaign, const struct cv_plan *plan, uint64_t shown[CV_ARMS_MAX]);
/* Adds a token's values to the epochs of what it shows, in the list's order; closes those whose last it was. */
CV_MUST_USE enum cv_err cv_shown_add(struct cv_broker *broker, struct cv_campaign *campaign, const uint32_t *list,
                                     uint32_t n, const int64_t *value);
/* From plans and plays, all restored: tokens of earlier epochs, expected and seen of the open ones. */
void cv_shown_restore(struct cv_campaign *campaign);

/* crowd.c: assignments */
CV_MUST_USE enum cv_err cv_crowd_assign_all(struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms);
void cv_crowd_conn_fini(struct cv_broker_conn *conn);
CV_MUST_USE enum cv_err cv_crowd_tell_done(struct cv_broker *broker, const struct cv_campaign *campaign);

/* crowd_out.c */
bool cv_crowd_out_is_empty(const struct cv_crowd_frame *frame);
/* Forgets what has been said; keeps memory for the next time, unless it is much. */
void cv_crowd_out_empty(struct cv_crowd_out *out);
void cv_crowd_out_fini(struct cv_crowd_out *out);
/* The array, with room for one behind `count`; NULL, and the array as it was, if memory is out. */
void *cv_crowd_out_grow(void *array, size_t count, size_t *cap, size_t size);
/* One more in an array of `out`, to be filled in; NULL if memory is out. */
#define CV_CROWD_PUSH(out, array, count, cap)                                                                          \
  __extension__({                                                                                                      \
    void *grown = cv_crowd_out_grow((out)->frame.array, (out)->frame.count, &(out)->cap, sizeof(*(out)->frame.array)); \
    if (grown != NULL) {                                                                                               \
      (out)->frame.array = grown;                                                                                      \
    }                                                                                                                  \
    grown == NULL ? NULL : &(out)->frame.array[(out)->frame.count++];                                                  \
  })

/* lease.c */
/* Room for one more; then links it behind the others and returns its place. */
CV_MUST_USE enum cv_err cv_lease_room(struct cv_broker_conn *conn);
uint32_t cv_lease_link(struct cv_broker_conn *conn, const struct cv_lease *terms);
/* The lease is over; its place goes back if nobody has filled it. */
void cv_lease_end(struct cv_broker *broker, struct cv_broker_conn *conn, uint32_t at);
/* The same for the one that the ticket was given under, if the connection still has it. */
void cv_lease_end_of(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_ticket *ticket);
void cv_lease_expire(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t now_ms);
void cv_lease_return_all(struct cv_broker *broker, struct cv_broker_conn *conn);

/* dealing.c */
/* NULL if there is none. */
struct cv_dealing *cv_dealing_find(struct cv_broker_conn *conn, uint32_t campaign);
/* Found, or made if need be; CV_ERR_LIMIT if the connection deals with too many that are open. */
CV_MUST_USE enum cv_err cv_dealing_make(struct cv_broker *broker, struct cv_broker_conn *conn,
                                        const struct cv_campaign *campaign, struct cv_dealing **ret);

/* token.c */
CV_MUST_USE enum cv_err cv_token_count(struct cv_broker *broker, struct cv_broker_conn *conn,
                                       const struct cv_token *token);

/* dirty.c: out of memory ends the core */
void cv_dirty_chunk(struct cv_broker *broker, uint32_t campaign, enum cv_chunk_kind kind, struct cv_chunk *chunk);
void cv_dirty_arm(struct cv_broker *broker, struct cv_campaign *campaign, uint32_t index);
/* The oldest; there is one. */
struct cv_dirty cv_dirty_pop(struct cv_broker *broker);

/* image.c: what a batch holds */
CV_MUST_USE enum cv_err cv_image_fill(struct cv_broker *broker, struct cv_batch *batch);
CV_MUST_USE enum cv_err cv_image_read_arm(struct cv_campaign *campaign, uint32_t arm, struct cv_reader *in);

/* rank.c, order.c */
CV_MUST_USE enum cv_err cv_rank_fill(struct cv_broker *broker);
/* The name of the third-party that it waits for while another one is connected; NULL: it does not. */
const char *cv_rank_awaited(const struct cv_broker *broker, const struct cv_campaign *campaign);
void cv_rank_connected(struct cv_broker *broker, struct cv_broker_conn *conn);
void cv_rank_disconnected(struct cv_broker *broker);
CV_MUST_USE enum cv_err cv_order_fill(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t now_ms);
void cv_order_conn_fini(struct cv_broker_conn *conn);
void cv_order_tick(struct cv_broker *broker, uint64_t now_ms);
/* The ended campaign whose turn it is in what the connection is owed; 0 = none. */
uint32_t cv_order_needs(const struct cv_broker_conn *conn);
/* What it is owed of that campaign cannot be had. */
void cv_order_miss(struct cv_broker *broker, struct cv_broker_conn *conn, const char *text);

/* ended.c: campaigns that have ended */
/* Those that are too old, or too many, are forgotten. */
void cv_ended_sweep(struct cv_broker *broker);
/* One more of this requester, of whose campaigns so many are open, is to be kept: the one that ended first goes. */
void cv_ended_make_room(struct cv_broker *broker, const char *requester, uint32_t open);
/* How many campaigns of this requester were submitted within the last minute, as far as is known. */
uint32_t cv_ended_recent(const struct cv_broker *broker, const char *requester);
/* Once all has been said: only those stay in memory that somebody is about to be served from. */
void cv_ended_leave_memory(struct cv_broker *broker);
/* What the batch writes and deletes of them. */
CV_MUST_USE enum cv_err cv_ended_fill(struct cv_broker *broker, struct cv_batch *batch);
/* How it ended, as it is told now. */
void cv_ended_progress(const struct cv_broker *broker, const struct cv_ended *ended, struct cv_progress *ret);

/* core.c */
/* Answers in vain that a connection may have between two flushes. */
size_t cv_broker_share(const struct cv_broker *broker);
/* At the end of every entry from outside: out of memory, then or earlier, is final. Passes `err` on, else. */
CV_MUST_USE enum cv_err cv_broker_unless_failed(struct cv_broker *broker, enum cv_err err, struct cv_why *why);

/* statement.c: what a campaign has cost, or a plan of one can cost. The result is on the heap. */
CV_MUST_USE enum cv_err cv_statement_of(struct cv_broker *broker, const struct cv_campaign *campaign,
                                        struct cv_statement **ret);
CV_MUST_USE enum cv_err cv_statement_plan(struct cv_broker *broker, const struct cv_spec *spec,
                                          struct cv_statement **ret, struct cv_why *why);
void cv_statement_free(struct cv_statement *statement);

/* talk.c */
/* `peer` is NULL for what limits bound already: the log does not count repetitions then. */
void cv_broker_note(struct cv_broker *broker, const char *peer, const char *fmt, ...) CV_PRINTF(3, 4);
/* The first message is a hello of our version, and no other is. */
CV_MUST_USE enum cv_err cv_broker_greet(struct cv_broker *broker, struct cv_broker_conn *conn,
                                        const struct cv_hello *hello, struct cv_why *why);
/* Our own hello, present if it has not been sent yet; counts as sent. */
struct cv_hello cv_broker_hello(struct cv_broker_conn *conn);

#endif
