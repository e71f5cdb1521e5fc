/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists seeds whose instance of the demo's campaign (20 means from N(0.5, 10) clipped to [0,1], alpha 0.1) has no arm
 * closer than a given distance to a class boundary: bench-instances [COUNT] [DISTANCE]. For tests/bench/accuracy.py.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/quality/quality.h"
#include "worker/quality/truth.h"

enum { ARMS = 20 };

int main(int argc, char **argv) {
  int count = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 20;
  double distance = argc > 2 ? strtod(argv[2], NULL) : 0.02;
  for (uint64_t seed = 1; count > 0; seed++) {
    double mean[ARMS];
    uint32_t rank_class[ARMS];
    cv_quality_draw_instance(seed, 0.5, 10, ARMS, mean);
    (void)cv_truth_classes(mean, ARMS, 0.1, rank_class);
    double gap = cv_truth_gap(mean, ARMS, 0.1, rank_class);
    if (gap >= distance) {
      (void)printf("%" PRIu64 " %.4f\n", seed, gap);
      count--;
    }
  }
  return 0;
}
