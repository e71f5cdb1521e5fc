/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/asker.h"

#include <string.h>

#include "common/base/grid.h"
#include "worker/brokers.h"

/* A value that has not been answered holds its arm: below every token value. */
static int64_t unanswered(uint32_t arm) {
  return INT64_MIN + (int64_t)arm;
}

static bool is_unanswered(int64_t value) {
  return value < INT64_MIN + CV_ARMS_MAX;
}

static uint32_t arm_of(int64_t value) {
  return (uint32_t)(value - INT64_MIN);
}

bool cv_asker_is_open(const struct cv_pending *pending) {
  return pending->open > 0;
}

void cv_asker_begin(struct cv_worker *pool, struct cv_worker_campaign *campaign, const struct cv_assign *assign,
                    struct cv_pending *pending) {
  pending->question = pool->questions + 1;
  pending->open = assign->arms;
  pool->unanswered++;
  pool->questions += assign->arms;
  pool->figures.asked += assign->arms;
  for (uint32_t i = 0; i < assign->arms; i++) {
    pending->value[i] = unanswered(assign->arms == 1 ? assign->arm.one : assign->arm.many[i]);
  }
  /* A source may answer at once; so the entry is complete before the first question. */
  for (uint32_t i = 0; i < assign->arms && cv_asker_is_open(pending); i++) {
    const struct cv_question question = {.number = pending->question + i,
                                         .worker = pending->worker,
                                         .arm = arm_of(pending->value[i]),
                                         .opponent = assign->opponent,
                                         .terms = &campaign->terms,
                                         .law = &campaign->privatizer->law,
                                         .work = campaign->work,
                                         .due_ms = pending->due_ms};
    pool->config.asker->ask(pool->config.asker->data, &question);
  }
}

static struct cv_pending *find(const struct cv_worker *pool, uint64_t question) {
  for (size_t i = 0; i < pool->pendings.entries && pool->unanswered > 0; i++) {
    struct cv_pending *pending = &pool->pendings.entry[i];
    if (pending->values > 0 && cv_asker_is_open(pending) && question >= pending->question &&
        question - pending->question < pending->values) {
      return pending;
    }
  }
  return NULL;
}

/* Forgets an assignment without a token, and says so to the source. */
static void withdraw(struct cv_worker *pool, struct cv_pending *pending, enum cv_withdrawn why) {
  const struct cv_asker *asker = pool->config.asker;
  for (uint32_t i = 0; i < pending->values; i++) {
    if (why != CV_WITHDRAWN_PASSED || is_unanswered(pending->value[i])) {
      asker->withdraw(asker->data, pending->question + i, why);
    }
  }
  pending->open = 0;
  pool->unanswered--;
  cv_pendings_remove(&pool->pendings, pending);
}

static enum cv_err give_up(struct cv_worker *pool, struct cv_pending *pending, enum cv_withdrawn why,
                           const char *reason) {
  uint8_t ticket[CV_TICKET_BYTES];
  memcpy(ticket, pending->ticket, sizeof(ticket));
  withdraw(pool, pending, why);
  /* Without a connection the broker has taken the place back already. */
  return reason != NULL && pool->open ? cv_worker_decline_one(pool, ticket, reason) : CV_OK;
}

enum cv_err cv_asker_end(struct cv_worker *pool, uint64_t campaign) {
  for (size_t i = 0; i < pool->pendings.entries && pool->unanswered > 0; i++) {
    struct cv_pending *pending = &pool->pendings.entry[i];
    if (pending->values > 0 && cv_asker_is_open(pending) && pending->campaign == campaign) {
      uint64_t worker = pending->worker;
      CV_TRY(give_up(pool, pending, CV_WITHDRAWN_OVER, NULL));
      CV_TRY(cv_worker_move_on(pool, worker));
    }
  }
  return CV_OK;
}

enum cv_err cv_asker_expire(struct cv_worker *pool, uint64_t now_ms) {
  for (size_t i = 0; i < pool->pendings.entries && pool->unanswered > 0; i++) {
    struct cv_pending *pending = &pool->pendings.entry[i];
    if (pending->values > 0 && cv_asker_is_open(pending) && now_ms >= pending->due_ms) {
      uint64_t worker = pending->worker;
      pool->figures.late++;
      CV_TRY(give_up(pool, pending, CV_WITHDRAWN_LATE, "no answer within the lease"));
      CV_TRY(cv_worker_move_on(pool, worker));
    }
  }
  return CV_OK;
}

void cv_asker_tell(struct cv_worker *pool, const struct cv_pending *pending, enum cv_verdict verdict) {
  const struct cv_asker *asker = pool->config.asker;
  for (uint32_t i = 0; asker != NULL && pending->question > 0 && i < pending->values; i++) {
    asker->told(asker->data, pending->question + i, verdict);
  }
}

/* ---- what the source says ---- */

/* The token of an answer: a source that privatizes itself sends one, which its law must be able to send. */
static bool take(struct cv_worker *pool, const struct cv_worker_campaign *campaign,
                 const struct cv_score_answer *answer, int64_t *ret_value) {
  const struct cv_privatizer *privatizer = campaign->privatizer;
  if (answer->is_token) {
    *ret_value = answer->value;
    return cv_local_sends(&privatizer->law, answer->value) && cv_worker_can_split(campaign, answer->value);
  }
  bool is_bit = answer->value == 0 || answer->value == CV_GRID;
  if (answer->value < 0 || answer->value > CV_GRID || (campaign->terms.pairs && !is_bit)) {
    return false;
  }
  *ret_value = cv_privatizer_apply(privatizer, answer->arm, answer->value, pool->config.rng);
  return cv_worker_can_split(campaign, *ret_value);
}

static enum cv_err on_answer(struct cv_worker *pool, uint64_t question, struct cv_score_answer answer,
                             struct cv_why *why) {
  struct cv_pending *pending = find(pool, question);
  struct cv_worker_campaign *campaign =
      pending == NULL ? NULL : cv_worker_campaigns_find(&pool->campaigns, pending->campaign);
  if (pending == NULL || !is_unanswered(pending->value[question - pending->question])) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "the question is no longer open");
  }
  if (campaign == NULL || !cv_worker_campaign_is_live(campaign)) {
    uint64_t worker = pending->worker;
    CV_TRY(give_up(pool, pending, CV_WITHDRAWN_OVER, NULL));
    CV_TRY(cv_worker_move_on(pool, worker));
    return cv_fail(why, CV_ERR_NOT_FOUND, "the campaign takes no more scores");
  }
  int64_t *value = &pending->value[question - pending->question], token;
  answer.arm = arm_of(*value);
  if (!take(pool, campaign, &answer, &token)) {
    return cv_fail(why, CV_ERR_INVALID,
                   answer.is_token         ? "the token is none that the privatizer sends"
                   : campaign->terms.pairs ? "the answer to a comparison is neither 0 nor 1"
                   : answer.value < 0 || answer.value > CV_GRID
                       ? "the score is out of range"
                       : "the score is neither 0 nor 1; expected one of them, since the campaign has bits for tokens");
  }
  *value = token;
  if (--pending->open > 0) {
    return CV_OK;
  }
  pool->unanswered--;
  return cv_worker_give(pool, campaign, pending);
}

enum cv_err cv_worker_answer(struct cv_worker *pool, uint64_t question, const struct cv_score_answer *answer,
                             struct cv_why *why) {
  CV_TRY(cv_unless_failed(&pool->failed, CV_OK, why));
  pool->due = true;
  return cv_unless_failed(&pool->failed, on_answer(pool, question, *answer, why), why);
}

static enum cv_err on_pass(struct cv_worker *pool, uint64_t question, const char *reason, uint64_t again_ms) {
  struct cv_pending *pending = find(pool, question);
  if (pending == NULL) {
    return CV_OK;
  }
  uint64_t worker = pending->worker;
  pool->figures.passed++;
  CV_TRY(give_up(pool, pending, CV_WITHDRAWN_PASSED, reason));
  if (pool->config.asker->waits) {
    return cv_worker_move_on(pool, worker);
  }
  /* Not at once: a source that declines everything would be asked without end. */
  return cv_line_push(&pool->resting, worker, again_ms);
}

void cv_worker_pass(struct cv_worker *pool, uint64_t question, const char *reason, uint64_t again_ms) {
  pool->due = true;
  if (!pool->failed && on_pass(pool, question, reason, again_ms) != CV_OK) {
    pool->failed = true;
  }
}

bool cv_worker_come(struct cv_worker *pool, uint64_t worker) {
  if (worker < pool->config.first || worker > pool->config.last || pool->failed) {
    return false;
  }
  uint8_t *here = &pool->here[worker - pool->config.first];
  if (*here != 0) {
    return true;
  }
  if (!cv_worker_is_wanted(pool, worker) ||
      cv_unless_failed(&pool->failed, cv_line_push(&pool->again, worker, 0), NULL) != CV_OK) {
    return false;
  }
  *here = 1;
  pool->due = true;
  return true;
}
