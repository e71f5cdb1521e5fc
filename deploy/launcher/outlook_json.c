/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "common/base/grid.h"
#include "deploy/launcher/json.h"
#include "deploy/launcher/outlook.h"
#include "simulate/paired.h"

static json_t *real(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

static json_t *range_json(struct cv_range range) {
  return json_pack("{s:f, s:f, s:f}", "low", range.low, "median", range.median, "high", range.high);
}

/* Its ends may be infinite; null: there are too few runs for it. */
static json_t *interval_json(struct cv_range range) {
  return isnan(range.low) ? json_null()
                          : json_pack("{s:o, s:o, s:o}", "low", real(range.low), "median", real(range.median), "high",
                                      real(range.high));
}

static json_t *items_json(const struct cv_outlook *outlook) {
  const struct cv_prepared *campaign = outlook->ask.campaign;
  double runs = fmax(1, outlook->forecast.runs);
  json_t *items = json_array();
  for (uint32_t i = 0; i < outlook->forecast.arms; i++) {
    const struct cv_forecast_arm *arm = &outlook->forecast.arm[i];
    json_t *item = json_pack("{s:s, s:f, s:f, s:f, s:f, s:o}", "name", campaign->name[i], "undecided",
                             arm->undecided / runs, "parked", arm->parked / runs, "used_up", arm->used_up / runs,
                             "tokens", arm->tokens, "interval", real(arm->radius));
    item = cv_json_set(item, "class", arm->parked == 0 ? json_null() : json_integer(arm->first));
    item = cv_json_set(item, "last", arm->parked == 0 ? json_null() : json_integer(arm->last));
    item = cv_json_set(item, "distance", outlook->distance == NULL ? json_null() : real(outlook->distance[i]));
    item = cv_json_set(item, "why",
                       arm->undecided + arm->parked == 0 ? json_null() : json_string(cv_outlook_reason(outlook, i)));
    if (campaign->file.spec.cost_micro != NULL && !outlook->ask.is_drawn) {
      double paid = arm->tokens * (double)campaign->file.spec.cost_micro[i] / (double)CV_MICRO;
      item = cv_json_set(item, "paid", json_real(paid));
    }
    items = cv_json_append(items, item);
  }
  return items;
}

static json_t *rows_json(const struct cv_outlook *outlook) {
  json_t *rows = json_array();
  for (uint32_t i = 0; i < outlook->rows; i++) {
    const struct cv_outlook_row *row = &outlook->row[i];
    json_t *one = json_pack("{s:s, s:I, s:I}", "what", row->what, "runs", (json_int_t)row->runs, "token_micro",
                            (json_int_t)row->token_micro);
    if (row->runs > 0) {
      one = cv_json_set(one, "tokens", range_json(row->tokens));
      one = cv_json_set(one, "undecided", range_json(row->undecided));
      one = cv_json_set(one, "parked", range_json(row->parked));
      one = cv_json_set(one, "regret", range_json(row->regret));
      one = cv_json_set(one, "seconds", json_real(row->seconds));
      one = cv_json_set(one, "difference",
                        row->runs < CV_PAIRED_LEAST ? json_null() : json_boolean(cv_outlook_differs(outlook, row)));
      one = cv_json_set(one, "token_ratio", interval_json(row->token_ratio));
      one = cv_json_set(one, "time_ratio", interval_json(row->time_ratio));
      one = cv_json_set(one, "open_change", interval_json(row->open_change));
      one = cv_json_set(one, "regret_change", interval_json(row->regret_change));
    }
    rows = cv_json_append(rows, one);
  }
  return rows;
}

/* null if no number would be right. */
static json_t *micro_json(const struct cv_outlook *outlook, uint64_t micro) {
  return cv_spec_is_exact(&outlook->ask.campaign->file.spec) ? json_null() : json_integer((json_int_t)micro);
}

static json_t *advice_json(const struct cv_outlook *outlook) {
  return json_pack("{s:o, s:o}", "tokens", outlook->limit == 0 ? json_null() : json_integer((json_int_t)outlook->limit),
                   "alpha", outlook->alpha > 0 ? json_real(outlook->alpha) : json_null());
}

static json_t *guess_json(const struct cv_outlook *outlook) {
  const struct cv_guess *guess = outlook->ask.guess;
  return guess == NULL ? json_null() : json_pack("{s:f, s:f}", "mean", guess->mean, "spread", guess->spread);
}

json_t *cv_outlook_json(const struct cv_outlook *outlook) {
  const struct cv_spec *spec = &outlook->ask.campaign->file.spec;
  const struct cv_tempo *tempo = &outlook->ask.tempo;
  json_t *all =
      json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:o, s:b}", "campaign", spec->name, "policy", spec->policy.name,
                "mechanism", spec->mechanism.name, "conclusion", outlook->line, "caution", outlook->caution, "runs",
                (json_int_t)outlook->forecast.runs, "guess", guess_json(outlook), "drawn", outlook->ask.is_drawn);
  all = cv_json_set(all, "tokens", range_json(outlook->tokens));
  all = cv_json_set(all, "tokens_limit", json_integer((json_int_t)spec->tokens));
  all = cv_json_set(all, "rounds", range_json(outlook->rounds));
  all = cv_json_set(all, "seconds", range_json(outlook->seconds));
  all = cv_json_set(all, "people", range_json(outlook->people));
  all = cv_json_set(all, "tokens_per_second", json_real(tempo->rate));
  all =
      cv_json_set(all, "people_per_hour", tempo->people_per_hour > 0 ? json_real(tempo->people_per_hour) : json_null());
  if (outlook->ask.campaign->kind == CV_POLICY_RANKING) {
    all = cv_json_set(all, "undecided", range_json(outlook->undecided));
    all = cv_json_set(all, "parked", range_json(outlook->parked));
    all = cv_json_set(all, "widest", range_json(cv_forecast_range(&outlook->forecast, cv_forecast_widest)));
    all = cv_json_set(all, "advice", advice_json(outlook));
  } else {
    all = cv_json_set(all, "regret", range_json(outlook->regret));
    all = cv_json_set(all, "reward", range_json(outlook->reward));
  }
  if (spec->cost_micro != NULL) {
    all = cv_json_set(all, "paid", range_json(outlook->paid));
  }
  all = cv_json_set(all, "token_micro", micro_json(outlook, outlook->token_micro));
  all = cv_json_set(all, "worker_micro", micro_json(outlook, outlook->worker_micro));
  all = cv_json_set(all, "data", cv_exposure_json(&outlook->exposure));
  all = cv_json_set(all, "items", items_json(outlook));
  return cv_json_set(all, "what_if", rows_json(outlook));
}
