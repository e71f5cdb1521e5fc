/* SPDX-License-Identifier: Apache-2.0 */
/* The rate at which pieces of work complete, and the time left. Pure: time is an argument, in seconds of any clock. */
#ifndef CV_LAB_PACE_H
#define CV_LAB_PACE_H

#include <stddef.h>

struct cv_lab_pace {
  size_t total, done;
  double began, last;     /* `last`: when a piece last completed */
  double pieces, seconds; /* recent ones, exponentially weighted */
};

/* Starts with `total` pieces, none done. Times are seconds of any clock that only goes forward. */
void cv_lab_pace_init(struct cv_lab_pace *pace, size_t total, double now);
/* Counts one more completed piece. */
void cv_lab_pace_step(struct cv_lab_pace *pace, double now);
/* Recent pieces per second, 0 before the first; and the seconds that the rest takes at that rate, NAN if unknown. */
double cv_lab_pace_rate(const struct cv_lab_pace *pace);
double cv_lab_pace_left(const struct cv_lab_pace *pace);
/* Writes "120 of 720, 3.1 a second, 39 s, about 3 min 13 s left", cut to `size` > 0. */
void cv_lab_pace_print(const struct cv_lab_pace *pace, double now, char *to, size_t size);

#endif
