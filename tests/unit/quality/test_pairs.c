/* SPDX-License-Identifier: Apache-2.0 */
/* By what a ranking from duels is judged: by its own claim, and not by an order that it does not tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs those above first */
#include <cmocka.h>

#include "worker/quality/pairs.h"

enum { ARMS = 3 };

struct ranking {
  double ab, ac, bc; /* of arms a, b and c: the probabilities that the first one wins */
  double tie;
  uint32_t rank_class[ARMS]; /* 0: undecided */
  const char *right;         /* of each arm: y or n */
};

static const struct ranking rankings[] = {
    /* a and b win 51 and 49 of 100: one class, or two in either order */
    {.51, .8, .79, .05, {1, 1, 2}, "yyy"},
    {.51, .8, .79, .05, {1, 2, 3}, "yyy"},
    {.51, .8, .79, .05, {2, 1, 3}, "yyy"},
    /* not so with a smaller tie; as far as the tie itself is a tie */
    {.51, .8, .79, .005, {1, 1, 2}, "yny"},
    {.51, .8, .79, .005, {2, 1, 3}, "nny"},
    {.51, .8, .79, 0, {1, 2, 3}, "yyy"},
    {.5, .8, .8, 0, {1, 1, 2}, "yyy"},
    {.55, .8, .79, .05, {2, 1, 3}, "yyy"},
    /* a chain: a ties with b and b with c, but a beats c */
    {.54, .58, .54, .05, {1, 1, 1}, "yyy"},
    {.54, .58, .54, .05, {1, 1, 2}, "yyy"},
    {.54, .58, .54, .05, {1, 2, 2}, "yyy"},
    {.54, .58, .54, .05, {2, 1, 1}, "nyn"},
    {.54, .58, .54, .05, {2, 2, 1}, "nyn"},
    /* a class whose arms do not tie with one of them */
    {.8, .9, .7, .05, {1, 1, 1}, "ynn"},
    {.8, .9, .52, .05, {1, 1, 1}, "nyy"},
    /* a cycle has no order: the two that are the wrong way round are not right */
    {.7, .3, .7, .05, {1, 2, 3}, "nyn"},
    {.7, .3, .7, .05, {2, 3, 1}, "ynn"},
    /* an arm without a class is neither, but stands below those with one */
    {.7, .8, .7, .05, {1, 0, 0}, "ynn"},
    {.7, .8, .7, .05, {0, 1, 0}, "nnn"},
    {.51, .8, .79, .05, {0, 1, 0}, "nyn"},
    {.51, .8, .79, .05, {0, 0, 0}, "nnn"},
};

static void test_an_arm_is_right_by_the_duels_that_are_claimed(void **state) {
  for (size_t i = 0; i < sizeof(rankings) / sizeof(rankings[0]); i++) {
    const struct ranking *given = &rankings[i];
    double chance[ARMS * ARMS] = {0, given->ab, given->ac, 1 - given->ab, 0, given->bc, 1 - given->ac, 1 - given->bc};
    const struct cv_pairs pairs = {.arms = ARMS, .chance = chance};
    struct cv_standing standing[ARMS] = {0};
    bool right[ARMS];
    for (uint32_t arm = 0; arm < ARMS; arm++) {
      standing[arm] = (struct cv_standing){.arm = arm, .rank_class = given->rank_class[arm]};
    }
    cv_pairs_right(&pairs, given->tie, standing, right);
    for (uint32_t arm = 0; arm < ARMS; arm++) {
      if (right[arm] != (given->right[arm] == 'y')) {
        fail_msg("ranking %zu: arm %u is %s", i, arm, right[arm] ? "right" : "not right");
      }
    }
  }
}

static void test_strengths_are_pairs_too(void **state) {
  double strength[] = {.9, .3, .8};
  const struct cv_pairs pairs = {.arms = ARMS, .strength = strength};
  const struct cv_standing standing[] = {
      {.arm = 0, .rank_class = 1}, {.arm = 1, .rank_class = 1}, {.arm = 2, .rank_class = 2}};
  bool right[ARMS];
  cv_pairs_right(&pairs, .05, standing, right);
  assert_true(right[0] && !right[1] && !right[2]); /* arm 2 beats arm 1, and a class of two strengths is none */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_arm_is_right_by_the_duels_that_are_claimed),
      cmocka_unit_test(test_strengths_are_pairs_too),
  };
  return cmocka_run_group_tests_name("pairs", tests, NULL, NULL);
}
