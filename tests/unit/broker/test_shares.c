/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many places each connection gets: the fair share; the share of a connection that has not answered yet, which is
 * halved with every lease in which it was silent and grows with its answers; and places that are given twice.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "broker/requester.h"
#include "broker/workers.h"
#include "gateways.h"

/* max(64, want / connections) halved `penalty` times, but never less than one place. */
static void test_figures(void **state) {
  static const struct {
    uint32_t want;
    unsigned connections, penalty, expected;
  } cases[] = {
      {3000, 1, 0, 3000}, {3000, 2, 0, 1500}, {3000, 8, 0, 375}, {3000, 8, 1, 187}, {300, 8, 0, 64}, {300, 8, 1, 32},
      {300, 8, 3, 8},     {300, 8, 6, 1},     {300, 8, 7, 1},    {300, 8, 16, 1},   {10, 1, 0, 10},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    static struct world world;
    begin(&world, cases[i].want);
    for (unsigned k = 0; k < cases[i].connections; k++) {
      (void)join(&world, k);
    }
    struct gateway *gateway = &world.gateway[0];
    gateway->conn->workers->penalty = cases[i].penalty;
    arrive(&world, gateway, ASSIGNED);
    turn(&world);
    assert_int_equal(gateway->tickets, cases[i].expected);
    turn(&world);
    assert_int_equal(gateway->tickets, cases[i].expected);
    end(&world);
  }
}

/* Every connection takes the available places in turn: none gets ahead of another. */
static void test_connections_get_the_same(void **state) {
  static struct world world;
  begin(&world, 800);
  for (size_t i = 0; i < GATEWAYS; i++) {
    arrive(&world, join(&world, i), ASSIGNED);
    world.gateway[i].conn->workers->penalty = 0;
  }
  turn(&world);
  for (size_t i = 0; i < GATEWAYS; i++) {
    assert_int_equal(world.gateway[i].tickets, 100);
  }
  end(&world);
}

/* A new connection starts with an eighth, and has all of its share after 8 + 16 + 32 answers. */
static void test_share_grows_with_answers(void **state) {
  static const unsigned shares[] = {8, 16, 32, 64, 64};
  static struct world world;
  begin(&world, 300);
  for (size_t i = 0; i < GATEWAYS; i++) {
    (void)join(&world, i);
  }
  struct gateway *gateway = &world.gateway[0];
  arrive(&world, gateway, ASSIGNED);
  for (size_t i = 0; i < CV_COUNT(shares); i++) {
    turn(&world);
    assert_int_equal(gateway->tickets, shares[i]);
    answer(&world, gateway, shares[i]);
  }
  end(&world);
}

/* Thousands of arrivals and not one token: each lease without an answer halves the share, down to a single place. */
static void test_silence_halves_the_share(void **state) {
  static struct world world;
  begin(&world, 300);
  for (size_t i = 0; i < GATEWAYS; i++) {
    (void)join(&world, i);
  }
  struct gateway *gateway = &world.gateway[0];
  gateway->conn->workers->penalty = 0;
  arrive(&world, gateway, ASSIGNED);
  turn(&world);
  for (unsigned expected = 64; expected > 0; expected /= 2) {
    assert_int_equal(gateway->tickets, expected);
    gateway->tickets = 0;
    pass(&world, LEASE_MS);
  }
  for (unsigned i = 0; i < 3 * CV_PENALTY_MAX; i++) {
    assert_int_equal(gateway->tickets, 1);
    gateway->tickets = 0;
    pass(&world, LEASE_MS);
  }
  /* A connection that begins to answer gets more again, but one answer in a lease is not enough for that. */
  for (unsigned i = 0; i < 60 && gateway->tickets < 16; i++) {
    answer(&world, gateway, gateway->tickets);
    turn(&world);
  }
  assert_int_equal(gateway->tickets, 16);
  for (unsigned i = 0; i < 4; i++) {
    answer(&world, gateway, 1);
    gateway->tickets = 0;
    pass(&world, LEASE_MS);
  }
  assert_in_range(gateway->tickets, 1, 4);
  end(&world);
}

/*
 * A gateway that takes places and does not answer delays an epoch by an eighth of a lease at most: then other workers
 * get the places, too, and the first answer is counted.
 */
static void test_places_are_given_again(void **state) {
  static struct world world;
  begin(&world, 100);
  struct gateway *silent = join(&world, 0), *honest = join(&world, 1);
  silent->conn->workers->penalty = honest->conn->workers->penalty = 0;
  arrive(&world, silent, 64);
  turn(&world);
  assert_int_equal(silent->tickets, 64);
  arrive(&world, honest, 200);
  turn(&world);
  assert_int_equal(honest->tickets, 36);
  answer(&world, honest, 36);
  pass(&world, LEASE_MS / 8 - 1);
  assert_int_equal(honest->tickets, 0);
  pass(&world, 1);
  assert_int_equal(honest->tickets, 64);
  answer(&world, silent, 4); /* these are early enough to count */
  answer(&world, honest, 59);
  turn(&world);
  assert_int_equal(world.releases, 0);
  answer(&world, honest, 1);
  turn(&world);
  assert_int_equal(world.releases, 1); /* a hundred, each once */
  answer(&world, honest, 4);
  answer(&world, silent, 60);
  turn(&world);
  assert_int_equal(honest->verdicts[CV_VERDICT_ACCEPTED], 96);
  assert_int_equal(honest->verdicts[CV_VERDICT_EXPIRED], 4);
  assert_int_equal(silent->verdicts[CV_VERDICT_ACCEPTED], 4);
  assert_int_equal(silent->verdicts[CV_VERDICT_EXPIRED], 60);
  end(&world);
}

/* No place is given twice while there are places that were never given. */
static void test_fresh_places_come_first(void **state) {
  static struct world world;
  begin(&world, 1000);
  struct gateway *silent = join(&world, 0), *honest = join(&world, 1);
  silent->conn->workers->penalty = 3;
  arrive(&world, silent, 64);
  turn(&world);
  size_t taken = silent->tickets;
  pass(&world, LEASE_MS / 2);
  arrive(&world, honest, 100);
  honest->conn->workers->penalty = 0;
  turn(&world);
  assert_int_equal(honest->tickets, 100);
  answer(&world, honest, 100);
  answer(&world, silent, taken);
  turn(&world);
  assert_int_equal(honest->verdicts[CV_VERDICT_ACCEPTED], 100);
  assert_int_equal(silent->verdicts[CV_VERDICT_ACCEPTED], taken);
  end(&world);
}

/* One requester's connections cannot take the places of all others. */
static void test_connections_of_a_requester(void **state) {
  static struct world world;
  static const struct cv_identity requester = {.role = CV_ROLE_REQUESTER, .name = "r"};
  static const struct cv_identity other = {.role = CV_ROLE_REQUESTER, .name = "s"};
  struct cv_broker_conn *conn, *last = NULL;
  struct cv_why why;
  begin(&world, 10);
  for (unsigned i = 1; i < CV_REQUESTER_CONNS; i++) {
    assert_int_equal(cv_broker_join(world.core, &requester, NULL, &last, &why), CV_OK);
  }
  assert_int_equal(cv_broker_join(world.core, &requester, NULL, &conn, &why), CV_ERR_LIMIT);
  assert_string_equal(why.text, "17 connections of requester r; expected at most 16");
  assert_int_equal(cv_broker_join(world.core, &other, NULL, &conn, &why), CV_OK);
  cv_broker_leave(world.core, last);
  assert_int_equal(cv_broker_join(world.core, &requester, NULL, &conn, &why), CV_OK);
  end(&world);
}

/* A worker that wishes for an arm gets that one or none; no worker behind it waits for it, and no other arm's place
 * is taken. */
static void test_a_wish_is_granted_or_the_worker_sent_back(void **state) {
  static struct world world;
  uint64_t worker[40];
  uint32_t wish[40];
  begin(&world, 30);
  struct gateway *gateway = join(&world, 0);
  gateway->conn->workers->penalty = 0;
  for (uint32_t i = 0; i < 40; i++) {
    worker[i] = gateway->next_worker++;
    wish[i] = i < 10 ? 1 : i < 13 ? 2 + i : i < 20 ? CV_WISH_NONE : 0; /* only arm 0 is wanted */
  }
  struct cv_arrive arrival = {.workers = 40, .worker = worker, .wish = wish, .credit = CV_CREDIT_MAX};
  say(&world, gateway, &(struct cv_crowd_frame){.arrives = 1, .arrive = &arrival});
  turn(&world);
  assert_int_equal(gateway->away, 13);
  assert_int_equal(gateway->tickets, 27);
  arrive(&world, gateway, 3);
  turn(&world);
  assert_int_equal(gateway->tickets, 30);
  /* No place is free at all: the next plan may ask for any arm. */
  wish[0] = 1;
  worker[0] = gateway->next_worker++;
  arrival.workers = 1;
  say(&world, gateway, &(struct cv_crowd_frame){.arrives = 1, .arrive = &arrival});
  turn(&world);
  assert_int_equal(gateway->away, 13);
  end(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_figures),
      cmocka_unit_test(test_connections_get_the_same),
      cmocka_unit_test(test_share_grows_with_answers),
      cmocka_unit_test(test_silence_halves_the_share),
      cmocka_unit_test(test_places_are_given_again),
      cmocka_unit_test(test_fresh_places_come_first),
      cmocka_unit_test(test_connections_of_a_requester),
      cmocka_unit_test(test_a_wish_is_granted_or_the_worker_sent_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
