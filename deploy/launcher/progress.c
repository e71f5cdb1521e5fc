/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/grid.h"

enum { TERMINAL_MS = 200, PLAIN_MS = 2000, COLUMNS = 79 };

void cv_view_line(const struct cv_progress *progress, char *to, size_t size) {
  char done[64], line[700];
  if (progress->parked > 0) {
    (void)snprintf(done, sizeof(done), "%u of %u ranked, %u parked, class %u", progress->decided, progress->arms,
                   progress->parked, progress->classes);
  } else if (progress->decided > 0) {
    (void)snprintf(done, sizeof(done), "%u of %u ranked, class %u", progress->decided, progress->arms,
                   progress->classes);
  } else { /* a ranking without a class yet, or a policy that does not rank */
    (void)snprintf(done, sizeof(done), "plan %s", cv_count_text(progress->plans).text);
  }
  struct cv_view_pace pace = cv_view_pace(progress);
  if (progress->budget_micro > 0) {
    (void)snprintf(line, sizeof(line), "paid %.10g of %.10g   %s tokens   %s   %.1f s",
                   (double)progress->paid_micro / (double)CV_MICRO, (double)progress->budget_micro / (double)CV_MICRO,
                   cv_count_text(progress->tokens).text, pace.text, (double)progress->elapsed_ms / 1000);
  } else {
    (void)snprintf(line, sizeof(line), "%s   %s of %s tokens   %s   %.1f s", done, cv_count_text(progress->tokens).text,
                   cv_count_text(progress->tokens_limit).text, pace.text, (double)progress->elapsed_ms / 1000);
  }
  size_t most = size <= COLUMNS ? size - 1 : COLUMNS, n = strnlen(line, most);
  memcpy(to, line, n);
  to[n] = '\0';
}

/* ---- the terminal ---- */

/* The value of the first of these variables that is set and not empty; "" if none is. */
static const char *first_set(const char *const *name, size_t names) {
  for (size_t i = 0; i < names; i++) {
    const char *value = getenv(name[i]);
    if (value != NULL && value[0] != '\0') {
      return value;
    }
  }
  return "";
}

static bool speaks_utf8(void) {
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  const char *locale = first_set(names, CV_COUNT(names));
  return strcasestr(locale, "UTF-8") != NULL || strcasestr(locale, "UTF8") != NULL;
}

/* NO_COLOR: https://no-color.org. */
static bool takes_colour(void) {
  static const char *const names[] = {"NO_COLOR"};
  return first_set(names, 1)[0] == '\0';
}

static bool moves_its_cursor(void) {
  static const char *const names[] = {"TERM"};
  const char *term = first_set(names, 1);
  return term[0] != '\0' && strcmp(term, "dumb") != 0;
}

/* Asked before each drawing, since the window may have changed. False: no room for a table. */
static bool measure(const struct cv_view *view, struct cv_live_screen *ret) {
  struct winsize size = {.ws_col = 80, .ws_row = 24};
  if (ioctl(fileno(view->to), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    size = (struct winsize){.ws_col = 80, .ws_row = 24};
  }
  *ret = (struct cv_live_screen){
      .columns = size.ws_col, .lines = size.ws_row, .has_colour = takes_colour(), .has_utf8 = speaks_utf8()};
  return size.ws_col >= CV_LIVE_COLUMNS_MIN && size.ws_row >= CV_LIVE_LINES_MIN;
}

/* ---- the view ---- */

void cv_view_init(struct cv_view *view, FILE *to) {
  *view = (struct cv_view){.to = to, .is_terminal = isatty(fileno(to)) == 1 && moves_its_cursor()};
}

void cv_view_fini(struct cv_view *view) {
  free(view->standing);
  free(view->order);
  cv_buf_fini(&view->drawn);
  *view = (struct cv_view){0};
}

void cv_view_know(struct cv_view *view, enum cv_policy_kind kind, uint64_t epsilon_micro, const char *const *name) {
  view->live.kind = kind;
  view->live.epsilon_micro = epsilon_micro;
  view->live.name = name;
}

enum cv_err cv_view_stand(struct cv_view *view, const struct cv_standing *standing, uint32_t arms) {
  if (!view->is_terminal) {
    return CV_OK;
  }
  struct cv_standing *to = realloc(view->standing, arms * sizeof(*to));
  view->standing = to == NULL ? view->standing : to;
  uint32_t *order = realloc(view->order, arms * sizeof(*order));
  view->order = order == NULL ? view->order : order;
  if (to == NULL || order == NULL) {
    view->arms = 0;
    return CV_ERR_NOMEM;
  }
  memset(to, 0, arms * sizeof(*to));
  for (uint32_t i = 0; i < arms; i++) {
    to[standing[i].arm < arms ? standing[i].arm : i] = standing[i];
  }
  cv_live_order(view->live.kind, to, arms, order);
  view->arms = arms;
  return CV_OK;
}

/* Puts the cursor at the first line of the table that is shown, and clears from there. */
static void rub_out(struct cv_view *view) {
  if (view->shown_lines > 0) {
    (void)fprintf(view->to, "\r\033[%uA\033[J", view->shown_lines);
  }
  view->shown_lines = 0;
}

/* Rewrites the table in place, in one write, each line over its predecessor, so that nothing flickers. A line that is
 * wider than it counts must not wrap, or the cursor would be lost. */
static void draw_table(struct cv_view *view, const struct cv_progress *progress, const struct cv_live_screen *screen) {
  bool stands = view->arms > 0 && view->arms == progress->arms;
  view->live.progress = *progress;
  view->live.standing = stands ? view->standing : NULL;
  view->live.order = stands ? view->order : NULL;
  cv_buf_clear(&view->drawn);
  unsigned lines = cv_live_draw(&view->live, screen, &view->drawn);
  if (!cv_buf_ok(&view->drawn)) {
    return;
  }
  if (view->shown_lines > 0) {
    (void)fprintf(view->to, "\r\033[%uA", view->shown_lines);
  }
  (void)fprintf(view->to, "\033[?7l");
  const char *at = (const char *)view->drawn.data, *end = at + view->drawn.len;
  for (const char *next; at < end; at = next) {
    next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
    /* Cleared first: at the right margin the cursor stays on the last character, which would be cleared after it. */
    (void)fprintf(view->to, "\033[K%.*s\n", (int)(next - at - 1), at);
  }
  (void)fprintf(view->to, "\033[J\033[?7h");
  view->shown_lines = lines;
}

void cv_view_show(struct cv_view *view, const struct cv_progress *progress, uint64_t now_ms) {
  struct cv_live_screen screen;
  bool has_table = view->is_terminal && measure(view, &screen);
  uint64_t pause_ms = has_table ? TERMINAL_MS : PLAIN_MS;
  char line[COLUMNS + 1];
  if (view->shown_ms != 0 && now_ms - view->shown_ms < pause_ms) {
    return;
  }
  view->shown_ms = now_ms;
  if (has_table) {
    draw_table(view, progress, &screen);
  } else {
    rub_out(view);
    cv_view_line(progress, line, sizeof(line));
    (void)fprintf(view->to, "%s\n", line);
  }
  (void)fflush(view->to);
}

void cv_view_end(struct cv_view *view) {
  if (view->shown_lines > 0) {
    rub_out(view);
    (void)fflush(view->to);
  }
}
