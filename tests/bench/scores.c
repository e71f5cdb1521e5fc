/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scores and gains of consecutive places, one by one and in blocks of 512; for adversaries of T = 2^18 rounds also all
 * four arms of each round together. What bounds them: one by one, eleven mixing functions a place for its stream; in
 * blocks, three of them (two more of its words, where a coin needs two uniforms), and for the normals and beta the
 * stream and their logarithms; for the walk a normal and the sum over its ancestors.
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
  int32_t score[BLOCK];
  for (uint64_t place = 0; place < PLACES; place += BLOCK) {
    CV_REQUIRE(cv_quality_scores(arg, 1, place, BLOCK, score) == CV_OK);
    sum += (uint64_t)score[place % BLOCK];
  }
  return sum;
}

static uint64_t summed(void *arg) {
  int64_t sum;
  CV_REQUIRE(cv_quality_sum(arg, 1, 0, PLACES, &sum) == CV_OK);
  return (uint64_t)sum;
}

static uint64_t of_all(void *arg) {
  uint64_t sum = 0;
  int32_t score[ARMS * BLOCK];
  for (uint64_t place = 0; place < PLACES; place += BLOCK) {
    CV_REQUIRE(cv_quality_scores_of_all(arg, place, BLOCK, score) == CV_OK);
    sum += (uint64_t)score[BLOCK + place % BLOCK];
  }
  return sum;
}

static void measure(const char *name, struct cv_quality *quality) {
  const struct {
    const char *what;
    uint64_t (*work)(void *);
  } ways[] = {{"one by one", one_by_one}, {"in blocks", in_blocks}, {"summed", summed}, {"four arms together", of_all}};
  bool adversary = cv_quality_adversary(quality) != NULL;
  for (size_t i = 0; i < CV_COUNT(ways); i++) {
    char what[64];
    if (ways[i].work == (adversary ? summed : of_all)) {
      continue;
    }
    (void)snprintf(what, sizeof(what), "%s, %s", name, ways[i].what);
    cv_bench(what, adversary ? "rounds" : "tokens", PLACES, ways[i].work, quality);
  }
  cv_quality_free(quality);
}

int main(void) {
  const struct cv_quality_item item[ARMS] = {{0.3, 0.2}, {0.5, 0.3}, {0.6, 0.2}, {0.7, 0.2}};
  struct cv_quality *quality;
  for (size_t i = 0; cv_quality_model_at(i) != NULL; i++) {
    CV_REQUIRE(cv_quality_new(cv_quality_model_at(i), item, ARMS, 1, &quality, NULL) == CV_OK);
    measure(cv_quality_model_at(i)->name, quality);
  }
  for (size_t i = 0; cv_adversary_at(i) != NULL; i++) {
    const struct cv_adversary adversary = {
        .class = cv_adversary_at(i), .arms = ARMS, .best = 1, .rounds = PLACES, .seed = 1};
    CV_REQUIRE(cv_quality_new_adversary(&adversary, &quality, NULL) == CV_OK);
    measure(cv_adversary_at(i)->name, quality);
  }
  return 0;
}
