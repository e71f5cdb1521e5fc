/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdlib.h>

#include "common/base/grid.h"
#include "common/noise/dlaplace.h"
#include "tests/support/mechanism.h"

enum { LONGEST = 300, EPSILON = 250000 /* micro */ };

static struct cv_mechanism *hybrid(uint64_t epsilon_micro) {
  const struct cv_mechanism_law law = mechanism_law("hybrid", epsilon_micro, 0);
  return mechanism_new(&law);
}

static int64_t item(uint64_t n) {
  return (int64_t)(cv_mix64(n) % (uint64_t)(600 * CV_GRID));
}

static int64_t next(struct cv_mechanism *mechanism, struct cv_rng *rng, int64_t value) {
  cv_mechanism_draw(mechanism, rng);
  return cv_mechanism_release(mechanism, value);
}

/*
 * The definition, computed again for each n from the list of all noises: the exact prefix, the noises drawn at the
 * powers of two up to n, and those of the dyadic intervals that make up (N, n], largest first. noise[i] is the one
 * drawn for item i; an interval's was drawn for its last item.
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

/* The worst neighbouring inputs see at most the noise that was paid for: no release repeats another's noise exactly. */
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
  const struct cv_mechanism_law law = mechanism_law("hybrid", EPSILON, 0), odd = mechanism_law("hybrid", 7, 0);
  assert_int_equal(cv_mechanism_spent_micro(&law, 0), 0);
  assert_int_equal(cv_mechanism_spent_micro(&law, 1), EPSILON / 2);
  assert_int_equal(cv_mechanism_spent_micro(&law, 3), EPSILON / 2);
  assert_int_equal(cv_mechanism_spent_micro(&law, 4), EPSILON);
  assert_int_equal(cv_mechanism_spent_micro(&law, 1000000), EPSILON);
  assert_int_equal(cv_mechanism_spent_micro(&odd, 1), 4);
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
      cmocka_unit_test(test_no_two_releases_share_all_their_noise),
      cmocka_unit_test(test_spends_half_below_four_releases),
      cmocka_unit_test(test_every_epsilon_has_a_scale),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
