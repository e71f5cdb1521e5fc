/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/spent.h"

#include <stdio.h>

#include "common/base/text.h"
#include "worker/stock.h"

enum { SPENT_MS = 100 /* between searches for arms without rows */ };

enum cv_err cv_worker_spent_note(struct cv_worker *pool, struct cv_worker_campaign *campaign, uint32_t arm,
                                 const char *why) {
  bool first;
  CV_TRY(cv_worker_campaign_spend(campaign, arm, &first));
  if (first) {
    char text[sizeof(struct cv_text_shown) + CV_WHY_BYTES + 64];
    (void)snprintf(text, sizeof(text), "campaign \"%s\": no more scores of arm %u: %s",
                   cv_text_shown(campaign->terms.name).text, arm + 1, why);
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

static bool anybody(void *data, uint64_t worker) {
  (void)data;
  (void)worker;
  return true;
}

/* Why nobody may give a row of the arm: there is none, or whoever has one has given as much as may be. */
static const char *why_spent(struct cv_worker *pool, const struct cv_worker_campaign *campaign, uint32_t arm) {
  uint64_t limit = pool->config.accept.tokens;
  uint32_t each = campaign->terms.tokens_per_worker;
  if (!cv_stock_any_of(pool->config.stock, arm, anybody, NULL)) {
    return CV_SPENT_WHY;
  }
  bool is_own = limit > 0 && limit < each;
  (void)snprintf(pool->spent_why, sizeof(pool->spent_why),
                 "%s: whoever has rows left has given %llu; expected a larger one, or other workers",
                 is_own ? "accept.tokens" : "tokens_per_worker", (unsigned long long)(is_own ? limit : each));
  return pool->spent_why;
}

/* Tells the broker of arms that no worker may give a row of: no worker would come for them and be asked. */
static enum cv_err tell_spent(struct cv_worker *pool, struct cv_worker_campaign *campaign, bool *ret_told) {
  struct asker asker = {.pool = pool, .campaign = campaign};
  const char *why = NULL;
  size_t n = 0;
  for (uint32_t arm = 0; arm < campaign->terms.arms && n < CV_SPENT_ARMS_MOST; arm++) {
    bool known = campaign->spent != NULL && campaign->spent[arm];
    if (!known && !cv_stock_any_of(pool->config.stock, arm, may_still_give, &asker)) {
      const char *of = why_spent(pool, campaign, arm);
      why = why == NULL ? of : why;
      if (why == of) {
        CV_TRY(cv_worker_spent_note(pool, campaign, arm, why));
        pool->spent[n++] = arm;
      }
    }
  }
  /* One such message a frame: the arms that had no room or another reason, and those of other campaigns, follow. */
  *ret_told = n > 0;
  return n > 0 ? cv_worker_outbox_spent(&pool->outbox, campaign->terms.id, why, pool->spent, n) : CV_OK;
}

bool cv_worker_has_unanswered(const struct cv_worker *pool, const struct cv_worker_campaign *campaign) {
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
    bool waits = is_open && cv_worker_has_unanswered(pool, campaign);
    later = later || waits;
    CV_TRY(is_open && !waits ? tell_spent(pool, campaign, &told) : CV_OK);
  }
  /* Then the next frame goes on. */
  pool->due = pool->due || told;
  pool->spent_due = told || later;
  pool->spent_ms = told ? pool->spent_ms : now_ms;
  return CV_OK;
}
