/* SPDX-License-Identifier: Apache-2.0 */
/* Which row of an arm is given next: each that is left with the same probability, over many seeds of the order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <math.h>

#include "tests/unit/worker/pool.h"

enum { SEEDS = 6000, ROWS_MOST = 20, FIRST = 1 };

/* How often each of n things came at each place. */
struct places {
  uint32_t n;
  double count[ROWS_MOST][ROWS_MOST], orders;
};

/* How far the numbers are from those of uniform orders, in standard deviations of a chi-square. */
static double unevenness(const struct places *places) {
  double chi = 0, expected = places->orders / places->n, freedom = (places->n - 1.0) * (places->n - 1.0);
  for (uint32_t i = 0; i < places->n * places->n; i++) {
    double off = places->count[i / places->n][i % places->n] - expected;
    chi += off * off / expected;
  }
  return (chi - freedom) / sqrt(2 * freedom);
}

static void add_order(struct places *places, const uint32_t *order, uint32_t n) {
  assert_int_equal(n, places->n);
  for (uint32_t place = 0; place < n; place++) {
    places->count[order[place]][place]++;
  }
  places->orders++;
}

/* Persons with so many rows of arm 0 and one of each other arm, in the order of the file. */
static struct cv_persons make(const uint32_t *rows, uint32_t persons) {
  struct cv_persons made;
  uint64_t row = 0;
  assert_int_equal(cv_persons_init(&made, persons, ROWS_MOST + persons * (ARMS - 1)), CV_OK);
  for (uint32_t p = 0; p < persons; p++) {
    for (uint32_t i = 0; i < rows[p] + ARMS - 1; i++) {
      made.arm[row++] = i < rows[p] ? 0 : i - rows[p] + 1;
    }
    made.start[p + 1] = row;
  }
  return made;
}

static struct cv_stock *stock_of(const struct cv_persons *persons, uint64_t seed) {
  const struct cv_stock_config config = {.persons = persons,
                                         .first_worker = FIRST,
                                         .first = FIRST,
                                         .last = FIRST + persons->persons - 1,
                                         .arms = ARMS,
                                         .seed = seed};
  struct cv_stock *stock;
  assert_int_equal(cv_stock_new(&config, &stock), CV_OK);
  return stock;
}

static uint32_t owner_of(const struct cv_persons *persons, uint64_t row) {
  uint32_t person = 0;
  while (persons->start[person + 1] <= row) {
    person++;
  }
  return person;
}

/* ---- one row after the other ---- */

static enum cv_stock_may anybody(void *data, uint64_t worker) {
  return CV_STOCK_COMES;
}

/* Takes the row that is next; false if there is none. */
static bool take_next(struct cv_stock *stock, uint64_t *ret_row, uint32_t *ret_arm) {
  uint64_t worker;
  int64_t score;
  if (!cv_stock_next(stock, 0, anybody, NULL, &worker, ret_arm)) {
    return false;
  }
  assert_true(cv_stock_is_next(stock, worker, *ret_arm) && cv_stock_take(stock, worker, *ret_arm, ret_row, &score));
  cv_stock_dealt(stock, *ret_arm, *ret_arm, 0);
  return true;
}

/* The numbers of arm 0's rows, or of their persons, in the order in which they are given. */
static uint32_t order_of(const struct cv_persons *persons, uint64_t seed, bool once, bool by_person, uint32_t *order) {
  struct cv_stock *stock = stock_of(persons, seed);
  uint32_t n = 0, arm, number[ROWS_MOST * ARMS], rows = 0;
  uint64_t row;
  for (uint64_t i = 0; i < persons->start[persons->persons]; i++) {
    number[i] = persons->arm[i] == 0 ? rows++ : 0;
  }
  assert_int_equal(cv_stock_ask_once(stock, once), CV_OK);
  while (take_next(stock, &row, &arm)) {
    if (arm == 0) {
      order[n++] = by_person ? owner_of(persons, row) : number[row];
    }
  }
  cv_stock_free(stock);
  return n;
}

static void each_row_is_next_with_the_same_probability(void **state) {
  const uint32_t rows[] = {1, 6, 2, 3};
  struct cv_persons persons = make(rows, 4);
  struct places places = {.n = 12};
  uint32_t order[ROWS_MOST];
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    add_order(&places, order, order_of(&persons, seed, false, false, order));
  }
  assert_true(fabs(unevenness(&places)) < 5);
  cv_persons_fini(&persons);
}

/* Whoever has more rows of the arm does not come earlier, and gives any of them. */
static void each_person_is_next_with_the_same_probability_where_each_gives_one_row(void **state) {
  const uint32_t rows[] = {1, 6, 2, 3};
  struct cv_persons persons = make(rows, 4);
  struct places places = {.n = 4};
  uint32_t order[ROWS_MOST];
  double given[12] = {0}, chi = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    uint32_t n = order_of(&persons, seed, true, true, order);
    add_order(&places, order, n);
    n = order_of(&persons, seed, true, false, order);
    for (uint32_t i = 0; i < n; i++) {
      given[order[i]]++;
    }
  }
  assert_true(fabs(unevenness(&places)) < 5);
  for (uint32_t p = 0, row = 0; p < 4; p++) {
    for (uint32_t i = 0; i < rows[p]; i++, row++) {
      double expected = (double)SEEDS / rows[p];
      chi += (given[row] - expected) * (given[row] - expected) / expected;
    }
  }
  assert_true(chi < 8 + 5 * 4); /* 12 - 4 degrees of freedom, whose standard deviation is 4 */
  cv_persons_fini(&persons);
}

/* Rows that are marked as given in an earlier run do not make the others uneven. */
static void what_is_left_after_a_restart_is_drawn_alike(void **state) {
  const uint32_t rows[] = {2, 2, 2, 2, 2, 2};
  struct cv_persons persons = make(rows, 6);
  struct places places = {.n = 12};
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    uint32_t order[ROWS_MOST], n = 0, arm;
    uint64_t row, given[ROWS_MOST * ARMS], givens = 0;
    for (int life = 0; life < 3; life++) { /* with another order, as without a seed */
      struct cv_stock *stock = stock_of(&persons, 3 * seed + (uint64_t)life);
      for (uint64_t i = 0; i < givens; i++) {
        assert_true(cv_stock_mark(stock, given[i]));
      }
      for (uint32_t until = life < 2 ? n + 4 : UINT32_MAX; n < until && take_next(stock, &row, &arm);) {
        given[givens++] = row;
        if (arm == 0) {
          uint32_t person = owner_of(&persons, row);
          order[n++] = 2 * person + (uint32_t)(row - persons.start[person]);
        }
      }
      cv_stock_free(stock);
    }
    add_order(&places, order, n);
  }
  assert_true(fabs(unevenness(&places)) < 5);
  cv_persons_fini(&persons);
}

/* The orders that a stock must not have are seen. */
static void an_order_of_the_file_is_found(void **state) {
  struct places by_file = {.n = 12}, first_person = {.n = 12};
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    struct cv_rng_seeded rng;
    uint32_t drawn[12], order[12], next[4] = {0, 1, 7, 9};
    static const uint32_t owner[12] = {0, 1, 1, 1, 1, 1, 1, 2, 2, 3, 3, 3};
    cv_rng_seeded_init(&rng, seed, CV_RNG_ROWS, 0, 0);
    for (uint32_t i = 0; i < 12; i++) {
      uint32_t j = (uint32_t)cv_rng_below(&rng.rng, i + 1);
      drawn[i] = drawn[j];
      drawn[j] = i;
    }
    for (uint32_t i = 0; i < 12; i++) { /* persons at random, the rows of each as they are in the file */
      order[i] = next[owner[drawn[i]]]++;
    }
    add_order(&by_file, order, 12);
    /* uniform, but for one seed in ten, where the first row of the file comes first */
    for (uint32_t i = 0; i < 12 && seed % 10 == 0; i++) {
      if (drawn[i] == 0) {
        drawn[i] = drawn[0];
        drawn[0] = 0;
      }
    }
    add_order(&first_person, drawn, 12);
  }
  assert_true(unevenness(&by_file) > 20 && unevenness(&first_person) > 10);
}

/* ---- persons who are busy ---- */

enum { PEOPLE = 400, AT_ONCE = 20 };
struct crowd {
  struct cv_stock *stock;
  bool is_busy[PEOPLE + FIRST];
};

static enum cv_stock_may who_is_free(void *data, uint64_t worker) {
  const struct crowd *crowd = data;
  return crowd->is_busy[worker] ? CV_STOCK_BUSY : CV_STOCK_COMES;
}

/* Half of the persons have rows of arm 0 alone, the others of all arms. Returns the mean place of the latter among the
 * rows of arm 0, from 0 to 1: near 1/2 unless whoever has much to do comes later. */
static double place_of_the_busy(const struct cv_persons *persons, uint64_t seed) {
  struct crowd crowd = {.stock = stock_of(persons, seed)};
  struct cv_rng_seeded rng;
  uint64_t waiting[AT_ONCE], row;
  uint32_t wish[AT_ONCE], n = 0, given = 0;
  double sum = 0;
  int64_t score;
  cv_rng_seeded_init(&rng, seed, CV_RNG_ARRIVAL, 0, 0);
  for (;;) {
    while (n < AT_ONCE && cv_stock_next(crowd.stock, 0, who_is_free, &crowd, &waiting[n], &wish[n])) {
      crowd.is_busy[waiting[n++]] = true;
    }
    if (n == 0) {
      break;
    }
    uint32_t i = (uint32_t)cv_rng_below(&rng.rng, n);
    assert_true(cv_stock_take(crowd.stock, waiting[i], wish[i], &row, &score));
    cv_stock_dealt(crowd.stock, wish[i], wish[i], 0);
    crowd.is_busy[waiting[i]] = false;
    sum += wish[i] == 0 && score > 0 ? given : 0;
    given += wish[i] == 0;
    waiting[i] = waiting[--n];
    wish[i] = wish[n];
  }
  cv_stock_free(crowd.stock);
  assert_int_equal(given, PEOPLE);
  return sum / (PEOPLE / 2) / (PEOPLE - 1);
}

static void whoever_has_rows_of_many_arms_comes_as_early_as_others(void **state) {
  enum { TIMES = 200 };
  struct cv_persons persons;
  uint64_t row = 0;
  double mean = 0;
  assert_int_equal(cv_persons_init(&persons, PEOPLE, PEOPLE * ARMS), CV_OK);
  for (uint32_t p = 0; p < PEOPLE; p++) {
    for (uint32_t arm = 0; arm < (p % 2 == 0 ? 1 : ARMS); arm++) {
      persons.value[row] = p % 2;
      persons.arm[row++] = arm;
    }
    persons.start[p + 1] = row;
  }
  for (uint64_t seed = 0; seed < TIMES; seed++) {
    mean += place_of_the_busy(&persons, seed) / TIMES;
  }
  /* the place of a mean of 200 among 400 has a standard deviation of .0144, the mean of 200 of these .001 */
  if (fabs(mean - .5) > .005) {
    fail_msg("mean place %.4f", mean);
  }
  cv_persons_fini(&persons);
}

/* ---- the pool ---- */

static struct stage stage;

/* Everybody who comes gets what it wishes; returns how many tokens came in. */
static uint32_t serve(void) {
  const struct cv_crowd_frame sent = stage.sent;
  begin(&stage);
  for (size_t i = 0; i < sent.tokens; i++) {
    say_ack(&stage, &sent.token[i], CV_VERDICT_ACCEPTED, NULL);
  }
  for (size_t i = 0; i < arrived(&stage); i++) {
    (void)say_assign(&stage, sent.arrive->worker[i], sent.arrive->wish[i], stage.now_ms);
  }
  stage.now_ms++;
  deliver(&stage);
  return (uint32_t)sent.tokens;
}

/* A worker that comes to learn of campaigns comes in the order of numbers, which is that of the file. */
static void whoever_learns_of_a_campaign_gives_no_row_out_of_turn(void **state) {
  const uint32_t rows[] = {1, 1, 1, 1};
  struct cv_persons persons = make(rows, 4);
  struct cv_stock *stock = stock_of(&persons, 1);
  uint32_t arm = 0;
  setup(&stage, FIRST, FIRST + 3, 4);
  stage.config.stock = stock;
  start(&stage);
  begin(&stage);
  say_hello(&stage);
  (void)say_terms(&stage, CAMPAIGN, 1);
  deliver(&stage);
  for (uint32_t tokens = 0; tokens < 4;) { /* all that this campaign takes of them */
    tokens += serve();
  }
  while (arrived(&stage) == 0) {
    stage.now_ms += 100;
    begin(&stage);
    deliver(&stage);
  }
  uint64_t worker = arrived_worker(&stage, 0);
  assert_true(worker == FIRST && stage.sent.arrive->wish[0] == CV_WISH_NONE);
  while (!cv_stock_has(stock, worker, arm)) {
    arm++;
  }
  begin(&stage);
  (void)say_terms(&stage, CAMPAIGN + 1, ARMS);
  say_assign(&stage, worker, arm, 0)->campaign = CAMPAIGN + 1;
  deliver(&stage);
  assert_int_equal(stage.sent.tokens, 0);
  assert_string_equal(sent_decline(&stage)->why, "it is not the worker's turn for this arm");
  assert_true(cv_stock_has(stock, worker, arm));
  assert_true(arrived(&stage) > 0 && stage.sent.arrive->wish[0] != CV_WISH_NONE);
  cv_worker_free(stage.pool);
  cv_stock_free(stock);
  cv_persons_fini(&persons);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_row_is_next_with_the_same_probability),
      cmocka_unit_test(each_person_is_next_with_the_same_probability_where_each_gives_one_row),
      cmocka_unit_test(what_is_left_after_a_restart_is_drawn_alike),
      cmocka_unit_test(an_order_of_the_file_is_found),
      cmocka_unit_test(whoever_has_rows_of_many_arms_comes_as_early_as_others),
      cmocka_unit_test(whoever_learns_of_a_campaign_gives_no_row_out_of_turn),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
