/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/requester.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/state.h"
#include "broker/statement.h"

struct cv_broker_requester *cv_broker_requester_new(void) {
  return calloc(1, sizeof(struct cv_broker_requester));
}

void cv_broker_requester_free(struct cv_broker_requester *requester) {
  if (requester == NULL) {
    return;
  }
  for (uint32_t i = 0; i < requester->requests; i++) {
    cv_broker_statement_free(requester->request[i].statement);
  }
  cv_broker_requester_clear(requester);
  free(requester);
}

void cv_broker_requester_clear(struct cv_broker_requester *requester) {
  free(requester->status);
  cv_broker_statement_free(requester->statement);
  free(requester->part_release);
  free(requester->part_plan);
  requester->status = NULL;
  requester->statement = NULL;
  requester->part_release = NULL;
  requester->part_plan = NULL;
  requester->order_ready = false;
}

/* ---- requests ---- */

enum cv_err cv_broker_requester_push(struct cv_broker *broker, struct cv_broker_requester *requester,
                                     const struct cv_request *request, struct cv_why *why) {
  if (requester->requests == CV_REQUESTS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "%d unanswered requests on this connection; expected at most %d",
                   CV_REQUESTS_MAX + 1, CV_REQUESTS_MAX);
  }
  /* The answer is prepared by the next flush, after the batch of the request's changes. */
  requester->request[requester->requests++] = *request;
  broker->said = true;
  cv_broker_only_with_a_commit(broker); /* another broker may have what this one says is not there */
  return CV_OK;
}

uint32_t cv_broker_requester_needs(const struct cv_broker_requester *requester) {
  /* Requests are answered first, in order; then an export runs; then the watched campaign is reported. */
  const struct cv_request *first = requester->requests > 0 ? &requester->request[0] : NULL;
  if (first != NULL) {
    return first->answer == CV_ORDER_STATEMENT && first->statement == NULL ? first->campaign : 0;
  }
  return requester->export.campaign != 0 ? requester->export.campaign
         : requester->finish_told        ? 0
                                         : requester->watching;
}

void cv_broker_requester_miss(struct cv_broker *broker, struct cv_broker_requester *requester, const char *text) {
  struct cv_request request = {.answer = CV_ORDER_ERROR};
  (void)snprintf(request.text, sizeof(request.text), "%.*s", (int)sizeof(request.text) - 1, text);
  if (requester->requests == 0) { /* the export or the watch needed the campaign: it stops */
    *(requester->export.campaign != 0 ? &requester->export.campaign : &requester->watching) = 0;
    requester->requests = 1;
  }
  /* The error takes the place of the answer that it replaces: answers stay in the order of the requests. */
  requester->request[0] = request;
  broker->said = true;
}

/* ---- campaigns of a requester ---- */

bool cv_broker_requester_owns(const struct cv_broker_conn *conn, const struct cv_broker_campaign *campaign) {
  return strcmp(campaign->requester, conn->identity.name) == 0;
}

const struct cv_ended *cv_broker_requester_ended(const struct cv_broker *broker, const struct cv_broker_conn *conn) {
  const struct cv_owner *owner = cv_archive_owner(&broker->archive, conn->identity.name);
  return owner == NULL ? NULL : owner->first;
}

uint32_t cv_broker_requester_open(const struct cv_broker *broker, const struct cv_broker_conn *conn) {
  uint32_t open = 0;
  for (const struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    open += cv_broker_requester_owns(conn, campaign);
  }
  return open;
}

/* The requester's newest campaign that is open or can be read; 0 if there is none. */
static uint32_t newest(const struct cv_broker *broker, const struct cv_broker_conn *conn) {
  /* Purged campaigns keep a record, but cannot be read any more. */
  uint32_t id = 0;
  for (const struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    id = cv_broker_requester_owns(conn, campaign) && campaign->id > id ? campaign->id : id;
  }
  for (const struct cv_ended *ended = cv_broker_requester_ended(broker, conn); ended != NULL; ended = ended->after) {
    id = !ended->purged && ended->id > id ? ended->id : id;
  }
  return id;
}

bool cv_broker_requester_find(struct cv_broker *broker, const struct cv_broker_conn *conn, uint64_t id,
                              uint32_t *ret_id, char text[CV_WHY_BYTES]) {
  const char *name = conn->identity.name;
  if (id == 0) {
    *ret_id = newest(broker, conn);
    (void)snprintf(text, CV_WHY_BYTES, "no campaign of %s", name);
    return *ret_id != 0;
  }
  const struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  const struct cv_ended *ended = cv_archive_find(&broker->archive, id);
  *ret_id = (uint32_t)id;
  (void)snprintf(text, CV_WHY_BYTES, "no campaign %llu of %s", (unsigned long long)id, name);
  /* The same text for an unknown campaign and for one of another requester, so that numbers reveal nothing. */
  if (ended != NULL && ended->purged && strcmp(ended->owner->name, name) == 0) {
    (void)snprintf(text, CV_WHY_BYTES, "campaign %llu of %s was purged", (unsigned long long)id, name);
    return false;
  }
  return ended != NULL ? strcmp(ended->owner->name, name) == 0
                       : campaign != NULL && cv_broker_requester_owns(conn, campaign);
}

uint32_t cv_broker_requester_by_key(const struct cv_broker *broker, const struct cv_broker_conn *conn,
                                    const uint8_t *key) {
  /* Records include purged campaigns: a repeated submission must not create a second campaign. */
  /* Keys count per requester: another requester's key neither finds nor blocks a campaign. */
  for (const struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    if (cv_broker_requester_owns(conn, campaign) && memcmp(campaign->client_key, key, CV_CLIENT_KEY_BYTES) == 0) {
      return campaign->id;
    }
  }
  for (const struct cv_ended *ended = cv_broker_requester_ended(broker, conn); ended != NULL; ended = ended->after) {
    if (memcmp(ended->client_key, key, CV_CLIENT_KEY_BYTES) == 0) {
      return ended->id;
    }
  }
  return 0;
}
