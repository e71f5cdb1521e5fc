/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/candidates.h"

#include <stdio.h>
#include <string.h>

#include "common/base/local.h"
#include "common/base/mechanisms.h"
#include "thirdparty/policy/policy.h"

/* A policy for a goal, with the word of one parameter that its proof needs. */
struct row {
  enum cv_goal goal;
  const char *policy, *key, *word;
};

static const struct row rows[] = {
    {CV_GOAL_CLASSES, "ppar-kl", NULL, NULL},    {CV_GOAL_CLASSES, "ppar", NULL, NULL},
    {CV_GOAL_BEST, "best-arm", NULL, NULL},      {CV_GOAL_BEST, "adap-tt", "threshold", "proof"},
    {CV_GOAL_BEST, "dp-se", NULL, NULL},         {CV_GOAL_REGRET, "posterior-quantile", NULL, NULL},
    {CV_GOAL_REGRET, "kl-local", NULL, NULL},    {CV_GOAL_REGRET, "klucb-cf", NULL, NULL},
    {CV_GOAL_REGRET, "ts-cf", NULL, NULL},       {CV_GOAL_REGRET, "ucb-cf", NULL, NULL},
    {CV_GOAL_REGRET, "graph-ucb", NULL, NULL},   {CV_GOAL_REGRET, "tsallis-inf", NULL, NULL},
    {CV_GOAL_REGRET, "dp-exp3-lap", NULL, NULL}, {CV_GOAL_GAINS, "tsallis-inf", NULL, NULL},
    {CV_GOAL_GAINS, "dp-exp3-lap", NULL, NULL},  {CV_GOAL_GAINS, "exp3", NULL, NULL},
    {CV_GOAL_GAINS, "exp3-tau", NULL, NULL},     {CV_GOAL_GRAPH, "graph-ucb", NULL, NULL},
    {CV_GOAL_GRAPH, "gapu", NULL, NULL},         {CV_GOAL_GRAPH, "gap", NULL, NULL},
    {CV_GOAL_HIRES, "dpu-kl", NULL, NULL},       {CV_GOAL_HIRES, "dpu", NULL, NULL},
    {CV_GOAL_HIRES, "dpf", NULL, NULL},          {CV_GOAL_HIRES, "eps-greedy", NULL, NULL},
    {CV_GOAL_HIRES, "cheapest", NULL, NULL},
};

/* The parameters that auto takes for a goal: those that say what is wanted. */
static const char *const keys[CV_GOALS][4] = {
    [CV_GOAL_CLASSES] = {"alpha", "delta", "lies"}, [CV_GOAL_BEST] = {"delta"}};

static enum cv_goal goal_of_policy(const char *policy) {
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (strcmp(rows[i].policy, policy) == 0) {
      return rows[i].goal;
    }
  }
  const struct cv_policy_class *class = cv_policy_find(policy);
  return class == NULL ? CV_GOAL_REGRET : class->kind == CV_POLICY_RECRUITMENT ? CV_GOAL_HIRES : CV_GOAL_REGRET;
}

static enum cv_goal goal_of(const struct cv_campaign_file *campaign) {
  const struct cv_params *params = &campaign->spec.policy.params;
  if (campaign->items.are_paid) {
    return CV_GOAL_HIRES;
  }
  if (campaign->graph.line > 0) {
    return CV_GOAL_GRAPH;
  }
  if (campaign->items.source == CV_SOURCE_ADVERSARY) {
    return CV_GOAL_GAINS;
  }
  if (!cv_campaign_is_auto(&campaign->spec.policy)) {
    return goal_of_policy(campaign->spec.policy.name);
  }
  return cv_params_find(params, "alpha") != NULL   ? CV_GOAL_CLASSES
         : cv_params_find(params, "delta") != NULL ? CV_GOAL_BEST
                                                   : CV_GOAL_REGRET;
}

static enum cv_err check_keys(const struct cv_campaign_file *campaign, enum cv_goal goal, struct cv_why *why) {
  const struct cv_params *params = &campaign->spec.policy.params;
  for (uint32_t i = 0; i < params->count; i++) {
    const struct cv_param *param = &params->item[i];
    bool known = false;
    for (const char *const *key = keys[goal]; *key != NULL; key++) {
      known = known || strcmp(*key, param->key) == 0;
    }
    if (!known) {
      return cv_fail(
          why, CV_ERR_INVALID,
          "%s:%u:%u: policy auto takes no %s here; expected alpha, delta and lies for classes of items, delta "
          "alone for the best item, or a policy's name",
          campaign->path, param->line, param->column, param->key);
    }
  }
  return CV_OK;
}

/* Whether releases under this mechanism protect a token. */
static bool protects(const struct cv_spec *spec, const struct cv_traits *traits) {
  if (traits->noise == CV_NOISE_NONE) { /* an epsilon asks for noise */
    return spec->epsilon_micro == 0 && strcmp(spec->privatizer.name, "none") != 0;
  }
  return spec->epsilon_micro > 0 && traits->private != CV_PRIVATE_NEVER;
}

/* Appends the policy under the mechanism, if it fits the campaign; else `why` has the reason. */
static enum cv_err add(const struct cv_campaign_file *campaign, const struct row *row,
                       const struct cv_choice *mechanism, struct cv_candidates *to, struct cv_why *why) {
  struct cv_candidate *at = &to->candidate[to->count];
  struct cv_spec spec = campaign->spec; /* borrows its arrays */
  const struct cv_param *bad = NULL;
  CV_REQUIRE(to->count < CV_CANDIDATES_MAX);
  (void)snprintf(spec.policy.name, sizeof(spec.policy.name), "%s", row->policy);
  if (row->key != NULL) {
    CV_TRY(cv_params_set_text(&spec.policy.params, row->key, row->word));
  }
  spec.mechanism = *mechanism;
  CV_TRY(cv_policy_check(&spec.policy, &bad, why));
  CV_TRY(cv_policy_fits(&spec, why));
  *at = (struct cv_candidate){.policy = spec.policy, .mechanism = spec.mechanism};
  to->count++;
  return CV_OK;
}

static enum cv_err add_mechanisms(const struct cv_campaign_file *campaign, const struct row *row,
                                  struct cv_candidates *to, struct cv_why *why) {
  const struct cv_spec *spec = &campaign->spec;
  if (!cv_campaign_is_auto(&spec->mechanism)) {
    return add(campaign, row, &spec->mechanism, to, why);
  }
  enum cv_err last = cv_fail(why, CV_ERR_INVALID, "no mechanism protects a token; expected an epsilon or a privatizer");
  for (size_t i = 0; cv_traits_names[i] != NULL; i++) {
    struct cv_choice mechanism = {0};
    (void)snprintf(mechanism.name, sizeof(mechanism.name), "%s", cv_traits_names[i]);
    if (protects(spec, cv_traits_of(cv_traits_names[i]))) {
      enum cv_err err = add(campaign, row, &mechanism, to, why);
      last = err == CV_OK ? last : err;
    }
  }
  return last;
}

/* The given policy's parameters must be right whatever the mechanism. */
static enum cv_err check_given(const struct cv_campaign_file *campaign, struct cv_why *why) {
  struct cv_choice policy = campaign->spec.policy;
  const struct cv_param *bad = NULL;
  enum cv_err err = cv_policy_check(&policy, &bad, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s:%u:%u", campaign->path, bad == NULL ? campaign->policy_line : bad->line,
                  bad == NULL ? 1 : bad->column);
  }
  return err;
}

enum cv_err cv_candidates_list(const struct cv_campaign_file *campaign, struct cv_candidates *ret, struct cv_why *why) {
  const bool is_open = cv_campaign_is_auto(&campaign->spec.policy);
  enum cv_err last = CV_ERR_INVALID;
  *ret = (struct cv_candidates){.goal = goal_of(campaign)};
  CV_TRY(is_open ? check_keys(campaign, ret->goal, why) : check_given(campaign, why));
  const struct row given = {.goal = ret->goal, .policy = campaign->spec.policy.name};
  for (size_t i = 0; is_open && i < sizeof(rows) / sizeof(rows[0]); i++) {
    last = rows[i].goal == ret->goal ? add_mechanisms(campaign, &rows[i], ret, why) : last;
  }
  last = is_open ? last : add_mechanisms(campaign, &given, ret, why);
  if (ret->count == 0) {
    struct cv_why reason = why == NULL ? (struct cv_why){{0}} : *why;
    return cv_fail(why, last, "%s:%u:1: nothing fits policy %s and mechanism %s: %s", campaign->path,
                   campaign->policy_line, campaign->spec.policy.name, campaign->spec.mechanism.name, reason.text);
  }
  return CV_OK;
}

struct cv_choice cv_candidate_named(const struct cv_campaign_file *campaign, const struct cv_candidate *candidate) {
  struct cv_choice choice = campaign->spec.policy;
  memcpy(choice.name, candidate->policy.name, sizeof(choice.name));
  for (size_t i = 0; cv_campaign_is_auto(&campaign->spec.policy) && i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (rows[i].key != NULL && strcmp(rows[i].policy, choice.name) == 0) {
      CV_REQUIRE(cv_params_set_text(&choice.params, rows[i].key, rows[i].word) == CV_OK);
    }
  }
  return choice;
}
