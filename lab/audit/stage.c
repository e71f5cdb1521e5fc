/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/stage.h"

#include <stdio.h>
#include <string.h>

#include "broker/both/gate.h"
#include "common/base/grid.h"

enum { BEGIN_MS = 1000, TURN_MS = 2000, LEASE_MS = 5000 }; /* in a turn a worker that had to rest comes again */
enum { CAMPAIGNS_MAX = CV_STAGE_OTHER - CV_STAGE_FIRST + 1 };

/* ---- what a gateway has ---- */

static enum cv_err score_of_audited(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  const struct cv_stage *stage = data;
  uint32_t opponent = stage->setting->pairs ? 1 + 1 : 0;
  *ret_score = arm == 0 && at->place == 0 && at->opponent == opponent ? stage->audited : 0;
  return CV_OK;
}

static enum cv_err score_of_other(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  *ret_score = 0;
  return CV_OK;
}

static enum cv_err serve(void *data, const struct cv_work *work, const struct cv_terms *terms, uint64_t law,
                         uint64_t *ret_taken, struct cv_why *why) {
  const struct cv_stage *stage = data;
  if (ret_taken != NULL) {
    memcpy(ret_taken, stage->taken, sizeof(stage->taken));
  }
  return CV_OK;
}

static void take(void *data, const struct cv_work *work, const struct cv_terms *terms, uint32_t arm, uint64_t taken) {
  struct cv_stage *stage = data;
  stage->taken[arm] = taken;
}

static void give(void *data, uint64_t worker, uint32_t scores) {
  struct cv_stage *stage = data;
  stage->given[(worker - 1) % CV_STAGE_WORKERS] = scores;
}

/* A note is of a campaign, or (`terms` NULL) of all of the work's name. */
static uint64_t noted_for(const struct cv_work *work, const struct cv_terms *terms, const struct cv_stage *stage) {
  return terms != NULL ? terms->id : UINT64_MAX - (uint64_t)(work - stage->work);
}

static enum cv_err answered(void *data, const struct cv_work *work, const struct cv_terms *terms,
                            enum cv_err (*tell)(void *to, uint64_t worker, uint64_t question), void *to,
                            struct cv_why *why) {
  const struct cv_stage *stage = data;
  for (size_t i = 0; i < stage->notes; i++) {
    if (stage->note[i].campaign == noted_for(work, terms, stage)) {
      CV_TRY(tell(to, stage->note[i].worker, stage->note[i].question));
    }
  }
  return CV_OK;
}

static void note_answer(void *data, const struct cv_work *work, const struct cv_terms *terms, uint64_t worker,
                        uint64_t question, bool is_answered) {
  struct cv_stage *stage = data;
  uint64_t campaign = noted_for(work, terms, stage);
  size_t at = 0;
  while (at < stage->notes && (stage->note[at].campaign != campaign || stage->note[at].worker != worker ||
                               stage->note[at].question != question)) {
    at++;
  }
  if (is_answered && at == stage->notes) {
    CV_REQUIRE(at < CV_STAGE_NOTES_MAX);
    stage->note[stage->notes++] = (struct cv_stage_note){campaign, worker, question};
  } else if (!is_answered && at < stage->notes) {
    stage->note[at] = stage->note[--stage->notes];
  }
}

static void open_question(void *data, const struct cv_question *question) {
  struct cv_stage *stage = data;
  bool is_audited = question->arm == 0 && question->opponent == (stage->setting->pairs ? 1 + 1 : 0);
  bool is_reverse = question->arm == 1 && question->opponent == 1 + 0;
  CV_REQUIRE(stage->questions < CV_STAGE_OPEN_MAX);
  stage->open[stage->questions++] = (struct cv_stage_open){question->number, is_audited   ? stage->audited
                                                                             : is_reverse ? CV_GRID - stage->audited
                                                                                          : 0};
}

static void withdraw(void *data, uint64_t question, enum cv_withdrawn why) {
  struct cv_stage *stage = data;
  stage->questions = 0;
}

static void told(void *data, uint64_t question, enum cv_verdict verdict) {
}

/* A person with several rows of the arm, of which each tells of the person, and one of another arm: it comes again. */
static enum cv_err make_stock(struct cv_stage *stage, struct cv_persons *persons) {
  CV_TRY(cv_persons_init(persons, 1, CV_STAGE_PERSON_ROWS));
  persons->start[1] = CV_STAGE_PERSON_ROWS;
  for (uint32_t i = 0; i + 1 < CV_STAGE_PERSON_ROWS; i++) {
    persons->value[i] = (uint32_t)stage->audited;
  }
  persons->arm[CV_STAGE_PERSON_ROWS - 1] = 1;
  const struct cv_stock_config config = {
      .persons = persons, .first_worker = 1, .first = 1, .last = CV_STAGE_WORKERS, .arms = CV_STAGE_ARMS};
  CV_TRY(cv_stock_new(&config, &stage->stock));
  for (size_t i = 0; i < stage->rows_given; i++) {
    CV_REQUIRE(cv_stock_mark(stage->stock, stage->row_given[i]));
  }
  return CV_OK;
}

/* What the shell stores of a person before its tokens leave. */
static void keep_rows(struct cv_stage *stage) {
  size_t rows = 0;
  const uint32_t *row = stage->stock == NULL ? NULL : cv_stock_taken(stage->stock, &rows);
  CV_REQUIRE(stage->rows_given + rows <= CV_STAGE_PERSON_ROWS);
  for (size_t i = 0; i < rows; i++) {
    stage->row_given[stage->rows_given++] = row[i];
  }
}

/* ---- the broker's side of the connection ---- */

static uint32_t arms_of(const struct cv_stage_setting *setting) {
  return setting->pairs ? CV_STAGE_ARMS_IN_PAIRS : CV_STAGE_ARMS;
}

static enum cv_err terms_of(const struct cv_stage_setting *setting, uint32_t i, struct cv_terms *ret) {
  *ret = (struct cv_terms){.id = CV_STAGE_FIRST + i,
                           .requester = "r",
                           .mechanism = {.name = "none"},
                           .tokens_per_worker = setting->tokens,
                           .arms = arms_of(setting),
                           .pairs = setting->pairs,
                           .repeat = setting->repeat,
                           .lease_ms = LEASE_MS};
  (void)snprintf(ret->name, sizeof(ret->name), "%s", i + CV_STAGE_FIRST == CV_STAGE_OTHER ? "other" : "audit");
  (void)snprintf(ret->privatizer.name, sizeof(ret->privatizer.name), "%s", setting->privatizer);
  double epsilon = i + CV_STAGE_FIRST == CV_STAGE_SECOND && setting->second > 0 ? setting->second : setting->epsilon;
  return cv_params_set_number(&ret->privatizer.params, "epsilon", epsilon);
}

static void flush(struct cv_stage *stage, struct cv_crowd_frame *sent) {
  if (!cv_worker_flush(stage->pool, stage->now_ms, sent)) {
    *sent = (struct cv_crowd_frame){0};
  }
}

/* Opens a connection and sends all terms. Sees a token that was not acknowledged on the one before. */
static enum cv_err meet(struct cv_stage *stage, int64_t *ret_token) {
  static const struct cv_digest broker = {{0xb}};
  struct cv_terms terms[CAMPAIGNS_MAX];
  struct cv_crowd_frame sent;
  for (uint32_t i = 0; i < stage->setting->campaigns; i++) {
    CV_TRY(terms_of(stage->setting, i, &terms[i]));
  }
  cv_worker_join(stage->pool, &broker, stage->now_ms);
  flush(stage, &sent);
  *ret_token = sent.tokens == 0 ? CV_STAGE_NOTHING : sent.token[0].value[0];
  const struct cv_crowd_frame frame = {.hello = {.present = true, .version = CV_WIRE_VERSION},
                                       .campaigns = stage->setting->campaigns,
                                       .campaign = terms};
  CV_TRY(cv_worker_on_crowd(stage->pool, &frame, stage->now_ms, NULL));
  flush(stage, &sent);
  return CV_OK;
}

enum cv_err cv_stage_meet_again(struct cv_stage *stage, int64_t *ret_token) {
  cv_worker_leave(stage->pool);
  return meet(stage, ret_token);
}

enum cv_err cv_stage_say(struct cv_stage *stage, const struct cv_crowd_frame *frame, struct cv_crowd_frame *sent) {
  enum cv_err err = cv_worker_on_crowd(stage->pool, frame, stage->now_ms, NULL);
  for (size_t i = 0; err == CV_OK && i < stage->questions; i++) {
    const struct cv_score_answer answer = {.value = stage->open[i].score};
    CV_TRY(cv_worker_answer(stage->pool, stage->open[i].number, &answer, NULL));
  }
  stage->questions = 0;
  if (err != CV_OK) {
    int64_t token;
    *sent = (struct cv_crowd_frame){0};
    return err == CV_ERR_NOMEM ? err : cv_stage_meet_again(stage, &token);
  }
  flush(stage, sent);
  return CV_OK;
}

/* Whoever had to rest comes again. */
static void pass_time(struct cv_stage *stage) {
  struct cv_crowd_frame sent;
  stage->now_ms += TURN_MS;
  cv_worker_tick(stage->pool);
  flush(stage, &sent);
}

enum cv_err cv_stage_ask(struct cv_stage *stage, struct cv_stage_demand demand) {
  struct cv_crowd_frame sent;
  struct cv_assign assign = {.campaign = demand.campaign,
                             .worker = demand.worker,
                             .arms = 1,
                             .arm = {.one = demand.arm},
                             .place = demand.place,
                             .opponent = demand.opponent};
  pass_time(stage);
  stage->tickets++;
  memcpy(assign.ticket, &stage->tickets, sizeof(stage->tickets));
  CV_TRY(cv_stage_say(stage, &(struct cv_crowd_frame){.assigns = 1, .assign = &assign}, &sent));
  *stage->row++ = sent.tokens == 0 ? CV_STAGE_NOTHING : sent.token[0].value[0];
  if (sent.tokens > 0 && demand.verdict != CV_VERDICT_NONE) {
    struct cv_crowd_ack ack = {.verdict = demand.verdict};
    memcpy(ack.ticket, assign.ticket, sizeof(ack.ticket));
    CV_TRY(cv_stage_say(stage, &(struct cv_crowd_frame){.acks = 1, .ack = &ack}, &sent));
  }
  return CV_OK;
}

/* ---- gateways ---- */

enum cv_err cv_stage_gateway(struct cv_stage *stage, uint64_t first, enum cv_err (*tell)(struct cv_stage *stage)) {
  enum cv_stage_source source = stage->setting->source;
  const struct cv_asker asker = {.ask = open_question, .withdraw = withdraw, .told = told, .data = stage};
  const struct cv_worker_record record = {
      .serve = serve, .take = take, .answered = answered, .answer = note_answer, .data = stage};
  struct cv_persons persons = {0};
  CV_TRY(source == CV_FROM_PERSON ? make_stock(stage, &persons) : CV_OK);
  const struct cv_worker_config config = {
      .first = first,
      .last = first + CV_STAGE_WORKERS - 1,
      .concurrency = CV_STAGE_WORKERS,
      .accept = {.requesters = "r",
                 .privatizers = stage->setting->privatizer,
                 .mechanisms = "none",
                 .epsilon_micro = UINT64_MAX,
                 .tokens = stage->setting->limit},
      .work = stage->work,
      .works = CV_STAGE_FIRST + stage->setting->campaigns > CV_STAGE_OTHER ? 2 : 1,
      .stock = stage->stock,
      .record = source == CV_FROM_PART || source == CV_FROM_PROGRAM ? &record : NULL,
      .asker = source == CV_FROM_PROGRAM ? &asker : NULL,
      .given = stage->given,
      .give = give,
      .give_data = stage,
      .rng = stage->rng,
      .coin_key = stage->key,
  };
  int64_t token;
  enum cv_err err = cv_worker_new(&config, &stage->pool, NULL);
  err = err == CV_OK ? meet(stage, &token) : err;
  err = err == CV_OK ? tell(stage) : err;
  keep_rows(stage);
  cv_worker_free(stage->pool);
  cv_stock_free(stage->stock);
  cv_persons_fini(&persons);
  stage->pool = NULL;
  stage->stock = NULL;
  return err;
}

void cv_stage_draw_key(struct cv_stage *stage) {
  for (size_t i = 0; i < sizeof(stage->key); i++) {
    stage->key[i] = (uint8_t)cv_rng_u64(stage->rng);
  }
}

static void make_works(struct cv_stage *stage) {
  enum { PRINT = 77 };
  stage->work[0] = (struct cv_work){.campaign = "audit",
                                    .arms = arms_of(stage->setting),
                                    .pairs = stage->setting->pairs,
                                    .print = stage->setting->source == CV_FROM_PROGRAM ? 0 : PRINT,
                                    .scale = {.low = 0, .high = 5},
                                    .is_part = stage->setting->source == CV_FROM_PART,
                                    .score = score_of_audited,
                                    .data = stage};
  stage->work[1] = stage->work[0];
  stage->work[1].campaign = "other";
  stage->work[1].print = PRINT + 1;
  stage->work[1].score = score_of_other;
}

void cv_stage_init(struct cv_stage *stage) {
  stage->now_ms = BEGIN_MS;
  make_works(stage);
  cv_stage_draw_key(stage);
}

/* ---- the account ---- */

static enum cv_err charge_of(const struct cv_terms *terms, uint64_t *ret_micro) {
  struct cv_spec spec = {.arms = terms->arms,
                         .pairs = terms->pairs,
                         .privatizer = terms->privatizer,
                         .mechanism = terms->mechanism,
                         .tokens_per_worker = terms->tokens_per_worker,
                         .tokens = terms->tokens_per_worker};
  struct cv_privacy privacy;
  CV_TRY(cv_privacy_init(&spec, &privacy, NULL));
  *ret_micro = privacy.cost_micro;
  return CV_OK;
}

enum cv_err cv_stage_claim(const struct cv_stage_setting *setting, double *ret) {
  uint64_t micro = 0, more;
  for (uint32_t i = 0; i < (setting->second > 0 ? 2 : 1); i++) {
    struct cv_terms terms;
    CV_TRY(terms_of(setting, i, &terms));
    CV_TRY(charge_of(&terms, &more));
    micro += more;
  }
  *ret = (double)micro / CV_MICRO;
  return CV_OK;
}
