/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a running campaign: a live table on a terminal (live.h), else a new line every two seconds. */
#ifndef CV_LAUNCHER_PROGRESS_H
#define CV_LAUNCHER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "deploy/launcher/live.h"
#include "deploy/launcher/pace.h"
#include "proto/codec/order.h"

/* "14 of 20 ranked, class 2   1,245,678 of 5,000,000 tokens   97,412/s   12.4 s", at most 79 columns; "plan 7" instead
 * of the first part while nothing is ranked. */
void cv_view_line(const struct cv_progress *progress, char *to, size_t size);

struct cv_view {
  FILE *to;
  bool is_terminal; /* one that moves its cursor */
  uint64_t shown_ms;
  unsigned shown_lines; /* of the table on the terminal, above the cursor */
  struct cv_live live;
  /* owned; of each arm after the latest plan, and the order of the rows; arms 0: not known */
  struct cv_standing *standing;
  uint32_t *order, arms;
  struct cv_buf drawn;
};

/* `to` must outlive the view. */
void cv_view_init(struct cv_view *view, FILE *to);
void cv_view_fini(struct cv_view *view);
/* What the caller knows of the campaign. `name` of each arm is borrowed; NULL: not known. */
void cv_view_know(struct cv_view *view, enum cv_policy_kind kind, uint64_t epsilon_micro, const char *const *name);
/* Takes the standings of all arms, for the table. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_view_stand(struct cv_view *view, const struct cv_standing *standing, uint32_t arms);
/* Shows the progress, unless it was shown too recently (0.2 s on a terminal, else 2 s). `now_ms` is monotonic. */
void cv_view_show(struct cv_view *view, const struct cv_progress *progress, uint64_t now_ms);
/* Clears the table on a terminal, for the output that follows. */
void cv_view_end(struct cv_view *view);

#endif
