/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that plays arm a answers for a and for those of its neighbours that the plan names, in that order. The
 * plan's epoch of arm v is complete when every play that shows v is in. These plays include the arm's own, and after
 * them no play of a neighbour is left. So while a place of a is free, a and every arm that it shows have open epochs,
 * and the list is the same when the place is assigned, when its token arrives, and after a restart. Only plays are
 * stored; the number of tokens of an epoch follows from plays and plans.
 */
#include "broker/shown.h"

#include <stdlib.h>

#include "broker/campaign.h"

uint32_t cv_shown_list(const struct cv_broker_campaign *campaign, uint32_t arm, uint32_t list[CV_VALUES_MAX]) {
  const struct cv_neighbours *graph = &campaign->graph;
  uint64_t plan = campaign->arm[arm].plan;
  uint32_t n = 0;
  list[n++] = arm;
  for (uint32_t i = graph->first[arm]; i < graph->first[arm + 1] && n < CV_VALUES_MAX; i++) {
    if (campaign->arm[graph->arm[i]].plan == plan) {
      list[n++] = graph->arm[i];
    }
  }
  return n;
}

enum cv_err cv_shown_init(struct cv_shown *shown, uint32_t arms) {
  *shown = (struct cv_shown){.plays = calloc(arms, sizeof(*shown->plays)), .by = calloc(arms, sizeof(*shown->by))};
  return shown->plays == NULL || shown->by == NULL ? CV_ERR_NOMEM : CV_OK;
}

void cv_shown_fini(struct cv_shown *shown) {
  free(shown->plays);
  free(shown->by);
  *shown = (struct cv_shown){0};
}

/* Sets the number of plays of each arm that the plan names; all others have 0. */
static void set_plays(const struct cv_plan *plan, uint32_t *plays) {
  for (uint32_t i = 0; i < plan->wants; i++) {
    plays[plan->want[i].arm] = plan->want[i].tokens;
  }
}

static void clear_plays(const struct cv_plan *plan, uint32_t *plays) {
  for (uint32_t i = 0; i < plan->wants; i++) {
    plays[plan->want[i].arm] = 0;
  }
}

const uint64_t *cv_shown_by(const struct cv_broker_campaign *campaign, const struct cv_plan *plan) {
  const struct cv_shown *shown = &campaign->shown;
  set_plays(plan, shown->plays);
  for (uint32_t i = 0; i < plan->wants; i++) {
    shown->by[i] = cv_neighbours_shown(&campaign->graph, shown->plays, plan->want[i].arm);
  }
  clear_plays(plan, shown->plays);
  return shown->by;
}

void cv_shown_add(struct cv_broker_campaign *campaign, const uint32_t *list, uint32_t n, const int64_t *value) {
  for (uint32_t i = 0; i < n; i++) {
    struct cv_arm *arm = &campaign->arm[list[i]];
    arm->sum = cv_broker_campaign_add(campaign, arm->sum, value[i]);
    arm->seen++;
    arm->touched = true;
    cv_broker_campaign_list(campaign, list[i]);
  }
}

/* Counts the tokens of open epochs: all plays of neighbours whose epoch is over, the accepted plays of the others. */
static void count_seen(struct cv_broker_campaign *campaign, const struct cv_plan *plan) {
  uint32_t *plays = campaign->shown.plays;
  set_plays(plan, plays);
  for (uint32_t i = 0; i < plan->wants; i++) {
    const struct cv_arm *arm = &campaign->arm[plan->want[i].arm];
    if (arm->plan == plan->number) {
      plays[plan->want[i].arm] = arm->filled;
    }
  }
  for (uint32_t i = 0; i < plan->wants; i++) {
    struct cv_arm *arm = &campaign->arm[plan->want[i].arm];
    arm->seen = arm->plan == plan->number ? cv_neighbours_shown(&campaign->graph, plays, plan->want[i].arm) : 0;
  }
  clear_plays(plan, plays);
}

void cv_shown_restore(struct cv_broker_campaign *campaign) {
  for (size_t i = 0; i < campaign->plans; i++) {
    const struct cv_plan *plan = &campaign->plan[i];
    const uint64_t *shown = cv_shown_by(campaign, plan);
    for (uint32_t j = 0; j < plan->wants; j++) {
      struct cv_arm *arm = &campaign->arm[plan->want[j].arm];
      if (arm->plan == plan->number) {
        arm->expected = shown[j];
      } else {
        arm->before += shown[j];
      }
    }
  }
  if (campaign->plans > 0) {
    count_seen(campaign, &campaign->plan[campaign->plans - 1]);
  }
}
