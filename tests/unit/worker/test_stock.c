/* SPDX-License-Identifier: Apache-2.0 */
/* Persons with rows of their own, in a pool with a broker that assigns arms in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "tests/unit/worker/pool.h"

enum { PERSONS = 60, FIRST = 1001 };

/* Person p has one row of each arm in the bits of `arms`, all with the score p. */
static struct cv_persons make(uint32_t count, uint32_t arms) {
  struct cv_persons persons;
  uint64_t row = 0, each = (uint64_t)__builtin_popcount(arms);
  assert_int_equal(cv_persons_init(&persons, count, count * each), CV_OK);
  for (uint32_t p = 0; p < count; p++) {
    for (uint32_t arm = 0; arm < ARMS; arm++) {
      if ((arms >> arm & 1) != 0) {
        persons.arm[row] = arm;
        persons.value[row++] = p;
      }
    }
    persons.start[p + 1] = row;
  }
  return persons;
}

static struct cv_stock *stock_of(const struct cv_persons *persons, uint64_t first, uint64_t last) {
  const struct cv_stock_config config = {
      .persons = persons, .first_worker = FIRST, .first = first, .last = last, .arms = ARMS, .seed = 1};
  struct cv_stock *stock;
  assert_int_equal(cv_stock_new(&config, &stock), CV_OK);
  return stock;
}

static bool anybody(void *data, uint64_t worker) {
  return true;
}

static enum cv_stock_may at_once(void *data, uint64_t worker) {
  return CV_STOCK_COMES;
}

static void test_a_person_is_a_worker_and_gives_each_row_once(void **state) {
  struct cv_persons persons = make(PERSONS, 5);
  struct cv_stock *stock = stock_of(&persons, FIRST + 10, FIRST + 19);
  uint64_t row;
  int64_t score;
  size_t taken;
  assert_int_equal(cv_stock_persons(stock), 10);
  assert_false(cv_stock_has(stock, FIRST + 9, 0));
  assert_false(cv_stock_has(stock, FIRST + 10, 1));
  assert_false(cv_stock_has(stock, FIRST + 10, ARMS));
  assert_int_equal(cv_stock_left(stock, FIRST + 10), 2);
  assert_true(cv_stock_take(stock, FIRST + 10, 2, &row, &score));
  assert_int_equal(score, 10);
  assert_false(cv_stock_take(stock, FIRST + 10, 2, &row, &score));
  assert_true(cv_stock_take(stock, FIRST + 10, 0, &row, &score));
  assert_int_equal(cv_stock_left(stock, FIRST + 10), 0);
  assert_memory_equal(cv_stock_taken(stock, &taken), ((uint32_t[]){21, 20}), 2 * sizeof(uint32_t));
  assert_int_equal(taken, 2);
  cv_stock_kept(stock);
  (void)cv_stock_taken(stock, &taken);
  assert_int_equal(taken, 0);
  cv_stock_free(stock);
  /* after a restart */
  stock = stock_of(&persons, FIRST + 10, FIRST + 19);
  assert_true(cv_stock_mark(stock, 21) && cv_stock_mark(stock, 21) && cv_stock_mark(stock, 3));
  assert_false(cv_stock_mark(stock, 120));
  assert_false(cv_stock_has(stock, FIRST + 10, 2));
  assert_int_equal(cv_stock_left(stock, FIRST + 10), 1);
  cv_stock_free(stock);
  stock = stock_of(&persons, 1, FIRST - 1);
  assert_int_equal(cv_stock_persons(stock), 0);
  cv_stock_free(stock);
  cv_persons_fini(&persons);
}

static void test_one_row_of_an_item_while_each_is_asked_once(void **state) {
  struct cv_persons persons = {.persons = 2,
                               .start = (uint64_t[]){0, 4, 6},
                               .arm = (uint32_t[]){0, 1, 0, 0, 1, 1},
                               .value = (uint32_t[]){1, 2, 3, 4, 5, 6}};
  struct cv_stock *stock = stock_of(&persons, FIRST, FIRST + 1);
  uint64_t row, first, worker;
  uint32_t arm;
  int64_t score;
  assert_true(cv_stock_mark(stock, 5)); /* in an earlier run */
  assert_int_equal(cv_stock_left(stock, FIRST + 1), 1);
  assert_int_equal(cv_stock_ask_once(stock, true), CV_OK);
  assert_int_equal(cv_stock_ask_once(stock, true), CV_OK);
  assert_int_equal(cv_stock_left(stock, FIRST), 2); /* of its three rows of arm 0 one */
  assert_int_equal(cv_stock_left(stock, FIRST + 1), 0);
  assert_true(cv_stock_has_given(stock, FIRST + 1, 1) && !cv_stock_has(stock, FIRST + 1, 1));
  assert_true(cv_stock_take(stock, FIRST, 0, &first, &score));
  assert_true(first == 0 || first == 2 || first == 3);
  assert_int_equal(cv_stock_left(stock, FIRST), 1);
  assert_int_equal(cv_stock_given(stock, FIRST), 1);
  assert_false(cv_stock_take(stock, FIRST, 0, &row, &score));
  assert_false(cv_stock_any_of(stock, 0, anybody, NULL));
  for (int i = 0; i < 2; i++) { /* nobody comes for arm 0 */
    assert_true(cv_stock_next(stock, 0, at_once, NULL, &worker, &arm));
    assert_true(worker == FIRST && arm == 1);
    cv_stock_forget(stock, arm);
  }
  assert_int_equal(cv_stock_ask_once(stock, false), CV_OK);
  assert_int_equal(cv_stock_left(stock, FIRST), 3);
  assert_int_equal(cv_stock_left(stock, FIRST + 1), 1);
  assert_true(cv_stock_any_of(stock, 0, anybody, NULL));
  assert_true(cv_stock_next(stock, 0, at_once, NULL, &worker, &arm) && worker == FIRST && arm == 0);
  assert_true(cv_stock_take(stock, FIRST, 0, &row, &score) && row != first && persons.arm[row] == 0);
  assert_int_equal(cv_stock_left(stock, FIRST), 2);
  cv_stock_free(stock);
}

/* The file may be sorted by score, and the order of arrivals must not reveal that. */
static void test_persons_do_not_come_in_the_order_of_the_file(void **state) {
  struct cv_persons persons = make(PERSONS, 1);
  struct cv_stock *stock = stock_of(&persons, FIRST, FIRST + PERSONS - 1);
  uint64_t worker, last = 0;
  uint32_t arm, rising = 0;
  for (uint32_t i = 0; i < PERSONS; i++) {
    uint64_t row;
    int64_t score;
    assert_true(cv_stock_next(stock, 0, at_once, NULL, &worker, &arm));
    assert_int_equal(arm, 0);
    assert_true(cv_stock_take(stock, worker, 0, &row, &score));
    cv_stock_dealt(stock, arm, 0, 0);
    rising += worker > last;
    last = worker;
  }
  assert_in_range(rising, PERSONS / 4, 3 * PERSONS / 4);
  assert_false(cv_stock_next(stock, 0, at_once, NULL, &worker, &arm));
  cv_stock_free(stock);
  cv_persons_fini(&persons);
}

/* A broker that wants `places` more tokens of each arm and assigns them as the real one does. */
struct dealer {
  uint32_t places[ARMS], cursor;
  uint32_t tokens, declines, sent_back;
  uint32_t spent; /* arms that were told to be used up */
};

static uint32_t pick(struct dealer *dealer, uint32_t wish) {
  if (wish != CV_WISH_NONE) {
    return dealer->places[wish] > 0 ? wish : ARMS;
  }
  for (uint32_t i = 0; i < ARMS; i++) {
    uint32_t arm = dealer->cursor++ % ARMS;
    if (dealer->places[arm] > 0) {
      return arm;
    }
  }
  return ARMS;
}

static void deal(struct stage *stage, struct dealer *dealer) {
  static uint64_t away[MANY];
  struct cv_backoff backoff = {.worker = away, .delay_ms = 20, .why = "no place now"};
  struct cv_token token[MANY];
  const struct cv_crowd_frame sent = stage->sent;
  uint64_t worker[MANY];
  uint32_t wish[MANY];
  size_t n = arrived(stage);
  assert_true(n < MANY && sent.tokens < MANY);
  for (size_t i = 0; i < sent.tokens; i++) {
    token[i] = sent.token[i];
  }
  for (size_t i = 0; i < n; i++) {
    worker[i] = sent.arrive->worker[i];
    wish[i] = sent.arrive->wish[i];
  }
  for (size_t i = 0; i < sent.declines; i++) {
    dealer->declines += sent.decline[i].has_ticket;
    dealer->spent += (uint32_t)sent.decline[i].arms;
  }
  dealer->tokens += (uint32_t)sent.tokens;
  begin(stage);
  for (size_t i = 0; i < sent.tokens; i++) {
    say_ack(stage, &token[i], CV_VERDICT_ACCEPTED, NULL);
  }
  for (size_t i = 0; i < n; i++) {
    uint32_t arm = pick(dealer, wish[i]);
    if (arm == ARMS) {
      away[backoff.workers++] = worker[i];
    } else {
      dealer->places[arm]--;
      (void)say_assign(stage, worker[i], arm, 0);
    }
  }
  dealer->sent_back += (uint32_t)backoff.workers;
  stage->frame.backoff = &backoff;
  stage->frame.backoffs = backoff.workers > 0;
  deliver(stage);
}

/* `each`: tokens that the terms allow; `limit`: that the owner allows, 0: the same. */
static void begin_with(struct stage *stage, struct cv_stock *stock, uint32_t each, uint32_t limit) {
  setup(stage, FIRST, FIRST + PERSONS - 1, 64);
  stage->config.stock = stock;
  stage->config.accept.tokens = limit;
  start(stage);
  begin(stage);
  say_hello(stage);
  (void)say_terms(stage, CAMPAIGN, each);
  deliver(stage);
}

static struct stage stage;

/* Odd persons have arms 0 and 1, even ones 2 and 3: all rows are given, almost without a decline. */
static void test_all_rows_that_are_wanted_are_given(void **state) {
  struct cv_persons persons = make(PERSONS, 3);
  struct dealer dealer = {.places = {MANY, MANY, MANY, MANY}};
  for (uint32_t p = 0; p < PERSONS; p += 2) {
    persons.arm[persons.start[p]] = 2;
    persons.arm[persons.start[p] + 1] = 3;
  }
  struct cv_stock *stock = stock_of(&persons, FIRST, FIRST + PERSONS - 1);
  begin_with(&stage, stock, 5, 0);
  for (int i = 0; i < 200 && !cv_worker_is_done(stage.pool); i++) {
    deal(&stage, &dealer);
    stage.now_ms++;
  }
  assert_true(cv_worker_is_done(stage.pool));
  assert_int_equal(dealer.tokens, 2 * PERSONS);
  assert_int_equal(dealer.declines + dealer.sent_back, 0);
  assert_int_equal(dealer.spent, ARMS); /* each arm once, before the pool is done */
  assert_int_equal(figures(&stage).accepted, 2 * PERSONS);
  cv_worker_free(stage.pool);
  cv_stock_free(stock);
  cv_persons_fini(&persons);
}

/* How many arms the pool has told to be used up after a second. */
static uint32_t spent_after_a_second(void) {
  uint32_t spent = 0;
  for (int i = 0; i < 1000 && arrived(&stage) == 0; i++) {
    stage.now_ms++;
    begin(&stage);
    deliver(&stage);
    for (size_t j = 0; j < stage.sent.declines; j++) {
      spent += (uint32_t)stage.sent.decline[j].arms;
    }
  }
  return spent;
}

/* A person that may give one token has rows of two arms. Until its token counts, neither is used up: a token that came
 * too late leaves it one to give, and the broker asks no connection again for an arm that it has told to be used up. */
static void test_an_arm_is_not_used_up_while_a_token_may_be_too_late(void **state) {
  static const enum cv_verdict verdict[] = {CV_VERDICT_EXPIRED, CV_VERDICT_ACCEPTED};
  struct cv_persons persons = make(1, 3);
  struct cv_stock *stock = stock_of(&persons, FIRST, FIRST);
  begin_with(&stage, stock, 1, 0);
  for (size_t i = 0; i < CV_COUNT(verdict); i++) {
    assert_int_equal(arrived(&stage), 1);
    uint32_t wish = stage.sent.arrive->wish[0];
    assert_in_range(wish, 0, 1);
    begin(&stage);
    (void)say_assign(&stage, FIRST, wish, i);
    deliver(&stage);
    assert_int_equal(stage.sent.tokens, 1);
    struct cv_token token = *sent_token(&stage, 0);
    uint32_t without = spent_after_a_second();
    begin(&stage);
    say_ack(&stage, &token, verdict[i], NULL);
    deliver(&stage);
    uint32_t with = spent_after_a_second();
    assert_int_equal(without, 0);
    assert_int_equal(with, verdict[i] == CV_VERDICT_ACCEPTED ? 2 : 0);
  }
  cv_worker_free(stage.pool);
  cv_stock_free(stock);
  cv_persons_fini(&persons);
}

/* Places of arms that no person here can fill: a few ask now and then, and once their arm is wanted it is filled. */
static void test_no_worker_asks_in_a_loop_for_arms_that_are_not_wanted(void **state) {
  struct cv_persons persons = make(PERSONS, 1);
  struct dealer dealer = {.places = {0, MANY, MANY, MANY}};
  struct cv_stock *stock = stock_of(&persons, FIRST, FIRST + PERSONS - 1);
  begin_with(&stage, stock, 5, 0);
  for (int i = 0; i < 10000; i++) { /* ten seconds, a turn each millisecond */
    deal(&stage, &dealer);
    stage.now_ms++;
  }
  assert_int_equal(dealer.tokens, 0);
  assert_in_range(dealer.declines + dealer.sent_back, 5, 200);
  dealer.places[0] = 10;
  uint64_t from_ms = stage.now_ms;
  while (dealer.tokens < 10 && stage.now_ms < from_ms + 6000) {
    deal(&stage, &dealer);
    stage.now_ms++;
  }
  assert_int_equal(dealer.tokens, 10);
  cv_worker_free(stage.pool);
  cv_stock_free(stock);
  cv_persons_fini(&persons);
}

/* The wanted arm is that of persons that have rows of it left and may give no more: the others cannot help. */
static void test_no_worker_asks_in_a_loop_for_arms_of_other_workers(void **state) {
  struct cv_persons persons = make(PERSONS, 3);
  struct dealer dealer = {.places = {INT32_MAX}};
  for (uint64_t row = 0; row < persons.start[PERSONS]; row++) {
    persons.arm[row] = row < persons.start[PERSONS / 2] ? 0 : 1;
  }
  struct cv_stock *stock = stock_of(&persons, FIRST, FIRST + PERSONS - 1);
  begin_with(&stage, stock, 5, 1);
  for (int i = 0; i < 10000; i++) { /* ten seconds, a turn each millisecond */
    deal(&stage, &dealer);
    stage.now_ms++;
  }
  assert_int_equal(dealer.tokens, PERSONS / 2);
  assert_in_range(dealer.declines + dealer.sent_back, 5, 200);
  cv_worker_free(stage.pool);
  cv_stock_free(stock);
  cv_persons_fini(&persons);
}

/* A person that has given as many tokens as the terms allow has rows left, and does not arrive. */
static void test_rows_beyond_the_terms_are_not_given(void **state) {
  struct cv_persons persons = make(PERSONS, 15);
  struct dealer dealer = {.places = {MANY, MANY, MANY, MANY}};
  struct cv_stock *stock = stock_of(&persons, FIRST, FIRST + PERSONS - 1);
  begin_with(&stage, stock, 3, 0);
  for (int i = 0; i < 300 && !cv_worker_is_done(stage.pool); i++) {
    deal(&stage, &dealer);
    stage.now_ms++;
  }
  assert_true(cv_worker_is_done(stage.pool));
  assert_int_equal(dealer.tokens, 3 * PERSONS);
  cv_worker_free(stage.pool);
  cv_stock_free(stock);
  cv_persons_fini(&persons);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_person_is_a_worker_and_gives_each_row_once),
      cmocka_unit_test(test_one_row_of_an_item_while_each_is_asked_once),
      cmocka_unit_test(test_persons_do_not_come_in_the_order_of_the_file),
      cmocka_unit_test(test_all_rows_that_are_wanted_are_given),
      cmocka_unit_test(test_an_arm_is_not_used_up_while_a_token_may_be_too_late),
      cmocka_unit_test(test_no_worker_asks_in_a_loop_for_arms_that_are_not_wanted),
      cmocka_unit_test(test_no_worker_asks_in_a_loop_for_arms_of_other_workers),
      cmocka_unit_test(test_rows_beyond_the_terms_are_not_given),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
