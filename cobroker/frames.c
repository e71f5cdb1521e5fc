/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/frames.h"

#include "cobroker/campaign.h"
#include "cobroker/closing.h"
#include "cobroker/conn.h"
#include "cobroker/ending.h"
#include "cobroker/opening.h"
#include "cobroker/plan.h"
#include "cobroker/session.h"
#include "cobroker/state.h"
#include "cobroker/talk.h"
#include "cobroker/verdict.h"

/* What only a co-broker sends. */
static size_t own_messages(const struct cv_share_frame *frame) {
  return frame->sessions + frame->turned + frame->opened + frame->plans_opened + frame->plans_refused + frame->answers +
         frame->closed + frame->ended;
}

static enum cv_err begin(struct cv_cobroker *core, struct cv_cobroker_conn *conn, const struct cv_share_frame *frame,
                         struct cv_why *why) {
  if (frame->goodbye != NULL) {
    cv_cobroker_note(core, CV_LOG_INFO, conn->who, NULL, "goodbye received: %s", frame->goodbye);
  }
  return cv_cobroker_greet(core, conn, &frame->hello, why);
}

/*
 * The open campaign that a message of the broker is about. NULL if it has ended: the broker is told, and the message
 * means nothing. CV_ERR_STATE if the broker has not opened it on this connection, and it has not ended.
 */
static enum cv_err find(struct cv_cobroker *core, uint64_t id, struct cv_cobroker_campaign **ret, struct cv_why *why) {
  struct cv_cobroker_campaign *campaign = cv_cobroker_campaign_find(core, id);
  const struct cv_cobroker_ended *ended = campaign == NULL ? cv_cobroker_archive_find(&core->archive, id) : NULL;
  *ret = campaign;
  if (campaign != NULL && campaign->told) {
    return CV_OK;
  }
  return ended != NULL ? cv_cobroker_tell_ended(core, ended)
                       : cv_fail(why, CV_ERR_STATE, "campaign %llu is not open on this connection; expected Open first",
                                 (unsigned long long)id);
}

static enum cv_err on_plans(struct cv_cobroker *core, const struct cv_share_frame *frame, struct cv_why *why) {
  struct cv_cobroker_campaign *campaign;
  for (size_t i = 0; i < frame->plans; i++) {
    CV_TRY(find(core, frame->plan[i].campaign, &campaign, why));
    CV_TRY(campaign == NULL ? CV_OK : cv_cobroker_plan(core, campaign, &frame->plan[i].plan, why));
  }
  return CV_OK;
}

static enum cv_err on_batches(struct cv_cobroker *core, const struct cv_share_frame *frame, struct cv_why *why) {
  struct cv_cobroker_campaign *campaign;
  for (size_t i = 0; i < frame->batches; i++) {
    CV_TRY(find(core, frame->batch[i].campaign, &campaign, why));
    CV_TRY(campaign == NULL ? CV_OK : cv_cobroker_batch(core, campaign, &frame->batch[i], why));
  }
  for (size_t i = 0; i < frame->dones; i++) {
    CV_TRY(find(core, frame->done[i].campaign, &campaign, why));
    CV_TRY(campaign == NULL ? CV_OK : cv_cobroker_done(core, campaign, frame->done[i].number, why));
  }
  return CV_OK;
}

static enum cv_err on_closes(struct cv_cobroker *core, const struct cv_share_frame *frame, struct cv_why *why) {
  struct cv_cobroker_campaign *campaign;
  for (size_t i = 0; i < frame->closes; i++) {
    CV_TRY(find(core, frame->close[i].campaign, &campaign, why));
    CV_TRY(campaign == NULL ? CV_OK : cv_cobroker_close(core, campaign, &frame->close[i], why));
  }
  return CV_OK;
}

/* The end of a campaign that was refused, or is not known, needs no record. */
static enum cv_err on_over(struct cv_cobroker *core, const struct cv_share_end *over, struct cv_why *why) {
  struct cv_cobroker_campaign *campaign = cv_cobroker_campaign_find(core, over->campaign);
  const struct cv_cobroker_ended *ended = cv_cobroker_archive_find(&core->archive, over->campaign);
  if (over->reason == CV_END_NONE || over->reason >= CV_END_COUNT) {
    return cv_fail(why, CV_ERR_FORMAT, "campaign %llu is over without a reason", (unsigned long long)over->campaign);
  }
  if (campaign != NULL) {
    cv_cobroker_end(core, campaign, over->reason, "the broker ended it");
    return CV_OK;
  }
  return ended != NULL ? cv_cobroker_tell_ended(core, ended)
                       : cv_cobroker_tell_end(core, over->campaign, over->reason, "the campaign was not open");
}

enum cv_err cv_cobroker_broker_frame(struct cv_cobroker *core, struct cv_cobroker_conn *conn,
                                     const struct cv_share_frame *frame, struct cv_why *why) {
  CV_TRY(begin(core, conn, frame, why));
  if (frame->enters + own_messages(frame) > 0) {
    return cv_fail(why, CV_ERR_DENIED, "unexpected message; a broker does not send it");
  }
  for (size_t i = 0; i < frame->opens; i++) {
    CV_TRY(cv_cobroker_open(core, &frame->open[i]));
  }
  CV_TRY(on_plans(core, frame, why));
  CV_TRY(on_batches(core, frame, why));
  CV_TRY(on_closes(core, frame, why));
  for (size_t i = 0; i < frame->overs; i++) {
    CV_TRY(on_over(core, &frame->over[i], why));
  }
  return CV_OK;
}

enum cv_err cv_cobroker_crowd_frame(struct cv_cobroker *core, struct cv_cobroker_conn *conn,
                                    const struct cv_share_frame *frame, struct cv_why *why) {
  CV_TRY(begin(core, conn, frame, why));
  if (frame->opens + frame->plans + frame->batches + frame->dones + frame->closes + frame->overs + own_messages(frame) >
      0) {
    return cv_fail(why, CV_ERR_DENIED, "unexpected message; a worker does not send it");
  }
  conn->gathered += frame->enters == 0; /* empty frames must not be free */
  core->said = core->said || conn->gathered > 0;
  for (size_t i = 0; i < frame->enters; i++) {
    CV_TRY(cv_cobroker_enter(core, conn, frame->enter[i], why));
  }
  return CV_OK;
}
