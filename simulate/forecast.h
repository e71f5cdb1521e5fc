/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a campaign will take, from simulations of it (trial.h) before it runs.
 *
 * Every run has its own scores and noise. Qualities are those of the file; drawn ones without a fixed seed, and guessed
 * ones, are drawn anew in each run. Rows that are used once come in another order in each run.
 *
 * A range is that of nine runs in ten: 5 % of the runs are below it and 5 % above, none of 20 runs or fewer. One more
 * run of the same law is in the range of n runs with probability .9, or (n - 1)/(n + 1) if n <= 20.
 *
 * Run i of two forecasts of one seed, of a campaign and of the same one with other settings, has the same qualities,
 * order of rows and random streams: such runs are compared in pairs (paired.h).
 */
#ifndef CV_SIMULATE_FORECAST_H
#define CV_SIMULATE_FORECAST_H

#include "prepare/prepare.h"
#include "simulate/guess.h"
#include "simulate/trial.h"

struct cv_forecast_ask {
  const struct cv_prepared *campaign; /* borrowed */
  bool is_drawn;                      /* qualities are drawn anew in each run; not for scores from a file */
  const struct cv_guess *guess;       /* with is_drawn: draws all means; NULL: as the file says */
  uint64_t seed;
  uint32_t runs; /* at most; above 0 */
  /* Optional: asked between plans, with the number of finished runs; true ends the forecast. */
  bool (*is_over)(void *data, uint32_t runs);
  void *data;
};

struct cv_forecast_run {
  uint64_t tokens, rounds, paid_micro;
  uint64_t most;              /* tokens of the item that has the most of them */
  double regret;              /* of a bandit or a recruitment, to the best attainable reward; else 0 */
  double reward;              /* by the true means, or an adversary's gains */
  uint32_t undecided, parked; /* items without a class; with several that they may be in (result.h) */
  uint32_t widest;            /* the most classes that a parked item may be in; 0 without one */
  enum cv_trial_end end;
  uint32_t used_up; /* as in struct cv_trial */
  uint64_t wanted;
};

/* Of an arm, over all runs. */
struct cv_forecast_arm {
  uint32_t undecided; /* runs that left it without a class */
  uint32_t parked;    /* runs that left it in one of several classes: */
  uint32_t first;     /* the first and the last of these classes, over all these runs; else 0 */
  uint32_t last;
  uint32_t used_up; /* runs that used up its data */
  double tokens;    /* mean */
  double radius;    /* mean half-width of its interval at the end; NAN without a token */
};

struct cv_forecast {
  uint32_t runs;               /* finished; 0: not even one, and `run` has what the first one came to */
  struct cv_forecast_run *run; /* owned */
  uint32_t arms;
  struct cv_forecast_arm *arm; /* owned */
};

/* What runs of a campaign have in common, also those of the same campaign with other settings. */
struct cv_forecast_shared {
  struct cv_game game;
  struct cv_strata strata;
};
/* The caller frees *ret with cv_forecast_shared_fini(). One line. */
CV_MUST_USE enum cv_err cv_forecast_shared_init(const struct cv_prepared *campaign, struct cv_forecast_shared *ret,
                                                struct cv_why *why);
void cv_forecast_shared_fini(struct cv_forecast_shared *shared);

/* A forecast without a run. The caller frees *ret with cv_forecast_fini(). One line. */
CV_MUST_USE enum cv_err cv_forecast_init(const struct cv_forecast_ask *ask, struct cv_forecast *ret,
                                         struct cv_why *why);
/* Makes the next one of the runs that are asked for; `runs` stays as it is if is_over() stopped it. One line. */
CV_MUST_USE enum cv_err cv_forecast_run(const struct cv_forecast_ask *ask, struct cv_forecast_shared *shared,
                                        struct cv_forecast *forecast, struct cv_why *why);
/* Makes all runs, until there are as many as asked or is_over() says so. The caller frees *ret with
 * cv_forecast_fini(). One line. */
CV_MUST_USE enum cv_err cv_forecast_make(const struct cv_forecast_ask *ask, struct cv_forecast_shared *shared,
                                         struct cv_forecast *ret, struct cv_why *why);
void cv_forecast_fini(struct cv_forecast *forecast);

/* The ends of the range and the median. */
struct cv_range {
  double low, median, high;
};
/* Of n > 0 values, which it sorts. */
struct cv_range cv_range_of(double *value, uint32_t n);
/* What is looked at in a run. */
typedef double cv_forecast_value(const struct cv_forecast_run *run);
struct cv_range cv_forecast_range(const struct cv_forecast *forecast, cv_forecast_value *value);
double cv_forecast_tokens(const struct cv_forecast_run *run);
double cv_forecast_rounds(const struct cv_forecast_run *run);
double cv_forecast_undecided(const struct cv_forecast_run *run);
double cv_forecast_parked(const struct cv_forecast_run *run);
double cv_forecast_widest(const struct cv_forecast_run *run);
double cv_forecast_open(const struct cv_forecast_run *run); /* undecided or parked */
double cv_forecast_regret(const struct cv_forecast_run *run);
double cv_forecast_reward(const struct cv_forecast_run *run);
double cv_forecast_paid(const struct cv_forecast_run *run); /* in units of money */
/* The number of runs that used up the data of an arm. */
uint32_t cv_forecast_used_up(const struct cv_forecast *forecast);
/* The number of runs that ended so. */
uint32_t cv_forecast_ended(const struct cv_forecast *forecast, enum cv_trial_end end);

#endif
