/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/spent.h"

#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/ending.h"
#include "broker/epoch.h"
#include "broker/payer.h"
#include "broker/places.h"
#include "broker/state.h"
#include "broker/talk.h"
#include "broker/two.h"
#include "broker/workers.h"

/* ---- what connections say ---- */

static enum cv_err say(struct cv_broker *broker, const struct cv_broker_conn *conn, struct cv_broker_campaign *campaign,
                       struct cv_dealing *dealing, uint32_t arm, uint64_t below) {
  CV_TRY(cv_dealing_lower(dealing, cv_broker_gold_items(&campaign->gold), arm, below));
  if (arm >= campaign->spec.arms) { /* a gold item has no places that wait for scores */
    return CV_OK;
  }
  if (campaign->arm[arm].said_ms == 0) {
    /* Never 0, which stands for nobody. */
    campaign->arm[arm].said_ms = broker->now_ms > 0 ? broker->now_ms : 1;
    campaign->said_arms++;
    cv_broker_note(broker, conn->who, campaign, ": no more scores of arm %u", arm + 1);
  }
  broker->said = true; /* places that it gave back can be assigned to others */
  return CV_OK;
}

enum cv_err cv_broker_spent_say_place(struct cv_broker *broker, struct cv_broker_conn *conn,
                                      const struct cv_ticket *ticket) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, ticket->campaign);
  struct cv_dealing *dealing = cv_dealings_find(&conn->workers->dealings, ticket->campaign);
  if (campaign == NULL || campaign->arm == NULL || dealing == NULL) {
    return CV_OK;
  }
  uint32_t index = cv_broker_gold_arm_of(&campaign->gold, ticket->item);
  if (index >= campaign->spec.arms) {
    return index == CV_BROKER_ARM_NONE ? CV_OK : say(broker, conn, campaign, dealing, index, 0);
  }
  const struct cv_arm *arm = &campaign->arm[index];
  /* The place is only known while its epoch is open. */
  if (arm->plan != ticket->plan || ticket->position >= arm->want) {
    return CV_OK;
  }
  return say(broker, conn, campaign, dealing, index, arm->first + ticket->position);
}

enum cv_err cv_broker_spent_say_arms(struct cv_broker *broker, const struct cv_broker_conn *conn,
                                     struct cv_broker_campaign *campaign, struct cv_dealing *dealing,
                                     const struct cv_decline *decline) {
  for (size_t i = 0; campaign != NULL && campaign->arm != NULL && i < decline->arms; i++) {
    uint32_t arm = cv_broker_gold_arm_of(&campaign->gold, decline->arm[i]);
    if (arm != CV_BROKER_ARM_NONE) {
      CV_TRY(say(broker, conn, campaign, dealing, arm, 0));
    }
  }
  return CV_OK;
}

/* ---- who may have more ---- */

/* Whether all workers of the connection have given all that the campaign takes of them. */
static bool has_nobody_left(struct cv_broker_campaign *campaign, const struct cv_identity *identity) {
  uint64_t from = cv_broker_campaign_payer_bit(campaign, identity->first, 0);
  uint64_t end = cv_broker_campaign_payer_bit(campaign, identity->last + 1, 0);
  return cv_chunks_unset(&campaign->payers, from, end) == end;
}

/* Whether the connection may still give a token of the arm. One that has not said anything may. */
static bool may_give(const struct cv_broker_conn *conn, struct cv_broker_campaign *campaign, uint32_t arm) {
  if (conn->workers == NULL || conn->close_due ||
      (campaign->spec.worker != NULL && !cv_identity_vouches_for(&conn->identity, campaign->spec.worker[arm]))) {
    return false;
  }
  const struct cv_dealing *dealing = cv_dealings_find(&conn->workers->dealings, campaign->id);
  if (dealing != NULL && dealing->declined) {
    return false;
  }
  /* A token may be on its way. */
  if (dealing != NULL && dealing->held[cv_broker_gold_item_of(&campaign->gold, arm)] > 0) {
    return true;
  }
  uint64_t below = dealing == NULL ? UINT64_MAX : cv_dealing_below(dealing, arm);
  return below < UINT64_MAX ? cv_arm_lacks_place(campaign, arm, below) : !has_nobody_left(campaign, &conn->identity);
}

static bool may_anybody_give(const struct cv_broker *broker, struct cv_broker_campaign *campaign, uint32_t arm) {
  for (const struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if (may_give(conn, campaign, arm)) {
      return true;
    }
  }
  return false;
}

/* ---- ends ---- */

static void close_arm(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint32_t index) {
  struct cv_arm *arm = &campaign->arm[index];
  cv_broker_note(broker, NULL, campaign, ": no more scores of arm %u: it ends with %llu of %llu", index + 1,
                 (unsigned long long)(arm->first + arm->filled), (unsigned long long)(arm->first + arm->want));
  arm->is_spent = true;
  campaign->active_ms = broker->now_ms;
  broker->said = true;
  broker->failed = cv_epoch_close_early(broker, campaign, index) != CV_OK || broker->failed;
}

/* With a feedback graph the epochs of neighbours wait for the plays of this arm, which will not come. */
static const char GRAPH_NEEDS[] = "an item's data are used up, and its neighbours' tokens come with its own";
static bool must_stop(const struct cv_broker_campaign *campaign) {
  return campaign->spec.edges > 0;
}

static bool is_over(const struct cv_broker *broker, struct cv_broker_campaign *campaign, uint32_t index) {
  const struct cv_arm *arm = &campaign->arm[index];
  /* A token that waits for the co-broker may be in its sum already. */
  return arm->plan != 0 && arm->said_ms != 0 && !cv_two_holds_arm(campaign, index) &&
         broker->now_ms >= arm->said_ms + CV_SPENT_WAIT_MS && !may_anybody_give(broker, campaign, index);
}

void cv_broker_spent_check(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  if (campaign->said_arms == 0 || campaign->phase != CV_PHASE_RUNNING ||
      broker->now_ms < broker->parted_ms + CV_SPENT_REDIAL_MS) {
    return;
  }
  for (uint32_t i = 0; campaign->phase == CV_PHASE_RUNNING && i < campaign->spec.arms; i++) {
    if (!is_over(broker, campaign, i)) {
      continue;
    }
    if (must_stop(campaign)) {
      cv_broker_campaign_stop(broker, campaign, CV_END_USED_UP, GRAPH_NEEDS);
    } else {
      close_arm(broker, campaign, i);
    }
  }
}

bool cv_broker_spent_close_all(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  uint32_t said = 0;
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    said += campaign->arm[i].plan != 0 && campaign->arm[i].said_ms != 0;
  }
  if (said < campaign->open_arms) {
    return false;
  }
  if (must_stop(campaign)) {
    cv_broker_campaign_stop(broker, campaign, CV_END_USED_UP, GRAPH_NEEDS);
    return true;
  }
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    if (campaign->arm[i].plan != 0) {
      close_arm(broker, campaign, i);
    }
  }
  return true;
}
