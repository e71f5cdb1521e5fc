/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy: releases in, decisions and the next plan out. Pure: no time, no I/O; randomness is the stream named by
 * (campaign seed, plan number). The same releases always give the same decisions, which is what replay checks.
 *
 * Each policy is one file and one row of the table.
 */
#ifndef CV_THIRDPARTY_POLICY_H
#define CV_THIRDPARTY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/result.h"
#include "common/base/spec.h"

struct cv_policy;

/* One decision about one arm, with the numbers it was made from. */
enum cv_decision_kind { CV_DECISION_SETTLE = 1, CV_DECISION_REMOVE = 2 };

struct cv_decision {
  enum cv_decision_kind kind;
  uint32_t arm;
  uint32_t rank_class; /* the class it was settled in, or the class it was removed from */
  uint64_t tokens;     /* T of the arm */
  double mean, radius; /* the arm's noisy mean and radius */
  double reference;    /* what it was compared with: the best other lower (remove) or upper (settle) bound minus
                           alpha, or the printed rule's m - alpha */
};

/* What one step of a policy produced; arrays grow, the caller owns and reuses it. */
struct cv_policy_step {
  bool done; /* no further plan: the standings are final */
  struct cv_decision *decision;
  size_t decisions, decisions_cap;
  struct cv_want *want; /* the next plan, unless done */
  size_t wants, wants_cap;
};
void cv_policy_step_fini(struct cv_policy_step *step);

/* What a policy decides, and so what its campaign must have and what a person wants to see of it. */
enum cv_policy_kind {
  CV_POLICY_RANKING,     /* classes of items */
  CV_POLICY_RECRUITMENT, /* whom to pay: arms have costs, there is a budget */
  CV_POLICY_BANDIT,      /* which arm to pull, to lose little */
  CV_POLICY_GRAPH,       /* likewise, where neighbours are seen as well; class 1 is still in the running, 2 is not */
};

struct cv_policy_class {
  const char *name;
  enum cv_policy_kind kind;
  const struct cv_param_rule *rules;
  size_t rule_count;
  /* What it needs of privatizer, mechanism and the rest besides what its kind needs; NULL: nothing. */
  enum cv_err (*fits)(const struct cv_spec *spec, struct cv_why *why);
  enum cv_err (*create)(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret);
  /* For a policy that is nothing without the arms' true means, `mean[arms]`: no third-party can have it. Else NULL. */
  void (*tell)(struct cv_policy *self, const double *mean);
  void (*destroy)(struct cv_policy *self);
  void (*apply)(struct cv_policy *self, const struct cv_release *release);
  enum cv_err (*step)(struct cv_policy *self, uint64_t plan, struct cv_policy_step *step);
  void (*standing)(const struct cv_policy *self, uint32_t arm, struct cv_standing *ret);
  void (*save)(const struct cv_policy *self, struct cv_buf *out);
  enum cv_err (*load)(struct cv_policy *self, struct cv_reader *in);
};

struct cv_policy {
  const struct cv_policy_class *class;
};

/* By name, NULL if there is none; and by index, NULL past the end. */
const struct cv_policy_class *cv_policy_find(const char *name);
const struct cv_policy_class *cv_policy_at(size_t index);

/* Checks a choice against the policy's table, fills in defaults; *ret_bad as in cv_params_check. */
CV_MUST_USE enum cv_err cv_policy_check(struct cv_choice *choice, const struct cv_param **ret_bad, struct cv_why *why);

/* Whether a campaign whose policy has been checked has what the policy needs. CV_ERR_INVALID with the reason. */
CV_MUST_USE enum cv_err cv_policy_fits(const struct cv_spec *spec, struct cv_why *why);
/* The same where the truth can be told, which is in a simulation in one process. */
CV_MUST_USE enum cv_err cv_policy_fits_told(const struct cv_spec *spec, struct cv_why *why);

/* `spec` is borrowed for the call; its policy must have been checked, and fit. */
CV_MUST_USE enum cv_err cv_policy_new(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret);
void cv_policy_free(struct cv_policy *policy);
/* Tells a new policy the truth, if it is one that has to be told; borrowed for the call. */
void cv_policy_tell(struct cv_policy *policy, const double *mean);

/* Takes one release in. The arm must be below spec.arms. */
void cv_policy_apply(struct cv_policy *policy, const struct cv_release *release);
/*
 * Decides on what has been applied and names plan number `plan` (1 for the first, before any release). `step` is
 * cleared first. CV_ERR_NOMEM leaves the policy as it was.
 */
CV_MUST_USE enum cv_err cv_policy_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step);
/* Where an arm stands now; arm < spec.arms. */
void cv_policy_standing(const struct cv_policy *policy, uint32_t arm, struct cv_standing *ret);
/* The whole state, byte for byte. */
void cv_policy_save(const struct cv_policy *policy, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_policy_load(struct cv_policy *policy, struct cv_reader *in);

#endif
