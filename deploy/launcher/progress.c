/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/progress.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/base/grid.h"

enum { TERMINAL_MS = 200, PLAIN_MS = 2000, COLUMNS = 79 };

struct cv_count_text cv_count_text(uint64_t count) {
  char digits[24];
  struct cv_count_text out;
  size_t n = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count), at = 0;
  for (size_t i = 0; i < n; i++) {
    if (i > 0 && (n - i) % 3 == 0) {
      out.text[at++] = ',';
    }
    out.text[at++] = digits[i];
  }
  out.text[at] = '\0';
  return out;
}

double cv_view_rate(const struct cv_progress *progress) {
  return progress->elapsed_ms == 0 ? 0 : (double)progress->tokens * 1000 / (double)progress->elapsed_ms;
}

void cv_view_line(const struct cv_progress *progress, char *to, size_t size) {
  char done[64], pace[CV_NAME_BYTES + 32], line[700];
  if (progress->decided > 0) {
    (void)snprintf(done, sizeof(done), "%u of %u ranked, class %u", progress->decided, progress->arms,
                   progress->classes);
  } else { /* a ranking without a class yet, or a policy that does not rank */
    (void)snprintf(done, sizeof(done), "plan %s", cv_count_text(progress->plans).text);
  }
  /* Why there is no progress matters more than the rate. */
  if (!progress->thirdparty_connected) {
    (void)snprintf(pace, sizeof(pace), "no third-party yet");
  } else if (progress->waits_for[0] != '\0') {
    (void)snprintf(pace, sizeof(pace), "waits for thirdparty/%s", progress->waits_for);
  } else if (progress->workers == 0) {
    (void)snprintf(pace, sizeof(pace), "no workers yet");
  } else {
    (void)snprintf(pace, sizeof(pace), "%s/s", cv_count_text((uint64_t)(cv_view_rate(progress) + 0.5)).text);
  }
  if (progress->budget_micro > 0) {
    (void)snprintf(line, sizeof(line), "paid %.10g of %.10g   %s tokens   %s   %.1f s",
                   (double)progress->paid_micro / (double)CV_MICRO, (double)progress->budget_micro / (double)CV_MICRO,
                   cv_count_text(progress->tokens).text, pace, (double)progress->elapsed_ms / 1000);
  } else {
    (void)snprintf(line, sizeof(line), "%s   %s of %s tokens   %s   %.1f s", done, cv_count_text(progress->tokens).text,
                   cv_count_text(progress->tokens_limit).text, pace, (double)progress->elapsed_ms / 1000);
  }
  size_t most = size <= COLUMNS ? size - 1 : COLUMNS, n = strnlen(line, most);
  memcpy(to, line, n);
  to[n] = '\0';
}

void cv_view_init(struct cv_view *view, FILE *to) {
  *view = (struct cv_view){.to = to, .is_terminal = isatty(fileno(to)) == 1};
}

void cv_view_show(struct cv_view *view, const struct cv_progress *progress, uint64_t now_ms) {
  uint64_t pause_ms = view->is_terminal ? TERMINAL_MS : PLAIN_MS;
  char line[COLUMNS + 1];
  if (view->shown_ms != 0 && now_ms - view->shown_ms < pause_ms) {
    return;
  }
  view->shown_ms = now_ms;
  cv_view_line(progress, line, sizeof(line));
  (void)fprintf(view->to, view->is_terminal ? "\r%s\033[K" : "%s\n", line);
  view->is_open = view->is_terminal;
  (void)fflush(view->to);
}

void cv_view_end(struct cv_view *view) {
  if (view->is_open) {
    (void)fprintf(view->to, "\r\033[K");
    (void)fflush(view->to);
  }
  view->is_open = false;
}
