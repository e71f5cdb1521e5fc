/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/pace.h"

#include <math.h>
#include <stdio.h>

/* Time constant: after this many seconds a piece counts 1/e. */
#define MEMORY_SECONDS 60.0

void cv_lab_pace_init(struct cv_lab_pace *pace, size_t total, double now) {
  *pace = (struct cv_lab_pace){.total = total, .began = now, .last = now};
}

void cv_lab_pace_step(struct cv_lab_pace *pace, double now) {
  /* Settings differ in cost, so the rate follows the recent pieces, not the average over the whole run. */
  double gap = fmax(now - pace->last, 0), kept = exp(-gap / MEMORY_SECONDS);
  pace->pieces = pace->pieces * kept + 1;
  pace->seconds = pace->seconds * kept + gap;
  pace->last = now;
  pace->done++;
}

double cv_lab_pace_rate(const struct cv_lab_pace *pace) {
  return pace->seconds > 0 ? pace->pieces / pace->seconds : 0;
}

double cv_lab_pace_left(const struct cv_lab_pace *pace) {
  double rate = cv_lab_pace_rate(pace);
  return rate > 0 ? (double)(pace->total - pace->done) / rate : (double)NAN;
}

struct span {
  char text[32];
};

static struct span span_of(double seconds) {
  struct span span;
  unsigned long whole = (unsigned long)fmin(fmax(round(seconds), 0), 1e9);
  if (whole < 60) {
    (void)snprintf(span.text, sizeof(span.text), "%lu s", whole);
  } else if (whole < 3600) {
    (void)snprintf(span.text, sizeof(span.text), "%lu min %lu s", whole / 60, whole % 60);
  } else {
    (void)snprintf(span.text, sizeof(span.text), "%lu h %lu min", whole / 3600, whole / 60 % 60);
  }
  return span;
}

void cv_lab_pace_print(const struct cv_lab_pace *pace, double now, char *to, size_t size) {
  struct span so_far = span_of(now - pace->began);
  char rate[40] = "", left[64] = "";
  if (cv_lab_pace_rate(pace) > 0) {
    (void)snprintf(rate, sizeof(rate), " %.3g a second,", cv_lab_pace_rate(pace));
    (void)snprintf(left, sizeof(left), ", about %s left", span_of(cv_lab_pace_left(pace)).text);
  }
  (void)snprintf(to, size, "%zu of %zu,%s %s%s", pace->done, pace->total, rate, so_far.text,
                 pace->done == pace->total ? "" : left);
}
