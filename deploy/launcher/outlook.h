/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a campaign will take, before it runs: from simulations of it (simulate/forecast.h), also with other settings,
 * and what would help if its limits are too low. For `crowdveil plan`.
 */
#ifndef CV_LAUNCHER_OUTLOOK_H
#define CV_LAUNCHER_OUTLOOK_H

#include <jansson.h>
#include <stdio.h>

#include "deploy/launcher/exposure.h"
#include "deploy/launcher/tempo.h"
#include "simulate/forecast.h"

/* At most: two values each of alpha, epsilon and tokens per round. */
enum { CV_OUTLOOK_ROWS = 6, CV_OUTLOOK_LINE = 700 };

struct cv_outlook_ask {
  const struct cv_prepared *campaign; /* borrowed, also by the outlook */
  bool is_drawn;                      /* as in struct cv_forecast_ask */
  const struct cv_guess *guess;       /* NULL: qualities are known or drawn by the file's law; borrowed likewise */
  uint64_t seed;
  uint32_t runs;
  uint64_t budget_ms;       /* of time; the first run has all of it */
  uint64_t (*now_ms)(void); /* the clock */
  struct cv_tempo tempo;
};

/* The campaign with one setting changed, and how its runs differ from the same runs of the campaign as it is
 * (simulate/paired.h; NAN: too few runs). */
struct cv_outlook_row {
  char what[48];
  uint32_t runs; /* 0: it was not simulated; else as many as of the campaign as it is */
  struct cv_range tokens, undecided, parked, regret;
  double seconds;                                                      /* median */
  uint64_t token_micro;                                                /* charge of a score */
  struct cv_range token_ratio, time_ratio, open_change, regret_change; /* open: undecided or parked items */
};

struct cv_outlook {
  struct cv_outlook_ask ask;
  struct cv_forecast_shared shared;
  struct cv_forecast forecast;
  struct cv_range tokens, rounds, undecided, parked, regret, reward, paid, seconds, people;
  uint64_t token_micro, worker_micro; /* charges of a score, and of a worker that gives all its tokens */
  struct cv_exposure exposure;        /* of the rows of a data file */
  double *distance;                   /* of each item's mean from where its class changes; owned; NULL: not known */
  uint32_t rows;
  struct cv_outlook_row row[CV_OUTLOOK_ROWS];
  /* What would rank all items in nine runs of ten; 0: not found, or not needed. */
  uint64_t limit;
  double alpha;
  char line[CV_OUTLOOK_LINE];    /* the conclusion */
  char caution[CV_OUTLOOK_LINE]; /* what of the campaign's times does not fit; "": nothing */
};

/* Simulates. The caller frees *ret with cv_outlook_fini(). One line. */
CV_MUST_USE enum cv_err cv_outlook_make(const struct cv_outlook_ask *ask, struct cv_outlook *ret, struct cv_why *why);
void cv_outlook_fini(struct cv_outlook *outlook);

/* Why runs leave an item undecided or parked. */
const char *cv_outlook_reason(const struct cv_outlook *outlook, uint32_t arm);
/* The arms that a run left without a class, or parked between two, the most runs first, then by number; *ret_count of
 * them. The caller frees them; NULL when out of memory. */
uint32_t *cv_outlook_undecided(const struct cv_outlook *outlook, uint32_t *ret_count);

/* What is computed from a run: the people that it takes, and the seconds. */
typedef double cv_outlook_value(const struct cv_tempo *tempo, const struct cv_forecast_run *run);
double cv_outlook_people_of(const struct cv_tempo *tempo, const struct cv_forecast_run *run);
double cv_outlook_seconds_of(const struct cv_tempo *tempo, const struct cv_forecast_run *run);
/* Of all runs, or of the first one, which was stopped. The caller frees them; NULL when out of memory. */
double *cv_outlook_values(const struct cv_tempo *tempo, const struct cv_forecast *forecast, cv_outlook_value *of);
struct cv_range cv_outlook_seconds(const struct cv_tempo *tempo, const struct cv_forecast *forecast);

struct cv_outlook_text {
  char text[160];
};
/* The classes that a parked item may be in: "one class or the next", or how many these are at most. */
struct cv_outlook_text cv_outlook_classes(const struct cv_outlook *outlook);
/* What is compared in a row, in words: "tokens x 0.82 (0.75 to 0.9)", "no difference seen", ... */
/* Whether a row differs from the campaign as it is: an interval leaves out what is the same. */
bool cv_outlook_differs(const struct cv_outlook *outlook, const struct cv_outlook_row *row);
struct cv_outlook_text cv_outlook_compare(const struct cv_outlook *outlook, const struct cv_outlook_row *row);

/* Sets `line` and `caution`; part of cv_outlook_make(). */
void cv_outlook_conclude(struct cv_outlook *outlook);
/* Prints the conclusion and the tables. */
void cv_outlook_print(const struct cv_outlook *outlook, FILE *to);
/* The same as one object; NULL when out of memory. */
json_t *cv_outlook_json(const struct cv_outlook *outlook);

#endif
