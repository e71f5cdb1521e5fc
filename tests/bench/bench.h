/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the benchmarks of inner loops: the CPU time of this thread, and the median of several runs. */
#ifndef CV_BENCH_H
#define CV_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CV_BENCH_RUNS = 9 };

static inline double cv_bench_seconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int cv_bench_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* `work` does `units` units of work and returns a number, so that the compiler cannot remove the work. Prints one
 * line. */
static inline void cv_bench(const char *what, const char *unit, double units, uint64_t (*work)(void *), void *arg) {
  double rate[CV_BENCH_RUNS];
  uint64_t check = 0;
  for (int run = 0; run < CV_BENCH_RUNS; run++) {
    double start = cv_bench_seconds();
    check ^= work(arg);
    rate[run] = units / (cv_bench_seconds() - start);
  }
  qsort(rate, CV_BENCH_RUNS, sizeof(*rate), cv_bench_compare);
  double median = rate[CV_BENCH_RUNS / 2], best = rate[CV_BENCH_RUNS - 1];
  printf("%-44s median %10.2f million %s a CPU second, best %10.2f (%.2f ns each; %04x)\n", what, median / 1e6, unit,
         best / 1e6, 1e9 / median, (unsigned)(check & 0xffff));
}

#endif
