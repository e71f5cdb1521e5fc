/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "common/base/err.h"
#include "simulate/sampler/sampler.h"
#include "tests/unit/sampler/law.h"
#include "tests/unit/sampler/reference.h"

static const double probabilities[] = {0.5, 0.25, 0.3, 2.0 / 3, 0.999, 1e-3, 0x1p-53, 1 - 0x1p-53, 1e-9, 0x1p-1074};
static const uint64_t counts[] = {0, 1, 63, 64, 65, 511, 512, 513, 1024, 6000, 100003};

/* The law again, one token at a time: the bits of p in groups of four, and so the words of each lane. */
static uint64_t reference_sum(struct reference *from, uint64_t count, double p) {
  uint64_t ones = 0;
  for (; count > 0 && p > 0; p = p * 16 - floor(p * 16)) {
    uint64_t digit = (uint64_t)floor(p * 16), open = 0;
    for (uint64_t start = 0; start < count; start += 512) {
      uint64_t word[4][CV_SAMPLER_LANES];
      for (size_t bit = 0; bit < 4; bit++) {
        for (size_t lane = 0; lane < CV_SAMPLER_LANES; lane++) {
          word[bit][lane] = lane_next(from, lane);
        }
      }
      for (uint64_t token = 0; token < 512 && start + token < count; token++) {
        uint64_t drawn = 0;
        for (size_t bit = 0; bit < 4; bit++) {
          drawn |= (word[bit][token / 64] >> token % 64 & 1) << bit;
        }
        ones += drawn < digit;
        open += drawn == digit;
      }
    }
    count = open;
  }
  return ones;
}

static void test_all_kernels_agree_with_one_token_at_a_time(void **state) {
  for (size_t k = 0; cv_sampler_kernel_at(k) != NULL; k++) {
    const struct cv_sampler_kernel *kernel = cv_sampler_kernel_at(k);
    if (!cv_sampler_kernel_runs(kernel)) {
      print_message("this processor does not run %s\n", cv_sampler_kernel_name(kernel));
      continue;
    }
    struct cv_sampler sampler;
    struct reference reference;
    cv_sampler_init(&sampler, 1, CV_RNG_SCORE, 2, 3);
    sampler.kernel = kernel;
    memcpy(reference.state, sampler.state, sizeof(reference.state));
    for (size_t i = 0; i < CV_COUNT(probabilities); i++) {
      for (size_t j = 0; j < CV_COUNT(counts); j++) {
        uint64_t expected = reference_sum(&reference, counts[j], probabilities[i]);
        assert_int_equal(cv_sampler_bernoulli_sum(&sampler, counts[j], probabilities[i]), expected);
        assert_memory_equal(sampler.state, reference.state, sizeof(reference.state));
      }
    }
  }
}

static void test_sums_follow_the_binomial_law(void **state) {
  enum { DRAWS = 200000, VALUES = 1024 };
  const struct {
    uint64_t n;
    double p;
  } laws[] = {{1, 0.3}, {10, 0.5}, {64, 2.0 / 3}, {100, 0.01}, {513, 0.9}, {700, 1.0 / 3}, {1000, 1e-3}};
  for (size_t i = 0; i < CV_COUNT(laws); i++) {
    uint64_t count[VALUES] = {0};
    double expected[VALUES] = {0};
    struct cv_sampler sampler;
    cv_sampler_init(&sampler, 2, CV_RNG_SCORE, i, 0);
    for (int draw = 0; draw < DRAWS; draw++) {
      count[cv_sampler_bernoulli_sum(&sampler, laws[i].n, laws[i].p)]++;
    }
    for (uint64_t k = 0; k <= laws[i].n; k++) {
      expected[k] = binomial_probability((double)laws[i].n, laws[i].p, (double)k);
    }
    char what[64];
    (void)snprintf(what, sizeof(what), "%llu tokens of %g", (unsigned long long)laws[i].n, laws[i].p);
    assert_law(count, expected, VALUES, DRAWS, what);
  }
}

/* A bias of one part in 10^4 would be detected. */
static void test_many_tokens_have_their_mean(void **state) {
  const double p[] = {0.5, 0.3, 0.95, 1e-3, 0x1.8p-20};
  for (size_t i = 0; i < CV_COUNT(p); i++) {
    const double n = 4e9;
    struct cv_sampler sampler;
    cv_sampler_init(&sampler, 3, CV_RNG_SCORE, i, 0);
    double z = ((double)cv_sampler_bernoulli_sum(&sampler, (uint64_t)n, p[i]) - n * p[i]) / sqrt(n * p[i] * (1 - p[i]));
    assert_true(fabs(z) < 5);
  }
}

static void test_sure_tokens(void **state) {
  struct cv_sampler sampler;
  cv_sampler_init(&sampler, 4, CV_RNG_SCORE, 0, 0);
  assert_int_equal(cv_sampler_bernoulli_sum(&sampler, 1000, 0), 0);
  assert_int_equal(cv_sampler_bernoulli_sum(&sampler, 1000, 1), 1000);
  assert_int_equal(cv_sampler_bernoulli_sum(&sampler, UINT64_C(1) << 40, 1), UINT64_C(1) << 40);
  assert_int_equal(cv_sampler_bernoulli_sum(&sampler, 1000, 0x1p-1074), 0);
}

/* Lanes and streams are independent: no two of them are equal, and the same name gives the same stream. */
static void test_streams_are_named(void **state) {
  struct cv_sampler one, same, other;
  cv_sampler_init(&one, 5, CV_RNG_SCORE, 1, 2);
  cv_sampler_init(&same, 5, CV_RNG_SCORE, 1, 2);
  cv_sampler_init(&other, 5, CV_RNG_SCORE, 2, 1);
  assert_memory_equal(one.state, same.state, sizeof(one.state));
  assert_memory_not_equal(one.state, other.state, sizeof(one.state));
  for (size_t i = 0; i < CV_SAMPLER_LANES; i++) {
    for (size_t j = 0; j < i; j++) {
      assert_int_not_equal(one.state[0][i], one.state[0][j]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_kernels_agree_with_one_token_at_a_time),
      cmocka_unit_test(test_sums_follow_the_binomial_law),
      cmocka_unit_test(test_many_tokens_have_their_mean),
      cmocka_unit_test(test_sure_tokens),
      cmocka_unit_test(test_streams_are_named),
  };
  return cmocka_run_group_tests_name("bernoulli", tests, NULL, NULL);
}
