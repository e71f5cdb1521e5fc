/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/dealing.h"

#include <stdlib.h>

#include "broker/campaign.h"
#include "broker/state.h"
#include "common/base/array.h"

static void clear(struct cv_dealing *dealing) {
  free(dealing->held);
  free(dealing->below);
  dealing->held = NULL;
  dealing->below = NULL;
}

void cv_dealings_fini(struct cv_dealings *dealings) {
  for (uint32_t i = 0; i < dealings->count; i++) {
    clear(&dealings->dealing[i]);
  }
  free(dealings->dealing);
  *dealings = (struct cv_dealings){0};
}

struct cv_dealing *cv_dealings_find(const struct cv_dealings *dealings, uint32_t campaign) {
  for (uint32_t i = 0; i < dealings->count; i++) {
    if (dealings->dealing[i].campaign == campaign) {
      return &dealings->dealing[i];
    }
  }
  return NULL;
}

/* An entry to use: that of a campaign that is over for this connection, or a new one. CV_ERR_LIMIT, CV_ERR_NOMEM. */
static enum cv_err make_room(struct cv_broker *broker, struct cv_dealings *dealings, struct cv_dealing **ret) {
  /* Entries of campaigns that are over for this connection are used first: only open ones make the list longer. */
  for (uint32_t i = 0; i < dealings->count; i++) {
    const struct cv_broker_campaign *old = cv_broker_campaign_find(broker, dealings->dealing[i].campaign);
    if (old == NULL ||
        (old->phase == CV_PHASE_ENDED && (dealings->dealing[i].done_told || !dealings->dealing[i].told))) {
      clear(&dealings->dealing[i]);
      *ret = &dealings->dealing[i];
      return CV_OK;
    }
  }
  if (dealings->count == CV_DEALINGS_MAX) {
    return CV_ERR_LIMIT;
  }
  CV_TRY(CV_ARRAY_ROOM(dealings->dealing, (size_t)dealings->count + 1, dealings->cap));
  *ret = &dealings->dealing[dealings->count++];
  return CV_OK;
}

enum cv_err cv_dealings_make(struct cv_broker *broker, struct cv_dealings *dealings,
                             const struct cv_broker_campaign *campaign, struct cv_dealing **ret) {
  struct cv_dealing *dealing = cv_dealings_find(dealings, campaign->id);
  if (dealing == NULL) {
    uint32_t *held = calloc(cv_broker_gold_items(&campaign->gold), sizeof(*held));
    enum cv_err err = held == NULL ? CV_ERR_NOMEM : make_room(broker, dealings, &dealing);
    if (err != CV_OK) {
      free(held);
      return err;
    }
    *dealing = (struct cv_dealing){.campaign = campaign->id, .held = held};
  }
  *ret = dealing;
  return CV_OK;
}

uint64_t cv_dealing_below(const struct cv_dealing *dealing, uint32_t arm) {
  return dealing->below == NULL ? UINT64_MAX : dealing->below[arm];
}

enum cv_err cv_dealing_lower(struct cv_dealing *dealing, uint32_t arms, uint32_t arm, uint64_t below) {
  if (dealing->below == NULL) {
    dealing->below = malloc(arms * sizeof(*dealing->below));
    if (dealing->below == NULL) {
      return CV_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < arms; i++) {
      dealing->below[i] = UINT64_MAX;
    }
  }
  dealing->below[arm] = below < dealing->below[arm] ? below : dealing->below[arm];
  return CV_OK;
}
