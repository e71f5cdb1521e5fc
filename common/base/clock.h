/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two clocks. Only shells read them; pure code takes times as arguments.
 *
 * A test may keep them in a file, which the process then follows: time stands still until the test writes a later one.
 * So no limit is reached because a machine is slow, and each can be reached at once and in a chosen order. Whoever
 * writes the file decides about every lease and deadline: not for a party that protects anybody.
 *
 * Work is not paced by these clocks: the pauses between two batches or pieces of work are real (uv_timer_t).
 */
#ifndef CV_BASE_CLOCK_H
#define CV_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

/* Monotonic milliseconds since an unspecified start. */
uint64_t cv_clock_mono_ms(void);
/* Milliseconds since 1970, UTC; may jump. */
uint64_t cv_clock_wall_ms(void);

/* ---- of a test ---- */

enum { CV_CLOCK_FOLLOWERS = 255 };

/* The file: numbers of the machine's byte order. The test makes and writes the times; each process that follows takes
 * a free entry and writes there. */
struct cv_clock_file {
  uint64_t mono_ms, wall_ms;
  struct cv_clock_follower {
    uint64_t pid;     /* 0: free */
    uint64_t seen_ms; /* all that was due by this mono_ms has begun */
  } follower[CV_CLOCK_FOLLOWERS];
};

/* Follows the clocks of the file from here on, until the process ends. CV_ERR_IO, CV_ERR_FORMAT, CV_ERR_LIMIT. */
CV_MUST_USE enum cv_err cv_clock_follow(const char *path, struct cv_why *why);
bool cv_clock_is_followed(void);
/* How long to sleep at a time, in real milliseconds, of `ms` that are left to wait: less if the clock is a test's. */
unsigned cv_clock_sleep_ms(uint64_t ms);
/* Tells the test that all that was due by `mono_ms` has begun. */
void cv_clock_tell_seen(uint64_t mono_ms);

#endif
