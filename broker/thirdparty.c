/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third-party's connection: opens campaigns, compares positions, sends releases in order, accepts or refuses plans
 * (docs/protocol.md). If the third-party knows more than this broker, or something different, the broker freezes the
 * campaign.
 */
#include "broker/thirdparty.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/cobroker.h"
#include "broker/conn.h"
#include "broker/ending.h"
#include "broker/epoch.h"
#include "broker/plan.h"
#include "broker/state.h"
#include "broker/talk.h"
#include "broker/two.h"
#include "proto/codec/chain.h"

/* With 4096 arms an Open, which has their names, or a plan fills a good part of a frame; the rest is small. */
enum {
  OPENS_A_FRAME = 1,
  PLANS_A_FRAME = 2,
  RELEASES_A_FRAME = 256,
  NUMBERS_A_FRAME = 64,
  FORGOTTEN_MAX = 4096,
  FRAME_ARENA_BYTES = 512 * 1024
};

struct cv_broker_thirdparty *cv_broker_thirdparty_new(void) {
  struct cv_broker_thirdparty *thirdparty = calloc(1, sizeof(*thirdparty));
  if (thirdparty != NULL && cv_arena_init(&thirdparty->arena, FRAME_ARENA_BYTES) != CV_OK) {
    free(thirdparty);
    return NULL;
  }
  return thirdparty;
}

void cv_broker_thirdparty_free(struct cv_broker_thirdparty *thirdparty) {
  if (thirdparty != NULL) {
    cv_arena_fini(&thirdparty->arena);
    free(thirdparty);
  }
}

/* Freezes one campaign, because the third-party's history contradicts the broker's; other campaigns go on. */
static void freeze(struct cv_broker *broker, struct cv_broker_campaign *campaign, const char *what, uint64_t theirs,
                   uint64_t ours) {
  cv_refusals_add(&broker->figures.refusals, CV_REFUSED_HISTORY);
  struct cv_why why; /* for the requester */
  (void)cv_fail(&why, CV_ERR_STATE, "the third-party %s reports %s %llu, the broker has %llu",
                broker->rank->identity.name, what, (unsigned long long)theirs, (unsigned long long)ours);
  cv_broker_note_refused(broker, NULL, campaign, CV_REFUSED_HISTORY,
                         " is frozen: %s; if this broker's state was restored from an older copy, stop the broker and "
                         "run crowdveil recover",
                         why.text);
  cv_broker_campaign_end(broker, campaign, CV_END_FROZEN, why.text);
}

/* Whether the connected third-party is the named one, or nobody has been named yet. */
static bool has_opened(const struct cv_broker *broker, const char *thirdparty) {
  return cv_broker_campaign_stays_with(thirdparty, broker->rank->identity.name);
}

static bool is_theirs(const struct cv_broker *broker, const struct cv_broker_campaign *campaign) {
  return has_opened(broker, campaign->thirdparty);
}

/* The campaign that a message is about; NULL if there is none, or if it belongs to another third-party. */
static struct cv_broker_campaign *find_theirs(struct cv_broker *broker, uint64_t id) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  return campaign == NULL || !is_theirs(broker, campaign) ? NULL : campaign;
}

void cv_broker_thirdparty_leave(struct cv_broker *broker) {
  if (broker->rank != NULL) {
    broker->rank->thirdparty->ready = false; /* a prepared frame must not be sent to a replaced connection */
  }
  broker->rank = NULL;
  cv_archive_close_none(&broker->archive);
  for (struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    /* Positions are per connection: the next one opens and compares every campaign again. */
    memset(&campaign->rank, 0, sizeof(campaign->rank));
    campaign->progressed = true;
  }
}

void cv_broker_thirdparty_join(struct cv_broker *broker, struct cv_broker_conn *conn) {
  cv_broker_thirdparty_leave(broker);
  broker->rank = conn;
  broker->said = true;
  /* Lost campaigns of the last recovery are closed again on each connection, at most the last FORGOTTEN_MAX. */
  uint64_t first = broker->recovery.first;
  uint64_t recent = broker->recovery.last > FORGOTTEN_MAX ? broker->recovery.last - FORGOTTEN_MAX : 0;
  broker->forgotten_next = first > recent ? first : recent + 1;
  for (const struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    const char *awaited = cv_broker_campaign_awaited(broker, campaign);
    if (awaited != NULL) {
      cv_broker_note(broker, conn->who, campaign, " waits for thirdparty/%s, which opened it", awaited);
    }
  }
  /* A Closed message may have been lost with the last connection: recent ones are sent again. */
  for (struct cv_ended *ended = broker->archive.all; ended != NULL; ended = ended->hh.next) {
    bool is_recent = ended->id + NUMBERS_A_FRAME > broker->totals.campaigns;
    if (has_opened(broker, ended->thirdparty) && (is_recent || ended->progress.end == CV_END_RECOVERED)) {
      cv_archive_close(&broker->archive, ended);
    }
  }
}

/* Whether the campaign has ended and was freed. Messages about it may still arrive, sent before its end was known. */
static bool has_ended(struct cv_broker *broker, uint64_t id) {
  return id > 0 && id <= broker->totals.campaigns && cv_broker_campaign_find(broker, id) == NULL;
}

/* The chain's hash after `n` records, recomputed from the start; needed only after a reconnect. */
static struct cv_digest releases_hash_at(const struct cv_broker *broker, const struct cv_broker_campaign *campaign,
                                         uint64_t n) {
  struct cv_digest hash = {0};
  for (uint64_t i = 0; i < n; i++) {
    struct cv_release release;
    cv_broker_campaign_release(campaign, i, &release);
    cv_chain_release(&hash, &release, broker->config.digest);
  }
  return hash;
}

static enum cv_err plans_hash_at(const struct cv_broker *broker, const struct cv_broker_campaign *campaign, uint64_t n,
                                 struct cv_digest *ret) {
  *ret = (struct cv_digest){0};
  for (uint64_t i = 0; i < n; i++) {
    CV_TRY(cv_chain_plan(ret, &campaign->plan[i], broker->config.digest));
  }
  return CV_OK;
}

static bool differs(const struct cv_digest *a, const struct cv_digest *b) {
  return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) != 0;
}

/* Whether the third-party's position is a prefix of the campaign's history; freezes the campaign if it is not. */
static enum cv_err compare(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                           const struct cv_position *theirs, bool *ret_agrees) {
  *ret_agrees = false;
  /* Counts before hashes: only a history of which this broker has every record can be hashed. */
  if (theirs->releases > campaign->releases) {
    freeze(broker, campaign, "release", theirs->releases, campaign->releases);
    return CV_OK;
  }
  if (theirs->plans > campaign->plans) {
    freeze(broker, campaign, "accepted plan", theirs->plans, campaign->plans);
    return CV_OK;
  }
  struct cv_digest releases = releases_hash_at(broker, campaign, theirs->releases);
  if (differs(&releases, &theirs->releases_hash)) {
    freeze(broker, campaign, "different releases up to number", theirs->releases, campaign->releases);
    return CV_OK;
  }
  struct cv_digest plans;
  CV_TRY(plans_hash_at(broker, campaign, theirs->plans, &plans));
  if (differs(&plans, &theirs->plans_hash)) {
    freeze(broker, campaign, "different plans up to number", theirs->plans, campaign->plans);
    return CV_OK;
  }
  *ret_agrees = true;
  return CV_OK;
}

void cv_broker_thirdparty_close(struct cv_broker *broker, uint64_t id) {
  struct cv_ended *ended = cv_archive_find(&broker->archive, id);
  if (broker->rank != NULL && ended != NULL && has_opened(broker, ended->thirdparty)) {
    cv_archive_close(&broker->archive, ended);
    broker->said = true;
  }
}

/* Closes an ended campaign at the third-party: the broker has its result. Does nothing for a forgotten campaign. */
static enum cv_err let_go(struct cv_broker *broker, uint64_t id) {
  cv_broker_thirdparty_close(broker, id);
  return CV_OK;
}

/* The third-party has opened a campaign or refused it. Its position decides what is sent next. */
static enum cv_err on_opened(struct cv_broker *broker, const struct cv_rank_opened *opened) {
  struct cv_broker_campaign *campaign = find_theirs(broker, opened->position.campaign);
  /* An answer that this connection did not ask for, or a second one, must not move the position. */
  if (campaign == NULL || campaign->phase == CV_PHASE_ENDED || !campaign->rank.open_sent ||
      (campaign->rank.opened && opened->refused == NULL)) {
    return CV_OK;
  }
  /* Also of one that it has opened: its policy may have failed. */
  if (opened->refused != NULL) {
    bool was_opened = campaign->rank.opened;
    cv_broker_note(broker, NULL, campaign, ": refused by the third-party: %s", opened->refused);
    struct cv_why why;
    (void)cv_fail(&why, CV_ERR_DENIED, "third-party: %s", opened->refused);
    cv_broker_campaign_end(broker, campaign, CV_END_REFUSED, why.text);
    return was_opened ? let_go(broker, opened->position.campaign) : CV_OK;
  }
  /* With another seed the policy would take other decisions on the same releases: the stored ones could not be
   * replayed. */
  if (campaign->has_seed && campaign->seed != opened->seed) {
    freeze(broker, campaign, "a different seed, at release", opened->position.releases, campaign->releases);
    return CV_OK;
  }
  bool agrees;
  CV_TRY(compare(broker, campaign, &opened->position, &agrees));
  if (!agrees) {
    return CV_OK;
  }
  /* The first answer fixes the campaign's seed and its third-party for good. */
  if (!campaign->has_seed) {
    campaign->has_seed = true;
    campaign->seed = opened->seed;
    cv_broker_campaign_mark(broker, campaign);
  }
  if (campaign->thirdparty[0] == '\0') {
    memcpy(campaign->thirdparty, broker->rank->identity.name, sizeof(campaign->thirdparty));
    cv_broker_campaign_mark(broker, campaign);
  }
  if (campaign->phase == CV_PHASE_OPENING && (campaign->two == NULL || campaign->two->is_known)) {
    campaign->phase = CV_PHASE_RUNNING;
    campaign->active_ms = broker->now_ms;
    cv_broker_campaign_mark(broker, campaign);
  }
  campaign->rank.opened = true;
  campaign->rank.releases = opened->position.releases;
  campaign->rank.plans = opened->position.plans;
  broker->said = true;
  return CV_OK;
}

/* Takes over the standings; freezes the campaign if they are invalid. */
static bool takes_standings(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                            const struct cv_standing *standing, uint32_t n) {
  struct cv_why reason;
  if (cv_broker_campaign_set_standings(broker, campaign, standing, n, &reason) == CV_OK) {
    return true;
  }
  cv_broker_note(broker, NULL, campaign, ": %s", reason.text);
  freeze(broker, campaign, "impossible standings, after plan", campaign->plans, campaign->plans);
  return false;
}

enum cv_err cv_broker_thirdparty_accept(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                        const struct cv_plan *plan) {
  CV_TRY(cv_epoch_open(broker, campaign, plan));
  campaign->rank.plans = campaign->plans;
  campaign->rank.accept_due = true;
  campaign->rank.accept = campaign->plans;
  cv_broker_debug(broker, campaign, ": plan %llu accepted, for %u arms", (unsigned long long)plan->number, plan->wants);
  return CV_OK;
}

void cv_broker_thirdparty_refuse(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                 const struct cv_rank_refused *refused, const char *why) {
  cv_refusals_add(&broker->figures.refusals, CV_REFUSED_PLAN);
  cv_broker_note_refused(broker, NULL, campaign, CV_REFUSED_PLAN, ": plan %llu refused: %s",
                         (unsigned long long)refused->plan, why);
  /* A refused plan ends the campaign: the third-party cannot go on without it. */
  struct cv_why told; /* to the requester */
  (void)cv_fail(&told, CV_ERR_DENIED, "plan %llu: %s", (unsigned long long)refused->plan, why);
  cv_broker_campaign_stop(broker, campaign, refused->reason, told.text);
  if (!campaign->rank.opened) {
    return; /* not connected: the next connection gets the stop */
  }
  campaign->rank.refused = *refused;
  campaign->rank.refused.campaign = campaign->id;
  (void)snprintf(campaign->rank.refused_why, sizeof(campaign->rank.refused_why), "%.*s", CV_WHY_BYTES - 1, why);
  campaign->rank.refuse_due = true;
  campaign->rank.stop_sent = true; /* the refusal itself requests the result */
}

/* Accepts the campaign's next plan, or refuses it; with two brokers the co-broker decides first. */
static enum cv_err on_new_plan(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                               const struct cv_plan *plan) {
  struct cv_why reason;
  struct cv_rank_refused refused = {.plan = plan->number};
  if (cv_broker_plan_check(campaign, plan, &refused, &reason) != CV_OK) {
    cv_broker_thirdparty_refuse(broker, campaign, &refused, reason.text);
    return CV_OK;
  }
  return campaign->two == NULL ? cv_broker_thirdparty_accept(broker, campaign, plan)
                               : cv_broker_cobroker_plan(broker, campaign, plan);
}

/* Whether all releases of the last plan are made. */
static bool is_released(const struct cv_broker_campaign *campaign) {
  return campaign->open_arms == 0 && (campaign->two == NULL || campaign->two->closings == 0);
}

/* A plan: the next one, or a repetition of an earlier one. Anything else contradicts the broker's history. */
static enum cv_err on_plan(struct cv_broker *broker, const struct cv_rank_plan *plan, struct cv_why *why) {
  struct cv_broker_campaign *campaign = find_theirs(broker, plan->campaign);
  if (has_ended(broker, plan->campaign)) {
    return CV_OK;
  }
  if (campaign == NULL) {
    return cv_fail(why, CV_ERR_STATE, "plan for campaign %llu; expected a campaign that is open",
                   (unsigned long long)plan->campaign);
  }
  broker->said = true;
  if (campaign->phase >= CV_PHASE_STOPPING) {
    return CV_OK; /* sent before the stop was received */
  }
  if (!campaign->rank.opened) {
    freeze(broker, campaign, "before opening the campaign, plan", plan->plan.number, campaign->plans);
    return CV_OK;
  }
  if (plan->plan.number == 0 || plan->plan.number > campaign->plans + 1) {
    freeze(broker, campaign, "plan", plan->plan.number, campaign->plans);
    return CV_OK;
  }
  if (plan->plan.number == campaign->plans + 1) {
    if (!is_released(campaign)) {
      /* The next plan may depend on all releases of the previous one, so it must not arrive before they are made. */
      freeze(broker, campaign, "before the last plan was closed, plan", plan->plan.number, campaign->plans);
      return CV_OK;
    }
    if (!takes_standings(broker, campaign, plan->standing, plan->standings)) {
      return CV_OK;
    }
    return on_new_plan(broker, campaign, &plan->plan);
  }
  if (!cv_plan_asks_same(&plan->plan, &campaign->plan[plan->plan.number - 1])) {
    /* A repeated plan is accepted again if it is the same; its acceptance may have been lost with a connection. */
    freeze(broker, campaign, "a different plan of number", plan->plan.number, campaign->plans);
    return CV_OK;
  }
  campaign->rank.accept_due = true;
  campaign->rank.accept = plan->plan.number;
  return CV_OK;
}

/* A result ends the campaign; a repeated result is answered with another Closed message. */
static enum cv_err on_result(struct cv_broker *broker, const struct cv_rank_result *result, struct cv_why *why) {
  struct cv_broker_campaign *campaign = find_theirs(broker, result->campaign);
  if (has_ended(broker, result->campaign)) {
    return let_go(broker, result->campaign);
  }
  if (campaign == NULL) {
    return cv_fail(why, CV_ERR_STATE, "result of campaign %llu; expected a campaign that is open",
                   (unsigned long long)result->campaign);
  }
  if (campaign->phase == CV_PHASE_ENDED) {
    return let_go(broker, campaign->id);
  }
  /* While the campaign runs, only a complete result is expected, or one for want of data, which need not wait for the
   * other arms of the plan; any other one answers a stop. */
  bool is_for_want = result->reason == CV_END_USED_UP && campaign->spent_arms > 0;
  if (!campaign->rank.opened) {
    freeze(broker, campaign, "before opening the campaign, a result after plan", campaign->plans, campaign->plans);
  } else if (campaign->phase < CV_PHASE_STOPPING && !is_for_want &&
             (result->reason != CV_END_COMPLETE || !is_released(campaign))) {
    freeze(broker, campaign, "an unrequested result, after plan", campaign->plans, campaign->plans);
  } else if (takes_standings(broker, campaign, result->standing, result->standings)) {
    cv_broker_campaign_end(broker, campaign, result->reason, NULL);
  }
  return let_go(broker, campaign->id);
}

enum cv_err cv_broker_thirdparty_frame(struct cv_broker *broker, struct cv_broker_conn *conn,
                                       const struct cv_rank_frame *frame, struct cv_why *why) {
  if (conn != broker->rank) {
    return cv_fail(why, CV_ERR_STATE, "%s", conn->goodbye);
  }
  if (frame->goodbye != NULL) {
    cv_broker_note(broker, conn->who, NULL, "goodbye received: %s", frame->goodbye);
  }
  CV_TRY(cv_broker_greet(broker, conn, &frame->hello, why));
  if (frame->opens + frame->recorded + frame->releases + frame->accepted + frame->refused + frame->stops +
          frame->closed >
      0) {
    return cv_fail(why, CV_ERR_DENIED, "unexpected message; only a broker may send it");
  }
  /* Openings first: the other messages of the frame are about campaigns that are open on this connection. */
  for (size_t i = 0; i < frame->opened; i++) {
    CV_TRY(on_opened(broker, &frame->answer[i]));
  }
  for (size_t i = 0; i < frame->acks; i++) {
    struct cv_broker_campaign *campaign = find_theirs(broker, frame->ack[i].campaign);
    if (has_ended(broker, frame->ack[i].campaign)) {
      continue;
    }
    if (campaign == NULL) {
      return cv_fail(why, CV_ERR_STATE, "acknowledgement for campaign %llu; expected a campaign that is open",
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

/* ---- frames to the third-party, sent after the batch is stored ---- */

/* Opens the campaign on this connection, with the broker's position for comparison. */
static void fill_open(struct cv_broker_campaign *campaign, struct cv_rank_frame *frame) {
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
  open->spec.worker = NULL; /* which worker an arm is must not leave the broker */
  campaign->rank.open_sent = true;
  campaign->rank.stop_sent = campaign->phase == CV_PHASE_STOPPING; /* a later stop needs its own message */
}

/* Plans before their releases, each in order; what does not fit follows in the next frame. */
static void fill_history(struct cv_broker_campaign *campaign, struct cv_rank_frame *frame) {
  while (campaign->rank.plans < campaign->plans && frame->recorded < PLANS_A_FRAME) {
    frame->record[frame->recorded++] =
        (struct cv_rank_plan){.campaign = campaign->id, .plan = campaign->plan[campaign->rank.plans++]};
  }
  while (campaign->rank.releases < campaign->releases && frame->releases < RELEASES_A_FRAME &&
         campaign->release[campaign->rank.releases].plan <= campaign->rank.plans) {
    struct cv_rank_release *release = &frame->release[frame->releases++];
    release->campaign = campaign->id;
    cv_broker_campaign_release(campaign, campaign->rank.releases++, &release->release);
  }
}

/* Whether plans or releases remain to be sent. */
static bool is_behind(const struct cv_broker_campaign *campaign) {
  return campaign->rank.plans < campaign->plans || campaign->rank.releases < campaign->releases;
}

static void fill_numbers(struct cv_broker_campaign *campaign, struct cv_rank_frame *frame) {
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
  /* A stop requests the result, so it is sent only after the whole history. */
  if (campaign->phase == CV_PHASE_STOPPING && campaign->rank.opened && !campaign->rank.stop_sent &&
      !is_behind(campaign) && frame->stops < NUMBERS_A_FRAME) {
    campaign->rank.stop_sent = true;
    frame->stop[frame->stops++] = (struct cv_rank_stop){.campaign = campaign->id, .reason = campaign->end};
  }
}

/* Closes ended campaigns, as many as fit into the frame. */
static void fill_closed(struct cv_broker *broker, struct cv_rank_frame *frame) {
  struct cv_ended *ended = NULL;
  while (frame->closed < NUMBERS_A_FRAME && (ended = cv_archive_take_closing(&broker->archive)) != NULL) {
    frame->close[frame->closed++] = ended->id;
  }
  broker->said = broker->said || broker->archive.closing != NULL;
}

/* Closes campaigns that a recovery declared lost: the third-party gets no more messages about them. */
static void fill_forgotten(struct cv_broker *broker, struct cv_rank_frame *frame) {
  uint64_t last = broker->recoveries > 0 && broker->rank->greeted ? broker->recovery.last : 0;
  while (broker->forgotten_next <= last && frame->closed < NUMBERS_A_FRAME) {
    frame->close[frame->closed++] = broker->forgotten_next++;
  }
  broker->said = broker->said || broker->forgotten_next <= last;
}

/* An empty frame whose arrays have room for the largest numbers of messages per frame. */
static enum cv_err make_frame(struct cv_broker_thirdparty *thirdparty) {
  struct cv_arena *arena = &thirdparty->arena;
  struct cv_rank_frame *frame = &thirdparty->frame;
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

enum cv_err cv_broker_thirdparty_fill(struct cv_broker *broker) {
  struct cv_broker_conn *conn = broker->rank;
  if (conn == NULL) {
    return CV_OK;
  }
  struct cv_rank_frame *frame = &conn->thirdparty->frame;
  conn->thirdparty->ready = false;
  CV_TRY(make_frame(conn->thirdparty));
  frame->hello = cv_broker_hello(conn);
  frame->hello.term = broker->config.term;
  /* Under back-pressure (held) campaigns wait: positions advance only when a frame is filled, so nothing is skipped. */
  for (struct cv_broker_campaign *campaign = conn->greeted && !conn->held ? broker->open : NULL; campaign != NULL;
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
    /* Numbers after the history that they refer to. `more` schedules another flush for what did not fit. */
    fill_numbers(campaign, frame);
    bool more = !campaign->rank.open_sent || (campaign->rank.opened && is_behind(campaign));
    broker->said = broker->said || more;
  }
  fill_closed(broker, frame);
  fill_forgotten(broker, frame);
  conn->thirdparty->ready = frame->hello.present || frame->opens + frame->recorded + frame->releases + frame->accepted +
                                                            frame->refused + frame->stops + frame->closed >
                                                        0;
  return CV_OK;
}
