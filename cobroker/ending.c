/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/ending.h"

#include <stdlib.h>
#include <string.h>

#include "cobroker/campaign.h"
#include "cobroker/conn.h"
#include "cobroker/session.h"
#include "cobroker/state.h"
#include "cobroker/talk.h"
#include "common/base/text.h"

enum cv_err cv_cobroker_tell_end(struct cv_cobroker *core, uint64_t campaign, enum cv_end end, const char *why) {
  /* Nothing comes before the hello; what has ended by then, the broker learns when it opens the campaign. */
  if (core->broker == NULL || !core->broker->greeted) {
    return CV_OK;
  }
  core->said = true;
  return cv_cobroker_say_ended(&core->broker->gather,
                               &(struct cv_share_end){.campaign = campaign, .reason = end, .why = why});
}

enum cv_err cv_cobroker_tell_ended(struct cv_cobroker *core, const struct cv_cobroker_ended *ended) {
  return cv_cobroker_tell_end(core, ended->id, ended->end, ended->why);
}

static void report(struct cv_cobroker *core, const struct cv_cobroker_campaign *campaign,
                   const struct cv_cobroker_ended *ended) {
  bool is_frozen = ended->end == CV_END_FROZEN;
  const struct cv_event_fact facts[] = {{.name = "requester", .text = campaign->requester},
                                        {.name = "end", .text = cv_end_text(ended->end)},
                                        {.name = "why", .text = ended->why},
                                        {.name = "tokens", .number = campaign->tokens},
                                        {.name = "closings", .number = campaign->closings}};
  cv_cobroker_note(core, is_frozen ? CV_LOG_WARN : CV_LOG_INFO, NULL, campaign,
                   " ended: %s, %llu tokens, %zu closings%s%s", cv_end_text(ended->end),
                   (unsigned long long)campaign->tokens, campaign->closings, ended->why[0] == '\0' ? "" : "; ",
                   ended->why);
  cv_cobroker_audit(core, false,
                    (struct cv_event){.what = is_frozen ? "freeze" : "end",
                                      .campaign = campaign->id,
                                      .name = campaign->spec.name,
                                      .fact = facts,
                                      .facts = CV_COUNT(facts)});
  core->figures.ended[ended->end]++;
}

/* A half that waits for the next batch would leave with the commit that deletes its row. */
static void withdraw_halves(struct cv_cobroker *core, uint64_t campaign) {
  for (struct cv_cobroker_conn *conn = core->conns; conn != NULL; conn = conn->next) {
    cv_cobroker_unsay_closed(&conn->gather, campaign);
  }
}

/* Archives and frees the campaign. The record is stored by the next batch, which also deletes all other rows. */
static enum cv_err end_as(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, enum cv_end end,
                          const char *why) {
  struct cv_cobroker_ended *ended = calloc(1, sizeof(*ended));
  if (ended == NULL) {
    return CV_ERR_NOMEM;
  }
  ended->id = campaign->id;
  ended->changed = true;
  ended->end = end;
  ended->split = campaign->split;
  ended->context = campaign->context;
  cv_cobroker_campaign_totals(campaign, &ended->totals, &ended->cost_micro);
  cv_text_print(ended->why, sizeof(ended->why), "%s", why);
  CV_TRY(cv_cobroker_archive_add(&core->archive, ended));
  report(core, campaign, ended);
  withdraw_halves(core, campaign->id);
  cv_cobroker_sessions_purge(core, campaign->id);
  cv_cobroker_campaign_drop(core, campaign);
  core->changed = true;
  return core->quiet ? CV_OK : cv_cobroker_tell_ended(core, ended);
}

void cv_cobroker_end(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, enum cv_end end, const char *fmt,
                     ...) {
  struct cv_why why;
  va_list args;
  va_start(args, fmt);
  cv_why_vset(&why, fmt, args);
  va_end(args);
  core->failed = end_as(core, campaign, end, why.text) != CV_OK || core->failed;
}

void cv_cobroker_freeze(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, const char *fmt, ...) {
  struct cv_why why;
  va_list args;
  va_start(args, fmt);
  cv_why_vset(&why, fmt, args);
  va_end(args);
  core->failed = end_as(core, campaign, CV_END_FROZEN, why.text) != CV_OK || core->failed;
}

void cv_cobroker_end_strangers(struct cv_cobroker *core) {
  struct cv_cobroker_campaign *campaign = core->campaigns, *next;
  for (; campaign != NULL; campaign = next) {
    struct cv_digest context;
    next = campaign->hh.next;
    cv_split_context(&campaign->split, &core->config.duo, campaign->id, core->config.digest, &context);
    if (!cv_digest_is_same(&context, &campaign->context)) {
      cv_cobroker_freeze(core, campaign, "the key of the broker or of this co-broker is another one than before");
    }
  }
}
