/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One campaign in one process: what the deployed policy asks for is drawn, privatized, summed and released by the
 * deployed mechanism, and given back to the policy, plan after plan, until it is done, the money is spent or the tokens
 * are. No wire, no disk, no worker processes; everything that decides is the deployed code.
 *
 * Sums of Bernoulli scores, also behind randomized response, are drawn at once, as one binomial variable (equal in
 * law); at token level every token is drawn. All randomness is the seed's: streams of their own for each arm's scores
 * and noise, so that two policies on one seed see the same instance and, pull by pull of an arm, the same scores.
 *
 * Ends: a plan that does not fit into the tokens that are left is played as far as they go, its arms in turn, and never
 * released (a bandit's time runs on). A policy for which regret counts that is done before the tokens are plays on with
 * the arm it has found. An arm whose data are used up ends the campaign with what was collected until then, and so does
 * one whose mechanism has reached its horizon.
 */
#ifndef CV_LAB_TRIAL_H
#define CV_LAB_TRIAL_H

#include "lab/run/game.h"
#include "lab/run/turns.h"
#include "prepare/prepare.h"

struct cv_lab_totals {
  uint64_t pulls;      /* tokens of assignments; with a graph plays, not what they show */
  uint64_t rounds;     /* plans that were released */
  uint64_t paid_micro; /* of a recruitment */
  double reward;       /* by the arms' true means; against an adversary the gains themselves */
};

struct cv_lab_trial {
  const struct cv_prepared *campaign; /* borrowed */
  struct cv_lab_game *game;           /* against an adversary, borrowed; else NULL */
  uint64_t seed;
  bool token_level;
  uint64_t plans; /* the end after so many; 0: none */
  /* Wanted: the totals after so many pulls each, ascending. Behind the last pull totals stay as they are. */
  size_t moments;
  const uint64_t *moment;
  struct cv_lab_totals *at; /* `moments` of them, to be filled in */
  /* Wanted: who was played when. Every score is then drawn by itself. Not against an adversary. Borrowed; NULL: no. */
  struct cv_lab_turns *turns;
  /* What came out. */
  struct cv_lab_totals total;
  struct cv_standing *standing; /* of each arm; owned */
  uint64_t *pulls;              /* of each arm; owned */
  uint64_t *releases;           /* likewise */
  bool complete;                /* the policy was done */
};

CV_MUST_USE enum cv_err cv_lab_trial_run(struct cv_lab_trial *trial, struct cv_why *why);
/* Frees what came out. */
void cv_lab_trial_fini(struct cv_lab_trial *trial);

#endif
