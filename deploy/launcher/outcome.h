/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a campaign: ranking or pulls, the truth if it is known, and what was spent. */
#ifndef CV_LAUNCHER_OUTCOME_H
#define CV_LAUNCHER_OUTCOME_H

#include <stdint.h>
#include <stdio.h>

#include "deploy/launcher/exposure.h"
#include "deploy/launcher/hindsight.h"
#include "deploy/launcher/lies.h"
#include "deploy/launcher/rest.h"
#include "deploy/launcher/unit.h"
#include "prepare/campaign_bound.h"
#include "prepare/prepare.h"
#include "proto/codec/order.h"
#include "thirdparty/policy/policy.h"

struct cv_outcome {
  enum cv_policy_kind kind;
  struct cv_progress progress;
  uint32_t arms;
  struct cv_standing *standing; /* of each arm, by number; owned */
  uint32_t *order;              /* arms in the order of display: a ranking by class, then mean, undecided arms last;
                                   others by tokens; owned */
  const char **name;            /* of each arm (names.h); owned */
  double *mean;                 /* the true means; owned; NULL: truth unknown */
  uint32_t *truth;              /* the true classes; owned; NULL: truth unknown, or not a ranking */
  bool *duel_right;     /* from duels, with `truth`: whether each item is right by them (worker/quality/pairs.h),
                                   which is what this ranking is judged by; owned */
  double tie;           /* with `duel_right`: the policy's */
  struct cv_rest rest;  /* of a ranking: the items without a class */
  uint64_t *cost_micro; /* cost of a token of each arm; owned; NULL: workers are not paid */
  uint64_t budget_micro;
  bool is_exported;              /* the next two are set, as far as they apply */
  struct cv_hindsight hindsight; /* against an adversary */
  struct cv_lies lies;           /* of a ranking */
  double alpha;
  const char *assumption; /* about scores, that a ranking's intervals rest on; static */
  bool has_duels;         /* means of the standings are of duels, not of scores */
  bool has_bound;         /* a ranking of simulated items whose tokens are 0 or 1 */
  struct cv_bound bound;  /* the fewest tokens that an equally private ranking needs on average */
  uint64_t epsilon_micro; /* the campaign's limit; 0: unknown */
  uint64_t neutral_micro; /* charged for each token besides, for the numbers of neutral tokens; 0: none, or unknown */
  bool is_exact;          /* the campaign has no noise: the third-party saw exact sums */
  struct cv_exposure exposure; /* of the rows of its data file, if that is known */
  struct cv_unit unit;         /* of that file's scores */
};

/* What the caller knows besides the broker's answer. Any field may be NULL or 0; kind 0 is a ranking. */
struct cv_outcome_known {
  enum cv_policy_kind kind;
  const struct cv_spec *spec;
  const char *const *name;
  const double *mean;
  const struct cv_prepared *file; /* the campaign's file, for the exposure of its data; outlives the outcome */
  bool is_seed_known;             /* `file` was prepared with the workers' seed */
};

/* An arm without a standing is undecided. An arm without a name is called "worker 7" if the spec has worker ids, else
 * "arm 3", counted from 1. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_outcome_init(struct cv_outcome *outcome, const struct cv_finished *finished,
                                        const struct cv_outcome_known *known);
void cv_outcome_fini(struct cv_outcome *outcome);

/* Whether the campaign's export is needed for what the outcome should have. `adversary` may be NULL. */
bool cv_outcome_needs_export(const struct cv_outcome *outcome, const struct cv_adversary *adversary);
/* Adds a part of the export; with the last part sets `is_exported`. CV_ERR_FORMAT, _LIMIT or _NOMEM. */
CV_MUST_USE enum cv_err cv_outcome_take_part(struct cv_outcome *outcome, const struct cv_adversary *adversary,
                                             struct cv_export *export, const struct cv_part *part, struct cv_why *why);

/* Returns the number of arms without a class, and how many of these for this reason, CV_HELD_NO as CV_HELD_OPEN. */
uint32_t cv_outcome_undecided(const struct cv_outcome *outcome);
uint32_t cv_outcome_held(const struct cv_outcome *outcome, enum cv_held held);
/* Why an arm has no class; CV_HELD_NO: it has one. */
enum cv_held cv_outcome_why(const struct cv_standing *standing);
/* Whether an item has a class, and a right one: its true class, or from duels one that no duel contradicts. False
 * without the truth. */
bool cv_outcome_is_right(const struct cv_outcome *outcome, uint32_t arm);
/* The share of the decided items that are right; NAN: the truth is not known, or nothing is decided. */
double cv_outcome_accuracy(const struct cv_outcome *outcome, uint32_t *ret_right);

/* What a table for people shows at most: rows, columns of a name, names in a line. */
enum { CV_OUTCOME_ROWS = 1000, CV_OUTCOME_COLUMNS = 40, CV_OUTCOME_NAMES = 100 };
/* Returns the width of the longest name, at least 4 and at most CV_OUTCOME_COLUMNS. */
int cv_outcome_columns(const struct cv_outcome *outcome);
/* Prints the text in exactly so many columns, cut with an ellipsis if it is longer. */
void cv_outcome_print_cut(const char *text, size_t columns, FILE *to);
/* Returns the number of rows of a table, and prints the line that says what is not in it. */
uint32_t cv_outcome_rows(const struct cv_outcome *outcome);
void cv_outcome_print_rest(const struct cv_outcome *outcome, FILE *to);
/* Prints a line if there are arms whose limits contradict each other. */
void cv_outcome_print_contradictions(const struct cv_outcome *outcome, FILE *to);
/* Prints the lines about epsilon, of a token and of a row. */
void cv_outcome_print_epsilon(const struct cv_outcome *outcome, FILE *to);
/* Returns exit status 0 if the campaign is complete or reached a limit of its own, else 1. */
int cv_launcher_end_status(enum cv_end end);

#endif
