/* SPDX-License-Identifier: Apache-2.0 */
/* How long tokens take: at the rate of programs, or of people. */
#ifndef CV_LAUNCHER_TEMPO_H
#define CV_LAUNCHER_TEMPO_H

#include <stdint.h>

/* Measured with all parties and two gateways of virtual workers on one machine with two cores; docs/operations.md
 * says how. */
#define CV_TEMPO_RATE       550000 /* tokens a second */
#define CV_TEMPO_RATE_TWO   100000 /* with two brokers */
#define CV_TEMPO_ROUND_MS   1.6    /* from the last token of a round to the first of the next */
#define CV_TEMPO_RATE_RANGE 1e12

struct cv_tempo {
  double rate;            /* tokens a second */
  double people_per_hour; /* 0: programs answer, at once */
  double each;            /* tokens that a person gives, answers to gold items apart */
  double each_item;       /* those of them about one item, at most; 0: no bound of its own */
};

/* The rate of programs with that many brokers; 0 is 1. */
double cv_tempo_rate(uint32_t brokers);
/* The people that it takes to give so many tokens, `most` of them about one item. */
double cv_tempo_people(const struct cv_tempo *tempo, double tokens, double most);
/* The seconds that so many tokens in so many rounds from so many people take. */
double cv_tempo_seconds(const struct cv_tempo *tempo, double tokens, double rounds, double people);

/* "0.4 s", "12 s", "3 minutes", "5 hours", "12 days": about two digits. */
struct cv_tempo_text {
  char text[32];
};
struct cv_tempo_text cv_tempo_text(double seconds);

#endif
