/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/grid.h"
#include "common/base/text.h"
#include "common/base/width.h"
#include "deploy/launcher/outlook.h"
#include "deploy/launcher/progress.h"
#include "simulate/paired.h"

enum { ITEMS_SHOWN = 20, NAME_COLUMNS = 24, WHAT_COLUMNS = 24 };

static double epsilon(uint64_t micro) {
  return (double)micro / (double)CV_MICRO;
}

static struct cv_count_text whole(double value) {
  return cv_count_text((uint64_t)(value + .5));
}

/* ---- the figures ---- */

static void print_figure(const char *label, const char *median, const char *low, const char *high, FILE *to) {
  (void)fprintf(to, "%-12s%14s   %s to %s", label, median, low, high);
}

static void print_count(const char *label, struct cv_range range, FILE *to) {
  print_figure(label, whole(range.median).text, whole(range.low).text, whole(range.high).text, to);
}

static void print_real(const char *label, struct cv_range range, FILE *to) {
  char text[3][32];
  const double value[] = {range.median, range.low, range.high};
  for (size_t i = 0; i < CV_COUNT(text); i++) {
    (void)snprintf(text[i], sizeof(text[i]), "%.5g", value[i]);
  }
  print_figure(label, text[0], text[1], text[2], to);
}

static void print_time(const struct cv_outlook *outlook, FILE *to) {
  const struct cv_tempo *tempo = &outlook->ask.tempo;
  bool is_measured = tempo->rate == cv_tempo_rate(outlook->ask.campaign->file.spec.brokers);
  print_figure("time", cv_tempo_text(outlook->seconds.median).text, cv_tempo_text(outlook->seconds.low).text,
               cv_tempo_text(outlook->seconds.high).text, to);
  if (tempo->people_per_hour > 0) {
    (void)fprintf(to, ", with %.6g people an hour\n", tempo->people_per_hour);
  } else {
    (void)fprintf(to, ", at %s tokens a second and %g ms a round (%s)\n", whole(tempo->rate).text,
                  (double)CV_TEMPO_ROUND_MS,
                  is_measured ? "measured on two cores, docs/operations.md; --rate" : "--rate");
  }
}

static void print_figures(const struct cv_outlook *outlook, FILE *to) {
  const struct cv_spec *spec = &outlook->ask.campaign->file.spec;
  enum cv_policy_kind kind = outlook->ask.campaign->kind;
  const struct cv_tempo *tempo = &outlook->ask.tempo;
  uint32_t runs = outlook->forecast.runs;
  (void)fprintf(to, "%26s   range: 9 of 10 of %u simulated campaigns\n", "median", runs);
  print_count(kind == CV_POLICY_RECRUITMENT ? "hires" : "tokens", outlook->tokens, to);
  (void)fprintf(to, ", of at most %s\n", cv_count_text(spec->tokens).text);
  print_count("rounds", outlook->rounds, to);
  (void)fputc('\n', to);
  print_time(outlook, to);
  if (kind == CV_POLICY_RECRUITMENT) {
    print_real("paid", outlook->paid, to);
    (void)fprintf(to, ", of at most %.10g\n", epsilon(spec->budget_micro));
    print_real("reward", outlook->reward, to);
    (void)fputc('\n', to);
  } else {
    print_count("people", outlook->people, to);
    (void)fprintf(to, ", if each gives %s %s (tokens_per_worker)%s%s\n", cv_count_text(spec->tokens_per_worker).text,
                  spec->tokens_per_worker == 1 ? "score" : "scores",
                  outlook->ask.campaign->file.gold.gold.items > 0 ? ", those of gold items among them" : "",
                  tempo->each_item > 0 ? spec->pairs ? ", of each pair one" : ", of each item one" : "");
  }
  if (kind == CV_POLICY_RANKING) {
    print_count("undecided", outlook->undecided, to);
    (void)fprintf(to, ", of %u items\n", outlook->forecast.arms);
  }
  if (kind == CV_POLICY_RANKING && outlook->parked.high > 0) {
    print_count("boundary", outlook->parked, to);
    (void)fprintf(to, ", ranked as of %s\n", cv_outlook_classes(outlook).text);
  }
  if (kind != CV_POLICY_RANKING) {
    print_real("regret", outlook->regret, to);
    (void)fputc('\n', to);
  }
}

/* ---- charges ---- */

static void print_charges(const struct cv_outlook *outlook, FILE *to) {
  const struct cv_spec *spec = &outlook->ask.campaign->file.spec;
  if (cv_spec_is_exact(spec)) {
    (void)fprintf(to, "epsilon     no limit: the third-party sees exact sums\n");
  } else {
    (void)fprintf(to, "epsilon     up to %g for a score; up to %g for a %s that gives %s\n",
                  epsilon(outlook->token_micro), epsilon(outlook->worker_micro),
                  spec->worker == NULL ? "person" : "worker", cv_count_text(spec->tokens_per_worker).text);
  }
  cv_exposure_print(&outlook->exposure, "rows        ", to);
}

/* ---- items ---- */

static void print_name(const char *name, FILE *to) {
  size_t columns = cv_width_of(name);
  (void)fprintf(to, "%s%*s", cv_text_shown(name).text, columns < NAME_COLUMNS ? (int)(NAME_COLUMNS - columns) : 0, "");
}

static void print_item(const struct cv_outlook *outlook, uint32_t arm, FILE *to) {
  const struct cv_forecast_arm *of = &outlook->forecast.arm[arm];
  char distance[16] = "-", radius[16] = "-";
  const struct cv_standing classes = {.rank_class = of->first, .rank_last = of->last, .held = CV_HELD_BOUNDARY};
  if (outlook->distance != NULL && isfinite(outlook->distance[arm])) {
    (void)snprintf(distance, sizeof(distance), "%.4f", outlook->distance[arm]);
  }
  if (!isnan(of->radius)) {
    (void)snprintf(radius, sizeof(radius), "%.4f", of->radius);
  }
  print_name(outlook->ask.campaign->name[arm], to);
  double runs = fmax(1, outlook->forecast.runs);
  (void)fprintf(to, "  %7.0f %%  %6.0f %%  %-10s  %8s  %8s  %s\n", 100 * of->undecided / runs, 100 * of->parked / runs,
                of->parked == 0 ? "-" : cv_class_text(&classes).text, distance, radius,
                cv_outlook_reason(outlook, arm));
}

static void print_undecided(const struct cv_outlook *outlook, FILE *to) {
  uint32_t count = 0, *arms = cv_outlook_undecided(outlook, &count);
  if (arms != NULL && count > 0) {
    (void)fprintf(to, "\n%-*s  undecided  boundary  classes     distance  interval  why\n", NAME_COLUMNS, "item");
  }
  for (uint32_t i = 0; i < count && i < ITEMS_SHOWN; i++) {
    print_item(outlook, arms[i], to);
  }
  if (count > ITEMS_SHOWN) {
    (void)fprintf(to, "and %u more (--json lists all)\n", count - ITEMS_SHOWN);
  }
  free(arms);
}

/* Most hires first; equal ones keep their order. */
static int by_tokens(const void *a, const void *b, void *data) {
  const struct cv_forecast_arm *arm = data;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  if (arm[x].tokens > arm[y].tokens || arm[x].tokens < arm[y].tokens) {
    return arm[x].tokens > arm[y].tokens ? -1 : 1;
  }
  return x < y ? -1 : 1;
}

static void print_hires(const struct cv_outlook *outlook, FILE *to) {
  const struct cv_prepared *campaign = outlook->ask.campaign;
  uint32_t arms = outlook->forecast.arms, *order = calloc(arms, sizeof(*order));
  for (uint32_t i = 0; i < arms && order != NULL; i++) {
    order[i] = i;
  }
  if (order != NULL) {
    qsort_r(order, arms, sizeof(*order), by_tokens, outlook->forecast.arm);
    (void)fprintf(to, "\n%-*s      hires        paid     epsilon   (means over the runs)\n", NAME_COLUMNS, "worker");
  }
  for (uint32_t i = 0; i < arms && i < ITEMS_SHOWN && order != NULL; i++) {
    double hires = outlook->forecast.arm[order[i]].tokens;
    print_name(campaign->name[order[i]], to);
    (void)fprintf(to, "  %9.1f  %10.6g  %10.6g\n", hires, hires * epsilon(campaign->file.spec.cost_micro[order[i]]),
                  hires * epsilon(outlook->token_micro));
  }
  if (arms > ITEMS_SHOWN) {
    (void)fprintf(to, "and %u more (--json lists all)\n", arms - ITEMS_SHOWN);
  }
  free(order);
}

/* ---- other settings ---- */

static void print_row(const struct cv_outlook *outlook, const struct cv_outlook_row *row, const char *compared,
                      FILE *to) {
  (void)fprintf(to, "%-*s", WHAT_COLUMNS, row->what);
  if (row->runs == 0) {
    (void)fprintf(to, "  not simulated: no time for as many runs (--seconds)\n");
    return;
  }
  (void)fprintf(to, "  %14s", whole(row->tokens.median).text);
  if (outlook->ask.campaign->kind == CV_POLICY_RANKING) {
    (void)fprintf(to, "  %9.0f  %8.0f", row->undecided.median, row->parked.median);
  } else {
    (void)fprintf(to, "  %9.4g", row->regret.median);
  }
  (void)fprintf(to, "  %10s  %10.6g%s%s\n", cv_tempo_text(row->seconds).text, epsilon(row->token_micro),
                compared[0] == '\0' ? "" : "  ", compared);
}

static void print_rows(const struct cv_outlook *outlook, FILE *to) {
  const struct cv_outlook_row own = {.what = "as it is",
                                     .runs = outlook->forecast.runs,
                                     .tokens = outlook->tokens,
                                     .undecided = outlook->undecided,
                                     .parked = outlook->parked,
                                     .regret = outlook->regret,
                                     .seconds = outlook->seconds.median,
                                     .token_micro = outlook->token_micro};
  if (outlook->rows == 0) {
    return;
  }
  (void)fprintf(to, "\n%-*s  %14s  %9s  %10s  %10s  beside as it is\n", WHAT_COLUMNS, "what if",
                outlook->ask.campaign->kind == CV_POLICY_RECRUITMENT ? "hires" : "tokens",
                outlook->ask.campaign->kind == CV_POLICY_RANKING ? "undecided  boundary" : "regret", "time", "epsilon");
  print_row(outlook, &own, "", to);
  for (uint32_t i = 0; i < outlook->rows; i++) {
    print_row(outlook, &outlook->row[i], cv_outlook_compare(outlook, &outlook->row[i]).text, to);
  }
  (void)fprintf(to,
                "(medians of %u runs each, with the same qualities and order of rows run by run; intervals at %g %%)\n",
                own.runs, 100 * CV_PAIRED_LEVEL);
}

void cv_outlook_print(const struct cv_outlook *outlook, FILE *to) {
  (void)fprintf(to, "%s.\n", outlook->line);
  if (outlook->caution[0] != '\0') {
    (void)fprintf(to, "%s.\n", outlook->caution);
  }
  if (outlook->ask.guess != NULL) {
    (void)fprintf(to,
                  "A guess: nobody knows the qualities, so means are drawn from N(%g, %g²) in each run (--guess).\n",
                  outlook->ask.guess->mean, outlook->ask.guess->spread);
  } else if (outlook->ask.is_drawn) {
    (void)fprintf(to, "The file draws qualities by chance and fixes no seed, so each run has others.\n");
  }
  (void)fputc('\n', to);
  print_figures(outlook, to);
  print_charges(outlook, to);
  if (outlook->ask.campaign->kind == CV_POLICY_RANKING) {
    print_undecided(outlook, to);
  } else if (outlook->ask.campaign->kind == CV_POLICY_RECRUITMENT && !outlook->ask.is_drawn) {
    print_hires(outlook, to);
  }
  print_rows(outlook, to);
}
