/* SPDX-License-Identifier: Apache-2.0 */
/* What the truth remembers, for its own files only: truth.c (stored), told.c (said), verdict.c (the end), spy.c. */
#ifndef CV_SIM_TRUTH_STATE_H
#define CV_SIM_TRUTH_STATE_H

#include "broker/campaign.h"
#include "broker/state.h"
#include "tests/sim/oracle.h"
#include "tests/sim/seen.h"
#include "tests/sim/truth.h"

enum { SPIED = 16 };

/* An arm's mechanism as it was stored with its open epoch, or the last one. */
struct arm {
  struct cv_buf opened;
  bool stored;       /* for certain */
  uint64_t releases; /* before that epoch */
};

struct campaign {
  uint32_t owner; /* whose it was accepted as, from 1; 0 = nobody has been told */
  struct cv_plan *plan;
  size_t plans, plans_stored; /* the rest was not stored, as far as is known */
  size_t plans_cap;
  struct cv_release *release;
  size_t releases, releases_stored, releases_sent;
  size_t releases_cap;
  struct arm arm[SCENARIO_ARMS];
  bool has_seed;
  uint64_t seed;
  enum cv_end end; /* as told to the requester */
  bool finished;
  uint64_t spent_micro; /* as told with it */
  struct cv_standing standing[SCENARIO_ARMS];
  uint32_t standings;
  uint64_t thirdparty_releases, thirdparty_plans; /* stored at the third-party */
  size_t snapshot_releases, snapshot_plans;
  bool must_freeze;
  uint64_t taken_ms;    /* when the broker took it at the latest; 0 = it has not */
  uint64_t counting_ms; /* since then or since the broker's last start its deadline is counted */
  bool deadline_seen;
  uint64_t acknowledged[SCENARIO_ARMS]; /* tokens */
  uint64_t paid_micro;                  /* as told with the end */
  uint64_t owed_micro;                  /* for tokens that were acknowledged, whatever became of the broker's memory */
  uint64_t snapshot_owed_micro;
  bool is_void;            /* a recovery has ended it */
  uint64_t tokens;         /* as told with the end */
  size_t exported;         /* releases, of the export that is going on */
  int64_t *value;          /* of persons: what each place says that was counted, by arm and place; NULL: none are */
  bool purging, is_purged; /* its requester has asked for that; has been told so */
};

struct truth {
  struct world *world;
  struct campaign *campaign;  /* by id */
  uint32_t campaigns;         /* ids are below */
  uint32_t room;              /* for those that are submitted again after a recovery */
  struct seen places, payers; /* acknowledged */
  struct seen given;          /* tickets of what has left a gateway */
  struct ticket_list {
    struct cv_ticket *ticket;
    size_t n, cap;
  } acknowledged;
  uint64_t *spent_micro; /* by each worker, on what was acknowledged */
  uint32_t *gave_to;     /* by each worker, the campaign that its last token was acknowledged in */
  uint64_t *gave;        /* by each worker, scores that were acknowledged */
  uint64_t *left;        /* by each worker, scores that have left its gateway */
  uint64_t workers;
  uint64_t *row_left; /* by row of a person, the ticket that it has left with, as a number; 0: it has not */
  uint64_t commit, snapshot_commit;
  bool thirdparty_lost;
  uint64_t *asked_ms; /* per owner, when it first asked for it at the earliest */
  uint64_t *asked_jumps;
  struct seen nonces;
  uint8_t ticket[SPIED][CV_TICKET_BYTES]; /* rings of what must be on no disk */
  struct partial {
    uint32_t tokens;
    int64_t sum;
  } partial[SPIED];
  size_t tickets, partials;
};

/* Campaign `id`; fails the world if there is no such one. */
struct campaign *truth_campaign(struct truth *truth, uint64_t id);
void truth_check_seed(struct truth *truth, uint64_t id, uint64_t seed);
bool truth_same_release(const struct cv_release *a, const struct cv_release *b);
bool truth_same_plan(const struct cv_plan *a, const struct cv_plan *b);
/* A ticket as it is, whoever made it. */
void truth_open(const uint8_t *bytes, struct cv_ticket *ret);
/* 16: a person's token leaves its gateway; `number` is the ticket's own. */
void truth_gave_row(struct truth *truth, const struct cv_ticket *ticket, const struct cv_token *token, uint64_t number);
/* 16: persons come. */
void truth_came(struct truth *truth, const struct cv_arrive *arrive);
/* 16: a campaign has ended; if nobody came, there is nobody who had to. */
void truth_check_idle(struct truth *truth, const struct campaign *campaign);
/* What a filled place of `played` says of `arm`; the sum of what the plan shows of the arm, as in shows_sum(). */
int64_t truth_value(const struct truth *truth, const struct campaign *campaign, uint32_t played, uint64_t place,
                    uint32_t arm);
int64_t truth_sum(const struct truth *truth, const struct campaign *campaign, const struct cv_plan *plan,
                  const uint64_t *first, uint32_t arm);
/* An open epoch's tokens and their sum so far: to be searched for. */
void truth_spy(struct truth *truth, uint32_t tokens, int64_t sum);
/* 9, of what is on record; `campaign` knows its plans and releases, unless the broker was put back. */
void truth_check_payments(struct truth *truth, const struct cv_broker_campaign *core, const struct campaign *campaign);
/* 9, of what its requester was told and what its statement says. */
void truth_check_paid(struct truth *truth, struct cv_broker *core, uint64_t id);
/* 9: a token was acknowledged, so its worker has earned its cost. */
void truth_owe(struct truth *truth, const struct cv_ticket *ticket);
/* 9: who may have a place of the arm. */
void truth_check_hire(struct truth *truth, const struct cv_ticket *ticket);
/* Scores that a token of the arm shows in that plan, and what its worker pays for them. */
uint32_t truth_shown(struct truth *truth, const struct campaign *campaign, uint64_t plan, uint32_t arm);
uint64_t truth_price(struct truth *truth, const struct campaign *campaign, uint64_t plan, uint32_t arm);
/* What the broker's accounts say of all workers, and what the tokens of all campaigns cost. */
void truth_check_sum_of_accounts(struct truth *truth, struct cv_broker *core);

#endif
