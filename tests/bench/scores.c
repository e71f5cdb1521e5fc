/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scores of consecutive places, and gains of consecutive rounds of a game of T = 2^18, one by one; the gains also in
 * blocks of 512. The costs: one by one, eleven mixing functions for each stream; in blocks, three of them (two more of
 * its words, where a coin needs two uniforms), and for the walk a normal and the sum over its ancestors.
 */
#include "common/base/err.h"
#include "tests/bench/bench.h"
#include "worker/quality/quality.h"

enum { ARMS = 4, PLACES = 1 << 18, BLOCK = 512 };

static uint64_t one_by_one(void *arg) {
  uint64_t sum = 0;
  for (uint64_t place = 0; place < PLACES; place++) {
    int64_t score;
    CV_REQUIRE(cv_quality_score(arg, 1, place, &score) == CV_OK);
    sum += (uint64_t)score;
  }
  return sum;
}

static uint64_t in_blocks(void *arg) {
  uint64_t sum = 0;
  int32_t gain[BLOCK];
  for (uint64_t t = 1; t <= PLACES; t += BLOCK) {
    cv_adversary_fill(arg, 1, t, BLOCK, gain);
    sum += (uint64_t)gain[t / BLOCK % BLOCK];
  }
  return sum;
}

int main(void) {
  const struct cv_quality_item item[ARMS] = {{0.3, 0.2}, {0.5, 0.3}, {0.6, 0.2}, {0.7, 0.2}};
  struct cv_quality *quality;
  char what[64];
  for (size_t i = 0; cv_quality_model_at(i) != NULL; i++) {
    CV_REQUIRE(cv_quality_new(cv_quality_model_at(i), item, ARMS, 1, &quality, NULL) == CV_OK);
    cv_bench(cv_quality_model_at(i)->name, "tokens", PLACES, one_by_one, quality);
    cv_quality_free(quality);
  }
  for (size_t i = 0; cv_adversary_at(i) != NULL; i++) {
    struct cv_adversary adversary = {.class = cv_adversary_at(i), .arms = ARMS, .best = 1, .rounds = PLACES, .seed = 1};
    CV_REQUIRE(cv_quality_new_adversary(&adversary, &quality, NULL) == CV_OK);
    (void)snprintf(what, sizeof(what), "%s, one by one", adversary.class->name);
    cv_bench(what, "rounds", PLACES, one_by_one, quality);
    (void)snprintf(what, sizeof(what), "%s, in blocks", adversary.class->name);
    cv_bench(what, "rounds", PLACES, in_blocks, &adversary);
    cv_quality_free(quality);
  }
  return 0;
}
