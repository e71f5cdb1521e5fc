/* SPDX-License-Identifier: Apache-2.0 */
/* What a campaign came to: the ranking or the pulls, how it compares with a truth that is known, and what it cost. */
#ifndef CV_LAUNCHER_OUTCOME_H
#define CV_LAUNCHER_OUTCOME_H

#include <stdint.h>
#include <stdio.h>

#include "deploy/launcher/exposure.h"
#include "deploy/launcher/hindsight.h"
#include "deploy/launcher/prepare.h"
#include "proto/codec/order.h"
#include "thirdparty/policy/policy.h"

struct cv_outcome {
  enum cv_policy_kind kind;
  struct cv_progress progress;
  uint32_t arms;
  struct cv_standing *standing; /* of each arm, by number; owned */
  uint32_t *order;              /* arms as they are shown: a ranking by class, then mean, undecided ones last; others by
                                   tokens; owned */
  struct cv_label *name;        /* of each arm; owned */
  double *mean;                 /* the true means; owned; NULL: no truth */
  uint32_t *truth;              /* the true classes; owned; NULL: no truth, or no ranking */
  uint64_t *cost_micro;         /* of a token of each arm; owned; NULL: nobody is paid */
  uint64_t budget_micro;
  struct cv_hindsight hindsight; /* against an adversary; filled in by who has the export */
  double alpha;
  uint64_t epsilon_micro;      /* the campaign's; 0: not known */
  bool is_exact;               /* known to have no mechanism */
  struct cv_exposure exposure; /* of the rows of its data, if those are known */
};

/* What is known besides what the broker says; fields may be NULL or 0, which is a ranking. */
struct cv_outcome_known {
  enum cv_policy_kind kind;
  const struct cv_spec *spec;
  const struct cv_label *name;
  const double *mean;
  const struct cv_prepared *file; /* the campaign's, for what its data are charged; outlives the outcome */
  bool is_seed_known;             /* the file has been prepared with the workers' seed */
};

/* An arm without a standing is undecided; one without a name is called "worker 7" if the spec says who it is, else
 * "arm 3", counted from 1. */
CV_MUST_USE enum cv_err cv_outcome_init(struct cv_outcome *outcome, const struct cv_finished *finished,
                                        const struct cv_outcome_known *known);
void cv_outcome_fini(struct cv_outcome *outcome);

/* Arms without a class. */
uint32_t cv_outcome_undecided(const struct cv_outcome *outcome);

/* Columns of the longest name, at least 4; and the lines about epsilon, of a token and of a row. */
int cv_outcome_columns(const struct cv_outcome *outcome);
void cv_outcome_print_epsilon(const struct cv_outcome *outcome, FILE *to);
/* 0 for a campaign that ended as it should: complete, or at a limit of its own. 1 otherwise. */
int cv_end_status(enum cv_end end);

#endif
