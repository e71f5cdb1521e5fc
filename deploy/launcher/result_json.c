/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/result_json.h"

#include <math.h>

#include "common/campaign/accuracy.h"
#include "deploy/launcher/json.h"
#include "deploy/launcher/progress.h"
#include "deploy/launcher/pulls.h"

/* The class of an arm, the true one or the one that was found. */
static uint32_t class_of(const struct cv_outcome *outcome, uint32_t arm, bool truth) {
  return truth ? outcome->truth[arm] : outcome->standing[arm].rank_class;
}

static json_t *names_of_class(const struct cv_outcome *outcome, uint32_t class, bool truth) {
  json_t *names = json_array();
  for (uint32_t i = 0; i < outcome->arms; i++) {
    uint32_t arm = outcome->order[i];
    if (class_of(outcome, arm, truth) == class) {
      names = cv_json_append(names, json_string(outcome->name[arm]));
    }
  }
  return names;
}

static json_t *all_classes(const struct cv_outcome *outcome, bool truth) {
  json_t *classes = json_array();
  uint32_t last = 0;
  for (uint32_t i = 0; i < outcome->arms; i++) {
    uint32_t class = class_of(outcome, i, truth);
    last = class > last ? class : last;
  }
  for (uint32_t class = 1; class <= last; class ++) {
    classes = cv_json_append(classes, names_of_class(outcome, class, truth));
  }
  return classes;
}

static json_t *item_tokens(const struct cv_outcome *outcome) {
  json_t *tokens = json_object();
  for (uint32_t i = 0; i < outcome->arms; i++) {
    uint32_t arm = outcome->order[i];
    tokens = cv_json_set(tokens, outcome->name[arm], json_integer((json_int_t)outcome->standing[arm].tokens));
  }
  return tokens;
}

static json_t *number_or_null(uint64_t lies) {
  return cv_lies_is_number(lies) ? json_integer((json_int_t)lies) : json_null();
}

static json_t *borne_json(struct cv_policy_lies lies) {
  return json_pack("{s:o, s:o}", "safe", number_or_null(lies.safe), "turn", number_or_null(lies.turn));
}

static json_t *item_lies(const struct cv_outcome *outcome) {
  json_t *all = json_object();
  for (uint32_t i = 0; i < outcome->arms; i++) {
    uint32_t arm = outcome->order[i];
    all = cv_json_set(all, outcome->name[arm], borne_json(outcome->lies.of_arm[arm]));
  }
  return all;
}

/* Null where they are not known. */
static json_t *lies_json(const struct cv_outcome *outcome) {
  const struct cv_lies *lies = &outcome->lies;
  if (lies->of_arm == NULL) {
    return json_null();
  }
  json_t *all = borne_json(lies->least);
  all = cv_json_set(all, "tokens_per_worker", json_integer(lies->tokens_per_worker));
  return cv_json_set(all, "items", item_lies(outcome));
}

/* Null without a bound, and where it is infinite or 0. */
static json_t *ratio(const struct cv_outcome *outcome, double bound) {
  double times = outcome->has_bound ? cv_bound_ratio(outcome->progress.tokens, bound) : (double)NAN;
  return isnan(times) ? json_null() : json_real(times);
}

json_t *cv_result_json(const struct cv_outcome *outcome, const char *policy) {
  if (outcome->kind != CV_POLICY_RANKING) {
    return cv_pulls_json(outcome, policy);
  }
  const struct cv_progress *progress = &outcome->progress;
  json_t *truth = json_null(), *accuracy = json_null();
  if (outcome->truth != NULL) {
    truth = all_classes(outcome, true);
    accuracy = json_real(cv_accuracy(outcome->truth, outcome->standing, outcome->arms, outcome->alpha).all);
  }
  return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:f, s:f, s:o, s:o}", "campaign",
                   progress->name, "policy", policy, "classes", all_classes(outcome, false), "undecided",
                   names_of_class(outcome, 0, false), "truth", truth, "accuracy", accuracy, "item_tokens",
                   item_tokens(outcome), "lies", lies_json(outcome), "tokens", (json_int_t)progress->tokens, "rounds",
                   (json_int_t)progress->plans, "epsilon_spent_micro", (json_int_t)progress->epsilon_spent_micro,
                   "seconds", (double)progress->elapsed_ms / 1000, "tokens_per_second", cv_view_rate(progress),
                   "over_sum_bound", ratio(outcome, outcome->bound.sum), "over_pair_bound",
                   ratio(outcome, outcome->bound.pair));
}
