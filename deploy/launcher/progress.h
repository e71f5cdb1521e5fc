/* SPDX-License-Identifier: Apache-2.0 */
/* How a running campaign looks: one line that is rewritten on a terminal, elsewhere a line now and then. */
#ifndef CV_LAUNCHER_PROGRESS_H
#define CV_LAUNCHER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/codec/order.h"

/* 1234567 as 1,234,567. */
struct cv_count_text {
  char text[32];
};
struct cv_count_text cv_count_text(uint64_t count);
/* Columns that clean UTF-8 takes, a column a character. */
size_t cv_text_columns(const char *text);
/* Tokens a second over the whole campaign; 0 at its start. */
double cv_progress_rate(const struct cv_progress *progress);
/* "14 of 20 ranked, class 2   1,245,678 of 5,000,000 tokens   97,412/s   12.4 s", at most 79 columns; "plan 7" in place
 * of the ranking where nothing is ranked (yet). */
void cv_progress_line(const struct cv_progress *progress, char *to, size_t size);

struct cv_progress_view {
  FILE *to;
  bool is_terminal;
  bool is_open; /* a line is there that has no end yet */
  uint64_t shown_ms;
};

/* `to` is borrowed for as long. */
void cv_progress_view_init(struct cv_progress_view *view, FILE *to);
/* Shows it, unless something was shown a moment ago. `now_ms` is monotonic. */
void cv_progress_show(struct cv_progress_view *view, const struct cv_progress *progress, uint64_t now_ms);
/* Leaves the terminal with an empty line to write on. */
void cv_progress_end(struct cv_progress_view *view);

#endif
