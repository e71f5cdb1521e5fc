/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one campaign in one process: plan by plan, the tokens that the deployed policy asks for are drawn, privatized,
 * summed, released by the deployed mechanism and returned to the policy, until the policy is done or the money or the
 * tokens are spent. There is no wire, no disk and no worker process; all code that decides is the deployed code.
 *
 * Sums of Bernoulli scores, also behind randomized response, are drawn at once as one binomial variable (equal in law),
 * and with strata sums of a data file's rows value by value; at token level every token is drawn. All randomness
 * follows from the seed, with a stream for each arm's scores and one for its noise, so that two policies with one seed
 * have the same instance and, pull by pull of an arm, the same scores.
 *
 * The end: of a bandit's last plan, if it does not fit into the tokens left, a part is played, its arms in turn, and
 * not released. A bandit's policy that is done early plays the arm that it has found for the rest of the tokens. An arm
 * whose data are used up ends the campaign with the tokens collected so far, but as deployed only if its policy cannot
 * go on without the arm; an arm whose mechanism has reached its horizon ends it.
 */
#ifndef CV_SIMULATE_TRIAL_H
#define CV_SIMULATE_TRIAL_H

#include "prepare/prepare.h"
#include "simulate/game.h"
#include "simulate/strata.h"
#include "simulate/turns.h"

/* Why a trial ended. */
enum cv_trial_end {
  CV_TRIAL_COMPLETE, /* the policy has finished */
  CV_TRIAL_LIMIT,    /* the next plan asks for more than the tokens left */
  CV_TRIAL_MONEY,    /* or costs more than the money left */
  CV_TRIAL_USED_UP,  /* the data of an arm */
  CV_TRIAL_HORIZON,  /* an arm's mechanism makes no further release */
  CV_TRIAL_PLANS,    /* all plans that the trial may have */
  CV_TRIAL_STOPPED,  /* by the caller */
};

struct cv_trial_totals {
  uint64_t pulls;      /* tokens of assignments; with a graph plays, without the neighbours' scores */
  uint64_t rounds;     /* plans that were released */
  uint64_t paid_micro; /* of a recruitment */
  double reward;       /* sum of the arms' true means; against an adversary, of the gains */
};

struct cv_trial {
  const struct cv_prepared *campaign; /* borrowed */
  struct cv_game *game;               /* against an adversary, borrowed; else NULL */
  uint64_t seed;
  bool token_level;
  const struct cv_strata *strata; /* of the source's rows, borrowed; NULL: rows are drawn one by one */
  uint64_t plans;   /* ends the run after this many released plans, unless its policy is done; 0: no limit */
  bool as_deployed; /* tokens left at the end stay: no part of a plan is played, no arm for the rest of the tokens */
  /* Optional: asked before each plan; true ends the run. */
  bool (*is_over)(void *data);
  void *data;
  /* Optional: the numbers of pulls, ascending, at which to record the totals. Past the last pull totals are
   * constant. */
  size_t moments;
  const uint64_t *moment;
  struct cv_trial_totals *at; /* output: `moments` totals */
  /* Optional: records the arm of each round. Every score is then drawn separately. Not for an adversary. Borrowed. */
  struct cv_turns *turns;
  /* Results. */
  struct cv_trial_totals total;
  struct cv_standing *standing; /* of each arm; owned */
  struct cv_policy_lies *lies;  /* what the class of each arm bears; owned */
  uint64_t *pulls;              /* of each arm; owned */
  uint64_t *releases;           /* likewise */
  bool complete;                /* the policy ended the campaign */
  uint64_t decided;             /* pulls after which it did; without an end all pulls */
  enum cv_trial_end end;
  uint32_t used_up; /* the first arm whose data could not fill its plan; CV_TURNS_NO_ARM: there was none */
  uint64_t wanted;  /* the tokens that it would have had with that plan */
};

/* Runs the campaign. The caller frees the results with cv_trial_fini(). One line. */
CV_MUST_USE enum cv_err cv_trial_run(struct cv_trial *trial, struct cv_why *why);
/* Frees the results. */
void cv_trial_fini(struct cv_trial *trial);

#endif
