/* SPDX-License-Identifier: Apache-2.0 */
/* The conclusion of an outlook: one line that a person reads before anything else. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/text.h"
#include "deploy/launcher/outlook.h"
#include "deploy/launcher/progress.h"

struct line {
  char *text;
  size_t size;
};

static void say(struct line *line, const char *fmt, ...) CV_PRINTF(2, 3);
static void say(struct line *line, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  cv_text_vprint(line->text, line->size, fmt, args);
  va_end(args);
  size_t n = strlen(line->text);
  line->text += n;
  line->size -= n;
}

/* To three digits. */
static struct cv_count_text about(double value, double (*round_to)(double)) {
  double unit = value < 1000 ? 1 : pow(10, floor(log10(value)) - 2);
  return cv_count_text((uint64_t)(round_to(value / unit) * unit));
}

static void say_amount(struct line *line, const struct cv_outlook *outlook, const char *noun) {
  struct cv_range tokens = outlook->tokens;
  if (tokens.low < tokens.high) {
    say(line, "about %s %s (%s to %s)", about(tokens.median, round).text, noun, about(tokens.low, floor).text,
        about(tokens.high, ceil).text);
  } else {
    say(line, "%s %s", cv_count_text((uint64_t)tokens.median).text, noun);
  }
}

/* "4 days (2 hours to 12 days)". */
static void say_time(struct line *line, struct cv_range seconds) {
  struct cv_tempo_text low = cv_tempo_text(seconds.low), high = cv_tempo_text(seconds.high);
  say(line, "%s", cv_tempo_text(seconds.median).text);
  if (strcmp(low.text, high.text) != 0) {
    say(line, " (%s to %s)", low.text, high.text);
  }
}

static uint64_t limit_of(const struct cv_outlook *outlook) {
  return outlook->ask.campaign->file.spec.tokens;
}

/* ---- rankings ---- */

static void say_used_up(struct line *line, const struct cv_outlook *outlook) {
  const struct cv_forecast *forecast = &outlook->forecast;
  const struct cv_prepared *campaign = outlook->ask.campaign;
  for (uint32_t i = 0; i < forecast->runs; i++) {
    const struct cv_forecast_run *run = &forecast->run[i];
    if (run->used_up != CV_TURNS_NO_ARM) {
      say(line, "; data used up in %u of %u runs: %s after %s of %s", cv_forecast_used_up(forecast), forecast->runs,
          cv_text_shown(campaign->name[run->used_up]).text,
          cv_count_text(cv_quality_rows(campaign->source.quality, run->used_up)).text, cv_count_text(run->wanted).text);
      return;
    }
  }
}

static void say_advice(struct line *line, const struct cv_outlook *outlook, bool is_limited) {
  if (2 * cv_forecast_used_up(&outlook->forecast) > outlook->forecast.runs) {
    say(line, ": expected more rows%s",
        cv_spec_is_local(&outlook->ask.campaign->file.spec) ? "" : ", or replacement: true");
  } else if (outlook->limit > 0 && outlook->alpha > 0) {
    say(line, ": raise limits.tokens to about %s or alpha to about %.3g", cv_count_text(outlook->limit).text,
        outlook->alpha);
  } else if (outlook->limit > 0) {
    say(line, ": raise limits.tokens to about %s", cv_count_text(outlook->limit).text);
  } else if (outlook->alpha > 0) {
    say(line, ": raise alpha to about %.3g%s", outlook->alpha,
        is_limited ? " (no larger limit was found that suffices)" : "");
  } else if (cv_forecast_ended(&outlook->forecast, CV_TRIAL_HORIZON) > 0) {
    say(line, ": raise the mechanism's horizon or tokens_per_round");
  } else if (outlook->undecided.median > 0) {
    say(line, ": neither a larger limit nor a larger alpha was found that ranks all");
  }
}

static void say_limit(struct line *line, const struct cv_outlook *outlook, bool is_limited) {
  if (is_limited) {
    say(line, " within the limit of %s tokens", cv_count_text(limit_of(outlook)).text);
  } else {
    say(line, " before it ends");
  }
}

/* Runs that leave an item undecided or on a boundary. */
static uint32_t incomplete_runs(const struct cv_forecast *forecast) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < forecast->runs; i++) {
    count += forecast->run[i].undecided + forecast->run[i].parked > 0;
  }
  return count;
}

struct cv_outlook_text cv_outlook_classes(const struct cv_outlook *outlook) {
  struct cv_outlook_text out = {"one class or the next"};
  uint32_t widest = 0;
  for (uint32_t i = 0; i < outlook->forecast.runs; i++) {
    uint32_t of = outlook->forecast.run[i].widest;
    widest = of > widest ? of : widest;
  }
  if (widest > 2) {
    (void)snprintf(out.text, sizeof(out.text), "one of up to %u classes", widest);
  }
  return out;
}

static void say_ranking(struct line *line, const struct cv_outlook *outlook) {
  const struct cv_forecast *forecast = &outlook->forecast;
  uint32_t arms = forecast->arms, left = (uint32_t)ceil(outlook->undecided.median);
  uint32_t parked = (uint32_t)outlook->parked.median, incomplete = incomplete_runs(forecast);
  bool is_limited = 2 * cv_forecast_ended(forecast, CV_TRIAL_LIMIT) > forecast->runs;
  if (left + parked == 0) {
    say(line,
        incomplete == 0 ? "; all %u items will be ranked" : "; all %u items will be ranked, but not in %u of %u runs",
        arms, incomplete, forecast->runs);
    say_advice(line, outlook, is_limited);
    return;
  }
  say(line, "; %u of %u items will be ranked", arms - left - parked, arms);
  if (parked > 0) {
    say(line, " and %u as of %s", parked, cv_outlook_classes(outlook).text);
  }
  if (left > 0) {
    say_limit(line, outlook, is_limited);
  }
  say_advice(line, outlook, is_limited);
}

/* ---- all ---- */

static void say_bandit(struct line *line, const struct cv_outlook *outlook) {
  struct cv_range regret = outlook->regret;
  uint32_t ended = cv_forecast_ended(&outlook->forecast, CV_TRIAL_COMPLETE);
  say(line, ", with a regret of about %.3g (%.3g to %.3g)", regret.median, regret.low, regret.high);
  if (ended > 0 && outlook->tokens.low < (double)limit_of(outlook)) {
    say(line, "; the policy ends by itself in %u of %u runs", ended, outlook->forecast.runs);
  } else {
    say(line, "; it ends at its limit of %s tokens", cv_count_text(limit_of(outlook)).text);
  }
}

static void say_hires(struct line *line, const struct cv_outlook *outlook) {
  const struct cv_spec *spec = &outlook->ask.campaign->file.spec;
  say(line, "; %.6g of the budget of %.6g will be paid, for a reward of about %.4g (%.4g to %.4g)",
      outlook->paid.median, (double)spec->budget_micro / (double)CV_MICRO, outlook->reward.median, outlook->reward.low,
      outlook->reward.high);
}

static void say_stopped(struct line *line, const struct cv_outlook *outlook) {
  say(line, "No simulated campaign ended within %.3g s: the first one had taken %s tokens in %s rounds",
      (double)outlook->ask.budget_ms / 1000, cv_count_text((uint64_t)outlook->tokens.median).text,
      cv_count_text((uint64_t)outlook->rounds.median).text);
  if (outlook->ask.campaign->kind == CV_POLICY_RANKING) {
    say(line, " and ranked %.0f of %u items", outlook->forecast.arms - outlook->undecided.median,
        outlook->forecast.arms);
  }
  say(line, "; --seconds gives more time");
}

/* Runs that take longer than the deadline. */
static uint32_t late_runs(const struct cv_outlook *outlook) {
  const struct cv_forecast *forecast = &outlook->forecast;
  uint64_t deadline_ms = outlook->ask.campaign->file.spec.deadline_ms;
  uint32_t late = 0;
  for (uint32_t i = 0; i < forecast->runs && deadline_ms > 0; i++) {
    late += cv_outlook_seconds_of(&outlook->ask.tempo, &forecast->run[i]) * 1000 > (double)deadline_ms;
  }
  return late;
}

/* A deadline that comes before the end, and a wait for the next person that ends the campaign. */
static void find_caution(struct cv_outlook *outlook) {
  const struct cv_spec *spec = &outlook->ask.campaign->file.spec;
  const struct cv_tempo *tempo = &outlook->ask.tempo;
  struct line line = {outlook->caution, sizeof(outlook->caution)};
  uint32_t late = late_runs(outlook), runs = outlook->forecast.runs;
  if (20 * late > runs) {
    say(&line, "limits.deadline of %s ends the campaign before that in %u of %u runs: expected ",
        cv_text_time(spec->deadline_ms).text, late, runs);
    say_time(&line, outlook->seconds);
  }
  double between = tempo->people_per_hour > 0 ? 3600 / tempo->people_per_hour : 0;
  /* Of people who come independently of each other, the longest of many waits is many times the mean. */
  double longest = between * (1 + log(fmax(1, outlook->people.median)));
  if (spec->idle_ms > 0 && longest * 1000 > (double)spec->idle_ms) {
    say(&line, "%slimits.idle of %s ends the campaign as soon as nobody comes for so long: expected about %s",
        line.text == outlook->caution ? "" : "; ", cv_text_time(spec->idle_ms).text, cv_tempo_text(longest * 2).text);
  }
}

void cv_outlook_conclude(struct cv_outlook *outlook) {
  struct line line = {outlook->line, sizeof(outlook->line)};
  enum cv_policy_kind kind = outlook->ask.campaign->kind;
  find_caution(outlook);
  if (outlook->forecast.runs == 0) {
    say_stopped(&line, outlook);
    return;
  }
  say(&line, outlook->ask.guess != NULL ? "With guessed qualities expect " : "Expect ");
  say_amount(&line, outlook, kind == CV_POLICY_RECRUITMENT ? "hires" : "tokens");
  say(&line, " and ");
  say_time(&line, outlook->seconds);
  if (kind == CV_POLICY_RANKING) {
    say_ranking(&line, outlook);
  } else if (kind == CV_POLICY_RECRUITMENT) {
    say_hires(&line, outlook);
  } else {
    say_bandit(&line, outlook);
  }
  say_used_up(&line, outlook);
}
