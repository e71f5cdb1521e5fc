/* SPDX-License-Identifier: Apache-2.0 */
/* The adversaries: their definitions, their memory, and that a game is the same for every player. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "tests/support/near.h"
#include "worker/quality/quality.h"

enum { T = 1 << 16 };

static struct cv_adversary game(const char *name, uint32_t best, uint64_t seed) {
  struct cv_adversary self = {.class = cv_adversary_find(name), .arms = 4, .best = best, .rounds = T, .seed = seed};
  assert_non_null(self.class);
  self.memory = self.class->memory;
  return self;
}

static void the_deterministic_one_by_hand(void **state) {
  struct cv_adversary self = game("deterministic", 1, 0);
  static const double expected[6][4] = {{.38, 0, 0, 0}, {.38, 1, 0, 0}, {.38, 0, 1, 0},
                                        {.38, 1, 0, 0}, {.38, 0, 0, 0}, {.38, 1, 1, 0}};
  for (uint64_t t = 1; t <= 6; t++) {
    for (uint32_t arm = 0; arm < 4; arm++) {
      assert_near(cv_adversary_gain(&self, arm, t, t % 2), expected[t - 1][arm], 1e-12);
    }
  }
  assert_near(cv_adversary_total(&self, 1, T), T / 2.0, 1e-9);
}

/* Means: .55 against .5; the uniform's middle, .55 against .5, of each round or of each 200. */
static void the_drawn_ones_have_their_means(void **state) {
  static const char *const names[] = {"stochastic", "fully-oblivious", "oblivious"};
  for (size_t n = 0; n < CV_COUNT(names); n++) {
    double draws = n == 2 ? T / 200.0 : T;
    for (uint32_t best = 0; best < 4; best += 3) {
      struct cv_adversary self = game(names[n], best, 7 + best);
      for (uint32_t arm = 0; arm < 4; arm++) {
        double mean = cv_adversary_total(&self, arm, T) / T;
        assert_near(mean, arm == best ? 0.55 : 0.5, 4 * 0.5 / sqrt(draws));
      }
    }
  }
}

static void the_oblivious_one_freezes(void **state) {
  struct cv_adversary frozen = game("oblivious", 0, 3), drawn = game("fully-oblivious", 0, 3);
  uint64_t changes = 0;
  for (uint64_t t = 200; t < T; t++) {
    double gain = cv_adversary_gain(&frozen, 2, t, 0);
    assert_near(gain, cv_adversary_gain(&drawn, 2, t / 200 * 200, 0), 0);
    bool changed = cv_adversary_gain(&frozen, 2, t - 1, 0) - gain != 0;
    assert_true(!changed || t % 200 == 0);
    changes += changed;
  }
  assert_in_range(changes, 110, 220); /* of 326 */
}

/* Dekel et al., figure 1, computed forwards: every W is its parent's plus one step. */
static void the_walk_is_the_papers(void **state) {
  double s = 1 / (9 * log2(T)), gap = cbrt(4.0 / T) / (9 * log2(T)), worst = 0;
  struct cv_adversary self = game("switching", 2, 5);
  for (uint64_t t = 1; t <= 2000; t++) {
    double best = cv_adversary_gain(&self, 2, t, 0), other = cv_adversary_gain(&self, 0, t, 0);
    assert_near(best - other, gap, 1e-12); /* nothing is clipped this near to the middle */
    assert_near(cv_adversary_gain(&self, 1, t, 0), other, 0);
    assert_near(cv_adversary_gain(&self, 2, t, 1), 0, 0);
    uint64_t parent = t & (t - 1);
    double before = parent == 0 ? 0.5 : cv_adversary_gain(&self, 0, parent, 0);
    worst = fmax(worst, fabs(other - before) / s);
  }
  assert_true(worst > 2.5 && worst < 5); /* the largest of 2000 standard normals */
}

/* Every switch costs as many rounds as the memory has, the round of the switch included, and nothing later. */
static void a_memory_lasts_as_long_as_it_says(void **state) {
  static const uint32_t memories[] = {0, 1, 5, CV_MEMORY_MAX};
  for (size_t i = 0; i < CV_COUNT(memories); i++) {
    struct cv_adversary self = game("stochastic", 0, 3);
    uint32_t switched = 0, lost = 0, memory = memories[i];
    self.memory = memory;
    for (uint64_t t = 1; t <= 5000; t++) {
      uint32_t arm = t <= 2000 ? 0 : 1; /* one switch, in round 2001 */
      switched = cv_adversary_switched(switched, t == 2001);
      double gain = cv_adversary_gain(&self, arm, t, switched);
      bool is_lost = t > 2000 && t <= 2000 + memory;
      assert_near(gain, is_lost ? 0 : self.class->gain(&self, arm, t), 0);
      lost += is_lost && self.class->gain(&self, arm, t) > 0;
    }
    assert_in_range(lost, memory * 2 / 5, memory * 3 / 5);
  }
}

static double squares(uint64_t t, uint32_t games) {
  double sum = 0;
  for (uint64_t seed = 1; seed <= games; seed++) {
    struct cv_adversary self = game("switching", 2, seed);
    double walk = cv_adversary_gain(&self, 0, t, 0) - 0.5;
    sum += walk * walk;
  }
  return sum / games;
}

static void the_walk_grows_with_the_ones_of_its_round(void **state) {
  double step = 1 / (9 * log2(T));
  assert_near(squares(4096, 4000) / step / step, 1, 0.1);
  assert_near(squares(4096 + 64 + 1, 4000) / step / step, 3, 0.3);
}

static void a_game_depends_on_seed_arm_and_round_alone(void **state) {
  for (size_t i = 0; cv_adversary_at(i) != NULL; i++) {
    struct cv_adversary a = game(cv_adversary_at(i)->name, 1, 9), b = a, other = game(cv_adversary_at(i)->name, 1, 10);
    uint64_t differ = 0;
    for (uint64_t t = 4000; t > 0; t--) {
      double gain = cv_adversary_gain(&a, 1, t, 0);
      assert_true(gain >= 0 && gain <= 1);
      assert_true(cv_adversary_gain(&b, 1, t, 0) >= gain && cv_adversary_gain(&b, 1, t, 0) <= gain);
      differ += fabs(cv_adversary_gain(&other, 1, t, 0) - gain) > 0;
    }
    assert_true((differ > 0) == (i != 0)); /* nothing is drawn in the deterministic one */
  }
  assert_null(cv_adversary_find("nature"));
}

/* As for a worker: the round decides, not the place in the arm's stream. */
static void a_source_looks_at_the_round(void **state) {
  struct cv_adversary self = game("switching", 2, 5);
  struct cv_quality *quality;
  struct cv_why why;
  int64_t score;
  assert_int_equal(cv_quality_new_adversary(&self, &quality, &why), CV_OK);
  assert_near(cv_quality_truth(quality, 2), cv_adversary_total(&self, 2, T) / T, 1e-12);
  struct cv_moment at = {.place = 3, .round = 99};
  assert_int_equal(cv_quality_score_at(quality, 0, &at, &score), CV_OK);
  assert_int_equal(score, cv_grid_from(cv_adversary_gain(&self, 0, 100, 0)));
  at.switched = 1;
  assert_int_equal(cv_quality_score_at(quality, 0, &at, &score), CV_OK);
  assert_int_equal(score, 0);
  at.round = UINT64_MAX; /* a broker may send any number */
  assert_int_equal(cv_quality_score_at(quality, 3, &at, &score), CV_OK);
  cv_quality_free(quality);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_deterministic_one_by_hand),
      cmocka_unit_test(the_drawn_ones_have_their_means),
      cmocka_unit_test(the_oblivious_one_freezes),
      cmocka_unit_test(the_walk_is_the_papers),
      cmocka_unit_test(a_memory_lasts_as_long_as_it_says),
      cmocka_unit_test(the_walk_grows_with_the_ones_of_its_round),
      cmocka_unit_test(a_game_depends_on_seed_arm_and_round_alone),
      cmocka_unit_test(a_source_looks_at_the_round),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
