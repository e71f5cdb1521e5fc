/* SPDX-License-Identifier: Apache-2.0 */
/* The table's traits of a mechanism agree with its class: the sums that it releases, its noise, and its epsilon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>

#include "common/base/grid.h"
#include "tests/support/mechanism.h"

enum { RELEASES = 300, EPSILON = 500000, LONG = 1 << 20 };

static unsigned log2_of(uint64_t n) {
  return 63U - (unsigned)__builtin_clzll(n);
}

static int64_t item(uint64_t n) {
  return (int64_t)(cv_mix64(n) % (uint64_t)(100 * CV_GRID));
}

static int64_t items(uint64_t first, uint64_t last) {
  int64_t sum = 0;
  for (uint64_t n = first; n <= last; n++) {
    sum += item(n);
  }
  return sum;
}

static int64_t expected_sum(enum cv_sums sums, uint64_t n) {
  switch (sums) {
    case CV_SUMS_ITEM:
      return item(n);
    case CV_SUMS_POWERS:
      return items(1, UINT64_C(1) << log2_of(n));
    default:
      return items(1, n);
  }
}

/* A release minus the noise drawn is the sum of the trait's items; two releases of the same items are equal if the
 * trait is to repeat, and the noises of two releases without a common item are independent. */
static void check_sums(const struct cv_traits *traits) {
  const struct cv_mechanism_law law = mechanism_law(traits->name, EPSILON, RELEASES);
  struct cv_mechanism *mechanism = mechanism_new(&law);
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 31, CV_RNG_NOISE, 0, 0);
  int64_t last = 0;
  uint64_t repeated = 0;
  for (uint64_t n = 1; n <= RELEASES; n++) {
    cv_mechanism_draw(mechanism, &rng.rng);
    int64_t noise = mechanism->noise, released = cv_mechanism_release(mechanism, item(n));
    assert_int_equal(released - noise, expected_sum(traits->sums, n));
    repeated += n > 1 && released == last;
    last = released;
  }
  assert_int_equal(repeated, traits->sums == CV_SUMS_POWERS ? RELEASES - 1 - log2_of(RELEASES) : 0);
  cv_mechanism_free(mechanism);
}

static double variance(const struct cv_mechanism_law *law, uint64_t n) {
  struct cv_noise noise;
  double v = 0;
  cv_mechanism_noise(law, n, &noise);
  for (uint32_t i = 0; i < noise.groups; i++) {
    v += 2 * noise.group[i].scale * noise.group[i].scale * noise.group[i].count;
  }
  return v;
}

/* 8 (log2 T + 1)^3: for hybrid, for binary trees, and for wider trees, which are used where they are better. */
static double polylog(uint64_t n) {
  return 8 * pow(log2_of(n) + 1, 3);
}

static void check_noise(const struct cv_traits *traits) {
  const struct cv_mechanism_law law = mechanism_law(traits->name, EPSILON, LONG);
  for (uint64_t n = 1; n <= LONG; n += 1 + n / 64) {
    double v = variance(&law, n);
    switch (traits->noise) {
      case CV_NOISE_NONE:
        assert_true(v == 0);
        break;
      case CV_NOISE_ONE:
        assert_true(v == 2);
        break;
      case CV_NOISE_LINEAR:
        assert_true(v == 2 * (double)n);
        break;
      case CV_NOISE_POLYLOG:
      case CV_NOISE_WEIGHED:
        assert_true(v > 0 && v <= polylog(traits->private == CV_PRIVATE_TO_HORIZON ? LONG : n));
        break;
    }
  }
  assert_true(variance(&law, LONG - 1) <= polylog(LONG - 1) || traits->noise == CV_NOISE_LINEAR);
}

/* Mean squares of the real draws, in (D/epsilon)^2; and the covariance of release n with release n - 1. */
static void check_draws(const struct cv_traits *traits) {
  enum { RUNS = 4000, AT = 6 };
  const double unit = (double)CV_GRID * 1e6 / EPSILON;
  const struct cv_mechanism_law law = mechanism_law(traits->name, EPSILON, RELEASES);
  double squares = 0, common = 0;
  for (uint64_t run = 0; run < RUNS; run++) {
    struct cv_mechanism *mechanism = mechanism_new(&law);
    struct cv_rng_seeded rng;
    double before = 0, now = 0;
    cv_rng_seeded_init(&rng, 32, CV_RNG_NOISE, run, 0);
    for (uint64_t n = 1; n <= AT; n++) {
      before = now;
      cv_mechanism_draw(mechanism, &rng.rng);
      now = (double)mechanism->noise / unit;
      (void)cv_mechanism_release(mechanism, 0);
    }
    squares += now * now / RUNS;
    common += before * now / RUNS;
    cv_mechanism_free(mechanism);
  }
  double v = variance(&law, AT);
  assert_true(fabs(squares - v) <= .15 * v);
  /* Independent for one noise each; sums share the noise of release n - 1. */
  if (traits->noise == CV_NOISE_ONE) {
    assert_true(fabs(common) < .15 * v);
  } else if (traits->noise == CV_NOISE_LINEAR) {
    assert_true(fabs(common - variance(&law, AT - 1)) < .15 * v);
  } else if (traits->sums == CV_SUMS_POWERS) {
    assert_true(common == squares);
  }
}

static void check_private(const struct cv_traits *traits) {
  struct cv_choice choice = {0};
  struct cv_mechanism_law law;
  (void)snprintf(choice.name, sizeof(choice.name), "%s", traits->name);
  enum cv_err unknown_end = cv_mechanism_law_init(&choice, EPSILON, 0, &law, NULL);
  bool needs_horizon = traits->private == CV_PRIVATE_TO_HORIZON;
  if (traits->private == CV_PRIVATE_ALWAYS) {
    assert_int_equal(unknown_end, CV_OK);
    assert_int_equal(law.horizon, CV_RELEASES_END - 1);
    assert_int_equal(cv_mechanism_spent_micro(&law, law.horizon), EPSILON);
  }
  const struct cv_mechanism_law here = mechanism_law(traits->name, EPSILON, RELEASES);
  const struct cv_mechanism_law there = mechanism_law(traits->name, EPSILON, LONG);
  assert_true(needs_horizon == (variance(&here, 1) != variance(&there, 1)));
  if (needs_horizon) {
    assert_int_equal(unknown_end, CV_ERR_INVALID);
    assert_int_equal(here.horizon, RELEASES);
    assert_int_equal(cv_mechanism_spent_micro(&here, RELEASES), EPSILON);
  }
  if (traits->private == CV_PRIVATE_NEVER && traits->noise != CV_NOISE_NONE) {
    assert_true(cv_mechanism_spent_micro(&there, LONG) > 2 * cv_mechanism_spent_micro(&there, 4));
    assert_true(cv_mechanism_spent_micro(&there, LONG) > EPSILON);
  }
}

static void each(void (*check)(const struct cv_traits *traits)) {
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    check(cv_mechanism_at(i)->traits);
  }
}

static void test_sums_are_those_of_the_table(void **state) {
  each(check_sums);
}

static void test_noise_grows_as_the_table_says(void **state) {
  each(check_noise);
}

static void test_noise_is_drawn_as_the_table_says(void **state) {
  each(check_draws);
}

static void test_protection_lasts_as_long_as_the_table_says(void **state) {
  each(check_private);
}

static void test_table_and_classes_have_the_same_rows(void **state) {
  size_t n = 0;
  for (; cv_mechanism_at(n) != NULL; n++) {
    assert_non_null(cv_traits_names[n]);
    assert_string_equal(cv_traits_names[n], cv_mechanism_at(n)->traits->name);
    assert_ptr_equal(cv_traits_of(cv_traits_names[n]), cv_mechanism_at(n)->traits);
  }
  assert_null(cv_traits_names[n]);
}

static void test_nothing_good_is_known_of_others(void **state) {
  const struct cv_traits *other = cv_traits_of("rot13");
  assert_int_equal(other->noise, CV_NOISE_LINEAR);
  assert_int_equal(other->private, CV_PRIVATE_NEVER);
  assert_false(cv_traits_exact_sums(other) || cv_traits_fresh_sums(other) || cv_traits_repeats(other));
}

static bool anything(const struct cv_traits *traits) {
  return true;
}

/* The list names every mechanism with the trait, and no other; `known` is one of them. */
static void check_list(cv_traits_fn *has, const char *known) {
  const struct cv_traits_list list = cv_traits_list(has);
  char expected[sizeof(list.text) + CV_PARAM_TEXT + 8] = "";
  bool found = false;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    const struct cv_traits *traits = cv_mechanism_at(i)->traits;
    size_t used = strlen(expected);
    if (has(traits)) {
      (void)snprintf(expected + used, sizeof(expected) - used, "%s%s", used > 0 ? " or " : "", traits->name);
      found = found || strcmp(traits->name, known) == 0;
    }
  }
  assert_string_equal(list.text, expected);
  assert_true(found);
}

static void test_lists_name_all_that_have_the_trait(void **state) {
  assert_string_equal(cv_traits_list(cv_traits_exact_sums).text, "none");
  check_list(cv_traits_exact_sums, "none");
  check_list(cv_traits_fresh_sums, "batch");
  check_list(cv_traits_repeats, "doubling");
  check_list(anything, "kary");
  const struct cv_traits_list all = cv_traits_list(anything);
  assert_true(strlen(all.text) + 1 < sizeof(all.text));
  assert_true(strncmp(all.text, "hybrid or none or binary or binary-honaker or kary or ", 54) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums_are_those_of_the_table),
      cmocka_unit_test(test_noise_grows_as_the_table_says),
      cmocka_unit_test(test_noise_is_drawn_as_the_table_says),
      cmocka_unit_test(test_protection_lasts_as_long_as_the_table_says),
      cmocka_unit_test(test_table_and_classes_have_the_same_rows),
      cmocka_unit_test(test_nothing_good_is_known_of_others),
      cmocka_unit_test(test_lists_name_all_that_have_the_trait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
