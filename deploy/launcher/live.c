/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/live.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/text.h"
#include "common/base/width.h"
#include "deploy/launcher/pace.h"

enum {
  CLASS_COLUMNS = 3,
  NAME_MIN = 6,
  NAME_MAX = 24,
  BAR_MIN = 8,
  BAR_MAX = 60,
  MEAN_COLUMNS = 6,   /* " 0.912" */
  RADIUS_COLUMNS = 7, /* " ±0.031" */
  TOKENS_COLUMNS = 12,
  RADIUS_FROM = 56, /* a screen of so many columns shows the radius ... */
  TOKENS_FROM = 76, /* ... and one of so many the tokens */
  FRAME_LINES = 5,  /* title, heading, two lines about the budget, and the cursor's line */
  LINE_BYTES = 4 * 512
};

/* A line of text, cut at the screen's width; escape sequences take no column. */
struct line {
  const struct cv_live_screen *screen;
  char text[LINE_BYTES];
  size_t n;
  unsigned columns;
};

static void add(struct line *line, const char *text) {
  for (size_t at = 0, left = strlen(text), size; left > 0; at += size, left -= size) {
    char one[8] = "";
    size = cv_text_char(text + at, left);
    memcpy(one, text + at, size);
    unsigned columns = (unsigned)cv_width_of(one);
    if (size == 0 || line->n + size >= LINE_BYTES || line->columns + columns > line->screen->columns) {
      return;
    }
    memcpy(line->text + line->n, one, size);
    line->n += size;
    line->columns += columns;
  }
}

static void pad_to(struct line *line, unsigned columns) {
  while (line->columns < columns && line->columns < line->screen->columns) {
    add(line, " ");
  }
}

static CV_PRINTF(2, 3) void addf(struct line *line, const char *fmt, ...) {
  char text[256];
  va_list args;
  va_start(args, fmt);
  cv_text_vprint(text, sizeof(text), fmt, args);
  va_end(args);
  add(line, text);
}

/* Sets a colour or weight by its SGR number; 0 ends it. */
static void paint(struct line *line, int sgr) {
  if (line->screen->has_colour && line->n + 8 < LINE_BYTES) {
    line->n += (size_t)snprintf(line->text + line->n, LINE_BYTES - line->n, "\033[%dm", sgr);
  }
}

static void end_line(struct line *line, struct cv_buf *out) {
  paint(line, 0);
  cv_buf_put(out, line->text, line->n);
  cv_buf_put(out, "\n", 1);
  line->n = 0;
  line->columns = 0;
}

enum { BOLD = 1, FAINT = 2, GREEN = 32, BLUE = 34 };

/* ---- the order of the rows ---- */

/* The order of a ranking: class, in it what is decided first, then mean, then number. */
static int compare_rank(const void *a, const void *b, void *data) {
  const struct cv_standing *standing = data;
  const struct cv_standing *x = &standing[*(const uint32_t *)a], *y = &standing[*(const uint32_t *)b];
  if (x->rank_class != y->rank_class) {
    return x->rank_class - 1 < y->rank_class - 1 ? -1 : 1; /* class 0, undecided, wraps around and comes last */
  }
  if (x->held != y->held && (x->held == CV_HELD_NO || y->held == CV_HELD_NO)) {
    return x->held == CV_HELD_NO ? -1 : 1;
  }
  if (x->mean < y->mean || x->mean > y->mean) {
    return x->mean > y->mean ? -1 : 1;
  }
  return x->arm < y->arm ? -1 : 1;
}

/* The order of other outcomes: most tokens first, then number. */
static int compare_pulls(const void *a, const void *b, void *data) {
  const struct cv_standing *standing = data;
  const struct cv_standing *x = &standing[*(const uint32_t *)a], *y = &standing[*(const uint32_t *)b];
  if (x->tokens != y->tokens) {
    return x->tokens > y->tokens ? -1 : 1;
  }
  return x->arm < y->arm ? -1 : 1;
}

void cv_live_order(enum cv_policy_kind kind, const struct cv_standing *standing, uint32_t arms, uint32_t *ret_order) {
  union {
    const struct cv_standing *in;
    void *out;
  } data = {.in = standing};
  for (uint32_t i = 0; i < arms; i++) {
    ret_order[i] = i;
  }
  qsort_r(ret_order, arms, sizeof(*ret_order), kind == CV_POLICY_RANKING ? compare_rank : compare_pulls, data.out);
}

/* ---- rows ---- */

/* Where the parts of a row begin; a part that the screen has no room for has no columns. */
struct layout {
  unsigned name, bar, radius, tokens;
  double low, high; /* the scores at the ends of a bar */
};

/* Takes in the interval of one arm. An arm that has no interval yet covers everything. */
static void cover(struct layout *layout, const struct cv_standing *standing) {
  bool is_known = standing->tokens > 0 && isfinite(standing->mean) && isfinite(standing->radius);
  layout->low = fmin(layout->low, is_known ? fmax(0, standing->mean - standing->radius) : 0);
  layout->high = fmax(layout->high, is_known ? fmin(1, standing->mean + standing->radius) : 1);
}

static void scale(const struct cv_live *live, struct layout *layout) {
  layout->low = 1;
  layout->high = 0;
  for (uint32_t i = 0; live->standing != NULL && i < live->progress.arms; i++) {
    cover(layout, &live->standing[i]);
  }
  layout->low = fmax(0, floor(layout->low * 10) / 10);
  layout->high = fmin(1, ceil(layout->high * 10) / 10);
  if (!(layout->low < layout->high)) {
    layout->low = 0;
    layout->high = 1;
  }
}

static struct layout lay_out(const struct cv_live *live, const struct cv_live_screen *screen) {
  struct layout layout = {.radius = screen->columns >= RADIUS_FROM ? RADIUS_COLUMNS : 0,
                          .tokens = screen->columns >= TOKENS_FROM ? TOKENS_COLUMNS : 0};
  unsigned longest = NAME_MIN;
  for (uint32_t i = 0; live->name != NULL && i < live->progress.arms; i++) {
    unsigned columns = (unsigned)cv_width_of(live->name[i]);
    longest = columns > longest ? columns : longest;
  }
  longest = live->name == NULL ? 9 : longest; /* "item 1234" */
  unsigned rest = screen->columns - CLASS_COLUMNS - 2 - 1 - MEAN_COLUMNS - layout.radius - layout.tokens;
  unsigned most = rest > BAR_MIN + NAME_MIN ? rest - BAR_MIN : NAME_MIN;
  most = most < NAME_MAX ? most : NAME_MAX;
  most = most > rest / 2 ? rest / 2 : most;
  layout.name = longest < most ? longest : most;
  layout.bar = rest > layout.name ? rest - layout.name : 0;
  layout.bar = layout.bar < BAR_MAX ? layout.bar : BAR_MAX;
  scale(live, &layout);
  return layout;
}

/* The column of a score on a bar. */
static unsigned column_of(const struct layout *layout, double score) {
  double share = (score - layout->low) / (layout->high - layout->low);
  double at = floor(fmin(1, fmax(0, share)) * layout->bar);
  return at < layout->bar ? (unsigned)at : layout->bar - 1;
}

static void add_interval(struct line *line, const struct layout *layout, const struct cv_standing *standing) {
  static const char *const parts[2][2][2] = {{{"-", "o"}, {"=", "O"}}, {{"─", "○"}, {"━", "●"}}};
  const char *const *part = parts[line->screen->has_utf8][cv_standing_is_decided(standing)];
  bool is_known = standing->tokens > 0 && isfinite(standing->mean) && !isnan(standing->radius);
  unsigned low = is_known ? column_of(layout, standing->mean - standing->radius) : 0;
  unsigned high = is_known ? column_of(layout, standing->mean + standing->radius) : 0;
  unsigned mean = is_known ? column_of(layout, standing->mean) : 0;
  for (unsigned i = 0; i < layout->bar; i++) {
    add(line, !is_known || i < low || i > high ? " " : i == mean ? part[1] : part[0]);
  }
}

/* A bar of which `part` of `whole` is filled. */
static void add_share(struct line *line, double part, double whole, unsigned columns) {
  bool utf8 = line->screen->has_utf8;
  unsigned filled = whole > 0 ? (unsigned)lround(fmin(1, part / whole) * columns) : 0;
  for (unsigned i = 0; i < columns; i++) {
    add(line, i < filled ? (utf8 ? "█" : "#") : utf8 ? "─" : "-");
  }
}

static void add_name(struct line *line, const struct cv_live *live, uint32_t arm, unsigned columns) {
  unsigned until = line->columns + columns;
  char number[24];
  (void)snprintf(number, sizeof(number), "item %u", arm + 1);
  const char *name = live->name == NULL ? number : live->name[arm];
  add(line, cv_width_cut(name, columns, line->screen->has_utf8 ? "…" : "~").text);
  pad_to(line, until);
}

static void draw_row(const struct cv_live *live, const struct layout *layout, uint32_t arm, uint64_t most,
                     struct line *line, struct cv_buf *out) {
  const struct cv_standing *standing = &live->standing[arm];
  bool is_ranking = live->kind == CV_POLICY_RANKING, is_settled = cv_standing_is_decided(standing);
  const char *sign = line->screen->has_utf8 ? "±" : "+-";
  paint(line, is_settled || !is_ranking ? BOLD : FAINT);
  if (is_settled) {
    addf(line, "%3u  ", standing->rank_class);
  } else if (standing->held != CV_HELD_NO) {
    addf(line, "%3u+ ", standing->rank_class); /* this class or below */
  } else {
    add(line, is_ranking ? "  -  " : "     ");
  }
  add_name(line, live, arm, layout->name);
  add(line, " ");
  paint(line, 0);
  paint(line, is_settled ? GREEN : BLUE);
  if (is_ranking) {
    add_interval(line, layout, standing);
  } else {
    add_share(line, (double)standing->tokens, (double)most, layout->bar);
  }
  paint(line, 0);
  if (standing->tokens > 0 && isfinite(standing->mean)) {
    addf(line, "%6.3f", standing->mean);
    if (layout->radius > 0 && isfinite(standing->radius) && standing->radius < 10) {
      addf(line, " %s%.3f", sign, standing->radius);
    }
  }
  if (layout->tokens > 0) {
    pad_to(line, line->screen->columns - TOKENS_COLUMNS);
    addf(line, "%*s", TOKENS_COLUMNS, cv_count_text(standing->tokens).text);
  }
  end_line(line, out);
}

/* ---- around the rows ---- */

static void draw_title(const struct cv_live *live, struct line *line, struct cv_buf *out) {
  const struct cv_progress *progress = &live->progress;
  paint(line, BOLD);
  add(line, cv_text_shown(progress->name).text);
  paint(line, 0);
  if (live->kind == CV_POLICY_RANKING) {
    addf(line, "   %u of %u ranked", progress->decided, progress->arms);
  }
  if (progress->parked > 0) {
    addf(line, ", %u parked", progress->parked);
  }
  if (progress->classes > 0) {
    addf(line, ", class %u", progress->classes);
  }
  addf(line, "   %.1f s", (double)progress->elapsed_ms / 1000);
  end_line(line, out);
}

static void draw_heading(const struct cv_live *live, const struct layout *layout, struct line *line,
                         struct cv_buf *out) {
  unsigned bar = 5 + layout->name + 1, after = bar + layout->bar;
  bool is_ranking = live->kind == CV_POLICY_RANKING;
  char high[8];
  cv_text_print(high, sizeof(high), "%.1g", layout->high);
  paint(line, FAINT);
  add(line, is_ranking ? "class item" : live->progress.budget_micro > 0 ? "     worker" : "     item");
  pad_to(line, bar);
  if (is_ranking) {
    addf(line, "%.1g", layout->low);
    pad_to(line, after - (unsigned)strlen(high));
    add(line, high);
  } else {
    add(line, live->progress.budget_micro > 0 ? "hires" : "pulls");
  }
  pad_to(line, after);
  add(line, "  mean");
  if (layout->tokens > 0) {
    pad_to(line, line->screen->columns - 6);
    add(line, "tokens");
  }
  end_line(line, out);
}

/* "tokens   ███───  1,245 of 5,000   97,412/s", and the same of money in a recruitment. */
static void draw_spent(const struct cv_live *live, struct line *line, struct cv_buf *out) {
  const struct cv_progress *progress = &live->progress;
  double micro = (double)CV_MICRO;
  unsigned bar = line->screen->columns >= RADIUS_FROM ? line->screen->columns / 4 : 0;
  add(line, progress->budget_micro > 0 ? "paid     " : "tokens   ");
  if (bar > 0 && progress->budget_micro > 0) {
    add_share(line, (double)progress->paid_micro, (double)progress->budget_micro, bar);
  } else if (bar > 0) {
    add_share(line, (double)progress->tokens, (double)progress->tokens_limit, bar);
  }
  add(line, bar > 0 ? "  " : "");
  if (progress->budget_micro > 0) {
    addf(line, "%.10g of %.10g   %s tokens", (double)progress->paid_micro / micro,
         (double)progress->budget_micro / micro, cv_count_text(progress->tokens).text);
  } else {
    addf(line, "%s of %s", cv_count_text(progress->tokens).text, cv_count_text(progress->tokens_limit).text);
  }
  struct cv_view_pace pace = cv_view_pace(progress);
  addf(line, "   %s", pace.text);
  end_line(line, out);
}

static void draw_epsilon(const struct cv_live *live, struct line *line, struct cv_buf *out) {
  const struct cv_progress *progress = &live->progress;
  addf(line, "epsilon  %.10g", (double)progress->epsilon_spent_micro / (double)CV_MICRO);
  if (live->epsilon_micro > 0) {
    addf(line, " of %.10g", (double)live->epsilon_micro / (double)CV_MICRO);
  }
  addf(line, "   rounds %s", cv_count_text(progress->plans).text);
  end_line(line, out);
}

static uint64_t most_tokens(const struct cv_live *live, uint32_t arms) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < arms; i++) {
    most = live->standing[i].tokens > most ? live->standing[i].tokens : most;
  }
  return most;
}

unsigned cv_live_draw(const struct cv_live *live, const struct cv_live_screen *screen, struct cv_buf *out) {
  uint32_t arms = live->standing == NULL ? 0 : live->progress.arms, room = screen->lines - FRAME_LINES;
  uint32_t rows = arms <= room ? arms : room - 1;
  struct line line = {.screen = screen};
  struct layout layout = lay_out(live, screen);
  uint64_t most = most_tokens(live, arms);
  draw_title(live, &line, out);
  if (arms > 0) {
    draw_heading(live, &layout, &line, out);
  }
  for (uint32_t i = 0; i < rows; i++) {
    draw_row(live, &layout, live->order[i], most, &line, out);
  }
  if (rows < arms) {
    paint(&line, FAINT);
    addf(&line, "     and %s more", cv_count_text(arms - rows).text);
    end_line(&line, out);
  }
  draw_spent(live, &line, out);
  draw_epsilon(live, &line, out);
  return 3 + (arms > 0) + rows + (rows < arms);
}
