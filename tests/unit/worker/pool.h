/* SPDX-License-Identifier: Apache-2.0 */
/* A pool, and a broker that is played by the test. Include after cmocka.h. */
#ifndef CV_TESTS_POOL_H
#define CV_TESTS_POOL_H

#include <stdio.h>

#include "common/base/grid.h"
#include "worker/core.h"

enum { ARMS = 4, CAMPAIGN = 7, MANY = 4096 };

struct stage {
  struct cv_worker_config config;
  struct cv_work work[2];
  struct cv_worker *pool;
  struct cv_rng_seeded rng;
  struct cv_digest broker; /* its key */
  uint64_t now_ms;
  uint32_t scored; /* calls of the score source */
  uint64_t rows;   /* places it has scores for */
  char notes[8][300];
  uint32_t noted;
  /* what the pool sent with the last flush */
  struct cv_crowd_frame sent;
  /* what the broker will send next */
  struct cv_crowd_frame frame;
  struct cv_terms terms[4];
  struct cv_assign assign[MANY];
  struct cv_crowd_ack ack[MANY];
};

/* Differs from call to call, so that a token that is made twice is detected. */
static inline enum cv_err score(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  struct stage *stage = data;
  if (at->place >= stage->rows) {
    return CV_ERR_LIMIT;
  }
  *ret_score = 1000 * arm + stage->scored++;
  return CV_OK;
}

static inline void note(void *data, const char *text) {
  struct stage *stage = data;
  assert_true(stage->noted < CV_COUNT(stage->notes));
  (void)snprintf(stage->notes[stage->noted++], sizeof(stage->notes[0]), "%s", text);
}

static inline void setup(struct stage *stage, uint64_t first, uint64_t last, uint32_t concurrency) {
  memset(stage, 0, sizeof(*stage));
  cv_rng_seeded_init(&stage->rng, 1, CV_RNG_PRIVATIZER, 0, 0);
  stage->now_ms = 1000;
  stage->rows = UINT64_MAX;
  stage->work[0] = (struct cv_work){.campaign = "test", .arms = ARMS, .score = score, .data = stage};
  stage->config = (struct cv_worker_config){
      .first = first,
      .last = last,
      .concurrency = concurrency,
      .accept = {.requesters = "alice, bob",
                 .privatizers = "none, randomized-response",
                 .mechanisms = "hybrid",
                 .epsilon_micro = 1000000},
      .work = stage->work,
      .works = 1,
      .rng = &stage->rng.rng,
      .note = note,
      .note_data = stage,
  };
}

static inline void start(struct stage *stage) {
  assert_int_equal(cv_worker_new(&stage->config, &stage->pool, NULL), CV_OK);
  cv_worker_join(stage->pool, &stage->broker, stage->now_ms);
}

static inline void flush(struct stage *stage) {
  if (!cv_worker_flush(stage->pool, stage->now_ms, &stage->sent)) {
    stage->sent = (struct cv_crowd_frame){0};
  }
}

static inline size_t arrived(const struct stage *stage) {
  return stage->sent.arrives == 0 ? 0 : stage->sent.arrive->workers;
}

static inline uint64_t arrived_worker(const struct stage *stage, size_t i) {
  CV_REQUIRE(stage->sent.arrive != NULL && i < arrived(stage));
  return stage->sent.arrive->worker[i];
}

static inline const struct cv_token *sent_token(const struct stage *stage, size_t i) {
  CV_REQUIRE(stage->sent.token != NULL && i < stage->sent.tokens);
  return &stage->sent.token[i];
}

static inline const struct cv_decline *sent_decline(const struct stage *stage) {
  CV_REQUIRE(stage->sent.decline != NULL && stage->sent.declines > 0);
  return &stage->sent.decline[0];
}

/* ---- what the broker says ---- */

static inline void begin(struct stage *stage) {
  stage->frame = (struct cv_crowd_frame){.campaign = stage->terms, .assign = stage->assign, .ack = stage->ack};
}

static inline void say_hello(struct stage *stage) {
  stage->frame.hello = (struct cv_hello){.present = true, .version = CV_WIRE_VERSION, .program = "broker"};
}

/* Questions may be repeated. */
static inline struct cv_terms *say_terms(struct stage *stage, uint64_t id, uint32_t tokens_per_worker) {
  struct cv_terms *terms = &stage->terms[stage->frame.campaigns++];
  *terms = (struct cv_terms){.id = id,
                             .name = "test",
                             .requester = "alice",
                             .privatizer = {.name = "none"},
                             .mechanism = {.name = "hybrid"},
                             .epsilon_micro = 250000,
                             .tokens_per_worker = tokens_per_worker,
                             .arms = ARMS,
                             .repeat = true,
                             .lease_ms = 5000};
  return terms;
}

/* The ticket is made from worker and place. */
static inline struct cv_assign *say_assign(struct stage *stage, uint64_t worker, uint32_t arm, uint64_t place) {
  struct cv_assign *assign = &stage->assign[stage->frame.assigns++];
  *assign = (struct cv_assign){.campaign = CAMPAIGN, .worker = worker, .arms = 1, .arm = {.one = arm}, .place = place};
  memcpy(assign->ticket, &worker, sizeof(worker));
  memcpy(assign->ticket + CV_TICKET_BYTES - sizeof(place), &place, sizeof(place));
  return assign;
}

static inline void say_ack(struct stage *stage, const struct cv_token *token, enum cv_verdict verdict,
                           const char *why) {
  struct cv_crowd_ack *ack = &stage->ack[stage->frame.acks++];
  *ack = (struct cv_crowd_ack){.verdict = verdict, .why = why};
  memcpy(ack->ticket, token->ticket, sizeof(ack->ticket));
}

static inline void deliver(struct stage *stage) {
  struct cv_why why = {0};
  if (cv_worker_on_crowd(stage->pool, &stage->frame, stage->now_ms, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  flush(stage);
}

static inline void deliver_bad(struct stage *stage, enum cv_err err, const char *line) {
  struct cv_why why = {0};
  assert_int_equal(cv_worker_on_crowd(stage->pool, &stage->frame, stage->now_ms, &why), err);
  assert_string_equal(why.text, line);
}

/* Open, hellos exchanged, one campaign known. */
static inline void meet(struct stage *stage, uint32_t tokens_per_worker) {
  start(stage);
  flush(stage);
  begin(stage);
  say_hello(stage);
  (void)say_terms(stage, CAMPAIGN, tokens_per_worker);
  struct cv_why why = {0};
  assert_int_equal(cv_worker_on_crowd(stage->pool, &stage->frame, stage->now_ms, &why), CV_OK);
}

/* A worker is assigned a place, answers, and receives `verdict`; returns whether it then arrives again. */
static inline bool comes_back(struct stage *stage, uint64_t worker, uint64_t place, enum cv_verdict verdict,
                              const char *why) {
  begin(stage);
  (void)say_assign(stage, worker, 0, place);
  deliver(stage);
  assert_int_equal(stage->sent.tokens, 1);
  begin(stage);
  say_ack(stage, sent_token(stage, 0), verdict, why);
  deliver(stage);
  return arrived(stage) == 1 && arrived_worker(stage, 0) == worker;
}

static inline struct cv_worker_figures figures(const struct stage *stage) {
  struct cv_worker_figures figures;
  cv_worker_figures(stage->pool, &figures);
  return figures;
}

#endif
