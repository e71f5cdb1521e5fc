/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The co-broker's connection: opens campaigns, compares positions, sends plans, batches and closings in order, takes
 * verdicts and halves (docs/protocol.md). If the co-broker knows more than this broker, has lost what it knew, or says
 * something else than it was asked, the broker freezes the campaign.
 */
#include "broker/cobroker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/admission.h"
#include "broker/conn.h"
#include "broker/ending.h"
#include "broker/epoch.h"
#include "broker/sharing.h"
#include "broker/state.h"
#include "broker/talk.h"
#include "broker/thirdparty.h"
#include "broker/two.h"
#include "common/base/fingerprint.h"
#include "common/prio/field.h"
#include "proto/codec/chain.h"

/* An Open has the names of all arms, and a plan may have as many wants. */
enum {
  OPENS_A_FRAME = 1,
  PLANS_A_FRAME = 2,
  BATCHES_A_FRAME = 4,
  NUMBERS_A_FRAME = 256,
  FRAME_ARENA_BYTES = BATCHES_A_FRAME * CV_BATCH_TOKENS * (int)sizeof(struct cv_share_pending) +
                      PLANS_A_FRAME * CV_ARMS_MAX * (int)sizeof(struct cv_want) + 256 * 1024
};

struct cv_broker_cobroker *cv_broker_cobroker_new(void) {
  struct cv_broker_cobroker *cobroker = calloc(1, sizeof(*cobroker));
  if (cobroker != NULL && cv_arena_init(&cobroker->arena, FRAME_ARENA_BYTES) != CV_OK) {
    free(cobroker);
    return NULL;
  }
  return cobroker;
}

void cv_broker_cobroker_free(struct cv_broker_cobroker *cobroker) {
  if (cobroker != NULL) {
    cv_arena_fini(&cobroker->arena);
    free(cobroker);
  }
}

enum cv_err cv_broker_cobroker_check(const struct cv_broker *broker, const struct cv_identity *identity,
                                     struct cv_why *why) {
  return cv_digest_is_same(&identity->key, &broker->config.duo.cobroker)
             ? CV_OK
             : cv_fail(why, CV_ERR_DENIED, "co-broker %s has the key %s; expected %s (cobroker_key)", identity->name,
                       cv_fingerprint_of(&identity->key).text, cv_fingerprint_of(&broker->config.duo.cobroker).text);
}

/* ---- ends that the co-broker causes ---- */

/* Ends one campaign at once, at the third-party as well; other campaigns go on. */
static void end_frozen(struct cv_broker *broker, struct cv_broker_campaign *campaign, const char *why) {
  cv_refusals_add(&broker->figures.refusals, CV_REFUSED_HISTORY);
  cv_broker_campaign_end(broker, campaign, CV_END_FROZEN, why);
  cv_broker_thirdparty_close(broker, campaign->id);
}

/* The co-broker's history contradicts the broker's. */
static void freeze(struct cv_broker *broker, struct cv_broker_campaign *campaign, const char *what, uint64_t theirs,
                   uint64_t ours) {
  struct cv_why why; /* for the requester */
  (void)cv_fail(&why, CV_ERR_STATE, "the co-broker %s reports %s %llu, the broker has %llu",
                broker->cobroker->identity.name, what, (unsigned long long)theirs, (unsigned long long)ours);
  cv_broker_note_refused(
      broker, NULL, campaign, CV_REFUSED_HISTORY,
      " is frozen: %s; if the state of one of them was restored from an older copy, stop it and run crowdveil recover",
      why.text);
  end_frozen(broker, campaign, why.text);
}

/* The co-broker says something that no honest one does. */
static void accuse(struct cv_broker *broker, struct cv_broker_campaign *campaign, const char *what) {
  struct cv_why why; /* for the requester */
  (void)cv_fail(&why, CV_ERR_STATE, "the co-broker %s sends %s", broker->cobroker->identity.name, what);
  cv_broker_note_refused(broker, NULL, campaign, CV_REFUSED_HISTORY, " is frozen: %s", why.text);
  end_frozen(broker, campaign, why.text);
}

/* ---- connections ---- */

void cv_broker_cobroker_leave(struct cv_broker *broker) {
  if (broker->cobroker != NULL) {
    broker->cobroker->cobroker->ready = false; /* a prepared frame must not be sent to a replaced connection */
  }
  broker->cobroker = NULL;
  for (struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    if (campaign->two != NULL) {
      memset(&campaign->two->link, 0, sizeof(campaign->two->link));
      campaign->progressed = true;
    }
  }
}

void cv_broker_cobroker_end_strangers(struct cv_broker *broker) {
  for (struct cv_broker_campaign *campaign = broker->open, *next; campaign != NULL; campaign = next) {
    next = campaign->next_open; /* freezing removes the campaign from the list */
    if (campaign->two != NULL && campaign->phase < CV_PHASE_STOPPING && !cv_two_is_ours(broker, campaign)) {
      static const char why[] = "it belongs to another pair of keys; the broker or its co-broker has a new one";
      cv_broker_note_refused(broker, NULL, campaign, CV_REFUSED_HISTORY, " is frozen: %s", why);
      end_frozen(broker, campaign, why);
    }
  }
}

void cv_broker_cobroker_join(struct cv_broker *broker, struct cv_broker_conn *conn) {
  cv_broker_cobroker_leave(broker);
  broker->cobroker = conn;
  broker->said = broker->overs_due = true;
  cv_broker_cobroker_end_strangers(broker);
  for (struct cv_ended *ended = broker->archive.all; ended != NULL; ended = ended->hh.next) {
    ended->over_sent = false;
  }
}

/* ---- frames from the co-broker ---- */

/* The campaign that a message is about, if it still runs; NULL otherwise: the message crossed the campaign's end. */
static struct cv_broker_campaign *find(struct cv_broker *broker, uint64_t id) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  bool runs = campaign != NULL && campaign->two != NULL && campaign->phase < CV_PHASE_STOPPING;
  return runs ? campaign : NULL;
}

/* The same for what only follows an Opened: on this connection nothing else may come before it. */
static struct cv_broker_campaign *find_opened(struct cv_broker *broker, uint64_t id, const char *what) {
  struct cv_broker_campaign *campaign = find(broker, id);
  if (campaign != NULL && !campaign->two->link.opened) {
    accuse(broker, campaign, what);
    return NULL;
  }
  return campaign;
}

/* Whether the plan that waits is the one that the co-broker has opened already; freezes the campaign if not. */
static enum cv_err match_ahead(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                               const struct cv_plan *plan, bool *ret_agrees) {
  const struct cv_broker_two *two = campaign->two;
  struct cv_digest hash = campaign->plans_hash;
  CV_TRY(cv_chain_plan(&hash, plan, broker->config.digest));
  *ret_agrees = !two->link.is_ahead || cv_digest_is_same(&hash, &two->link.ahead_hash);
  if (!*ret_agrees) {
    freeze(broker, campaign, "a different plan of number", plan->number, plan->number);
  }
  return CV_OK;
}

/* Whether the co-broker has the same plans, or one more: the next one, which this broker did not store before it was
 * cut off. */
static enum cv_err compare_plans(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                 const struct cv_share_position *theirs, bool *ret_agrees) {
  struct cv_broker_two *two = campaign->two;
  bool is_closed = campaign->open_arms == 0 && two->closings == 0;
  *ret_agrees = false;
  if (theirs->plans == campaign->plans + 1 && is_closed) {
    two->link.is_ahead = true;
    two->link.ahead_hash = theirs->plans_hash;
    *ret_agrees = true;
    return two->plan.wants == 0 ? CV_OK : match_ahead(broker, campaign, &two->plan, ret_agrees);
  }
  if (theirs->plans != campaign->plans) {
    freeze(broker, campaign, "plan", theirs->plans, campaign->plans);
    return CV_OK;
  }
  *ret_agrees = cv_digest_is_same(&theirs->plans_hash, &campaign->plans_hash);
  if (!*ret_agrees) {
    freeze(broker, campaign, "different plans up to number", theirs->plans, campaign->plans);
  }
  return CV_OK;
}

/* Whether the co-broker's position is one that this broker's history can have led to. It has at least what it has
 * answered, and at most what it was sent. */
static enum cv_err compare(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                           const struct cv_share_position *theirs, bool *ret_agrees) {
  const struct cv_broker_two *two = campaign->two;
  CV_TRY(compare_plans(broker, campaign, theirs, ret_agrees));
  if (!*ret_agrees) {
    return CV_OK;
  }
  *ret_agrees = false;
  const struct cv_digest *batches = cv_docket_hash_at(&two->docket, theirs->batches);
  if (batches == NULL) {
    freeze(broker, campaign, "batch", theirs->batches, cv_docket_last(&two->docket));
    return CV_OK;
  }
  const struct cv_digest *closings = cv_two_hash_at(campaign, theirs->closings);
  if (closings == NULL) {
    freeze(broker, campaign, "closing", theirs->closings, cv_two_closed(campaign));
    return CV_OK;
  }
  if (!cv_digest_is_same(batches, &theirs->batches_hash)) {
    freeze(broker, campaign, "different batches up to number", theirs->batches, theirs->batches);
    return CV_OK;
  }
  if (!cv_digest_is_same(closings, &theirs->closings_hash)) {
    freeze(broker, campaign, "different closings up to number", theirs->closings, theirs->closings);
    return CV_OK;
  }
  *ret_agrees = true;
  return CV_OK;
}

/* The co-broker has opened a campaign or refused it. Its position decides what is sent next. */
static enum cv_err on_opened(struct cv_broker *broker, const struct cv_share_opened *opened) {
  struct cv_broker_campaign *campaign = find(broker, opened->position.campaign);
  /* An answer that this connection did not ask for, or a second one, must not move the position. */
  if (campaign == NULL || campaign->two->link.opened || !campaign->two->link.open_sent) {
    return CV_OK;
  }
  struct cv_broker_two *two = campaign->two;
  if (opened->refused != NULL) {
    cv_broker_note(broker, NULL, campaign, ": refused by the co-broker: %s", opened->refused);
    two->ended = true;
    struct cv_why why; /* for the requester */
    (void)cv_fail(&why, CV_ERR_DENIED, "co-broker: %s", opened->refused);
    cv_broker_campaign_stop(broker, campaign, CV_END_REFUSED, why.text);
    return CV_OK;
  }
  bool agrees, is_new = !two->is_known;
  if (!cv_two_take_key(broker, campaign, opened->key)) {
    /* A share that is checked under two keys gives the score away. */
    accuse(broker, campaign, "another verify key than before");
    return CV_OK;
  }
  CV_TRY(compare(broker, campaign, &opened->position, &agrees));
  if (!agrees) {
    return CV_OK;
  }
  two->link.opened = true;
  two->link.batches = two->docket.settled;
  two->link.closings = campaign->releases;
  campaign->active_ms = broker->now_ms;
  campaign->progressed = broker->said = true;
  if (campaign->phase == CV_PHASE_OPENING && campaign->has_seed) {
    campaign->phase = CV_PHASE_RUNNING;
    is_new = true;
  }
  if (is_new) {
    cv_broker_campaign_mark(broker, campaign);
  }
  return CV_OK;
}

/* Whether the message is about the plan that waits. A repeated answer is not, and does no harm. */
static bool is_asked(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint64_t plan) {
  const struct cv_broker_two *two = campaign->two;
  if (two->plan.wants > 0 && two->link.plan_sent && plan == two->plan.number) {
    return true;
  }
  if (plan > campaign->plans) {
    accuse(broker, campaign, "an answer to a plan that it was not sent");
  }
  return false;
}

static enum cv_err on_plan_opened(struct cv_broker *broker, const struct cv_share_number *opened) {
  struct cv_broker_campaign *campaign = find_opened(broker, opened->campaign, "an answer to a plan before it opened");
  if (campaign == NULL || !is_asked(broker, campaign, opened->number)) {
    return CV_OK;
  }
  struct cv_plan plan = campaign->two->plan;
  campaign->two->plan = (struct cv_plan){0};
  campaign->two->link.is_ahead = false;
  enum cv_err err = cv_broker_thirdparty_accept(broker, campaign, &plan);
  free(plan.want);
  broker->said = true;
  return err;
}

static void on_plan_refused(struct cv_broker *broker, const struct cv_share_refused *refused) {
  struct cv_broker_campaign *campaign = find_opened(broker, refused->campaign, "an answer to a plan before it opened");
  if (campaign == NULL || !is_asked(broker, campaign, refused->plan)) {
    return;
  }
  bool fits = refused->reason == CV_END_TOKENS || refused->reason == CV_END_LEDGER;
  const struct cv_rank_refused answer = {.plan = refused->plan,
                                         .reason = fits ? refused->reason : CV_END_REFUSED,
                                         .asked = refused->asked,
                                         .left = refused->left};
  struct cv_why why;
  (void)cv_fail(&why, CV_ERR_DENIED, "the co-broker: %s", refused->why != NULL ? refused->why : "no reason given");
  cv_broker_thirdparty_refuse(broker, campaign, &answer, why.text);
}

static bool are_verdicts(const struct cv_share_answers *answers) {
  for (size_t i = 0; i < answers->answers; i++) {
    if (answers->answer[i] == CV_ANSWER_NONE || answers->answer[i] >= CV_ANSWERS) {
      return false;
    }
  }
  return true;
}

static enum cv_err on_answers(struct cv_broker *broker, const struct cv_share_answers *answers) {
  struct cv_broker_campaign *campaign = find_opened(broker, answers->campaign, "verdicts before it opened");
  if (campaign == NULL || answers->number <= campaign->two->docket.settled) {
    return CV_OK; /* repeated */
  }
  const struct cv_broker_two *two = campaign->two;
  const struct cv_docket_batch *batch = two->docket.first;
  if (batch == NULL || answers->number != batch->number || answers->number > two->link.batches) {
    accuse(broker, campaign, "verdicts on a batch that it was not sent, or not in order");
    return CV_OK;
  }
  if (answers->answers != batch->tokens || !are_verdicts(answers)) {
    accuse(broker, campaign, "verdicts that are not one for each token");
    return CV_OK;
  }
  return cv_sharing_judge(broker, campaign, answers->answer);
}

/* Puts both halves together. False if they cannot be those of one release. */
static bool add_halves(const struct cv_two_closing *closing, uint64_t half, int64_t *ret) {
  if (half >= CV_FIELD_P || (closing->close.discard && half != 0)) {
    return false;
  }
  return cv_field_lift(cv_field_add((uint64_t)closing->row.noisy_sum, half), ret);
}

static enum cv_err on_closed(struct cv_broker *broker, const struct cv_share_closed *closed) {
  struct cv_broker_campaign *campaign = find_opened(broker, closed->campaign, "a half before it opened");
  if (campaign == NULL || closed->number <= campaign->releases) {
    return CV_OK; /* repeated */
  }
  struct cv_broker_two *two = campaign->two;
  int64_t sum;
  if (closed->number != campaign->releases + 1 || closed->number > two->link.closings) {
    accuse(broker, campaign, "a half of a closing that it was not sent, or not in order");
    return CV_OK;
  }
  if (!add_halves(&two->closing[0], closed->half, &sum)) {
    accuse(broker, campaign, "a half with which the sum is out of range");
    return CV_OK;
  }
  struct cv_broker_release row = cv_two_take_closing(campaign).row;
  row.noisy_sum = sum;
  campaign->active_ms = broker->now_ms;
  broker->said = true;
  return cv_epoch_release(broker, campaign, &row);
}

/* The co-broker has deleted what it has of the campaign, as it was told or by itself. */
static void on_ended(struct cv_broker *broker, const struct cv_share_end *end) {
  struct cv_ended *record = cv_archive_find(&broker->archive, end->campaign);
  if (record != NULL && record->over_due) {
    record->over_due = false;
    cv_archive_mark(&broker->archive, record);
    broker->changed = true;
  }
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, end->campaign);
  if (campaign == NULL || campaign->two == NULL) {
    return;
  }
  campaign->two->ended = true;
  if (campaign->phase >= CV_PHASE_STOPPING) {
    return;
  }
  struct cv_why why; /* for the requester */
  (void)cv_fail(&why, CV_ERR_STATE, "ended by the co-broker %s: %s", broker->cobroker->identity.name,
                end->why != NULL && end->why[0] != '\0' ? end->why : cv_end_text(end->reason));
  cv_broker_note(broker, NULL, campaign, ": %s", why.text);
  if (end->reason == CV_END_DEADLINE) {
    cv_broker_campaign_stop(broker, campaign, CV_END_DEADLINE, why.text);
  } else {
    end_frozen(broker, campaign, why.text);
  }
}

enum cv_err cv_broker_cobroker_frame(struct cv_broker *broker, struct cv_broker_conn *conn,
                                     const struct cv_share_frame *frame, struct cv_why *why) {
  if (conn != broker->cobroker) {
    return cv_fail(why, CV_ERR_STATE, "%s", conn->goodbye);
  }
  if (frame->goodbye != NULL) {
    cv_broker_note(broker, conn->who, NULL, "goodbye received: %s", frame->goodbye);
  }
  CV_TRY(cv_broker_greet(broker, conn, &frame->hello, why));
  cv_admission_learn(broker, &frame->hello);
  if (frame->enters + frame->sessions + frame->turned + frame->opens + frame->plans + frame->batches + frame->dones +
          frame->closes + frame->overs >
      0) {
    return cv_fail(why, CV_ERR_DENIED, "unexpected message; only a broker or a worker may send it");
  }
  /* Openings first: the other messages of the frame are about campaigns that are open on this connection. */
  for (size_t i = 0; i < frame->opened; i++) {
    CV_TRY(on_opened(broker, &frame->open_answer[i]));
  }
  for (size_t i = 0; i < frame->plans_opened; i++) {
    CV_TRY(on_plan_opened(broker, &frame->plan_opened[i]));
  }
  for (size_t i = 0; i < frame->plans_refused; i++) {
    on_plan_refused(broker, &frame->plan_refused[i]);
  }
  for (size_t i = 0; i < frame->answers; i++) {
    CV_TRY(on_answers(broker, &frame->answer[i]));
  }
  for (size_t i = 0; i < frame->closed; i++) {
    CV_TRY(on_closed(broker, &frame->half[i]));
  }
  for (size_t i = 0; i < frame->ended; i++) {
    on_ended(broker, &frame->end[i]);
  }
  return CV_OK;
}

enum cv_err cv_broker_cobroker_plan(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                    const struct cv_plan *plan) {
  struct cv_broker_two *two = campaign->two;
  if (two->plan.wants > 0 && !cv_plan_asks_same(&two->plan, plan)) {
    struct cv_why why; /* for the requester */
    (void)cv_fail(&why, CV_ERR_STATE, "the third-party sends two plans of number %llu",
                  (unsigned long long)plan->number);
    cv_broker_note_refused(broker, NULL, campaign, CV_REFUSED_HISTORY, " is frozen: %s", why.text);
    end_frozen(broker, campaign, why.text);
    return CV_OK;
  }
  bool agrees = true;
  CV_TRY(two->link.is_ahead ? match_ahead(broker, campaign, plan, &agrees) : CV_OK);
  if (!agrees || two->plan.wants > 0) {
    return CV_OK;
  }
  broker->said = true;
  return cv_two_keep_plan(two, plan);
}

/* ---- frames to the co-broker, sent after the batch is stored ---- */

/* Opens the campaign on this connection, with the broker's position for comparison. */
static void fill_open(const struct cv_broker *broker, struct cv_broker_campaign *campaign,
                      struct cv_share_frame *frame) {
  struct cv_broker_two *two = campaign->two;
  struct cv_share_open *open = &frame->open[frame->opens++];
  uint64_t batches = cv_docket_last(&two->docket), closings = cv_two_closed(campaign);
  *open = (struct cv_share_open){.spec = campaign->spec,
                                 .position = {.campaign = campaign->id,
                                              .plans = campaign->plans,
                                              .batches = batches,
                                              .closings = closings,
                                              .plans_hash = campaign->plans_hash,
                                              .batches_hash = *cv_docket_hash_at(&two->docket, batches),
                                              .closings_hash = *cv_two_hash_at(campaign, closings)},
                                 .deadline_ms = campaign->deadline_wall_ms};
  memcpy(open->database, broker->config.database, sizeof(open->database));
  memcpy(open->requester, campaign->requester, sizeof(open->requester));
  two->link.open_sent = true;
}

/* A frame leaves after a commit, and its campaign may end meanwhile: it has copies. */
static enum cv_err fill_plan(struct cv_broker_campaign *campaign, struct cv_arena *arena,
                             struct cv_share_frame *frame) {
  struct cv_broker_two *two = campaign->two;
  struct cv_want *want = cv_arena_array(arena, two->plan.wants, sizeof(*want));
  if (want == NULL) {
    return CV_ERR_NOMEM;
  }
  memcpy(want, two->plan.want, two->plan.wants * sizeof(*want));
  frame->plan[frame->plans++] = (struct cv_share_plan){
      .campaign = campaign->id, .plan = {.number = two->plan.number, .wants = two->plan.wants, .want = want}};
  two->link.plan_sent = true;
  return CV_OK;
}

static enum cv_err fill_batch(struct cv_broker_campaign *campaign, const struct cv_docket_batch *batch,
                              struct cv_arena *arena, struct cv_share_frame *frame) {
  struct cv_share_pending *room = cv_arena_array(arena, batch->tokens, sizeof(*room));
  if (room == NULL) {
    return CV_ERR_NOMEM;
  }
  frame->batch[frame->batches++] = cv_docket_batch_share(batch, campaign->id, room);
  campaign->two->link.batches = batch->number;
  return CV_OK;
}

/* What follows the last of each that was sent, in order. *ret_all: all of it fits into the frame. CV_ERR_NOMEM. */
static enum cv_err fill_work(struct cv_broker_campaign *campaign, struct cv_arena *arena, struct cv_share_frame *frame,
                             bool *ret_all) {
  struct cv_broker_two *two = campaign->two;
  if (two->plan.wants > 0 && !two->link.plan_sent && frame->plans < PLANS_A_FRAME) {
    CV_TRY(fill_plan(campaign, arena, frame));
  }
  const struct cv_docket_batch *batch = cv_docket_find(&two->docket, two->link.batches + 1);
  for (; batch != NULL && frame->batches < BATCHES_A_FRAME; batch = batch->next) {
    CV_TRY(fill_batch(campaign, batch, arena, frame));
  }
  if (two->link.done < two->docket.settled && frame->dones < NUMBERS_A_FRAME) {
    two->link.done = two->docket.settled;
    frame->done[frame->dones++] = (struct cv_share_number){.campaign = campaign->id, .number = two->docket.settled};
  }
  for (size_t i = two->link.closings - campaign->releases; i < two->closings && frame->closes < NUMBERS_A_FRAME; i++) {
    frame->close[frame->closes++] = two->closing[i].close;
    two->link.closings = two->closing[i].close.number;
  }
  *ret_all = (two->plan.wants == 0 || two->link.plan_sent) && batch == NULL && two->link.done == two->docket.settled &&
             two->link.closings == cv_two_closed(campaign);
  return CV_OK;
}

static void fill_over(struct cv_share_frame *frame, uint64_t campaign, enum cv_end reason) {
  frame->over[frame->overs++] = (struct cv_share_end){.campaign = campaign, .reason = reason};
}

/* One open campaign's messages. *ret_all: no more of them remain. CV_ERR_NOMEM. */
static enum cv_err fill_campaign(const struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                 struct cv_arena *arena, struct cv_share_frame *frame, bool *ret_all) {
  struct cv_broker_two *two = campaign->two;
  if (campaign->phase >= CV_PHASE_STOPPING) {
    if (!two->ended && !two->link.over_sent && frame->overs < NUMBERS_A_FRAME) {
      two->link.over_sent = true;
      fill_over(frame, campaign->id, campaign->end);
    }
    *ret_all = two->ended || two->link.over_sent;
    return CV_OK;
  }
  if (!two->link.open_sent && frame->opens < OPENS_A_FRAME) {
    fill_open(broker, campaign, frame);
  }
  *ret_all = two->link.open_sent;
  return two->link.open_sent && two->link.opened ? fill_work(campaign, arena, frame, ret_all) : CV_OK;
}

/* Campaigns that have ended and whose end the co-broker has not confirmed, as many as fit into the frame. */
static void fill_ended(struct cv_broker *broker, struct cv_share_frame *frame) {
  struct cv_ended *ended = broker->overs_due ? broker->archive.all : NULL;
  for (; ended != NULL && frame->overs < NUMBERS_A_FRAME; ended = ended->hh.next) {
    if (ended->over_due && !ended->over_sent) {
      ended->over_sent = true;
      fill_over(frame, ended->id, ended->progress.end);
    }
  }
  broker->overs_due = ended != NULL;
  broker->said = broker->said || broker->overs_due;
}

/* An empty frame whose arrays have room for the largest numbers of messages per frame. */
static enum cv_err make_frame(struct cv_broker_cobroker *cobroker) {
  struct cv_arena *arena = &cobroker->arena;
  struct cv_share_frame *frame = &cobroker->frame;
  cv_arena_reset(arena);
  *frame = (struct cv_share_frame){
      .open = cv_arena_array(arena, OPENS_A_FRAME, sizeof(*frame->open)),
      .plan = cv_arena_array(arena, PLANS_A_FRAME, sizeof(*frame->plan)),
      .batch = cv_arena_array(arena, BATCHES_A_FRAME, sizeof(*frame->batch)),
      .done = cv_arena_array(arena, NUMBERS_A_FRAME, sizeof(*frame->done)),
      .close = cv_arena_array(arena, NUMBERS_A_FRAME, sizeof(*frame->close)),
      .over = cv_arena_array(arena, NUMBERS_A_FRAME, sizeof(*frame->over)),
  };
  return frame->over == NULL ? CV_ERR_NOMEM : CV_OK;
}

enum cv_err cv_broker_cobroker_fill(struct cv_broker *broker) {
  struct cv_broker_conn *conn = broker->cobroker;
  if (conn == NULL) {
    return CV_OK;
  }
  struct cv_broker_cobroker *cobroker = conn->cobroker;
  struct cv_share_frame *frame = &cobroker->frame;
  cobroker->ready = false;
  CV_TRY(make_frame(cobroker));
  frame->hello = cv_broker_hello(conn);
  /* Under back-pressure (held) everything waits: positions advance only when a frame is filled, so nothing is
   * skipped. */
  if (conn->greeted && !conn->held) {
    for (struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
      bool all = true;
      CV_TRY(campaign->two == NULL ? CV_OK : fill_campaign(broker, campaign, &cobroker->arena, frame, &all));
      broker->said = broker->said || !all;
    }
    fill_ended(broker, frame);
  }
  cobroker->ready = frame->hello.present ||
                    frame->opens + frame->plans + frame->batches + frame->dones + frame->closes + frame->overs > 0;
  return CV_OK;
}
