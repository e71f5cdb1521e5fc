/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/sampler/sampler.h"

#include <math.h>

#include "common/base/err.h"
#include "simulate/sampler/kernels.h"

static bool runs_anywhere(void) {
  return true;
}

#ifdef __x86_64__
static bool has_avx2(void) {
  return __builtin_cpu_supports("avx2") != 0;
}

static bool has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static const struct cv_sampler_kernel table[] = {
    {.name = "plain",
     .runs = runs_anywhere,
     .bernoulli = cv_sampler_bernoulli_plain,
     .clipped_normal = cv_clipped_normal_plain},
#ifdef __x86_64__
    {.name = "avx2",
     .runs = has_avx2,
     .bernoulli = cv_sampler_bernoulli_avx2,
     .clipped_normal = cv_clipped_normal_avx2},
    {.name = "avx512",
     .runs = has_avx512,
     .bernoulli = cv_sampler_bernoulli_avx512,
     .clipped_normal = cv_clipped_normal_avx512},
#endif
};

const struct cv_sampler_kernel *cv_sampler_kernel_at(size_t index) {
  return index < CV_COUNT(table) ? &table[index] : NULL;
}

const char *cv_sampler_kernel_name(const struct cv_sampler_kernel *kernel) {
  return kernel->name;
}

bool cv_sampler_kernel_runs(const struct cv_sampler_kernel *kernel) {
  return kernel->runs();
}

static const struct cv_sampler_kernel *best_kernel(void) {
  size_t i = CV_COUNT(table) - 1; /* the fastest last; the plain kernel, the first, always runs */
  while (!table[i].runs()) {
    i--;
  }
  return &table[i];
}

void cv_sampler_init(struct cv_sampler *sampler, uint64_t seed, uint64_t a, uint64_t b, uint64_t c) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, seed, a, b, c);
  for (size_t word = 0; word < CV_COUNT(sampler->state); word++) {
    for (size_t lane = 0; lane < CV_SAMPLER_LANES; lane++) {
      sampler->state[word][lane] = cv_rng_u64(&rng.rng);
    }
  }
  sampler->kernel = best_kernel();
}

uint64_t cv_sampler_bernoulli_sum(struct cv_sampler *sampler, uint64_t count, double p) {
  CV_REQUIRE(p >= 0 && p <= 1);
  /* Kernels compare with the binary expansion below the point, which 1 does not have. */
  if (p == 0 || p == 1) {
    return p == 0 ? 0 : count;
  }
  return sampler->kernel->bernoulli(sampler, count, p);
}

int64_t cv_sampler_clipped_normal_sum(struct cv_sampler *sampler, uint64_t count, double mean, double sd) {
  CV_REQUIRE(isfinite(mean) && isfinite(sd) && sd >= 0);
  return (int64_t)sampler->kernel->clipped_normal(sampler, count, mean, sd);
}
