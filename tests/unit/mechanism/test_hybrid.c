/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/grid.h"
#include "common/noise/dlaplace.h"
#include "tests/support/near.h"

enum { LONGEST = 300, EPSILON = 250000 /* micro */ };

static struct cv_mechanism *hybrid(uint64_t epsilon_micro) {
  struct cv_mechanism *mechanism = NULL;
  assert_int_equal(cv_mechanism_new(cv_mechanism_find("hybrid"), epsilon_micro, &mechanism), CV_OK);
  return mechanism;
}

static int64_t item(uint64_t n) {
  return (int64_t)(cv_mix64(n) % (uint64_t)(600 * CV_GRID));
}

static int64_t next(struct cv_mechanism *mechanism, struct cv_rng *rng, int64_t value) {
  cv_mechanism_draw(mechanism, rng);
  return cv_mechanism_release(mechanism, value);
}

/*
 * The definition, worked out anew for each n from the list of all noises: the exact prefix, the noises drawn at the
 * powers of two up to n, and those of the dyadic intervals into which (N, n] falls apart, largest first. noise[i] is
 * the one drawn for item i; an interval's was drawn for its last item.
 */
static int64_t defined(uint64_t n, const int64_t *noise) {
  int64_t sum = 0;
  for (uint64_t i = 1; i <= n; i++) {
    sum += item(i);
  }
  uint64_t end = 0;
  for (uint64_t power = 1; power <= n; power *= 2) {
    sum += noise[power];
    end = power;
  }
  for (uint64_t size = end; size >= 1; size /= 2) {
    if (end + size <= n) {
      end += size;
      sum += noise[end];
    }
  }
  return sum;
}

static uint64_t scale_of_item(uint64_t n) {
  uint64_t m = 0;
  while ((UINT64_C(2) << m) <= n) {
    m++;
  }
  return n == UINT64_C(1) << m ? 2 : 2 * m;
}

static void test_follows_the_definition(void **state) {
  (void)state;
  struct cv_rng_seeded ours, theirs;
  cv_rng_seeded_init(&ours, 1, CV_RNG_NOISE, 0, 0);
  cv_rng_seeded_init(&theirs, 1, CV_RNG_NOISE, 0, 0);
  int64_t noise[LONGEST + 1] = {0};
  struct cv_mechanism *mechanism = hybrid(EPSILON);
  for (uint64_t n = 1; n <= LONGEST; n++) {
    struct cv_dlaplace law;
    assert_int_equal(cv_dlaplace_init(&law, scale_of_item(n) * (uint64_t)(CV_GRID * CV_MICRO), EPSILON), CV_OK);
    noise[n] = cv_dlaplace_draw(&law, &theirs.rng);
    assert_int_equal(next(mechanism, &ours.rng, item(n)), defined(n, noise));
    assert_int_equal(mechanism->releases, n);
  }
  cv_mechanism_free(mechanism);
}

static void test_equal_noise_cancels_exactly(void **state) {
  (void)state;
  struct cv_rng_seeded a, b;
  cv_rng_seeded_init(&a, 2, CV_RNG_NOISE, 0, 0);
  cv_rng_seeded_init(&b, 2, CV_RNG_NOISE, 0, 0);
  struct cv_mechanism *with = hybrid(EPSILON), *without = hybrid(EPSILON);
  int64_t exact = 0;
  for (uint64_t n = 1; n <= LONGEST; n++) {
    exact += item(n);
    assert_int_equal(next(with, &a.rng, item(n)) - next(without, &b.rng, 0), exact);
  }
  cv_mechanism_free(with);
  cv_mechanism_free(without);
}

static double variance_of(const struct cv_noise *noise, double *ret_fourth) {
  double variance = 0;
  *ret_fourth = 0; /* fourth cumulant: 12 b^4 for one Laplace */
  for (uint32_t i = 0; i < noise->groups; i++) {
    double b = noise->group[i].scale;
    variance += 2 * b * b * noise->group[i].count;
    *ret_fourth += 12 * b * b * b * b * noise->group[i].count;
  }
  return variance;
}

static void test_said_noise_has_the_known_variance(void **state) {
  (void)state;
  struct cv_mechanism *mechanism = hybrid(EPSILON);
  for (uint64_t n = 1; n <= 5000; n++) {
    struct cv_noise noise = {0};
    double fourth;
    cv_mechanism_noise(mechanism, n, &noise);
    double m = floor(log2((double)n));
    double ones = __builtin_popcountll(n - (UINT64_C(1) << (unsigned)m));
    assert_true(noise.groups <= CV_NOISE_GROUPS_MAX);
    assert_near(variance_of(&noise, &fourth), 8 * (m + 1) + 8 * m * m * ones, 1e-9);
  }
  cv_mechanism_free(mechanism);
}

static void test_drawn_noise_has_the_said_variance(void **state) {
  (void)state;
  enum { RUNS = 20000 };
  static const uint64_t at[] = {1, 2, 3, 7, 8, 31, 32, 64, 100};
  double squares[CV_COUNT(at)] = {0}, sums[CV_COUNT(at)] = {0};
  const double unit = (double)CV_GRID * (double)CV_MICRO / EPSILON;
  struct cv_rng_seeded rng;
  for (uint64_t run = 0; run < RUNS; run++) {
    struct cv_mechanism *mechanism = hybrid(EPSILON);
    cv_rng_seeded_init(&rng, 3, CV_RNG_NOISE, run, 0);
    for (uint64_t n = 1, i = 0; i < CV_COUNT(at); n++) {
      double noise = (double)next(mechanism, &rng.rng, 0) / unit;
      if (n == at[i]) {
        squares[i] += noise * noise;
        sums[i++] += noise;
      }
    }
    cv_mechanism_free(mechanism);
  }
  struct cv_mechanism *mechanism = hybrid(EPSILON);
  for (size_t i = 0; i < CV_COUNT(at); i++) {
    struct cv_noise noise;
    double fourth;
    cv_mechanism_noise(mechanism, at[i], &noise);
    double variance = variance_of(&noise, &fourth);
    assert_near(squares[i] / RUNS, variance, 3 * sqrt((fourth + 2 * variance * variance) / RUNS));
    assert_near(sums[i] / RUNS, 0, 3 * sqrt(variance / RUNS));
  }
  cv_mechanism_free(mechanism);
}

/* The worst neighbours see at most the noise that was paid for: no release repeats another's noise exactly. */
static void test_no_two_releases_share_all_their_noise(void **state) {
  (void)state;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 4, CV_RNG_NOISE, 0, 0);
  struct cv_mechanism *mechanism = hybrid(EPSILON);
  int64_t released[LONGEST + 1] = {0};
  for (uint64_t n = 1; n <= LONGEST; n++) {
    released[n] = next(mechanism, &rng.rng, 0);
    for (uint64_t earlier = 0; earlier < n; earlier++) {
      assert_int_not_equal(released[n], released[earlier]);
    }
  }
  cv_mechanism_free(mechanism);
}

static void test_spends_half_below_four_releases(void **state) {
  (void)state;
  struct cv_mechanism *mechanism = hybrid(EPSILON), *odd = hybrid(7);
  assert_int_equal(cv_mechanism_spent_micro(mechanism, 0), 0);
  assert_int_equal(cv_mechanism_spent_micro(mechanism, 1), EPSILON / 2);
  assert_int_equal(cv_mechanism_spent_micro(mechanism, 3), EPSILON / 2);
  assert_int_equal(cv_mechanism_spent_micro(mechanism, 4), EPSILON);
  assert_int_equal(cv_mechanism_spent_micro(mechanism, 1000000), EPSILON);
  assert_int_equal(cv_mechanism_spent_micro(odd, 1), 4);
  cv_mechanism_free(mechanism);
  cv_mechanism_free(odd);
}

static void test_every_epsilon_has_a_scale(void **state) {
  (void)state;
  static const uint64_t epsilon[] = {1, 3, 999983, 1000000, UINT64_MAX};
  for (size_t i = 0; i < CV_COUNT(epsilon); i++) {
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, 5, CV_RNG_NOISE, i, 0);
    struct cv_mechanism *mechanism = hybrid(epsilon[i]);
    for (int n = 0; n < 1000; n++) {
      (void)next(mechanism, &rng.rng, 0);
    }
    cv_mechanism_free(mechanism);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_follows_the_definition),
      cmocka_unit_test(test_equal_noise_cancels_exactly),
      cmocka_unit_test(test_said_noise_has_the_known_variance),
      cmocka_unit_test(test_drawn_noise_has_the_said_variance),
      cmocka_unit_test(test_no_two_releases_share_all_their_noise),
      cmocka_unit_test(test_spends_half_below_four_releases),
      cmocka_unit_test(test_every_epsilon_has_a_scale),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
