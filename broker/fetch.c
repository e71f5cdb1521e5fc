/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/fetch.h"

#include <string.h>

#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/requester.h"
#include "broker/state.h"
#include "broker/talk.h"

/* The campaign that the connection waits for or is served from; 0 = none. */
static uint32_t needs(const struct cv_broker_conn *conn) {
  return conn->requester == NULL ? 0 : cv_broker_requester_needs(conn->requester);
}

/* Whether all rows of the fetched campaign are restored. */
static bool is_whole(const struct cv_broker *broker, uint32_t campaign) {
  const struct cv_ended *ended = cv_archive_find(&broker->archive, campaign);
  return ended != NULL && !ended->purged;
}

static bool is_needed(const struct cv_broker *broker, uint32_t campaign) {
  bool whole = is_whole(broker, campaign);
  for (const struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if (whole && !conn->held && needs(conn) == campaign) {
      return true;
    }
  }
  return false;
}

void cv_broker_leave_memory(struct cv_broker *broker) {
  struct cv_broker_campaign *campaign = broker->campaigns, *next;
  for (; campaign != NULL; campaign = next) {
    next = campaign->hh.next;
    if (campaign->settled && !is_needed(broker, campaign->id)) {
      cv_broker_campaign_drop(broker, campaign);
    }
  }
}

/* At most one fetched campaign per requester, and CV_FETCHED_MAX in total: an ended campaign can have thousands of
 * plans and releases, and requesters must not fill the broker's memory by asking for many. */
static bool has_room(const struct cv_broker *broker, const char *requester) {
  uint32_t fetched = 0;
  for (const struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    fetched += campaign->fetched;
    if (campaign->fetched && strcmp(campaign->requester, requester) == 0) {
      return false;
    }
  }
  return fetched < CV_FETCHED_MAX;
}

/* Chooses the connection that has waited longest: the one whose last fetch is oldest. */
bool cv_broker_wanted(struct cv_broker *broker, uint32_t *ret_campaign) {
  struct cv_broker_conn *first = NULL;
  bool wants = false;
  for (struct cv_broker_conn *conn = broker->wants ? broker->conns : NULL; conn != NULL; conn = conn->next) {
    uint32_t id = conn->held ? 0 : needs(conn);
    if (cv_broker_campaign_find(broker, id) != NULL || !is_whole(broker, id)) {
      continue;
    }
    wants = true;
    if ((first == NULL || conn->requester->fetched_nth < first->requester->fetched_nth) &&
        has_room(broker, conn->identity.name)) {
      first = conn;
    }
  }
  broker->wants = wants;
  /* While a batch is being stored the database belongs to the storage thread. */
  if (first != NULL && !broker->in_flight && !broker->failed) {
    first->requester->fetched_nth = ++broker->fetches;
    *ret_campaign = needs(first);
    broker->said = true;
    return true;
  }
  return false;
}

bool cv_broker_awaits(struct cv_broker *broker, uint32_t campaign) {
  return cv_broker_campaign_find(broker, campaign) == NULL && is_needed(broker, campaign);
}

void cv_broker_fetch_failed(struct cv_broker *broker, uint32_t id, const char *why) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  cv_broker_note(broker, NULL, NULL, "%s", why);
  if (campaign != NULL) {
    cv_broker_campaign_drop(broker, campaign);
  }
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if (conn->requester != NULL && needs(conn) == id) {
      cv_broker_requester_miss(broker, conn->requester, why);
    }
  }
}
