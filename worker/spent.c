/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/spent.h"

#include <stdio.h>

#include "common/base/text.h"
#include "worker/stock.h"

enum { SPENT_MS = 100 /* between searches for arms without rows */ };

enum cv_err cv_worker_spent_note(struct cv_worker *pool, struct cv_worker_campaign *campaign, uint32_t arm) {
  bool first;
  CV_TRY(cv_worker_campaign_spend(campaign, arm, &first));
  if (first) {
    char text[sizeof(struct cv_text_shown) + 64];
    (void)snprintf(text, sizeof(text), "campaign \"%s\": no more scores of arm %u",
                   cv_text_shown(campaign->terms.name).text, arm + 1);
    cv_worker_note(pool, text);
  }
  return CV_OK;
}

struct asker {
  const struct cv_worker *pool;
  const struct cv_worker_campaign *campaign;
};

/* Whether the campaign may still take a token of this worker. */
static bool may_still_give(void *data, uint64_t worker) {
  const struct asker *asker = data;
  return cv_worker_may_answer(asker->pool, asker->campaign, worker);
}

/* Tells the broker of arms that no worker has a row of any more: no worker would come for them and be asked. */
static enum cv_err tell_spent(struct cv_worker *pool, struct cv_worker_campaign *campaign, bool *ret_told) {
  struct asker asker = {.pool = pool, .campaign = campaign};
  size_t n = 0;
  for (uint32_t arm = 0; arm < campaign->terms.arms && n < CV_SPENT_ARMS_MOST; arm++) {
    bool known = campaign->spent != NULL && campaign->spent[arm];
    if (!known && !cv_stock_any_of(pool->config.stock, arm, may_still_give, &asker)) {
      CV_TRY(cv_worker_spent_note(pool, campaign, arm));
      pool->spent[n++] = arm;
    }
  }
  /* One such message a frame: the arms that had no room, and those of other campaigns, follow. */
  *ret_told = n > 0;
  return n > 0 ? cv_worker_outbox_spent(&pool->outbox, campaign->terms.id, CV_SPENT_WHY, pool->spent, n) : CV_OK;
}

/* Then one of its workers may have to give again: a token that came too late counts for nothing. */
static bool has_unanswered(const struct cv_worker *pool, const struct cv_worker_campaign *campaign) {
  for (size_t i = 0, seen = 0; seen < pool->pendings.count; i++) {
    const struct cv_pending *pending = &pool->pendings.entry[i];
    if (pending->values > 0 && pending->campaign == campaign->terms.id) {
      return true;
    }
    seen += pending->values > 0;
  }
  return false;
}

enum cv_err cv_worker_spent_tell(struct cv_worker *pool, uint64_t now_ms) {
  if (pool->config.stock == NULL || !pool->spent_due || now_ms < pool->spent_ms + SPENT_MS) {
    return CV_OK;
  }
  bool told = false, later = false;
  for (uint32_t i = 0; i < pool->campaigns.count && !told; i++) {
    struct cv_worker_campaign *campaign = &pool->campaigns.entry[i];
    bool is_open = cv_worker_campaign_is_live(campaign) && campaign->told;
    bool waits = is_open && has_unanswered(pool, campaign);
    later = later || waits;
    CV_TRY(is_open && !waits ? tell_spent(pool, campaign, &told) : CV_OK);
  }
  /* Then the next frame goes on. */
  pool->due = pool->due || told;
  pool->spent_due = told || later;
  pool->spent_ms = told ? pool->spent_ms : now_ms;
  return CV_OK;
}
