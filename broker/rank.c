/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third-party's side of the core: campaigns are opened, positions compared, releases sent in order, plans accepted
 * or refused (docs/protocol.md). A third-party that knows more than this broker, or something else, freezes the
 * campaign.
 */
#include <stdio.h>
#include <string.h>

#include "broker/state.h"

enum { OPENS_A_FRAME = 1, PLANS_A_FRAME = 2, RELEASES_A_FRAME = 256, NUMBERS_A_FRAME = 64, FORGOTTEN_MAX = 4096 };

/* What the third-party says of this campaign cannot be; of others it may still tell the truth. */
static void freeze(struct cv_broker *broker, struct cv_campaign *campaign, const char *what, uint64_t theirs,
                   uint64_t ours) {
  cv_refusals_add(&broker->figures.refusals, CV_REFUSED_HISTORY);
  cv_broker_note(
      broker, NULL,
      "campaign %u \"%s\" is frozen: the third-party %s knows %s %llu, this broker %llu; if this broker was put "
      "back to an older state, stop it and run crowdveil recover",
      campaign->id, campaign->spec.name, broker->rank->identity.name, what, (unsigned long long)theirs,
      (unsigned long long)ours);
  cv_campaign_end(broker, campaign, CV_END_FROZEN);
}

/* A campaign stays with the third-party that has opened it. */
static bool has_opened(const struct cv_broker *broker, const char *thirdparty) {
  return thirdparty[0] == '\0' || strcmp(thirdparty, broker->rank->identity.name) == 0;
}

static bool is_theirs(const struct cv_broker *broker, const struct cv_campaign *campaign) {
  return has_opened(broker, campaign->thirdparty);
}

const char *cv_rank_awaited(const struct cv_broker *broker, const struct cv_campaign *campaign) {
  bool waits = broker->rank != NULL && campaign->phase != CV_PHASE_ENDED && !is_theirs(broker, campaign);
  return waits ? campaign->thirdparty : NULL;
}

/* The one that a message is about; NULL if there is none, or none of this third-party's. */
static struct cv_campaign *find_theirs(struct cv_broker *broker, uint64_t id) {
  struct cv_campaign *campaign = cv_campaign_find(broker, id);
  return campaign == NULL || !is_theirs(broker, campaign) ? NULL : campaign;
}

void cv_rank_disconnected(struct cv_broker *broker) {
  broker->rank = NULL;
  broker->rank_ready = false; /* a frame that was made for this connection is for no other */
  cv_archive_close_none(&broker->archive);
  for (struct cv_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    memset(&campaign->rank, 0, sizeof(campaign->rank));
    campaign->progressed = true;
  }
}

void cv_rank_connected(struct cv_broker *broker, struct cv_broker_conn *conn) {
  cv_rank_disconnected(broker);
  broker->rank = conn;
  broker->said = true;
  uint64_t first = broker->recovery.first;
  uint64_t recent = broker->recovery.last > FORGOTTEN_MAX ? broker->recovery.last - FORGOTTEN_MAX : 0;
  broker->forgotten_next = first > recent ? first : recent + 1;
  /* A Closed may have been lost with the last connection; those that ended last hear it again. */
  for (const struct cv_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    const char *awaited = cv_rank_awaited(broker, campaign);
    if (awaited != NULL) {
      cv_broker_note(broker, conn->who, "campaign %u \"%s\" waits for thirdparty/%s, which opened it", campaign->id,
                     campaign->spec.name, awaited);
    }
  }
  for (struct cv_ended *ended = broker->archive.all; ended != NULL; ended = ended->hh.next) {
    bool is_recent = ended->id + NUMBERS_A_FRAME > broker->totals.campaigns;
    if (has_opened(broker, ended->thirdparty) && (is_recent || ended->progress.end == CV_END_RECOVERED)) {
      cv_archive_close(&broker->archive, ended);
    }
  }
}

/* A campaign of ours that has ended and may have left memory: messages about it cross its end. */
static bool has_ended(struct cv_broker *broker, uint64_t id) {
  return id > 0 && id <= broker->totals.campaigns && cv_campaign_find(broker, id) == NULL;
}

/* The chain's hash after `n` records, computed again from the start: only after a reconnect. */
static struct cv_digest releases_hash_at(const struct cv_broker *broker, const struct cv_campaign *campaign,
                                         uint64_t n) {
  struct cv_digest hash = {0};
  for (uint64_t i = 0; i < n; i++) {
    struct cv_release release;
    cv_campaign_release(campaign, i, &release);
    cv_chain_release(&hash, &release, broker->config.digest);
  }
  return hash;
}

static struct cv_digest plans_hash_at(const struct cv_broker *broker, const struct cv_campaign *campaign, uint64_t n) {
  struct cv_digest hash = {0};
  for (uint64_t i = 0; i < n; i++) {
    cv_chain_plan(&hash, &campaign->plan[i], broker->config.digest);
  }
  return hash;
}

static bool differs(const struct cv_digest *a, const struct cv_digest *b) {
  return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) != 0;
}

static bool agrees(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_position *theirs) {
  if (theirs->releases > campaign->releases) {
    freeze(broker, campaign, "release", theirs->releases, campaign->releases);
    return false;
  }
  if (theirs->plans > campaign->plans) {
    freeze(broker, campaign, "accepted plan", theirs->plans, campaign->plans);
    return false;
  }
  struct cv_digest releases = releases_hash_at(broker, campaign, theirs->releases);
  if (differs(&releases, &theirs->releases_hash)) {
    freeze(broker, campaign, "other releases up to number", theirs->releases, campaign->releases);
    return false;
  }
  struct cv_digest plans = plans_hash_at(broker, campaign, theirs->plans);
  if (differs(&plans, &theirs->plans_hash)) {
    freeze(broker, campaign, "other plans up to number", theirs->plans, campaign->plans);
    return false;
  }
  return true;
}

static void on_opened(struct cv_broker *broker, const struct cv_rank_opened *opened) {
  struct cv_campaign *campaign = find_theirs(broker, opened->position.campaign);
  if (campaign == NULL || campaign->phase == CV_PHASE_ENDED || campaign->rank.opened || !campaign->rank.open_sent) {
    return;
  }
  if (opened->refused != NULL) {
    cv_broker_note(broker, NULL, "the third-party refused campaign %u \"%s\": %s", campaign->id, campaign->spec.name,
                   opened->refused);
    cv_campaign_end(broker, campaign, CV_END_REFUSED);
    return;
  }
  if (campaign->has_seed && campaign->seed != opened->seed) {
    freeze(broker, campaign, "another seed, at release", opened->position.releases, campaign->releases);
    return;
  }
  if (!agrees(broker, campaign, &opened->position)) {
    return;
  }
  if (!campaign->has_seed) {
    campaign->has_seed = true;
    campaign->seed = opened->seed;
    cv_campaign_mark(broker, campaign);
  }
  if (campaign->thirdparty[0] == '\0') {
    memcpy(campaign->thirdparty, broker->rank->identity.name, sizeof(campaign->thirdparty));
    cv_campaign_mark(broker, campaign);
  }
  if (campaign->phase == CV_PHASE_OPENING) {
    campaign->phase = CV_PHASE_RUNNING;
    campaign->active_ms = broker->now_ms;
    cv_campaign_mark(broker, campaign);
  }
  campaign->rank.opened = true;
  campaign->rank.releases = opened->position.releases;
  campaign->rank.plans = opened->position.plans;
  broker->said = true;
}

static bool takes_standings(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_standing *standing,
                            uint32_t n) {
  struct cv_why reason;
  if (cv_campaign_set_standings(broker, campaign, standing, n, &reason) == CV_OK) {
    return true;
  }
  cv_broker_note(broker, NULL, "campaign %u \"%s\": %s", campaign->id, campaign->spec.name, reason.text);
  freeze(broker, campaign, "standings that cannot be, after plan", campaign->plans, campaign->plans);
  return false;
}

static enum cv_err on_new_plan(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_rank_plan *plan,
                               struct cv_why *why) {
  struct cv_why reason;
  struct cv_rank_refused *refused = &campaign->rank.refused;
  if (cv_epoch_check(broker, campaign, &plan->plan, refused, &reason) == CV_OK) {
    CV_TRY(cv_epoch_open(broker, campaign, &plan->plan));
    campaign->rank.plans = campaign->plans;
    campaign->rank.accept_due = true;
    campaign->rank.accept = campaign->plans;
    return CV_OK;
  }
  refused->campaign = campaign->id;
  refused->plan = plan->plan.number;
  (void)snprintf(campaign->rank.refused_why, sizeof(campaign->rank.refused_why), "%.*s", CV_WHY_BYTES - 1, reason.text);
  campaign->rank.refuse_due = true;
  cv_refusals_add(&broker->figures.refusals, CV_REFUSED_PLAN);
  cv_broker_note(broker, NULL, "campaign %u \"%s\": plan %llu is refused: %s", campaign->id, campaign->spec.name,
                 (unsigned long long)plan->plan.number, reason.text);
  cv_campaign_stop(broker, campaign, refused->reason);
  campaign->rank.stop_sent = true; /* the refusal asks for the result */
  return CV_OK;
}

static enum cv_err on_plan(struct cv_broker *broker, const struct cv_rank_plan *plan, struct cv_why *why) {
  struct cv_campaign *campaign = find_theirs(broker, plan->campaign);
  if (has_ended(broker, plan->campaign)) {
    return CV_OK;
  }
  if (campaign == NULL) {
    return cv_fail(why, CV_ERR_STATE, "a plan for campaign %llu, which is not open",
                   (unsigned long long)plan->campaign);
  }
  broker->said = true;
  if (campaign->phase >= CV_PHASE_STOPPING) {
    return CV_OK; /* it crossed the stop */
  }
  if (!campaign->rank.opened) {
    freeze(broker, campaign, "before it has opened the campaign, plan", plan->plan.number, campaign->plans);
    return CV_OK;
  }
  if (plan->plan.number == 0 || plan->plan.number > campaign->plans + 1) {
    freeze(broker, campaign, "plan", plan->plan.number, campaign->plans);
    return CV_OK;
  }
  if (plan->plan.number == campaign->plans + 1) {
    if (campaign->open_arms > 0) {
      freeze(broker, campaign, "before the last plan is closed, plan", plan->plan.number, campaign->plans);
      return CV_OK;
    }
    if (!takes_standings(broker, campaign, plan->standing, plan->standings)) {
      return CV_OK;
    }
    return on_new_plan(broker, campaign, plan, why);
  }
  if (!cv_plan_asks_same(&plan->plan, &campaign->plan[plan->plan.number - 1])) {
    freeze(broker, campaign, "another plan of number", plan->plan.number, campaign->plans);
    return CV_OK;
  }
  campaign->rank.accept_due = true;
  campaign->rank.accept = plan->plan.number;
  return CV_OK;
}

/* The third-party is told that we have the result, if it ended; one that is forgotten was told so before. */
static enum cv_err let_go(struct cv_broker *broker, uint64_t id) {
  struct cv_ended *ended = cv_archive_find(&broker->archive, id);
  if (ended != NULL && has_opened(broker, ended->thirdparty)) {
    cv_archive_close(&broker->archive, ended);
    broker->said = true;
  }
  return CV_OK;
}

static enum cv_err on_result(struct cv_broker *broker, const struct cv_rank_result *result, struct cv_why *why) {
  struct cv_campaign *campaign = find_theirs(broker, result->campaign);
  if (has_ended(broker, result->campaign)) {
    return let_go(broker, result->campaign);
  }
  if (campaign == NULL) {
    return cv_fail(why, CV_ERR_STATE, "a result of campaign %llu, which is not open",
                   (unsigned long long)result->campaign);
  }
  if (campaign->phase == CV_PHASE_ENDED) {
    return let_go(broker, campaign->id);
  }
  if (!campaign->rank.opened) {
    freeze(broker, campaign, "before it has opened the campaign, a result after plan", campaign->plans,
           campaign->plans);
  } else if (campaign->phase == CV_PHASE_RUNNING && (result->reason != CV_END_COMPLETE || campaign->open_arms > 0)) {
    freeze(broker, campaign, "a result that was not asked for, after plan", campaign->plans, campaign->plans);
  } else if (takes_standings(broker, campaign, result->standing, result->standings)) {
    cv_campaign_end(broker, campaign, result->reason);
  }
  return let_go(broker, campaign->id);
}

static enum cv_err on_frame(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_rank_frame *frame,
                            struct cv_why *why) {
  if (conn != broker->rank) {
    return cv_fail(why, CV_ERR_STATE, "%s", conn->goodbye);
  }
  if (frame->goodbye != NULL) {
    cv_broker_note(broker, conn->who, "it closes: %s", frame->goodbye);
  }
  CV_TRY(cv_broker_greet(broker, conn, &frame->hello, why));
  if (frame->opens + frame->recorded + frame->releases + frame->accepted + frame->refused + frame->stops +
          frame->closed >
      0) {
    return cv_fail(why, CV_ERR_DENIED, "a message that only a broker may send");
  }
  for (size_t i = 0; i < frame->opened; i++) {
    on_opened(broker, &frame->answer[i]);
  }
  for (size_t i = 0; i < frame->acks; i++) {
    struct cv_campaign *campaign = find_theirs(broker, frame->ack[i].campaign);
    if (has_ended(broker, frame->ack[i].campaign)) {
      continue;
    }
    if (campaign == NULL) {
      return cv_fail(why, CV_ERR_STATE, "a release of campaign %llu is acknowledged, which is not open",
                     (unsigned long long)frame->ack[i].campaign);
    }
    if (campaign->phase != CV_PHASE_ENDED && frame->ack[i].number > campaign->releases) {
      freeze(broker, campaign, "release", frame->ack[i].number, campaign->releases);
    }
  }
  for (size_t i = 0; i < frame->plans; i++) {
    CV_TRY(on_plan(broker, &frame->plan[i], why));
  }
  for (size_t i = 0; i < frame->results; i++) {
    CV_TRY(on_result(broker, &frame->result[i], why));
  }
  return CV_OK;
}

enum cv_err cv_broker_on_rank(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_rank_frame *frame,
                              uint64_t now_ms, struct cv_why *why) {
  CV_TRY(cv_broker_unless_failed(broker, CV_OK, why));
  broker->now_ms = now_ms;
  return cv_broker_unless_failed(broker, on_frame(broker, conn, frame, why), why);
}

/* ---- what is said, once the batch is stored ---- */

static void fill_open(struct cv_campaign *campaign, struct cv_rank_frame *frame) {
  struct cv_rank_open *open = &frame->open[frame->opens++];
  *open = (struct cv_rank_open){
      .spec = campaign->spec,
      .position = {.campaign = campaign->id,
                   .releases = campaign->releases,
                   .plans = campaign->plans,
                   .releases_hash = campaign->releases_hash,
                   .plans_hash = campaign->plans_hash},
      .has_seed = campaign->has_seed,
      .seed = campaign->seed,
      .stop = campaign->phase == CV_PHASE_STOPPING ? campaign->end : CV_END_NONE,
  };
  open->spec.worker = NULL; /* who an arm is stays here */
  campaign->rank.open_sent = true;
  campaign->rank.stop_sent = campaign->phase == CV_PHASE_STOPPING; /* a stop from here on has to be told */
}

/* Plans before the releases that belong to them, each in order; what does not fit follows in the next frame. */
static void fill_history(struct cv_campaign *campaign, struct cv_rank_frame *frame) {
  while (campaign->rank.plans < campaign->plans && frame->recorded < PLANS_A_FRAME) {
    frame->record[frame->recorded++] =
        (struct cv_rank_plan){.campaign = campaign->id, .plan = campaign->plan[campaign->rank.plans++]};
  }
  while (campaign->rank.releases < campaign->releases && frame->releases < RELEASES_A_FRAME &&
         campaign->release[campaign->rank.releases].plan <= campaign->rank.plans) {
    struct cv_rank_release *release = &frame->release[frame->releases++];
    release->campaign = campaign->id;
    cv_campaign_release(campaign, campaign->rank.releases++, &release->release);
  }
}

static bool is_behind(const struct cv_campaign *campaign) {
  return campaign->rank.plans < campaign->plans || campaign->rank.releases < campaign->releases;
}

static void fill_numbers(struct cv_campaign *campaign, struct cv_rank_frame *frame) {
  if (campaign->rank.accept_due && frame->accepted < NUMBERS_A_FRAME) {
    campaign->rank.accept_due = false;
    frame->accept[frame->accepted++] =
        (struct cv_rank_number){.campaign = campaign->id, .number = campaign->rank.accept};
  }
  if (campaign->rank.refuse_due && frame->refused < NUMBERS_A_FRAME) {
    campaign->rank.refuse_due = false;
    struct cv_rank_refused *refused = &frame->refuse[frame->refused++];
    *refused = campaign->rank.refused;
    refused->why = campaign->rank.refused_why;
  }
  if (campaign->phase == CV_PHASE_STOPPING && campaign->rank.opened && !campaign->rank.stop_sent &&
      !is_behind(campaign) && frame->stops < NUMBERS_A_FRAME) {
    campaign->rank.stop_sent = true;
    frame->stop[frame->stops++] = (struct cv_rank_stop){.campaign = campaign->id, .reason = campaign->end};
  }
}

static void fill_closed(struct cv_broker *broker, struct cv_rank_frame *frame) {
  struct cv_ended *ended = NULL;
  while (frame->closed < NUMBERS_A_FRAME && (ended = cv_archive_take_closing(&broker->archive)) != NULL) {
    frame->close[frame->closed++] = ended->id;
  }
  broker->said = broker->said || broker->archive.closing != NULL;
}

/* Campaigns that a recovery found forgotten get no result: the third-party lets go of them. */
static void fill_forgotten(struct cv_broker *broker, struct cv_rank_frame *frame) {
  uint64_t last = broker->recoveries > 0 && broker->rank->greeted ? broker->recovery.last : 0;
  while (broker->forgotten_next <= last && frame->closed < NUMBERS_A_FRAME) {
    frame->close[frame->closed++] = broker->forgotten_next++;
  }
  broker->said = broker->said || broker->forgotten_next <= last;
}

static enum cv_err make_frame(struct cv_broker *broker) {
  struct cv_arena *arena = &broker->rank_arena;
  struct cv_rank_frame *frame = &broker->rank_frame;
  cv_arena_reset(arena);
  *frame = (struct cv_rank_frame){
      .open = cv_arena_array(arena, OPENS_A_FRAME, sizeof(*frame->open)),
      .record = cv_arena_array(arena, PLANS_A_FRAME, sizeof(*frame->record)),
      .release = cv_arena_array(arena, RELEASES_A_FRAME, sizeof(*frame->release)),
      .accept = cv_arena_array(arena, NUMBERS_A_FRAME, sizeof(*frame->accept)),
      .refuse = cv_arena_array(arena, NUMBERS_A_FRAME, sizeof(*frame->refuse)),
      .stop = cv_arena_array(arena, NUMBERS_A_FRAME, sizeof(*frame->stop)),
      .close = cv_arena_array(arena, NUMBERS_A_FRAME, sizeof(*frame->close)),
  };
  return frame->close == NULL ? CV_ERR_NOMEM : CV_OK;
}

enum cv_err cv_rank_fill(struct cv_broker *broker) {
  struct cv_rank_frame *frame = &broker->rank_frame;
  broker->rank_ready = false;
  if (broker->rank == NULL) {
    return CV_OK;
  }
  CV_TRY(make_frame(broker));
  struct cv_broker_conn *conn = broker->rank;
  frame->hello = cv_broker_hello(conn);
  for (struct cv_campaign *campaign = conn->greeted && !conn->held ? broker->open : NULL; campaign != NULL;
       campaign = campaign->next_open) {
    if (!is_theirs(broker, campaign)) {
      continue;
    }
    if (!campaign->rank.open_sent && frame->opens < OPENS_A_FRAME) {
      fill_open(campaign, frame);
    }
    if (campaign->rank.opened) {
      fill_history(campaign, frame);
    }
    fill_numbers(campaign, frame);
    bool more = !campaign->rank.open_sent || (campaign->rank.opened && is_behind(campaign));
    broker->said = broker->said || more;
  }
  fill_closed(broker, frame);
  fill_forgotten(broker, frame);
  broker->rank_ready = frame->hello.present || frame->opens + frame->recorded + frame->releases + frame->accepted +
                                                       frame->refused + frame->stops + frame->closed >
                                                   0;
  return CV_OK;
}
