/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/outcome.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/text.h"
#include "common/base/width.h"
#include "deploy/launcher/live.h"
#include "worker/quality/truth.h"

/* An arm without a standing keeps the zero standing: class 0, undecided. Unknown arms are ignored. */
static void take_standings(struct cv_outcome *outcome, const struct cv_finished *finished) {
  for (uint32_t i = 0; i < outcome->arms; i++) {
    outcome->standing[i].arm = i;
  }
  for (uint32_t i = 0; i < finished->standings; i++) {
    if (finished->standing[i].arm < outcome->arms) {
      outcome->standing[finished->standing[i].arm] = finished->standing[i];
    }
  }
  cv_live_order(outcome->kind, outcome->standing, outcome->arms, outcome->order);
}

static enum cv_err take_costs(struct cv_outcome *outcome, const struct cv_spec *spec) {
  if (spec == NULL || spec->cost_micro == NULL) {
    return CV_OK;
  }
  outcome->budget_micro = spec->budget_micro;
  outcome->cost_micro = calloc(outcome->arms, sizeof(*outcome->cost_micro));
  if (outcome->cost_micro == NULL) {
    return CV_ERR_NOMEM;
  }
  memcpy(outcome->cost_micro, spec->cost_micro, outcome->arms * sizeof(*outcome->cost_micro));
  return CV_OK;
}

/* Copies the true means; for a ranking also computes the true classes, which needs the policy's alpha. */
static enum cv_err take_truth(struct cv_outcome *outcome, const struct cv_outcome_known *known) {
  const struct cv_param *alpha = known->spec == NULL ? NULL : cv_params_find(&known->spec->policy.params, "alpha");
  bool is_ranking = outcome->kind == CV_POLICY_RANKING;
  if (known->mean == NULL || (is_ranking && (alpha == NULL || alpha->is_text))) {
    return CV_OK;
  }
  outcome->mean = calloc(outcome->arms, sizeof(*outcome->mean));
  if (outcome->mean == NULL) {
    return CV_ERR_NOMEM;
  }
  memcpy(outcome->mean, known->mean, outcome->arms * sizeof(*outcome->mean));
  if (!is_ranking) {
    return CV_OK;
  }
  outcome->alpha = alpha->number;
  outcome->truth = calloc(outcome->arms, sizeof(*outcome->truth));
  if (outcome->truth == NULL) {
    return CV_ERR_NOMEM;
  }
  (void)cv_truth_classes(outcome->mean, outcome->arms, outcome->alpha, outcome->truth);
  return CV_OK;
}

/* Judges a ranking from duels by them, which only the file tells. */
static enum cv_err take_duels(struct cv_outcome *outcome, const struct cv_outcome_known *known) {
  const struct cv_pairs *pairs = known->file == NULL ? NULL : cv_quality_pairs(known->file->source.quality);
  if (!outcome->has_duels || outcome->truth == NULL || pairs == NULL || pairs->arms != outcome->arms) {
    return CV_OK;
  }
  outcome->duel_right = calloc(outcome->arms, sizeof(*outcome->duel_right));
  if (outcome->duel_right == NULL) {
    return CV_ERR_NOMEM;
  }
  outcome->tie = cv_params_number(&known->spec->policy.params, "tie");
  cv_pairs_right(pairs, outcome->tie, outcome->standing, outcome->duel_right);
  return CV_OK;
}

/* There is none without the file, which says how scores are drawn. */
static enum cv_err take_bound(struct cv_outcome *outcome, const struct cv_outcome_known *known) {
  if (known->file == NULL || outcome->truth == NULL) {
    return CV_OK;
  }
  struct cv_why why;
  enum cv_err err = cv_bound_of_campaign(known->file, &outcome->bound, &why);
  outcome->has_bound = err == CV_OK;
  return err == CV_ERR_NOMEM ? err : CV_OK;
}

static enum cv_err take_exposure(struct cv_outcome *outcome, const struct cv_outcome_known *known) {
  if (known->file == NULL) {
    return CV_OK;
  }
  uint64_t *tokens = calloc(outcome->arms, sizeof(*tokens));
  if (tokens == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < outcome->arms; i++) {
    tokens[i] = outcome->standing[i].tokens;
  }
  const struct cv_spec *spec = &known->file->file.spec;
  const struct cv_exposure_ask ask = {.items = &known->file->file.items,
                                      .source = &known->file->source,
                                      .spec = spec,
                                      .tokens = tokens,
                                      .token_micro = outcome->progress.epsilon_spent_micro + outcome->neutral_micro,
                                      .is_exact = cv_spec_is_exact(spec),
                                      .is_seed_known = known->is_seed_known};
  enum cv_err err = cv_exposure_find(&ask, &outcome->exposure);
  free(tokens);
  return err;
}

static enum cv_err take_names(struct cv_outcome *outcome, const struct cv_outcome_known *known) {
  if (known->name != NULL) {
    return cv_names_copy(known->name, outcome->arms, &outcome->name);
  }
  const uint64_t *worker = known->spec == NULL ? NULL : known->spec->worker;
  struct cv_names names = {0};
  for (uint32_t i = 0; i < outcome->arms; i++) {
    char text[32];
    (void)snprintf(text, sizeof(text), worker == NULL ? "arm %" PRIu64 : "worker %" PRIu64,
                   worker == NULL ? i + UINT64_C(1) : worker[i]);
    cv_names_add(&names, text);
  }
  enum cv_err err = cv_names_take(&names, &outcome->name);
  cv_names_fini(&names);
  return err;
}

static const char *assumption_of(const struct cv_spec *spec) {
  const struct cv_param *scores = spec == NULL ? NULL : cv_params_find(&spec->policy.params, "scores");
  const char *word = scores == NULL || !scores->is_text ? "independent" : scores->text;
  return strcmp(word, "reacting") == 0              ? "a constant mean score"
         : strcmp(word, "without-replacement") == 0 ? "rows drawn at random"
                                                    : "independent scores";
}

enum cv_err cv_outcome_init(struct cv_outcome *outcome, const struct cv_finished *finished,
                            const struct cv_outcome_known *known) {
  uint32_t arms = finished->progress.arms;
  *outcome = (struct cv_outcome){.kind = known->kind, .progress = finished->progress, .arms = arms};
  outcome->standing = calloc(arms, sizeof(*outcome->standing));
  outcome->order = calloc(arms, sizeof(*outcome->order));
  if (outcome->standing == NULL || outcome->order == NULL || take_names(outcome, known) != CV_OK) {
    cv_outcome_fini(outcome);
    return CV_ERR_NOMEM;
  }
  take_standings(outcome, finished);
  outcome->unit = cv_unit_of(known->file);
  outcome->epsilon_micro = known->spec == NULL ? 0 : known->spec->epsilon_micro;
  outcome->neutral_micro = known->file == NULL ? 0 : known->file->file.gold.gold.epsilon_micro;
  const struct cv_policy_class *class = known->spec == NULL ? NULL : cv_policy_find(known->spec->policy.name);
  outcome->assumption = assumption_of(known->spec);
  outcome->has_duels = class != NULL && class->duels;
  outcome->is_exact = known->spec != NULL && !cv_spec_has_noise(known->spec);
  enum cv_err err = take_truth(outcome, known);
  if (err == CV_OK) {
    err = take_duels(outcome, known);
  }
  if (err == CV_OK) {
    err = take_bound(outcome, known);
  }
  if (err == CV_OK) {
    err = take_costs(outcome, known->spec);
  }
  if (err == CV_OK) {
    err = take_exposure(outcome, known);
  }
  if (err == CV_OK && outcome->kind == CV_POLICY_RANKING) {
    err = cv_rest_of(outcome->standing, arms, NULL, NULL, &outcome->rest);
  }
  if (err != CV_OK) {
    cv_outcome_fini(outcome);
  }
  return err;
}

void cv_outcome_fini(struct cv_outcome *outcome) {
  free(outcome->standing);
  free(outcome->order);
  free(outcome->name);
  free(outcome->mean);
  free(outcome->truth);
  free(outcome->duel_right);
  cv_rest_fini(&outcome->rest);
  free(outcome->cost_micro);
  cv_lies_fini(&outcome->lies);
  *outcome = (struct cv_outcome){0};
}

bool cv_outcome_needs_export(const struct cv_outcome *outcome, const struct cv_adversary *adversary) {
  return outcome->kind == CV_POLICY_RANKING || adversary != NULL;
}

enum cv_err cv_outcome_take_part(struct cv_outcome *outcome, const struct cv_adversary *adversary,
                                 struct cv_export *export, const struct cv_part *part, struct cv_why *why) {
  enum cv_err err = cv_export_add(export, part);
  if (err != CV_OK) {
    return cv_fail(why, err, "the broker sent an invalid export: %s", cv_err_text(err));
  }
  if (!export->complete || outcome->is_exported) {
    return CV_OK;
  }
  if (adversary != NULL) {
    outcome->hindsight = cv_hindsight_of(adversary, export);
  }
  if (outcome->kind == CV_POLICY_RANKING && export->spec.arms == outcome->arms) {
    cv_rest_fini(&outcome->rest);
    if (cv_lies_of(export, &outcome->lies) != CV_OK ||
        cv_rest_of(outcome->standing, outcome->arms, export, outcome->lies.need, &outcome->rest) != CV_OK) {
      return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
    }
  }
  outcome->neutral_micro = export->neutrals > 0 ? export->neutral_epsilon_micro : outcome->neutral_micro;
  outcome->is_exported = true;
  return CV_OK;
}

uint32_t cv_outcome_undecided(const struct cv_outcome *outcome) {
  uint32_t undecided = 0;
  for (uint32_t i = 0; i < outcome->arms; i++) {
    undecided += !cv_standing_is_decided(&outcome->standing[i]);
  }
  return undecided;
}

enum cv_held cv_outcome_why(const struct cv_standing *standing) {
  return cv_standing_is_decided(standing) || standing->held != CV_HELD_NO ? standing->held : CV_HELD_OPEN;
}

uint32_t cv_outcome_held(const struct cv_outcome *outcome, enum cv_held held) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < outcome->arms; i++) {
    count += cv_outcome_why(&outcome->standing[i]) == held;
  }
  return count;
}

bool cv_outcome_is_right(const struct cv_outcome *outcome, uint32_t arm) {
  const struct cv_standing *standing = &outcome->standing[arm];
  if (outcome->truth == NULL || !cv_standing_is_decided(standing)) {
    return false;
  }
  return outcome->duel_right != NULL ? outcome->duel_right[arm] : standing->rank_class == outcome->truth[arm];
}

double cv_outcome_accuracy(const struct cv_outcome *outcome, uint32_t *ret_right) {
  uint32_t decided = outcome->arms - cv_outcome_undecided(outcome);
  *ret_right = 0;
  for (uint32_t i = 0; i < outcome->arms; i++) {
    *ret_right += cv_outcome_is_right(outcome, i);
  }
  return outcome->truth == NULL || decided == 0 ? (double)NAN : (double)*ret_right / decided;
}

int cv_launcher_end_status(enum cv_end end) {
  bool is_limit = end == CV_END_TOKENS || end == CV_END_DEADLINE || end == CV_END_LEDGER || end == CV_END_BUDGET;
  return end == CV_END_COMPLETE || is_limit ? 0 : 1;
}

/* ---- printing ---- */

int cv_outcome_columns(const struct cv_outcome *outcome) {
  size_t columns = 4;
  for (uint32_t i = 0; i < outcome->arms; i++) {
    size_t own = cv_width_of(outcome->name[i]);
    columns = own > columns ? own : columns;
  }
  return columns < CV_OUTCOME_COLUMNS ? (int)columns : CV_OUTCOME_COLUMNS;
}

void cv_outcome_print_cut(const char *text, size_t columns, FILE *to) {
  const struct cv_text_shown shown = cv_width_cut(text, columns, "…");
  (void)fprintf(to, "%s%*s", shown.text, (int)(columns - cv_width_of(shown.text)), "");
}

uint32_t cv_outcome_rows(const struct cv_outcome *outcome) {
  return outcome->arms < CV_OUTCOME_ROWS ? outcome->arms : CV_OUTCOME_ROWS;
}

void cv_outcome_print_rest(const struct cv_outcome *outcome, FILE *to) {
  if (outcome->arms > CV_OUTCOME_ROWS) {
    (void)fprintf(to, "... and %u more of %u items; --json and `crowdveil export` give all of them\n",
                  outcome->arms - CV_OUTCOME_ROWS, outcome->arms);
  }
}

static void print_token(const struct cv_outcome *outcome, FILE *to) {
  uint64_t spent = outcome->progress.epsilon_spent_micro;
  if (outcome->is_exact && spent == 0) {
    (void)fprintf(to, "epsilon     no limit: the third-party saw exact sums\n");
    return;
  }
  (void)fprintf(to, "epsilon     %g", (double)spent / (double)CV_MICRO);
  if (outcome->epsilon_micro > 0) {
    (void)fprintf(to, " of %g", (double)outcome->epsilon_micro / (double)CV_MICRO);
  }
  (void)fprintf(to, " spent on each token");
  if (outcome->neutral_micro > 0) {
    (void)fprintf(to, ", and %g on the numbers of neutral tokens: %g in all",
                  (double)outcome->neutral_micro / (double)CV_MICRO,
                  (double)(spent + outcome->neutral_micro) / (double)CV_MICRO);
  }
  (void)fputc('\n', to);
}

void cv_outcome_print_contradictions(const struct cv_outcome *outcome, FILE *to) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < outcome->arms; i++) {
    count += outcome->standing[i].contradicts;
  }
  if (count > 0) {
    (void)fprintf(to, "warning     the answers contradict the assumption of %s: %u item%s\n", outcome->assumption,
                  count, count == 1 ? "" : "s");
  }
}

void cv_outcome_print_epsilon(const struct cv_outcome *outcome, FILE *to) {
  print_token(outcome, to);
  cv_exposure_print(&outcome->exposure, "rows        ", to);
}
