/* SPDX-License-Identifier: Apache-2.0 */
/* The draw of a maximal independent set: compared with a search through all sets of arms. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdbool.h>

#include "tests/support/near.h"
#include "thirdparty/policy/independent.h"

enum { ARMS = 9, SETS = 1 << ARMS };

struct graph {
  uint32_t neighbour[CV_INDEPENDENT_ARMS];
  uint32_t among;
};

static void join(struct graph *graph, uint32_t a, uint32_t b) {
  graph->neighbour[a] |= 1U << b;
  graph->neighbour[b] |= 1U << a;
}

/* No arm of the set has a neighbour in it, and every other arm has one. */
static bool is_maximal(const struct graph *graph, uint32_t set) {
  for (uint32_t arm = 0; arm < ARMS; arm++) {
    bool is_in = (set >> arm & 1) != 0, is_shown = (graph->neighbour[arm] & set) != 0;
    if ((graph->among >> arm & 1) == 0 ? is_in : is_in == is_shown) {
      return false;
    }
  }
  return true;
}

/* Every maximal set and no other one comes up, as often as any other: within 5 standard deviations. */
static void check(const struct graph *graph, uint64_t seed) {
  enum { EACH = 400 };
  uint32_t drawn[SETS] = {0}, sets = 0;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, seed, CV_RNG_POLICY, 0, 0);
  for (uint32_t set = 0; set < SETS; set++) {
    sets += is_maximal(graph, set);
  }
  for (uint32_t i = 0; i < sets * EACH; i++) {
    uint32_t set = cv_independent_draw(graph->neighbour, graph->among, &rng.rng);
    assert_true(set < SETS);
    drawn[set]++;
  }
  for (uint32_t set = 0; set < SETS; set++) {
    if (is_maximal(graph, set)) {
      assert_near(drawn[set], EACH, sets == 1 ? 0 : 5 * sqrt(EACH));
    } else {
      assert_int_equal(drawn[set], 0);
    }
  }
}

static void each_maximal_set_is_equally_likely(void **state) {
  for (uint64_t seed = 0; seed < 60; seed++) {
    struct graph graph = {{0}, 0};
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, seed, CV_RNG_GRAPH, 0, 0);
    double p = cv_rng_unit(&rng.rng);
    graph.among = seed % 3 == 0 ? SETS - 1 : 1 + (uint32_t)cv_rng_below(&rng.rng, SETS - 1);
    for (uint32_t a = 0; a < ARMS; a++) {
      for (uint32_t b = a + 1; b < ARMS; b++) {
        if (cv_rng_unit(&rng.rng) < p) {
          join(&graph, a, b);
        }
      }
    }
    check(&graph, seed);
  }
}

static void the_star_has_two_sets(void **state) {
  struct graph graph = {{0}, SETS - 1};
  for (uint32_t arm = 1; arm < ARMS; arm++) {
    join(&graph, 0, arm);
  }
  check(&graph, 1);
}

/* The graph of the most sets: 8 triangles, 3^8 sets; each draw takes one arm of each triangle. */
static void the_largest_graph_is_drawn_evenly(void **state) {
  enum { DRAWS = 1500 };
  uint32_t first = 0;
  struct graph graph = {{0}, (1U << CV_INDEPENDENT_ARMS) - 1};
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 5, CV_RNG_POLICY, 0, 0);
  for (uint32_t arm = 0; arm < CV_INDEPENDENT_ARMS; arm += 3) {
    join(&graph, arm, arm + 1);
    join(&graph, arm, arm + 2);
    join(&graph, arm + 1, arm + 2);
  }
  for (uint32_t i = 0; i < DRAWS; i++) {
    uint32_t set = cv_independent_draw(graph.neighbour, graph.among, &rng.rng);
    for (uint32_t arm = 0; arm < CV_INDEPENDENT_ARMS; arm += 3) {
      uint32_t three = set >> arm & 7;
      assert_true(three == 1 || three == 2 || three == 4);
      first += three == 1;
    }
  }
  assert_near(first / (8.0 * DRAWS), 1.0 / 3, 0.02);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_maximal_set_is_equally_likely),
      cmocka_unit_test(the_star_has_two_sets),
      cmocka_unit_test(the_largest_graph_is_drawn_evenly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
