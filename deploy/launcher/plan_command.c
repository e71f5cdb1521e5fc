/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil plan: says what a campaign will take, before it runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/config/rules.h"
#include "deploy/launcher/admit.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/json.h"
#include "deploy/launcher/outlook.h"

struct settings {
  struct cv_client_settings client;
  uint64_t runs, seconds, seed;
  double rate, people_per_hour;
  char *guess;
  bool json;
};

static const struct cv_config_rule rules[] = {
    {.key = "runs",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, runs),
     .low = 1,
     .high = 10000,
     .fallback = "100",
     .help = "simulated campaigns, at most"},
    {.key = "seconds",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, seconds),
     .low = 1,
     .high = 86400,
     .fallback = "8",
     .help = "stop after so many seconds, with the runs that are finished"},
    {.key = "seed",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, seed),
     .high = 9e15,
     .help = "of drawn qualities, as for up; without it, and without the file's, each run has others"},
    {.key = "rate",
     .type = CV_CONFIG_REAL,
     .offset = offsetof(struct settings, rate),
     .low = 1e-6,
     .high = CV_TEMPO_RATE_RANGE,
     .help = "tokens a second that your broker reaches"},
    {.key = "people_per_hour",
     .type = CV_CONFIG_REAL,
     .offset = offsetof(struct settings, people_per_hour),
     .low = 1e-6,
     .high = CV_TEMPO_RATE_RANGE,
     .help = "people who come in an hour, if people give the scores"},
    {.key = "guess",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, guess),
     .help = "MEAN,SPREAD: draw the items' means from this normal law in each run, instead of the file's"},
    CV_CLIENT_RULES_AS(struct settings, client, false),
    {.key = "json",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, json),
     .fallback = "false",
     .help = "print one JSON object"},
};

static const struct cv_config_table table = {
    .program = "crowdveil plan",
    .arguments = "FILE",
    .about =
        "says what a campaign will take before it runs: tokens, time, undecided items and charges, by simulations "
        "of it on this machine; with the options of a broker it asks that broker, too, and has its smallest release",
    .rules = rules,
    .count = CV_COUNT(rules),
};

/* "MEAN,SPREAD". */
static enum cv_err take_guess(const char *text, struct cv_guess *ret, struct cv_why *why) {
  char mean[32] = "";
  const char *comma = strchr(text, ',');
  size_t n = comma == NULL ? 0 : (size_t)(comma - text);
  if (n > 0 && n < sizeof(mean)) {
    memcpy(mean, text, n);
  }
  struct cv_guess guess;
  bool good = mean[0] != '\0' && cv_value_real(mean, &guess.mean) && cv_value_real(comma + 1, &guess.spread) &&
              guess.mean >= 0 && guess.mean <= 1 && guess.spread >= 0 && guess.spread <= 1;
  if (!good) {
    return cv_fail(why, CV_ERR_INVALID, "--guess is \"%.40s\"; expected MEAN,SPREAD, both 0 to 1, such as .5,.2", text);
  }
  *ret = guess;
  return CV_OK;
}

/* A file of rows has its qualities, an adversary none, and drivers have a law of their own. */
static enum cv_err check_guess(const struct cv_prepared *prepared, struct cv_why *why) {
  const struct cv_items *items = &prepared->file.items;
  return cv_items_law(items) != NULL && items->source != CV_SOURCE_TAXI
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "%s:%u: --guess is for items without known scores; expected a list, a ladder"
                       " or synthetic items",
                       prepared->file.path, items->line);
}

/* Whether the campaign's qualities come by chance: `up` then draws others each time. */
static bool is_by_chance(const struct cv_prepared *prepared, uint64_t seed) {
  const struct cv_items *items = &prepared->file.items;
  bool draws =
      items->source == CV_SOURCE_SYNTHETIC || items->source == CV_SOURCE_TAXI || items->source == CV_SOURCE_ADVERSARY;
  return draws && seed == CV_SEED_NONE && !items->has_seed;
}

/* Gold items take a part of what a person gives; and once means once for each item or pair of items. */
static struct cv_tempo tempo_of(const struct settings *settings, const struct cv_prepared *prepared) {
  const struct cv_spec *spec = &prepared->file.spec;
  const struct cv_gold *gold = &prepared->file.gold.gold;
  bool is_once = cv_spec_questions(spec, gold->items) > 0;
  double each = spec->tokens_per_worker - cv_gold_expected(gold, spec->tokens_per_worker);
  double most = (double)cv_spec_questions(spec, 0);
  return (struct cv_tempo){.rate = settings->rate > 0 ? settings->rate : cv_tempo_rate(spec->brokers),
                           .people_per_hour = settings->people_per_hour,
                           .each = is_once && each > most ? most : each,
                           .each_item = !is_once      ? 0
                                        : spec->pairs ? spec->arms - 1
                                                      : 1};
}

static void show(const struct cv_outlook *outlook, bool as_json) {
  if (as_json) {
    cv_json_print(cv_outlook_json(outlook), JSON_REAL_PRECISION(10));
  } else {
    cv_outlook_print(outlook, stdout);
  }
}

static int plan(const struct settings *settings, const char *file) {
  struct cv_prepared prepared;
  struct cv_guess guess = CV_GUESS_USUAL;
  struct cv_outlook outlook;
  struct cv_why why;
  bool is_asked;
  if (settings->guess != NULL && take_guess(settings->guess, &guess, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  const uint64_t start_ms = cv_clock_mono_ms();
  if (cv_launcher_prepare(&table, file, settings->seed, &prepared, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  if (settings->guess != NULL && check_guess(&prepared, &why) != CV_OK) {
    cv_prepared_fini(&prepared);
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  int status = cv_admit_ask(&table, &settings->client, &prepared, &is_asked);
  if (status != 0) {
    cv_prepared_fini(&prepared);
    return status;
  }
  const bool is_guess = settings->guess != NULL || !cv_items_have_means(&prepared.file.items);
  /* Reading the file and choosing a policy are part of the time, but leave some for the simulations. */
  uint64_t all_ms = settings->seconds * 1000, spent_ms = cv_clock_mono_ms() - start_ms;
  const struct cv_outlook_ask ask = {.campaign = &prepared,
                                     .is_drawn = is_guess || is_by_chance(&prepared, settings->seed),
                                     .guess = is_guess ? &guess : NULL,
                                     .seed = settings->seed == CV_SEED_NONE ? 0 : settings->seed,
                                     .runs = (uint32_t)settings->runs,
                                     .budget_ms = spent_ms < all_ms / 2 ? all_ms - spent_ms : all_ms / 2,
                                     .now_ms = cv_clock_mono_ms,
                                     .tempo = tempo_of(settings, &prepared)};
  status = cv_outlook_make(&ask, &outlook, &why) == CV_OK ? 0 : cv_command_fail(&table, 1, "%s", why.text);
  if (status == 0) {
    show(&outlook, settings->json);
    cv_outlook_fini(&outlook);
  }
  cv_prepared_fini(&prepared);
  return status;
}

int cv_launcher_plan(int argc, char **argv) {
  struct settings settings = {.seed = CV_SEED_NONE};
  const char *words[CV_WORDS_MAX] = {0};
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &settings);
  if (status < 0) {
    status = plan(&settings, words[0]);
  }
  cv_config_fini(&table, &settings);
  return status;
}
