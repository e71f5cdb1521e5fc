/* SPDX-License-Identifier: Apache-2.0 */
/* Which arms are played in which round of a plan, and which of an arm's scores a round shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <string.h>

#include "simulate/turns.h"

#define NO CV_TURNS_NO_ARM

static struct cv_want wants[] = {
    {.arm = 0, .tokens = 0}, {.arm = 2, .tokens = 3}, {.arm = 3, .tokens = 1}, {.arm = 5, .tokens = 2}};
static const struct cv_policy_step step = {.want = wants, .wants = CV_COUNT(wants)};

static void test_plays_are_taken_in_turn(void **state) {
  static const uint32_t expected[] = {2, 3, 5, 2, 5, 2};
  uint32_t played[8];
  for (uint64_t rounds = 0; rounds <= 8; rounds++) {
    memset(played, 0xff, sizeof(played));
    cv_turns_fill(&step, rounds, played);
    for (uint64_t i = 0; i < 8; i++) {
      assert_int_equal(played[i], i < rounds && i < 6 ? expected[i] : CV_TURNS_NO_ARM);
    }
  }
}

static void test_a_round_shows_the_played_arm_and_its_neighbours(void **state) {
  struct cv_edge edges[] = {{0, 2}, {0, 5}, {2, 4}};
  const struct cv_spec spec = {.arms = 6, .edge = edges, .edges = CV_COUNT(edges)};
  struct cv_neighbours graph;
  uint32_t played[6];
  assert_int_equal(cv_neighbours_init(&spec, &graph), CV_OK);
  cv_turns_fill(&step, 6, played); /* 2, 3, 5, 2, 5, 2 */
  static const uint32_t arms[] = {0, 2, 3, 4, 5},
                        expected[][6] = {
                            {0, NO, 1, 2, 3, 4},      /* by 2 and 5 */
                            {0, NO, NO, 1, NO, 2},    /* itself */
                            {NO, 0, NO, NO, NO, NO},  /* itself */
                            {NO, NO, NO, NO, NO, NO}, /* 2 would show it, but the plan does not name it */
                            {NO, NO, 0, NO, 1, NO},
                        };
  for (size_t i = 0; i < CV_COUNT(arms); i++) {
    for (uint64_t round = 0; round < 6; round++) {
      assert_int_equal(cv_turns_place(&step, &graph, played, round, arms[i]), expected[i][round]);
    }
  }
  assert_int_equal(cv_turns_place(&step, NULL, played, 3, 2), 1);
  assert_int_equal(cv_turns_place(&step, NULL, played, 3, 0), CV_TURNS_NO_ARM);
  cv_neighbours_fini(&graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plays_are_taken_in_turn),
      cmocka_unit_test(test_a_round_shows_the_played_arm_and_its_neighbours),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
