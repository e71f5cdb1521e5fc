/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gateways, and a broker that lies to them to learn one opinion. The gateways are the deployed core of a worker with a
 * privatizer; the broker is a script for each lie. It has the privatizer's claim against it: whatever it repeats,
 * renames or forgets, it may learn no more than from one token. Every other opinion has the score 0, and it knows that:
 * a token of one that shares random bits with the audited one would tell.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "lab/audit/subjects.h"
#include "worker/core.h"

enum { ARMS = 3, WORKERS = 4, TOKENS = 4, SEEN_MAX = 5, NOW_MS = 1000, LEASE_MS = 5000 };
/* The numbers of the campaigns: the second one has the same name, the third one is about another data file. */
enum { FIRST = 7, SECOND, OTHER, CAMPAIGNS_MAX = 3 };

/* Whose opinions they are. */
enum source { FROM_FILE, FROM_PART, FROM_PERSON, FROM_PROGRAM };

struct stage;

struct lie {
  const char *name, *privatizer;
  double epsilon, second; /* of the campaigns; second 0: the same */
  enum source source;
  uint32_t campaigns;
  uint32_t tokens; /* of a worker in a campaign */
  uint64_t limit;  /* accept.tokens; 0: none */
  bool is_unsound; /* known to disclose more than the claim */
  bool pairs;      /* the opinion is about arm 0 and its opponent, arm 1 */
  uint32_t share;
  enum cv_err (*tell)(struct stage *stage);
  uint32_t seen;
  const char *label[SEEN_MAX];
};

/* One gateway at a time, the key that all have, and what their folder `state` keeps. */
struct stage {
  const struct lie *lie;
  int64_t audited; /* the score of the audited opinion: about arm 0, at place 0 */
  struct cv_rng *rng;
  uint8_t key[CV_COIN_KEY_BYTES];
  uint32_t given[WORKERS];
  uint64_t taken[ARMS];
  struct cv_work work[2];
  struct cv_worker *pool;
  struct cv_stock *stock;
  uint64_t tickets, question, questions; /* the open questions: `questions` of them, from `question` on */
  int64_t *row;                          /* where the next thing that the broker sees goes */
};

static const int64_t NOTHING = -1;

/* ---- what a gateway has ---- */

static enum cv_err score_of_audited(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  const struct stage *stage = data;
  uint32_t opponent = stage->lie->pairs ? 2 : 0; /* 1 + arm 1 */
  *ret_score = arm == 0 && at->place == 0 && at->opponent == opponent ? stage->audited : 0;
  return CV_OK;
}

static enum cv_err score_of_other(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  *ret_score = 0;
  return CV_OK;
}

static enum cv_err serve(void *data, const struct cv_work *work, const struct cv_terms *terms, uint64_t law,
                         uint64_t *ret_taken, struct cv_why *why) {
  const struct stage *stage = data;
  if (ret_taken != NULL) {
    memcpy(ret_taken, stage->taken, sizeof(stage->taken));
  }
  return CV_OK;
}

static void take(void *data, const struct cv_work *work, const struct cv_terms *terms, uint32_t arm, uint64_t taken) {
  struct stage *stage = data;
  stage->taken[arm] = taken;
}

static void give(void *data, uint64_t worker, uint32_t scores) {
  struct stage *stage = data;
  stage->given[(worker - 1) % WORKERS] = scores;
}

static void open_question(void *data, const struct cv_question *question) {
  struct stage *stage = data;
  stage->question = stage->questions++ == 0 ? question->number : stage->question;
}

static void withdraw(void *data, uint64_t question, enum cv_withdrawn why) {
  struct stage *stage = data;
  stage->questions = 0;
}

static void told(void *data, uint64_t question, enum cv_verdict verdict) {
}

/* A person with three rows of the arm, of which each tells of the person. */
static enum cv_err make_stock(struct stage *stage, struct cv_persons *persons) {
  enum { ROWS = 3 };
  CV_TRY(cv_persons_init(persons, 1, ROWS));
  persons->start[1] = ROWS;
  for (uint32_t i = 0; i < ROWS; i++) {
    persons->value[i] = (uint32_t)stage->audited;
  }
  const struct cv_stock_config config = {
      .persons = persons, .first_worker = 1, .first = 1, .last = WORKERS, .arms = ARMS};
  return cv_stock_new(&config, &stage->stock);
}

/* ---- the broker's side of the connection ---- */

static enum cv_err terms_of(const struct lie *lie, uint32_t i, struct cv_terms *ret) {
  *ret = (struct cv_terms){.id = FIRST + i,
                           .requester = "r",
                           .mechanism = {.name = "hybrid"},
                           .epsilon_micro = CV_MICRO,
                           .tokens_per_worker = lie->tokens,
                           .arms = ARMS,
                           .pairs = lie->pairs,
                           .lease_ms = LEASE_MS};
  (void)snprintf(ret->name, sizeof(ret->name), "%s", i + FIRST == OTHER ? "other" : "audit");
  (void)snprintf(ret->privatizer.name, sizeof(ret->privatizer.name), "%s", lie->privatizer);
  double epsilon = i + FIRST == SECOND && lie->second > 0 ? lie->second : lie->epsilon;
  return cv_params_set_number(&ret->privatizer.params, "epsilon", epsilon);
}

static void flush(struct stage *stage, struct cv_crowd_frame *sent) {
  if (!cv_worker_flush(stage->pool, NOW_MS, sent)) {
    *sent = (struct cv_crowd_frame){0};
  }
}

/* Opens a connection and sends all terms. Sees a token that was not acknowledged on the one before. */
static enum cv_err meet(struct stage *stage, int64_t *ret_token) {
  static const struct cv_digest broker = {{0xb}};
  struct cv_terms terms[CAMPAIGNS_MAX];
  struct cv_crowd_frame sent;
  for (uint32_t i = 0; i < stage->lie->campaigns; i++) {
    CV_TRY(terms_of(stage->lie, i, &terms[i]));
  }
  cv_worker_join(stage->pool, &broker, NOW_MS);
  flush(stage, &sent);
  *ret_token = sent.tokens == 0 ? NOTHING : sent.token[0].value[0];
  const struct cv_crowd_frame frame = {
      .hello = {.present = true, .version = CV_WIRE_VERSION}, .campaigns = stage->lie->campaigns, .campaign = terms};
  CV_TRY(cv_worker_on_crowd(stage->pool, &frame, NOW_MS, NULL));
  flush(stage, &sent);
  return CV_OK;
}

static enum cv_err meet_again(struct stage *stage, int64_t *ret_token) {
  cv_worker_leave(stage->pool);
  return meet(stage, ret_token);
}

/* Sends a frame and sees what comes back. The gateway closes a connection on which the broker breaks the protocol. */
static enum cv_err say(struct stage *stage, const struct cv_crowd_frame *frame, struct cv_crowd_frame *sent) {
  enum cv_err err = cv_worker_on_crowd(stage->pool, frame, NOW_MS, NULL);
  const struct cv_score_answer answer = {.value = stage->audited};
  for (; err == CV_OK && stage->questions > 0; stage->questions--) {
    CV_TRY(cv_worker_answer(stage->pool, stage->question++, &answer, NULL));
  }
  if (err != CV_OK) {
    int64_t token;
    *sent = (struct cv_crowd_frame){0};
    return err == CV_ERR_NOMEM ? err : meet_again(stage, &token);
  }
  flush(stage, sent);
  return CV_OK;
}

struct demand {
  uint64_t campaign, worker;
  uint32_t arm;
  uint64_t place;
  uint32_t opponent;       /* 1 + the arm that it is compared with; 0: none */
  enum cv_verdict verdict; /* on the token; CV_VERDICT_NONE: no word of it */
};

/* Asks a worker for a token and adds what came to the row. */
static enum cv_err ask(struct stage *stage, struct demand demand) {
  struct cv_crowd_frame sent;
  struct cv_assign assign = {.campaign = demand.campaign,
                             .worker = demand.worker,
                             .arms = 1,
                             .arm = {.one = demand.arm},
                             .place = demand.place,
                             .opponent = demand.opponent};
  stage->tickets++;
  memcpy(assign.ticket, &stage->tickets, sizeof(stage->tickets));
  CV_TRY(say(stage, &(struct cv_crowd_frame){.assigns = 1, .assign = &assign}, &sent));
  *stage->row++ = sent.tokens == 0 ? NOTHING : sent.token[0].value[0];
  if (sent.tokens > 0 && demand.verdict != CV_VERDICT_NONE) {
    struct cv_crowd_ack ack = {.verdict = demand.verdict};
    memcpy(ack.ticket, assign.ticket, sizeof(ack.ticket));
    CV_TRY(say(stage, &(struct cv_crowd_frame){.acks = 1, .ack = &ack}, &sent));
  }
  return CV_OK;
}

/* ---- gateways ---- */

/* A gateway of the workers from `first` on, with the key and the state that the stage has. Calls tell() for the broker,
 * and stops the gateway. */
static enum cv_err with_gateway(struct stage *stage, uint64_t first, enum cv_err (*tell)(struct stage *stage)) {
  enum source source = stage->lie->source;
  const struct cv_asker asker = {.ask = open_question, .withdraw = withdraw, .told = told, .data = stage};
  const struct cv_worker_record record = {.serve = serve, .take = take, .data = stage};
  struct cv_persons persons = {0};
  CV_TRY(source == FROM_PERSON ? make_stock(stage, &persons) : CV_OK);
  const struct cv_worker_config config = {
      .first = first,
      .last = first + WORKERS - 1,
      .concurrency = WORKERS,
      .accept = {.requesters = "r",
                 .privatizers = stage->lie->privatizer,
                 .mechanisms = "hybrid",
                 .epsilon_micro = UINT64_MAX,
                 .tokens = stage->lie->limit},
      .work = stage->work,
      .works = FIRST + stage->lie->campaigns > OTHER ? 2 : 1,
      .stock = stage->stock,
      .record = source == FROM_PART ? &record : NULL,
      .asker = source == FROM_PROGRAM ? &asker : NULL,
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
  cv_worker_free(stage->pool);
  cv_stock_free(stage->stock);
  cv_persons_fini(&persons);
  stage->pool = NULL;
  stage->stock = NULL;
  return err;
}

static void draw_key(struct stage *stage) {
  for (size_t i = 0; i < sizeof(stage->key); i++) {
    stage->key[i] = (uint8_t)cv_rng_u64(stage->rng);
  }
}

/* ---- the lies ---- */

static enum cv_err ask_again(struct stage *stage) {
  CV_TRY(ask(stage, (struct demand){FIRST, 1, .verdict = CV_VERDICT_EXPIRED}));
  CV_TRY(ask(stage, (struct demand){FIRST, 2, .verdict = CV_VERDICT_REFUSED}));
  CV_TRY(ask(stage, (struct demand){FIRST, 3, .verdict = CV_VERDICT_NONE}));
  CV_TRY(meet_again(stage, stage->row++));
  return ask(stage, (struct demand){SECOND, 4, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err tell_again(struct stage *stage) {
  return with_gateway(stage, 1, ask_again);
}

static enum cv_err ask_once(struct stage *stage) {
  return ask(stage, (struct demand){FIRST, 1, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err tell_restart(struct stage *stage) {
  CV_TRY(with_gateway(stage, 1, ask_once));
  return with_gateway(stage, 1, ask_once);
}

static enum cv_err ask_second(struct stage *stage) {
  return ask(stage, (struct demand){FIRST, 1 + WORKERS, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err tell_two(struct stage *stage) {
  CV_TRY(with_gateway(stage, 1, ask_once));
  if (stage->lie->is_unsound) {
    draw_key(stage);
  }
  return with_gateway(stage, 1 + WORKERS, ask_second);
}

static enum cv_err ask_beside(struct stage *stage) {
  CV_TRY(ask(stage, (struct demand){FIRST, 1, .arm = 0, .place = 0}));
  CV_TRY(ask(stage, (struct demand){FIRST, 2, .arm = 0, .place = 1}));
  CV_TRY(ask(stage, (struct demand){FIRST, 3, .arm = 1, .place = 0}));
  return ask(stage, (struct demand){OTHER, 4, .arm = 0, .place = 0});
}

static enum cv_err tell_beside(struct stage *stage) {
  return with_gateway(stage, 1, ask_beside);
}

static enum cv_err ask_opponents(struct stage *stage) {
  CV_TRY(ask(stage, (struct demand){FIRST, 1, .arm = 0, .opponent = 1 + 1}));
  return ask(stage, (struct demand){FIRST, 2, .arm = 0, .opponent = 1 + 2});
}

static enum cv_err tell_opponents(struct stage *stage) {
  return with_gateway(stage, 1, ask_opponents);
}

static enum cv_err ask_weaker(struct stage *stage) {
  CV_TRY(ask(stage, (struct demand){FIRST, 1}));
  return ask(stage, (struct demand){SECOND, 2});
}

static enum cv_err tell_weaker(struct stage *stage) {
  return with_gateway(stage, 1, ask_weaker);
}

/* Places differ, since here a place has random bits of its own: that a row leaves once is up to the count alone. */
static enum cv_err ask_part(struct stage *stage) {
  CV_TRY(ask(stage, (struct demand){FIRST, 1, .place = 0, .verdict = CV_VERDICT_EXPIRED}));
  return ask(stage, (struct demand){FIRST, 2, .place = 1, .verdict = CV_VERDICT_REFUSED});
}

static enum cv_err ask_part_later(struct stage *stage) {
  return ask(stage, (struct demand){FIRST, 1, .place = 2, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err tell_part(struct stage *stage) {
  CV_TRY(with_gateway(stage, 1, ask_part));
  return with_gateway(stage, 1, ask_part_later);
}

static enum cv_err ask_expired(struct stage *stage) {
  CV_TRY(ask(stage, (struct demand){FIRST, 1, .verdict = CV_VERDICT_EXPIRED}));
  return ask(stage, (struct demand){FIRST, 1, .verdict = CV_VERDICT_EXPIRED});
}

/* A worker whose broker broke the protocol does not come again: so another one is asked alone. */
static enum cv_err ask_twice_at_once(struct stage *stage) {
  static const uint32_t arms[] = {0, 0};
  struct cv_assign assign = {.campaign = FIRST, .worker = 1, .arms = 2, .arm = {.many = arms}};
  struct cv_crowd_frame sent;
  CV_TRY(say(stage, &(struct cv_crowd_frame){.assigns = 1, .assign = &assign}, &sent));
  for (size_t i = 0; i < CV_COUNT(arms); i++) {
    *stage->row++ = sent.tokens == 0 ? NOTHING : sent.token[0].value[i];
  }
  return ask(stage, (struct demand){FIRST, 2, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err tell_at_once(struct stage *stage) {
  return with_gateway(stage, 1, ask_twice_at_once);
}

static enum cv_err tell_expired(struct stage *stage) {
  return with_gateway(stage, 1, ask_expired);
}

static enum cv_err ask_under_another_number(struct stage *stage) {
  CV_TRY(ask_once(stage));
  return ask(stage, (struct demand){SECOND, 1, .verdict = CV_VERDICT_ACCEPTED});
}

static enum cv_err tell_limited(struct stage *stage) {
  CV_TRY(with_gateway(stage, 1, ask_under_another_number));
  return with_gateway(stage, 1, ask_once);
}

#define AGAIN                                                      \
  .campaigns = 2, .tokens = TOKENS, .tell = tell_again, .seen = 5, \
  .label = {"token", "again", "unanswered", "repeated", "in another campaign"}
#define TWICE(how) .campaigns = 1, .tokens = TOKENS, .tell = (how), .seen = 2, .label = {"token", "second token"}

static const struct lie lies[] = {
    {"again", "randomized-response", .5, .share = 8, AGAIN},
    {"again", "randomized-response", 1, .share = 8, AGAIN},
    {"again", "laplace", 1, .share = 16, AGAIN},
    {"restarted", "randomized-response", 1, .share = 8, TWICE(tell_restart)},
    {"one key", "randomized-response", 1, .share = 8, TWICE(tell_two)},
    {"two keys", "randomized-response", 1, .is_unsound = true, .share = 8, TWICE(tell_two)},
    {"beside", "randomized-response", 1, .share = 8, .campaigns = 3, .tokens = TOKENS, .tell = tell_beside, .seen = 4,
     .label = {"token", "another place", "another arm", "another file"}},
    {"beside, pairs", "randomized-response", 1, .pairs = true, .share = 8, .campaigns = 1, .tokens = TOKENS,
     .tell = tell_opponents, .seen = 2, .label = {"token", "another opponent"}},
    {"two laws", "randomized-response", .5, 1, .share = 8, .campaigns = 2, .tokens = TOKENS, .tell = tell_weaker,
     .seen = 2, .label = {"token", "weaker token"}},
    {"two laws", "laplace", .5, 1, .share = 16, .campaigns = 2, .tokens = TOKENS, .tell = tell_weaker, .seen = 2,
     .label = {"token", "weaker token"}},
    {"part", "randomized-response", 1, .source = FROM_PART, .share = 8, .campaigns = 1, .tokens = TOKENS,
     .tell = tell_part, .seen = 3, .label = {"row", "next row", "row after a restart"}},
    {"person", "randomized-response", 1, .source = FROM_PERSON, .share = 8, .campaigns = 1, .tokens = 1,
     .tell = tell_expired, .seen = 2, .label = {"token", "second token"}},
    {"program", "randomized-response", 1, .source = FROM_PROGRAM, .share = 8, .campaigns = 1, .tokens = 1,
     .tell = tell_expired, .seen = 2, .label = {"token", "second token"}},
    {"program twice", "randomized-response", 1, .source = FROM_PROGRAM, .share = 8, .campaigns = 1, .tokens = 1,
     .tell = tell_at_once, .seen = 3, .label = {"token", "second token", "token alone"}},
    {"program limit", "randomized-response", 1, .source = FROM_PROGRAM, .limit = 1, .share = 8, .campaigns = 2,
     .tokens = TOKENS, .tell = tell_limited, .seen = 3, .label = {"token", "in another campaign", "after a restart"}},
};

/* ---- the subject ---- */

static void make_works(struct stage *stage) {
  enum { PRINT = 77 };
  stage->work[0] = (struct cv_work){.campaign = "audit",
                                    .arms = ARMS,
                                    .pairs = stage->lie->pairs,
                                    .print = PRINT,
                                    .scale = {.low = 0, .high = 5},
                                    .is_part = stage->lie->source == FROM_PART,
                                    .score = score_of_audited,
                                    .data = stage};
  stage->work[1] = stage->work[0];
  stage->work[1].campaign = "other";
  stage->work[1].print = PRINT + 1;
  stage->work[1].score = score_of_other;
}

static enum cv_err sample(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                          int64_t *row) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, stream, CV_RNG_PRIVATIZER, 0, 0);
  for (uint64_t run = 0; run < runs; run++, row += self->width) {
    struct stage stage = {.lie = self->thing, .audited = neighbour ? CV_GRID : 0, .rng = &seeded.rng, .row = row};
    make_works(&stage);
    draw_key(&stage);
    CV_TRY(stage.lie->tell(&stage));
    CV_REQUIRE(stage.row == row + self->width);
  }
  return CV_OK;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  (void)snprintf(text, CV_AUDIT_TEXT, "%s", ((const struct lie *)self->thing)->label[at]);
}

size_t cv_audit_gateways(void) {
  return CV_COUNT(lies);
}

void cv_audit_gateway(size_t at, struct cv_audit_subject *ret) {
  const struct lie *lie = &lies[at];
  *ret = (struct cv_audit_subject){
      .is_sound = !lie->is_unsound,
      .epsilon = lie->epsilon + lie->second,
      .share = lie->share,
      .width = lie->seen,
      .series = lie->seen,
      .keys = lie->seen,
      .sample = sample,
      .label = label,
      .thing = lie,
  };
  for (uint32_t i = 0; i < ret->keys; i++) {
    ret->key[i] = (uint16_t)i;
  }
  (void)snprintf(ret->part, sizeof(ret->part), "gateway");
  (void)snprintf(ret->setting, sizeof(ret->setting), "%s, %s", lie->name, lie->privatizer);
}
