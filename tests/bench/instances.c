/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists seeds whose instance of the demo's campaign (20 means from N(0.5, 10) clipped to [0,1], alpha 0.1) has no arm
 * closer than a given distance to a class boundary: bench-instances [COUNT] [DISTANCE]. For tests/bench/accuracy.py.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/quality/quality.h"
#include "worker/quality/truth.h"

enum { ARMS = 20 };
#define ALPHA 0.1

static bool leads_its_class(const double *mean, const uint32_t *rank_class, uint32_t arm) {
  for (uint32_t i = 0; i < ARMS; i++) {
    if (rank_class[i] == rank_class[arm] && (mean[i] > mean[arm] || (mean[i] == mean[arm] && i < arm))) {
      return false;
    }
  }
  return true;
}

/* The smallest distance of an arm to the boundary of its class or of a better one. */
static double gap_of(const double *mean, const uint32_t *rank_class) {
  double gap = HUGE_VAL;
  for (uint32_t best = 0; best < ARMS; best++) {
    for (uint32_t i = 0; leads_its_class(mean, rank_class, best) && i < ARMS; i++) {
      if (i != best && rank_class[i] >= rank_class[best]) {
        gap = fmin(gap, fabs(mean[i] - (mean[best] - ALPHA)));
      }
    }
  }
  return gap;
}

int main(int argc, char **argv) {
  int count = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 20;
  double distance = argc > 2 ? strtod(argv[2], NULL) : 0.02;
  if (count <= 0 || !(distance > 0 && distance < 1)) {
    (void)fprintf(stderr, "usage: bench-instances [COUNT] [DISTANCE]\n");
    return 2;
  }
  for (uint64_t seed = 1; count > 0; seed++) {
    double mean[ARMS];
    uint32_t rank_class[ARMS];
    cv_quality_draw_instance(seed, 0.5, 10, ARMS, mean);
    (void)cv_truth_classes(mean, ARMS, ALPHA, rank_class);
    double gap = gap_of(mean, rank_class);
    if (gap >= distance) {
      (void)printf("%" PRIu64 " %.4f\n", seed, gap);
      count--;
    }
  }
  return 0;
}
