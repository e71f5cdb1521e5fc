/* SPDX-License-Identifier: Apache-2.0 */
/* Every single allocation of a pool's life fails once, from its creation over a few connections to its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "tests/support/alloc_fault.h"
#include "tests/support/duo.h"
#include "worker/core.h"

enum { ARMS = 4, CAMPAIGN = 7, WORKERS = 200, TURNS = 60, BATCH = 128, TOKENS = 3 };

static enum cv_err score(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  *ret_score = 5;
  return CV_OK;
}

/* A broker that gives every worker that arrives a place, acknowledges every token, and loses the connection at times;
 * and a co-broker that does so, too. */
struct stage {
  struct cv_worker *pool;
  struct duo duo; /* all zero: one broker */
  uint32_t accepted[WORKERS + 1];
  bool waits[WORKERS + 1];
  size_t open; /* assignments */
  bool co_open;
  uint64_t now_ms, places, acked;
  struct cv_assign assign[BATCH];
  struct cv_crowd_ack ack[BATCH];
  size_t assigns, acks;
  bool met;
};

static void hear(struct stage *stage, const struct cv_crowd_frame *sent) {
  stage->assigns = stage->acks = 0;
  for (size_t i = 0; i < sent->tokens && i < BATCH; i++) {
    struct cv_crowd_ack *ack = &stage->ack[stage->acks++];
    *ack = (struct cv_crowd_ack){.verdict = CV_VERDICT_ACCEPTED};
    memcpy(ack->ticket, sent->token[i].ticket, sizeof(ack->ticket));
    stage->accepted[ack->ticket[CV_TICKET_BYTES - 1]]++;
    stage->open -= stage->open > 0;
  }
  for (size_t i = 0; sent->arrives > 0 && i < sent->arrive->workers; i++) {
    stage->waits[sent->arrive->worker[i]] = true;
  }
  for (uint64_t worker = 1; worker <= WORKERS && stage->open < BATCH / 2; worker++) {
    if (!stage->waits[worker]) {
      continue;
    }
    struct cv_assign *assign = &stage->assign[stage->assigns++];
    *assign = (struct cv_assign){.campaign = CAMPAIGN, .worker = worker, .arms = 1};
    stage->waits[worker] = false;
    stage->open++;
    assign->place = stage->places++;
    assign->slot = stage->accepted[assign->worker];
    assign->arm.one = assign->slot % ARMS; /* each item is asked once */
    memcpy(assign->ticket, &stage->places, sizeof(stage->places));
    assign->ticket[CV_TICKET_BYTES - 1] = (uint8_t)assign->worker;
  }
}

static struct cv_terms terms_of(const struct stage *stage) {
  return (struct cv_terms){.id = CAMPAIGN,
                           .name = "test",
                           .requester = "alice",
                           .privatizer = {.name = "none"},
                           .mechanism = {.name = "hybrid"},
                           .epsilon_micro = 250000,
                           .tokens_per_worker = TOKENS,
                           .arms = ARMS,
                           .lease_ms = 5000,
                           .split = stage->duo.split};
}

/* The co-broker answers at once. False if the pool has no memory left. */
static bool hear_cobroker(struct stage *stage, int turn) {
  struct cv_share_frame sent, frame = {.sessions = 0};
  struct cv_share_session session = {.terms = terms_of(stage)};
  struct cv_why why;
  if (turn % 20 == 7 && stage->co_open) { /* assignments are held from here on */
    cv_worker_leave_co(stage->pool);
    stage->co_open = false;
  }
  if (turn % 20 == 9 && !stage->co_open) {
    cv_worker_join_co(stage->pool, &stage->duo.keys.cobroker);
    stage->co_open = true;
    frame.hello = (struct cv_hello){.present = true, .version = CV_WIRE_VERSION, .program = "co-broker"};
  }
  if (!stage->co_open || !cv_worker_flush_share(stage->pool, stage->now_ms, &sent)) {
    return true;
  }
  frame.sessions = sent.enters;
  frame.session = &session;
  enum cv_err err = cv_worker_on_share(stage->pool, &frame, stage->now_ms, &why);
  assert_true(err == CV_OK || (err == CV_ERR_NOMEM && strcmp(why.text, "out of memory") == 0));
  return err == CV_OK;
}

static enum cv_err speak(struct stage *stage, bool first) {
  struct cv_terms terms = terms_of(stage);
  struct cv_terms other = terms;
  other.id = CAMPAIGN + 1;
  other.epsilon_micro = 9000000; /* declined */
  const struct cv_terms both[] = {terms, other};
  struct cv_crowd_frame frame = {.assigns = stage->assigns, .assign = stage->assign, .acks = stage->acks};
  struct cv_why why = {.text = ""};
  frame.ack = stage->ack;
  if (first) {
    frame.hello = (struct cv_hello){.present = true, .version = CV_WIRE_VERSION, .program = "broker"};
    frame.campaigns = CV_COUNT(both);
    frame.campaign = (struct cv_terms *)(uintptr_t)both;
  }
  enum cv_err err = cv_worker_on_crowd(stage->pool, &frame, stage->now_ms, &why);
  assert_true(err == CV_OK || (err == CV_ERR_NOMEM && strcmp(why.text, "out of memory") == 0));
  return err;
}

/* Returns the same error from then on. */
static void check_dead(struct stage *stage) {
  struct cv_crowd_frame frame;
  assert_true(cv_worker_has_failed(stage->pool));
  assert_false(cv_worker_flush(stage->pool, stage->now_ms, &frame));
  stage->assigns = stage->acks = 0;
  assert_int_equal(speak(stage, false), CV_ERR_NOMEM);
}

/* One life; false if it ended early. */
static bool live(struct stage *stage) {
  bool first = true;
  cv_worker_join(stage->pool, &stage->duo.keys.broker, stage->now_ms);
  for (int turn = 1; turn <= TURNS; turn++) {
    struct cv_crowd_frame sent = {0};
    stage->now_ms += 50;
    if (turn % 20 == 0) { /* what it sent last is lost */
      cv_worker_leave(stage->pool);
      cv_worker_join(stage->pool, &stage->duo.keys.broker, stage->now_ms);
      first = true;
      memset(stage->waits, 0, sizeof(stage->waits));
      stage->open = 0;
    }
    if (!cv_worker_flush(stage->pool, stage->now_ms, &sent)) {
      sent = (struct cv_crowd_frame){0};
    }
    hear(stage, &sent);
    if (cv_worker_has_failed(stage->pool) || speak(stage, first) != CV_OK ||
        (stage->duo.split.score_bits > 0 && !hear_cobroker(stage, turn))) {
      return false;
    }
    first = false;
  }
  return true;
}

static void without_memory(bool two_brokers, bool all_after) {
  static struct stage stage;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 1, CV_RNG_PRIVATIZER, 0, 0);
  const struct cv_work work = {.campaign = "test", .arms = ARMS, .score = score};
  struct cv_worker_config config = {
      .first = 1,
      .last = WORKERS,
      .concurrency = BATCH / 2,
      .accept = {.requesters = "alice", .privatizers = "none", .mechanisms = "hybrid", .epsilon_micro = 1000000},
      .work = &work,
      .works = 1,
      .rng = &rng.rng,
  };
  ALLOC_FAULT_EACH(fault, .rest = all_after) {
    struct cv_why why = {.text = ""};
    struct cv_worker_figures figures;
    int64_t before = alloc_fault_live();
    stage = (struct stage){.now_ms = 1000};
    if (two_brokers) {
      duo_init(&stage.duo, CV_SPLIT_SCORE);
      config.accept.pair = &stage.duo.keys;
      config.accept.pairs = 1;
      config.session = &stage.duo.ops;
    }
    alloc_fault_arm();
    enum cv_err err = cv_worker_new(&config, &stage.pool, &why);
    bool lived = err == CV_OK && live(&stage);
    alloc_fault_pause();
    assert_true(lived == !alloc_fault_hit()); /* a pool that survives has lost nothing */
    if (err != CV_OK) {
      assert_null(stage.pool);
      assert_string_equal(why.text, "out of memory");
    } else if (!lived) {
      check_dead(&stage);
    } else {
      cv_worker_figures(stage.pool, &figures);
      assert_int_equal(figures.accepted, WORKERS * TOKENS);
    }
    cv_worker_free(stage.pool);
    assert_int_equal(alloc_fault_live(), before);
  }
}

static void test_one_allocation_fails(void **state) {
  without_memory(false, false);
  without_memory(true, false);
}

static void test_all_allocations_fail_from_one_on(void **state) {
  without_memory(false, true);
  without_memory(true, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_allocation_fails),
      cmocka_unit_test(test_all_allocations_fail_from_one_on),
  };
  return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
