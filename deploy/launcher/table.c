/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/table.h"

#include <math.h>

#include "common/base/text.h"
#include "common/campaign/accuracy.h"
#include "deploy/launcher/progress.h"
#include "deploy/launcher/pulls.h"

static struct cv_count_text lies_text(uint64_t lies) {
  return cv_lies_is_number(lies) ? cv_count_text(lies) : (struct cv_count_text){.text = "-"};
}

static void print_row(const struct cv_outcome *outcome, uint32_t arm, int columns, FILE *to) {
  const struct cv_standing *standing = &outcome->standing[arm];
  const char *name = outcome->name[arm];
  char class[16] = "-", interval[48] = "-";
  if (standing->rank_class > 0) {
    (void)snprintf(class, sizeof(class), "%u", standing->rank_class);
  }
  if (standing->tokens > 0) {
    (void)snprintf(interval, sizeof(interval), "%7.4f ± %.4f", standing->mean, standing->radius);
  }
  (void)fprintf(to, "%5s  %s%*s  %s%*s  %11s", class, name, columns - (int)cv_text_columns(name), "", interval,
                16 - (int)cv_text_columns(interval), "", cv_count_text(standing->tokens).text);
  if (outcome->lies.of_arm != NULL) {
    const struct cv_policy_lies *lies = &outcome->lies.of_arm[arm];
    (void)fprintf(to, "  %9s  %9s", lies_text(lies->safe).text, lies_text(lies->turn).text);
  }
  if (outcome->truth != NULL) {
    const char *verdict = standing->rank_class == 0                     ? "undecided"
                          : standing->rank_class == outcome->truth[arm] ? "hit"
                                                                        : "miss";
    (void)fprintf(to, "  %6.4f  %5u  %s", outcome->mean[arm], outcome->truth[arm], verdict);
  }
  (void)fprintf(to, "\n");
}

static void print_undecided(const struct cv_outcome *outcome, FILE *to) {
  uint32_t left = cv_outcome_undecided(outcome), at = 0;
  (void)fprintf(to, "undecided   ");
  for (uint32_t i = 0; i < outcome->arms; i++) {
    uint32_t arm = outcome->order[i];
    if (outcome->standing[arm].rank_class == 0) {
      (void)fprintf(to, "%s%s", at++ == 0 ? "" : ", ", outcome->name[arm]);
    }
  }
  (void)fprintf(to, left == 0 ? "none\n" : "\n");
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
  if (cv_lies_is_number(tokens)) {
    (void)fprintf(to, "%-12sat least %s (workers: %s) to %s\n", label, cv_count_text(tokens).text,
                  cv_count_text(cv_lies_workers(lies, tokens)).text, to_what);
  } else {
    (void)fprintf(to, "%-12sno number of them can %s\n", label, to_what);
  }
}

static void print_lies(const struct cv_outcome *outcome, FILE *to) {
  const struct cv_lies *lies = &outcome->lies;
  if (lies->unknown.text[0] != '\0') {
    (void)fprintf(to, "lies        not known: %s\n", lies->unknown.text);
  } else if (lies->of_arm != NULL) {
    print_borne(lies, lies->least.safe, "lies", "make a wrong class more probable", to);
    print_borne(lies, lies->least.turn, "", "turn a class by the noisy means", to);
  }
}

static void print_sums(const struct cv_outcome *outcome, FILE *to) {
  const struct cv_progress *progress = &outcome->progress;
  double seconds = (double)progress->elapsed_ms / 1000;
  print_undecided(outcome, to);
  if (outcome->truth != NULL) {
    struct cv_accuracy accuracy = cv_accuracy(outcome->truth, outcome->standing, outcome->arms, outcome->alpha);
    (void)fprintf(to, "accuracy    %.4f over %u possible classes, %.4f over the %u that are not empty\n", accuracy.all,
                  accuracy.classes, accuracy.of_filled, accuracy.filled);
  }
  cv_outcome_print_epsilon(outcome, to);
  (void)fprintf(to, "tokens      %s of %s\nrounds      %s\n", cv_count_text(progress->tokens).text,
                cv_count_text(progress->tokens_limit).text, cv_count_text(progress->plans).text);
  print_bound(outcome, to);
  print_lies(outcome, to);
  (void)fprintf(to, "time        %.1f s, %s tokens a second\n", seconds,
                cv_count_text((uint64_t)(cv_view_rate(progress) + 0.5)).text);
}

void cv_table_print(const struct cv_outcome *outcome, FILE *to) {
  /* Only a ranking has classes. */
  if (outcome->kind != CV_POLICY_RANKING) {
    cv_pulls_print(outcome, to);
    return;
  }
  uint32_t undecided = cv_outcome_undecided(outcome);
  int columns = cv_outcome_columns(outcome);
  (void)fprintf(to, "class  item%*s  %-10s             tokens%s%s\n", columns - 4, "",
                outcome->has_duels ? "last duel" : "noisy mean",
                outcome->lies.of_arm == NULL ? "" : "  lies safe       turn",
                outcome->truth == NULL ? "" : "   truth  class");
  for (uint32_t i = 0; i < outcome->arms; i++) {
    print_row(outcome, outcome->order[i], columns, to);
  }
  (void)fprintf(to, "\nended       %s", cv_end_text(outcome->progress.end));
  if (undecided == 0) {
    (void)fprintf(to, ", every item is ranked\n");
  } else {
    (void)fprintf(to, ", %u of %u items undecided\n", undecided, outcome->arms);
  }
  print_sums(outcome, to);
}
