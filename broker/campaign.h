/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A campaign: its spec, its arms with their open epochs, its plans and releases. It is in memory while it is open,
 * until its end is stored, and after it was fetched (fetch.h). ending.h ends campaigns; payer.h computes what their
 * workers pay.
 */
#ifndef CV_BROKER_CAMPAIGN_H
#define CV_BROKER_CAMPAIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/both/gate.h"
#include "broker/both/ledger.h"
#include "broker/declines.h"
#include "broker/gold.h"
#include "broker/mechanism/mechanism.h"
#include "broker/nobody.h"
#include "broker/offers.h"
#include "broker/payroll.h"
#include "broker/shown.h"
#include "broker/urn.h"
#include "common/base/answered.h"
#include "common/base/buf.h"
#include "common/base/chunks.h"
#include "common/base/digest.h"
#include "common/base/neighbours.h"
#include "common/base/result.h"
#include "common/base/spec.h"
#include "common/base/table.h"
#include "common/prio/xof_rng.h"
#include "proto/codec/order.h"
#include "proto/codec/rank.h"

struct cv_broker;
struct cv_broker_two;

/* An accepted place, as recorded in the journal. */
struct cv_entry {
  uint64_t index; /* the place's round */
  uint64_t worker;
  uint64_t question; /* that the worker has answered (question.h) */
  /* `arm` of an answer to a gold item: the number of arms, plus one if it is wrong; of a slot that was used up for
   * nothing, with two brokers: the number of arms. There is no index then. */
  uint32_t arm, slot;
  uint32_t shown; /* number of arms that the token covers, the assigned one included */
};

struct cv_arm {
  struct cv_mechanism *mechanism;
  uint64_t plan;               /* of the open epoch; 0 = none open */
  uint64_t first;              /* plays of all earlier epochs */
  uint64_t round;              /* of the open epoch: plays of all arms planned before it */
  uint32_t opponent;           /* of the open epoch: 1 + the arm that all its tokens are compared with; 0: drawn */
  uint32_t switched;           /* of the epoch's first play: how many plays ago another arm was planned; 0: never */
  struct cv_digest chain;      /* with two brokers: over the open epoch's accepted tokens (cv_split_chain()) */
  uint32_t want, next, filled; /* plays: planned; next position never assigned; accepted */
  uint64_t before;             /* tokens of all earlier epochs: equals plays if there is no feedback graph */
  uint64_t expected, seen;     /* tokens of the open epoch: in all, accepted */
  int64_t sum;                 /* of the open epoch, exact; with two brokers an element: this broker's share */
  uint32_t *returned;          /* positions to be assigned again; owned */
  uint32_t returned_count;
  uint32_t returned_low; /* none of them is lower */
  size_t returned_cap;
  bool is_spent;    /* its last release is made: its data are used up */
  uint64_t said_ms; /* when a connection first said that it has no more scores of the arm; 0: none did. Not stored */
  bool listed;      /* among `news` */
  bool touched;     /* filled or sum changed since the last batch */
  bool changed;     /* anything else changed since the last batch */
  uint64_t dirty_since;
  uint64_t written; /* while restoring: the commit of the stored image */
};

/* A release, without the fields that can be derived from the campaign. */
struct cv_broker_release {
  uint64_t number, plan, tokens;
  int64_t noisy_sum;
  uint32_t arm, nth; /* nth release of the arm; 0: its data are used up, and it has too few tokens for a release */
  /* Of the last release of an arm whose data are used up: the tokens that all plans wanted of it, and those that it
   * gave. Else 0. */
  uint64_t wanted, given;
};

/*
 *   OPENING --Opened--> RUNNING --plans, releases--> ... --Result--> ENDED
 *      |                   |
 *      +------- stop ------+--> STOPPING --Result--> ENDED        any --disagreement--> ENDED (frozen)
 */
enum cv_broker_phase { CV_PHASE_OPENING, CV_PHASE_RUNNING, CV_PHASE_STOPPING, CV_PHASE_ENDED };

struct cv_broker_campaign {
  uint32_t id;
  UT_hash_handle hh;
  struct cv_broker_campaign *next_open; /* list of campaigns that have not ended */
  char requester[CV_NAME_BYTES];
  uint8_t client_key[CV_CLIENT_KEY_BYTES];
  struct cv_spec spec;
  struct cv_privacy privacy;
  struct cv_broker_gold gold;
  struct cv_broker_two *two; /* with two brokers, else NULL; owned (two.h) */
  enum cv_broker_phase phase;
  enum cv_end end;
  char why[CV_END_WHY_BYTES];     /* it ended; "" while it runs, and of a complete one */
  char thirdparty[CV_NAME_BYTES]; /* the third-party that opened it and keeps it; "": none yet */
  bool has_seed;
  uint64_t seed;
  uint64_t submitted_wall_ms, ended_wall_ms;
  uint64_t deadline_wall_ms, deadline_ms; /* 0 = none; the campaign stops when either clock reaches it */
  uint64_t active_ms;                     /* time of the last accepted token or opened plan */
  uint64_t tokens;                        /* accepted */
  uint64_t reserved;                      /* of open epochs, not yet accepted */

  struct cv_neighbours graph;
  uint32_t shown_most; /* largest number of arms that one assignment may cover */
  struct cv_shown shown;
  struct cv_arm *arm; /* spec.arms of them; owned; NULL after the campaign stops */
  uint32_t *news;     /* arms that changed since the last batch, so that a commit costs what changed; owned */
  uint32_t news_count;
  uint32_t open_arms;          /* arms with an open epoch */
  struct cv_urn urn;           /* the free places of its arms */
  struct cv_xof_rng order;     /* from which they are drawn, once it has begun (question.h); not stored */
  struct cv_chunks places;     /* see cv_place_bit */
  struct cv_chunks payers;     /* see cv_broker_campaign_payer_bit: slots whose token was accepted */
  struct cv_offers offered;    /* same bits: slots assigned and not yet answered; not stored */
  struct cv_answered answered; /* what each worker has answered (question.h) */
  struct cv_offers asking; /* questions that are assigned and not yet answered (cv_broker_question_bit()); not stored */

  struct cv_ledger ledger; /* of its arms */
  struct cv_payroll payroll;
  struct cv_broker_release *release; /* owned */
  size_t releases, releases_cap;
  uint32_t said_arms;                          /* of which somebody said so */
  uint32_t spent_arms;                         /* whose data are used up */
  struct cv_used_up used_up[CV_USED_UP_SHOWN]; /* the first of them */
  struct cv_digest releases_hash;
  struct cv_plan *plan; /* accepted plans, in order; owned */
  uint64_t planned;     /* tokens of all plans but the last */
  uint64_t rounds;      /* tokens of all plans: as many places there are so far */
  size_t plans, plans_cap;
  struct cv_digest plans_hash;
  struct cv_standing *standing; /* spec.arms of them, by arm; owned */
  bool has_standings;

  /* changes since the last batch */
  bool fresh, changed, standings_changed, purge, done_told;
  bool settled; /* ended, and everything of it is stored or in the batch being stored */
  bool fetched; /* read back from the database to answer a request */
  size_t stored_releases, stored_plans;
  struct cv_buf journal;       /* struct cv_entry each */
  struct cv_declines declines; /* by its workers; not stored */
  struct cv_nobody nobody;     /* whether any of them may give a token; not stored */
  bool progressed;             /* progress that was not yet sent to watchers */

  /* state of the third-party's current connection for this campaign */
  struct {
    bool open_sent, opened, stop_sent;
    uint64_t releases, plans; /* number of the last one sent */
    bool accept_due;
    uint64_t accept;
    bool refuse_due;
    struct cv_rank_refused refused;
    char refused_why[CV_WHY_BYTES];
  } rank;
};

/* The campaign in memory; NULL if none has this number. */
struct cv_broker_campaign *cv_broker_campaign_find(struct cv_broker *broker, uint64_t id);
/* Creates an open campaign, the newest; the broker owns it. Copies `spec` and `gold`. CV_ERR_NOMEM, and the errors of
 * cv_privacy_init(). */
CV_MUST_USE enum cv_err cv_broker_campaign_new(struct cv_broker *broker, uint32_t id, const struct cv_spec *spec,
                                               const struct cv_gold *gold, struct cv_broker_campaign **ret);
void cv_broker_campaign_free(struct cv_broker_campaign *campaign);
/* Frees its secrets: everything that only a running campaign needs. */
void cv_broker_campaign_free_secrets(struct cv_broker_campaign *campaign);
/* Lists the arm as changed since the last batch. */
void cv_broker_campaign_list(struct cv_broker_campaign *campaign, uint32_t arm);
/* Removes it from the list of open campaigns. */
void cv_broker_campaign_leave_open(struct cv_broker *broker, struct cv_broker_campaign *campaign);
/* Frees it in any phase and removes it from memory. */
void cv_broker_campaign_drop(struct cv_broker *broker, struct cv_broker_campaign *campaign);
/* Adds a new campaign to the totals: its number and the most it can cost one worker. */
void cv_broker_campaign_count(struct cv_broker *broker, const struct cv_broker_campaign *campaign);
/* Marks its state as changed: it is written with the next batch and reported to watchers. */
void cv_broker_campaign_mark(struct cv_broker *broker, struct cv_broker_campaign *campaign);

/* The digest of a spec and gold items as they were asked for: the smallest release, which the broker raises, is no part
 * of it. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_campaign_digest(const struct cv_broker *broker, const struct cv_spec *spec,
                                                  const struct cv_gold *gold, struct cv_digest *ret);
/* Whether `thirdparty` may serve a campaign kept by `keeper`: the one that opened it; "": no one has opened it yet. */
bool cv_broker_campaign_stays_with(const char *keeper, const char *thirdparty);
/* The name of the absent third-party that the campaign waits for while another one is connected; NULL if none. */
const char *cv_broker_campaign_awaited(const struct cv_broker *broker, const struct cv_broker_campaign *campaign);
/* Fills in the campaign's progress. */
void cv_broker_campaign_progress(const struct cv_broker *broker, const struct cv_broker_campaign *campaign,
                                 struct cv_progress *ret);
/* The sum of two sums of tokens: of shares in their field. */
int64_t cv_broker_campaign_add(const struct cv_broker_campaign *campaign, int64_t a, int64_t b);
/* The cost of an arm's first `nth` releases together, in micro-epsilon. */
uint64_t cv_broker_campaign_cost(const struct cv_broker_campaign *campaign, uint64_t nth);
/* A release in its wire form, with its noise. `i` counts from 0. */
void cv_broker_campaign_release(const struct cv_broker_campaign *campaign, size_t i, struct cv_release *ret);
/* Takes over all `n` standings. CV_ERR_FORMAT, without any change, if one has an invalid arm or class. */
CV_MUST_USE enum cv_err cv_broker_campaign_set_standings(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                                         const struct cv_standing *standing, uint32_t n,
                                                         struct cv_why *why);

#endif
