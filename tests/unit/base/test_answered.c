/* SPDX-License-Identifier: Apache-2.0 */
/* Records of answers, against a table of all answers: for few and many questions, short and long lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>
#include <string.h>

#include "common/base/answered.h"
#include "common/base/rng.h"
#include "common/base/spec.h"

enum { WORKERS = 40, QUESTIONS = 50 };

static void answer(struct cv_answered *asked, uint64_t worker, uint32_t nth, uint64_t question) {
  struct cv_chunk *chunk;
  assert_int_equal(cv_answered_touch(asked, worker, nth, question, &chunk), CV_OK);
  cv_answered_set(asked, chunk, worker, nth, question);
}

static const struct {
  uint64_t questions;
  uint32_t each;
} sizes[] = {{1, 1},     {20, 1},        {131072, 1},        {2, 2},         {20, 20},
             {20, 3},    {1000, 20},     {1000, 999},        {131072, 2},    {131072, 7000},
             {1000, 60}, {70000, 60000}, {8589869056, 4000}, {UINT32_MAX, 5}};

/* Some of the questions, with the first and the last one. */
static uint64_t question_at(uint64_t questions, uint32_t i, uint32_t n) {
  return i + 1 == n ? questions - 1 : questions / n * i;
}

static void what_is_answered_is_known_and_nothing_else(void **state) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 4, CV_RNG_ROWS, 0, 0);
  for (size_t s = 0; s < CV_COUNT(sizes); s++) {
    uint32_t n = sizes[s].questions < QUESTIONS ? (uint32_t)sizes[s].questions : QUESTIONS;
    uint32_t each = sizes[s].each < n ? sizes[s].each : n, given[WORKERS] = {0};
    bool known[WORKERS][QUESTIONS] = {{false}};
    struct cv_answered asked;
    cv_answered_init(&asked, sizes[s].questions, sizes[s].each, UINT32_MAX);
    for (int step = 0; step < 400; step++) {
      uint32_t worker = (uint32_t)cv_rng_below(&rng.rng, WORKERS), i = (uint32_t)cv_rng_below(&rng.rng, n);
      uint64_t question = question_at(sizes[s].questions, i, n), id = worker * UINT64_C(7919);
      assert_int_equal(cv_answered_has(&asked, id, question), known[worker][i]);
      if (known[worker][i] && cv_rng_below(&rng.rng, 3) == 0) {
        cv_answered_clear(&asked, id, given[worker]--, question);
        known[worker][i] = false;
      } else if (!known[worker][i] && given[worker] < each) {
        answer(&asked, id, given[worker]++, question);
        known[worker][i] = true;
      }
    }
    uint64_t answers = 0;
    for (uint32_t worker = 0; worker < WORKERS; worker++) {
      answers += given[worker];
      for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(cv_answered_has(&asked, worker * UINT64_C(7919), question_at(sizes[s].questions, i, n)),
                         known[worker][i]);
      }
    }
    assert_int_equal(cv_answered_count(&asked), answers);
    cv_answered_fini(&asked);
  }
}

/* The shorter record of both, in whole chunks: at most 1/100 more than its bits. */
static void a_record_is_short(void **state) {
  static const struct {
    uint64_t questions;
    uint32_t each;
    uint32_t bits;
  } cases[] = {{20, 20, 20}, {1000, 20, 200}, {1000, 1, 10}, {100, 20, 100}, {131072, 20, 360}, {0, 20, 0}};
  enum { MANY = 100000 };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_answered asked;
    cv_answered_init(&asked, cases[i].questions, cases[i].each, UINT32_MAX);
    for (uint64_t worker = 0; worker < MANY && cases[i].bits > 0; worker++) {
      answer(&asked, worker, 0, worker % cases[i].questions);
    }
    uint64_t bytes = (uint64_t)asked.chunks.count * CV_CHUNK_BYTES;
    assert_in_range(bytes, (uint64_t)cases[i].bits * MANY / 8,
                    (uint64_t)cases[i].bits * MANY / 8 * 101 / 100 + (cases[i].bits > 0 ? CV_CHUNK_BYTES : 0));
    assert_false(cv_answered_has(&asked, MANY + 1, 0));
    cv_answered_fini(&asked);
  }
}

/* Each unordered pair has a number of its own, whoever is asked about. */
static void a_pair_is_one_question_in_both_orders(void **state) {
  enum { ITEMS = 40 };
  bool seen[ITEMS * (ITEMS - 1) / 2] = {false};
  for (uint32_t a = 0; a < ITEMS; a++) {
    assert_int_equal(cv_answered_question(a, 0), a);
    for (uint32_t b = 0; b < a; b++) {
      uint64_t question = cv_answered_question(a, b + 1);
      assert_int_equal(cv_answered_question(b, a + 1), question);
      assert_true(question < CV_COUNT(seen) && !seen[question]);
      seen[question] = true;
    }
    assert_int_equal(cv_spec_all_questions(a, false), a);
    assert_int_equal(cv_spec_all_questions(a + 1, true), (uint64_t)(a + 1) * a / 2);
  }
}

/* A certificate has at most half of the chunks, as in every other table. */
static void room_is_shared(void **state) {
  struct cv_answered asked;
  cv_answered_init(&asked, 1000, 20, 2);
  answer(&asked, 0, 0, 7);
  uint64_t each = CV_CHUNK_BITS / 200;
  assert_true(cv_answered_has_room(&asked, 1, 0, 7, 0, 10 * each));
  assert_false(cv_answered_has_room(&asked, each, 0, 7, 0, 10 * each));
  assert_true(cv_answered_has_room(&asked, each, 0, 7, each, 2 * each - 1));
  cv_answered_fini(&asked);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_answered_is_known_and_nothing_else),
      cmocka_unit_test(a_record_is_short),
      cmocka_unit_test(a_pair_is_one_question_in_both_orders),
      cmocka_unit_test(room_is_shared),
  };
  return cmocka_run_group_tests_name("asked", tests, NULL, NULL);
}
