/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets how many places: the fair share, the share of who has not answered yet, the one that halves with every lease
 * in which a connection was silent and grows with its answers, and places that are given out once more.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <string.h>

#include "broker/state.h"
#include "common/crypto/crypto.h"

enum { LEASE_MS = 1000, GATEWAYS = 8, RANGE = 100000, ASSIGNED = 4096 };

struct gateway {
  struct cv_broker_conn *conn;
  uint64_t next_worker;
  uint8_t ticket[ASSIGNED][CV_TICKET_BYTES]; /* assigned and not answered */
  size_t tickets;
  unsigned verdicts[5];
};

struct world {
  struct cv_broker *core;
  struct cv_batch batch;
  struct cv_broker_conn *rank, *order;
  struct gateway gateway[GATEWAYS];
  uint64_t now_ms, releases;
};

static enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *to, size_t n) {
  memset(to, 7, n);
  return CV_OK;
}

static const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION};

static void say_rank(struct world *world, const struct cv_rank_frame *frame) {
  struct cv_why why;
  assert_int_equal(cv_broker_on_rank(world->core, world->rank, frame, world->now_ms, &why), CV_OK);
}

static void say(struct world *world, struct gateway *gateway, const struct cv_crowd_frame *frame) {
  struct cv_why why;
  assert_int_equal(cv_broker_on_crowd(world->core, gateway->conn, frame, world->now_ms, world->now_ms, &why), CV_OK);
}

static void hear(struct gateway *gateway, const struct cv_crowd_frame *frame) {
  for (size_t i = 0; i < frame->assigns; i++) {
    assert_true(gateway->tickets < ASSIGNED);
    memcpy(gateway->ticket[gateway->tickets++], frame->assign[i].ticket, CV_TICKET_BYTES);
  }
  for (size_t i = 0; i < frame->acks; i++) {
    gateway->verdicts[frame->ack[i].verdict]++;
  }
}

static void turn(struct world *world) {
  bool store;
  struct cv_broker_out out;
  assert_int_equal(cv_broker_flush(world->core, world->now_ms, world->now_ms, &world->batch, &store), CV_OK);
  cv_broker_stored(world->core);
  while (cv_broker_next_out(world->core, &out)) {
    for (size_t i = 0; out.schema == CV_SCHEMA_CROWD && i < GATEWAYS; i++) {
      if (world->gateway[i].conn == out.conn) {
        hear(&world->gateway[i], out.frame.crowd);
      }
    }
    world->releases += out.schema == CV_SCHEMA_RANK ? out.frame.rank->releases : 0;
  }
}

static void pass(struct world *world, uint64_t ms) {
  world->now_ms += ms;
  cv_broker_tick(world->core, world->now_ms, world->now_ms);
  turn(world);
}

static struct gateway *join(struct world *world, size_t i) {
  struct cv_identity identity = {.role = CV_ROLE_GATEWAY, .first = 1 + i * RANGE, .last = (i + 1) * RANGE};
  struct gateway *gateway = &world->gateway[i];
  struct cv_why why;
  (void)snprintf(identity.name, sizeof(identity.name), "%zu", i);
  assert_int_equal(cv_broker_join(world->core, &identity, NULL, &gateway->conn, &why), CV_OK);
  gateway->next_worker = identity.first;
  say(world, gateway, &(struct cv_crowd_frame){.hello = hello});
  return gateway;
}

static void arrive(struct world *world, struct gateway *gateway, size_t n) {
  uint64_t worker[ASSIGNED];
  for (size_t i = 0; i < n; i++) {
    worker[i] = gateway->next_worker++;
  }
  struct cv_arrive arrival = {.workers = n, .worker = worker, .credit = CV_CREDIT_MAX};
  say(world, gateway, &(struct cv_crowd_frame){.arrives = 1, .arrive = &arrival});
}

/* Answers the oldest n assignments. */
static void answer(struct world *world, struct gateway *gateway, size_t n) {
  int64_t value = 1;
  assert_true(n <= gateway->tickets);
  for (size_t i = 0; i < n; i++) {
    struct cv_token token = {.values = 1, .value = &value};
    memcpy(token.ticket, gateway->ticket[i], CV_TICKET_BYTES);
    say(world, gateway, &(struct cv_crowd_frame){.tokens = 1, .token = &token});
  }
  gateway->tickets -= n;
  memmove(gateway->ticket, gateway->ticket[n], gateway->tickets * CV_TICKET_BYTES);
}

static void join_others(struct world *world) {
  static const struct cv_identity thirdparty = {.role = CV_ROLE_THIRDPARTY, .name = "t"};
  static const struct cv_identity requester = {.role = CV_ROLE_REQUESTER, .name = "r"};
  struct cv_why why;
  assert_int_equal(cv_broker_join(world->core, &thirdparty, NULL, &world->rank, &why), CV_OK);
  assert_int_equal(cv_broker_join(world->core, &requester, NULL, &world->order, &why), CV_OK);
  say_rank(world, &(struct cv_rank_frame){.hello = hello});
}

static void plan(struct world *world, uint32_t want) {
  struct cv_want wants[] = {{.arm = 0, .tokens = want}};
  struct cv_rank_plan plan = {.campaign = 1, .plan = {.number = 1, .wants = 1, .want = wants}};
  say_rank(world, &(struct cv_rank_frame){.plans = 1, .plan = &plan});
  turn(world);
}

/* A campaign of one arm whose first plan wants so many tokens. */
static void begin(struct world *world, uint32_t want) {
  const struct cv_broker_config config = {.name = "b",
                                          .limits = {.epsilon_micro = 1000000,
                                                     .worker_epsilon_micro = 1000000,
                                                     .release_tokens = 1,
                                                     .arms = 2,
                                                     .campaigns = 2,
                                                     .tokens = 1000000,
                                                     .chunks = 1000,
                                                     .lease_ms = LEASE_MS,
                                                     .queue = ASSIGNED},
                                          .tagger = {.tag = tag},
                                          .digest = cv_sha256,
                                          .noise_seeded = true};
  *world = (struct world){.now_ms = 1000};
  assert_int_equal(cv_broker_new(&config, &world->core), CV_OK);
  assert_int_equal(cv_broker_restore_end(world->core, 0, NULL, world->now_ms, world->now_ms), CV_OK);
  join_others(world);
  struct cv_order_frame frame = {.hello = hello, .kind = CV_ORDER_SUBMIT};
  frame.as.submit.spec = (struct cv_spec){.name = "test",
                                          .arms = 2,
                                          .policy.name = "scripted",
                                          .mechanism.name = "hybrid",
                                          .privatizer.name = "none",
                                          .epsilon_micro = 500000,
                                          .tokens_per_worker = 1,
                                          .tokens = 1000000};
  struct cv_why why;
  assert_int_equal(cv_broker_on_order(world->core, world->order, &frame, world->now_ms, world->now_ms, &why), CV_OK);
  turn(world);
  struct cv_rank_opened opened = {.position = {.campaign = 1}, .seed = 5};
  say_rank(world, &(struct cv_rank_frame){.opened = 1, .answer = &opened});
  turn(world);
  plan(world, want);
}

static void end(struct world *world) {
  cv_broker_free(world->core);
  cv_batch_fini(&world->batch);
}

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
    gateway->conn->penalty = cases[i].penalty;
    arrive(&world, gateway, ASSIGNED);
    turn(&world);
    assert_int_equal(gateway->tickets, cases[i].expected);
    turn(&world);
    assert_int_equal(gateway->tickets, cases[i].expected);
    end(&world);
  }
}

/* Everybody takes what there is, in turn: no connection gets ahead of another. */
static void test_connections_get_the_same(void **state) {
  static struct world world;
  begin(&world, 800);
  for (size_t i = 0; i < GATEWAYS; i++) {
    arrive(&world, join(&world, i), ASSIGNED);
    world.gateway[i].conn->penalty = 0;
  }
  turn(&world);
  for (size_t i = 0; i < GATEWAYS; i++) {
    assert_int_equal(world.gateway[i].tickets, 100);
  }
  end(&world);
}

/* A stranger begins with an eighth and has all of its share after 8 + 16 + 32 answers. */
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

/* Thousands of arrivals and not one token: each lease in vain halves the share, down to a single place. */
static void test_silence_halves_the_share(void **state) {
  static struct world world;
  begin(&world, 300);
  for (size_t i = 0; i < GATEWAYS; i++) {
    (void)join(&world, i);
  }
  struct gateway *gateway = &world.gateway[0];
  gateway->conn->penalty = 0;
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
  /* Who begins to answer is given more again, but one answer a lease is not enough for that. */
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
 * A gateway that takes places and does not answer holds an epoch up for an eighth of a lease at most: then others get
 * them, too, and whoever answers first is counted.
 */
static void test_places_are_given_again(void **state) {
  static struct world world;
  begin(&world, 100);
  struct gateway *silent = join(&world, 0), *honest = join(&world, 1);
  silent->conn->penalty = honest->conn->penalty = 0;
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
  answer(&world, silent, 4); /* these are early enough */
  answer(&world, honest, 59);
  turn(&world);
  assert_int_equal(world.releases, 0);
  answer(&world, honest, 1);
  turn(&world);
  assert_int_equal(world.releases, 1); /* one hundred, each once */
  answer(&world, honest, 4);
  answer(&world, silent, 60);
  turn(&world);
  assert_int_equal(honest->verdicts[CV_VERDICT_ACCEPTED], 96);
  assert_int_equal(honest->verdicts[CV_VERDICT_EXPIRED], 4);
  assert_int_equal(silent->verdicts[CV_VERDICT_ACCEPTED], 4);
  assert_int_equal(silent->verdicts[CV_VERDICT_EXPIRED], 60);
  end(&world);
}

/* While there are places that nobody has had, none is given twice. */
static void test_fresh_places_come_first(void **state) {
  static struct world world;
  begin(&world, 1000);
  struct gateway *silent = join(&world, 0), *honest = join(&world, 1);
  silent->conn->penalty = 3;
  arrive(&world, silent, 64);
  turn(&world);
  size_t taken = silent->tickets;
  pass(&world, LEASE_MS / 2);
  arrive(&world, honest, 100);
  honest->conn->penalty = 0;
  turn(&world);
  assert_int_equal(honest->tickets, 100);
  answer(&world, honest, 100);
  answer(&world, silent, taken);
  turn(&world);
  assert_int_equal(honest->verdicts[CV_VERDICT_ACCEPTED], 100);
  assert_int_equal(silent->verdicts[CV_VERDICT_ACCEPTED], taken);
  end(&world);
}

/* One requester cannot take the places of all others. */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_figures),
      cmocka_unit_test(test_connections_get_the_same),
      cmocka_unit_test(test_share_grows_with_answers),
      cmocka_unit_test(test_silence_halves_the_share),
      cmocka_unit_test(test_places_are_given_again),
      cmocka_unit_test(test_fresh_places_come_first),
      cmocka_unit_test(test_connections_of_a_requester),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
