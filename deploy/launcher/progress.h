/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line of a running campaign: rewritten in place on a terminal, else a new line every two seconds. */
#ifndef CV_LAUNCHER_PROGRESS_H
#define CV_LAUNCHER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/codec/order.h"

/* Formats 1234567 as 1,234,567. */
struct cv_count_text {
  char text[32];
};
struct cv_count_text cv_count_text(uint64_t count);
/* Returns tokens per second over the whole campaign; 0 at its start. */
double cv_view_rate(const struct cv_progress *progress);
/* "14 of 20 ranked, class 2   1,245,678 of 5,000,000 tokens   97,412/s   12.4 s", at most 79 columns; "plan 7" instead
 * of the first part while nothing is ranked. */
void cv_view_line(const struct cv_progress *progress, char *to, size_t size);

struct cv_view {
  FILE *to;
  bool is_terminal;
  bool is_open; /* the terminal shows a line without a newline */
  uint64_t shown_ms;
};

/* `to` must outlive the view. */
void cv_view_init(struct cv_view *view, FILE *to);
/* Prints the progress, unless the last line is too recent (0.2 s on a terminal, else 2 s). `now_ms` is monotonic. */
void cv_view_show(struct cv_view *view, const struct cv_progress *progress, uint64_t now_ms);
/* Clears the line on a terminal, for the output that follows. */
void cv_view_end(struct cv_view *view);

#endif
