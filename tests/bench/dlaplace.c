/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Laplace draws a second on one core, from the daemons' random source and from the seeded one. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/grid.h"
#include "common/crypto/crypto.h"
#include "common/noise/dlaplace.h"

static double cpu_seconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void measure(const char *source, struct cv_rng *rng, uint64_t p, uint64_t q, long draws) {
  struct cv_dlaplace law;
  CV_REQUIRE(cv_dlaplace_init(&law, p, q) == CV_OK);
  double start = cpu_seconds();
  uint64_t sum = 0;
  for (long i = 0; i < draws; i++) {
    sum += (uint64_t)cv_dlaplace_draw(&law, rng);
  }
  double took = cpu_seconds() - start;
  printf("%-7s scale %llu/%llu: %.1f million draws a CPU second (sum %lld)\n", source, (unsigned long long)law.p,
         (unsigned long long)law.q, (double)draws / took / 1e6, (long long)sum);
}

int main(int argc, char **argv) {
  long draws = argc > 1 ? strtol(argv[1], NULL, 10) : 20000000;
  if (draws <= 0) {
    (void)fprintf(stderr, "usage: bench-dlaplace [DRAWS]\n");
    return 2;
  }
  static struct cv_drbg drbg;
  struct cv_rng_seeded seeded;
  cv_drbg_init(&drbg);
  cv_rng_seeded_init(&seeded, 1, CV_RNG_NOISE, 0, 0);
  const uint64_t scale[][2] = {{CV_GRID * 10, 1}, {CV_GRID * 2 * CV_MICRO, 300000}, {1, 2}};
  for (size_t i = 0; i < CV_COUNT(scale); i++) {
    measure("drbg", &drbg.rng, scale[i][0], scale[i][1], draws);
    measure("seeded", &seeded.rng, scale[i][0], scale[i][1], draws);
  }
  cv_drbg_fini(&drbg);
  return 0;
}
