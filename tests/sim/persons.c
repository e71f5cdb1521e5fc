/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/persons.h"

enum { MORE = 5, ROWS_MOST = 6, APART = 8 };

/* Scores of one person differ in their lowest bits. */
static uint32_t score_of(const struct scenario *scenario, uint32_t arm, uint64_t row) {
  int64_t score = world_score(scenario, arm, row);
  return (uint32_t)(score - score % APART + (int64_t)(row % APART));
}

/* `rare`: one row in that many is of the last arm; the preceding row may be of the same arm. */
static uint32_t draw_arm(const struct scenario *scenario, uint64_t rare, const uint32_t *before, struct cv_rng *rng) {
  uint32_t arms = scenario->arms;
  if (before != NULL && cv_rng_below(rng, 2) == 0) {
    return *before;
  }
  return cv_rng_below(rng, rare) == 0 ? arms - 1 : (uint32_t)cv_rng_below(rng, arms - 1);
}

void persons_draw(const struct scenario *scenario, struct cv_persons *ret) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, scenario->seed, 86, 1, 0);
  struct cv_rng *rng = &seeded.rng;
  uint32_t persons = scenario->pools * scenario->pool_workers - scenario->first_person + 1 + MORE;
  uint64_t rare = cv_rng_below(rng, 2) == 0 ? 30 : scenario->arms, most = 1 + cv_rng_below(rng, ROWS_MOST), row = 0;
  CV_REQUIRE(cv_persons_init(ret, persons, (uint64_t)persons * ROWS_MOST) == CV_OK);
  for (uint32_t i = 0; i < persons; i++) {
    uint64_t rows = cv_rng_below(rng, 4) == 0 ? 0 : 1 + cv_rng_below(rng, most);
    for (uint64_t j = 0; j < rows; j++, row++) {
      ret->arm[row] = draw_arm(scenario, rare, j == 0 ? NULL : &ret->arm[row - 1], rng);
      ret->value[row] = score_of(scenario, ret->arm[row], row);
    }
    ret->start[i + 1] = row;
  }
}

void persons_rows(const struct world *world, uint64_t worker, uint64_t *ret_from, uint64_t *ret_to) {
  uint64_t first = world->scenario.first_person;
  bool is_one = worker >= first && worker - first < world->persons.persons;
  *ret_from = is_one ? world->persons.start[worker - first] : 0;
  *ret_to = is_one ? world->persons.start[worker - first + 1] : 0;
}
