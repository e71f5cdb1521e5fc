/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/result_json.h"

#include <math.h>

#include "deploy/launcher/hindrance.h"
#include "deploy/launcher/json.h"
#include "deploy/launcher/progress.h"
#include "deploy/launcher/pulls.h"

/* The class of an arm, the true one or the one that was found; 0: none of its own. */
static uint32_t class_of(const struct cv_outcome *outcome, uint32_t arm, bool truth) {
  const struct cv_standing *standing = &outcome->standing[arm];
  return truth ? outcome->truth[arm] : cv_standing_is_decided(standing) ? standing->rank_class : 0;
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

/* The items with a class that is not right; null without the truth. */
static json_t *wrong_json(const struct cv_outcome *outcome) {
  json_t *names = outcome->truth == NULL ? json_null() : json_array();
  for (uint32_t i = 0; i < outcome->arms && outcome->truth != NULL; i++) {
    uint32_t arm = outcome->order[i];
    if (cv_standing_is_decided(&outcome->standing[arm]) && !cv_outcome_is_right(outcome, arm)) {
      names = cv_json_append(names, json_string(outcome->name[arm]));
    }
  }
  return names;
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

/* Null where they are not counted. */
static json_t *neutral_json(const struct cv_outcome *outcome) {
  const struct cv_lies *lies = &outcome->lies;
  if (lies->neutral == NULL) {
    return json_null();
  }
  json_t *items = json_object();
  for (uint32_t i = 0; i < outcome->arms; i++) {
    uint32_t arm = outcome->order[i];
    items = cv_json_set(items, outcome->name[arm], json_integer(lies->neutral[arm]));
  }
  return json_pack("{s:I, s:f, s:I, s:o}", "most", (json_int_t)lies->neutral_most, "radius", lies->neutral_radius,
                   "epsilon_micro", (json_int_t)outcome->neutral_micro, "items", items);
}

/* Null without a bound, and where it is infinite or 0. */
static json_t *ratio(const struct cv_outcome *outcome, double bound) {
  double times = outcome->has_bound ? cv_bound_ratio(outcome->progress.tokens, bound) : (double)NAN;
  return isnan(times) ? json_null() : json_real(times);
}

static json_t *number_or_null_of(double number) {
  return isfinite(number) ? json_real(number) : json_null();
}

static json_t *parked_json(const struct cv_outcome *outcome) {
  json_t *parked = json_array();
  for (uint32_t i = 0; i < outcome->arms; i++) {
    const struct cv_standing *standing = &outcome->standing[outcome->order[i]];
    if (cv_standing_is_parked(standing)) {
      parked = cv_json_append(parked, json_pack("{s:s, s:I, s:I, s:s}", "name", outcome->name[standing->arm], "class",
                                                (json_int_t)standing->rank_class, "class_last",
                                                (json_int_t)standing->rank_last, "held", cv_held_text(standing->held)));
    }
  }
  return parked;
}

/* The first and the last class that each item without one can be in. */
static json_t *ranges_json(const struct cv_outcome *outcome) {
  json_t *ranges = json_object();
  for (uint32_t i = 0; i < outcome->arms; i++) {
    const struct cv_standing *standing = &outcome->standing[outcome->order[i]];
    if (standing->held != CV_HELD_NO) {
      ranges = cv_json_set(ranges, outcome->name[standing->arm],
                           json_pack("[I, I]", (json_int_t)standing->rank_class, (json_int_t)standing->rank_last));
    }
  }
  return ranges;
}

static json_t *contradictions_json(const struct cv_outcome *outcome) {
  json_t *items = json_array();
  for (uint32_t i = 0; i < outcome->arms; i++) {
    uint32_t arm = outcome->order[i];
    if (outcome->standing[arm].contradicts) {
      items = cv_json_append(items, json_string(outcome->name[arm]));
    }
  }
  return json_pack("{s:s, s:o}", "assumption", outcome->assumption, "items", items);
}

/* Best first. */
static json_t *rest_json(const struct cv_outcome *outcome) {
  json_t *all = json_array();
  for (uint32_t i = 0; i < outcome->rest.items; i++) {
    const struct cv_rest_item *item = &outcome->rest.item[i];
    const struct cv_standing *standing = &outcome->standing[item->arm];
    bool is_known = standing->tokens > 0;
    all =
        cv_json_append(all, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "name", outcome->name[item->arm], "mean",
                                      number_or_null_of(item->mean), "low",
                                      number_or_null_of(is_known ? cv_rest_low(standing) : (double)NAN), "high",
                                      number_or_null_of(is_known ? cv_rest_high(standing) : (double)NAN), "swapped",
                                      number_or_null_of(item->swapped), "more_tokens", number_or_null_of(item->need)));
  }
  return all;
}

static json_t *next_json(const struct cv_outcome *outcome) {
  if (outcome->rest.next == UINT32_MAX) {
    return json_null();
  }
  const struct cv_rest_item *item = &outcome->rest.item[outcome->rest.next];
  return json_pack("{s:s, s:f}", "name", outcome->name[item->arm], "more_tokens", item->need);
}

/* What the ranking says of items without a class. */
static json_t *with_rest(json_t *result, const struct cv_outcome *outcome) {
  uint32_t decided = outcome->arms - cv_outcome_undecided(outcome);
  result = cv_json_set(result, "decided", json_integer(decided));
  result = cv_json_set(result, "ended", json_string(cv_end_text(outcome->progress.end)));
  result = cv_json_set(result, "parked", parked_json(outcome));
  result = cv_json_set(result, "class_ranges", ranges_json(outcome));
  result = cv_json_set(result, "contradictions", contradictions_json(outcome));
  result = cv_json_set(result, "best_effort", rest_json(outcome));
  return cv_json_set(result, "next", next_json(outcome));
}

json_t *cv_result_json(const struct cv_outcome *outcome, const char *policy) {
  if (outcome->kind != CV_POLICY_RANKING) {
    return cv_json_set(cv_pulls_json(outcome, policy), "contradictions", contradictions_json(outcome));
  }
  const struct cv_progress *progress = &outcome->progress;
  uint32_t right;
  json_t *truth = outcome->truth == NULL ? json_null() : all_classes(outcome, true);
  json_t *accuracy = number_or_null_of(cv_outcome_accuracy(outcome, &right));
  json_t *result = json_pack(
      "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:f, s:f, s:o, s:o}", "campaign", progress->name,
      "policy", policy, "classes", all_classes(outcome, false), "undecided", names_of_class(outcome, 0, false), "truth",
      truth, "accuracy", accuracy, "item_tokens", item_tokens(outcome), "lies", lies_json(outcome), "neutral",
      neutral_json(outcome), "tokens", (json_int_t)progress->tokens, "rounds", (json_int_t)progress->plans,
      "epsilon_spent_micro", (json_int_t)progress->epsilon_spent_micro, "seconds", (double)progress->elapsed_ms / 1000,
      "tokens_per_second", cv_view_rate(progress), "over_sum_bound", ratio(outcome, outcome->bound.sum),
      "over_pair_bound", ratio(outcome, outcome->bound.pair));
  result = cv_json_set(result, "wrong", wrong_json(outcome));
  return with_rest(result, outcome);
}

void cv_result_print_json(const struct cv_outcome *outcome, const char *policy) {
  json_t *result = cv_hindrance_json(cv_result_json(outcome, policy), &outcome->progress, outcome->name);
  if (outcome->exposure.is_data) {
    result = cv_json_set(result, "data", cv_exposure_json(&outcome->exposure));
    result = cv_json_set(result, "unit", cv_unit_json(&outcome->unit, outcome->name, outcome->standing, outcome->arms));
  }
  cv_json_print(result, JSON_REAL_PRECISION(10));
  (void)fflush(stdout);
}
