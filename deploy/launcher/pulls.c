/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pulls.h"

#include <math.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/text.h"
#include "common/campaign/worth.h"
#include "deploy/launcher/progress.h"

static double money(uint64_t micro) {
  return (double)micro / (double)CV_MICRO;
}

struct cv_pulls_sums cv_pulls_sums(const struct cv_outcome *outcome) {
  /* The amount paid is the broker's; the numbers of pulls are the third-party's. */
  struct cv_pulls_sums sums = {
      .spent_micro = outcome->progress.paid_micro, .reward = (double)NAN, .regret = (double)NAN, .best = UINT32_MAX};
  const struct cv_worth worth = {.arms = outcome->arms,
                                 .mean = outcome->mean,
                                 .cost_micro = outcome->cost_micro,
                                 .budget_micro = outcome->budget_micro,
                                 .tokens = outcome->progress.tokens_limit};
  double reward = 0;
  for (uint32_t i = 0; i < outcome->arms; i++) {
    uint64_t pulls = outcome->standing[i].tokens;
    sums.pulls += pulls;
    reward += outcome->mean == NULL ? 0 : (double)pulls * outcome->mean[i];
  }
  if (outcome->mean != NULL && outcome->arms > 0) {
    sums.best = cv_worth_best(&worth);
    sums.reward = reward;
    if (outcome->cost_micro != NULL) {
      sums.regret = cv_worth_reward(&worth) - reward;
    } else {
      sums.regret = (double)sums.pulls * outcome->mean[sums.best] - reward;
    }
  }
  /* Hindsight replaces the sums by means: an adversary has no means. */
  if (outcome->hindsight.is_known) {
    sums.best = outcome->hindsight.arm;
    sums.reward = outcome->hindsight.gained;
    sums.regret = outcome->hindsight.best - sums.reward;
  }
  return sums;
}

/* ---- as a table ---- */

static void print_heading(const struct cv_outcome *outcome, int columns, FILE *to) {
  (void)fprintf(to, "%s%*s        pulls  share  noisy mean", outcome->cost_micro == NULL ? "item  " : "worker",
                columns > 6 ? columns - 6 : 0, "");
  cv_unit_print_heading(&outcome->unit, to);
  (void)fprintf(to, "%s%s%s\n", outcome->mean == NULL ? "" : "   truth",
                outcome->cost_micro == NULL ? "" : "      cost        paid",
                outcome->kind == CV_POLICY_GRAPH ? "  still active" : "");
}

static void print_row(const struct cv_outcome *outcome, uint32_t arm, uint64_t pulls, int columns, FILE *to) {
  const struct cv_standing *standing = &outcome->standing[arm];
  const char *name = outcome->name[arm];
  int width = columns > 6 ? columns : 6;
  cv_outcome_print_cut(name, (size_t)width, to);
  (void)fprintf(to, "  %11s %5.1f%%", cv_count_text(standing->tokens).text,
                pulls == 0 ? 0 : 100 * (double)standing->tokens / (double)pulls);
  (void)fprintf(to, standing->tokens == 0 ? "           -" : "%12.4f", standing->mean);
  cv_unit_print_cell(&outcome->unit, standing, to);
  if (outcome->mean != NULL) {
    (void)fprintf(to, "  %6.4f", outcome->mean[arm]);
  }
  if (outcome->cost_micro != NULL) {
    (void)fprintf(to, " %9.4g  %10.6g", money(outcome->cost_micro[arm]),
                  money(outcome->cost_micro[arm] * standing->tokens));
  }
  if (outcome->kind == CV_POLICY_GRAPH) {
    (void)fprintf(to, "  %s", standing->rank_class == 1 ? "yes" : "no");
  }
  (void)fputc('\n', to);
}

/* The arms of a graph bandit that are still active, and why the campaign ended with them. */
static void print_active(const struct cv_outcome *outcome, FILE *to) {
  const struct cv_progress *progress = &outcome->progress;
  uint32_t active = 0, last = 0;
  for (uint32_t i = 0; i < outcome->arms; i++) {
    if (outcome->standing[i].rank_class == 1) {
      active++;
      last = i;
    }
  }
  if (active == 1) {
    (void)fprintf(to, ", %s is the best", cv_text_shown(outcome->name[last]).text);
  } else {
    (void)fprintf(to, ", %u of %u still active", active, outcome->arms);
  }
  if (progress->end == CV_END_TOKENS) {
    (void)fprintf(to, ": the next phase asks for more than the %s tokens that are left",
                  cv_count_text(progress->tokens_limit - progress->tokens).text);
  }
}

static void print_sums(const struct cv_outcome *outcome, const struct cv_pulls_sums *sums, FILE *to) {
  const struct cv_progress *progress = &outcome->progress;
  (void)fprintf(to, "\nended       %s", cv_end_text(progress->end));
  if (outcome->kind == CV_POLICY_GRAPH) {
    print_active(outcome, to);
  }
  (void)fputc('\n', to);
  if (outcome->hindsight.is_known) {
    (void)fprintf(to, "reward      %.6g gained in %s rounds\n", sums->reward,
                  cv_count_text(outcome->hindsight.rounds).text);
    (void)fprintf(to, "regret      %.6g against %s at every round, the best in hindsight\n", sums->regret,
                  cv_text_shown(outcome->name[sums->best]).text);
  } else if (outcome->mean != NULL) {
    (void)fprintf(to, "reward      %.6g expected of these %s\n", sums->reward,
                  outcome->cost_micro == NULL ? "pulls" : "hires");
    (void)fprintf(to, "regret      %.6g against %s\n", sums->regret,
                  outcome->cost_micro == NULL ? "the best arm" : "hiring by the truth");
  }
  if (outcome->cost_micro != NULL) {
    (void)fprintf(to, "paid        %.6g of %.6g\n", money(sums->spent_micro), money(outcome->budget_micro));
  }
  cv_outcome_print_contradictions(outcome, to);
  cv_outcome_print_epsilon(outcome, to);
  (void)fprintf(to, "tokens      %s of %s\n", cv_count_text(progress->tokens).text,
                cv_count_text(progress->tokens_limit).text);
  (void)fprintf(to, "%-11s %s\n", outcome->kind == CV_POLICY_GRAPH ? "phases" : "plans",
                cv_count_text(progress->plans).text);
  (void)fprintf(to, "time        %.1f s, %s tokens a second\n", (double)progress->elapsed_ms / 1000,
                cv_count_text((uint64_t)(cv_view_rate(progress) + 0.5)).text);
}

void cv_pulls_print(const struct cv_outcome *outcome, FILE *to) {
  struct cv_pulls_sums sums = cv_pulls_sums(outcome);
  int columns = cv_outcome_columns(outcome);
  print_heading(outcome, columns, to);
  for (uint32_t i = 0; i < cv_outcome_rows(outcome); i++) {
    print_row(outcome, outcome->order[i], sums.pulls, columns, to);
  }
  cv_outcome_print_rest(outcome, to);
  print_sums(outcome, &sums, to);
}

/* ---- as JSON ---- */

/* JSON has no NAN. */
static json_t *number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

static json_t *arm_json(const struct cv_outcome *outcome, uint32_t arm) {
  const struct cv_standing *standing = &outcome->standing[arm];
  json_t *object =
      json_pack("{s:s, s:I, s:f, s:o}", "name", outcome->name[arm], "pulls", (json_int_t)standing->tokens, "mean",
                standing->mean, "truth", number(outcome->mean == NULL ? (double)NAN : outcome->mean[arm]));
  if (outcome->kind == CV_POLICY_GRAPH) {
    (void)json_object_set_new(object, "active", json_boolean(standing->rank_class == 1));
  }
  if (outcome->cost_micro != NULL) {
    (void)json_object_set_new(object, "cost", json_real(money(outcome->cost_micro[arm])));
    (void)json_object_set_new(object, "paid", json_real(money(outcome->cost_micro[arm] * standing->tokens)));
  }
  return object;
}

json_t *cv_pulls_json(const struct cv_outcome *outcome, const char *policy) {
  const struct cv_progress *progress = &outcome->progress;
  struct cv_pulls_sums sums = cv_pulls_sums(outcome);
  json_t *arms = json_array();
  for (uint32_t i = 0; i < outcome->arms; i++) {
    (void)json_array_append_new(arms, arm_json(outcome, outcome->order[i]));
  }
  json_t *result =
      json_pack("{s:s, s:s, s:o, s:I, s:o, s:o, s:I, s:I, s:I, s:f, s:f}", "campaign", progress->name, "policy", policy,
                "arms", arms, "pulls", (json_int_t)sums.pulls, "reward", number(sums.reward), "regret",
                number(sums.regret), "tokens", (json_int_t)progress->tokens, "rounds", (json_int_t)progress->plans,
                "epsilon_spent_micro", (json_int_t)progress->epsilon_spent_micro, "seconds",
                (double)progress->elapsed_ms / 1000, "tokens_per_second", cv_view_rate(progress));
  if (result != NULL && outcome->cost_micro != NULL) {
    (void)json_object_set_new(result, "spent", json_real(money(sums.spent_micro)));
    (void)json_object_set_new(result, "budget", json_real(money(outcome->budget_micro)));
  }
  return result;
}
