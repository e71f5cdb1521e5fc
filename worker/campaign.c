/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/campaign.h"

#include <stdio.h>
#include <stdlib.h>

static void campaign_fini(struct cv_worker_campaign *campaign) {
  cv_privatizer_free(campaign->privatizer);
  cv_session_free(campaign->session);
  free(campaign->given);
  cv_once_fini(&campaign->once);
  free(campaign->taken);
  free(campaign->spent);
}

void cv_worker_campaigns_fini(struct cv_worker_campaigns *campaigns) {
  for (uint32_t i = 0; i < campaigns->count; i++) {
    campaign_fini(&campaigns->entry[i]);
  }
  campaigns->count = 0;
}

struct cv_worker_campaign *cv_worker_campaigns_find(struct cv_worker_campaigns *campaigns, uint64_t id) {
  for (uint32_t i = 0; i < campaigns->count; i++) {
    if (campaigns->entry[i].terms.id == id) {
      return &campaigns->entry[i];
    }
  }
  return NULL;
}

/* Returns an unused entry, or the entry of a campaign that is no longer live; NULL if all entries are live. */
static struct cv_worker_campaign *free_place(struct cv_worker_campaigns *campaigns) {
  if (campaigns->count < CV_WORKER_CAMPAIGNS_MAX) {
    campaigns->entry[campaigns->count] = (struct cv_worker_campaign){0};
    return &campaigns->entry[campaigns->count++];
  }
  /* The counts of a campaign that is over go with its entry; the limit over all campaigns is counted elsewhere. */
  for (uint32_t i = 0; i < campaigns->count; i++) {
    if (!cv_worker_campaign_is_live(&campaigns->entry[i])) {
      return &campaigns->entry[i];
    }
  }
  return NULL;
}

struct cv_worker_campaign *cv_worker_campaigns_tell(struct cv_worker_campaigns *campaigns, const struct cv_terms *terms,
                                                    const struct cv_work *work) {
  struct cv_worker_campaign *known = cv_worker_campaigns_find(campaigns, terms->id);
  struct cv_worker_campaign *campaign = known != NULL ? known : free_place(campaigns);
  struct cv_session *session = NULL;
  uint32_t *given = NULL;
  struct cv_once once = {0};
  uint64_t *taken = NULL;
  if (campaign == NULL) {
    return NULL;
  }
  /* Keep what the pool knows: new terms for the same id must not reset the tokens already given. */
  if (known != NULL) {
    given = known->given;
    session = known->session;
    once = known->once;
    known->given = NULL;
    known->once = (struct cv_once){0};
    known->session = NULL;
  }
  /* Terms of another name have other scores, perhaps of other arms; what has left of these, the record knows. */
  if (known != NULL && known->work == work) {
    taken = known->taken;
    known->taken = NULL;
  }
  campaign_fini(campaign);
  campaign->terms = *terms;
  campaign->work = work;
  campaign->privatizer = NULL;
  campaign->session = session;
  campaign->given = given;
  campaign->once = once;
  campaign->gave = known != NULL && known->gave;
  campaign->taken = taken;
  campaign->spent = NULL;
  campaign->able = 0;
  campaign->done = false;
  campaign->told = true; /* `declined` is not cleared: an unsent Decline may still point to it */
  return campaign;
}

void cv_worker_campaigns_untell(struct cv_worker_campaigns *campaigns) {
  for (uint32_t i = 0; i < campaigns->count; i++) {
    campaigns->entry[i].told = false;
    free(campaigns->entry[i].spent);
    campaigns->entry[i].spent = NULL;
  }
}

bool cv_worker_campaign_is_live(const struct cv_worker_campaign *campaign) {
  return !campaign->done && campaign->privatizer != NULL;
}

bool cv_worker_campaigns_any_live(const struct cv_worker_campaigns *campaigns) {
  bool any = false;
  for (uint32_t i = 0; i < campaigns->count; i++) {
    any = any || cv_worker_campaign_is_live(&campaigns->entry[i]);
  }
  return any;
}

enum cv_err cv_worker_campaign_spend(struct cv_worker_campaign *campaign, uint32_t arm, bool *ret_first) {
  if (campaign->spent == NULL) {
    campaign->spent = calloc(campaign->terms.arms, sizeof(*campaign->spent));
  }
  if (campaign->spent == NULL) {
    return CV_ERR_NOMEM;
  }
  *ret_first = !campaign->spent[arm];
  campaign->spent[arm] = true;
  return CV_OK;
}

void cv_worker_campaign_decline(struct cv_worker_campaign *campaign, const char *reason) {
  (void)snprintf(campaign->declined, sizeof(campaign->declined), "%.*s", CV_WHY_BYTES - 1, reason);
  /* No privatizer means declined, see cv_worker_campaign_is_live(). */
  cv_privatizer_free(campaign->privatizer);
  campaign->privatizer = NULL;
}
