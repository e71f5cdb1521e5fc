/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a campaign goes on, and counts as people read them. */
#ifndef CV_LAUNCHER_PACE_H
#define CV_LAUNCHER_PACE_H

#include "proto/codec/order.h"

/* Formats 1234567 as 1,234,567. */
struct cv_count_text {
  char text[32];
};
struct cv_count_text cv_count_text(uint64_t count);
/* Returns tokens per second over the whole campaign; 0 at its start. */
double cv_view_rate(const struct cv_progress *progress);
/* "97,412/s", or what the campaign waits for. */
struct cv_view_pace {
  char text[CV_NAME_BYTES + 32];
};
struct cv_view_pace cv_view_pace(const struct cv_progress *progress);

#endif
