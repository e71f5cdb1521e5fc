/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/ended.h"

#include <string.h>

#include "broker/campaign.h"
#include "broker/state.h"
#include "broker/talk.h"

enum { SWEEP_MS = 1000, SWEEP_MOST = 64, FORGOT_MOST = 64, RECENT_MS = 60000 };

void cv_ended_progress(const struct cv_broker *broker, const struct cv_ended *ended, struct cv_progress *ret) {
  *ret = ended->progress;
  ret->workers = broker->crowd_conns;
  ret->thirdparty_connected = broker->rank != NULL;
}

/* ---- retention ---- */

/* The requester's campaign that ended first and is not about to be forgotten. */
static struct cv_ended *oldest(const struct cv_owner *owner) {
  struct cv_ended *ended = owner->first;
  while (ended != NULL && ended->forget) {
    ended = ended->after;
  }
  return ended;
}

static uint32_t kept(const struct cv_owner *owner) {
  return owner->count - owner->forgot;
}

/* Whether the campaign exceeds the retention time or the number of kept campaigns. */
static bool is_due(const struct cv_broker *broker, const struct cv_owner *owner, const struct cv_ended *ended) {
  const struct cv_gate_limits *limits = &broker->config.limits;
  return (limits->kept > 0 && kept(owner) > limits->kept) ||
         (limits->retention_ms > 0 && broker->wall_ms > ended->ended_wall_ms &&
          broker->wall_ms - ended->ended_wall_ms > limits->retention_ms);
}

static void forget_it(struct cv_broker *broker, struct cv_ended *ended) {
  const struct cv_event_fact fact = {.name = "requester", .text = ended->owner->name};
  cv_broker_audit(
      broker, NULL,
      (struct cv_event){
          .what = "forget", .campaign = ended->id, .name = ended->progress.name, .fact = &fact, .facts = 1});
  cv_archive_purge(&broker->archive, ended, true);
  broker->changed = true;
}

void cv_ended_sweep(struct cv_broker *broker) {
  if (broker->archive.leaving != NULL) {
    broker->changed = true; /* the next batch deletes more rows */
  }
  if (broker->now_ms < broker->swept_ms + SWEEP_MS) {
    return;
  }
  broker->swept_ms = broker->now_ms;
  /* Bounded work per sweep, and per owner, so that a shorter retention does not stall the loop. */
  uint32_t left = SWEEP_MOST;
  for (struct cv_owner *owner = broker->archive.owners; owner != NULL && left > 0; owner = owner->hh.next) {
    struct cv_ended *ended = owner->forgot < FORGOT_MOST ? oldest(owner) : NULL;
    for (; ended != NULL && left > 0 && is_due(broker, owner, ended); ended = ended->after) {
      forget_it(broker, ended);
      left--;
    }
  }
  if (left < SWEEP_MOST) {
    cv_broker_note(broker, NULL, NULL, "%u ended campaigns forgotten, by limits.retention and limits.kept",
                   SWEEP_MOST - left);
  }
}

void cv_ended_make_room(struct cv_broker *broker, const char *requester, uint32_t open) {
  struct cv_owner *owner = cv_archive_owner(&broker->archive, requester);
  struct cv_ended *ended = owner == NULL ? NULL : oldest(owner);
  uint32_t most = broker->config.limits.kept;
  if (ended != NULL && most > 0 && kept(owner) + open >= most) {
    forget_it(broker, ended);
  }
}

/* After the wall clock was set back, submissions lie in the future: they do not count, so nobody has to wait. */
static bool is_recent(const struct cv_broker *broker, uint64_t wall_ms) {
  return broker->wall_ms >= wall_ms && broker->wall_ms - wall_ms < RECENT_MS;
}

uint32_t cv_ended_recent(const struct cv_broker *broker, const char *requester) {
  const struct cv_owner *owner = cv_archive_owner(&broker->archive, requester);
  uint32_t recent = 0;
  for (const struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    recent += strcmp(campaign->requester, requester) == 0 && is_recent(broker, campaign->submitted_wall_ms);
  }
  for (const struct cv_ended *ended = owner == NULL ? NULL : owner->last; ended != NULL; ended = ended->before) {
    recent += is_recent(broker, ended->ended_wall_ms - ended->progress.elapsed_ms);
  }
  return recent;
}

/* ---- stored records ---- */

static enum cv_err put_record(const struct cv_ended *ended, struct cv_broker_batch *batch) {
  CV_TRY(cv_broker_batch_open(batch, CV_OP_ENDED, ended->id, 0));
  cv_ended_put(ended, &batch->bytes);
  cv_broker_batch_shut(batch);
  return CV_OK;
}

static enum cv_err put_step(const struct cv_ended *ended, uint64_t upto, struct cv_broker_batch *batch) {
  CV_TRY(cv_broker_batch_open(batch, CV_OP_DROP, ended->id, upto));
  cv_broker_batch_shut(batch);
  return CV_OK;
}

static enum cv_err forget(struct cv_broker *broker, struct cv_ended *ended, struct cv_broker_batch *batch) {
  /* The record and its contribution to the sums change in one batch, so that totals never differ. */
  CV_TRY(cv_broker_batch_open(batch, CV_OP_FORGET, ended->id, 0));
  cv_broker_batch_shut(batch);
  cv_archive_forget(&broker->archive, ended);
  CV_TRY(cv_broker_batch_open(batch, CV_OP_ENDED, 0, 0));
  cv_past_put(&broker->archive.past, &batch->bytes);
  cv_broker_batch_shut(batch);
  return CV_OK;
}

/* Deletes at most `*left` rows of the first campaign on the list, then its record if that is to be forgotten. */
static enum cv_err drop_some(struct cv_broker *broker, struct cv_broker_batch *batch, uint64_t *left) {
  struct cv_ended *ended = broker->archive.leaving;
  const struct cv_progress *progress = &ended->progress;
  uint64_t rows = progress->releases > progress->plans ? progress->releases : progress->plans;
  uint64_t rest = ended->is_clean ? 0 : rows - ended->dropped;
  if (ended->forget && (ended->close_due || broker->rank == NULL)) { /* the third-party must be sent the close first */
    *left = 0;
    return CV_OK;
  }
  if (rest > *left) {
    ended->dropped += *left;
    *left = 0;
    return put_step(ended, ended->dropped, batch);
  }
  *left -= rest;
  *left -= progress->arms < *left ? progress->arms : *left; /* the arms' accounts */
  if (!ended->is_clean) {
    CV_TRY(put_step(ended, CV_DROP_ALL, batch));
    ended->is_clean = true;
    ended->dropped = rows;
    CV_TRY(ended->forget ? CV_OK : put_record(ended, batch));
  }
  cv_archive_left(&broker->archive);
  return ended->forget ? forget(broker, ended, batch) : CV_OK;
}

enum cv_err cv_ended_fill(struct cv_broker *broker, struct cv_broker_batch *batch) {
  struct cv_ended *ended;
  while ((ended = cv_archive_take_changed(&broker->archive)) != NULL) {
    CV_TRY(put_record(ended, batch));
  }
  /* Some rows per commit: deleting a large campaign at once would delay every acknowledgement behind it. */
  uint64_t left = CV_DROP_ROWS;
  while (broker->archive.leaving != NULL && left > 0) {
    CV_TRY(drop_some(broker, batch, &left));
  }
  return CV_OK;
}
