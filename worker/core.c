/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/line.h"
#include "worker/pending.h"

enum { CONCURRENCY_MAX = 8192, CAMPAIGNS_MAX = 64, REASONS = 16 };
/* A range for which tokens are counted per worker (accept.tokens). */
#define COUNTED_MAX (UINT64_C(1) << 24)

/* A campaign whose terms have been told. */
struct engagement {
  struct cv_terms terms;
  struct cv_privatizer *privatizer; /* owned; NULL: declined */
  bool done;
};

struct cv_crew {
  struct cv_crew_config config;
  uint64_t next;           /* first worker that has not arrived yet */
  struct cv_line waiting;  /* arrived, not assigned */
  struct cv_line again;    /* will arrive once due */
  uint32_t *given;         /* tokens per worker, if the crew's own list limits them */
  struct cv_pendings pendings;
  struct engagement engagement[CAMPAIGNS_MAX];
  uint32_t engagements;
  bool open, hello_due, exhausted;
  double allowance; /* arrivals that the rate permits now */
  uint64_t allowance_ms;
  /* to be sent */
  uint64_t *arriving;
  size_t arriving_count, arriving_cap;
  struct cv_token *token;
  size_t tokens, tokens_cap;
  struct cv_decline *decline;
  size_t declines, declines_cap;
  char declined_why[CAMPAIGNS_MAX][CV_WHY_BYTES];
  struct cv_arrive arrive;
  char reason[REASONS][CV_WHY_BYTES]; /* refusals that have been noted */
  uint32_t reasons;
  struct cv_crew_figures figures;
};

static void note(struct cv_crew *crew, const char *text) {
  if (crew->config.note != NULL) {
    crew->config.note(crew->config.note_data, text);
  }
}

static enum cv_err grow(void **array, size_t count, size_t *cap, size_t size) {
  if (count < *cap) {
    return CV_OK;
  }
  size_t more = *cap == 0 ? 64 : *cap * 2;
  void *grown = realloc(*array, more * size);
  if (grown == NULL) {
    return CV_ERR_NOMEM;
  }
  *array = grown;
  *cap = more;
  return CV_OK;
}

enum cv_err cv_crew_new(const struct cv_crew_config *config, struct cv_crew **ret, struct cv_why *why) {
  if (config->concurrency < 1 || config->concurrency > CONCURRENCY_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "concurrency is %u; expected 1 to %d", config->concurrency, CONCURRENCY_MAX);
  }
  if (config->accept.tokens > 0 && config->last - config->first >= COUNTED_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "accept.tokens with more than %llu workers; expected a smaller range",
                   (unsigned long long)COUNTED_MAX);
  }
  struct cv_crew *crew = calloc(1, sizeof(*crew));
  if (crew == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  crew->config = *config;
  crew->next = config->first;
  if (config->accept.tokens > 0) {
    crew->given = calloc(config->last - config->first + 1, sizeof(*crew->given));
  }
  if ((config->accept.tokens > 0 && crew->given == NULL) ||
      cv_pendings_init(&crew->pendings, 2 * (size_t)config->concurrency) != CV_OK) {
    cv_crew_free(crew);
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  *ret = crew;
  return CV_OK;
}

void cv_crew_free(struct cv_crew *crew) {
  if (crew == NULL) {
    return;
  }
  for (uint32_t i = 0; i < crew->engagements; i++) {
    cv_privatizer_free(crew->engagement[i].privatizer);
  }
  cv_line_fini(&crew->waiting);
  cv_line_fini(&crew->again);
  cv_pendings_fini(&crew->pendings);
  free(crew->given);
  free(crew->arriving);
  free(crew->token);
  free(crew->decline);
  free(crew);
}

/* ---- the connection ---- */

static enum cv_err send_token(struct cv_crew *crew, const struct cv_pending *pending) {
  void *array = crew->token;
  CV_TRY(grow(&array, crew->tokens, &crew->tokens_cap, sizeof(*crew->token)));
  crew->token = array;
  struct cv_token *token = &crew->token[crew->tokens++];
  memcpy(token->ticket, pending->ticket, sizeof(token->ticket));
  token->values = pending->values;
  token->value = pending->value;
  return CV_OK;
}

void cv_crew_opened(struct cv_crew *crew, uint64_t now_ms) {
  crew->open = true;
  crew->hello_due = true;
  crew->allowance = 0;
  crew->allowance_ms = now_ms;
  for (uint32_t i = 0; i < crew->engagements; i++) {
    crew->engagement[i].done = crew->engagement[i].done || crew->engagement[i].privatizer == NULL;
  }
  for (size_t i = 0; i < crew->pendings.entries; i++) {
    if (crew->pendings.entry[i].values > 0 && send_token(crew, &crew->pendings.entry[i]) != CV_OK) {
      note(crew, "out of memory: a token waits for the next connection");
    }
  }
}

void cv_crew_closed(struct cv_crew *crew) {
  crew->open = false;
  crew->tokens = crew->declines = crew->arriving_count = 0;
  while (crew->waiting.count > 0) { /* the broker has forgotten them */
    if (cv_line_push(&crew->again, cv_line_pop(&crew->waiting), 0) != CV_OK) {
      note(crew, "out of memory: a worker stays away");
    }
  }
}

/* ---- what the broker says ---- */

static struct engagement *find_engagement(struct cv_crew *crew, uint64_t campaign) {
  for (uint32_t i = 0; i < crew->engagements; i++) {
    if (crew->engagement[i].terms.id == campaign) {
      return &crew->engagement[i];
    }
  }
  return NULL;
}

static enum cv_err decline(struct cv_crew *crew, struct engagement *engagement, const char *reason) {
  void *array = crew->decline;
  CV_TRY(grow(&array, crew->declines, &crew->declines_cap, sizeof(*crew->decline)));
  crew->decline = array;
  char *why = crew->declined_why[engagement - crew->engagement];
  (void)snprintf(why, CV_WHY_BYTES, "%.*s", CV_WHY_BYTES - 1, reason);
  crew->decline[crew->declines++] = (struct cv_decline){.campaign = engagement->terms.id, .why = why};
  cv_privatizer_free(engagement->privatizer);
  engagement->privatizer = NULL;
  char text[CV_WHY_BYTES + CV_NAME_BYTES + 32];
  (void)snprintf(text, sizeof(text), "declined campaign \"%s\": %s", engagement->terms.name, why);
  note(crew, text);
  return CV_OK;
}

static struct engagement *place_for(struct cv_crew *crew, uint64_t campaign) {
  struct engagement *engagement = find_engagement(crew, campaign);
  if (engagement != NULL || crew->engagements < CAMPAIGNS_MAX) {
    return engagement != NULL ? engagement : &crew->engagement[crew->engagements++];
  }
  for (uint32_t i = 0; engagement == NULL && i < crew->engagements; i++) {
    engagement = crew->engagement[i].done ? &crew->engagement[i] : NULL;
  }
  return engagement;
}

static enum cv_err on_terms(struct cv_crew *crew, const struct cv_terms *terms, struct cv_why *why) {
  struct engagement *known = find_engagement(crew, terms->id);
  struct engagement *engagement = place_for(crew, terms->id);
  struct cv_why reason;
  if (engagement == NULL) {
    return cv_fail(why, CV_ERR_LIMIT, "more than %d campaigns at once", CAMPAIGNS_MAX);
  }
  cv_privatizer_free(engagement->privatizer);
  *engagement = (struct engagement){.terms = *terms};
  if (strcmp(terms->name, crew->config.campaign) != 0) {
    (void)snprintf(reason.text, sizeof(reason.text), "no scores for this campaign here, only for \"%s\"",
                   crew->config.campaign);
    return decline(crew, engagement, reason.text);
  }
  if (terms->arms != crew->config.arms) {
    (void)snprintf(reason.text, sizeof(reason.text), "%u arms; expected %u as the scores have", terms->arms,
                   crew->config.arms);
    return decline(crew, engagement, reason.text);
  }
  enum cv_err err = cv_accept_terms(&crew->config.accept, &engagement->terms, &engagement->privatizer, &reason);
  if (err != CV_OK) {
    return decline(crew, engagement, reason.text);
  }
  crew->figures.campaigns += known == NULL;
  return CV_OK;
}

static bool is_one_of_us(const struct cv_crew *crew, uint64_t worker) {
  return worker >= crew->config.first && worker <= crew->config.last;
}

static bool may_give(const struct cv_crew *crew, uint64_t worker) {
  return crew->given == NULL || crew->given[worker - crew->config.first] < crew->config.accept.tokens;
}

/* The scores, privatized, into a token that is kept until it is acknowledged. */
static enum cv_err answer(struct cv_crew *crew, struct engagement *engagement, const struct cv_assign *assign,
                          struct cv_why *why) {
  struct cv_pending *pending = cv_pendings_add(&crew->pendings, assign->ticket);
  if (pending == NULL) {
    return cv_fail(why, CV_ERR_LIMIT, "more than %zu assignments at once; expected %u", crew->pendings.entries,
                   crew->config.concurrency);
  }
  pending->worker = assign->worker;
  pending->campaign = assign->campaign;
  pending->values = assign->arms;
  for (uint32_t i = 0; i < assign->arms; i++) {
    uint32_t arm = assign->arms == 1 ? assign->arm.one : assign->arm.many[i];
    int64_t score;
    if (arm >= engagement->terms.arms) {
      cv_pendings_remove(&crew->pendings, pending);
      return cv_fail(why, CV_ERR_FORMAT, "arm %u is assigned; expected below %u", arm, engagement->terms.arms);
    }
    if (crew->config.score(crew->config.score_data, arm, assign->place, &score) != CV_OK) {
      cv_pendings_remove(&crew->pendings, pending);
      char reason[CV_WHY_BYTES];
      (void)snprintf(reason, sizeof(reason), "the data of arm %u have run out at its token %llu", arm,
                     (unsigned long long)assign->place + 1);
      crew->exhausted = true;
      return decline(crew, engagement, reason);
    }
    pending->value[i] = cv_privatizer_apply(engagement->privatizer, arm, score, crew->config.rng);
  }
  return send_token(crew, pending);
}

static enum cv_err on_assign(struct cv_crew *crew, const struct cv_assign *assign, struct cv_why *why) {
  struct engagement *engagement = find_engagement(crew, assign->campaign);
  if (engagement == NULL) {
    return cv_fail(why, CV_ERR_STATE, "an assignment for campaign %llu without its terms",
                   (unsigned long long)assign->campaign);
  }
  if (!is_one_of_us(crew, assign->worker)) {
    return cv_fail(why, CV_ERR_DENIED, "an assignment for worker %llu, who is not here",
                   (unsigned long long)assign->worker);
  }
  if (!cv_line_remove(&crew->waiting, assign->worker)) {
    return cv_fail(why, CV_ERR_STATE, "an assignment for worker %llu, who did not ask for one",
                   (unsigned long long)assign->worker);
  }
  if (engagement->privatizer == NULL || !may_give(crew, assign->worker)) {
    return CV_OK; /* declined meanwhile: no token leaves */
  }
  return answer(crew, engagement, assign, why);
}

static void note_refusal(struct cv_crew *crew, const char *why) {
  for (uint32_t i = 0; i < crew->reasons; i++) {
    if (strcmp(crew->reason[i], why) == 0) {
      return;
    }
  }
  if (crew->reasons < REASONS) {
    (void)snprintf(crew->reason[crew->reasons++], CV_WHY_BYTES, "%s", why);
    char text[CV_WHY_BYTES + 32];
    (void)snprintf(text, sizeof(text), "a token was refused: %s", why);
    note(crew, text);
  }
}

/* Whether a worker that has just been acknowledged has anything left to give, as far as is known here. */
static bool comes_again(const struct cv_crew *crew, uint64_t worker) {
  uint32_t running = 0;
  bool several = false;
  for (uint32_t i = 0; i < crew->engagements; i++) {
    const struct engagement *engagement = &crew->engagement[i];
    if (!engagement->done && engagement->privatizer != NULL) {
      running++;
      several = several || engagement->terms.tokens_per_worker > 1;
    }
  }
  return (several || running > 1) && may_give(crew, worker);
}

static enum cv_err on_ack(struct cv_crew *crew, const struct cv_crowd_ack *ack, uint64_t now_ms) {
  struct cv_pending *pending = cv_pendings_find(&crew->pendings, ack->ticket);
  if (pending == NULL) {
    return CV_OK; /* of an earlier connection */
  }
  uint64_t worker = pending->worker;
  cv_pendings_remove(&crew->pendings, pending);
  switch (ack->verdict) {
  case CV_VERDICT_ACCEPTED:
  case CV_VERDICT_DUPLICATE:
    *(ack->verdict == CV_VERDICT_ACCEPTED ? &crew->figures.accepted : &crew->figures.duplicates) += 1;
    if (crew->given != NULL) {
      crew->given[worker - crew->config.first]++;
    }
    return comes_again(crew, worker) ? cv_line_push(&crew->again, worker, now_ms) : CV_OK;
  case CV_VERDICT_EXPIRED:
    crew->figures.expired++;
    return cv_line_push(&crew->again, worker, now_ms);
  default:
    crew->figures.refused++;
    note_refusal(crew, ack->why != NULL ? ack->why : "no reason given");
    return CV_OK;
  }
}

static enum cv_err on_backoff(struct cv_crew *crew, const struct cv_backoff *backoff, uint64_t now_ms) {
  for (size_t i = 0; i < backoff->workers; i++) {
    if (cv_line_remove(&crew->waiting, backoff->worker[i]) && backoff->delay_ms > 0) {
      CV_TRY(cv_line_push(&crew->again, backoff->worker[i], now_ms + backoff->delay_ms));
    }
  }
  return CV_OK;
}

/* Everybody may come for the next campaign; those who wait go on waiting. */
static void on_done(struct cv_crew *crew, uint64_t campaign) {
  struct engagement *engagement = find_engagement(crew, campaign);
  if (engagement != NULL && !engagement->done) {
    engagement->done = true;
    crew->next = crew->config.first;
  }
}

enum cv_err cv_crew_frame(struct cv_crew *crew, const struct cv_crowd_frame *frame, uint64_t now_ms,
                          struct cv_why *why) {
  if (frame->hello.present && frame->hello.version != CV_WIRE_VERSION) {
    return cv_fail(why, CV_ERR_VERSION, "the broker speaks version %u; expected %d", frame->hello.version,
                   CV_WIRE_VERSION);
  }
  if (frame->arrives + frame->tokens + frame->declines > 0) {
    return cv_fail(why, CV_ERR_DENIED, "a message that only a worker may send");
  }
  if (frame->goodbye != NULL) {
    char text[CV_WHY_BYTES + 32];
    (void)snprintf(text, sizeof(text), "the broker closes: %s", frame->goodbye);
    note(crew, text);
  }
  for (size_t i = 0; i < frame->campaigns; i++) {
    CV_TRY(on_terms(crew, &frame->campaign[i], why));
  }
  for (size_t i = 0; i < frame->acks; i++) {
    CV_TRY(on_ack(crew, &frame->ack[i], now_ms));
  }
  for (size_t i = 0; i < frame->assigns; i++) {
    CV_TRY(on_assign(crew, &frame->assign[i], why));
  }
  for (size_t i = 0; i < frame->backoffs; i++) {
    CV_TRY(on_backoff(crew, &frame->backoff[i], now_ms));
  }
  for (size_t i = 0; i < frame->dones; i++) {
    on_done(crew, frame->done[i]);
  }
  return CV_OK;
}

/* ---- arrivals ---- */

static uint64_t permitted(struct cv_crew *crew, uint64_t now_ms) {
  if (crew->config.arrival_rate <= 0) {
    return UINT64_MAX;
  }
  double burst = crew->config.arrival_rate > 1 ? crew->config.arrival_rate : 1;
  crew->allowance += crew->config.arrival_rate * (double)(now_ms - crew->allowance_ms) / 1000;
  crew->allowance_ms = now_ms;
  crew->allowance = crew->allowance < burst ? crew->allowance : burst;
  return (uint64_t)crew->allowance;
}

/* The next worker to arrive: one that comes again, or one that has not been here. False if there is none now. */
static bool next_arrival(struct cv_crew *crew, uint64_t now_ms, uint64_t *ret_worker) {
  if (crew->again.count > 0 && cv_line_at(&crew->again, 0)->due_ms <= now_ms) {
    *ret_worker = cv_line_pop(&crew->again);
    return true;
  }
  while (crew->next <= crew->config.last) {
    uint64_t worker = crew->next++;
    if (may_give(crew, worker)) {
      *ret_worker = worker;
      return true;
    }
  }
  return false;
}

/* Keeps as many waiting at the broker as can be assigned in the next turns. */
static enum cv_err arrive(struct cv_crew *crew, uint64_t now_ms) {
  uint64_t most = permitted(crew, now_ms);
  uint64_t ahead = 2 * (uint64_t)crew->config.concurrency;
  if (crew->waiting.count > ahead / 2 && crew->config.arrival_rate <= 0) {
    return CV_OK;
  }
  uint64_t worker;
  for (uint64_t n = 0; n < most && crew->waiting.count < ahead && next_arrival(crew, now_ms, &worker); n++) {
    void *array = crew->arriving;
    CV_TRY(grow(&array, crew->arriving_count, &crew->arriving_cap, sizeof(*crew->arriving)));
    crew->arriving = array;
    CV_TRY(cv_line_push(&crew->waiting, worker, 0));
    crew->arriving[crew->arriving_count++] = worker;
    crew->allowance -= crew->config.arrival_rate > 0;
  }
  return CV_OK;
}

bool cv_crew_flush(struct cv_crew *crew, uint64_t now_ms, struct cv_crowd_frame *ret) {
  if (!crew->open) {
    return false;
  }
  if (arrive(crew, now_ms) != CV_OK) {
    note(crew, "out of memory: fewer workers arrive");
  }
  struct cv_crowd_frame frame = {
    .hello = {.present = crew->hello_due, .version = CV_WIRE_VERSION, .program = "crowdveil-worker"},
    .tokens = crew->tokens,
    .token = crew->token,
    .declines = crew->declines,
    .decline = crew->decline,
  };
  if (crew->arriving_count > 0 || crew->hello_due) {
    crew->arrive = (struct cv_arrive){
      .workers = crew->arriving_count, .worker = crew->arriving, .credit = crew->config.concurrency};
    frame.arrives = 1;
    frame.arrive = &crew->arrive;
  }
  crew->hello_due = false;
  crew->tokens = crew->declines = crew->arriving_count = 0;
  *ret = frame;
  return frame.hello.present || frame.arrives + frame.tokens + frame.declines > 0;
}

bool cv_crew_is_done(const struct cv_crew *crew) {
  if (crew->exhausted) {
    return true;
  }
  uint32_t over = 0;
  for (uint32_t i = 0; i < crew->engagements; i++) {
    over += crew->engagement[i].done || crew->engagement[i].privatizer == NULL;
  }
  bool used_up = crew->next > crew->config.last && crew->waiting.count == 0 && crew->again.count == 0 &&
                 crew->pendings.count == 0;
  return used_up || (crew->engagements > 0 && over == crew->engagements);
}

void cv_crew_figures(const struct cv_crew *crew, struct cv_crew_figures *ret) {
  *ret = crew->figures;
}
