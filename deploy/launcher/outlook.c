/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/outlook.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "deploy/launcher/outlook_change.h"
#include "deploy/launcher/outlook_runs.h"
#include "prepare/bound.h"

enum {
  ADVICE_RUNS = 10,
  TOKENS_MAX_POWER = 12, /* limits.tokens goes up to 10^12 */
  LIMIT_TIMES = 100,     /* how far a larger limit is looked for */
  COUNTED_MAX = 1 << 23, /* tokens whose rows are drawn to count their uses: below a second */
};

/* ---- time ---- */

/* A part of the time for a forecast; its first run may take longer. */
struct share {
  uint64_t (*now_ms)(void);
  uint64_t until_ms, last_ms;
};

static struct share share_of(const struct cv_outlook_ask *ask, uint64_t start_ms, double until, double last) {
  return (struct share){.now_ms = ask->now_ms,
                        .until_ms = start_ms + (uint64_t)((double)ask->budget_ms * until),
                        .last_ms = start_ms + (uint64_t)((double)ask->budget_ms * last)};
}

static bool is_over(void *data, uint32_t runs) {
  const struct share *share = data;
  uint64_t now = share->now_ms();
  return now >= share->last_ms || (runs > 0 && now >= share->until_ms);
}

/* ---- people and time ---- */

double cv_outlook_people_of(const struct cv_tempo *tempo, const struct cv_forecast_run *run) {
  return cv_tempo_people(tempo, (double)run->tokens, (double)run->most);
}

double cv_outlook_seconds_of(const struct cv_tempo *tempo, const struct cv_forecast_run *run) {
  return cv_tempo_seconds(tempo, (double)run->tokens, (double)run->rounds, cv_outlook_people_of(tempo, run));
}

double *cv_outlook_values(const struct cv_tempo *tempo, const struct cv_forecast *forecast, cv_outlook_value *of) {
  uint32_t n = forecast->runs == 0 ? 1 : forecast->runs;
  double *values = calloc(n, sizeof(*values));
  for (uint32_t i = 0; i < n && values != NULL; i++) {
    values[i] = of(tempo, &forecast->run[i]);
  }
  return values;
}

static struct cv_range range_of(const struct cv_tempo *tempo, const struct cv_forecast *forecast,
                                cv_outlook_value *of) {
  uint32_t n = forecast->runs == 0 ? 1 : forecast->runs;
  double *values = cv_outlook_values(tempo, forecast, of);
  if (values == NULL) {
    double first = of(tempo, &forecast->run[0]);
    return (struct cv_range){first, first, first};
  }
  struct cv_range range = cv_range_of(values, n);
  free(values);
  return range;
}

struct cv_range cv_outlook_seconds(const struct cv_tempo *tempo, const struct cv_forecast *forecast) {
  return range_of(tempo, forecast, cv_outlook_seconds_of);
}

/* ---- what would help ---- */

/* Whether nine of `runs` in ten leave no item undecided or parked; *ret_tokens is what the longest one took. */
static enum cv_err try_runs(struct cv_outlook *outlook, const struct cv_prepared *other, uint32_t runs,
                            struct share share, bool *ret, double *ret_tokens, struct cv_why *why) {
  const struct cv_outlook_ask *ask = &outlook->ask;
  const struct cv_forecast_ask what = {.campaign = other,
                                       .is_drawn = ask->is_drawn,
                                       .guess = ask->guess,
                                       .seed = ask->seed,
                                       .runs = runs < ask->runs ? runs : ask->runs,
                                       .is_over = is_over,
                                       .data = &share};
  struct cv_forecast forecast;
  uint32_t left = 0;
  CV_TRY(cv_forecast_make(&what, &outlook->shared, &forecast, why));
  for (uint32_t i = 0; i < forecast.runs; i++) {
    left += cv_forecast_open(&forecast.run[i]) > 0;
  }
  *ret = 10 * left <= forecast.runs && forecast.runs > 0;
  *ret_tokens = cv_forecast_range(&forecast, cv_forecast_tokens).high;
  cv_forecast_fini(&forecast);
  return CV_OK;
}

/* The same for a changed campaign. One run tells most of those that do not help. */
static enum cv_err would_rank(struct cv_outlook *outlook, struct cv_change what, struct share share, bool *ret,
                              double *ret_tokens, struct cv_why *why) {
  struct cv_prepared other;
  *ret = !is_over(&share, 0) && cv_change_make(outlook->ask.campaign, what, &other) == CV_OK;
  for (uint32_t runs = 1; *ret && runs <= ADVICE_RUNS; runs *= ADVICE_RUNS) {
    CV_TRY(try_runs(outlook, &other, runs, share, ret, ret_tokens, why));
  }
  return CV_OK;
}

/* Rounded up to two digits. */
static double round_up(double value) {
  double unit = pow(10, floor(log10(value)) - 1);
  return ceil(value / unit) * unit;
}

/* The alpha above the campaign's at which all items are ranked; a person would type these. */
static enum cv_err find_alpha(struct cv_outlook *outlook, uint64_t start_ms, struct cv_why *why) {
  static const double values[] = {.005, .01, .02, .03, .05, .07, .1, .12, .15, .2, .25, .3, .4, .5};
  double own = cv_change_value(&outlook->ask.campaign->file.spec, CV_CHANGE_ALPHA), tokens;
  for (size_t i = 0; i < CV_COUNT(values) && !(outlook->alpha > 0); i++) {
    bool helps;
    if (values[i] > own * 1.01) {
      CV_TRY(would_rank(outlook, (struct cv_change){CV_CHANGE_ALPHA, values[i]},
                        share_of(&outlook->ask, start_ms, .85, .85), &helps, &tokens, why));
      outlook->alpha = helps ? values[i] : 0;
    }
  }
  return CV_OK;
}

/* A far larger limit tells what all items take; how soon items are parked depends on the limit, so one above that is
 * tried until it suffices. */
static enum cv_err find_limit(struct cv_outlook *outlook, uint64_t start_ms, struct cv_why *why) {
  const struct share share = share_of(&outlook->ask, start_ms, .97, .99);
  double own = (double)outlook->ask.campaign->file.spec.tokens;
  double most = fmin(own * LIMIT_TIMES, pow(10, TOKENS_MAX_POWER)), tokens = own, unused;
  bool helps;
  CV_TRY(would_rank(outlook, (struct cv_change){CV_CHANGE_LIMIT, most}, share, &helps, &tokens, why));
  for (double limit = round_up(fmax(tokens, own) * 1.1); helps && limit <= most && outlook->limit == 0;
       limit = round_up(limit * 2)) {
    bool suffices;
    CV_TRY(would_rank(outlook, (struct cv_change){CV_CHANGE_LIMIT, limit}, share, &suffices, &unused, why));
    outlook->limit = suffices ? (uint64_t)limit : 0;
  }
  return CV_OK;
}

/* If more than one run in twenty leaves items undecided or parked. */
static enum cv_err take_advice(struct cv_outlook *outlook, uint64_t start_ms, struct cv_why *why) {
  if (outlook->ask.campaign->kind != CV_POLICY_RANKING ||
      !(cv_forecast_range(&outlook->forecast, cv_forecast_open).high > 0)) {
    return CV_OK;
  }
  CV_TRY(find_alpha(outlook, start_ms, why));
  return find_limit(outlook, start_ms, why);
}

/* ---- charges, times and items ---- */

/* The uses of rows by the tokens that the items are expected to get. */
static enum cv_err take_exposure(struct cv_outlook *outlook, struct cv_why *why) {
  const struct cv_prepared *campaign = outlook->ask.campaign;
  uint64_t *tokens = calloc(campaign->source.items, sizeof(*tokens));
  double all = 0;
  for (uint32_t i = 0; i < outlook->forecast.arms && tokens != NULL; i++) {
    tokens[i] = (uint64_t)(outlook->forecast.arm[i].tokens + .5);
    all += outlook->forecast.arm[i].tokens;
  }
  const struct cv_exposure_ask ask = {.items = &campaign->file.items,
                                      .source = &campaign->source,
                                      .spec = &campaign->file.spec,
                                      .tokens = tokens,
                                      .token_micro = outlook->token_micro,
                                      .is_exact = cv_spec_is_exact(&campaign->file.spec),
                                      .is_expected = true,
                                      .is_seed_known = all <= COUNTED_MAX};
  enum cv_err err = tokens == NULL ? CV_ERR_NOMEM : cv_exposure_find(&ask, &outlook->exposure);
  free(tokens);
  return err == CV_OK ? CV_OK : cv_fail(why, err, "%s", cv_err_text(err));
}

/* Distances mean something only for means that are known. */
static enum cv_err take_distances(struct cv_outlook *outlook, struct cv_why *why) {
  const struct cv_prepared *campaign = outlook->ask.campaign;
  const struct cv_param *alpha = cv_params_find(&campaign->file.spec.policy.params, "alpha");
  if (campaign->kind != CV_POLICY_RANKING || alpha == NULL || outlook->ask.is_drawn || campaign->truth == NULL) {
    return CV_OK;
  }
  outlook->distance = calloc(outlook->forecast.arms, sizeof(*outlook->distance));
  enum cv_err err = outlook->distance == NULL
                        ? CV_ERR_NOMEM
                        : cv_bound_distances(campaign->truth, outlook->forecast.arms, alpha->number, outlook->distance);
  return err == CV_OK ? CV_OK : cv_fail(why, err, "%s", cv_err_text(err));
}

static void take_ranges(struct cv_outlook *outlook) {
  const struct cv_forecast *forecast = &outlook->forecast;
  const struct cv_tempo *tempo = &outlook->ask.tempo;
  outlook->tokens = cv_forecast_range(forecast, cv_forecast_tokens);
  outlook->rounds = cv_forecast_range(forecast, cv_forecast_rounds);
  outlook->undecided = cv_forecast_range(forecast, cv_forecast_undecided);
  outlook->parked = cv_forecast_range(forecast, cv_forecast_parked);
  outlook->regret = cv_forecast_range(forecast, cv_forecast_regret);
  outlook->reward = cv_forecast_range(forecast, cv_forecast_reward);
  outlook->paid = cv_forecast_range(forecast, cv_forecast_paid);
  outlook->seconds = cv_outlook_seconds(tempo, forecast);
  outlook->people = range_of(tempo, forecast, cv_outlook_people_of);
  outlook->token_micro = cv_exposure_token_micro(&outlook->ask.campaign->file);
  outlook->worker_micro = cv_spec_worker_micro(&outlook->ask.campaign->file.spec, outlook->token_micro);
}

enum cv_err cv_outlook_make(const struct cv_outlook_ask *ask, struct cv_outlook *ret, struct cv_why *why) {
  uint64_t start_ms = ask->now_ms();
  struct cv_outlook outlook = {.ask = *ask};
  double ms = (double)ask->budget_ms;
  const struct cv_outlook_times times = {.start_ms = start_ms,
                                         .until_ms = start_ms + (uint64_t)(.7 * ms),
                                         .alone_ms = start_ms + (uint64_t)(.8 * ms),
                                         .first_ms = start_ms + (uint64_t)(.9 * ms)};
  CV_TRY(cv_forecast_shared_init(ask->campaign, &outlook.shared, why));
  enum cv_err err = cv_outlook_run(&outlook, &times, why);
  if (err == CV_OK) {
    take_ranges(&outlook);
    err = take_exposure(&outlook, why);
  }
  if (err == CV_OK) {
    err = take_distances(&outlook, why);
  }
  if (err == CV_OK) {
    err = take_advice(&outlook, start_ms, why);
  }
  if (err != CV_OK) {
    cv_outlook_fini(&outlook);
    return err;
  }
  cv_outlook_conclude(&outlook);
  *ret = outlook;
  return CV_OK;
}

void cv_outlook_fini(struct cv_outlook *outlook) {
  cv_forecast_fini(&outlook->forecast);
  cv_forecast_shared_fini(&outlook->shared);
  free(outlook->distance);
  outlook->distance = NULL;
}

/* ---- items ---- */

const char *cv_outlook_reason(const struct cv_outlook *outlook, uint32_t arm) {
  const struct cv_forecast_arm *of = &outlook->forecast.arm[arm];
  if (2 * of->used_up > outlook->forecast.runs) {
    return "its data are used up";
  }
  if (outlook->distance == NULL) {
    return "depends on the means";
  }
  return isnan(of->radius) || outlook->distance[arm] <= of->radius ? "too close to a boundary"
                                                                   : "waits for an item of a class before";
}

static int by_runs(const void *a, const void *b, void *data) {
  const struct cv_forecast_arm *arm = data;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  uint32_t p = arm[x].undecided + arm[x].parked, q = arm[y].undecided + arm[y].parked;
  if (p != q) {
    return p > q ? -1 : 1;
  }
  return x < y ? -1 : 1;
}

uint32_t *cv_outlook_undecided(const struct cv_outlook *outlook, uint32_t *ret_count) {
  uint32_t *arms = calloc(outlook->forecast.arms, sizeof(*arms)), count = 0;
  for (uint32_t i = 0; i < outlook->forecast.arms && arms != NULL; i++) {
    if (outlook->forecast.arm[i].undecided + outlook->forecast.arm[i].parked > 0) {
      arms[count++] = i;
    }
  }
  if (arms != NULL) {
    qsort_r(arms, count, sizeof(*arms), by_runs, outlook->forecast.arm);
    *ret_count = count;
  }
  return arms;
}
