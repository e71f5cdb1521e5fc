/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of share.proto with messages of every kind: random ones, and their equality, field by field. */
#ifndef CV_TESTS_SHARES_H
#define CV_TESTS_SHARES_H

#include "proto/codec/share.h"
#include "tests/unit/codec/codec_test.h"
#include "tests/unit/codec/records.h"

/* Room for `ROWS` messages of every kind. */
enum { ROWS = 3, TOKENS = 4 };
struct rows {
  struct cv_share_frame frame;
  uint64_t enter[ROWS];
  struct cv_share_session session[ROWS];
  struct cv_share_turned turn[ROWS];
  struct cv_share_open open[ROWS];
  struct cv_share_opened open_answer[ROWS];
  struct cv_share_plan plan[ROWS];
  struct cv_share_number plan_opened[ROWS], done[ROWS];
  struct cv_share_refused plan_refused[ROWS];
  struct cv_share_pending token[ROWS][TOKENS];
  struct cv_share_batch batch[ROWS];
  uint8_t verdict[ROWS][TOKENS];
  struct cv_share_answers answer[ROWS];
  struct cv_share_close close[ROWS];
  struct cv_share_closed half[ROWS];
  struct cv_share_end over[ROWS], end[ROWS];
  char *text[5 * ROWS]; /* owned */
  size_t texts;
};

static inline const char *some_text(struct cv_rng *rng, struct rows *rows) {
  char *text = (char *)(uintptr_t)random_text(rng, CV_WHY_BYTES);
  rows->text[rows->texts++] = text;
  return text;
}

static inline void random_digest(struct cv_rng *rng, struct cv_digest *ret) {
  random_bytes(rng, ret->bytes, sizeof(ret->bytes));
}

static inline void random_session(struct cv_rng *rng, struct cv_share_session *ret) {
  struct cv_terms *terms = &ret->terms;
  *terms = (struct cv_terms){.id = random_u64(rng),
                             .epsilon_micro = random_u64(rng),
                             .tokens_per_worker = random_u32(rng),
                             .arms = (uint32_t)cv_rng_below(rng, CV_ARMS_MAX + 1),
                             .pairs = cv_rng_below(rng, 2) == 0,
                             .repeat = cv_rng_below(rng, 2) == 0,
                             .lease_ms = random_u32(rng)};
  random_name(rng, terms->name, sizeof(terms->name));
  random_name(rng, terms->requester, sizeof(terms->requester));
  random_choice(rng, &terms->privatizer);
  random_choice(rng, &terms->mechanism);
  random_scale(rng, &terms->scale);
  terms->split.score_bits = cv_rng_below(rng, 2) == 0 ? CV_SPLIT_BIT : CV_SPLIT_SCORE;
  random_bytes(rng, terms->split.database, sizeof(terms->split.database));
  random_digest(rng, &terms->split.spec);
  random_digest(rng, &terms->split.key);
  random_bytes(rng, ret->id, sizeof(ret->id));
}

static inline struct cv_share_position random_position(struct cv_rng *rng) {
  struct cv_share_position position = {
      .campaign = random_u64(rng), .plans = random_u64(rng), .batches = random_u64(rng), .closings = random_u64(rng)};
  random_digest(rng, &position.plans_hash);
  random_digest(rng, &position.batches_hash);
  random_digest(rng, &position.closings_hash);
  return position;
}

static inline void random_open(struct cv_rng *rng, struct cv_share_open *ret) {
  random_spec(rng, &ret->spec);
  ret->spec.brokers = random_u32(rng);
  ret->spec.score_bits = ret->spec.brokers == 0 ? 0 : random_u32(rng);
  ret->position = random_position(rng);
  random_bytes(rng, ret->database, sizeof(ret->database));
  random_name(rng, ret->requester, sizeof(ret->requester));
  ret->deadline_ms = random_u64(rng);
}

static inline void random_opened(struct cv_rng *rng, struct rows *rows, struct cv_share_opened *ret) {
  *ret = (struct cv_share_opened){.position = random_position(rng)};
  if (cv_rng_below(rng, 2) == 0) {
    const char *why = some_text(rng, rows);
    ret->refused = why[0] == '\0' ? "no" : why;
  } else {
    random_bytes(rng, ret->key, sizeof(ret->key));
  }
}

static inline void random_pending(struct cv_rng *rng, struct cv_share_pending *ret) {
  *ret = (struct cv_share_pending){.token = {.plan = random_u64(rng),
                                             .arm = (uint32_t)cv_rng_below(rng, CV_ARMS_MAX),
                                             .place = random_u64(rng),
                                             .worker = random_u64(rng),
                                             .slot = random_u32(rng)},
                                   .counter = random_u64(rng),
                                   .verifiers = 1 + (uint32_t)cv_rng_below(rng, CV_SPLIT_VERIFIERS_MOST)};
  random_bytes(rng, ret->token.nonce, sizeof(ret->token.nonce));
  random_bytes(rng, ret->session, sizeof(ret->session));
  random_bytes(rng, ret->sealed, sizeof(ret->sealed));
  for (uint32_t i = 0; i < ret->verifiers; i++) {
    ret->verifier[i] = cv_rng_u64(rng);
  }
}

static inline void random_batch(struct cv_rng *rng, struct rows *rows, size_t i) {
  size_t tokens = 1 + (size_t)cv_rng_below(rng, TOKENS);
  rows->batch[i] = (struct cv_share_batch){
      .campaign = random_u64(rng), .number = 1 + random_u64(rng) / 2, .tokens = tokens, .token = rows->token[i]};
  rows->answer[i] = (struct cv_share_answers){
      .campaign = random_u64(rng), .number = 1 + random_u64(rng) / 2, .answers = tokens, .answer = rows->verdict[i]};
  for (size_t j = 0; j < tokens; j++) {
    random_pending(rng, &rows->token[i][j]);
    rows->verdict[i][j] = (uint8_t)(1 + cv_rng_below(rng, CV_ANSWERS - 1));
  }
}

static inline enum cv_end random_end(struct cv_rng *rng) {
  return (enum cv_end)(1 + cv_rng_below(rng, CV_END_COUNT - 1));
}

static inline void random_row(struct cv_rng *rng, struct rows *rows, size_t i) {
  rows->enter[i] = random_u64(rng);
  random_session(rng, &rows->session[i]);
  rows->turn[i] =
      (struct cv_share_turned){.campaign = random_u64(rng), .why = some_text(rng, rows), .again_ms = random_u32(rng)};
  random_open(rng, &rows->open[i]);
  random_opened(rng, rows, &rows->open_answer[i]);
  rows->plan[i].campaign = random_u64(rng);
  random_plan(rng, &rows->plan[i].plan);
  rows->plan_opened[i] = (struct cv_share_number){.campaign = random_u64(rng), .number = random_u64(rng)};
  rows->done[i] = (struct cv_share_number){.campaign = random_u64(rng), .number = random_u64(rng)};
  rows->plan_refused[i] = (struct cv_share_refused){.campaign = random_u64(rng),
                                                    .plan = random_u64(rng),
                                                    .reason = random_end(rng),
                                                    .why = some_text(rng, rows),
                                                    .asked = random_u64(rng),
                                                    .left = random_u64(rng)};
  random_batch(rng, rows, i);
  rows->close[i] = (struct cv_share_close){.campaign = random_u64(rng),
                                           .number = 1 + random_u64(rng) / 2,
                                           .plan = 1 + random_u64(rng) / 2,
                                           .arm = (uint32_t)cv_rng_below(rng, CV_ARMS_MAX),
                                           .count = random_u64(rng),
                                           .discard = cv_rng_below(rng, 2) == 0};
  random_digest(rng, &rows->close[i].plan_hash);
  random_digest(rng, &rows->close[i].chain);
  rows->half[i] =
      (struct cv_share_closed){.campaign = random_u64(rng), .number = 1 + random_u64(rng) / 2, .half = cv_rng_u64(rng)};
  rows->over[i] = (struct cv_share_end){.campaign = random_u64(rng), .reason = random_end(rng)};
  rows->end[i] =
      (struct cv_share_end){.campaign = random_u64(rng), .reason = random_end(rng), .why = some_text(rng, rows)};
}

/* A frame of `least` to `most` messages of every kind, at most ROWS. */
static inline void random_rows(struct cv_rng *rng, size_t least, size_t most, struct rows *ret) {
  *ret = (struct rows){0};
  struct cv_share_frame *frame = &ret->frame;
  *frame = (struct cv_share_frame){.hello = {.present = true, .version = CV_WIRE_VERSION, .program = "co-broker"},
                                   .enter = ret->enter,
                                   .session = ret->session,
                                   .turn = ret->turn,
                                   .open = ret->open,
                                   .open_answer = ret->open_answer,
                                   .plan = ret->plan,
                                   .plan_opened = ret->plan_opened,
                                   .plan_refused = ret->plan_refused,
                                   .batch = ret->batch,
                                   .answer = ret->answer,
                                   .done = ret->done,
                                   .close = ret->close,
                                   .half = ret->half,
                                   .over = ret->over,
                                   .end = ret->end};
  for (size_t i = 0; i < ROWS; i++) {
    random_row(rng, ret, i);
  }
  size_t *count[] = {&frame->enters,        &frame->sessions,     &frame->turned,  &frame->opens,   &frame->opened,
                     &frame->plans,         &frame->plans_opened, &frame->batches, &frame->answers, &frame->dones,
                     &frame->plans_refused, &frame->closes,       &frame->closed,  &frame->overs,   &frame->ended};
  for (size_t i = 0; i < CV_COUNT(count); i++) {
    *count[i] = least + (size_t)cv_rng_below(rng, most + 1 - least);
  }
}

static inline void free_rows(struct rows *rows) {
  for (size_t i = 0; i < ROWS; i++) {
    cv_spec_fini(&rows->open[i].spec);
    free(rows->plan[i].plan.want);
  }
  for (size_t i = 0; i < rows->texts; i++) {
    free(rows->text[i]);
  }
}

static inline void assert_terms_equal(const struct cv_terms *a, const struct cv_terms *b) {
  assert_true(a->id == b->id && a->epsilon_micro == b->epsilon_micro && a->arms == b->arms && a->pairs == b->pairs &&
              a->repeat == b->repeat && a->tokens_per_worker == b->tokens_per_worker && a->lease_ms == b->lease_ms);
  assert_string_equal(a->name, b->name);
  assert_string_equal(a->requester, b->requester);
  assert_choices_equal(&a->privatizer, &b->privatizer);
  assert_choices_equal(&a->mechanism, &b->mechanism);
  assert_true(cv_scale_is_same(&a->scale, &b->scale));
  assert_int_equal(a->split.score_bits, b->split.score_bits);
  assert_memory_equal(a->split.database, b->split.database, CV_SPLIT_DATABASE_BYTES);
  assert_memory_equal(&a->split.spec, &b->split.spec, CV_DIGEST_BYTES);
  assert_memory_equal(&a->split.key, &b->split.key, CV_DIGEST_BYTES);
}

static inline void assert_positions_equal(const struct cv_share_position *a, const struct cv_share_position *b) {
  assert_true(a->campaign == b->campaign && a->plans == b->plans && a->batches == b->batches &&
              a->closings == b->closings);
  assert_memory_equal(&a->plans_hash, &b->plans_hash, CV_DIGEST_BYTES);
  assert_memory_equal(&a->batches_hash, &b->batches_hash, CV_DIGEST_BYTES);
  assert_memory_equal(&a->closings_hash, &b->closings_hash, CV_DIGEST_BYTES);
}

static inline void assert_batches_equal(const struct cv_share_batch *a, const struct cv_share_batch *b) {
  assert_true(a->campaign == b->campaign && a->number == b->number && a->tokens == b->tokens);
  for (size_t i = 0; i < a->tokens; i++) {
    const struct cv_share_pending *x = &a->token[i], *y = &b->token[i];
    assert_true(x->token.plan == y->token.plan && x->token.arm == y->token.arm && x->token.place == y->token.place &&
                x->token.worker == y->token.worker && x->token.slot == y->token.slot && x->counter == y->counter);
    assert_memory_equal(x->token.nonce, y->token.nonce, CV_SPLIT_NONCE_BYTES);
    assert_memory_equal(x->session, y->session, CV_SPLIT_SESSION_BYTES);
    assert_memory_equal(x->sealed, y->sealed, CV_SPLIT_SEALED_BYTES);
    assert_int_equal(x->verifiers, y->verifiers);
    assert_memory_equal(x->verifier, y->verifier, x->verifiers * sizeof(x->verifier[0]));
  }
}

static inline void assert_ends_equal(const struct cv_share_end *a, const struct cv_share_end *b) {
  assert_true(a->campaign == b->campaign && a->reason == b->reason);
  assert_true(a->why == NULL ? b->why == NULL : strcmp(a->why, b->why) == 0);
}

static inline void assert_crowd_equal(const struct cv_share_frame *a, const struct cv_share_frame *b) {
  assert_true(a->enters == b->enters && a->sessions == b->sessions && a->turned == b->turned);
  assert_memory_equal(a->enter, b->enter, a->enters * sizeof(a->enter[0]));
  for (size_t i = 0; i < a->sessions; i++) {
    assert_terms_equal(&a->session[i].terms, &b->session[i].terms);
    assert_memory_equal(a->session[i].id, b->session[i].id, CV_SPLIT_SESSION_BYTES);
  }
  for (size_t i = 0; i < a->turned; i++) {
    assert_true(a->turn[i].campaign == b->turn[i].campaign && a->turn[i].again_ms == b->turn[i].again_ms);
    assert_string_equal(a->turn[i].why, b->turn[i].why);
  }
}

static inline void assert_orders_equal(const struct cv_share_frame *a, const struct cv_share_frame *b) {
  assert_true(a->opens == b->opens && a->plans == b->plans && a->batches == b->batches && a->dones == b->dones &&
              a->closes == b->closes && a->overs == b->overs);
  for (size_t i = 0; i < a->opens; i++) {
    assert_specs_equal(&a->open[i].spec, &b->open[i].spec);
    assert_positions_equal(&a->open[i].position, &b->open[i].position);
    assert_memory_equal(a->open[i].database, b->open[i].database, CV_SPLIT_DATABASE_BYTES);
    assert_string_equal(a->open[i].requester, b->open[i].requester);
    assert_true(a->open[i].deadline_ms == b->open[i].deadline_ms);
  }
  for (size_t i = 0; i < a->plans; i++) {
    assert_true(a->plan[i].campaign == b->plan[i].campaign);
    assert_plans_equal(&a->plan[i].plan, &b->plan[i].plan);
  }
  for (size_t i = 0; i < a->batches; i++) {
    assert_batches_equal(&a->batch[i], &b->batch[i]);
  }
  for (size_t i = 0; i < a->dones; i++) {
    assert_true(a->done[i].campaign == b->done[i].campaign && a->done[i].number == b->done[i].number);
  }
  for (size_t i = 0; i < a->closes; i++) {
    const struct cv_share_close *x = &a->close[i], *y = &b->close[i];
    assert_true(x->campaign == y->campaign && x->number == y->number && x->plan == y->plan && x->arm == y->arm &&
                x->count == y->count && x->discard == y->discard);
    assert_memory_equal(&x->plan_hash, &y->plan_hash, CV_DIGEST_BYTES);
    assert_memory_equal(&x->chain, &y->chain, CV_DIGEST_BYTES);
  }
  for (size_t i = 0; i < a->overs; i++) {
    assert_ends_equal(&a->over[i], &b->over[i]);
  }
}

static inline void assert_answers_equal(const struct cv_share_frame *a, const struct cv_share_frame *b) {
  assert_true(a->opened == b->opened && a->plans_opened == b->plans_opened && a->plans_refused == b->plans_refused &&
              a->answers == b->answers && a->closed == b->closed && a->ended == b->ended);
  for (size_t i = 0; i < a->opened; i++) {
    const struct cv_share_opened *x = &a->open_answer[i], *y = &b->open_answer[i];
    assert_positions_equal(&x->position, &y->position);
    assert_memory_equal(x->key, y->key, CV_SPLIT_SEED_BYTES);
    assert_true(x->refused == NULL ? y->refused == NULL : strcmp(x->refused, y->refused) == 0);
  }
  for (size_t i = 0; i < a->plans_opened; i++) {
    assert_true(a->plan_opened[i].campaign == b->plan_opened[i].campaign &&
                a->plan_opened[i].number == b->plan_opened[i].number);
  }
  for (size_t i = 0; i < a->plans_refused; i++) {
    const struct cv_share_refused *x = &a->plan_refused[i], *y = &b->plan_refused[i];
    assert_true(x->campaign == y->campaign && x->plan == y->plan && x->reason == y->reason && x->asked == y->asked &&
                x->left == y->left);
    assert_string_equal(x->why, y->why);
  }
  for (size_t i = 0; i < a->answers; i++) {
    assert_true(a->answer[i].campaign == b->answer[i].campaign && a->answer[i].number == b->answer[i].number &&
                a->answer[i].answers == b->answer[i].answers);
    assert_memory_equal(a->answer[i].answer, b->answer[i].answer, a->answer[i].answers);
  }
  for (size_t i = 0; i < a->closed; i++) {
    assert_true(a->half[i].campaign == b->half[i].campaign && a->half[i].number == b->half[i].number &&
                a->half[i].half == b->half[i].half);
  }
  for (size_t i = 0; i < a->ended; i++) {
    assert_ends_equal(&a->end[i], &b->end[i]);
  }
}

#endif
