/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens in two shares: what both brokers find in them, and what binds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "tests/support/duo.h"

static struct duo duo;
static struct cv_session *session;
static struct cv_digest context;

static void begin(uint32_t score_bits) {
  duo_init(&duo, score_bits);
  struct cv_terms terms = {.id = 3, .name = "test", .tokens_per_worker = 2, .arms = 4, .split = duo.split};
  struct cv_share_session told = {.terms = terms};
  assert_int_equal(cv_session_new(&duo.ops, &terms, 10, &session, NULL), CV_OK);
  assert_true(cv_session_asks(session, 0));
  assert_int_equal(cv_session_begin(session, &duo.keys, &told, NULL), CV_OK);
  cv_split_context(&duo.split, &duo.keys, terms.id, cv_sha256, &context);
}

static void end(void) {
  cv_session_free(session);
  assert_int_equal(duo.open, 0);
}

static void test_both_brokers_find_the_measurement(void **state) {
  static const struct {
    uint32_t bits;
    uint64_t measurement;
  } cases[] = {{CV_SPLIT_SCORE, 0},     {CV_SPLIT_SCORE, 1}, {CV_SPLIT_SCORE, 12345}, {CV_SPLIT_SCORE, 16383},
               {CV_SPLIT_SCORE, 16384}, {CV_SPLIT_BIT, 0},   {CV_SPLIT_BIT, 1}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    begin(cases[i].bits);
    struct cv_split_token token = {.plan = 2, .arm = 1, .place = 77, .worker = 5, .slot = 1};
    struct cv_token_share share;
    uint8_t leader[CV_SPLIT_LEADER_MOST];
    assert_int_equal(cv_worker_split(session, cases[i].measurement, &token, leader, &share), CV_OK);
    assert_int_equal(duo_judge(&duo, &share, &context, &token), cases[i].measurement);
    end();
  }
}

/* A broker that says another place, plan, arm, worker, slot or nonce, or under another context, opens nothing. */
static void test_shares_are_bound_to_their_token(void **state) {
  begin(CV_SPLIT_SCORE);
  const struct cv_split_token at = {.plan = 2, .arm = 1, .place = 77, .worker = 5, .slot = 1};
  struct cv_split_token token = at;
  struct cv_token_share share;
  uint8_t leader[CV_SPLIT_LEADER_MOST];
  assert_int_equal(cv_worker_split(session, 9000, &token, leader, &share), CV_OK);
  struct cv_split_token other[6] = {token, token, token, token, token, token};
  other[0].plan++;
  other[1].arm++;
  other[2].place++;
  other[3].worker++;
  other[4].slot++;
  other[5].nonce[0]++;
  for (size_t i = 0; i < CV_COUNT(other); i++) {
    assert_int_equal(duo_judge(&duo, &share, &context, &other[i]), -1);
  }
  struct cv_digest elsewhere;
  struct cv_duo disguised = {.broker = duo.keys.broker, .cobroker = duo.keys.broker};
  cv_split_context(&duo.split, &disguised, 3, cv_sha256, &elsewhere);
  assert_int_equal(duo_judge(&duo, &share, &elsewhere, &token), -1);
  cv_split_context(&duo.split, &duo.keys, 4, cv_sha256, &elsewhere);
  assert_int_equal(duo_judge(&duo, &share, &elsewhere, &token), -1);
  leader[3] ^= 1;
  assert_int_equal(duo_judge(&duo, &share, &context, &token), -1);
  leader[3] ^= 1;
  assert_int_equal(duo_judge(&duo, &share, &context, &token), 9000);
  end();
}

/* The same measurement of the same place, again and again: nothing of it repeats. */
static void test_every_sharding_is_fresh(void **state) {
  enum { TIMES = 200 };
  static struct cv_token_share share[TIMES];
  static uint8_t leader[TIMES][CV_SPLIT_LEADER_MOST];
  begin(CV_SPLIT_SCORE);
  for (size_t i = 0; i < TIMES; i++) {
    struct cv_split_token token = {.plan = 1, .arm = 1, .place = 1, .worker = 1, .slot = 0};
    assert_int_equal(cv_worker_split(session, 5, &token, leader[i], &share[i]), CV_OK);
    assert_int_equal(share[i].counter, i);
    for (size_t j = 0; j < i; j++) {
      assert_memory_not_equal(share[i].nonce, share[j].nonce, sizeof(share[i].nonce));
      assert_memory_not_equal(share[i].sealed, share[j].sealed, CV_SPLIT_SEED_BYTES);
      assert_memory_not_equal(leader[i], leader[j], 8);
    }
  }
  end();
}

static void test_a_score_is_rounded_without_bias(void **state) {
  enum { TIMES = 1 << 18, STEP = 64 };
  static const int64_t scores[] = {1, 32, 63, 64 * 1000 + 17, CV_GRID - 1};
  struct cv_rng_seeded coin;
  cv_rng_seeded_init(&coin, 1, CV_RNG_ROUNDING, 0, 0);
  for (size_t i = 0; i < CV_COUNT(scores); i++) {
    uint64_t floor = (uint64_t)scores[i] / STEP, up = 0, measurement;
    double part = (double)(scores[i] % STEP) / STEP;
    for (int n = 0; n < TIMES; n++) {
      assert_true(cv_worker_measure(CV_SPLIT_SCORE, scores[i], &coin.rng, &measurement));
      assert_in_range(measurement, floor, floor + 1);
      up += measurement - floor;
    }
    double deviation = (double)up - part * TIMES;
    assert_true(deviation * deviation < 25 * TIMES * part * (1 - part)); /* five standard deviations */
  }
}

static void test_what_is_on_the_grid_is_not_rounded(void **state) {
  struct cv_rng_seeded coin;
  uint64_t measurement;
  cv_rng_seeded_init(&coin, 1, CV_RNG_ROUNDING, 0, 0);
  for (uint64_t i = 0; i <= 1 << 14; i++) {
    assert_true(cv_worker_measure(CV_SPLIT_SCORE, (int64_t)i * 64, &coin.rng, &measurement));
    assert_int_equal(measurement, i);
  }
}

static void test_what_has_no_measurement(void **state) {
  static const struct {
    uint32_t bits;
    int64_t value;
  } cases[] = {{CV_SPLIT_SCORE, -1}, {CV_SPLIT_SCORE, CV_GRID + 1}, {CV_SPLIT_SCORE, INT64_MIN}, {CV_SPLIT_BIT, -1},
               {CV_SPLIT_BIT, 1},    {CV_SPLIT_BIT, CV_GRID - 1},   {CV_SPLIT_BIT, CV_GRID + 1}};
  struct cv_rng_seeded coin;
  uint64_t measurement = 99;
  cv_rng_seeded_init(&coin, 1, CV_RNG_ROUNDING, 0, 0);
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    assert_false(cv_worker_measure(cases[i].bits, cases[i].value, &coin.rng, &measurement));
  }
  assert_true(cv_worker_measure(CV_SPLIT_BIT, 0, &coin.rng, &measurement));
  assert_int_equal(measurement, 0);
  assert_true(cv_worker_measure(CV_SPLIT_BIT, CV_GRID, &coin.rng, &measurement));
  assert_int_equal(measurement, 1);
}

/* ---- slots ---- */

static void test_slots(void **state) {
  static const uint32_t each[] = {1, 3, 511, 513, UINT32_MAX - 1};
  for (size_t i = 0; i < CV_COUNT(each); i++) {
    struct cv_slots slots;
    assert_int_equal(cv_slots_init(&slots, 700, each[i]), CV_OK);
    const uint32_t last = each[i] - 1;
    for (uint64_t worker = 0; worker < 700; worker += 7) {
      assert_int_equal(cv_slots_at(&slots, worker, last), CV_SLOT_FREE);
      assert_int_equal(cv_slots_use(&slots, worker, last), CV_OK);
      assert_int_equal(cv_slots_use(&slots, worker, last), CV_OK);
      assert_int_equal(cv_slots_at(&slots, worker, last), CV_SLOT_USED);
      assert_int_equal(slots.open[worker], 1);
      assert_int_equal(cv_slots_at(&slots, worker + 1, last), CV_SLOT_FREE);
      assert_int_equal(slots.open[worker + 1], 0);
    }
    for (uint64_t worker = 0; worker < 700; worker += 14) {
      cv_slots_settle(&slots, worker, last);
      cv_slots_settle(&slots, worker, last);
      assert_int_equal(cv_slots_at(&slots, worker, last), CV_SLOT_SETTLED);
      assert_int_equal(slots.open[worker], 0);
      assert_int_equal(cv_slots_at(&slots, worker + 7, last), CV_SLOT_USED);
      assert_int_equal(cv_slots_use(&slots, worker, last), CV_OK); /* it stays settled */
      assert_int_equal(cv_slots_at(&slots, worker, last), CV_SLOT_SETTLED);
      assert_int_equal(slots.open[worker], 0);
    }
    cv_slots_fini(&slots);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_both_brokers_find_the_measurement),
      cmocka_unit_test(test_shares_are_bound_to_their_token),
      cmocka_unit_test(test_every_sharding_is_fresh),
      cmocka_unit_test(test_a_score_is_rounded_without_bias),
      cmocka_unit_test(test_what_is_on_the_grid_is_not_rounded),
      cmocka_unit_test(test_what_has_no_measurement),
      cmocka_unit_test(test_slots),
  };
  return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
