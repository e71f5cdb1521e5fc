/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/campaign/accuracy.h"
#include "common/campaign/worth.h"
#include "lab/experiment/campaigns.h"
#include "lab/run/measures.h"
#include "lab/run/pool.h"
#include "prepare/campaign_bound.h"
#include "prepare/prepare.h"
#include "simulate/trial.h"
#include "worker/quality/truth.h"

enum metric {
  ACCURACY,
  DECIDED_SHARE,
  PPAR_ACCURACY,
  PPAR_ACCURACY_FILLED,
  PPAR_ACCURACY_LEAST,
  CORRECT,
  UNDECIDED,
  MISPLACED,
  PULLS,
  ROUNDS,
  REWARD,
  REWARD_SHARE,
  REGRET,
  REGRET_SHARE,
  SECONDS,
  OVER_SUM_BOUND,
  OVER_PAIR_BOUND,
  CAPPED,
  LIES_SAFE,
  LIES_TURN,
  DECIDED_AFTER,
  PARKED
};

static const char *const metrics[] = {"accuracy",
                                      "decided-share",
                                      "ppar-accuracy",
                                      "ppar-accuracy-filled",
                                      "ppar-accuracy-least",
                                      "correct",
                                      "undecided",
                                      "misplaced",
                                      "pulls",
                                      "rounds",
                                      "reward",
                                      "reward-share",
                                      "regret",
                                      "regret-share",
                                      "seconds",
                                      "over-sum-bound",
                                      "over-pair-bound",
                                      "capped",
                                      "lies-safe",
                                      "lies-turn",
                                      "decided-after",
                                      "parked",
                                      NULL};
enum { METRICS = CV_COUNT(metrics) - 1 };
/* What the truth would buy is at least half of what anyone can: it leaves less than the price of one more token of its
 * best arm, of which it has bought one. */
static const double ranges[METRICS] = {
    [ACCURACY] = 1, [DECIDED_SHARE] = 1, [PPAR_ACCURACY] = 1, [PPAR_ACCURACY_FILLED] = 1, [PPAR_ACCURACY_LEAST] = 1,
    [CORRECT] = 1,  [CAPPED] = 1,        [REWARD_SHARE] = 2};

static bool has(const struct cv_policy_class *policy, size_t metric) {
  switch ((enum metric)metric) {
    case PPAR_ACCURACY:
    case PPAR_ACCURACY_FILLED:
    case PPAR_ACCURACY_LEAST:
      return cv_lab_has_classes(policy) && !policy->duels;
    case ACCURACY:
    case MISPLACED:
    case LIES_SAFE:
    case LIES_TURN:
    case PARKED:
      return cv_lab_has_classes(policy);
    case CORRECT:
      return cv_lab_has_classes(policy) || policy->kind == CV_POLICY_GRAPH;
    case OVER_SUM_BOUND:
    case OVER_PAIR_BOUND:
      return cv_lab_has_classes(policy) && cv_lab_policy_has(policy, "delta");
    case UNDECIDED:
    case DECIDED_SHARE:
      return policy->kind == CV_POLICY_RANKING;
    case REWARD:
    case REGRET:
      return policy->kind != CV_POLICY_RANKING;
    case REWARD_SHARE:
    case REGRET_SHARE:
      return policy->kind == CV_POLICY_RECRUITMENT;
    case PULLS:
    case ROUNDS:
    case SECONDS:
    case CAPPED:
    case DECIDED_AFTER:
      return true;
  }
  return false;
}

struct view {
  const struct cv_prepared *campaign;
  const struct cv_trial *trial;
  struct cv_worth worth;
  struct cv_bound bound; /* 0: not asked for */
};

/* Whether the campaign has one of the metrics that need the bounds, which have conditions of their own. */
static bool asks_bound(const struct cv_lab_experiment *experiment, const struct cv_prepared *campaign) {
  const struct cv_policy_class *policy = cv_policy_find(campaign->file.spec.policy.name);
  for (size_t i = 0; i < experiment->metrics; i++) {
    size_t index = experiment->metric[i].index;
    if ((index == OVER_SUM_BOUND || index == OVER_PAIR_BOUND) && has(policy, index)) {
      return true;
    }
  }
  return false;
}

static double count_undecided(const struct view *view) {
  double undecided = 0;
  for (uint32_t i = 0; i < view->worth.arms; i++) {
    undecided += !cv_standing_is_decided(&view->trial->standing[i]);
  }
  return undecided;
}

/* Counts the arms; `right` says which have a class that is right by what the policy claims. An arm without one is
 * misplaced if its true class is not among the told ones. */
static void judge_arms(const struct view *view, const uint32_t *truth, const bool *right, double *value) {
  uint32_t arms = view->worth.arms, decided = 0, hits = 0, misplaced = 0, parked = 0;
  for (uint32_t i = 0; i < arms; i++) {
    const struct cv_standing *standing = &view->trial->standing[i];
    if (cv_standing_is_decided(standing)) {
      decided++;
      hits += right[i];
      misplaced += !right[i];
    } else if (standing->held != CV_HELD_NO) {
      parked += cv_standing_is_parked(standing);
      misplaced += standing->rank_class > 0 && (truth[i] < standing->rank_class || truth[i] > standing->rank_last);
    }
  }
  value[ACCURACY] = decided == 0 ? (double)NAN : (double)hits / decided;
  value[CORRECT] = hits == arms;
  value[MISPLACED] = misplaced;
  value[PARKED] = parked;
}

/* By the true means, and as the paper has it. */
static void judge_scores(const struct view *view, const uint32_t *truth, double alpha, double *value, bool *ret_right) {
  const struct cv_standing *standing = view->trial->standing;
  struct cv_accuracy accuracy = cv_accuracy(truth, standing, view->worth.arms, alpha);
  value[PPAR_ACCURACY] = accuracy.all;
  value[PPAR_ACCURACY_FILLED] = accuracy.of_filled;
  value[PPAR_ACCURACY_LEAST] = accuracy.least;
  for (uint32_t i = 0; i < view->worth.arms; i++) {
    ret_right[i] = cv_standing_is_decided(&standing[i]) && standing[i].rank_class == truth[i];
  }
}

static enum cv_err judge_classes(const struct view *view, double *value) {
  const struct cv_choice *policy = &view->campaign->file.spec.policy;
  uint32_t arms = view->worth.arms, *truth = calloc(arms, sizeof(*truth));
  bool *right = calloc(arms, sizeof(*right));
  if (truth == NULL || right == NULL) {
    free(truth);
    free(right);
    return CV_ERR_NOMEM;
  }
  double alpha = cv_params_number(&policy->params, "alpha");
  (void)cv_truth_classes(view->campaign->truth, arms, alpha, truth);
  if (cv_policy_find(policy->name)->duels) {
    cv_pairs_right(cv_quality_pairs(view->campaign->source.quality), cv_params_number(&policy->params, "tie"),
                   view->trial->standing, right);
  } else {
    judge_scores(view, truth, alpha, value, right);
  }
  judge_arms(view, truth, right, value);
  free(truth);
  free(right);
  return CV_OK;
}

/* Whether one arm alone is left, a best one. */
static bool finds_best(const struct view *view) {
  const double *mean = view->worth.mean;
  uint32_t active = 0, last = 0, best = cv_worth_best(&view->worth);
  for (uint32_t i = 0; i < view->worth.arms; i++) {
    if (view->trial->standing[i].rank_class == 1) {
      active++;
      last = i;
    }
  }
  return active == 1 && mean[last] >= mean[best];
}

/* The least over the arms with a class; at most all tokens, which are also what no number of them turns. */
static void judge_lies(const struct view *view, double *value) {
  if (count_undecided(view) == view->worth.arms) {
    return;
  }
  uint64_t safe = view->trial->total.pulls, turn = safe;
  for (uint32_t i = 0; i < view->worth.arms; i++) {
    const struct cv_policy_lies *lies = &view->trial->lies[i];
    safe = lies->safe > 0 && lies->safe < safe ? lies->safe : safe;
    turn = lies->turn > 0 && lies->turn < turn ? lies->turn : turn;
  }
  value[LIES_SAFE] = (double)safe;
  value[LIES_TURN] = (double)turn;
}

static double best_so_far(const struct view *view, const struct cv_trial_totals *at) {
  /* Gains change from round to round: the best arm in hindsight depends on how many rounds were played. */
  if (view->trial->game != NULL) {
    return cv_game_best(view->trial->game, at->pulls);
  }
  return view->worth.cost_micro != NULL ? cv_worth_reward(&view->worth)
                                        : (double)at->pulls * view->worth.mean[cv_worth_best(&view->worth)];
}

static void judge_pulls(const struct view *view, const struct cv_trial_totals *at, double *value) {
  value[PULLS] = (double)at->pulls;
  value[ROUNDS] = (double)at->rounds;
  if (view->campaign->kind == CV_POLICY_RANKING) {
    value[OVER_SUM_BOUND] = cv_bound_ratio(at->pulls, view->bound.sum);
    value[OVER_PAIR_BOUND] = cv_bound_ratio(at->pulls, view->bound.pair);
    return;
  }
  value[REWARD] = at->reward;
  value[REGRET] = best_so_far(view, at) - at->reward;
  if (view->worth.cost_micro != NULL) {
    value[REWARD_SHARE] = at->reward / best_so_far(view, at);
    value[REGRET_SHARE] = value[REGRET] * (double)CV_MICRO / (double)view->worth.budget_micro;
  }
}

static enum cv_err judge(const struct view *view, size_t points, double seconds, double *ret_values) {
  for (size_t i = 0; i < points; i++) {
    double *value = ret_values + i * METRICS;
    judge_pulls(view, view->trial->moments == 0 ? &view->trial->total : &view->trial->at[i], value);
    /* Standings are known at the end only; at earlier moments of a run these metrics stay NAN. */
    if (i + 1 == points) {
      value[SECONDS] = seconds;
      value[CAPPED] = view->trial->complete ? 0 : 1;
      value[DECIDED_AFTER] = (double)view->trial->decided;
      value[UNDECIDED] = view->campaign->kind == CV_POLICY_RANKING ? count_undecided(view) : (double)NAN;
      value[DECIDED_SHARE] = 1 - value[UNDECIDED] / view->worth.arms;
      if (cv_lab_has_classes(cv_policy_find(view->campaign->file.spec.policy.name))) {
        CV_TRY(judge_classes(view, value));
        judge_lies(view, value);
      } else if (view->campaign->kind == CV_POLICY_GRAPH) {
        value[CORRECT] = finds_best(view) ? 1 : 0;
      }
    }
  }
  return CV_OK;
}

static enum cv_err run_prepared(const struct cv_lab_piece *piece, size_t series, const struct cv_prepared *campaign,
                                size_t points, double *ret_values, struct cv_why *why) {
  const struct cv_lab_experiment *experiment = piece->experiment;
  uint64_t moment[CV_LAB_POINTS_MAX];
  struct cv_trial_totals at[CV_LAB_POINTS_MAX];
  struct cv_trial trial = {.campaign = campaign,
                           .seed = piece->seed,
                           .token_level = piece->token_level,
                           .plans = experiment->one[series].rounds,
                           .moments = experiment->axis == CV_LAB_AXIS_PULLS ? points : 0,
                           .moment = moment,
                           .at = at};
  const struct cv_adversary *adversary = cv_quality_adversary(campaign->source.quality);
  for (size_t i = 0; i < trial.moments; i++) {
    moment[i] = (uint64_t)experiment->x[i];
  }
  if (adversary != NULL) {
    CV_TRY(cv_game_set(piece->game, adversary, campaign->file.spec.tokens, why));
    trial.game = piece->game;
  }
  struct view view = {.campaign = campaign,
                      .trial = &trial,
                      .worth = {.arms = campaign->file.spec.arms,
                                .mean = campaign->truth,
                                .cost_micro = campaign->file.spec.cost_micro,
                                .budget_micro = campaign->file.spec.budget_micro,
                                .tokens = campaign->file.spec.tokens}};
  if (asks_bound(experiment, campaign)) {
    CV_TRY(cv_bound_of_campaign(campaign, &view.bound, why));
  }
  /* Processor time of this thread, which other threads do not change; without the game, which all series share. */
  double started = cv_lab_processor_seconds();
  enum cv_err err = cv_trial_run(&trial, why);
  double seconds = cv_lab_processor_seconds() - started;
  if (err == CV_OK) {
    err = judge(&view, points, seconds, ret_values);
  }
  cv_trial_fini(&trial);
  return err;
}

static enum cv_err run(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why) {
  struct cv_prepared campaign;
  CV_TRY(cv_lab_prepare(piece->experiment, series, piece->setting, piece->seed, &campaign, why));
  size_t points = piece->experiment->points / cv_lab_settings_of(piece->experiment);
  enum cv_err err = run_prepared(piece, series, &campaign, points, ret_values, why);
  cv_prepared_fini(&campaign);
  return err;
}

/* A ranking is judged by true means, which prepare.h does not compute for an adversary; a bound needs more. */
static enum cv_err fits(const struct cv_lab_experiment *experiment, const struct cv_prepared *campaign,
                        struct cv_why *why) {
  if (campaign->kind == CV_POLICY_RANKING && campaign->truth == NULL) {
    return cv_fail(
        why, CV_ERR_INVALID,
        "%s: policy %s ranks items by their means, which an adversary does not have; expected items with means",
        experiment->path, campaign->file.spec.policy.name);
  }
  struct cv_bound bound;
  enum cv_err err = asks_bound(experiment, campaign) ? cv_bound_of_campaign(campaign, &bound, why) : CV_OK;
  if (err != CV_OK) {
    cv_why_prefix(why, "%s", experiment->path);
  }
  return err;
}

const struct cv_lab_measure cv_lab_measure_campaign = {
    .name = "campaign", .metrics = metrics, .ranges = ranges, .has = has, .fits = fits, .run = run};
