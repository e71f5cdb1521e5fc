/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/ended.h"
#include "broker/requester.h"
#include "broker/state.h"
#include "broker/statement.h"
#include "broker/talk.h"

enum {
  PROGRESS_MS = 200, /* shortest time between two progress messages */
  STATUS_MAX = 256,  /* campaigns in a status answer */
  PART_PLANS = 16,   /* plans in one part of an export ... */
  PART_WANTS = 8192, /* ... and arms named by them together */
};

/* One of a requester's campaigns: an ended one, or an open one. */
struct listed {
  uint64_t number;
  const struct cv_ended *ended;
  const struct cv_broker_campaign *open;
};

static int by_number(const void *a, const void *b) {
  const struct listed *x = a, *y = b;
  return x->number < y->number ? -1 : x->number > y->number;
}

/* Lists the requester's campaigns by number; the caller frees them. */
static enum cv_err list_campaigns(struct cv_broker *broker, const struct cv_broker_conn *conn, struct listed **ret,
                                  size_t *ret_count) {
  const struct cv_owner *owner = cv_archive_owner(&broker->archive, conn->identity.name);
  size_t room = cv_broker_requester_open(broker, conn) + (owner == NULL ? 0 : owner->count), n = 0;
  struct listed *list = calloc(room + 1, sizeof(*list));
  if (list == NULL) {
    return CV_ERR_NOMEM;
  }
  for (const struct cv_ended *ended = cv_broker_requester_ended(broker, conn); ended != NULL; ended = ended->after) {
    if (!ended->purged) {
      list[n++] = (struct listed){.number = ended->id, .ended = ended};
    }
  }
  for (const struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    if (cv_broker_requester_owns(conn, campaign)) {
      list[n++] = (struct listed){.number = campaign->id, .open = campaign};
    }
  }
  qsort(list, n, sizeof(*list), by_number);
  *ret = list;
  *ret_count = n;
  return CV_OK;
}

/* The requester's campaigns by number; the newest STATUS_MAX if there are more: one frame holds the answer, and these
 * are the ones that a requester asks about. */
static enum cv_err fill_status(struct cv_broker *broker, struct cv_broker_conn *conn) {
  struct cv_broker_requester *requester = conn->requester;
  struct listed *list;
  size_t n;
  CV_TRY(list_campaigns(broker, conn, &list, &n));
  size_t first = n > STATUS_MAX ? n - STATUS_MAX : 0;
  struct cv_progress *progress = calloc(n - first + 1, sizeof(*progress));
  for (size_t i = first; progress != NULL && i < n; i++) {
    if (list[i].ended != NULL) {
      cv_ended_progress(broker, list[i].ended, &progress[i - first]);
    } else {
      cv_broker_campaign_progress(broker, list[i].open, &progress[i - first]);
    }
  }
  free(list);
  requester->status = progress;
  requester->order.kind = CV_ORDER_STATUS_ANSWER;
  requester->order.as.status = (struct cv_status){.campaigns = n - first,
                                                  .campaign = progress,
                                                  .broker = broker->config.name,
                                                  .uptime_ms = broker->now_ms - broker->started_ms,
                                                  .term = broker->config.term};
  return progress == NULL ? CV_ERR_NOMEM : CV_OK;
}

/* Whether a requester may see the present standings. Of a running campaign with exact sums they are for the trusted
 * third-party only: the differences from plan to plan would be sums of few tokens. */
static bool shows_standings(const struct cv_broker_campaign *campaign) {
  return campaign->has_standings && (campaign->phase == CV_PHASE_ENDED || !campaign->privacy.is_exact);
}

/* The next part of a running export. */
static enum cv_err fill_part(struct cv_broker *broker, struct cv_broker_requester *requester,
                             const struct cv_broker_campaign *campaign) {
  struct cv_part *part = &requester->order.as.part;
  *part = (struct cv_part){.campaign = campaign->id};
  /* An export is a sequence of parts: the description, then plans, then releases, then the standings. */
  if (!requester->export.begun) {
    requester->export.begun = true;
    part->first = true;
    part->spec = campaign->spec;
    part->seed = campaign->seed;
    cv_broker_campaign_progress(broker, campaign, &part->progress);
    requester->order.kind = CV_ORDER_PART;
    return CV_OK;
  }
  requester->part_plan = calloc(PART_PLANS, sizeof(*requester->part_plan));
  requester->part_release = calloc(CV_PART_RELEASES, sizeof(*requester->part_release));
  if (requester->part_plan == NULL || requester->part_release == NULL) {
    return CV_ERR_NOMEM;
  }
  part->plan = requester->part_plan;
  part->release = requester->part_release;
  size_t wants = 0;
  while (requester->export.plans < campaign->plans && part->plans < PART_PLANS &&
         (wants == 0 || wants + campaign->plan[requester->export.plans].wants <= PART_WANTS)) {
    wants += campaign->plan[requester->export.plans].wants;
    requester->part_plan[part->plans++] = campaign->plan[requester->export.plans++];
  }
  /* Exact sums are only for the third-party that the campaign trusts; a requester's export omits them. */
  if (campaign->privacy.is_exact) {
    requester->export.releases = campaign->releases;
  }
  while (part->plans == 0 && requester->export.releases < campaign->releases && part->releases < CV_PART_RELEASES) {
    cv_broker_campaign_release(campaign, requester->export.releases++, &requester->part_release[part->releases++]);
  }
  if (part->plans == 0 && part->releases == 0) {
    part->standings = shows_standings(campaign) ? campaign->spec.arms : 0;
    part->standing = campaign->standing;
    if (campaign->phase == CV_PHASE_ENDED && campaign->gold.neutral != NULL) {
      part->neutrals = campaign->spec.arms;
      part->neutral = campaign->gold.neutral;
      part->neutral_epsilon_micro = campaign->gold.terms.epsilon_micro;
    }
    part->last = true;
    requester->export.campaign = 0;
  }
  requester->order.kind = CV_ORDER_PART;
  return CV_OK;
}

/* Answers the first request and removes it. */
static enum cv_err fill_request(struct cv_broker *broker, struct cv_broker_conn *conn) {
  struct cv_broker_requester *requester = conn->requester;
  struct cv_request request = requester->request[0];
  requester->requests--;
  memmove(requester->request, requester->request + 1, requester->requests * sizeof(requester->request[0]));
  switch (request.answer) {
    case CV_ORDER_STATUS_ANSWER:
      return fill_status(broker, conn);
    case CV_ORDER_ACCEPTED:
      requester->order.kind = CV_ORDER_ACCEPTED;
      requester->order.as.accepted.campaign = request.campaign;
      requester->order.as.accepted.existed = request.existed;
      return CV_OK;
    case CV_ORDER_PURGED:
      requester->order.kind = CV_ORDER_PURGED;
      requester->order.as.purged = request.purged;
      return CV_OK;
    case CV_ORDER_STATEMENT:
      if (request.statement == NULL) {
        CV_TRY(cv_broker_statement_of(broker, cv_broker_campaign_find(broker, request.campaign), &request.statement));
      }
      requester->statement = request.statement;
      requester->order.kind = CV_ORDER_STATEMENT;
      requester->order.as.statement = *request.statement;
      return CV_OK;
    default:
      memcpy(requester->error, request.text, sizeof(requester->error));
      requester->order.kind = CV_ORDER_ERROR;
      requester->order.as.error = requester->error;
      return CV_OK;
  }
}

/* Whether the watcher asked for standings and has not received those after the latest plan. */
static bool owes_standings(const struct cv_broker_requester *requester, const struct cv_broker_campaign *campaign) {
  return requester->standings_wanted && shows_standings(campaign) && requester->standings_plan != campaign->plans;
}

/* The next message about a watched campaign: description, standings, progress or end. False if there is nothing to
 * report. */
static bool fill_watch(struct cv_broker *broker, struct cv_broker_requester *requester,
                       struct cv_broker_campaign *campaign) {
  if (requester->describe_due) {
    requester->describe_due = false;
    requester->order.kind = CV_ORDER_DESCRIPTION;
    requester->order.as.description = (struct cv_description){.campaign = campaign->id, .spec = campaign->spec};
    broker->said = true; /* the rest of the answer follows */
    return true;
  }
  if (campaign->phase == CV_PHASE_ENDED) {
    if (requester->finish_told) {
      return false;
    }
    requester->finish_told = true;
    requester->order.kind = CV_ORDER_FINISHED;
    requester->order.as.finished = (struct cv_finished){.standings = campaign->has_standings ? campaign->spec.arms : 0,
                                                        .standing = campaign->standing};
    cv_broker_campaign_progress(broker, campaign, &requester->order.as.finished.progress);
    return true;
  }
  if (!requester->progress_due) {
    return false;
  }
  if (owes_standings(requester, campaign)) {
    requester->standings_plan = campaign->plans;
    requester->order.kind = CV_ORDER_STANDINGS;
    requester->order.as.standings = (struct cv_standings){
        .campaign = campaign->id, .standings = campaign->spec.arms, .standing = campaign->standing};
    broker->said = true; /* the progress follows */
    return true;
  }
  requester->progress_due = false;
  requester->order.kind = CV_ORDER_PROGRESS;
  cv_broker_campaign_progress(broker, campaign, &requester->order.as.progress);
  return true;
}

/* Whether the campaign of the next answer is in memory. If not, it is scheduled to be fetched, or missed if purged. */
static bool is_at_hand(struct cv_broker *broker, struct cv_broker_conn *conn) {
  struct cv_broker_requester *requester = conn->requester;
  uint32_t id = cv_broker_requester_needs(requester);
  const struct cv_ended *ended = cv_archive_find(&broker->archive, id);
  if (id == 0 || (ended == NULL && cv_broker_campaign_find(broker, id) != NULL)) {
    return true;
  }
  if (ended == NULL || ended->purged) {
    char text[CV_WHY_BYTES];
    (void)snprintf(text, sizeof(text), "campaign %u of %s was purged", id, conn->identity.name);
    cv_broker_requester_miss(broker, requester, text);
    return true;
  }
  broker->wants = broker->wants || cv_broker_campaign_find(broker, id) == NULL;
  return cv_broker_campaign_find(broker, id) != NULL;
}

enum cv_err cv_broker_answer_fill(struct cv_broker *broker, struct cv_broker_conn *conn) {
  struct cv_broker_requester *requester = conn->requester;
  cv_broker_requester_clear(requester);
  /* A slow reader gets nothing more until its queue is shorter; what it asked for stays pending. */
  if (conn->held) {
    return CV_OK;
  }
  memset(&requester->order, 0, sizeof(requester->order));
  if (conn->greeted) {
    requester->order.hello = cv_broker_hello(conn);
    requester->order_ready = requester->order.hello.present;
  }
  if (!is_at_hand(broker, conn)) {
    return CV_OK;
  }
  struct cv_broker_campaign *watched =
      requester->watching == 0 ? NULL : cv_broker_campaign_find(broker, requester->watching);
  struct cv_broker_campaign *exported =
      requester->export.campaign == 0 ? NULL : cv_broker_campaign_find(broker, requester->export.campaign);
  if (requester->requests > 0) {
    CV_TRY(fill_request(broker, conn));
    requester->order_ready = true;
  } else if (exported != NULL) {
    CV_TRY(fill_part(broker, requester, exported));
    requester->order_ready = true;
  } else if (watched != NULL && fill_watch(broker, requester, watched)) {
    requester->order_ready = true;
  }
  /* Another flush is due if more is owed: further requests, the rest of an export, or the end of a watched campaign. */
  uint32_t next = requester->order.kind != CV_ORDER_NONE ? cv_broker_requester_needs(requester) : 0;
  const struct cv_broker_campaign *campaign = next == 0 ? NULL : cv_broker_campaign_find(broker, next);
  bool is_over = next != 0 && (campaign == NULL || campaign->phase == CV_PHASE_ENDED);
  broker->said = broker->said || requester->requests > 0 || requester->export.campaign != 0 || is_over;
  return CV_OK;
}

/* Progress at most every PROGRESS_MS, and only if there is any. */
void cv_broker_answer_tick(struct cv_broker *broker, uint64_t now_ms) {
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    struct cv_broker_requester *requester = conn->requester;
    uint32_t watching = requester == NULL ? 0 : requester->watching;
    const struct cv_broker_campaign *campaign = watching == 0 ? NULL : cv_broker_campaign_find(broker, watching);
    if (campaign == NULL || requester->finish_told) {
      continue;
    }
    requester->progress_stale = requester->progress_stale || campaign->progressed ||
                                campaign->tokens != requester->progress_tokens || campaign->phase == CV_PHASE_ENDED;
    if (requester->progress_stale && now_ms - requester->progress_ms >= PROGRESS_MS) {
      requester->progress_ms = now_ms;
      requester->progress_tokens = campaign->tokens;
      requester->progress_stale = false;
      requester->progress_due = true;
      broker->said = true;
    }
  }
  for (struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    campaign->progressed = false;
  }
}
