/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws a second on one core. The costs: for Bernoulli tokens the eleven operations of xoshiro256++ for each of 2.2
 * bits a token; for binomial draws two divisions and the mispredicted branches of a rejection.
 */
#include "simulate/sampler/sampler.h"

#include "common/base/err.h"
#include "tests/bench/bench.h"

struct tokens {
  struct cv_sampler sampler;
  uint64_t calls, count;
  double p;
};

static uint64_t bernoulli(void *arg) {
  struct tokens *tokens = arg;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < tokens->calls; i++) {
    sum += cv_sampler_bernoulli_sum(&tokens->sampler, tokens->count, tokens->p);
  }
  return sum;
}

static uint64_t clipped_normal(void *arg) {
  struct tokens *tokens = arg;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < tokens->calls; i++) {
    sum += (uint64_t)cv_sampler_clipped_normal_sum(&tokens->sampler, tokens->count, tokens->p, 0.2);
  }
  return sum;
}

static void measure_tokens(void) {
  for (size_t k = 0; cv_sampler_kernel_at(k) != NULL; k++) {
    const struct cv_sampler_kernel *kernel = cv_sampler_kernel_at(k);
    if (!cv_sampler_kernel_runs(kernel)) {
      continue;
    }
    const struct { uint64_t calls, count; } sizes[] = {{20, 10000000}, {20000, 6000}, {100000, 600}};
    for (size_t i = 0; i < CV_COUNT(sizes); i++) {
      struct tokens tokens = {.calls = sizes[i].calls, .count = sizes[i].count, .p = 0.3};
      cv_sampler_init(&tokens.sampler, 1, CV_RNG_SCORE, 0, 0);
      tokens.sampler.kernel = kernel;
      char what[64];
      (void)snprintf(what, sizeof(what), "bernoulli(.3), %s, %llu a call", cv_sampler_kernel_name(kernel),
                     (unsigned long long)sizes[i].count);
      cv_bench(what, "tokens", (double)(tokens.calls * tokens.count), bernoulli, &tokens);
      tokens.calls = tokens.calls / 10;
      (void)snprintf(what, sizeof(what), "clipped normal, %s, %llu a call", cv_sampler_kernel_name(kernel),
                     (unsigned long long)sizes[i].count);
      cv_bench(what, "tokens", (double)(tokens.calls * tokens.count), clipped_normal, &tokens);
    }
  }
}

struct draws {
  struct cv_rng_seeded rng;
  struct cv_binomial law;
  uint64_t calls, n;
  double p;
};

static uint64_t one_by_one(void *arg) {
  struct draws *draws = arg;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < draws->calls; i++) {
    struct cv_binomial law;
    cv_binomial_init(&law, draws->n, draws->p);
    sum += cv_binomial_draw(&law, &draws->rng.rng);
  }
  return sum;
}

static uint64_t prepared(void *arg) {
  struct draws *draws = arg;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < draws->calls; i++) {
    sum += cv_binomial_draw(&draws->law, &draws->rng.rng);
  }
  return sum;
}

static void measure_draws(void) {
  const struct {
    uint64_t n;
    double p;
  } laws[] = {{10, 0.3}, {6000, 1e-3}, {6000, 0.01}, {6000, 0.3}, {600000, 0.7}, {UINT64_C(1) << 40, 0.5}};
  for (size_t i = 0; i < CV_COUNT(laws); i++) {
    struct draws draws = {.calls = 2000000, .n = laws[i].n, .p = laws[i].p};
    cv_rng_seeded_init(&draws.rng, 1, CV_RNG_SCORE, 0, 0);
    cv_binomial_init(&draws.law, draws.n, draws.p);
    char what[64];
    (void)snprintf(what, sizeof(what), "binomial(%llu, %g)", (unsigned long long)draws.n, draws.p);
    cv_bench(what, "draws", (double)draws.calls, one_by_one, &draws);
    (void)snprintf(what, sizeof(what), "binomial(%llu, %g), prepared", (unsigned long long)draws.n, draws.p);
    cv_bench(what, "draws", (double)draws.calls, prepared, &draws);
  }
}

int main(void) {
  measure_tokens();
  measure_draws();
  return 0;
}
