/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the truth, for its own files only: truth.c (stored), told.c (sent), opinions.c (by gateways), verdict.c
 * (the end), spy.c. */
#ifndef CV_SIM_TRUTH_STATE_H
#define CV_SIM_TRUTH_STATE_H

#include "broker/campaign.h"
#include "broker/state.h"
#include "tests/sim/oracle.h"
#include "tests/sim/seen.h"
#include "tests/sim/truth.h"

enum { SPIED = 16 };

/* An arm's mechanism as stored with its open epoch, or with the last one. */
struct arm {
  struct cv_buf opened;
  bool stored;       /* for certain */
  uint64_t releases; /* before that epoch */
};

/* A worker's answers to gold items in one campaign. */
struct golds {
  uint32_t answers, wrong;     /* counted by the broker */
  uint32_t acknowledged, ever; /* received by the worker as accepted; counted ever, also in batches that were lost */
  bool found;
};

struct campaign {
  struct golds *golds; /* by worker; NULL: no gold items */
  struct neutral {
    int64_t noise, tokens; /* as the broker's number had at first, and neutral tokens since then */
    bool is_known;
  } neutral[SCENARIO_ARMS];
  uint32_t owner; /* the owner that it was accepted for, from 1; 0 = no requester has received it */
  struct cv_plan *plan;
  size_t plans, plans_stored; /* the others were not stored, as far as is known */
  size_t plans_cap;
  struct cv_release *release;
  size_t releases, releases_stored, releases_sent;
  size_t releases_cap;
  struct arm arm[SCENARIO_ARMS];
  bool has_seed;
  uint64_t seed;
  enum cv_end end; /* as the requester received it */
  bool finished;
  uint64_t spent_micro; /* as received with it */
  struct cv_standing standing[SCENARIO_ARMS];
  uint32_t standings;
  uint64_t thirdparty_releases, thirdparty_plans; /* stored at the third-party */
  size_t snapshot_releases, snapshot_plans;
  bool must_freeze;
  uint64_t taken_ms;    /* latest time at which the broker can have accepted it; 0 = it has not */
  uint64_t counting_ms; /* its deadline counts from then, or from the broker's last start */
  bool deadline_seen;
  uint64_t acknowledged[SCENARIO_ARMS]; /* tokens */
  uint64_t paid_micro;                  /* as received with the end */
  uint64_t owed_micro;                  /* for acknowledged tokens, including those that the broker has forgotten */
  uint64_t snapshot_owed_micro;
  bool is_void;            /* a recovery has ended it */
  uint64_t tokens;         /* as received with the end */
  size_t exported;         /* releases in the current export */
  int64_t *value;          /* the token of each counted place, by arm and place; NULL: the same for every worker */
  bool purging, is_purged; /* its requester has asked for a purge; has received that it is done */
};

/* What a worker was asked for last: a place, or the row of a part at a position, and the value that it sends. */
struct opinion {
  uint32_t arm, opponent;
  uint64_t at, number;
  int64_t value;
};

struct said {
  uint32_t values;
  struct opinion of[SCENARIO_ARMS];
};

struct truth {
  struct world *world;
  struct campaign *campaign;  /* by id; room for all of the world */
  uint32_t campaigns;         /* one more than the largest id */
  struct seen places, payers; /* acknowledged */
  struct seen answered;       /* questions whose token was counted, by campaign and worker */
  struct seen given;          /* tickets of the tokens that have left a gateway */
  struct ticket_list {
    struct cv_ticket *ticket;
    size_t n, cap;
  } acknowledged;
  uint64_t *spent_micro; /* by worker, spent on acknowledged tokens */
  uint32_t *gave_to;     /* by worker, the campaign of its last acknowledged token */
  uint64_t *gave;        /* by worker, scores that were acknowledged */
  uint64_t *left;        /* by worker, scores that have left its gateway */
  uint64_t workers;
  uint64_t *row_left; /* by row of a person, the number of the ticket it has left with; 0: it has not left */
  struct said *said;  /* by worker */
  struct seen opinions, disclosed, tickets_left; /* that have left; with their tickets or values; of any token */
  uint64_t commit, snapshot_commit;
  bool thirdparty_lost;
  uint64_t *asked_ms; /* by owner, the earliest time of its first request */
  uint64_t *asked_jumps;
  struct seen nonces;
  uint8_t ticket[SPIED][CV_TICKET_BYTES]; /* rings of byte strings that must not be on any disk */
  struct partial {
    uint32_t tokens;
    int64_t sum;
  } partial[SPIED];
  uint8_t key[SPIED][CV_KEY_BYTES];
  size_t tickets, partials, keys;
};

/* The campaign with this id; fails the world if there is none. */
struct campaign *truth_campaign(struct truth *truth, uint64_t id);
void truth_check_seed(struct truth *truth, uint64_t id, uint64_t seed);
bool truth_same_release(const struct cv_release *a, const struct cv_release *b);
bool truth_same_plan(const struct cv_plan *a, const struct cv_plan *b);
/* Decodes a ticket without checking who issued it. */
void truth_open(const struct truth *truth, const uint8_t *bytes, struct cv_ticket *ret);
/* 16: a person's token leaves its gateway; `number` is the ticket's number. */
void truth_gave_row(struct truth *truth, const struct cv_ticket *ticket, const struct cv_token *token, uint64_t number);
/* 16: persons arrive. */
void truth_came(struct truth *truth, const struct cv_arrive *arrive);
/* 16: a campaign has ended; if no person came for an arm, there was none that had to. */
void truth_check_idle(struct truth *truth, const struct campaign *campaign);
/* 18: a token leaves its gateway. */
void truth_check_opinions(struct truth *truth, const struct cv_ticket *ticket, const struct cv_token *token);
/* The rows of the arm that have not left to the campaign, of all parts. */
uint64_t truth_rows_left(const struct truth *truth, uint64_t campaign, uint32_t arm);
/* A person with a row of the arm that has not left, whom the terms allow to give it; 0: none. */
uint64_t truth_find_idle(const struct truth *truth, uint32_t arm);
/* The score for `arm` of a filled place of `played`; the sum of the scores of the arm that the plan shows, as in
 * shows_sum(). */
int64_t truth_value(const struct truth *truth, const struct campaign *campaign, uint32_t played, uint64_t place,
                    uint32_t arm);
int64_t truth_sum(const struct truth *truth, const struct campaign *campaign, const struct cv_plan *plan,
                  const uint64_t *first, uint32_t arm);
/* 17: the memory for it; a counted answer, its campaign's gold items; what a token of the worker adds to the sum; the
 * counted answers of all workers; what they cost; whether the broker's cells agree, after a restart with what may be
 * missing. */
void truth_make_room_for_golds(struct truth *truth);
void truth_gold_answer(struct truth *truth, struct campaign *campaign, const struct cv_ticket *ticket, int64_t value);
int64_t truth_gold_value(struct campaign *campaign, uint64_t worker, uint32_t arm, int64_t value);
uint64_t truth_gold_answers(const struct truth *truth, const struct campaign *campaign);
void truth_gold_most(const struct truth *truth, const struct campaign *campaign, uint64_t *least, uint64_t *most);
void truth_check_golds(struct truth *truth, struct cv_broker_campaign *core, struct campaign *campaign, bool again);
/* An open epoch's tokens and their sum so far, for the search. */
void truth_spy(struct truth *truth, uint32_t tokens, int64_t sum);
/* 9, for the stored records; `campaign` has its plans and releases, unless the broker was rolled back. */
void truth_check_payments(struct truth *truth, const struct cv_broker_campaign *core, const struct campaign *campaign);
/* 9, for the messages and the statement that its requester received. */
void truth_check_paid(struct truth *truth, struct cv_broker *core, uint64_t id);
/* 9: a token was acknowledged, so its worker has earned its cost. */
void truth_owe(struct truth *truth, const struct cv_ticket *ticket);
/* 9: whether the worker may have a place of the arm. */
void truth_check_hire(struct truth *truth, const struct cv_ticket *ticket);
/* Scores that a token of the arm shows in that plan, and what its worker is charged for them. */
uint32_t truth_shown(struct truth *truth, const struct campaign *campaign, uint64_t plan, uint32_t arm);
uint64_t truth_price(struct truth *truth, const struct campaign *campaign, uint64_t plan, uint32_t arm);
/* 3: no worker has spent less than its acknowledged tokens cost. */
void truth_check_accounts(struct truth *truth, struct cv_broker *core);
/* The sum of the broker's accounts of all workers, and the cost of the tokens of all campaigns. */
void truth_check_sum_of_accounts(struct truth *truth, struct cv_broker *core);

/* The opponent that the plan names for the arm, 1 + its number; 0: none. */
uint32_t truth_opponent(const struct truth *truth, uint64_t campaign, uint64_t number, uint32_t arm);

#endif
