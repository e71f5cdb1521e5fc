/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/width.h"
#include "deploy/launcher/progress.h"
#include "deploy/launcher/pulls.h"

static struct cv_count_text lies_text(uint64_t lies) {
  return cv_lies_is_number(lies) ? cv_count_text(lies) : (struct cv_count_text){.text = "-"};
}

/* The widths of the table's first columns. */
struct widths {
  int class, name;
};

static struct widths widths_of(const struct cv_outcome *outcome) {
  struct widths widths = {.class = 5, .name = cv_outcome_columns(outcome)};
  for (uint32_t i = 0; i < cv_outcome_rows(outcome); i++) {
    int own = (int)strlen(cv_class_text(&outcome->standing[outcome->order[i]]).text);
    widths.class = own > widths.class ? own : widths.class;
  }
  return widths;
}

static const char *verdict_of(const struct cv_outcome *outcome, uint32_t arm) {
  const struct cv_standing *standing = &outcome->standing[arm];
  if (!cv_standing_is_decided(standing)) {
    return cv_held_text(cv_outcome_why(standing));
  }
  return cv_outcome_is_right(outcome, arm) ? "hit" : "miss";
}

static void print_row(const struct cv_outcome *outcome, uint32_t arm, const struct widths *widths, FILE *to) {
  const struct cv_standing *standing = &outcome->standing[arm];
  const char *name = outcome->name[arm];
  char interval[48] = "-";
  if (standing->tokens > 0) {
    (void)snprintf(interval, sizeof(interval), "%7.4f ± %.4f", standing->mean, standing->radius);
  }
  (void)fprintf(to, "%*s  ", widths->class, cv_class_text(standing).text);
  cv_outcome_print_cut(name, (size_t)widths->name, to);
  (void)fprintf(to, "  %s%*s  %11s", interval, 16 - (int)cv_width_of(interval), "",
                cv_count_text(standing->tokens).text);
  cv_unit_print_cell(&outcome->unit, standing, to);
  if (outcome->lies.of_arm != NULL) {
    const struct cv_policy_lies *lies = &outcome->lies.of_arm[arm];
    (void)fprintf(to, "  %9s  %9s", lies_text(lies->safe).text, lies_text(lies->turn).text);
  }
  if (outcome->lies.neutral != NULL) {
    (void)fprintf(to, "  %9" PRId64, outcome->lies.neutral[arm]);
  }
  if (outcome->duel_right != NULL) {
    (void)fprintf(to, "  %6.4f  %s", outcome->mean[arm], verdict_of(outcome, arm));
  } else if (outcome->truth != NULL) {
    (void)fprintf(to, "  %6.4f  %5u  %s", outcome->mean[arm], outcome->truth[arm], verdict_of(outcome, arm));
  }
  (void)fprintf(to, "\n");
}

/* The items without a class of their own that are held for this reason, with the classes that each can be in. */
static void print_held(const struct cv_outcome *outcome, enum cv_held held, const char *label, FILE *to) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < outcome->arms; i++) {
    const struct cv_standing *standing = &outcome->standing[outcome->order[i]];
    if (cv_outcome_why(standing) != held || at++ >= CV_OUTCOME_NAMES) {
      continue;
    }
    (void)fprintf(to, "%*s%s", at == 1 ? -12 : 0, at == 1 ? label : ", ",
                  cv_text_shown(outcome->name[standing->arm]).text);
    if (standing->rank_class > 0) {
      (void)fprintf(to, " (class %s)", cv_class_text(standing).text);
    }
  }
  if (at > CV_OUTCOME_NAMES) {
    (void)fprintf(to, " and %u more", at - CV_OUTCOME_NAMES);
  }
  (void)fprintf(to, at == 0 ? "" : "\n");
}

/* "7 of 10 items decided, 3 on a boundary". */
static void print_decided(const struct cv_outcome *outcome, FILE *to) {
  static const char *const said[CV_HELD_COUNT] = {
      [CV_HELD_BOUNDARY] = "on a boundary", [CV_HELD_USED_UP] = "used up", [CV_HELD_OPEN] = "undecided"};
  (void)fprintf(to, "%u of %u items decided", outcome->arms - cv_outcome_undecided(outcome), outcome->arms);
  for (enum cv_held held = CV_HELD_NO + 1; held < CV_HELD_COUNT; held++) {
    uint32_t count = cv_outcome_held(outcome, held);
    if (count > 0) {
      (void)fprintf(to, ", %u %s", count, said[held]);
    }
  }
  (void)fprintf(to, "\n");
}

static void print_rest_row(const struct cv_outcome *outcome, const struct cv_rest_item *item, int columns, FILE *to) {
  const struct cv_standing *standing = &outcome->standing[item->arm];
  const char *name = outcome->name[item->arm];
  (void)fprintf(to, "  ");
  cv_outcome_print_cut(name, (size_t)columns, to);
  if (isnan(item->mean)) {
    (void)fprintf(to, "  without a release\n");
    return;
  }
  (void)fprintf(to, "  %7.4f  %7.4f to %6.4f", item->mean, cv_rest_low(standing), cv_rest_high(standing));
  if (!isnan(item->swapped)) {
    (void)fprintf(to, "  %7.2f", item->swapped);
  }
  (void)fprintf(to, "\n");
}

/* The best order of the items without a class, and what more tokens would settle next. */
static void print_rest(const struct cv_outcome *outcome, int columns, FILE *to) {
  const struct cv_rest *rest = &outcome->rest;
  if (rest->items == 0) {
    return;
  }
  (void)fprintf(to, "\nbest effort, not covered by delta: the items without a class, best first\n");
  (void)fprintf(to, "  item%*s     mean  interval           next one is better\n", columns - 4, "");
  uint32_t rows = rest->items < CV_OUTCOME_ROWS ? rest->items : CV_OUTCOME_ROWS;
  for (uint32_t i = 0; i < rows; i++) {
    print_rest_row(outcome, &rest->item[i], columns, to);
  }
  if (rows < rest->items) {
    (void)fprintf(to, "  and %u more\n", rest->items - rows);
  }
  if (rest->next != UINT32_MAX) {
    const struct cv_rest_item *item = &rest->item[rest->next];
    (void)fprintf(to, "next        %s: about %s more tokens, if it is one standard deviation clearer than it looks\n",
                  cv_text_shown(outcome->name[item->arm]).text,
                  cv_count_text((uint64_t)fmin(ceil(item->need), 1e18)).text);
  }
}

/* Nothing for a bound of 0, where there was nothing to find out. */
static void print_bound(const struct cv_outcome *outcome, FILE *to) {
  const struct cv_bound *bound = &outcome->bound;
  if (!outcome->has_bound || !(bound->sum > 0)) {
    return;
  }
  if (isinf(bound->sum)) {
    (void)fprintf(to, "bound       infinite: items tie where a class begins or ends, and no private ranking ends\n");
    return;
  }
  uint64_t tokens = outcome->progress.tokens;
  (void)fprintf(
      to, "bound       tokens are %.2f times the sum bound, %.2f times the pair bound of an equally private ranking\n",
      cv_bound_ratio(tokens, bound->sum), cv_bound_ratio(tokens, bound->pair));
}

static void print_borne(const struct cv_lies *lies, uint64_t tokens, const char *label, const char *to_what, FILE *to) {
  if (tokens == 0) {
    (void)fprintf(to, "%-12snot known: the tokens of workers found by gold items may %s\n", label, to_what);
  } else if (cv_lies_is_number(tokens)) {
    (void)fprintf(to, "%-12sat least %s (workers: %s) to %s\n", label, cv_count_text(tokens).text,
                  cv_count_text(cv_lies_workers(lies, tokens)).text, to_what);
  } else {
    (void)fprintf(to, "%-12sno number of them can %s\n", label, to_what);
  }
}

static void print_lies(const struct cv_outcome *outcome, FILE *to) {
  const struct cv_lies *lies = &outcome->lies;
  if (lies->neutral != NULL) {
    (void)fprintf(to, "neutral     at most %s tokens, of workers found by gold items; each item's number ± %.0f\n",
                  cv_count_text(lies->neutral_most).text, lies->neutral_radius);
  }
  if (lies->unknown.text[0] != '\0') {
    (void)fprintf(to, "lies        not known: %s\n", lies->unknown.text);
  } else if (lies->of_arm != NULL) {
    print_borne(lies, lies->least.safe, "lies", "make a wrong class more probable", to);
    print_borne(lies, lies->least.turn, "", "turn a class by the noisy means", to);
  }
}

/* What it is to be right. */
static void print_right(const struct cv_outcome *outcome, FILE *to) {
  if (outcome->duel_right == NULL) {
    (void)fprintf(to, "in their true class\n");
  } else {
    (void)fprintf(to, "where no duel says otherwise, by more than the tie of %g\n", outcome->tie);
  }
}

static void print_sums(const struct cv_outcome *outcome, FILE *to) {
  const struct cv_progress *progress = &outcome->progress;
  double seconds = (double)progress->elapsed_ms / 1000;
  uint32_t right;
  double accuracy = cv_outcome_accuracy(outcome, &right);
  print_held(outcome, CV_HELD_BOUNDARY, "boundary", to);
  print_held(outcome, CV_HELD_USED_UP, "used up", to);
  print_held(outcome, CV_HELD_OPEN, "undecided", to);
  if (cv_outcome_held(outcome, CV_HELD_OPEN) == 0) {
    (void)fprintf(to, "undecided   none\n");
  }
  if (!isnan(accuracy)) {
    (void)fprintf(to, "accuracy    %.4f: %u of %u decided items are ", accuracy, right,
                  outcome->arms - cv_outcome_undecided(outcome));
    print_right(outcome, to);
  }
  cv_outcome_print_contradictions(outcome, to);
  cv_outcome_print_epsilon(outcome, to);
  (void)fprintf(to, "tokens      %s of %s\nrounds      %s\n", cv_count_text(progress->tokens).text,
                cv_count_text(progress->tokens_limit).text, cv_count_text(progress->plans).text);
  print_bound(outcome, to);
  print_lies(outcome, to);
  (void)fprintf(to, "time        %.1f s, %s tokens a second\n", seconds,
                cv_count_text((uint64_t)(cv_view_rate(progress) + 0.5)).text);
}

/* Duels have no true class of an item: which classes are right depends on those of the others. */
static const char *truth_heading(const struct cv_outcome *outcome) {
  return outcome->truth == NULL ? "" : outcome->duel_right != NULL ? "   truth" : "   truth  class";
}

void cv_table_print(const struct cv_outcome *outcome, FILE *to) {
  /* Only a ranking has classes. */
  if (outcome->kind != CV_POLICY_RANKING) {
    cv_pulls_print(outcome, to);
    return;
  }
  const struct widths widths = widths_of(outcome);
  print_decided(outcome, to);
  (void)fprintf(to, "\n%*sclass  item%*s  %-10s             tokens", widths.class - 5, "", widths.name - 4, "",
                outcome->has_duels ? "last duel" : "noisy mean");
  cv_unit_print_heading(&outcome->unit, to);
  (void)fprintf(to, "%s%s%s\n", outcome->lies.of_arm == NULL ? "" : "  lies safe       turn",
                outcome->lies.neutral == NULL ? "" : "    neutral", truth_heading(outcome));
  for (uint32_t i = 0; i < cv_outcome_rows(outcome); i++) {
    print_row(outcome, outcome->order[i], &widths, to);
  }
  cv_outcome_print_rest(outcome, to);
  print_rest(outcome, widths.name, to);
  (void)fprintf(to, "\nended       %s, ", cv_end_text(outcome->progress.end));
  if (cv_outcome_undecided(outcome) == 0) {
    (void)fprintf(to, "every item is ranked\n");
  } else {
    print_decided(outcome, to);
  }
  print_sums(outcome, to);
}
