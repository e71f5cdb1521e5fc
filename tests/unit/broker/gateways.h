/* SPDX-License-Identifier: Apache-2.0 */
/* The core without a store, and gateways that arrive and answer as the test says. Include after cmocka.h. */
#ifndef CV_TESTS_BROKER_GATEWAYS_H
#define CV_TESTS_BROKER_GATEWAYS_H

#include <stdio.h>
#include <string.h>

#include "broker/conn.h"
#include "broker/core.h"
#include "broker/restore.h"
#include "broker/state.h"
#include "broker/workers.h"
#include "common/crypto/crypto.h"

enum { LEASE_MS = 1000, GATEWAYS = 8, RANGE = 100000, ASSIGNED = 4096 };

struct gateway {
  struct cv_broker_conn *conn;
  uint64_t next_worker;
  uint8_t ticket[ASSIGNED][CV_TICKET_BYTES]; /* assigned and not answered yet */
  size_t tickets;
  unsigned verdicts[5];
  size_t away;       /* workers that were sent away */
  uint32_t delay_ms; /* what the last of them received */
};

struct world {
  struct cv_broker *core;
  struct cv_broker_batch batch;
  struct cv_broker_conn *rank, *order;
  struct gateway gateway[GATEWAYS];
  uint64_t now_ms, releases;
};

static inline enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *to, size_t n) {
  memset(to, 7, n);
  return CV_OK;
}

static const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION};

static inline void say_rank(struct world *world, const struct cv_rank_frame *frame) {
  struct cv_why why;
  assert_int_equal(cv_broker_on_rank(world->core, world->rank, frame, world->now_ms, &why), CV_OK);
}

static inline void say(struct world *world, struct gateway *gateway, const struct cv_crowd_frame *frame) {
  struct cv_why why;
  assert_int_equal(cv_broker_on_crowd(world->core, gateway->conn, frame, world->now_ms, world->now_ms, &why), CV_OK);
}

static inline void hear(struct gateway *gateway, const struct cv_crowd_frame *frame) {
  for (size_t i = 0; i < frame->assigns; i++) {
    assert_true(gateway->tickets < ASSIGNED);
    memcpy(gateway->ticket[gateway->tickets++], frame->assign[i].ticket, CV_TICKET_BYTES);
  }
  for (size_t i = 0; i < frame->acks; i++) {
    gateway->verdicts[frame->ack[i].verdict]++;
  }
  for (size_t i = 0; i < frame->backoffs; i++) {
    gateway->away += frame->backoff[i].workers;
    gateway->delay_ms = frame->backoff[i].delay_ms;
  }
}

static inline void turn(struct world *world) {
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

static inline void pass(struct world *world, uint64_t ms) {
  world->now_ms += ms;
  cv_broker_tick(world->core, world->now_ms, world->now_ms);
  turn(world);
}

static inline struct gateway *join_as(struct world *world, size_t i, uint64_t first, uint64_t last) {
  struct cv_identity identity = {.role = CV_ROLE_GATEWAY, .first = first, .last = last};
  struct gateway *gateway = &world->gateway[i];
  struct cv_why why;
  (void)snprintf(identity.name, sizeof(identity.name), "%zu", i);
  assert_int_equal(cv_broker_join(world->core, &identity, NULL, &gateway->conn, &why), CV_OK);
  gateway->next_worker = identity.first;
  say(world, gateway, &(struct cv_crowd_frame){.hello = hello});
  return gateway;
}

static inline struct gateway *join(struct world *world, size_t i) {
  return join_as(world, i, 1 + i * RANGE, (i + 1) * RANGE);
}

/* Lets this many workers arrive, `step` apart; 0: the same worker again and again. */
static inline void arrive_by(struct world *world, struct gateway *gateway, size_t n, uint64_t step) {
  uint64_t worker[ASSIGNED];
  for (size_t i = 0; i < n; i++) {
    worker[i] = gateway->next_worker;
    gateway->next_worker += step;
  }
  struct cv_arrive arrival = {.workers = n, .worker = worker, .credit = CV_CREDIT_MAX};
  say(world, gateway, &(struct cv_crowd_frame){.arrives = 1, .arrive = &arrival});
}

static inline void arrive(struct world *world, struct gateway *gateway, size_t n) {
  arrive_by(world, gateway, n, 1);
}

/* Answers the oldest n assignments. */
static inline void answer(struct world *world, struct gateway *gateway, size_t n) {
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

static inline void join_others(struct world *world) {
  static const struct cv_identity thirdparty = {.role = CV_ROLE_THIRDPARTY, .name = "t"};
  static const struct cv_identity requester = {.role = CV_ROLE_REQUESTER, .name = "r"};
  struct cv_why why;
  assert_int_equal(cv_broker_join(world->core, &thirdparty, NULL, &world->rank, &why), CV_OK);
  assert_int_equal(cv_broker_join(world->core, &requester, NULL, &world->order, &why), CV_OK);
  say_rank(world, &(struct cv_rank_frame){.hello = hello});
}

static inline void plan(struct world *world, uint32_t want) {
  struct cv_want wants[] = {{.arm = 0, .tokens = want}};
  struct cv_rank_plan plan = {.campaign = 1, .plan = {.number = 1, .wants = 1, .want = wants}};
  say_rank(world, &(struct cv_rank_frame){.plans = 1, .plan = &plan});
  turn(world);
}

/* A campaign of one arm whose first plan asks for this many tokens. */
static inline void begin_with(struct world *world, uint32_t want, uint32_t tokens_per_worker, uint64_t epsilon_micro,
                              uint32_t chunks) {
  const struct cv_broker_config config = {.name = "b",
                                          .limits = {.epsilon_micro = 1000000,
                                                     .worker_epsilon_micro = 1000000,
                                                     .release_tokens = 1,
                                                     .arms = 2,
                                                     .campaigns = 2,
                                                     .tokens = 1000000,
                                                     .chunks = chunks,
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
                                          .epsilon_micro = epsilon_micro,
                                          .tokens_per_worker = tokens_per_worker,
                                          .repeat = true,
                                          .tokens = 1000000};
  struct cv_why why;
  assert_int_equal(cv_broker_on_order(world->core, world->order, &frame, world->now_ms, world->now_ms, &why), CV_OK);
  turn(world);
  struct cv_rank_opened opened = {.position = {.campaign = 1}, .seed = 5};
  say_rank(world, &(struct cv_rank_frame){.opened = 1, .answer = &opened});
  turn(world);
  plan(world, want);
}

static inline void begin(struct world *world, uint32_t want) {
  begin_with(world, want, 1, 500000, 1000);
}

static inline void end(struct world *world) {
  cv_broker_free(world->core);
  cv_broker_batch_fini(&world->batch);
}

#endif
