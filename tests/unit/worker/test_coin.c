/* SPDX-License-Identifier: Apache-2.0 */
/* The coins of an opinion: the same ones each time, and others for any other opinion, law or key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/grid.h"
#include "worker/coin.h"
#include "worker/privatizer/privatizer.h"

enum { WORDS = 9 };

struct drawn {
  uint64_t word[WORDS];
};

static struct drawn draw(const uint8_t key[CV_COIN_KEY_BYTES], const struct cv_local *law,
                         const struct cv_opinion *opinion) {
  struct drawn drawn;
  struct cv_coin coin;
  cv_coin_init(&coin, key, law, opinion);
  for (size_t i = 0; i < WORDS; i++) {
    drawn.word[i] = cv_rng_u64(&coin.bits.rng);
  }
  cv_coin_wipe(&coin);
  return drawn;
}

static struct cv_local law_of(const char *name, double epsilon, double delta, const char *rule) {
  struct cv_choice choice = {.name = ""};
  struct cv_local law;
  struct cv_why why;
  (void)snprintf(choice.name, sizeof(choice.name), "%s", name);
  assert_int_equal(cv_params_set_number(&choice.params, "epsilon", epsilon), CV_OK);
  if (delta > 0) {
    assert_int_equal(cv_params_set_number(&choice.params, "delta", delta), CV_OK);
    assert_int_equal(cv_params_set_text(&choice.params, "rule", rule), CV_OK);
  }
  assert_int_equal(cv_local_init(&choice, 3, &law, &why), CV_OK);
  return law;
}

static const uint8_t key[CV_COIN_KEY_BYTES] = {7, [31] = 9}, other_key[CV_COIN_KEY_BYTES] = {7, [31] = 8};
static const struct cv_opinion row = {.source = 11, .arm = 1, .number = 5};

static void an_opinion_has_the_same_coins_each_time(void **state) {
  const struct cv_local law = law_of("randomized-response", .5, 0, NULL);
  struct drawn first = draw(key, &law, &row), again = draw(key, &law, &row);
  assert_memory_equal(&first, &again, sizeof(first));
}

/* Coins that two of them shared would tell the opinion, or that two opinions are alike. */
static void all_others_have_others(void **state) {
  const struct cv_local laws[] = {law_of("randomized-response", .5, 0, NULL),
                                  law_of("randomized-response", .6, 0, NULL),
                                  law_of("randomized-response", .5, .01, "optimal"),
                                  law_of("randomized-response", .5, .01, "printed"), law_of("laplace", .5, 0, NULL)};
  const struct cv_opinion rows[] = {
      row, {.source = 12, .arm = 1, .number = 5}, {.source = 11, .arm = 2, .number = 5}, {.source = 11, .arm = 1}};
  struct drawn seen[40];
  size_t n = 0;
  for (size_t i = 0; i <= CV_COUNT(laws); i++) {
    const struct cv_local *law = i < CV_COUNT(laws) ? &laws[i] : NULL;
    for (size_t j = 0; j < CV_COUNT(rows); j++) {
      seen[n++] = draw(key, law, &rows[j]);
    }
    seen[n++] = draw(other_key, law, &row);
  }
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < WORDS * n; j++) {
      assert_true(j / WORDS == i || seen[i].word[0] != seen[j / WORDS].word[j % WORDS]);
    }
  }
}

/* A matrix of its own an arm is a law of its own an arm. */
static void matrices_are_told_apart(void **state) {
  struct cv_local one = {.kind = CV_LOCAL_RESPONSE, .epsilon_micro = 5, .matrices = 1, .matrix = {{700000, 800000}}},
                  two = one;
  two.matrix[0].p11_micro--;
  struct drawn a = draw(key, &one, &row), b = draw(key, &two, &row);
  assert_memory_not_equal(&a, &b, sizeof(a));
}

/* The law of the coins is that of the privatizer: 10,000 opinions of 0 become 1 as often as it says. */
static void the_tokens_follow_the_privatizers_law(void **state) {
  enum { OPINIONS = 10000 };
  struct cv_choice choice = {.name = "randomized-response"};
  struct cv_privatizer *privatizer;
  struct cv_why why;
  uint32_t ones = 0;
  assert_int_equal(cv_params_set_number(&choice.params, "epsilon", 1), CV_OK);
  assert_int_equal(cv_privatizer_new(&choice, 2, &privatizer, &why), CV_OK);
  for (uint64_t i = 0; i < OPINIONS; i++) {
    struct cv_coin coin;
    cv_coin_init(&coin, key, &privatizer->law, &(struct cv_opinion){.source = 3, .number = i});
    ones += cv_privatizer_apply(privatizer, 0, 0, &coin.bits.rng) == CV_GRID;
  }
  cv_privatizer_free(privatizer);
  assert_in_range(ones, 2689 - 270, 2689 + 270); /* 1/(1 + e) of them, and six standard deviations */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_opinion_has_the_same_coins_each_time),
      cmocka_unit_test(all_others_have_others),
      cmocka_unit_test(matrices_are_told_apart),
      cmocka_unit_test(the_tokens_follow_the_privatizers_law),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
