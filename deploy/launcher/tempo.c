/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/tempo.h"

#include <math.h>
#include <stdio.h>

double cv_tempo_rate(uint32_t brokers) {
  return brokers == 2 ? CV_TEMPO_RATE_TWO : CV_TEMPO_RATE;
}

double cv_tempo_people(const struct cv_tempo *tempo, double tokens, double most) {
  return ceil(fmax(tokens / tempo->each, tempo->each_item > 0 ? most / tempo->each_item : 0));
}

double cv_tempo_seconds(const struct cv_tempo *tempo, double tokens, double rounds, double people) {
  double seconds = tokens / tempo->rate + rounds * CV_TEMPO_ROUND_MS / 1000;
  return tempo->people_per_hour > 0 ? fmax(seconds, people / tempo->people_per_hour * 3600) : seconds;
}

struct cv_tempo_text cv_tempo_text(double seconds) {
  struct cv_tempo_text out;
  static const struct {
    double below, unit;
    const char *noun;
  } units[] = {{9.95, 1, NULL},
               {100, 1, "s"},
               {5400, 60, "minutes"},
               {172800, 3600, "hours"},
               {(double)INFINITY, 86400, "days"}};
  size_t i = 0;
  while (seconds >= units[i].below) {
    i++;
  }
  if (units[i].noun == NULL) {
    (void)snprintf(out.text, sizeof(out.text), "%.1f s", fmax(seconds, .1));
  } else {
    (void)snprintf(out.text, sizeof(out.text), "%.0f %s", seconds / units[i].unit, units[i].noun);
  }
  return out;
}
