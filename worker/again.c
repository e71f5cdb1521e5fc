/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/again.h"

/* ---- the record ---- */

static struct cv_once_rule rule_of(const struct cv_worker *pool, const struct cv_worker_campaign *campaign) {
  const struct cv_terms *terms = &campaign->terms;
  bool is_local = campaign->privatizer->law.epsilon_micro != CV_EPSILON_NONE;
  bool is_asked = pool->config.asker != NULL;
  /* Who answers once is asked nothing twice; but of that only the store tells the next process. */
  bool is_kept = !campaign->work->hires &&
                 (is_asked ? is_local || !terms->repeat : !terms->repeat && terms->tokens_per_worker > 1);
  if (!is_kept) {
    return (struct cv_once_rule){0};
  }
  /* A broker shows several items in a token, if at all, in campaigns with one token a worker, or that repeat. */
  uint64_t shown = is_asked && !terms->pairs ? CV_VALUES_MAX : 1;
  struct cv_once_rule rule = cv_once_rule(terms->arms, terms->pairs, shown * terms->tokens_per_worker);
  rule.by_name = is_asked && is_local;
  return rule;
}

/* The record of all campaigns of the name; NULL: the campaign has one of its own. */
static struct cv_once *shared_by(const struct cv_worker *pool, const struct cv_worker_campaign *campaign) {
  return campaign->once.rule.by_name ? &pool->asked[campaign->work - pool->config.work] : NULL;
}

static struct cv_once *once_of(const struct cv_worker *pool, struct cv_worker_campaign *campaign) {
  struct cv_once *shared = shared_by(pool, campaign);
  return shared != NULL ? shared : &campaign->once;
}

struct told {
  const struct cv_worker *pool;
  struct cv_once *once;
};

static enum cv_err take_stored(void *data, uint64_t worker, uint64_t question) {
  const struct told *told = data;
  uint64_t first = told->pool->config.first;
  return worker < first || worker > told->pool->config.last ? CV_OK
                                                            : cv_once_note(told->once, worker - first, question);
}

static bool is_stored(const struct cv_worker *pool) {
  return pool->config.asker != NULL && pool->config.record != NULL;
}

/* The campaign as the record knows it. */
static const struct cv_terms *number_of(const struct cv_worker_campaign *campaign) {
  return campaign->once.rule.by_name ? NULL : &campaign->terms;
}

static enum cv_err make(const struct cv_worker *pool, const struct cv_worker_campaign *campaign,
                        const struct cv_once_rule *rule, struct cv_once *once, struct cv_why *why) {
  const struct cv_worker_record *record = pool->config.record;
  struct told told = {.pool = pool, .once = once};
  cv_once_fini(once);
  if (cv_once_init(once, rule, campaign->terms.name, pool->config.last - pool->config.first + 1) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  if (once->answers == NULL || !is_stored(pool)) {
    return CV_OK;
  }
  enum cv_err err = record->answered(record->data, campaign->work, number_of(campaign), take_stored, &told, why);
  if (err != CV_OK) {
    cv_once_fini(once); /* not a part of it: the next terms load all */
  }
  return err;
}

static enum cv_err meet(const struct cv_worker *pool, struct cv_worker_campaign *campaign, struct cv_why *why) {
  const struct cv_once_rule rule = rule_of(pool, campaign);
  if (cv_once_fits(&campaign->once, &rule, campaign->terms.name)) {
    return CV_OK;
  }
  return campaign->once.total == 0 && !campaign->gave
             ? make(pool, campaign, &rule, &campaign->once, why)
             : cv_fail(why, CV_ERR_DENIED,
                       "the broker tells another name, number of arms or of tokens per worker, kind of score, "
                       "privatizer or `repeat` than before; expected terms that do not change once a worker has "
                       "answered");
}

enum cv_err cv_again_meet(const struct cv_worker *pool, struct cv_worker_campaign *campaign, struct cv_why *why) {
  CV_TRY(meet(pool, campaign, why));
  struct cv_once *shared = shared_by(pool, campaign);
  if (shared == NULL || shared->answers != NULL) {
    return CV_OK;
  }
  const struct cv_work *work = campaign->work;
  uint64_t limit = pool->config.accept.tokens > 0 ? pool->config.accept.tokens : UINT64_MAX;
  const struct cv_once_rule rule = cv_once_rule(work->arms, work->pairs, limit);
  return make(pool, campaign, &rule, shared, why);
}

enum cv_err cv_again_bar(const struct cv_worker *pool) {
  bool any = false, repeat = false;
  for (uint32_t i = 0; i < pool->campaigns.count; i++) {
    const struct cv_worker_campaign *campaign = &pool->campaigns.entry[i];
    bool is_live = cv_worker_campaign_is_live(campaign);
    any = any || is_live;
    repeat = repeat || (is_live && campaign->terms.repeat);
  }
  return pool->config.stock != NULL && any ? cv_stock_ask_once(pool->config.stock, !repeat) : CV_OK;
}

bool cv_again_is_over(const struct cv_worker *pool, const struct cv_worker_campaign *campaign, uint64_t worker) {
  const struct cv_once *shared = shared_by(pool, campaign);
  return cv_once_is_full(shared != NULL ? shared : &campaign->once, worker - pool->config.first);
}

/* ---- assignments ---- */

/* The stock itself bars such rows only while no campaign repeats questions. */
static bool has_given_row(const struct cv_worker *pool, const struct cv_worker_campaign *campaign,
                          const struct cv_assign *assign) {
  return pool->config.stock != NULL && !campaign->terms.repeat && assign->arms == 1 &&
         cv_stock_has_given(pool->config.stock, assign->worker, assign->arm.one);
}

const char *cv_again_why_not(const struct cv_worker *pool, struct cv_worker_campaign *campaign,
                             const struct cv_assign *assign) {
  uint64_t question[CV_VALUES_MAX];
  for (uint32_t i = 0; i < assign->arms; i++) {
    question[i] = cv_answered_question(assign->arms == 1 ? assign->arm.one : assign->arm.many[i], assign->opponent);
  }
  if (cv_once_may_ask(once_of(pool, campaign), assign->worker - pool->config.first, question, assign->arms) &&
      !has_given_row(pool, campaign, assign)) {
    return NULL;
  }
  return campaign->terms.pairs ? "this worker has been asked about this pair already"
                               : "this worker has been asked about this item already";
}

void cv_again_put(const struct cv_assign *assign, struct cv_pending *pending) {
  pending->opponent = assign->opponent;
  for (uint32_t i = 0; i < assign->arms; i++) {
    pending->arm[i] = assign->arms == 1 ? assign->arm.one : assign->arm.many[i];
  }
}

enum cv_err cv_again_note(const struct cv_worker *pool, struct cv_worker_campaign *campaign,
                          const struct cv_pending *pending) {
  const struct cv_worker_record *record = pool->config.record;
  struct cv_once *once = once_of(pool, campaign);
  for (uint32_t i = 0; once->answers != NULL && i < pending->values; i++) {
    uint64_t question = cv_answered_question(pending->arm[i], pending->opponent);
    CV_TRY(cv_once_note(once, pending->worker - pool->config.first, question));
    if (is_stored(pool)) {
      record->answer(record->data, campaign->work, number_of(campaign), pending->worker, question, true);
    }
  }
  return CV_OK;
}

void cv_again_forget(const struct cv_worker *pool, struct cv_worker_campaign *campaign,
                     const struct cv_pending *pending) {
  const struct cv_worker_record *record = pool->config.record;
  struct cv_once *once = once_of(pool, campaign);
  for (uint32_t i = 0; once->answers != NULL && i < pending->values; i++) {
    uint64_t question = cv_answered_question(pending->arm[i], pending->opponent);
    cv_once_forget(once, pending->worker - pool->config.first, question);
    if (is_stored(pool)) {
      record->answer(record->data, campaign->work, number_of(campaign), pending->worker, question, false);
    }
  }
}
