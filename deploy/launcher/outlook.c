/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/outlook.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "prepare/bound.h"

enum {
  ROW_RUNS = 20,
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

static enum cv_err simulate(const struct cv_outlook_ask *ask, const struct cv_prepared *campaign, uint32_t runs,
                            struct share share, struct cv_forecast *ret, struct cv_why *why) {
  const struct cv_forecast_ask forecast = {.campaign = campaign,
                                           .is_drawn = ask->is_drawn,
                                           .guess = ask->guess,
                                           .seed = ask->seed,
                                           .runs = runs < ask->runs ? runs : ask->runs,
                                           .is_over = is_over,
                                           .data = &share};
  return cv_forecast_make(&forecast, ret, why);
}

/* ---- a setting changed ---- */

enum setting { ALPHA, EPSILON, ROUND, LIMIT };

struct change {
  enum setting setting;
  double value;
};

static const char *const keys[] = {[ALPHA] = "alpha", [EPSILON] = "epsilon", [ROUND] = "tokens_per_round"};

/* The parameters that hold the setting; NULL: a field of the spec does. */
static struct cv_params *params_of(struct cv_spec *spec, enum setting setting) {
  if (setting == LIMIT || (setting == EPSILON && cv_spec_has_noise(spec))) {
    return NULL;
  }
  return setting == EPSILON ? &spec->privatizer.params : &spec->policy.params;
}

/* The value that the campaign has; 0: the setting does not apply to it. */
static double value_of(const struct cv_spec *spec, enum setting setting) {
  struct cv_spec copy = *spec; /* its arrays are borrowed */
  const struct cv_params *params = params_of(&copy, setting);
  if (params == NULL) {
    return setting == LIMIT ? (double)spec->tokens : (double)spec->epsilon_micro / (double)CV_MICRO;
  }
  const struct cv_param *param = cv_params_find(params, keys[setting]);
  return param == NULL || param->is_text ? 0 : param->number;
}

/* A copy that borrows all but its settings. CV_ERR_INVALID if a campaign cannot have this value. */
static enum cv_err change(const struct cv_prepared *of, struct change change, struct cv_prepared *ret) {
  struct cv_prepared other = *of;
  struct cv_spec *spec = &other.file.spec;
  struct cv_params *params = params_of(spec, change.setting);
  const struct cv_param *bad;
  if (params != NULL) {
    CV_TRY(cv_params_set_number(params, keys[change.setting], change.value));
  } else if (change.setting == LIMIT) {
    spec->tokens = (uint64_t)change.value;
  } else {
    spec->epsilon_micro = (uint64_t)(change.value * (double)CV_MICRO + .5);
  }
  CV_TRY(cv_policy_check(&spec->policy, &bad, NULL));
  CV_TRY(cv_spec_check(spec, NULL));
  CV_TRY(cv_policy_fits_told(spec, NULL));
  *ret = other;
  return CV_OK;
}

/* ---- the table of other settings ---- */

static void say_change(struct change change, char *to, size_t size) {
  (void)snprintf(to, size, "%s %.6g", keys[change.setting], change.value);
}

/* A row without runs says that there was no time, or that a campaign cannot be so. */
static enum cv_err take_row(struct cv_outlook *outlook, struct change what, struct share share, struct cv_why *why) {
  struct cv_prepared other;
  struct cv_forecast forecast;
  struct cv_outlook_row *row = &outlook->row[outlook->rows];
  if (change(outlook->ask.campaign, what, &other) != CV_OK) {
    return CV_OK;
  }
  *row = (struct cv_outlook_row){.token_micro = cv_exposure_token_micro(&other.file)};
  say_change(what, row->what, sizeof(row->what));
  outlook->rows++;
  if (is_over(&share, 0)) {
    return CV_OK;
  }
  CV_TRY(simulate(&outlook->ask, &other, ROW_RUNS, share, &forecast, why));
  row->runs = forecast.runs;
  row->tokens = cv_forecast_range(&forecast, cv_forecast_tokens);
  row->undecided = cv_forecast_range(&forecast, cv_forecast_undecided);
  row->parked = cv_forecast_range(&forecast, cv_forecast_parked);
  row->regret = cv_forecast_range(&forecast, cv_forecast_regret);
  row->seconds = cv_tempo_seconds(&outlook->ask.tempo, row->tokens.median,
                                  cv_forecast_range(&forecast, cv_forecast_rounds).median);
  cv_forecast_fini(&forecast);
  return CV_OK;
}

static enum cv_err take_rows(struct cv_outlook *outlook, uint64_t start_ms, struct cv_why *why) {
  static const enum setting settings[] = {ALPHA, EPSILON, ROUND};
  for (size_t i = 0; i < 2 * CV_COUNT(settings); i++) {
    double value = value_of(&outlook->ask.campaign->file.spec, settings[i / 2]);
    double other = i % 2 == 0 ? value * 2 : value / 2;
    double until = .4 + .3 * (double)(i + 1) / (2 * CV_COUNT(settings));
    if (settings[i / 2] == ROUND) {
      other = ceil(other);
    }
    if (value > 0 && (other < value || other > value)) {
      struct share share = share_of(&outlook->ask, start_ms, until, until);
      CV_TRY(take_row(outlook, (struct change){settings[i / 2], other}, share, why));
    }
  }
  return CV_OK;
}

/* ---- what would help ---- */

/* Whether nine of `runs` in ten leave no item undecided or parked; *ret_tokens is what the longest one took. */
static enum cv_err try_runs(const struct cv_outlook *outlook, const struct cv_prepared *other, uint32_t runs,
                            struct share share, bool *ret, double *ret_tokens, struct cv_why *why) {
  struct cv_forecast forecast;
  uint32_t left = 0;
  CV_TRY(simulate(&outlook->ask, other, runs, share, &forecast, why));
  for (uint32_t i = 0; i < forecast.runs; i++) {
    left += cv_forecast_open(&forecast.run[i]) > 0;
  }
  *ret = 10 * left <= forecast.runs && forecast.runs > 0;
  *ret_tokens = cv_forecast_range(&forecast, cv_forecast_tokens).high;
  cv_forecast_fini(&forecast);
  return CV_OK;
}

/* The same for a changed campaign. One run tells most of those that do not help. */
static enum cv_err would_rank(const struct cv_outlook *outlook, struct change what, struct share share, bool *ret,
                              double *ret_tokens, struct cv_why *why) {
  struct cv_prepared other;
  *ret = !is_over(&share, 0) && change(outlook->ask.campaign, what, &other) == CV_OK;
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
  double own = value_of(&outlook->ask.campaign->file.spec, ALPHA), tokens;
  for (size_t i = 0; i < CV_COUNT(values) && !(outlook->alpha > 0); i++) {
    bool helps;
    if (values[i] > own * 1.01) {
      CV_TRY(would_rank(outlook, (struct change){ALPHA, values[i]}, share_of(&outlook->ask, start_ms, .85, .85), &helps,
                        &tokens, why));
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
  CV_TRY(would_rank(outlook, (struct change){LIMIT, most}, share, &helps, &tokens, why));
  for (double limit = round_up(fmax(tokens, own) * 1.1); helps && limit <= most && outlook->limit == 0;
       limit = round_up(limit * 2)) {
    bool suffices;
    CV_TRY(would_rank(outlook, (struct change){LIMIT, limit}, share, &suffices, &unused, why));
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
  struct cv_range t = outlook->tokens, r = outlook->rounds;
  outlook->seconds =
      (struct cv_range){cv_tempo_seconds(tempo, t.low, r.low), cv_tempo_seconds(tempo, t.median, r.median),
                        cv_tempo_seconds(tempo, t.high, r.high)};
  outlook->people = (struct cv_range){cv_tempo_people(tempo, t.low), cv_tempo_people(tempo, t.median),
                                      cv_tempo_people(tempo, t.high)};
  outlook->token_micro = cv_exposure_token_micro(&outlook->ask.campaign->file);
  outlook->worker_micro = cv_spec_worker_micro(&outlook->ask.campaign->file.spec, outlook->token_micro);
}

enum cv_err cv_outlook_make(const struct cv_outlook_ask *ask, struct cv_outlook *ret, struct cv_why *why) {
  uint64_t start_ms = ask->now_ms();
  struct cv_outlook outlook = {.ask = *ask};
  CV_TRY(simulate(ask, ask->campaign, ask->runs, share_of(ask, start_ms, .4, .9), &outlook.forecast, why));
  take_ranges(&outlook);
  enum cv_err err = take_exposure(&outlook, why);
  if (err == CV_OK) {
    err = take_distances(&outlook, why);
  }
  if (err == CV_OK) {
    err = take_rows(&outlook, start_ms, why);
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
