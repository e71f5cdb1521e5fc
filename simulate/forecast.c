/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/campaign/worth.h"
#include "simulate/instance.h"

enum { OUTSIDE = 20 };

struct making {
  const struct cv_forecast_ask *ask;
  struct cv_forecast_shared *shared;
  struct cv_forecast *forecast;
};

static bool is_over(void *data) {
  const struct making *making = data;
  const struct cv_forecast_ask *ask = making->ask;
  return ask->is_over != NULL && ask->is_over(ask->data, making->forecast->runs);
}

/* Each run has a seed of its own, which no other forecast of the same seed depends on. */
static uint64_t seed_of(const struct cv_forecast_ask *ask, uint32_t run) {
  return cv_mix64(cv_rng_root(ask->seed) + run) >> 1; /* never CV_SEED_NONE */
}

/* ---- one run ---- */

static double best_reward(const struct cv_prepared *campaign, const struct cv_trial *trial) {
  const struct cv_spec *spec = &campaign->file.spec;
  const struct cv_worth worth = {.arms = spec->arms,
                                 .mean = campaign->truth,
                                 .cost_micro = spec->cost_micro,
                                 .budget_micro = spec->budget_micro,
                                 .tokens = spec->tokens};
  if (trial->game != NULL) {
    return cv_game_best(trial->game, trial->total.pulls);
  }
  return spec->cost_micro != NULL ? cv_worth_reward(&worth)
                                  : (double)trial->total.pulls * worth.mean[cv_worth_best(&worth)];
}

static bool is_undecided(const struct cv_standing *standing) {
  return !cv_standing_is_decided(standing) && !cv_standing_is_parked(standing);
}

/* The number of classes that a parked item may be in. */
static uint32_t width_of(const struct cv_standing *standing) {
  return standing->rank_last - standing->rank_class + 1;
}

static uint64_t most_of(const uint64_t *value, uint32_t count) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < count; i++) {
    most = value[i] > most ? value[i] : most;
  }
  return most;
}

static struct cv_forecast_run take_run(const struct cv_prepared *campaign, const struct cv_trial *trial) {
  struct cv_forecast_run run = {.tokens = trial->total.pulls,
                                .most = most_of(trial->pulls, campaign->file.spec.arms),
                                .rounds = trial->total.rounds,
                                .paid_micro = trial->total.paid_micro,
                                .reward = trial->total.reward,
                                .end = trial->end,
                                .used_up = trial->used_up,
                                .wanted = trial->wanted};
  if (campaign->kind != CV_POLICY_RANKING) {
    run.regret = best_reward(campaign, trial) - trial->total.reward;
    return run;
  }
  for (uint32_t i = 0; i < campaign->file.spec.arms; i++) {
    const struct cv_standing *standing = &trial->standing[i];
    run.undecided += is_undecided(standing);
    run.parked += cv_standing_is_parked(standing);
    run.widest = cv_standing_is_parked(standing) && width_of(standing) > run.widest ? width_of(standing) : run.widest;
  }
  return run;
}

/* Of a further run: counts, and means of `runs` runs. */
static void add_arms(struct cv_forecast *forecast, const struct cv_trial *trial, bool is_ranking, uint32_t runs) {
  for (uint32_t i = 0; i < forecast->arms; i++) {
    struct cv_forecast_arm *arm = &forecast->arm[i];
    const struct cv_standing *standing = &trial->standing[i];
    double radius = standing->tokens == 0 ? (double)NAN : standing->radius;
    arm->undecided += is_ranking && is_undecided(standing);
    if (is_ranking && cv_standing_is_parked(standing)) {
      arm->first = arm->parked == 0 || standing->rank_class < arm->first ? standing->rank_class : arm->first;
      arm->last = standing->rank_last > arm->last ? standing->rank_last : arm->last;
      arm->parked++;
    }
    arm->used_up += trial->used_up == i || standing->held == CV_HELD_USED_UP;
    arm->tokens += ((double)trial->pulls[i] - arm->tokens) / runs;
    arm->radius += (radius - arm->radius) / runs;
  }
}

static enum cv_err run_trial(struct making *making, const struct cv_prepared *campaign, uint64_t seed,
                             struct cv_why *why) {
  struct cv_forecast *forecast = making->forecast;
  bool is_own = campaign != making->ask->campaign; /* then its items are not those of the strata */
  struct cv_trial trial = {.campaign = campaign,
                           .seed = seed,
                           .strata = is_own ? NULL : &making->shared->strata,
                           .as_deployed = true,
                           .is_over = is_over,
                           .data = making};
  const struct cv_adversary *adversary = cv_quality_adversary(campaign->source.quality);
  enum cv_err err = CV_OK;
  if (adversary != NULL) {
    err = cv_game_set(&making->shared->game, adversary, campaign->file.spec.tokens, why);
    trial.game = &making->shared->game;
  }
  if (err == CV_OK) {
    err = cv_trial_run(&trial, why);
  }
  /* Of a run that was stopped only the first one counts, if there is nothing else. */
  if (err == CV_OK && (trial.end != CV_TRIAL_STOPPED || forecast->runs == 0)) {
    forecast->run[forecast->runs] = take_run(campaign, &trial);
    add_arms(forecast, &trial, campaign->kind == CV_POLICY_RANKING, forecast->runs + 1);
    forecast->runs += trial.end != CV_TRIAL_STOPPED;
  }
  cv_trial_fini(&trial);
  return err;
}

enum cv_err cv_forecast_run(const struct cv_forecast_ask *ask, struct cv_forecast_shared *shared,
                            struct cv_forecast *forecast, struct cv_why *why) {
  struct making making = {.ask = ask, .shared = shared, .forecast = forecast};
  uint64_t seed = seed_of(ask, forecast->runs);
  CV_REQUIRE(forecast->runs < ask->runs);
  /* A campaign's arms are the trial's items only if none is gold. */
  bool is_own = ask->is_drawn || ask->campaign->file.gold.gold.items > 0;
  if (!is_own) {
    cv_quality_reorder(ask->campaign->source.quality, seed);
    return run_trial(&making, ask->campaign, seed, why);
  }
  struct cv_prepared own;
  CV_TRY(cv_instance_draw(ask->campaign, ask->is_drawn ? seed : ask->campaign->seed, ask->guess, &own, why));
  enum cv_err err = run_trial(&making, &own, seed, why);
  cv_prepared_fini(&own);
  return err;
}

/* ---- all runs ---- */

enum cv_err cv_forecast_shared_init(const struct cv_prepared *campaign, struct cv_forecast_shared *ret,
                                    struct cv_why *why) {
  *ret = (struct cv_forecast_shared){0};
  return cv_strata_init(campaign->source.quality, &ret->strata, why);
}

void cv_forecast_shared_fini(struct cv_forecast_shared *shared) {
  cv_game_fini(&shared->game);
  cv_strata_fini(&shared->strata);
}

enum cv_err cv_forecast_init(const struct cv_forecast_ask *ask, struct cv_forecast *ret, struct cv_why *why) {
  struct cv_forecast forecast = {.arms = ask->campaign->file.spec.arms};
  CV_REQUIRE(ask->runs > 0);
  forecast.run = calloc(ask->runs, sizeof(*forecast.run));
  forecast.arm = calloc(forecast.arms, sizeof(*forecast.arm));
  if (forecast.run == NULL || forecast.arm == NULL) {
    cv_forecast_fini(&forecast);
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  *ret = forecast;
  return CV_OK;
}

enum cv_err cv_forecast_make(const struct cv_forecast_ask *ask, struct cv_forecast_shared *shared,
                             struct cv_forecast *ret, struct cv_why *why) {
  struct cv_forecast forecast;
  CV_TRY(cv_forecast_init(ask, &forecast, why));
  enum cv_err err = CV_OK;
  for (uint32_t i = 0; i < ask->runs && err == CV_OK; i++) {
    if (i > 0 && ask->is_over != NULL && ask->is_over(ask->data, i)) {
      break;
    }
    err = cv_forecast_run(ask, shared, &forecast, why);
    if (forecast.runs != i + 1) {
      break; /* it was stopped */
    }
  }
  if (err != CV_OK) {
    cv_forecast_fini(&forecast);
    return err;
  }
  *ret = forecast;
  return CV_OK;
}

void cv_forecast_fini(struct cv_forecast *forecast) {
  free(forecast->run);
  free(forecast->arm);
  *forecast = (struct cv_forecast){0};
}

/* ---- values ---- */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

struct cv_range cv_range_of(double *value, uint32_t n) {
  uint32_t out = (n - 1) / OUTSIDE; /* values outside the range at each end */
  qsort(value, n, sizeof(*value), compare);
  return (struct cv_range){value[out], (value[(n - 1) / 2] + value[n / 2]) / 2, value[n - 1 - out]};
}

struct cv_range cv_forecast_range(const struct cv_forecast *forecast, cv_forecast_value *value) {
  uint32_t n = forecast->runs == 0 ? 1 : forecast->runs;
  double *values = calloc(n, sizeof(*values));
  if (values == NULL) {
    double first = value(&forecast->run[0]);
    return (struct cv_range){first, first, first};
  }
  for (uint32_t i = 0; i < n; i++) {
    values[i] = value(&forecast->run[i]);
  }
  struct cv_range range = cv_range_of(values, n);
  free(values);
  return range;
}

double cv_forecast_tokens(const struct cv_forecast_run *run) {
  return (double)run->tokens;
}

double cv_forecast_rounds(const struct cv_forecast_run *run) {
  return (double)run->rounds;
}

double cv_forecast_undecided(const struct cv_forecast_run *run) {
  return run->undecided;
}

double cv_forecast_parked(const struct cv_forecast_run *run) {
  return run->parked;
}

double cv_forecast_widest(const struct cv_forecast_run *run) {
  return run->widest;
}

double cv_forecast_open(const struct cv_forecast_run *run) {
  return run->undecided + run->parked;
}

double cv_forecast_regret(const struct cv_forecast_run *run) {
  return run->regret;
}

double cv_forecast_reward(const struct cv_forecast_run *run) {
  return run->reward;
}

double cv_forecast_paid(const struct cv_forecast_run *run) {
  return (double)run->paid_micro / (double)CV_MICRO;
}

uint32_t cv_forecast_used_up(const struct cv_forecast *forecast) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < forecast->runs; i++) {
    count += forecast->run[i].used_up != CV_TURNS_NO_ARM;
  }
  return count;
}

uint32_t cv_forecast_ended(const struct cv_forecast *forecast, enum cv_trial_end end) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < forecast->runs; i++) {
    count += forecast->run[i].end == end;
  }
  return count;
}
