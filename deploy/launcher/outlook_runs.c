/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/outlook_runs.h"

#include <math.h>
#include <stdlib.h>

#include "deploy/launcher/outlook_change.h"
#include "simulate/paired.h"

enum {
  AIM = 12,        /* runs that are worth leaving out a setting */
  WAIT_SHARE = 4,  /* a fourth of the time passes before that, */
  FIRST_SHARE = 8, /* or an eighth in the first run of a setting */
};

/* When a run is stopped. */
struct watch {
  uint64_t (*now_ms)(void);
  uint64_t until_ms;
};

/* One of those that run side by side; the first one is the campaign as it is. */
struct side {
  struct cv_prepared campaign; /* borrows all but its settings */
  struct cv_forecast_ask ask;
  struct cv_forecast forecast;
  uint64_t spent_ms;
  bool is_out;
};

struct sides {
  struct cv_outlook *outlook;
  const struct cv_outlook_times *times;
  struct watch watch;
  uint32_t count;
  struct side side[1 + CV_OUTLOOK_ROWS];
};

static bool is_over(void *data, uint32_t runs) {
  const struct watch *watch = data;
  (void)runs;
  return watch->now_ms() >= watch->until_ms;
}

/* ---- setting up ---- */

static enum cv_err add(struct sides *sides, const struct cv_prepared *campaign, struct cv_why *why) {
  struct side *side = &sides->side[sides->count];
  const struct cv_outlook_ask *ask = &sides->outlook->ask;
  *side = (struct side){.campaign = *campaign,
                        .ask = {.campaign = &side->campaign,
                                .is_drawn = ask->is_drawn,
                                .guess = ask->guess,
                                .seed = ask->seed,
                                .runs = ask->runs,
                                .is_over = is_over,
                                .data = &sides->watch}};
  CV_TRY(cv_forecast_init(&side->ask, &side->forecast, why));
  sides->count++;
  return CV_OK;
}

/* A setting that the campaign cannot have has no row. */
static enum cv_err add_row(struct sides *sides, struct cv_change what, struct cv_why *why) {
  struct cv_outlook *outlook = sides->outlook;
  struct cv_prepared other;
  if (cv_change_make(outlook->ask.campaign, what, &other) != CV_OK) {
    return CV_OK;
  }
  struct cv_outlook_row *row = &outlook->row[outlook->rows++];
  *row = (struct cv_outlook_row){.token_micro = cv_exposure_token_micro(&other.file)};
  cv_change_text(what, row->what, sizeof(row->what));
  return add(sides, &other, why);
}

static enum cv_err add_rows(struct sides *sides, struct cv_why *why) {
  static const enum cv_change_key settings[] = {CV_CHANGE_ALPHA, CV_CHANGE_EPSILON, CV_CHANGE_ROUND};
  for (size_t i = 0; i < 2 * CV_COUNT(settings); i++) {
    double value = cv_change_value(&sides->outlook->ask.campaign->file.spec, settings[i / 2]);
    double other = i % 2 == 0 ? value * 2 : value / 2;
    if (settings[i / 2] == CV_CHANGE_ROUND) {
      other = ceil(other);
    }
    if (value > 0 && (other < value || other > value)) {
      CV_TRY(add_row(sides, (struct cv_change){settings[i / 2], other}, why));
    }
  }
  return CV_OK;
}

/* ---- runs ---- */

/* One more run. *ret is false if it was stopped. */
static enum cv_err run(struct sides *sides, struct side *side, uint64_t until_ms, bool *ret, struct cv_why *why) {
  uint64_t start_ms = sides->watch.now_ms();
  uint32_t before = side->forecast.runs;
  sides->watch.until_ms = until_ms;
  CV_TRY(cv_forecast_run(&side->ask, &sides->outlook->shared, &side->forecast, why));
  side->spent_ms += sides->watch.now_ms() - start_ms;
  *ret = side->forecast.runs > before;
  return CV_OK;
}

/* The next run of all other settings. *ret is false if the time is over. */
static enum cv_err run_rows(struct sides *sides, bool *ret, struct cv_why *why) {
  uint64_t until_ms = sides->times->until_ms, cap_ms = (until_ms - sides->times->start_ms) / FIRST_SHARE;
  *ret = true;
  for (uint32_t i = 1; i < sides->count && *ret; i++) {
    struct side *side = &sides->side[i];
    uint64_t now = sides->watch.now_ms();
    bool is_first = side->forecast.runs == 0 && now + cap_ms < until_ms, has_run = true;
    if (!side->is_out) {
      CV_TRY(run(sides, side, is_first ? now + cap_ms : until_ms, &has_run, why));
    }
    side->is_out = side->is_out || (!has_run && is_first);
    *ret = has_run || is_first;
  }
  return CV_OK;
}

/* Leaves out the settings that take the longest, until AIM runs of those that stay would end in time. */
static void leave_out(struct sides *sides) {
  const struct cv_outlook_times *times = sides->times;
  uint64_t now = sides->watch.now_ms(), spent;
  double done = sides->side[0].forecast.runs, aim = fmin(AIM, sides->outlook->ask.runs);
  struct side *longest;
  if (now - times->start_ms < (times->until_ms - times->start_ms) / WAIT_SHARE || now >= times->until_ms) {
    return;
  }
  do {
    spent = 0;
    longest = NULL;
    for (uint32_t i = 0; i < sides->count; i++) {
      struct side *side = &sides->side[i];
      spent += side->is_out ? 0 : side->spent_ms;
      if (i > 0 && !side->is_out && (longest == NULL || side->spent_ms > longest->spent_ms)) {
        longest = side;
      }
    }
    if (longest != NULL && spent > 0 && done + done * (double)(times->until_ms - now) / (double)spent < aim) {
      longest->is_out = true;
    } else {
      longest = NULL;
    }
  } while (longest != NULL);
}

static void leave_out_all(struct sides *sides) {
  for (uint32_t i = 1; i < sides->count; i++) {
    sides->side[i].is_out = true;
  }
}

/* A round is a run of each other setting, then one of the campaign itself, whose runs so never are the more; but in
 * the first round the latter has the first turn, since it matters most. */
static enum cv_err run_rounds(struct sides *sides, struct cv_why *why) {
  struct side *own = &sides->side[0];
  bool goes_on = true;
  CV_TRY(run(sides, own, sides->times->first_ms, &goes_on, why));
  if (!goes_on) {
    leave_out_all(sides);
    return CV_OK;
  }
  CV_TRY(run_rows(sides, &goes_on, why));
  if (!goes_on) {
    leave_out_all(sides);
  }
  while (own->forecast.runs < own->ask.runs && sides->watch.now_ms() < sides->times->until_ms && goes_on) {
    leave_out(sides);
    CV_TRY(run_rows(sides, &goes_on, why));
    if (goes_on) {
      CV_TRY(run(sides, own, sides->times->until_ms, &goes_on, why));
    }
  }
  return CV_OK;
}

/* Too few runs of all compare nothing: then those of the campaign itself go on. */
static enum cv_err run_alone(struct sides *sides, struct cv_why *why) {
  struct side *own = &sides->side[0];
  uint32_t least = own->ask.runs < CV_PAIRED_LEAST ? own->ask.runs : CV_PAIRED_LEAST;
  bool goes_on = own->forecast.runs > 0 && own->forecast.runs < least;
  if (goes_on) {
    leave_out_all(sides);
  }
  while (goes_on && own->forecast.runs < own->ask.runs) {
    CV_TRY(run(sides, own, sides->times->alone_ms, &goes_on, why));
  }
  return CV_OK;
}

/* ---- rows ---- */

static double tokens_of(const struct cv_tempo *tempo, const struct cv_forecast_run *run) {
  return cv_forecast_tokens(run);
}

static double open_of(const struct cv_tempo *tempo, const struct cv_forecast_run *run) {
  return cv_forecast_open(run);
}

static double regret_of(const struct cv_tempo *tempo, const struct cv_forecast_run *run) {
  return cv_forecast_regret(run);
}

/* The interval is NAN, too, when out of memory. */
static struct cv_range pair(const struct cv_outlook *outlook, const struct cv_forecast *other, cv_outlook_value *of,
                            struct cv_range (*compare)(const double *own, const double *other, uint32_t n)) {
  uint32_t n = outlook->forecast.runs;
  double *mine = cv_outlook_values(&outlook->ask.tempo, &outlook->forecast, of);
  double *theirs = cv_outlook_values(&outlook->ask.tempo, other, of);
  struct cv_range range = compare(mine, theirs, mine == NULL || theirs == NULL ? 0 : n);
  free(mine);
  free(theirs);
  return range;
}

static void take_row(struct cv_outlook *outlook, struct side *side, struct cv_outlook_row *row) {
  const struct cv_forecast *own = &outlook->forecast;
  struct cv_forecast *other = &side->forecast;
  other->runs = row->runs = own->runs; /* of a round that was stopped, there may be one more */
  row->tokens = cv_forecast_range(other, cv_forecast_tokens);
  row->undecided = cv_forecast_range(other, cv_forecast_undecided);
  row->parked = cv_forecast_range(other, cv_forecast_parked);
  row->regret = cv_forecast_range(other, cv_forecast_regret);
  row->seconds = cv_outlook_seconds(&outlook->ask.tempo, other).median;
  row->token_ratio = pair(outlook, other, tokens_of, cv_paired_ratio);
  row->time_ratio = pair(outlook, other, cv_outlook_seconds_of, cv_paired_ratio);
  row->open_change = pair(outlook, other, open_of, cv_paired_change);
  row->regret_change = pair(outlook, other, regret_of, cv_paired_change);
}

static void take_rows(struct sides *sides) {
  for (uint32_t i = 1; i < sides->count; i++) {
    if (!sides->side[i].is_out) {
      take_row(sides->outlook, &sides->side[i], &sides->outlook->row[i - 1]);
    }
  }
}

enum cv_err cv_outlook_run(struct cv_outlook *outlook, const struct cv_outlook_times *times, struct cv_why *why) {
  struct sides sides = {.outlook = outlook, .times = times, .watch.now_ms = outlook->ask.now_ms};
  enum cv_err err = add(&sides, outlook->ask.campaign, why);
  if (err == CV_OK) {
    err = add_rows(&sides, why);
  }
  if (err == CV_OK) {
    err = run_rounds(&sides, why);
  }
  if (err == CV_OK) {
    err = run_alone(&sides, why);
  }
  if (err == CV_OK) {
    outlook->forecast = sides.side[0].forecast;
    sides.side[0].forecast = (struct cv_forecast){0};
    take_rows(&sides);
  }
  for (uint32_t i = 0; i < sides.count; i++) {
    cv_forecast_fini(&sides.side[i].forecast);
  }
  return err;
}
