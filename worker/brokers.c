/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/brokers.h"

#include "common/base/grid.h"
#include "worker/asker.h"
#include "worker/split.h"

enum { AGAIN_MS = 1000 /* after an assignment for which no session came */ };

#define NO_SESSION "no session with the co-broker within the lease"

/* ---- campaigns ---- */

static enum cv_err check_privatizer(const struct cv_worker_campaign *campaign, struct cv_why *why) {
  const struct cv_local *law = &campaign->privatizer->law;
  return law->low >= 0 && law->high <= CV_GRID
             ? CV_OK
             : cv_fail(why, CV_ERR_DENIED,
                       "privatizer %s sends values outside 0 to 1, which have no shares; expected another one",
                       campaign->terms.privatizer.name);
}

enum cv_err cv_worker_meet_brokers(struct cv_worker *pool, struct cv_worker_campaign *campaign, struct cv_why *why) {
  const struct cv_terms *terms = &campaign->terms;
  CV_TRY(cv_accept_brokers(&pool->config.accept, terms, &pool->broker, pool->co.open ? &pool->co.key : NULL, why));
  if (terms->split.score_bits == 0) {
    return CV_OK;
  }
  CV_TRY(check_privatizer(campaign, why));
  campaign->broker = pool->broker;
  if (campaign->session != NULL) {
    return cv_session_check(campaign->session, terms, &pool->broker, why);
  }
  if (cv_pendings_split(&pool->pendings) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  return cv_session_new(pool->config.session, terms, pool->config.last - pool->config.first + 1, &campaign->session,
                        why);
}

static struct cv_session *session_of(const struct cv_worker_campaign *campaign) {
  return campaign == NULL || campaign->terms.split.score_bits == 0 ? NULL : campaign->session;
}

/* ---- slots ---- */

enum cv_err cv_worker_check_slot(const struct cv_worker *pool, const struct cv_worker_campaign *campaign,
                                 const struct cv_assign *assign, struct cv_why *why) {
  const struct cv_session *session = session_of(campaign);
  if (session == NULL) {
    return CV_OK;
  }
  if (assign->arms != 1) {
    return cv_fail(why, CV_ERR_FORMAT, "an assignment of %u arms; expected one: the campaign has two brokers",
                   assign->arms);
  }
  if (assign->slot >= session->slots.each) {
    return cv_fail(why, CV_ERR_DENIED, "an assignment with slot %u of worker %llu; expected one below %u", assign->slot,
                   (unsigned long long)assign->worker, session->slots.each);
  }
  if (cv_slots_at(&session->slots, assign->worker - pool->config.first, assign->slot) == CV_SLOT_SETTLED) {
    return cv_fail(why, CV_ERR_DENIED, "the broker asks for slot %u of worker %llu again, whose token is settled",
                   assign->slot, (unsigned long long)assign->worker);
  }
  return CV_OK;
}

bool cv_worker_slot_is_open(const struct cv_worker *pool, const struct cv_worker_campaign *campaign,
                            const struct cv_assign *assign) {
  const struct cv_session *session = session_of(campaign);
  uint64_t worker = assign->worker - pool->config.first;
  return session != NULL && !cv_worker_discloses(pool, campaign) && pool->given[worker] != CV_GIVEN_NEVER &&
         assign->slot < session->slots.each && cv_slots_at(&session->slots, worker, assign->slot) == CV_SLOT_USED;
}

bool cv_worker_has_open_slot(const struct cv_worker *pool, const struct cv_worker_campaign *campaign, uint64_t worker) {
  const struct cv_session *session = session_of(campaign);
  uint64_t at = worker - pool->config.first;
  return session != NULL && !cv_worker_discloses(pool, campaign) && pool->given[at] != CV_GIVEN_NEVER &&
         session->slots.open[at] > 0;
}

void cv_worker_settle_slot(const struct cv_worker *pool, const struct cv_worker_campaign *campaign,
                           const struct cv_pending *pending, enum cv_verdict verdict) {
  struct cv_session *session = session_of(campaign);
  /* Not counted yet: the same slot may be asked for again. */
  if (session != NULL && pending->split != NULL && verdict != CV_VERDICT_EXPIRED) {
    cv_slots_settle(&session->slots, pending->worker - pool->config.first, pending->split->assign.slot);
  }
}

/* ---- assignments ---- */

bool cv_worker_can_split(const struct cv_worker_campaign *campaign, int64_t value) {
  const struct cv_session *session = session_of(campaign);
  bool is_bit = value == 0 || value == CV_GRID;
  return session == NULL || (value >= 0 && value <= CV_GRID && (is_bit || session->prio.circuit != CV_PRIO_COUNT));
}

static void hold(struct cv_worker *pool, struct cv_pending *pending, enum cv_waits waits) {
  pending->waits = waits;
  pool->held++;
}

bool cv_worker_hold(struct cv_worker *pool, const struct cv_worker_campaign *campaign, const struct cv_assign *assign,
                    struct cv_pending *pending) {
  const struct cv_session *session = session_of(campaign);
  if (session == NULL) {
    return false;
  }
  pending->split = &pool->pendings.split[pending - pool->pendings.entry];
  pending->split->assign = *assign;
  if (session->state == CV_SESSION_STANDS) {
    return false;
  }
  hold(pool, pending, CV_WAITS_TO_SCORE);
  return true;
}

/* A token of a place is rounded alike each time. */
static bool measure(const struct cv_worker *pool, uint32_t score_bits, const struct cv_assign *assign, int64_t value,
                    uint64_t *ret) {
  const struct cv_opinion opinion = {.arm = assign->arm.one, .opponent = assign->opponent, .number = assign->place};
  struct cv_coin coin;
  cv_coin_init(&coin, pool->coin_key, NULL, &opinion);
  bool can = cv_worker_measure(score_bits, value, &coin.bits.rng, ret);
  cv_coin_wipe(&coin);
  return can;
}

static enum cv_err drop(struct cv_worker *pool, struct cv_pending *pending, enum cv_verdict verdict) {
  uint64_t worker = pending->worker;
  pool->held -= pending->waits != CV_WAITS_NOT;
  cv_asker_tell(pool, pending, verdict);
  cv_pendings_remove(&pool->pendings, pending);
  return cv_worker_move_on(pool, worker);
}

enum cv_err cv_worker_make_shares(struct cv_worker *pool, struct cv_worker_campaign *campaign,
                                  struct cv_pending *pending, bool *ret_made, bool *ret_counts) {
  struct cv_session *session = session_of(campaign);
  struct cv_pending_split *split = pending->split;
  *ret_made = *ret_counts = split == NULL;
  if (split == NULL) {
    return CV_OK;
  }
  if (session == NULL || session->state != CV_SESSION_STANDS) {
    hold(pool, pending, CV_WAITS_TO_SPLIT);
    return CV_OK;
  }
  const struct cv_assign *assign = &split->assign;
  uint64_t measurement, worker = assign->worker - pool->config.first;
  if (!measure(pool, session->terms.split.score_bits, assign, pending->value[0], &measurement)) {
    CV_TRY(drop(pool, pending, CV_VERDICT_NONE));
    return cv_worker_decline(pool, campaign,
                             "a score of this worker is neither 0 nor 1; expected one of them, since the campaign has "
                             "bits for tokens");
  }
  struct cv_split_token token = {.plan = assign->plan,
                                 .arm = assign->arm.one,
                                 .place = assign->place,
                                 .worker = assign->worker,
                                 .slot = assign->slot};
  *ret_counts =
      cv_worker_discloses(pool, campaign) || cv_slots_at(&session->slots, worker, assign->slot) == CV_SLOT_FREE;
  CV_TRY(cv_slots_use(&session->slots, worker, assign->slot));
  CV_TRY(cv_worker_split(session, measurement, &token, split->leader, &split->share));
  if (pool->config.show_shares != NULL) {
    pool->config.show_shares(pool->config.note_data, assign->worker, &split->share);
  }
  *ret_made = true;
  return CV_OK;
}

/* Goes on with what was held for a session. */
static enum cv_err resume(struct cv_worker *pool, struct cv_worker_campaign *campaign) {
  for (size_t i = 0; i < pool->pendings.entries && pool->held > 0; i++) {
    struct cv_pending *pending = &pool->pendings.entry[i];
    enum cv_waits waits = pending->waits;
    if (pending->values == 0 || waits == CV_WAITS_NOT || pending->campaign != campaign->terms.id) {
      continue;
    }
    pending->waits = CV_WAITS_NOT;
    pool->held--;
    const struct cv_assign assign = pending->split->assign;
    CV_TRY(waits == CV_WAITS_TO_SCORE ? cv_worker_score(pool, campaign, &assign, pending)
                                      : cv_worker_give(pool, campaign, pending));
  }
  return CV_OK;
}

enum cv_err cv_worker_unhold(struct cv_worker *pool, uint64_t campaign) {
  for (size_t i = 0; i < pool->pendings.entries && pool->held > 0; i++) {
    struct cv_pending *pending = &pool->pendings.entry[i];
    if (pending->values > 0 && pending->waits != CV_WAITS_NOT && pending->campaign == campaign) {
      CV_TRY(drop(pool, pending, CV_VERDICT_NONE));
    }
  }
  return CV_OK;
}

void cv_worker_unhold_unscored(struct cv_worker *pool) {
  for (size_t i = 0; i < pool->pendings.entries && pool->held > 0; i++) {
    struct cv_pending *pending = &pool->pendings.entry[i];
    if (pending->values > 0 && pending->waits == CV_WAITS_TO_SCORE && drop(pool, pending, CV_VERDICT_NONE) != CV_OK) {
      pool->failed = true;
    }
  }
}

static void note_once(struct cv_worker *pool, const char *what, const char *why) {
  struct cv_why line;
  if (cv_reasons_add(&pool->reasons, why)) {
    cv_why_set(&line, "%s: %s", what, why);
    cv_worker_note(pool, line.text);
  }
}

static enum cv_err unhold_one(struct cv_worker *pool, struct cv_pending *pending, uint64_t now_ms) {
  uint64_t worker = pending->worker;
  bool waits = pool->config.asker != NULL && pool->config.asker->waits;
  if (pool->open) {
    CV_TRY(cv_worker_decline_one(pool, pending->ticket, NO_SESSION));
  }
  note_once(pool, "declined an assignment", NO_SESSION);
  pool->figures.unheld++;
  if (waits) {
    return drop(pool, pending, CV_VERDICT_EXPIRED);
  }
  pool->held--;
  cv_asker_tell(pool, pending, CV_VERDICT_EXPIRED);
  cv_pendings_remove(&pool->pendings, pending);
  /* Not at once: without the co-broker the broker would be asked for assignments without end. */
  return cv_line_push(&pool->resting, worker, now_ms + AGAIN_MS);
}

enum cv_err cv_worker_unhold_late(struct cv_worker *pool, uint64_t now_ms) {
  for (size_t i = 0; i < pool->pendings.entries && pool->held > 0; i++) {
    struct cv_pending *pending = &pool->pendings.entry[i];
    if (pending->values > 0 && pending->waits != CV_WAITS_NOT && now_ms + pending->lease_ms / 4 >= pending->due_ms) {
      CV_TRY(unhold_one(pool, pending, now_ms));
    }
  }
  return CV_OK;
}

/* ---- the connection to the co-broker ---- */

void cv_worker_join_co(struct cv_worker *pool, const struct cv_digest *cobroker) {
  pool->due = true;
  pool->co = (struct cv_worker_co){.open = true, .hello_due = true, .key = *cobroker};
  for (uint32_t i = 0; i < pool->campaigns.count; i++) {
    struct cv_worker_campaign *campaign = &pool->campaigns.entry[i];
    struct cv_why why;
    if (session_of(campaign) != NULL && cv_worker_campaign_is_live(campaign) &&
        cv_accept_brokers(&pool->config.accept, &campaign->terms, &pool->broker, cobroker, &why) != CV_OK &&
        cv_worker_decline(pool, campaign, why.text) != CV_OK) {
      pool->failed = true;
    }
  }
}

void cv_worker_leave_co(struct cv_worker *pool) {
  pool->co.open = false;
  for (uint32_t i = 0; i < pool->campaigns.count; i++) {
    if (pool->campaigns.entry[i].session != NULL) {
      cv_session_end(pool->campaigns.entry[i].session);
    }
  }
}

/* The campaign that the co-broker answers for: one that was asked for. */
static enum cv_err find_asked(struct cv_worker *pool, uint64_t id, struct cv_worker_campaign **ret,
                              struct cv_why *why) {
  *ret = cv_worker_campaigns_find(&pool->campaigns, id);
  return *ret != NULL && (*ret)->session != NULL
             ? CV_OK
             : cv_fail(why, CV_ERR_STATE, "the co-broker answers for campaign %llu, which was not asked",
                       (unsigned long long)id);
}

static enum cv_err on_session(struct cv_worker *pool, const struct cv_share_session *told, struct cv_why *why) {
  struct cv_worker_campaign *campaign;
  CV_TRY(find_asked(pool, told->terms.id, &campaign, why));
  /* Not the broker that is connected now: it may be another one, which has told no terms. */
  const struct cv_duo duo = {.broker = campaign->broker, .cobroker = pool->co.key};
  struct cv_why reason;
  enum cv_err err = cv_session_begin(campaign->session, &duo, told, &reason);
  bool is_live = cv_worker_campaign_is_live(campaign);
  if (err == CV_ERR_DENIED) {
    return is_live ? cv_worker_decline(pool, campaign, reason.text) : CV_OK;
  }
  if (err != CV_OK) {
    return cv_fail(why, err, "%s", reason.text);
  }
  return is_live ? resume(pool, campaign) : CV_OK;
}

static enum cv_err on_turned(struct cv_worker *pool, const struct cv_share_turned *turned, uint64_t now_ms,
                             struct cv_why *why) {
  struct cv_worker_campaign *campaign;
  CV_TRY(find_asked(pool, turned->campaign, &campaign, why));
  CV_TRY(cv_session_turn(campaign->session, turned->again_ms, now_ms, why));
  struct cv_why reason;
  cv_why_set(&reason, "the co-broker gives no session: %s", turned->why == NULL ? "no reason given" : turned->why);
  if (!cv_worker_campaign_is_live(campaign)) {
    return CV_OK;
  }
  if (turned->again_ms == 0) {
    return cv_worker_decline(pool, campaign, reason.text);
  }
  note_once(pool, campaign->terms.name, reason.text);
  return CV_OK;
}

static enum cv_err on_hello(struct cv_worker_co *co, const struct cv_share_frame *frame, struct cv_why *why) {
  if (frame->hello.present) {
    CV_TRY(cv_hello_check(&frame->hello, "co-broker", "worker", why));
  }
  if (frame->hello.present && co->greeted) {
    return cv_fail(why, CV_ERR_FORMAT, CV_HELLO_REPEATED);
  }
  co->greeted = co->greeted || frame->hello.present;
  return co->greeted || frame->goodbye != NULL ? CV_OK : cv_fail(why, CV_ERR_FORMAT, CV_HELLO_MISSING);
}

/* The schema has the messages of brokers, too, and those of both directions. */
static bool is_for_workers(const struct cv_share_frame *frame) {
  return frame->enters + frame->opens + frame->plans + frame->batches + frame->dones + frame->closes + frame->overs +
             frame->opened + frame->plans_opened + frame->plans_refused + frame->answers + frame->closed +
             frame->ended ==
         0;
}

static enum cv_err on_frame(struct cv_worker *pool, const struct cv_share_frame *frame, uint64_t now_ms,
                            struct cv_why *why) {
  CV_TRY(on_hello(&pool->co, frame, why));
  if (!is_for_workers(frame)) {
    return cv_fail(why, CV_ERR_DENIED, "the co-broker sent a message that is not for a worker");
  }
  if (frame->goodbye != NULL) {
    struct cv_why line;
    cv_why_set(&line, "the co-broker closes the connection: %s", frame->goodbye);
    cv_worker_note(pool, line.text);
  }
  for (size_t i = 0; i < frame->sessions; i++) {
    CV_TRY(on_session(pool, &frame->session[i], why));
  }
  for (size_t i = 0; i < frame->turned; i++) {
    CV_TRY(on_turned(pool, &frame->turn[i], now_ms, why));
  }
  return CV_OK;
}

enum cv_err cv_worker_on_share(struct cv_worker *pool, const struct cv_share_frame *frame, uint64_t now_ms,
                               struct cv_why *why) {
  CV_TRY(cv_unless_failed(&pool->failed, CV_OK, why));
  pool->due = true;
  return cv_unless_failed(&pool->failed, on_frame(pool, frame, now_ms, why), why);
}

bool cv_worker_flush_share(struct cv_worker *pool, uint64_t now_ms, struct cv_share_frame *ret) {
  struct cv_worker_co *co = &pool->co;
  if (!co->open || pool->failed) {
    return false;
  }
  *ret = (struct cv_share_frame){.enter = co->enter};
  ret->hello = (struct cv_hello){.present = co->hello_due, .version = CV_WIRE_VERSION, .program = "crowdveil-worker"};
  co->hello_due = false;
  for (uint32_t i = 0; i < pool->campaigns.count; i++) {
    const struct cv_worker_campaign *campaign = &pool->campaigns.entry[i];
    if (session_of(campaign) != NULL && cv_worker_campaign_is_live(campaign) && campaign->told &&
        cv_session_asks(campaign->session, now_ms)) {
      co->enter[ret->enters++] = campaign->terms.id;
    }
  }
  return ret->hello.present || ret->enters > 0;
}
