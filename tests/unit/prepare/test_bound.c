/* SPDX-License-Identifier: Apache-2.0 */
/* The lower bounds on a ranking's tokens: by hand, and against searches that know nothing but the truth's classes. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "prepare/bound.h"
#include "tests/support/near.h"
#include "thirdparty/policy/kl.h"
#include "worker/quality/truth.h"

enum { ARMS = 40, FINE = 20000, COARSE = 200 };
static const double DELTA = 0.1;
/* How far from a boundary the arms of a search by pairs are. */
static const double ROOM = 0.06;
static const double INFINITE = (double)INFINITY;

static struct cv_feedback as_it_is[ARMS];

static struct cv_bound bound_of(const double *mean, uint32_t arms, double alpha, double delta, double epsilon) {
  const struct cv_bound_ask ask = {
      .arms = arms, .mean = mean, .feedback = as_it_is, .alpha = alpha, .delta = delta, .epsilon = epsilon};
  struct cv_bound bound = {0};
  assert_int_equal(cv_bound_find(&ask, &bound), CV_OK);
  return bound;
}

static int setup(void **state) {
  for (size_t i = 0; i < ARMS; i++) {
    as_it_is[i] = (struct cv_feedback){.slope = 1};
  }
  return 0;
}

/* ---- by hand ---- */

static void test_two_arms_in_order(void **state) {
  const double mean[] = {0.4, 0.6};
  double c = cv_kl(DELTA, 1 - DELTA);
  struct cv_bound bound = bound_of(mean, 2, 0, DELTA, INFINITE);
  assert_near(bound.sum, 2 * c / cv_kl(0.4, 0.6), 1e-9 * bound.sum);
  /* both to the middle */
  assert_near(bound.pair, c / cv_kl(0.4, 0.5), 1e-9 * bound.pair);
  /* so private that a token says epsilon times a difference of means, up to a factor */
  bound = bound_of(mean, 2, 0, DELTA, 1e-3);
  assert_near(bound.sum, 2 * c / (1e-3 * 0.2), 1e-2 * bound.sum);
  assert_near(bound.pair, bound.sum, 1e-2 * bound.sum);
}

static void test_two_arms_of_two_classes(void **state) {
  const double mean[] = {0.7, 0.4};
  double c = cv_kl(DELTA, 1 - DELTA);
  struct cv_bound bound = bound_of(mean, 2, 0.1, DELTA, INFINITE);
  assert_near(bound.sum, c / cv_kl(0.7, 0.5) + c / cv_kl(0.4, 0.6), 1e-9 * bound.sum);
}

static void test_two_arms_of_one_class(void **state) {
  const double mean[] = {0.55, 0.45};
  double c = cv_kl(DELTA, 1 - DELTA);
  struct cv_bound bound = bound_of(mean, 2, 0.3, DELTA, INFINITE);
  assert_near(bound.sum, 2 * c / cv_kl(0.55, 0.75), 1e-9 * bound.sum);
  assert_near(bound.pair, c / cv_kl(0.55, 0.65), 1e-9 * bound.pair);
  /* Too low to drop out below: each can only rise above the other. */
  const double low[] = {0.3, 0.1};
  bound = bound_of(low, 2, 0.5, DELTA, INFINITE);
  assert_near(bound.sum, c / cv_kl(0.3, 0.6) + c / cv_kl(0.1, 0.8), 1e-9 * bound.sum);
}

/* Nothing can be wrong with one arm, nor if all arms are of one class wherever they lie. */
static void test_nothing_to_find_out(void **state) {
  const double one[] = {0.3}, far[] = {0, 1, 0.5};
  const struct cv_bound bounds[] = {bound_of(one, 1, 0.1, DELTA, 0.25), bound_of(far, 3, 1, DELTA, 0.25),
                                    bound_of(far, 3, 7, DELTA, INFINITE)};
  for (size_t i = 0; i < CV_COUNT(bounds); i++) {
    assert_true(bounds[i].sum == 0 && bounds[i].pair == 0);
  }
}

static void test_a_tie_takes_for_ever(void **state) {
  static const struct {
    double alpha, mean[3];
  } ties[] = {{0, {0.5, 0.5, 0.1}}, {0, {1, 1, 0}}, {0, {0, 0.5, 0}}, {0.1, {0.8, 0.7, 0.3}}, {0.1, {0.5, 0.2, 0.3}}};
  for (size_t i = 0; i < CV_COUNT(ties); i++) {
    struct cv_bound bound = bound_of(ties[i].mean, 3, ties[i].alpha, DELTA, 0.25);
    assert_true(isinf(bound.sum) && isinf(bound.pair));
  }
  /* Equal arms within a class are no tie. */
  const double equal[] = {0.5, 0.5, 0.1};
  assert_true(isfinite(bound_of(equal, 3, 0.1, DELTA, 0.25).pair));
}

static void test_means_at_the_ends(void **state) {
  const double mean[] = {1, 1, 0};
  double c = cv_kl(DELTA, 1 - DELTA);
  struct cv_bound bound = bound_of(mean, 3, 0.1, DELTA, INFINITE);
  assert_near(bound.sum, c * (2 / -log(0.9) + 1 / -log(0.1)), 1e-9 * bound.sum);
  assert_true(isfinite(bound.pair) && bound.pair >= bound.sum);
}

/* ---- against a search ---- */

static bool is_changed(const double *mean, uint32_t arms, double alpha, const uint32_t *truth) {
  uint32_t found[ARMS];
  (void)cv_truth_classes(mean, arms, alpha, found);
  return memcmp(found, truth, arms * sizeof(*found)) != 0;
}

static double searched_sum(const double *mean, uint32_t arms, double alpha, double epsilon) {
  uint32_t truth[ARMS];
  double moved[ARMS], sum = 0;
  (void)cv_truth_classes(mean, arms, alpha, truth);
  memcpy(moved, mean, arms * sizeof(*mean));
  for (uint32_t i = 0; i < arms; i++) {
    double least = INFINITE;
    for (int at = 0; at <= FINE; at++) {
      moved[i] = (double)at / FINE;
      double distance = cv_kl_private(mean[i], moved[i], epsilon);
      least = distance < least && is_changed(moved, arms, alpha, truth) ? distance : least;
    }
    moved[i] = mean[i];
    sum += 1 / least;
  }
  return sum * cv_kl(DELTA, 1 - DELTA);
}

struct instance {
  uint32_t arms;
  double alpha, epsilon, mean[ARMS];
};

/* Whether no arm is so close to a boundary that a grid cannot tell. */
static bool is_clear(const struct instance *at, double room) {
  for (uint32_t i = 0; i < at->arms; i++) {
    for (uint32_t j = 0; j < i; j++) {
      double apart = fabs(at->mean[i] - at->mean[j]);
      if (fabs(apart - at->alpha) < room || (at->alpha == 0 && apart < room)) {
        return false;
      }
    }
  }
  return true;
}

static struct instance draw(struct cv_rng *rng, uint32_t arms_end, double room) {
  static const double alphas[] = {0, 0.1, 0.25}, epsilons[] = {0.1, 1, 5, (double)INFINITY};
  struct instance drawn;
  do {
    drawn = (struct instance){.arms = 2 + (uint32_t)cv_rng_below(rng, arms_end - 2),
                              .alpha = alphas[cv_rng_below(rng, CV_COUNT(alphas))],
                              .epsilon = epsilons[cv_rng_below(rng, CV_COUNT(epsilons))]};
    for (uint32_t i = 0; i < drawn.arms; i++) {
      double mean = 1.2 * cv_rng_unit(rng) - 0.1;
      drawn.mean[i] = drawn.alpha == 0 ? cv_rng_unit(rng) : fmin(1, fmax(0, mean));
    }
  } while (!is_clear(&drawn, room));
  return drawn;
}

static void test_the_sum_against_a_search(void **state) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 3, 1, 0, 0);
  for (int i = 0; i < 40; i++) {
    struct instance at = draw(&rng.rng, 7, 0.01);
    double found = bound_of(at.mean, at.arms, at.alpha, DELTA, at.epsilon).sum;
    double searched = searched_sum(at.mean, at.arms, at.alpha, at.epsilon);
    assert_near(found / searched, 1, 0.02);
    assert_true(searched <= found * (1 + 1e-9)); /* a grid finds no point that is nearer */
  }
}

/* Also if it changes just beyond: boundaries of means on the grid lie on the grid. */
static bool is_at_change(const double *mean, uint32_t arms, double alpha, const uint32_t *truth) {
  return is_changed(mean, arms, alpha + 1e-9, truth) || is_changed(mean, arms, fmax(0, alpha - 1e-9), truth);
}

/*
 * The moves of up to two of three arms on a grid that change the ranking: [arm][place] is the divergence, and
 * changes[pair][place][place] whether they do.
 */
struct moves {
  double cost[3][COARSE + 1];
  bool changes[3][COARSE + 1][COARSE + 1];
};
static const uint32_t pair_of[3][2] = {{0, 1}, {0, 2}, {1, 2}};

static void find_moves(const struct instance *at, struct moves *moves) {
  uint32_t truth[3];
  (void)cv_truth_classes(at->mean, at->arms, at->alpha, truth);
  for (uint32_t pair = 0; pair < (at->arms == 3 ? 3 : 1); pair++) {
    uint32_t i = pair_of[pair][0], j = pair_of[pair][1];
    double moved[3];
    memcpy(moved, at->mean, sizeof(moved));
    for (int x = 0; x <= COARSE; x++) {
      for (int y = 0; y <= COARSE; y++) {
        moved[i] = (double)x / COARSE;
        moved[j] = (double)y / COARSE;
        moves->changes[pair][x][y] = is_at_change(moved, at->arms, at->alpha, truth);
      }
    }
  }
  for (uint32_t i = 0; i < at->arms; i++) {
    for (int x = 0; x <= COARSE; x++) {
      moves->cost[i][x] = cv_kl_private(at->mean[i], (double)x / COARSE, at->epsilon);
    }
  }
}

/* The fewest tokens in the proportions `share` that satisfy all of these moves, as multiples of c. */
static double fewest(const struct moves *moves, uint32_t arms, const double *share) {
  double least = INFINITE;
  for (uint32_t pair = 0; pair < (arms == 3 ? 3 : 1); pair++) {
    uint32_t i = pair_of[pair][0], j = pair_of[pair][1];
    for (int x = 0; x <= COARSE; x++) {
      for (int y = 0; y <= COARSE; y++) {
        double said = share[i] * moves->cost[i][x] + share[j] * moves->cost[j][y];
        least = moves->changes[pair][x][y] && said < least ? said : least;
      }
    }
  }
  return 1 / least;
}

/* The best proportions, by random steps. */
static double searched_fewest(const struct moves *moves, uint32_t arms, struct cv_rng *rng) {
  double best[3] = {1.0 / arms, 1.0 / arms, 1.0 / arms}, found = fewest(moves, arms, best);
  for (int i = 0; i < 150; i++) {
    double tried[3], sum = 0, step = i < 50 ? 2 : i < 100 ? 0.5 : 0.1;
    for (uint32_t a = 0; a < arms; a++) {
      tried[a] = best[a] * exp(step * (cv_rng_unit(rng) - 0.5));
      sum += tried[a];
    }
    for (uint32_t a = 0; a < arms; a++) {
      tried[a] /= sum;
    }
    double tokens = fewest(moves, arms, tried);
    if (tokens < found) {
      found = tokens;
      memcpy(best, tried, sizeof(best));
    }
  }
  return found;
}

/* No proportions of tokens that satisfy all moves of two arms are fewer than the bound; with two arms of two classes,
 * where every other ranking is such a move, they reach it. */
static void test_the_pairs_against_a_search(void **state) {
  static struct moves moves;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 4, 1, 0, 0);
  const double c = cv_kl(DELTA, 1 - DELTA);
  int gains = 0;
  for (int i = 0; i < 24; i++) {
    /* First one in which the best of a class cannot help an arm to join it: the second best is too close. */
    struct instance at = i > 0 ? draw(&rng.rng, 4, ROOM) : (struct instance){3, 0.2, INFINITE, {0.7, 0.69, 0.4}};
    for (uint32_t a = 0; a < at.arms; a++) {
      at.mean[a] = round(at.mean[a] * COARSE) / COARSE;
    }
    struct cv_bound bound = bound_of(at.mean, at.arms, at.alpha, DELTA, at.epsilon);
    find_moves(&at, &moves);
    double tokens = c * searched_fewest(&moves, at.arms, &rng.rng);
    assert_true(bound.pair <= tokens * 1.01);
    assert_true(bound.pair >= bound.sum);
    gains += bound.pair > 1.3 * bound.sum;
    if (at.arms == 2 && fabs(at.mean[0] - at.mean[1]) > at.alpha) {
      assert_near(tokens / bound.pair, 1, 0.01);
    }
  }
  assert_true(gains >= 4);
}

/* ---- properties ---- */

static void test_harder_is_more(void **state) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 5, 1, 0, 0);
  for (int i = 0; i < 50; i++) {
    struct instance at = draw(&rng.rng, ARMS, 1e-5);
    struct cv_bound last = {0};
    for (double epsilon = 16; epsilon > 0.01; epsilon /= 2) {
      struct cv_bound bound = bound_of(at.mean, at.arms, at.alpha, DELTA, epsilon);
      assert_true(bound.sum >= last.sum);
      assert_true(bound.pair >= bound.sum);
      assert_true(bound.pair >= last.pair); /* holds for a fixed choice of pairs, and for these */
      last = bound;
    }
    struct cv_bound public = bound_of(at.mean, at.arms, at.alpha, DELTA, INFINITE);
    struct cv_bound nearly = bound_of(at.mean, at.arms, at.alpha, DELTA, 500);
    assert_near(nearly.sum / public.sum, 1, 1e-2);
    double sure = bound_of(at.mean, at.arms, at.alpha, 0.01, 1).pair;
    double unsure = bound_of(at.mean, at.arms, at.alpha, 0.3, 1).pair;
    assert_near(sure / unsure, cv_kl(0.01, 0.99) / cv_kl(0.3, 0.7), 1e-9);
  }
}

/* Neither the order of the arms nor which end is called good matters where arms are ranked by their order alone. */
static void test_it_is_the_same_in_a_mirror(void **state) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 6, 1, 0, 0);
  for (int i = 0; i < 50; i++) {
    struct instance at = draw(&rng.rng, ARMS, 1e-5);
    double mirrored[ARMS];
    for (uint32_t a = 0; a < at.arms; a++) {
      mirrored[a] = 1 - at.mean[at.arms - 1 - a];
    }
    struct cv_bound bound = bound_of(at.mean, at.arms, 0, DELTA, at.epsilon);
    struct cv_bound other = bound_of(mirrored, at.arms, 0, DELTA, at.epsilon);
    if (isfinite(bound.sum)) {
      assert_near(other.sum / bound.sum, 1, 1e-6);
      assert_near(other.pair / bound.pair, 1, 1e-6);
    }
  }
}

/* Bits that are kept with probability 3/4 lie in [1/4, 3/4]. */
static void test_behind_a_privatizer(void **state) {
  const double mean[] = {0.4, 0.6};
  const struct cv_feedback coin[] = {{.offset = 0.25, .slope = 0.5}, {.offset = 0.75, .slope = -0.5}};
  const struct cv_bound_ask ask = {
      .arms = 2, .mean = mean, .feedback = coin, .alpha = 0, .delta = DELTA, .epsilon = INFINITE};
  struct cv_bound bound;
  assert_int_equal(cv_bound_find(&ask, &bound), CV_OK);
  double c = cv_kl(DELTA, 1 - DELTA);
  assert_near(bound.sum, c / cv_kl(0.45, 0.55) + c / cv_kl(0.45, 0.55), 1e-9 * bound.sum);
  assert_near(bound.pair, c / cv_kl(0.45, 0.5), 1e-9 * bound.pair);
}

/* .9 leads with .85; .79 leads the next class with .7 on its boundary but .01; .1 is alone. */
static void test_distances_to_where_a_class_changes(void **state) {
  static const double mean[] = {.7, .9, .85, .79, .1};
  static const double distance[] = {.01, .01, .05, .01, .59};
  double found[CV_COUNT(mean)];
  assert_int_equal(cv_bound_distances(mean, CV_COUNT(mean), .1, found), CV_OK);
  for (size_t i = 0; i < CV_COUNT(mean); i++) {
    assert_near(found[i], distance[i], 1e-9);
  }
  const double one[] = {.4};
  assert_int_equal(cv_bound_distances(one, 1, .1, found), CV_OK);
  assert_true(isinf(found[0]));
  const double tie[] = {.4, .4};
  assert_int_equal(cv_bound_distances(tie, 2, 0, found), CV_OK);
  assert_near(found[0], 0, 1e-12);
  assert_near(found[1], 0, 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_arms_in_order),        cmocka_unit_test(test_two_arms_of_two_classes),
      cmocka_unit_test(test_two_arms_of_one_class),    cmocka_unit_test(test_nothing_to_find_out),
      cmocka_unit_test(test_a_tie_takes_for_ever),     cmocka_unit_test(test_means_at_the_ends),
      cmocka_unit_test(test_the_sum_against_a_search), cmocka_unit_test(test_the_pairs_against_a_search),
      cmocka_unit_test(test_harder_is_more),           cmocka_unit_test(test_it_is_the_same_in_a_mirror),
      cmocka_unit_test(test_behind_a_privatizer),      cmocka_unit_test(test_distances_to_where_a_class_changes),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
