/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One broker and one third-party, with frames passed as structs and, if there is a path, a real database. The fake
 * broker keeps what it has released and accepted, and follows docs/protocol.md. Include after cmocka.h.
 *
 * A test may let allocations fail inside the core or the store: then the process has died, no event reaches it any
 * more, and the next turn starts another one with the same database.
 */
#ifndef CV_TESTS_FAKE_H
#define CV_TESTS_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/grid.h"
#include "common/crypto/crypto.h"
#include "proto/codec/chain.h"
#include "thirdparty/core.h"
#include "thirdparty/links.h"
#include "thirdparty/store.h"

enum { FAKE_ARMS = 6, FAKE_RECORDS = 4096 };

enum crash { CRASH_NEVER, CRASH_BEFORE_COMMIT, CRASH_AFTER_COMMIT };

struct world {
  /* the third-party */
  struct cv_thirdparty *thirdparty;
  struct cv_thirdparty_conn *conn;
  struct cv_thirdparty_store *store;
  const char *path; /* NULL: nothing is stored */
  struct cv_rng_seeded rng;
  struct cv_thirdparty_limits limits;
  struct cv_links links;
  uint64_t linked_ms;
  int turn, crash_at;
  enum crash crash;
  void (*starve)(void), (*starve_store)(void),
      (*feed)(void); /* around calls of core and store; NULL: no allocation fails */
  bool died;
  /* the broker */
  struct cv_spec spec;
  uint64_t id;
  bool has_seed;
  uint64_t seed;
  enum cv_end stop;
  double mean[FAKE_ARMS];
  struct cv_plan plan[FAKE_RECORDS]; /* accepted */
  uint64_t plans;
  struct cv_release release[FAKE_RECORDS];
  uint64_t releases;
  uint32_t next_want; /* of the last plan, to be released */
  uint64_t tokens[FAKE_ARMS];
  struct cv_plan asked; /* the latest plan, accepted or not */
  uint64_t asked_times; /* how often it came */
  bool refuse_plans, hold_plans;
  /* what the broker received */
  uint64_t acked, acks;
  struct cv_position theirs;
  bool opened;
  char refused[CV_WHY_BYTES], goodbye[CV_WHY_BYTES];
  enum cv_end result;
  struct cv_standing standing[FAKE_ARMS];
  bool lost; /* the third-party dies and starts again with what is stored */
};

static inline void world_spec(struct world *w, const char *settled, double alpha) {
  w->spec = (struct cv_spec){
      .name = "test", .arms = FAKE_ARMS, .epsilon_micro = 250000, .tokens_per_worker = 1, .tokens = 1000000000};
  (void)snprintf(w->spec.policy.name, CV_PARAM_TEXT, "ppar");
  (void)snprintf(w->spec.mechanism.name, CV_PARAM_TEXT, "hybrid");
  (void)snprintf(w->spec.privatizer.name, CV_PARAM_TEXT, "none");
  struct cv_params *params = &w->spec.policy.params;
  assert_int_equal(cv_params_set_number(params, "alpha", alpha), CV_OK);
  assert_int_equal(cv_params_set_number(params, "tokens_per_round", 1000), CV_OK);
  assert_int_equal(cv_params_set_text(params, "settled", settled), CV_OK);
}

static inline void world_note(void *data, const struct cv_note *note) {
  assert_true(strlen(note->text) > 0 && strchr(note->text, '\n') == NULL);
}

/* Each change is a second later than the one before. */
static inline void world_linked(void *data, const struct cv_thirdparty_link *link) {
  struct world *w = data;
  w->linked_ms += 1000;
  if (w->feed == NULL) { /* a page may lack what there was no memory for */
    assert_int_equal(cv_links_take(&w->links, link, w->linked_ms), CV_OK);
  }
}

static inline enum cv_err world_restore(void *data, const struct cv_stored_campaign *stored, struct cv_why *why) {
  struct world *w = data;
  return cv_thirdparty_restore(w->thirdparty, stored, why);
}

static inline void world_starve(void (*starve)(void)) {
  if (starve != NULL) {
    starve();
  }
}

/* True if the core lives. A core that has died returns the same error from then on, and sends nothing. */
static inline bool world_lives(struct world *w, enum cv_err err) {
  struct cv_thirdparty_conn *conn = NULL;
  struct cv_thirdparty_batch batch;
  struct cv_thirdparty_out out;
  world_starve(w->starve != NULL ? w->feed : NULL);
  if (w->starve == NULL || err != CV_ERR_NOMEM) {
    assert_int_equal(err, CV_OK);
    return true;
  }
  assert_true(cv_thirdparty_is_pending(w->thirdparty));
  assert_int_equal(cv_thirdparty_flush(w->thirdparty, &batch), CV_ERR_NOMEM);
  assert_int_equal(cv_thirdparty_join(w->thirdparty, "bob", w, &conn), CV_ERR_NOMEM);
  assert_null(conn);
  assert_false(cv_thirdparty_next_out(w->thirdparty, &out));
  w->died = true;
  w->starve = NULL;
  return false;
}

/* The error of the store, or of loading from it, when an allocation fails. */
static inline bool world_store_lives(struct world *w, enum cv_err err, const struct cv_why *why) {
  world_starve(w->starve_store != NULL ? w->feed : NULL);
  if (err != CV_OK && (w->starve_store == NULL || err != CV_ERR_NOMEM || strstr(why->text, "out of memory") == NULL ||
                       strchr(why->text, '\n') != NULL)) {
    fail_msg("error %d: %s", err, why->text);
  }
  w->starve_store = err == CV_OK ? w->starve_store : NULL;
  return err == CV_OK;
}

static inline void world_halt(struct world *w) {
  cv_thirdparty_free(w->thirdparty);
  cv_thirdparty_store_close(w->store);
  w->thirdparty = NULL;
  w->store = NULL;
  w->conn = NULL;
}

/* Makes core and database from what is stored. False if an allocation failed. */
static inline bool world_load(struct world *w) {
  const struct cv_thirdparty_config setup = {.digest = cv_sha256,
                                             .rng = &w->rng.rng,
                                             .program = "test",
                                             .note = world_note,
                                             .linked = world_linked,
                                             .data = w,
                                             .limits = w->limits};
  struct cv_why why = {.text = ""};
  assert_int_equal(cv_thirdparty_new(&setup, &w->thirdparty), CV_OK);
  if (w->path == NULL) {
    return true;
  }
  world_starve(w->starve_store);
  enum cv_err err = cv_thirdparty_store_open(w->path, NULL, &w->store, &why);
  if (err == CV_OK) {
    err = cv_thirdparty_store_load(w->store, world_restore, w, &why);
  }
  if (!world_store_lives(w, err, &why)) {
    world_halt(w);
    return false;
  }
  return true;
}

static inline void world_start(struct world *w) {
  w->died = false;
  if (!world_load(w)) {
    assert_true(world_load(w)); /* allocations succeed again */
  }
}

static inline void world_init(struct world *w, const char *path) {
  static const double mean[FAKE_ARMS] = {0.82, 0.15, 0.79, 0.5, 0.47, 0.2};
  *w = (struct world){.path = path, .id = 7, .limits = CV_THIRDPARTY_DEFAULTS};
  memcpy(w->mean, mean, sizeof(mean));
  cv_rng_seeded_init(&w->rng, 5, 1, 0, 0);
  world_spec(w, "hold", 0.1);
  world_start(w);
}

static inline void world_fini(struct world *w) {
  world_halt(w);
  cv_links_fini(&w->links);
  for (uint64_t i = 0; i < w->plans; i++) {
    free(w->plan[i].want);
  }
  free(w->asked.want);
  free(w);
}

static inline void world_send(struct world *w, const struct cv_rank_frame *frame) {
  if (!w->died) {
    world_starve(w->starve);
    (void)world_lives(w, cv_thirdparty_on_rank(w->thirdparty, w->conn, frame));
  }
}

static inline struct cv_position world_position(const struct world *w) {
  struct cv_position position = {.campaign = w->id, .releases = w->releases, .plans = w->plans};
  for (uint64_t i = 0; i < w->releases; i++) {
    cv_chain_release(&position.releases_hash, &w->release[i], cv_sha256);
  }
  for (uint64_t i = 0; i < w->plans; i++) {
    assert_int_equal(cv_chain_plan(&position.plans_hash, &w->plan[i], cv_sha256), CV_OK);
  }
  return position;
}

static inline void world_open(struct world *w) {
  struct cv_rank_open open = {
      .spec = w->spec, .position = world_position(w), .has_seed = w->has_seed, .seed = w->seed, .stop = w->stop};
  struct cv_rank_frame frame = {.opens = 1, .open = &open};
  frame.hello = (struct cv_hello){.present = true, .version = CV_WIRE_VERSION, .program = "fake"};
  w->opened = false;
  world_send(w, &frame);
}

/* A new connection, with the hello and the campaign's opening. */
static inline void world_connect(struct world *w) {
  world_starve(w->starve);
  (void)world_lives(w, cv_thirdparty_join(w->thirdparty, "alice", w, &w->conn));
  w->goodbye[0] = '\0';
  world_open(w);
}

static inline void world_resend(struct world *w, const struct cv_position *theirs) {
  struct cv_rank_frame frame = {0};
  struct cv_rank_plan *record = calloc(w->plans + 1, sizeof(*record));
  struct cv_rank_release *release = calloc(w->releases + 1, sizeof(*release));
  assert_true(theirs->plans <= w->plans && theirs->releases <= w->releases);
  for (uint64_t i = theirs->plans; i < w->plans; i++) {
    record[frame.recorded++] = (struct cv_rank_plan){.campaign = w->id, .plan = w->plan[i]};
  }
  for (uint64_t i = theirs->releases; i < w->releases; i++) {
    release[frame.releases++] = (struct cv_rank_release){.campaign = w->id, .release = w->release[i]};
  }
  frame.record = record;
  frame.release = release;
  if (frame.recorded + frame.releases > 0) {
    world_send(w, &frame);
  }
  free(record);
  free(release);
}

static inline bool world_same_plan(const struct cv_plan *a, const struct cv_plan *b) {
  return a->number == b->number && a->wants == b->wants && memcmp(a->want, b->want, a->wants * sizeof(*a->want)) == 0;
}

static inline void world_accept(struct world *w) {
  struct cv_rank_number accept = {.campaign = w->id, .number = w->asked.number};
  struct cv_rank_frame frame = {.accepted = 1, .accept = &accept};
  if (w->asked.number == w->plans + 1) {
    assert_int_equal(cv_plan_copy(&w->asked, &w->plan[w->plans++]), CV_OK);
    w->next_want = 0;
  } else {
    assert_true(w->asked.number == w->plans && world_same_plan(&w->asked, &w->plan[w->plans - 1]));
  }
  world_send(w, &frame);
}

static inline void world_on_plan(struct world *w, const struct cv_rank_plan *plan) {
  assert_int_equal(plan->campaign, w->id);
  assert_int_equal(plan->standings, FAKE_ARMS);
  w->asked_times = plan->plan.number == w->asked.number ? w->asked_times + 1 : 1;
  free(w->asked.want);
  assert_int_equal(cv_plan_copy(&plan->plan, &w->asked), CV_OK);
  if (w->refuse_plans) {
    struct cv_rank_refused refused = {.campaign = w->id,
                                      .plan = plan->plan.number,
                                      .reason = CV_END_LEDGER,
                                      .why = "no budget",
                                      .asked = 6000,
                                      .left = 10};
    struct cv_rank_frame frame = {.refused = 1, .refuse = &refused};
    world_send(w, &frame);
  } else if (!w->hold_plans) {
    world_accept(w);
  }
}

static inline void world_on_opened(struct world *w, const struct cv_rank_opened *opened) {
  if (opened->refused != NULL) {
    (void)snprintf(w->refused, sizeof(w->refused), "%s", opened->refused);
    return;
  }
  assert_true(!w->has_seed || w->seed == opened->seed);
  w->opened = true;
  w->has_seed = true;
  w->seed = opened->seed;
  w->theirs = opened->position;
}

static inline void world_receive(struct world *w, const struct cv_rank_frame *frame) {
  struct cv_position theirs = {0};
  for (size_t i = 0; i < frame->opened; i++) {
    world_on_opened(w, &frame->answer[i]);
    theirs = frame->answer[i].position;
  }
  for (size_t i = 0; i < frame->acks; i++) {
    w->acked = frame->ack[i].number;
    w->acks++;
  }
  for (size_t i = 0; i < frame->plans; i++) {
    world_on_plan(w, &frame->plan[i]);
  }
  for (size_t i = 0; i < frame->results; i++) {
    w->result = frame->result[i].reason;
    assert_int_equal(frame->result[i].standings, FAKE_ARMS);
    memcpy(w->standing, frame->result[i].standing, sizeof(w->standing));
    for (uint32_t arm = 0; arm < FAKE_ARMS; arm++) {
      w->standing[arm].noise = 0; /* not sent */
    }
  }
  if (frame->goodbye != NULL) {
    (void)snprintf(w->goodbye, sizeof(w->goodbye), "%s", frame->goodbye);
  }
  if (frame->opened > 0 && w->opened) {
    world_resend(w, &theirs);
  }
}

static inline void world_restart(struct world *w) {
  world_halt(w);
  world_start(w);
  world_connect(w);
}

/* Stores (or loses) what changed and delivers what may leave. */
static inline void world_turn(struct world *w) {
  struct cv_thirdparty_batch batch = {0};
  struct cv_thirdparty_out out;
  struct cv_why why = {.text = ""};
  bool crash = w->crash != CRASH_NEVER && ++w->turn == w->crash_at;
  if (!w->died) {
    world_starve(w->starve);
    (void)world_lives(w, cv_thirdparty_flush(w->thirdparty, &batch));
  }
  bool stored = true;
  if (w->store != NULL && !(crash && w->crash == CRASH_BEFORE_COMMIT) && batch.first != NULL) {
    world_starve(w->starve_store);
    stored = world_store_lives(w, cv_thirdparty_store_commit(w->store, &batch, &why), &why);
  }
  cv_thirdparty_batch_fini(&batch);
  if (crash || !stored || w->died) {
    world_restart(w);
    return;
  }
  /* The frames are borrowed, and answering changes the core: so each is answered before the next is taken. */
  cv_thirdparty_stored(w->thirdparty);
  while (cv_thirdparty_next_out(w->thirdparty, &out)) {
    assert_ptr_equal(out.data, w);
    assert_ptr_equal(out.conn, w->conn);
    struct cv_rank_frame frame = *out.frame;
    world_receive(w, &frame);
    if (out.close != NULL) {
      cv_thirdparty_leave(w->thirdparty, w->conn);
      w->conn = NULL;
    }
  }
}

/* Exchanges messages until there are none, without new releases. */
static inline void world_quiet(struct world *w) {
  while (cv_thirdparty_is_pending(w->thirdparty)) {
    world_turn(w);
  }
}

/* How often the plan shows the arm: the arm's own tokens and those of its neighbours. */
static inline uint64_t world_shown(const struct world *w, const struct cv_plan *plan, uint32_t arm) {
  uint64_t tokens = 0;
  for (uint32_t i = 0; i < plan->wants; i++) {
    uint32_t played = plan->want[i].arm;
    tokens += played == arm ? plan->want[i].tokens : 0;
    for (uint32_t j = 0; j < w->spec.edges; j++) {
      const struct cv_edge *edge = &w->spec.edge[j];
      bool joins = (edge->a == arm && edge->b == played) || (edge->a == played && edge->b == arm);
      tokens += joins ? plan->want[i].tokens : 0;
    }
  }
  return tokens;
}

/* The noisy sum of the arm's first `tokens` tokens: a function of arm and tokens, so that every run has the same. */
static inline struct cv_release world_next_release(const struct world *w) {
  const struct cv_plan *plan = &w->plan[w->plans - 1];
  uint32_t arm = plan->want[w->next_want].arm;
  struct cv_release release = {.number = w->releases + 1, .plan = plan->number, .arm = arm};
  release.tokens = w->tokens[arm] + world_shown(w, plan, arm);
  double wobble = (double)(cv_mix64(release.tokens * 31 + arm) % 1000) / 1000 - 0.5;
  release.noisy_sum = (int64_t)((w->mean[arm] * (double)release.tokens + 60 * wobble) * (double)CV_GRID);
  if (strcmp(w->spec.mechanism.name, "none") != 0) {
    release.noise = (struct cv_noise){2, {{2, 1 + (uint32_t)(release.tokens / 1000) % 4}, {4, 1}}};
  }
  return release;
}

static inline bool world_has_more(const struct world *w) {
  return w->plans > 0 && w->next_want < w->plan[w->plans - 1].wants && w->result == CV_END_NONE;
}

static inline void world_release(struct world *w) {
  struct cv_rank_release message = {.campaign = w->id, .release = world_next_release(w)};
  struct cv_rank_frame frame = {.releases = 1, .release = &message};
  w->release[w->releases++] = message.release;
  w->tokens[message.release.arm] = message.release.tokens;
  w->next_want++;
  world_send(w, &frame);
}

/* Runs until there is a result. */
static inline void world_run(struct world *w) {
  for (int i = 0; i < 20000 && w->result == CV_END_NONE && w->goodbye[0] == '\0'; i++) {
    if (w->died || cv_thirdparty_is_pending(w->thirdparty)) {
      world_turn(w);
    } else {
      assert_true(world_has_more(w));
      world_release(w);
    }
  }
  assert_string_equal(w->goodbye, "");
  assert_int_not_equal(w->result, CV_END_NONE);
}

static inline struct world *world_new(const char *path) {
  struct world *w = malloc(sizeof(*w));
  world_init(w, path);
  return w;
}

#endif
