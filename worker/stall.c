/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/stall.h"

#include <stdio.h>

#include "worker/again.h"
#include "worker/spent.h"
#include "worker/stock.h"

enum { STALL_MS = 100 /* between searches, each of which may look at every worker */ };

/* Why a worker gives a campaign no further token. */
enum bar { BAR_NONE, BAR_ABSENT, BAR_GIVEN, BAR_TOKENS, BAR_ANSWERED, BARS };

bool cv_worker_is_there(const struct cv_worker *pool, uint64_t worker) {
  const struct cv_asker *asker = pool->config.asker;
  bool is_known = asker == NULL || asker->knows == NULL || asker->knows(asker->data, worker);
  return is_known && (pool->config.stock == NULL || cv_stock_left(pool->config.stock, worker) > 0);
}

bool cv_worker_is_barred(const struct cv_worker *pool, uint64_t worker) {
  bool is_gone = pool->given[worker - pool->config.first] == CV_GIVEN_NEVER && !pool->limit_noted;
  return pool->config.accept.tokens > 0 && !is_gone && !cv_worker_may_give(pool, worker, 1) &&
         cv_worker_is_there(pool, worker);
}

uint64_t cv_worker_used_limit(const struct cv_worker *pool, uint64_t worker) {
  bool is_ours = worker >= pool->config.first && worker <= pool->config.last;
  return is_ours && cv_worker_is_barred(pool, worker) ? pool->config.accept.tokens : 0;
}

static enum bar bar_of(const struct cv_worker *pool, const struct cv_worker_campaign *campaign, uint64_t worker) {
  if (!cv_worker_is_there(pool, worker)) {
    return BAR_ABSENT;
  }
  if (cv_worker_may_answer(pool, campaign, worker)) {
    return BAR_NONE;
  }
  if (campaign->given[worker - pool->config.first] >= campaign->terms.tokens_per_worker) {
    return BAR_GIVEN;
  }
  return cv_again_is_over(pool, campaign, worker) ? BAR_ANSWERED
         : cv_worker_is_barred(pool, worker)      ? BAR_TOKENS
                                                  : BAR_ABSENT;
}

/* Looks first at the worker that it found last: of most pools one look tells. */
static bool is_open(const struct cv_worker *pool, struct cv_worker_campaign *campaign) {
  uint64_t workers = pool->config.last - pool->config.first + 1;
  for (uint64_t i = 0; i < workers; i++) {
    if (bar_of(pool, campaign, pool->config.first + campaign->able) == BAR_NONE) {
      return true;
    }
    campaign->able = campaign->able + 1 == workers ? 0 : campaign->able + 1;
  }
  return false;
}

/* As short as a requester is shown it. */
static enum cv_err decline(struct cv_worker *pool, struct cv_worker_campaign *campaign, const uint64_t count[BARS]) {
  unsigned long long all = count[BAR_GIVEN] + count[BAR_TOKENS] + count[BAR_ANSWERED];
  unsigned long long limit = pool->config.accept.tokens, by = count[BAR_TOKENS], over = count[BAR_ANSWERED];
  char text[CV_WHY_BYTES];
  if (by == 0) {
    (void)snprintf(text, sizeof(text),
                   "%llu of %llu workers have answered all that this name asks, each once; expected others", over, all);
  } else {
    (void)snprintf(text, sizeof(text),
                   "accept.tokens: %llu are given by %llu of %llu workers; expected more of them, or other workers",
                   limit, by, all);
  }
  if (pool->config.stalled != NULL) {
    pool->config.stalled(pool->config.note_data, campaign->terms.name, text);
  }
  return cv_worker_decline(pool, campaign, text);
}

enum cv_err cv_worker_stall_check(struct cv_worker *pool, struct cv_worker_campaign *campaign) {
  uint64_t count[BARS] = {0};
  if (!cv_worker_campaign_is_live(campaign) || !campaign->told || is_open(pool, campaign)) {
    return CV_OK;
  }
  for (uint64_t worker = pool->config.first; worker <= pool->config.last; worker++) {
    count[bar_of(pool, campaign, worker)]++;
  }
  return count[BAR_TOKENS] + count[BAR_ANSWERED] > 0 ? decline(pool, campaign, count) : CV_OK;
}

enum cv_err cv_worker_stall_check_all(struct cv_worker *pool, uint64_t now_ms) {
  bool later = false;
  if (!pool->stall_due || now_ms < pool->stall_ms + STALL_MS) {
    return CV_OK;
  }
  /* With a stock the broker is first told which arms nobody may give any more: they end with what they have. */
  if (pool->config.stock != NULL && pool->spent_due) {
    return CV_OK;
  }
  for (uint32_t i = 0; i < pool->campaigns.count; i++) {
    bool waits = cv_worker_has_unanswered(pool, &pool->campaigns.entry[i]);
    later = later || waits;
    CV_TRY(waits ? CV_OK : cv_worker_stall_check(pool, &pool->campaigns.entry[i]));
  }
  pool->stall_due = later;
  pool->stall_ms = now_ms;
  return CV_OK;
}
