/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A score privatized by the coins of its opinion (worker/coin.h), by a generator that goes on, as an answer of a person
 * is, and not at all. Bounded by one permutation of TurboSHAKE for each opinion.
 */
#include "common/base/err.h"
#include "common/base/grid.h"
#include "tests/bench/bench.h"
#include "worker/coin.h"
#include "worker/privatizer/privatizer.h"

enum { OPINIONS = 1 << 18 };

static uint64_t by_coin(void *arg) {
  static const uint8_t key[CV_COIN_KEY_BYTES] = {1};
  const struct cv_privatizer *privatizer = arg;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < OPINIONS; i++) {
    struct cv_coin coin;
    cv_coin_init(&coin, key, &privatizer->law, &(struct cv_opinion){.arm = 1, .number = i});
    sum += (uint64_t)cv_privatizer_apply(privatizer, 1, CV_GRID / 4, &coin.rng);
    cv_coin_wipe(&coin);
  }
  return sum;
}

static uint64_t by_generator(void *arg) {
  const struct cv_privatizer *privatizer = arg;
  struct cv_rng_seeded rng;
  uint64_t sum = 0;
  cv_rng_seeded_init(&rng, 1, CV_RNG_PRIVATIZER, 1, 0);
  for (uint64_t i = 0; i < OPINIONS; i++) {
    sum += (uint64_t)cv_privatizer_apply(privatizer, 1, CV_GRID / 4, &rng.rng);
  }
  return sum;
}

int main(void) {
  for (size_t i = 0; cv_local_names[i] != NULL; i++) {
    struct cv_choice choice = {.params = {.count = 0}};
    struct cv_privatizer *privatizer;
    char what[64];
    (void)snprintf(choice.name, sizeof(choice.name), "%s", cv_local_names[i]);
    CV_REQUIRE(i == CV_LOCAL_NONE || cv_params_set_number(&choice.params, "epsilon", 1) == CV_OK);
    CV_REQUIRE(cv_privatizer_new(&choice, 2, &privatizer, NULL) == CV_OK);
    (void)snprintf(what, sizeof(what), "%s, by a coin", choice.name);
    cv_bench(what, "tokens", OPINIONS, by_coin, privatizer);
    (void)snprintf(what, sizeof(what), "%s, by a generator", choice.name);
    cv_bench(what, "tokens", OPINIONS, by_generator, privatizer);
    cv_privatizer_free(privatizer);
  }
  return 0;
}
