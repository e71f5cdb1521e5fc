/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/line.h"
#include "worker/outbox.h"
#include "worker/pending.h"

enum {
  CONCURRENCY_MAX = 8192,
  CAMPAIGNS_MAX = 64,
  REASONS = 16,
  PROBE_MS = 1000,     /* between arrivals of workers whom no known campaign wants */
  LATE_ACKS_MS = 2000, /* how long acknowledgements may come after Done */
};
#define WORKERS_MAX (UINT64_C(1) << 28)

/* In place of a count of tokens: never again. */
static const uint32_t NEVER = UINT32_MAX;

/* A campaign whose terms have been told. */
struct engagement {
  struct cv_terms terms;
  const struct cv_work *work;       /* that its scores come from, while it is not declined */
  struct cv_privatizer *privatizer; /* owned; NULL: declined */
  uint32_t *given;                  /* tokens per worker, or NEVER; NULL: declined */
  bool done;
  bool told; /* something of it, on this connection */
};

struct cv_crew {
  struct cv_crew_config config;
  uint64_t next;          /* first worker that has not arrived yet */
  struct cv_line waiting; /* arrived, not assigned */
  struct cv_line again;   /* will arrive as soon as there is room */
  struct cv_line resting; /* will arrive once due */
  uint32_t *given;        /* scores that have left, per worker, or NEVER */
  uint32_t *wish;         /* with a stock, per worker: the arm that it has come for */
  uint8_t *here;          /* per worker: waiting, resting, about to arrive, or without acknowledgement */
  uint64_t probe, probed_ms;
  bool probing; /* the one that waits only asks */
  struct cv_pendings pendings;
  struct engagement engagement[CAMPAIGNS_MAX];
  uint32_t engagements;
  bool open, hello_due, greeted;
  bool failed;      /* memory ran out: the crew is at its end */
  bool limit_noted; /* that an assignment was over the owner's limit */
  bool *met;        /* per work: a campaign of it, by a requester that is served, has been told */
  uint64_t late_ms; /* until then acknowledgements of what is done may come; 0: nothing is */
  double allowance; /* arrivals that the rate permits now */
  uint64_t allowance_ms;
  /* to be sent */
  struct cv_outbox outbox;
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

/* At the end of every entry from outside: out of memory, then or earlier, is final. Passes `err` on, else. */
static enum cv_err unless_failed(struct cv_crew *crew, enum cv_err err, struct cv_why *why) {
  crew->failed = crew->failed || err == CV_ERR_NOMEM;
  return crew->failed ? cv_fail(why, CV_ERR_NOMEM, "out of memory") : err;
}

bool cv_crew_has_failed(const struct cv_crew *crew) {
  return crew->failed;
}

enum cv_err cv_crew_new(const struct cv_crew_config *config, struct cv_crew **ret, struct cv_why *why) {
  if (config->concurrency < 1 || config->concurrency > CONCURRENCY_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "concurrency is %u; expected 1 to %d", config->concurrency, CONCURRENCY_MAX);
  }
  if (config->last - config->first >= WORKERS_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "a range of more than %llu workers; expected a smaller one",
                   (unsigned long long)WORKERS_MAX);
  }
  struct cv_crew *crew = calloc(1, sizeof(*crew));
  if (crew == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  crew->config = *config;
  crew->next = crew->probe = config->first;
  crew->given = calloc(config->last - config->first + 1, sizeof(*crew->given));
  crew->here = calloc(config->last - config->first + 1, sizeof(*crew->here));
  crew->met = calloc(config->works, sizeof(*crew->met));
  crew->wish = config->stock == NULL ? NULL : calloc(config->last - config->first + 1, sizeof(*crew->wish));
  if (crew->given == NULL || crew->here == NULL || crew->met == NULL || (config->stock != NULL && crew->wish == NULL) ||
      cv_pendings_init(&crew->pendings, 2 * (size_t)config->concurrency, cv_rng_u64(config->rng)) != CV_OK) {
    cv_crew_free(crew);
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  if (config->given != NULL) {
    memcpy(crew->given, config->given, (config->last - config->first + 1) * sizeof(*crew->given));
  }
  *ret = crew;
  return CV_OK;
}

/* What is held for a campaign that tokens may go to. */
static void end_engagement(struct engagement *engagement) {
  cv_privatizer_free(engagement->privatizer);
  free(engagement->given);
  engagement->privatizer = NULL;
  engagement->given = NULL;
}

void cv_crew_free(struct cv_crew *crew) {
  if (crew == NULL) {
    return;
  }
  for (uint32_t i = 0; i < crew->engagements; i++) {
    end_engagement(&crew->engagement[i]);
  }
  cv_line_fini(&crew->waiting);
  cv_line_fini(&crew->again);
  cv_line_fini(&crew->resting);
  cv_pendings_fini(&crew->pendings);
  free(crew->given);
  free(crew->here);
  free(crew->met);
  free(crew->wish);
  cv_outbox_fini(&crew->outbox);
  free(crew);
}

/* ---- the connection ---- */

void cv_crew_opened(struct cv_crew *crew, uint64_t now_ms) {
  crew->open = true;
  crew->hello_due = true;
  crew->greeted = crew->probing = false;
  crew->allowance = 0;
  crew->allowance_ms = crew->probed_ms = now_ms;
  for (size_t i = 0; i < crew->pendings.entries; i++) {
    if (crew->pendings.entry[i].values > 0 && cv_outbox_token(&crew->outbox, &crew->pendings.entry[i]) != CV_OK) {
      crew->failed = true;
    }
  }
}

void cv_crew_closed(struct cv_crew *crew) {
  crew->open = false;
  cv_outbox_clear(&crew->outbox);
  for (uint32_t i = 0; i < crew->engagements; i++) { /* it may be over when the broker is back, and not be told again */
    crew->engagement[i].told = false;
  }
  while (crew->waiting.count > 0) { /* the broker has forgotten them */
    uint64_t worker = cv_line_pop(&crew->waiting);
    if (crew->wish != NULL) {
      cv_stock_forget(crew->config.stock, crew->wish[worker - crew->config.first]);
    }
    if (cv_line_push(&crew->again, worker, 0) != CV_OK) {
      crew->failed = true;
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
  struct cv_decline *decline = cv_outbox_decline(&crew->outbox);
  if (decline == NULL) {
    return CV_ERR_NOMEM;
  }
  char *why = crew->declined_why[engagement - crew->engagement];
  (void)snprintf(why, CV_WHY_BYTES, "%.*s", CV_WHY_BYTES - 1, reason);
  decline->campaign = engagement->terms.id;
  decline->why = why;
  cv_privatizer_free(engagement->privatizer);
  engagement->privatizer = NULL; /* what has been given stays on record */
  char text[CV_WHY_BYTES + CV_NAME_BYTES + 32];
  (void)snprintf(text, sizeof(text), "declined campaign \"%s\": %s", engagement->terms.name, why);
  note(crew, text);
  return CV_OK;
}

/* One assignment: its place is somebody else's to take, now and not after a lease. `why` is kept. */
static enum cv_err decline_one(struct cv_crew *crew, const struct cv_assign *assign, const char *why) {
  struct cv_decline *decline = cv_outbox_decline(&crew->outbox);
  if (decline == NULL) {
    return CV_ERR_NOMEM;
  }
  decline->why = why;
  decline->has_ticket = true;
  memcpy(decline->ticket, assign->ticket, sizeof(decline->ticket));
  return CV_OK;
}

static enum cv_err decline_over_limit(struct cv_crew *crew, const struct cv_assign *assign) {
  if (!crew->limit_noted) {
    crew->limit_noted = true;
    note(crew, "declined an assignment: it would show more scores than the worker's own limit leaves");
  }
  return decline_one(crew, assign, "it would show more scores than the worker's own limit leaves");
}

/* Tokens may go to it. */
static bool is_live(const struct engagement *engagement) {
  return !engagement->done && engagement->privatizer != NULL;
}

static struct engagement *place_for(struct cv_crew *crew, uint64_t campaign) {
  struct engagement *engagement = find_engagement(crew, campaign);
  if (engagement != NULL || crew->engagements < CAMPAIGNS_MAX) {
    return engagement != NULL ? engagement : &crew->engagement[crew->engagements++];
  }
  for (uint32_t i = 0; engagement == NULL && i < crew->engagements; i++) {
    engagement = is_live(&crew->engagement[i]) ? NULL : &crew->engagement[i];
  }
  return engagement;
}

/* NULL if there are no scores for a campaign of this name. */
static const struct cv_work *find_work(const struct cv_crew *crew, const char *campaign) {
  for (size_t i = 0; i < crew->config.works; i++) {
    if (strcmp(crew->config.work[i].campaign, campaign) == 0) {
      return &crew->config.work[i];
    }
  }
  return NULL;
}

static enum cv_err fail_name(const struct cv_crew *crew, struct cv_why *why) {
  if (crew->config.works > 1) {
    return cv_fail(why, CV_ERR_DENIED, "no scores for this campaign here, only for %zu others", crew->config.works);
  }
  return cv_fail(why, CV_ERR_DENIED, "no scores for this campaign here, only for \"%s\"", crew->config.work->campaign);
}

/* Whether the crew takes part: it has scores, its owner accepts the terms. */
static enum cv_err consider(const struct cv_crew *crew, const struct cv_work *work, const struct cv_terms *terms,
                            struct cv_privatizer **ret, struct cv_why *why) {
  if (work == NULL) {
    return fail_name(crew, why);
  }
  CV_TRY(cv_accept_requester(&crew->config.accept, terms->requester, why));
  crew->met[work - crew->config.work] = true;
  if (terms->arms != work->arms) {
    return cv_fail(why, CV_ERR_DENIED, "%u arms; expected %u as the scores have", terms->arms, work->arms);
  }
  if (terms->tokens_per_worker == 0 || terms->tokens_per_worker == NEVER) {
    return cv_fail(why, CV_ERR_DENIED, "%u tokens per worker; expected 1 to %u", terms->tokens_per_worker, NEVER - 1);
  }
  return cv_accept_terms(&crew->config.accept, terms, ret, why);
}

static enum cv_err on_terms(struct cv_crew *crew, const struct cv_terms *terms, struct cv_why *why) {
  struct engagement *known = find_engagement(crew, terms->id);
  struct engagement *engagement = place_for(crew, terms->id);
  struct cv_privatizer *privatizer = NULL;
  struct cv_why reason;
  if (engagement == NULL) {
    return cv_fail(why, CV_ERR_LIMIT, "more than %d campaigns at once", CAMPAIGNS_MAX);
  }
  /* What has been given stays given, whatever the campaign is told to be on another connection. */
  uint32_t *given = known == NULL ? NULL : known->given;
  if (known != NULL) {
    known->given = NULL;
  }
  end_engagement(engagement);
  const struct cv_work *work = find_work(crew, terms->name);
  *engagement = (struct engagement){.terms = *terms, .work = work, .given = given, .told = true};
  enum cv_err err = consider(crew, work, terms, &privatizer, &reason);
  if (err != CV_OK) {
    return err == CV_ERR_NOMEM ? err : decline(crew, engagement, reason.text);
  }
  engagement->privatizer = privatizer;
  if (given == NULL) {
    engagement->given = calloc(crew->config.last - crew->config.first + 1, sizeof(*engagement->given));
    crew->next = crew->config.first; /* who had nothing to do may be wanted here */
  }
  if (engagement->given == NULL) {
    return CV_ERR_NOMEM;
  }
  crew->figures.campaigns += known == NULL;
  return CV_OK;
}

static bool is_one_of_us(const struct cv_crew *crew, uint64_t worker) {
  return worker >= crew->config.first && worker <= crew->config.last;
}

/* The owner's limit, of scores. What has left counts, whatever became of it: the broker has seen it. */
static bool may_give(const struct cv_crew *crew, uint64_t worker, uint32_t scores) {
  uint64_t limit = crew->config.accept.tokens > 0 ? crew->config.accept.tokens : NEVER;
  uint32_t given = crew->given[worker - crew->config.first];
  return given != NEVER && given < limit && scores <= limit - given;
}

/* A token shows as many scores as it has values, and each counts. */
static void count_given(struct cv_crew *crew, uint64_t worker, uint32_t scores) {
  uint32_t *given = &crew->given[worker - crew->config.first];
  *given = *given < NEVER - scores ? *given + scores : NEVER;
  if (crew->config.give != NULL) {
    crew->config.give(crew->config.give_data, worker, *given);
  }
}

/* Whether a further token of this worker may be wanted, as far as is known here. */
static bool is_wanted(const struct cv_crew *crew, uint64_t worker) {
  bool none_live = true;
  for (uint32_t i = 0; i < crew->engagements; i++) {
    const struct engagement *engagement = &crew->engagement[i];
    if (is_live(engagement) && engagement->told) {
      none_live = false;
      if (engagement->given[worker - crew->config.first] < engagement->terms.tokens_per_worker) {
        return may_give(crew, worker, 1);
      }
    }
  }
  return none_live && may_give(crew, worker, 1);
}

/* A worker that neither waits nor owes anything: it comes again or leaves. */
static enum cv_err move_on(struct cv_crew *crew, uint64_t worker) {
  if (is_wanted(crew, worker)) {
    return cv_line_push(&crew->again, worker, 0);
  }
  crew->here[worker - crew->config.first] = 0;
  return CV_OK;
}

static enum cv_err check_assign(const struct cv_crew *crew, const struct engagement *engagement,
                                const struct cv_assign *assign, struct cv_why *why) {
  if (engagement->given[assign->worker - crew->config.first] >= engagement->terms.tokens_per_worker) {
    return cv_fail(why, CV_ERR_DENIED, "worker %llu is asked for more than the %u tokens of the terms",
                   (unsigned long long)assign->worker, engagement->terms.tokens_per_worker);
  }
  for (uint32_t i = 0; i < assign->arms; i++) {
    uint32_t arm = assign->arms == 1 ? assign->arm.one : assign->arm.many[i];
    if (arm >= engagement->terms.arms) {
      return cv_fail(why, CV_ERR_FORMAT, "arm %u is assigned; expected below %u", arm, engagement->terms.arms);
    }
  }
  if (cv_pendings_find(&crew->pendings, assign->ticket) != NULL) {
    return cv_fail(why, CV_ERR_STATE, "a ticket that has not been acknowledged is assigned again");
  }
  return CV_OK;
}

/*
 * Where the score of an arm that is asked for lies in the arm's stream: at the place itself for the arm that is played,
 * the first, and for another one where no other played arm's places are, since no two answers may share a score.
 */
static uint64_t place_of(const struct cv_assign *assign, uint32_t i) {
  enum { PLACE_BITS = 40 };
  return i == 0 ? assign->place : assign->place + (((uint64_t)assign->arm.many[0] + 1) << PLACE_BITS);
}

static int64_t privatize(const struct cv_crew *crew, const struct cv_privatizer *privatizer, uint32_t arm,
                         uint64_t place, int64_t score) {
  if (!crew->config.privatizer_seeded) {
    return cv_privatizer_apply(privatizer, arm, score, crew->config.rng);
  }
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, crew->config.privatizer_seed, CV_RNG_PRIVATIZER, arm, place);
  return cv_privatizer_apply(privatizer, arm, score, &seeded.rng);
}

/* A worker with rows of its own: for the arm that is dealt, not the one that it came for, it may have none. */
static bool has_score(const struct cv_crew *crew, const struct cv_assign *assign) {
  return crew->config.stock == NULL ||
         (assign->arms == 1 && cv_stock_has(crew->config.stock, assign->worker, assign->arm.one));
}

static enum cv_err score_of(struct cv_crew *crew, const struct engagement *engagement, uint64_t worker, uint32_t arm,
                            const struct cv_moment *at, int64_t *ret_score) {
  if (crew->config.stock == NULL) {
    return engagement->work->score(engagement->work->data, arm, at, ret_score);
  }
  return cv_stock_take(crew->config.stock, worker, arm, ret_score) ? CV_OK : CV_ERR_LIMIT;
}

/* The scores, privatized, into a token that is kept until it is acknowledged. */
static enum cv_err answer(struct cv_crew *crew, struct engagement *engagement, const struct cv_assign *assign,
                          struct cv_why *why) {
  CV_TRY(check_assign(crew, engagement, assign, why));
  if (!has_score(crew, assign)) {
    CV_TRY(decline_one(crew, assign, "the worker has no score for it"));
    return move_on(crew, assign->worker);
  }
  struct cv_pending *pending = cv_pendings_add(&crew->pendings, assign->ticket);
  if (pending == NULL) {
    return cv_fail(why, CV_ERR_LIMIT, "more than %zu assignments at once; expected %u", crew->pendings.entries,
                   crew->config.concurrency);
  }
  pending->worker = assign->worker;
  pending->campaign = assign->campaign;
  pending->values = assign->arms;
  struct cv_moment at = {.place = assign->place, .round = assign->round, .switched = assign->switched};
  for (uint32_t i = 0; i < assign->arms; i++) {
    uint32_t arm = assign->arms == 1 ? assign->arm.one : assign->arm.many[i];
    int64_t score;
    at.place = place_of(assign, i);
    if (score_of(crew, engagement, assign->worker, arm, &at, &score) != CV_OK) {
      cv_pendings_remove(&crew->pendings, pending);
      char reason[CV_WHY_BYTES];
      (void)snprintf(reason, sizeof(reason), "the data of arm %u have run out at its token %llu", arm,
                     (unsigned long long)assign->place + 1);
      CV_TRY(decline(crew, engagement, reason));
      return move_on(crew, assign->worker);
    }
    pending->value[i] = privatize(crew, engagement->privatizer, arm, at.place, score);
  }
  engagement->given[assign->worker - crew->config.first]++;
  count_given(crew, assign->worker, assign->arms);
  return cv_outbox_token(&crew->outbox, pending);
}

/* The broker has answered a worker that waited; false if it did not wait. */
static bool stops_waiting(struct cv_crew *crew, uint64_t worker) {
  bool waited = cv_line_remove(&crew->waiting, worker);
  crew->probing = crew->probing && crew->waiting.count > 0;
  return waited;
}

static enum cv_err on_assign(struct cv_crew *crew, const struct cv_assign *assign, uint64_t now_ms,
                             struct cv_why *why) {
  struct engagement *engagement = find_engagement(crew, assign->campaign);
  if (engagement == NULL) {
    return cv_fail(why, CV_ERR_STATE, "an assignment for campaign %llu without its terms",
                   (unsigned long long)assign->campaign);
  }
  if (!is_one_of_us(crew, assign->worker)) {
    return cv_fail(why, CV_ERR_DENIED, "an assignment for worker %llu, who is not here",
                   (unsigned long long)assign->worker);
  }
  if (!stops_waiting(crew, assign->worker)) {
    return cv_fail(why, CV_ERR_STATE, "an assignment for worker %llu, who did not ask for one",
                   (unsigned long long)assign->worker);
  }
  if (crew->wish != NULL) {
    cv_stock_dealt(crew->config.stock, crew->wish[assign->worker - crew->config.first],
                   assign->arms == 1 ? assign->arm.one : CV_STOCK_NONE, now_ms);
  }
  if (!is_live(engagement)) {
    return move_on(crew, assign->worker); /* declined or done meanwhile: no token leaves */
  }
  if (!may_give(crew, assign->worker, assign->arms)) {
    crew->given[assign->worker - crew->config.first] = NEVER; /* less is not asked for: it leaves */
    CV_TRY(decline_over_limit(crew, assign));
    return move_on(crew, assign->worker);
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

static enum cv_err on_ack(struct cv_crew *crew, const struct cv_crowd_ack *ack, struct cv_why *why) {
  struct cv_pending *pending = cv_pendings_find(&crew->pendings, ack->ticket);
  if (pending == NULL) {
    return CV_OK; /* of an earlier connection */
  }
  if (cv_outbox_holds(&crew->outbox, pending)) {
    return cv_fail(why, CV_ERR_STATE, "an acknowledgement of a token that has not been sent");
  }
  uint64_t worker = pending->worker;
  struct engagement *engagement = find_engagement(crew, pending->campaign);
  uint32_t *given =
      engagement == NULL || engagement->given == NULL ? NULL : &engagement->given[worker - crew->config.first];
  cv_pendings_remove(&crew->pendings, pending);
  switch (ack->verdict) {
    case CV_VERDICT_ACCEPTED:
      crew->figures.accepted++;
      break;
    case CV_VERDICT_DUPLICATE:
      crew->figures.duplicates++;
      break;
    case CV_VERDICT_EXPIRED: /* it took no slot of the campaign's */
      crew->figures.expired++;
      if (given != NULL && *given != NEVER) {
        --*given;
      }
      break;
    default:
      crew->figures.refused++;
      if (given != NULL) {
        *given = NEVER;
      }
      note_refusal(crew, ack->why != NULL ? ack->why : "no reason given");
      break;
  }
  return move_on(crew, worker);
}

/* Before anybody moves on: a worker may be sent away from several campaigns at once. */
static void learn_unwanted(struct cv_crew *crew, const struct cv_backoff *backoff) {
  struct engagement *engagement = backoff->delay_ms > 0 ? NULL : find_engagement(crew, backoff->campaign);
  for (size_t i = 0; engagement != NULL && engagement->given != NULL && i < backoff->workers; i++) {
    if (is_one_of_us(crew, backoff->worker[i])) {
      engagement->told = true; /* that it runs, if not its terms */
      engagement->given[backoff->worker[i] - crew->config.first] = NEVER;
    }
  }
}

/* One worker that the broker sends away: for a while, from one campaign, or (campaign 0) from all. */
static enum cv_err send_away(struct cv_crew *crew, const struct cv_backoff *backoff, uint64_t worker, uint64_t now_ms) {
  if (backoff->delay_ms > 0) {
    return cv_line_push(&crew->resting, worker, now_ms + backoff->delay_ms);
  }
  const struct engagement *engagement = find_engagement(crew, backoff->campaign);
  if (engagement != NULL && engagement->given != NULL) {
    return move_on(crew, worker);
  }
  if (backoff->campaign == 0) {
    crew->given[worker - crew->config.first] = NEVER;
  }
  crew->here[worker - crew->config.first] = 0;
  return CV_OK;
}

static enum cv_err on_backoff(struct cv_crew *crew, const struct cv_backoff *backoff, uint64_t now_ms) {
  for (size_t i = 0; i < backoff->workers; i++) {
    if (stops_waiting(crew, backoff->worker[i])) {
      if (crew->wish != NULL) {
        cv_stock_dealt(crew->config.stock, crew->wish[backoff->worker[i] - crew->config.first], CV_STOCK_NONE, now_ms);
      }
      CV_TRY(send_away(crew, backoff, backoff->worker[i], now_ms));
    }
  }
  return CV_OK;
}

/* Everybody may come for the next campaign; those who wait go on waiting. */
static void on_done(struct cv_crew *crew, uint64_t campaign, uint64_t now_ms) {
  struct engagement *engagement = find_engagement(crew, campaign);
  if (engagement != NULL && !engagement->done) {
    engagement->done = true;
    crew->next = crew->config.first;
    crew->late_ms = now_ms + LATE_ACKS_MS;
  }
}

/* A campaign that is done acknowledges what it has counted; what is open after a while never will be. */
static enum cv_err drop_late(struct cv_crew *crew, uint64_t now_ms) {
  if (crew->late_ms == 0 || now_ms < crew->late_ms) {
    return CV_OK;
  }
  crew->late_ms = 0;
  for (size_t i = 0; i < crew->pendings.entries; i++) {
    struct cv_pending *pending = &crew->pendings.entry[i];
    const struct engagement *engagement = pending->values == 0 ? NULL : find_engagement(crew, pending->campaign);
    if (engagement != NULL && engagement->done) {
      uint64_t worker = pending->worker;
      cv_pendings_remove(&crew->pendings, pending);
      crew->figures.expired++;
      CV_TRY(move_on(crew, worker));
    }
  }
  return CV_OK;
}

static enum cv_err on_hello(struct cv_crew *crew, const struct cv_crowd_frame *frame, struct cv_why *why) {
  if (frame->hello.present) {
    CV_TRY(cv_hello_check(&frame->hello, "broker", "worker", why));
  }
  if (frame->hello.present && crew->greeted) {
    return cv_fail(why, CV_ERR_FORMAT, "the broker says hello a second time");
  }
  crew->greeted = crew->greeted || frame->hello.present;
  if (!crew->greeted && frame->goodbye == NULL) {
    return cv_fail(why, CV_ERR_FORMAT, "the broker's first message is no hello");
  }
  return CV_OK;
}

static enum cv_err on_frame(struct cv_crew *crew, const struct cv_crowd_frame *frame, uint64_t now_ms,
                            struct cv_why *why) {
  CV_TRY(on_hello(crew, frame, why));
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
    CV_TRY(on_ack(crew, &frame->ack[i], why));
  }
  for (size_t i = 0; i < frame->assigns; i++) {
    CV_TRY(on_assign(crew, &frame->assign[i], now_ms, why));
  }
  for (size_t i = 0; i < frame->backoffs; i++) {
    learn_unwanted(crew, &frame->backoff[i]);
  }
  for (size_t i = 0; i < frame->backoffs; i++) {
    CV_TRY(on_backoff(crew, &frame->backoff[i], now_ms));
  }
  for (size_t i = 0; i < frame->dones; i++) {
    on_done(crew, frame->done[i], now_ms);
  }
  return CV_OK;
}

enum cv_err cv_crew_frame(struct cv_crew *crew, const struct cv_crowd_frame *frame, uint64_t now_ms,
                          struct cv_why *why) {
  CV_TRY(unless_failed(crew, CV_OK, why));
  return unless_failed(crew, on_frame(crew, frame, now_ms, why), why);
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

/* The broker tells a campaign only to who arrives: when nobody is wanted, one comes now and then and asks. */
static bool next_probe(struct cv_crew *crew, uint64_t now_ms, uint64_t *ret_worker) {
  if (crew->waiting.count > 0 || crew->pendings.count > 0 || now_ms < crew->probed_ms + PROBE_MS) {
    return false;
  }
  crew->probed_ms = now_ms;
  uint64_t worker = crew->probe;
  crew->probe = worker == crew->config.last ? crew->config.first : worker + 1;
  if (crew->here[worker - crew->config.first] || !may_give(crew, worker, 1) ||
      (crew->config.stock != NULL && cv_stock_left(crew->config.stock, worker) == 0)) {
    return false;
  }
  if (crew->wish != NULL) {
    crew->wish[worker - crew->config.first] = CV_STOCK_NONE;
  }
  crew->probing = true;
  *ret_worker = worker;
  return true;
}

static bool may_come(void *data, uint64_t worker) {
  const struct cv_crew *crew = data;
  return !crew->here[worker - crew->config.first] && is_wanted(crew, worker);
}

/* With a stock: whoever was here and moved on, or has rested, may come again, but for an arm that it has a row of. */
static bool next_of_stock(struct cv_crew *crew, uint64_t now_ms, uint64_t *ret_worker) {
  uint32_t arm;
  while (crew->again.count > 0) {
    crew->here[cv_line_pop(&crew->again) - crew->config.first] = 0;
  }
  while (crew->resting.count > 0 && cv_line_at(&crew->resting, 0)->due_ms <= now_ms) {
    crew->here[cv_line_pop(&crew->resting) - crew->config.first] = 0;
  }
  if (!cv_stock_next(crew->config.stock, now_ms, may_come, crew, ret_worker, &arm)) {
    return false;
  }
  crew->wish[*ret_worker - crew->config.first] = arm;
  return true;
}

/* The next whom a campaign may want: one that comes again, or one that has left or not been here. */
static bool next_wanted(struct cv_crew *crew, uint64_t now_ms, uint64_t *ret_worker) {
  if (crew->config.stock != NULL) {
    return next_of_stock(crew, now_ms, ret_worker);
  }
  if (crew->resting.count > 0 && cv_line_at(&crew->resting, 0)->due_ms <= now_ms) {
    *ret_worker = cv_line_pop(&crew->resting);
    return true;
  }
  if (crew->again.count > 0) {
    *ret_worker = cv_line_pop(&crew->again);
    return true;
  }
  while (crew->next <= crew->config.last) {
    uint64_t worker = crew->next++;
    if (!crew->here[worker - crew->config.first] && is_wanted(crew, worker)) {
      *ret_worker = worker;
      return true;
    }
  }
  return false;
}

/* The next worker to arrive; false if there is none now. */
static bool next_arrival(struct cv_crew *crew, uint64_t now_ms, uint64_t *ret_worker) {
  if (next_wanted(crew, now_ms, ret_worker)) {
    crew->probing = false;
    return true;
  }
  return next_probe(crew, now_ms, ret_worker);
}

/*
 * Keeps as many waiting at the broker as can be assigned in the next turns; of those who are hired one by one all:
 * whoever waits may not be the one that is wanted.
 */
static enum cv_err arrive(struct cv_crew *crew, uint64_t now_ms) {
  uint64_t most = permitted(crew, now_ms);
  uint64_t hired = 0;
  for (size_t i = 0; i < crew->config.works; i++) {
    hired += crew->config.work[i].hires ? crew->config.work[i].arms : 0;
  }
  uint64_t ahead = 2 * (uint64_t)crew->config.concurrency + hired;
  if (crew->waiting.count > crew->config.concurrency + hired && crew->config.arrival_rate <= 0) {
    return CV_OK;
  }
  uint64_t worker;
  for (uint64_t n = 0; n < most && crew->waiting.count < ahead && next_arrival(crew, now_ms, &worker); n++) {
    crew->here[worker - crew->config.first] = 1;
    CV_TRY(cv_line_push(&crew->waiting, worker, 0));
    CV_TRY(cv_outbox_arrive(&crew->outbox, worker,
                            crew->wish == NULL ? CV_WISH_NONE : crew->wish[worker - crew->config.first]));
    crew->allowance -= crew->config.arrival_rate > 0;
  }
  return CV_OK;
}

bool cv_crew_flush(struct cv_crew *crew, uint64_t now_ms, struct cv_crowd_frame *ret) {
  if (unless_failed(crew, drop_late(crew, now_ms), NULL) != CV_OK || !crew->open ||
      unless_failed(crew, arrive(crew, now_ms), NULL) != CV_OK) {
    return false;
  }
  struct cv_crowd_frame frame = {
      .hello = {.present = crew->hello_due, .version = CV_WIRE_VERSION, .program = "crowdveil-worker"},
      .tokens = crew->outbox.tokens,
      .token = crew->outbox.token,
      .declines = crew->outbox.declines,
      .decline = crew->outbox.decline,
  };
  if (crew->outbox.arrivals > 0 || crew->hello_due) {
    crew->arrive = (struct cv_arrive){.workers = crew->outbox.arrivals,
                                      .worker = crew->outbox.worker,
                                      .wish = crew->wish == NULL ? NULL : crew->outbox.wish,
                                      .credit = crew->config.concurrency};
    frame.arrives = 1;
    frame.arrive = &crew->arrive;
  }
  crew->hello_due = false;
  cv_outbox_clear(&crew->outbox);
  *ret = frame;
  return frame.hello.present || frame.arrives + frame.tokens + frame.declines > 0;
}

/* Nobody who is away could come, were every arm open. */
static bool is_used_up(const struct cv_crew *crew) {
  const struct cv_stock *stock = crew->config.stock;
  return stock == NULL ? crew->next > crew->config.last : !cv_stock_any(stock, may_come, (void *)(uintptr_t)crew);
}

bool cv_crew_is_done(const struct cv_crew *crew) {
  bool any_live = false;
  for (uint32_t i = 0; i < crew->engagements; i++) {
    any_live = any_live || is_live(&crew->engagement[i]);
  }
  bool nobody_left = crew->waiting.count == (crew->probing ? 1 : 0) && crew->again.count == 0 &&
                     crew->resting.count == 0 && is_used_up(crew);
  bool all_met = true;
  for (size_t i = 0; i < crew->config.works; i++) {
    all_met = all_met && crew->met[i];
  }
  return crew->pendings.count == 0 && (nobody_left || (all_met && !any_live));
}

void cv_crew_figures(const struct cv_crew *crew, struct cv_crew_figures *ret) {
  *ret = crew->figures;
}
