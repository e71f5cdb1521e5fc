/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "worker/again.h"
#include "worker/arrival.h"
#include "worker/asker.h"
#include "worker/brokers.h"
#include "worker/consider.h"
#include "worker/spent.h"
#include "worker/stall.h"
#include "worker/state.h"

enum {
  CONCURRENCY_MAX = 8192,
  LATE_ACKS_MS = 2000, /* time for late acknowledgements after Done */
  AGAIN_MS = 1000,     /* after an assignment that asks what its worker has answered */
};
#define WORKERS_MAX (UINT64_C(1) << 28)

void cv_worker_note(const struct cv_worker *pool, const char *text) {
  if (pool->config.note != NULL) {
    pool->config.note(pool->config.note_data, text);
  }
}

bool cv_worker_has_failed(const struct cv_worker *pool) {
  return pool->failed;
}

enum cv_err cv_worker_new(const struct cv_worker_config *config, struct cv_worker **ret, struct cv_why *why) {
  if (config->concurrency < 1 || config->concurrency > CONCURRENCY_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "concurrency is %u; expected 1 to %d", config->concurrency, CONCURRENCY_MAX);
  }
  /* The certificate gives the range; tables below have an entry for each of its workers. */
  if (config->last - config->first >= WORKERS_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "a range of more than %llu workers; expected a smaller one",
                   (unsigned long long)WORKERS_MAX);
  }
  CV_REQUIRE(config->accept.pairs == 0 || config->session != NULL);
  struct cv_worker *pool = calloc(1, sizeof(*pool));
  if (pool == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  pool->config = *config;
  pool->next = pool->probe = config->first;
  pool->given = calloc(config->last - config->first + 1, sizeof(*pool->given));
  pool->here = calloc(config->last - config->first + 1, sizeof(*pool->here));
  pool->met = calloc(config->works, sizeof(*pool->met));
  pool->asked = calloc(config->works, sizeof(*pool->asked));
  pool->wish = config->stock == NULL ? NULL : calloc(config->last - config->first + 1, sizeof(*pool->wish));
  pool->spent = config->stock == NULL ? NULL : calloc(CV_SPENT_ARMS_MOST, sizeof(*pool->spent));
  if (pool->given == NULL || pool->here == NULL || pool->met == NULL || pool->asked == NULL ||
      (config->stock != NULL && (pool->wish == NULL || pool->spent == NULL)) ||
      /* Twice: a new connection's assignments come beside the unacknowledged tokens of the last one. */
      cv_pendings_init(&pool->pendings, 2 * (size_t)config->concurrency, cv_rng_u64(config->rng)) != CV_OK) {
    cv_worker_free(pool);
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  if (config->coin_key != NULL) {
    memcpy(pool->coin_key, config->coin_key, sizeof(pool->coin_key));
  } else {
    for (size_t i = 0; i < sizeof(pool->coin_key); i++) {
      pool->coin_key[i] = (uint8_t)cv_rng_u64(config->rng);
    }
  }
  if (config->given != NULL) {
    memcpy(pool->given, config->given, (config->last - config->first + 1) * sizeof(*pool->given));
  }
  *ret = pool;
  return CV_OK;
}

void cv_worker_free(struct cv_worker *pool) {
  if (pool == NULL) {
    return;
  }
  cv_worker_campaigns_fini(&pool->campaigns);
  cv_line_fini(&pool->waiting);
  cv_line_fini(&pool->again);
  cv_line_fini(&pool->resting);
  cv_pendings_fini(&pool->pendings);
  free(pool->given);
  free(pool->here);
  for (size_t i = 0; pool->asked != NULL && i < pool->config.works; i++) {
    cv_once_fini(&pool->asked[i]);
  }
  free(pool->asked);
  free(pool->met);
  free(pool->wish);
  free(pool->spent);
  cv_worker_outbox_fini(&pool->outbox);
  free(pool);
}

/* ---- the connection ---- */

void cv_worker_join(struct cv_worker *pool, const struct cv_digest *broker, uint64_t now_ms) {
  pool->broker = *broker;
  pool->open = pool->due = true;
  pool->hello_due = true;
  pool->greeted = pool->probing = false;
  pool->allowance = 0;
  pool->allowance_ms = pool->probed_ms = now_ms;
  for (size_t i = 0; i < pool->pendings.entries; i++) {
    /* Sent again with its first value: scored or privatized a second time, it would tell more about the score. */
    if (cv_pending_has_token(&pool->pendings.entry[i]) &&
        cv_worker_outbox_token(&pool->outbox, &pool->pendings.entry[i]) != CV_OK) {
      pool->failed = true;
    }
  }
}

void cv_worker_leave(struct cv_worker *pool) {
  pool->open = false;
  cv_worker_outbox_clear(&pool->outbox);
  cv_worker_campaigns_untell(&pool->campaigns);
  cv_worker_unhold_unscored(pool);
  /* The broker drops its waiting workers with the connection, so they must arrive again on the next one. */
  while (pool->waiting.count > 0) {
    uint64_t worker = cv_line_pop(&pool->waiting);
    if (pool->wish != NULL) {
      cv_stock_forget(pool->config.stock, pool->wish[worker - pool->config.first]);
    }
    if (cv_line_push(&pool->again, worker, 0) != CV_OK) {
      pool->failed = true;
    }
  }
}

/* ---- messages of the broker ---- */

enum cv_err cv_worker_decline(struct cv_worker *pool, struct cv_worker_campaign *campaign, const char *reason) {
  /* From here on the campaign is not live: assignments of it that are on the way get no token. */
  cv_worker_campaign_decline(campaign, reason);
  /* Without a connection: the terms come again on the next one, and are considered again. */
  if (pool->open) {
    struct cv_decline *decline = cv_worker_outbox_decline(&pool->outbox);
    if (decline == NULL) {
      return CV_ERR_NOMEM;
    }
    decline->campaign = campaign->terms.id;
    decline->why = campaign->declined;
  }
  char text[CV_WHY_BYTES + sizeof(struct cv_text_shown) + 32];
  (void)snprintf(text, sizeof(text), "declined campaign \"%s\": %s", cv_text_shown(campaign->terms.name).text,
                 campaign->declined);
  cv_worker_note(pool, text);
  CV_TRY(cv_again_bar(pool));
  return cv_worker_unhold(pool, campaign->terms.id);
}

enum cv_err cv_worker_decline_one(struct cv_worker *pool, const uint8_t ticket[CV_TICKET_BYTES], const char *why) {
  struct cv_decline *decline = cv_worker_outbox_decline(&pool->outbox);
  if (decline == NULL) {
    return CV_ERR_NOMEM;
  }
  decline->why = why;
  decline->has_ticket = true;
  memcpy(decline->ticket, ticket, sizeof(decline->ticket));
  return CV_OK;
}

static enum cv_err decline_over_limit(struct cv_worker *pool, const struct cv_assign *assign) {
  if (!pool->limit_noted) {
    pool->limit_noted = true;
    cv_worker_note(pool, "declined an assignment: it asks for more scores than accept.tokens leaves the worker");
  }
  return cv_worker_decline_one(pool, assign->ticket,
                               "the assignment asks for more scores than the worker's own limit leaves");
}

/* Whether the rows of a data file are still to be had for the campaign. */
static enum cv_err serve_rows(struct cv_worker *pool, struct cv_worker_campaign *campaign, struct cv_why *why) {
  const struct cv_worker_record *record = pool->config.record;
  const struct cv_work *work = campaign->work;
  if (work->print == 0 || record == NULL) {
    return CV_OK;
  }
  bool is_new = work->is_part && campaign->taken == NULL;
  if (is_new) {
    campaign->taken = calloc(work->arms, sizeof(*campaign->taken));
    if (campaign->taken == NULL) {
      return CV_ERR_NOMEM;
    }
  }
  enum cv_err err = record->serve(record->data, work, &campaign->terms, cv_coin_law(&campaign->privatizer->law),
                                  is_new ? campaign->taken : NULL, why);
  if (err != CV_OK && is_new) { /* the record has not told what has left: it is asked when the terms come again */
    free(campaign->taken);
    campaign->taken = NULL;
  }
  return err;
}

/* What the answers to the questions of a campaign are about; NULL, 0: it has none. */
struct question_kind {
  const struct cv_work *work;
  uint64_t law;
};

static struct question_kind kind_of(const struct cv_worker_campaign *campaign) {
  return campaign == NULL || !cv_worker_campaign_is_live(campaign)
             ? (struct question_kind){0}
             : (struct question_kind){.work = campaign->work, .law = cv_coin_law(&campaign->privatizer->law)};
}

static enum cv_err on_terms(struct cv_worker *pool, const struct cv_terms *terms, struct cv_why *why) {
  const struct cv_worker_campaign *known = cv_worker_campaigns_find(&pool->campaigns, terms->id);
  const struct question_kind before = kind_of(known);
  struct cv_worker_campaign *campaign =
      cv_worker_campaigns_tell(&pool->campaigns, terms, cv_works_find(&pool->config, terms->name));
  struct cv_why reason;
  if (terms->id == 0) {
    return cv_fail(why, CV_ERR_FORMAT, "the broker tells a campaign 0; expected a number from 1 on");
  }
  if (campaign == NULL) {
    return cv_fail(why, CV_ERR_LIMIT, "the broker opened more than %d campaigns at once", CV_WORKER_CAMPAIGNS_MAX);
  }
  /* Considered each time that the broker sends terms: accepted once, a campaign could otherwise weaken them later. */
  enum cv_err err = cv_work_consider(&pool->config, campaign->work, terms, pool->met, &campaign->privatizer, &reason);
  err = err == CV_OK ? cv_worker_meet_brokers(pool, campaign, &reason) : err;
  err = err == CV_OK ? serve_rows(pool, campaign, &reason) : err;
  err = err == CV_OK ? cv_again_meet(pool, campaign, &reason) : err;
  if (err != CV_OK) {
    return err == CV_ERR_NOMEM ? err : cv_worker_decline(pool, campaign, reason.text);
  }
  /* Declined terms need no counts, and most brokers have campaigns that a worker never serves. */
  if (campaign->given == NULL) {
    campaign->given = calloc(pool->config.last - pool->config.first + 1, sizeof(*campaign->given));
    pool->next = pool->config.first; /* workers that left may be wanted by the new campaign: start over */
  }
  if (campaign->given == NULL) {
    return CV_ERR_NOMEM;
  }
  pool->spent_due = pool->stall_due = true;
  /* Terms come again on each connection. */
  pool->figures.campaigns += known == NULL;
  /* Else an answer would be recorded as one to a question that was not asked. */
  const struct question_kind now = kind_of(campaign);
  if (known != NULL && (now.work != before.work || now.law != before.law)) {
    CV_TRY(cv_asker_end(pool, terms->id));
  }
  CV_TRY(cv_again_bar(pool));
  /* With a stock it is first told which arms have rows left. */
  return pool->config.stock != NULL || cv_worker_has_unanswered(pool, campaign) ? CV_OK
                                                                                : cv_worker_stall_check(pool, campaign);
}

static bool is_one_of_us(const struct cv_worker *pool, uint64_t worker) {
  return worker >= pool->config.first && worker <= pool->config.last;
}

/* Checks the limit accept.tokens, in scores. A token counts once sent, whatever its acknowledgement says: the broker
 * has seen it. */
bool cv_worker_may_give(const struct cv_worker *pool, uint64_t worker, uint32_t scores) {
  uint64_t limit = pool->config.accept.tokens > 0 ? pool->config.accept.tokens : CV_GIVEN_NEVER;
  uint32_t given = pool->given[worker - pool->config.first];
  return given != CV_GIVEN_NEVER && given < limit && scores <= limit - given;
}

/* Adds a token's scores to the worker's total, which saturates at CV_GIVEN_NEVER, and reports it to the shell. */
static void count_given(struct cv_worker *pool, uint64_t worker, uint32_t scores) {
  uint32_t *given = &pool->given[worker - pool->config.first];
  *given = *given < CV_GIVEN_NEVER - scores ? *given + scores : CV_GIVEN_NEVER;
  if (pool->config.give != NULL) {
    pool->config.give(pool->config.give_data, worker, *given);
  }
}

bool cv_worker_may_answer(const struct cv_worker *pool, const struct cv_worker_campaign *campaign, uint64_t worker) {
  return campaign->given[worker - pool->config.first] < campaign->terms.tokens_per_worker &&
         !cv_again_is_over(pool, campaign, worker) &&
         (cv_worker_may_give(pool, worker, 1) || cv_worker_has_open_slot(pool, campaign, worker));
}

bool cv_worker_may_come(const struct cv_worker *pool, uint64_t worker) {
  bool may = cv_worker_may_give(pool, worker, 1);
  for (uint32_t i = 0; i < pool->campaigns.count && !may; i++) {
    const struct cv_worker_campaign *campaign = &pool->campaigns.entry[i];
    may = cv_worker_campaign_is_live(campaign) && cv_worker_may_answer(pool, campaign, worker);
  }
  return may;
}

bool cv_worker_is_wanted(const struct cv_worker *pool, uint64_t worker) {
  bool none_live = true;
  for (uint32_t i = 0; i < pool->campaigns.count; i++) {
    const struct cv_worker_campaign *campaign = &pool->campaigns.entry[i];
    if (cv_worker_campaign_is_live(campaign) && campaign->told) {
      none_live = false;
      if (cv_worker_may_answer(pool, campaign, worker)) {
        return true;
      }
    }
  }
  return none_live && cv_worker_may_come(pool, worker);
}

enum cv_err cv_worker_move_on(struct cv_worker *pool, uint64_t worker) {
  bool waits = pool->config.asker != NULL && pool->config.asker->waits;
  if (!waits && cv_worker_is_wanted(pool, worker)) {
    return cv_line_push(&pool->again, worker, 0);
  }
  pool->here[worker - pool->config.first] = 0;
  return CV_OK;
}

static enum cv_err check_arms(const struct cv_terms *terms, const struct cv_assign *assign, struct cv_why *why) {
  for (uint32_t i = 0; i < assign->arms; i++) {
    uint32_t arm = assign->arms == 1 ? assign->arm.one : assign->arm.many[i];
    if (arm >= terms->arms) {
      return cv_fail(why, CV_ERR_FORMAT, "assignment of arm %llu; expected 1 to %u", (unsigned long long)arm + 1,
                     terms->arms);
    }
    /* Asked twice, a program or a person would be randomized twice for one token. */
    for (uint32_t j = 0; j < i; j++) {
      if (assign->arm.many[j] == arm) {
        return cv_fail(why, CV_ERR_FORMAT, "arm %u twice in an assignment; expected each once", arm + 1);
      }
    }
  }
  return CV_OK;
}

/* In a campaign of pairs an assignment has an opponent, else none. */
static enum cv_err check_opponent(const struct cv_terms *terms, const struct cv_assign *assign, struct cv_why *why) {
  if (!terms->pairs) {
    return assign->opponent == 0
               ? CV_OK
               : cv_fail(why, CV_ERR_FORMAT, "a comparison of two arms; expected one arm: the campaign has no pairs");
  }
  bool fits = assign->arms == 1 && assign->opponent > 0 && assign->opponent <= terms->arms &&
              assign->opponent != assign->arm.one + 1;
  return fits ? CV_OK
              : cv_fail(why, CV_ERR_FORMAT,
                        "an assignment without two different arms below %u; expected a comparison: the campaign has "
                        "pairs",
                        terms->arms);
}

static enum cv_err check_assign(const struct cv_worker *pool, const struct cv_worker_campaign *campaign,
                                const struct cv_assign *assign, struct cv_why *why) {
  /* The epsilon that was accepted is for this many tokens; one more would exceed it. */
  if (campaign->given[assign->worker - pool->config.first] >= campaign->terms.tokens_per_worker) {
    return cv_fail(why, CV_ERR_DENIED, "the broker asks worker %llu for more than the %u tokens of the terms",
                   (unsigned long long)assign->worker, campaign->terms.tokens_per_worker);
  }
  CV_TRY(check_arms(&campaign->terms, assign, why));
  CV_TRY(check_opponent(&campaign->terms, assign, why));
  CV_TRY(cv_worker_check_slot(pool, campaign, assign, why));
  /* A second answer under one ticket would be a second draw for the same place. */
  if (cv_pendings_find(&pool->pendings, assign->ticket) != NULL) {
    return cv_fail(why, CV_ERR_STATE, "the broker assigned an unacknowledged ticket again");
  }
  return CV_OK;
}

/*
 * The place in the arm's stream from which the score is taken. The played arm, index 0, uses the place of the
 * assignment. Each further arm uses that place shifted by a range that depends on the played arm, so that no two
 * answers share a score.
 */
static uint64_t place_of(const struct cv_assign *assign, uint32_t i) {
  enum { PLACE_BITS = 40 };
  return i == 0 ? assign->place : assign->place + (((uint64_t)assign->arm.many[0] + 1) << PLACE_BITS);
}

static int64_t privatize(const struct cv_worker *pool, const struct cv_worker_campaign *campaign,
                         const struct cv_opinion *opinion, int64_t score) {
  const struct cv_privatizer *privatizer = campaign->privatizer;
  struct cv_coin coin;
  if (privatizer->law.kind == CV_LOCAL_NONE) { /* no coin is thrown */
    return cv_privatizer_apply(privatizer, opinion->arm, score, pool->config.rng);
  }
  cv_coin_init(&coin, pool->coin_key, &privatizer->law, opinion);
  int64_t value = cv_privatizer_apply(privatizer, opinion->arm, score, &coin.bits.rng);
  cv_coin_wipe(&coin);
  return value;
}

/* With a stock, the worker may lack a row for the assigned arm, if that is not the arm it arrived for. Where it arrived
 * for none, the broker chose the arm, and a row of it that is not the next one would be out of the random order. */
static const char *why_no_score(const struct cv_worker *pool, const struct cv_assign *assign) {
  const struct cv_stock *stock = pool->config.stock;
  if (stock == NULL) {
    return NULL;
  }
  if (assign->arms != 1 || !cv_stock_has(stock, assign->worker, assign->arm.one)) {
    return "the worker has no score for this arm";
  }
  bool is_wish = pool->wish[assign->worker - pool->config.first] != CV_STOCK_NONE;
  return is_wish || cv_stock_is_next(stock, assign->worker, assign->arm.one)
             ? NULL
             : "it is not the worker's turn for this arm";
}

/* Takes the score, and says which opinion it is. */
static enum cv_err score_of(struct cv_worker *pool, const struct cv_worker_campaign *campaign, uint64_t worker,
                            uint32_t arm, const struct cv_moment *at, int64_t *ret_score, struct cv_opinion *ret) {
  const struct cv_work *work = campaign->work;
  struct cv_moment moment = *at;
  *ret = (struct cv_opinion){.source = work->print, .arm = arm, .opponent = at->opponent, .number = at->place};
  if (pool->config.stock != NULL) {
    return cv_stock_take(pool->config.stock, worker, arm, &ret->number, ret_score) ? CV_OK : CV_ERR_LIMIT;
  }
  if (campaign->taken != NULL) {
    moment.place = campaign->taken[arm];
  }
  CV_TRY(work->score(work->data, arm, &moment, ret_score));
  if (work->row != NULL) {
    ret->number = work->row(work->data, arm, moment.place);
  }
  if (campaign->taken != NULL) {
    pool->config.record->take(pool->config.record->data, work, &campaign->terms, arm, ++campaign->taken[arm]);
  }
  return CV_OK;
}

bool cv_worker_discloses(const struct cv_worker *pool, const struct cv_worker_campaign *campaign) {
  bool is_local = campaign->privatizer != NULL && campaign->privatizer->law.epsilon_micro != CV_EPSILON_NONE;
  return is_local && (pool->config.stock != NULL || pool->config.asker != NULL);
}

enum cv_err cv_worker_give(struct cv_worker *pool, struct cv_worker_campaign *campaign, struct cv_pending *pending) {
  bool made, counts;
  CV_TRY(cv_worker_make_shares(pool, campaign, pending, &made, &counts));
  if (!made) {
    return CV_OK;
  }
  /* Count before the token is queued: the shell stores the count before the frame leaves. */
  uint32_t *given = &campaign->given[pending->worker - pool->config.first];
  *given += *given != CV_GIVEN_NEVER; /* the broker may not want the worker any more since it was asked */
  campaign->gave = true;
  CV_TRY(cv_again_note(pool, campaign, pending));
  /* Now: a broker may tell other terms before it calls the token expired. */
  pending->is_disclosed = cv_worker_discloses(pool, campaign);
  pool->spent_due = pool->stall_due = true;
  if (counts) {
    count_given(pool, pending->worker, pending->values);
  }
  /* Without a connection: the next one queues it. */
  return pool->open ? cv_worker_outbox_token(&pool->outbox, pending) : CV_OK;
}

enum cv_err cv_worker_score(struct cv_worker *pool, struct cv_worker_campaign *campaign, const struct cv_assign *assign,
                            struct cv_pending *pending) {
  if (pool->config.asker != NULL) {
    cv_asker_begin(pool, campaign, assign, pending);
    return CV_OK;
  }
  struct cv_moment at = {
      .place = assign->place, .round = assign->round, .switched = assign->switched, .opponent = assign->opponent};
  for (uint32_t i = 0; i < assign->arms; i++) {
    uint32_t arm = assign->arms == 1 ? assign->arm.one : assign->arm.many[i];
    struct cv_opinion opinion;
    int64_t score;
    at.place = place_of(assign, i);
    if (score_of(pool, campaign, assign->worker, arm, &at, &score, &opinion) != CV_OK) {
      cv_pendings_remove(&pool->pendings, pending);
      CV_TRY(cv_worker_spent_note(pool, campaign, arm, CV_SPENT_WHY));
      CV_TRY(cv_worker_decline_one(pool, assign->ticket, CV_SPENT_WHY));
      pool->outbox.decline[pool->outbox.declines - 1].used_up = true;
      return cv_worker_move_on(pool, assign->worker);
    }
    pending->value[i] = privatize(pool, campaign, &opinion, score);
    if (pool->config.show != NULL) {
      pool->config.show(pool->config.note_data, assign->worker, arm, score, pending->value[i]);
    }
  }
  return cv_worker_give(pool, campaign, pending);
}

/* Not at once: a broker that has lost its memory may ask the same again. */
static enum cv_err rest(struct cv_worker *pool, uint64_t worker, uint64_t now_ms) {
  bool waits = pool->config.asker != NULL && pool->config.asker->waits;
  return waits || !cv_worker_is_wanted(pool, worker) ? cv_worker_move_on(pool, worker)
                                                     : cv_line_push(&pool->resting, worker, now_ms + AGAIN_MS);
}

static enum cv_err answer(struct cv_worker *pool, struct cv_worker_campaign *campaign, const struct cv_assign *assign,
                          uint64_t now_ms, struct cv_why *why) {
  CV_TRY(check_assign(pool, campaign, assign, why));
  const char *why_not = cv_again_why_not(pool, campaign, assign);
  if (why_not != NULL) {
    CV_TRY(cv_worker_decline_one(pool, assign->ticket, why_not));
    return rest(pool, assign->worker, now_ms);
  }
  why_not = why_no_score(pool, assign);
  if (why_not != NULL) {
    CV_TRY(cv_worker_decline_one(pool, assign->ticket, why_not));
    return cv_worker_move_on(pool, assign->worker);
  }
  struct cv_pending *pending = cv_pendings_add(&pool->pendings, assign->ticket);
  if (pending == NULL) {
    return cv_fail(why, CV_ERR_LIMIT, "the broker made more than %zu assignments at once; expected at most %u",
                   pool->pendings.entries, pool->config.concurrency);
  }
  pending->worker = assign->worker;
  pending->campaign = assign->campaign;
  pending->values = assign->arms;
  cv_again_put(assign, pending);
  pending->lease_ms = campaign->terms.lease_ms;
  pending->due_ms = now_ms + pending->lease_ms;
  return cv_worker_hold(pool, campaign, assign, pending) ? CV_OK : cv_worker_score(pool, campaign, assign, pending);
}

/* Removes a worker that the broker answered from the waiting line; false if it was not waiting. */
static bool stops_waiting(struct cv_worker *pool, uint64_t worker) {
  bool waited = cv_line_remove(&pool->waiting, worker);
  pool->probing = pool->probing && pool->waiting.count > 0;
  return waited;
}

static enum cv_err on_assign(struct cv_worker *pool, const struct cv_assign *assign, uint64_t now_ms,
                             struct cv_why *why) {
  struct cv_worker_campaign *campaign = cv_worker_campaigns_find(&pool->campaigns, assign->campaign);
  if (campaign == NULL || !campaign->told) {
    return cv_fail(why, CV_ERR_STATE, "an assignment for campaign %llu without its terms",
                   (unsigned long long)assign->campaign);
  }
  if (!is_one_of_us(pool, assign->worker)) {
    return cv_fail(why, CV_ERR_DENIED, "an assignment for worker %llu; expected %llu to %llu",
                   (unsigned long long)assign->worker, (unsigned long long)pool->config.first,
                   (unsigned long long)pool->config.last);
  }
  /* One answer per arrival: a broker cannot ask a worker twice at a time, nor one that has left. */
  if (!stops_waiting(pool, assign->worker)) {
    return cv_fail(why, CV_ERR_STATE, "an assignment for worker %llu, which is not waiting for one",
                   (unsigned long long)assign->worker);
  }
  if (pool->wish != NULL) {
    cv_stock_dealt(pool->config.stock, pool->wish[assign->worker - pool->config.first],
                   assign->arms == 1 ? assign->arm.one : CV_STOCK_NONE, now_ms);
  }
  if (!cv_worker_campaign_is_live(campaign)) {
    return cv_worker_move_on(pool, assign->worker); /* declined or done meanwhile: send no token */
  }
  if (!cv_worker_may_give(pool, assign->worker, assign->arms) && !cv_worker_slot_is_open(pool, campaign, assign)) {
    /* Later assignments would ask for as many scores, so the worker leaves for good. */
    pool->given[assign->worker - pool->config.first] = CV_GIVEN_NEVER;
    CV_TRY(decline_over_limit(pool, assign));
    return cv_worker_move_on(pool, assign->worker);
  }
  return answer(pool, campaign, assign, now_ms, why);
}

static void note_refusal(struct cv_worker *pool, const char *why) {
  char text[CV_WHY_BYTES + 32];
  if (cv_reasons_add(&pool->reasons, why)) {
    (void)snprintf(text, sizeof(text), "the broker refused a token: %s", why);
    cv_worker_note(pool, text);
  }
}

static enum cv_err on_ack(struct cv_worker *pool, const struct cv_crowd_ack *ack, struct cv_why *why) {
  struct cv_pending *pending = cv_pendings_find(&pool->pendings, ack->ticket);
  if (pending == NULL) {
    return CV_OK; /* acknowledged before, on an earlier connection */
  }
  /* The outbox borrows the entry that an Ack frees, and a token that has not left cannot have been counted. */
  if (!cv_pending_has_token(pending) || cv_worker_outbox_holds(&pool->outbox, pending)) {
    return cv_fail(why, CV_ERR_STATE, "an acknowledgement of an unsent token");
  }
  uint64_t worker = pending->worker;
  struct cv_worker_campaign *campaign = cv_worker_campaigns_find(&pool->campaigns, pending->campaign);
  uint32_t *given = campaign == NULL || campaign->given == NULL ? NULL : &campaign->given[worker - pool->config.first];
  cv_asker_tell(pool, pending, ack->verdict);
  cv_worker_settle_slot(pool, campaign, pending, ack->verdict);
  switch (ack->verdict) {
    case CV_VERDICT_ACCEPTED:
      pool->figures.accepted++;
      break;
    case CV_VERDICT_DUPLICATE:
      pool->figures.duplicates++;
      break;
    case CV_VERDICT_EXPIRED: /* the token filled no slot */
      pool->figures.expired++;
      if (given != NULL && !pending->is_disclosed) {
        *given -= *given != CV_GIVEN_NEVER && *given > 0;
        cv_again_forget(pool, campaign, pending);
      }
      break;
    default:
      pool->figures.refused++;
      /* What is refused once, such as a worker without epsilon, is refused again. */
      if (given != NULL) {
        *given = CV_GIVEN_NEVER;
      }
      note_refusal(pool, ack->why != NULL ? ack->why : "no reason given");
      break;
  }
  cv_pendings_remove(&pool->pendings, pending);
  return cv_worker_move_on(pool, worker);
}

/* Records which campaigns do not want which workers. Runs over all backoffs before any worker moves on, since one frame
 * may send a worker away from several campaigns. */
static void learn_unwanted(struct cv_worker *pool, const struct cv_backoff *backoff) {
  struct cv_worker_campaign *campaign =
      backoff->delay_ms > 0 ? NULL : cv_worker_campaigns_find(&pool->campaigns, backoff->campaign);
  for (size_t i = 0; campaign != NULL && campaign->given != NULL && i < backoff->workers; i++) {
    if (is_one_of_us(pool, backoff->worker[i])) {
      campaign->told = true; /* a backoff shows that the campaign runs, even without its terms */
      campaign->given[backoff->worker[i] - pool->config.first] = CV_GIVEN_NEVER;
    }
  }
}

/* Handles one worker of a backoff: for delay_ms, else from one campaign for good, or from all (campaign 0). */
static enum cv_err send_away(struct cv_worker *pool, const struct cv_backoff *backoff, uint64_t worker,
                             uint64_t now_ms) {
  if (backoff->delay_ms > 0) {
    return cv_line_push(&pool->resting, worker, now_ms + backoff->delay_ms);
  }
  const struct cv_worker_campaign *campaign = cv_worker_campaigns_find(&pool->campaigns, backoff->campaign);
  if (campaign != NULL && campaign->given != NULL) {
    return cv_worker_move_on(pool, worker);
  }
  /* For good: no campaign of this broker takes another token of the worker. */
  if (backoff->campaign == 0) {
    pool->given[worker - pool->config.first] = CV_GIVEN_NEVER;
  }
  pool->here[worker - pool->config.first] = 0;
  return CV_OK;
}

static enum cv_err on_backoff(struct cv_worker *pool, const struct cv_backoff *backoff, uint64_t now_ms) {
  for (size_t i = 0; i < backoff->workers; i++) {
    if (stops_waiting(pool, backoff->worker[i])) {
      if (pool->wish != NULL) {
        cv_stock_dealt(pool->config.stock, pool->wish[backoff->worker[i] - pool->config.first], CV_STOCK_NONE, now_ms);
      }
      CV_TRY(send_away(pool, backoff, backoff->worker[i], now_ms));
    }
  }
  return CV_OK;
}

/* After Done every worker may arrive for the next campaign; waiting workers stay in the line. */
static enum cv_err on_done(struct cv_worker *pool, uint64_t id, uint64_t now_ms) {
  struct cv_worker_campaign *campaign = cv_worker_campaigns_find(&pool->campaigns, id);
  if (campaign != NULL && !campaign->done) {
    campaign->done = true;
    /* Workers that had given all that this campaign takes may be wanted by the next one. */
    pool->next = pool->config.first;
    pool->late_ms = now_ms + LATE_ACKS_MS;
    CV_TRY(cv_worker_unhold(pool, id));
    CV_TRY(cv_asker_end(pool, id));
    return cv_again_bar(pool);
  }
  return CV_OK;
}

/* A broker acknowledges every token that a done campaign has counted. After LATE_ACKS_MS the rest counts as expired. */
static enum cv_err drop_late(struct cv_worker *pool, uint64_t now_ms) {
  if (pool->late_ms == 0 || now_ms < pool->late_ms) {
    return CV_OK;
  }
  pool->late_ms = 0;
  for (size_t i = 0; i < pool->pendings.entries; i++) {
    struct cv_pending *pending = &pool->pendings.entry[i];
    const struct cv_worker_campaign *campaign =
        pending->values == 0 ? NULL : cv_worker_campaigns_find(&pool->campaigns, pending->campaign);
    if (campaign != NULL && campaign->done) {
      uint64_t worker = pending->worker;
      cv_asker_tell(pool, pending, CV_VERDICT_NONE);
      cv_pendings_remove(&pool->pendings, pending);
      pool->figures.expired++;
      CV_TRY(cv_worker_move_on(pool, worker));
    }
  }
  return CV_OK;
}

static enum cv_err on_hello(struct cv_worker *pool, const struct cv_crowd_frame *frame, struct cv_why *why) {
  if (frame->hello.present) {
    CV_TRY(cv_hello_check(&frame->hello, "broker", "worker", why));
  }
  if (frame->hello.present && pool->greeted) {
    return cv_fail(why, CV_ERR_FORMAT, CV_HELLO_REPEATED);
  }
  /* A goodbye may come first: a broker that refuses the connection says why before anything else. */
  pool->greeted = pool->greeted || frame->hello.present;
  if (!pool->greeted && frame->goodbye == NULL) {
    return cv_fail(why, CV_ERR_FORMAT, CV_HELLO_MISSING);
  }
  return CV_OK;
}

static enum cv_err on_frame(struct cv_worker *pool, const struct cv_crowd_frame *frame, uint64_t now_ms,
                            struct cv_why *why) {
  CV_TRY(on_hello(pool, frame, why));
  /* The schema has the messages of both directions. */
  if (frame->arrives + frame->tokens + frame->declines > 0) {
    return cv_fail(why, CV_ERR_DENIED, "the broker sent a message that only a worker may send");
  }
  if (frame->goodbye != NULL) {
    char text[CV_WHY_BYTES + 32];
    (void)snprintf(text, sizeof(text), "the broker closes the connection: %s", frame->goodbye);
    cv_worker_note(pool, text);
  }
  /* The order matters: terms come before assignments that refer to them, and acknowledgements free entries for
   * assignments of the same frame. */
  for (size_t i = 0; i < frame->campaigns; i++) {
    CV_TRY(on_terms(pool, &frame->campaign[i], why));
  }
  for (size_t i = 0; i < frame->acks; i++) {
    CV_TRY(on_ack(pool, &frame->ack[i], why));
  }
  for (size_t i = 0; i < frame->assigns; i++) {
    CV_TRY(on_assign(pool, &frame->assign[i], now_ms, why));
  }
  for (size_t i = 0; i < frame->backoffs; i++) {
    learn_unwanted(pool, &frame->backoff[i]);
  }
  for (size_t i = 0; i < frame->backoffs; i++) {
    CV_TRY(on_backoff(pool, &frame->backoff[i], now_ms));
  }
  for (size_t i = 0; i < frame->dones; i++) {
    CV_TRY(on_done(pool, frame->done[i], now_ms));
  }
  return CV_OK;
}

enum cv_err cv_worker_on_crowd(struct cv_worker *pool, const struct cv_crowd_frame *frame, uint64_t now_ms,
                               struct cv_why *why) {
  CV_TRY(cv_unless_failed(&pool->failed, CV_OK, why));
  pool->due = true;
  return cv_unless_failed(&pool->failed, on_frame(pool, frame, now_ms, why), why);
}

void cv_worker_tick(struct cv_worker *pool) {
  pool->due = true;
}

bool cv_worker_is_pending(const struct cv_worker *pool) {
  return pool->due;
}

/* ---- the frame to send ---- */

bool cv_worker_flush(struct cv_worker *pool, uint64_t now_ms, struct cv_crowd_frame *ret) {
  pool->due = false;
  /* Late tokens expire even while the connection is closed; arrivals need an open one. */
  if (cv_unless_failed(&pool->failed, drop_late(pool, now_ms), NULL) != CV_OK ||
      cv_unless_failed(&pool->failed, cv_asker_expire(pool, now_ms), NULL) != CV_OK ||
      cv_unless_failed(&pool->failed, cv_worker_unhold_late(pool, now_ms), NULL) != CV_OK || !pool->open ||
      cv_unless_failed(&pool->failed, cv_worker_arrive(pool, now_ms), NULL) != CV_OK ||
      cv_unless_failed(&pool->failed, cv_worker_spent_tell(pool, now_ms), NULL) != CV_OK ||
      cv_unless_failed(&pool->failed, cv_worker_stall_check_all(pool, now_ms), NULL) != CV_OK) {
    return false;
  }
  struct cv_crowd_frame frame;
  cv_worker_outbox_frame(&pool->outbox, pool->config.concurrency, pool->hello_due, pool->wish != NULL, &frame);
  frame.hello =
      (struct cv_hello){.present = pool->hello_due, .version = CV_WIRE_VERSION, .program = "crowdveil-worker"};
  pool->hello_due = false;
  /* The frame stays readable until the next addition; from here on its tokens count as sent. */
  cv_worker_outbox_clear(&pool->outbox);
  *ret = frame;
  return frame.hello.present || frame.arrives + frame.tokens + frame.declines > 0;
}

bool cv_worker_is_done(const struct cv_worker *pool) {
  bool any_live = cv_worker_campaigns_any_live(&pool->campaigns);
  /* A probe that waits is not a worker that still has something to give. */
  bool nobody_left = pool->waiting.count == (pool->probing ? 1 : 0) && pool->again.count == 0 &&
                     pool->resting.count == 0 && cv_worker_is_used_up(pool);
  bool all_met = true;
  for (size_t i = 0; i < pool->config.works; i++) {
    all_met = all_met && pool->met[i];
  }
  /* With a stock: the broker was told of the last arm without rows. */
  bool is_told = pool->config.stock == NULL || !pool->spent_due || !any_live;
  return pool->pendings.count == 0 && is_told && (nobody_left || (all_met && !any_live));
}

void cv_worker_figures(const struct cv_worker *pool, struct cv_worker_figures *ret) {
  *ret = pool->figures;
  for (uint32_t i = 0; i < pool->campaigns.count; i++) {
    const struct cv_session *session = pool->campaigns.entry[i].session;
    ret->sessions += session != NULL && session->state == CV_SESSION_STANDS;
  }
}
