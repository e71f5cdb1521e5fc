/* SPDX-License-Identifier: Apache-2.0 */
/* What a change of a setting does, by pairs of runs. */
#include <stdarg.h>
#include <string.h>

#include "common/base/text.h"
#include "deploy/launcher/outlook.h"
#include "simulate/paired.h"

/* Whether the interval leaves out what would be the same. */
static bool leaves_out(struct cv_range range, double same) {
  return range.low > same || range.high < same;
}

static bool is_ranking(const struct cv_outlook *outlook) {
  return outlook->ask.campaign->kind == CV_POLICY_RANKING;
}

/* People take their own time; programs take that of their tokens and rounds. */
static bool times_differ(const struct cv_outlook *outlook, const struct cv_outlook_row *row) {
  return outlook->ask.tempo.people_per_hour > 0 && leaves_out(row->time_ratio, 1);
}

bool cv_outlook_differs(const struct cv_outlook *outlook, const struct cv_outlook_row *row) {
  return times_differ(outlook, row) ||
         (is_ranking(outlook) ? leaves_out(row->token_ratio, 1) || leaves_out(row->open_change, 0)
                              : leaves_out(row->regret_change, 0));
}

static void add(struct cv_outlook_text *to, const char *fmt, ...) CV_PRINTF(2, 3);
static void add(struct cv_outlook_text *to, const char *fmt, ...) {
  size_t n = strlen(to->text);
  va_list args;
  va_start(args, fmt);
  cv_text_vprint(to->text + n, sizeof(to->text) - n, fmt, args);
  va_end(args);
}

/* After what is there already. */
static void add_range(struct cv_outlook_text *to, const char *what, struct cv_range range, bool is_ratio) {
  add(to, is_ratio ? "%s%s x %.3g (%.3g to %.3g)" : "%s%s %+.3g (%+.3g to %+.3g)", to->text[0] == '\0' ? "" : "; ",
      what, range.median, range.low, range.high);
}

struct cv_outlook_text cv_outlook_compare(const struct cv_outlook *outlook, const struct cv_outlook_row *row) {
  struct cv_outlook_text out = {""};
  if (row->runs < CV_PAIRED_LEAST) {
    add(&out, "too few runs to compare: %u of at least %d", row->runs, CV_PAIRED_LEAST);
    return out;
  }
  if (!cv_outlook_differs(outlook, row)) {
    add(&out, "no difference seen");
    return out;
  }
  if (is_ranking(outlook) && leaves_out(row->token_ratio, 1)) {
    add_range(&out, "tokens", row->token_ratio, true);
  }
  if (is_ranking(outlook) && leaves_out(row->open_change, 0)) {
    add_range(&out, "items not ranked", row->open_change, false);
  }
  if (!is_ranking(outlook) && leaves_out(row->regret_change, 0)) {
    add_range(&out, "regret", row->regret_change, false);
  }
  if (times_differ(outlook, row)) {
    add_range(&out, "time", row->time_ratio, true);
  } else if (outlook->ask.tempo.people_per_hour > 0) {
    add(&out, "; no difference seen in time");
  }
  return out;
}
