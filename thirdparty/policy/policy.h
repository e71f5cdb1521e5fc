/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy takes releases and returns decisions and the next plan. Pure: no time, no I/O; randomness is the stream of
 * (campaign seed, plan number). The same releases always give the same decisions; replay checks this.
 *
 * Each policy is one file and one row of classes.h.
 */
#ifndef CV_THIRDPARTY_POLICY_H
#define CV_THIRDPARTY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/result.h"
#include "common/base/spec.h"

struct cv_policy;
struct cv_ranking;

/* One decision about one arm, with the numbers it depends on. */
enum cv_decision_kind { CV_DECISION_SETTLE = 1, CV_DECISION_REMOVE = 2 };

struct cv_decision {
  enum cv_decision_kind kind;
  uint32_t arm;
  uint32_t rank_class; /* the class that the arm is settled in or removed from */
  uint64_t tokens;     /* T of the arm */
  double mean, radius; /* the arm's noisy mean and radius */
  double reference;    /* the compared bound: the best other lower (remove) or upper (settle) bound minus alpha, or the
                          printed rule's m - alpha */
};

/* The output of one step. The caller owns it and may reuse it for the next step; its arrays grow. */
struct cv_policy_step {
  bool done; /* no further plan: the standings are final */
  struct cv_decision *decision;
  size_t decisions, decisions_cap;
  struct cv_want *want; /* the next plan, unless done */
  size_t wants, wants_cap;
};
void cv_policy_step_fini(struct cv_policy_step *step);

/* What a policy decides; the kind determines the requirements on the campaign and the display of its result. */
enum cv_policy_kind {
  CV_POLICY_RANKING,     /* classes of items */
  CV_POLICY_RECRUITMENT, /* which workers to pay: arms have costs, the campaign has a budget */
  CV_POLICY_BANDIT,      /* which arm to pull, for low regret */
  CV_POLICY_GRAPH,       /* likewise with a feedback graph; class 1: active, class 2: dropped */
};

/* The numbers of false tokens below which a class stands, as ranking.h says; CV_LIES_NEVER: no number turns it. */
#define CV_LIES_NEVER UINT64_MAX
struct cv_policy_lies {
  uint64_t safe, turn;
};

struct cv_policy_class {
  const char *name;
  const char *about; /* a few words for the reference of campaign files */
  enum cv_policy_kind kind;
  /* Traits, for analyses that must not depend on a policy's name. */
  bool tells_noise; /* its standings say which part of the radius is there because of noise */
  bool duels;       /* its standings' means are of duels with one opponent, not of scores */
  bool one_plan;    /* its first plan spends the budget: no decision depends on a release */
  bool has_floor; /* no plan of it asks for fewer than cv_spec_release_tokens() of an arm that it asks for; else it asks
                       for single tokens, and fits no campaign with a larger smallest release */
  bool reads_noise; /* it takes releases with any noise that their groups say, as of two brokers; else with one
                       broker's, as the mechanism has it */
  /* Each plan follows from the last release of each arm only if parameter `last_key` is `last_word`; NULL: always. */
  const char *last_key, *last_word;
  /* The parameter and its value for scores that are drawn from a finite set without replacement, if the policy's
   * analysis must know; NULL: it need not. */
  const char *once_key, *once_word;
  const struct cv_param_rule *rules;
  size_t rule_count;
  /* Checks further requirements on privatizer, mechanism and so on, beyond those of the kind; NULL: none. */
  enum cv_err (*fits)(const struct cv_spec *spec, struct cv_why *why);
  enum cv_err (*create)(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret);
  /* Sets the true means, `mean[arms]`, of a policy that needs them: no third-party can run such a policy. Else NULL. */
  void (*tell)(struct cv_policy *self, const double *mean);
  /* Says how many brokers will add noise, for what is planned before a release says so; NULL: nothing depends on it. */
  void (*expect)(struct cv_policy *self, uint32_t brokers);
  void (*destroy)(struct cv_policy *self);
  void (*apply)(struct cv_policy *self, const struct cv_release *release);
  bool (*exhaust)(struct cv_policy *self, uint32_t arm); /* NULL: the policy cannot go on without an arm */
  enum cv_err (*step)(struct cv_policy *self, uint64_t plan, struct cv_policy_step *step);
  void (*standing)(const struct cv_policy *self, uint32_t arm, struct cv_standing *ret);
  struct cv_ranking *(*ranking)(struct cv_policy *self); /* its classes, see ranking.h; NULL: it has none */
  void (*save)(const struct cv_policy *self, struct cv_buf *out);
  enum cv_err (*load)(struct cv_policy *self, struct cv_reader *in);
};

struct cv_policy {
  const struct cv_policy_class *class;
};

/* Find a policy by name, or by index; NULL if there is none. */
const struct cv_policy_class *cv_policy_find(const char *name);
const struct cv_policy_class *cv_policy_at(size_t index);
/* Writes the message about a name that is not a policy's; returns CV_ERR_NOT_FOUND. */
enum cv_err cv_policy_unknown(const char *name, struct cv_why *why);

/* The rule of CV_RELEASE_TOKENS_KEY, which every policy with has_floor takes beside its own. */
extern const struct cv_param_rule cv_policy_floor_rule;
/* The parameter tokens_per_round of a policy that has it, but no less than the smallest release. */
uint32_t cv_policy_round(const struct cv_spec *spec);

/* Checks a choice against the policy's rules and fills in defaults, except that of the smallest release: it is missing
 * unless somebody has set it. *ret_bad as in cv_params_check(). */
CV_MUST_USE enum cv_err cv_policy_check(struct cv_choice *choice, const struct cv_param **ret_bad, struct cv_why *why);

/* Checks that a campaign, whose policy has been checked, meets the policy's requirements. CV_ERR_INVALID with the
 * reason. */
CV_MUST_USE enum cv_err cv_policy_fits(const struct cv_spec *spec, struct cv_why *why);
/* The same for a simulation in one process, which can set the true means. */
CV_MUST_USE enum cv_err cv_policy_fits_told(const struct cv_spec *spec, struct cv_why *why);

/* Checks that the policy can take releases with the noise of so many brokers. CV_ERR_INVALID with the reason. */
CV_MUST_USE enum cv_err cv_policy_fits_brokers(const struct cv_policy_class *class, uint32_t brokers,
                                               struct cv_why *why);

/* Makes a policy; the caller frees it. `spec` is borrowed for the call; cv_policy_check() and cv_policy_fits() must
 * have accepted it. */
CV_MUST_USE enum cv_err cv_policy_new(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret);
void cv_policy_free(struct cv_policy *policy);
/* Tells a new policy that so many brokers each add the mechanism's noise, 1 to CV_BROKERS_MAX, if it is not as the spec
 * says; cv_policy_fits_brokers() must accept it. No part of the saved state: say it again before cv_policy_load().
 * Soundness does not depend on it, since each release says which noise it has; plans do. */
void cv_policy_expect(struct cv_policy *policy, uint32_t brokers);
/* Sets the true means of a new policy that needs them, else does nothing; `mean` is borrowed for the call. */
void cv_policy_tell(struct cv_policy *policy, const double *mean);

/* Takes in one release. Its arm must be below spec.arms. */
void cv_policy_apply(struct cv_policy *policy, const struct cv_release *release);
/*
 * From now on no token of the arm (below spec.arms) can be had: no later plan asks for it. A ranking policy goes on
 * with the others; the next step parks the arm (CV_HELD_USED_UP) unless it has its class or gets it then. Call it
 * between cv_policy_apply() and cv_policy_step(); the saved state remembers it. False: the policy cannot go on without
 * the arm and is unchanged; the campaign ends.
 */
CV_MUST_USE bool cv_policy_exhaust(struct cv_policy *policy, uint32_t arm);
/*
 * Takes in a release as a broker sends it: applies it unless it is empty, and exhausts its arm if it is the arm's last.
 * False: the policy cannot go on; it makes no further step.
 */
CV_MUST_USE bool cv_policy_take(struct cv_policy *policy, const struct cv_release *release);
/*
 * Decides with the applied releases and makes plan number `plan` (1 for the first, before any release). Clears `step`
 * first. CV_ERR_NOMEM leaves the policy unchanged.
 */
CV_MUST_USE enum cv_err cv_policy_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step);
/* The present standing of an arm; arm < spec.arms. */
void cv_policy_standing(const struct cv_policy *policy, uint32_t arm, struct cv_standing *ret);
/* Counts from now on how many lies the classes bear; before the first release. No part of the saved state: this is for
 * those who run a policy again on all releases. */
void cv_policy_count_lies(struct cv_policy *policy);
/* No release will come any more: from now on the standing of an undecided arm of a ranking is the classes that it can
 * be in. No part of the saved state. */
void cv_policy_close(struct cv_policy *policy);
/* What the class of an arm bears. All 0: the arm is undecided, or the policy does not rank, or lies are not counted. */
struct cv_policy_lies cv_policy_lies(struct cv_policy *policy, uint32_t arm);
/*
 * About how many further tokens decide an arm that is undecided or on a boundary, as parking.h estimates it: with a gap
 * one standard deviation clearer than it looks. NAN: not known, as of arms that are decided, used up, or wait for their
 * class; infinite: no number. Not part of the saved state.
 */
double cv_policy_need(struct cv_policy *policy, uint32_t arm);
/* Saves and loads the whole state; a loaded policy continues exactly like the saved one. CV_ERR_VERSION or
 * CV_ERR_DAMAGED. */
void cv_policy_save(const struct cv_policy *policy, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_policy_load(struct cv_policy *policy, struct cv_reader *in);

#endif
