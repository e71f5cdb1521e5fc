/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/ending.h"

#include <stdlib.h>
#include <string.h>

#include "broker/campaign.h"
#include "broker/payer.h"
#include "broker/sharing.h"
#include "broker/state.h"
#include "broker/talk.h"
#include "broker/two.h"
#include "common/base/text.h"

static struct cv_ended *record_of(struct cv_broker *broker, const struct cv_broker_campaign *campaign) {
  /* A recovery archives a campaign that had ended before, and was read back, a second time: it keeps one record. */
  struct cv_ended *ended = cv_archive_find(&broker->archive, campaign->id);
  if (ended != NULL) {
    return ended;
  }
  ended = calloc(1, sizeof(*ended));
  if (ended == NULL) {
    return NULL;
  }
  ended->id = campaign->id;
  memcpy(ended->client_key, campaign->client_key, sizeof(ended->client_key));
  if (cv_archive_add(&broker->archive, ended, campaign->requester) != CV_OK) {
    free(ended);
    return NULL;
  }
  return ended;
}

void cv_broker_campaign_archive(struct cv_broker *broker, const struct cv_broker_campaign *campaign) {
  struct cv_ended *ended = record_of(broker, campaign);
  if (ended == NULL ||
      cv_broker_campaign_digest(broker, &campaign->spec, &campaign->gold.terms, &ended->spec_digest) != CV_OK) {
    broker->failed = true;
    return;
  }
  cv_broker_campaign_progress(broker, campaign, &ended->progress);
  ended->ended_wall_ms = campaign->ended_wall_ms;
  ended->progress.used_up_arms = ended->progress.used_ups = 0; /* a status answer of many has no room for them */
  ended->progress.declined_all = ended->progress.declineds = 0;
  memcpy(ended->thirdparty, campaign->thirdparty, sizeof(ended->thirdparty));
  ended->over_due = campaign->two != NULL && !campaign->two->ended;
  ended->over_sent = false;
  broker->overs_due = broker->overs_due || ended->over_due;
  ended->worker_micro = cv_privacy_worker_micro(&campaign->privacy, &campaign->spec);
  if (cv_privacy_is_unprotected(&campaign->privacy)) {
    ended->cost_micro = 0; /* its workers' accounts are unlimited */
  } else if (__builtin_mul_overflow(cv_broker_campaign_charge(campaign, 1), campaign->tokens, &ended->cost_micro)) {
    ended->cost_micro = UINT64_MAX;
  }
  cv_archive_mark(&broker->archive, ended);
  broker->changed = true;
}

void cv_broker_campaign_tell(struct cv_broker_campaign *campaign, enum cv_end end, const char *why) {
  campaign->end = end;
  cv_text_print(campaign->why, sizeof(campaign->why), "%s", why == NULL ? cv_end_usual_why(end) : why);
}

void cv_broker_campaign_over(struct cv_broker *broker, struct cv_broker_campaign *campaign, enum cv_end end,
                             uint64_t wall_ms) {
  campaign->end = end;
  campaign->phase = CV_PHASE_ENDED;
  campaign->ended_wall_ms = wall_ms;
  cv_sharing_abandon(broker, campaign);
  cv_broker_campaign_free_secrets(campaign);
  cv_broker_campaign_leave_open(broker, campaign);
}

/* Of a campaign for which nobody came: the commonest reason of those who could have, if they said one. */
static void tell_who_stayed_away(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  struct cv_progress progress;
  cv_broker_campaign_progress(broker, campaign, &progress);
  if (progress.declineds > 0) {
    cv_text_print(campaign->why, sizeof(campaign->why), "%s", progress.declined[0].why);
  }
}

void cv_broker_campaign_stop(struct cv_broker *broker, struct cv_broker_campaign *campaign, enum cv_end end,
                             const char *why) {
  if (campaign->phase >= CV_PHASE_STOPPING) {
    return;
  }
  /* The partial sums go now, not when the result arrives: from here on no token is accepted, and an unfinished epoch
   * can never be released. */
  campaign->phase = CV_PHASE_STOPPING;
  cv_broker_campaign_tell(campaign, end, why);
  if (end == CV_END_IDLE || end == CV_END_DEADLINE) {
    tell_who_stayed_away(broker, campaign);
  }
  campaign->purge = true;
  cv_sharing_abandon(broker, campaign);
  cv_broker_campaign_free_secrets(campaign);
  cv_broker_campaign_mark(broker, campaign);
}

static void audit_end(struct cv_broker *broker, const struct cv_broker_campaign *campaign) {
  const struct cv_event_fact facts[] = {{.name = "requester", .text = campaign->requester},
                                        {.name = "end", .text = cv_end_text(campaign->end)},
                                        {.name = "why", .text = campaign->why},
                                        {.name = "tokens", .number = campaign->tokens},
                                        {.name = "releases", .number = campaign->releases}};
  cv_broker_audit(broker, NULL,
                  (struct cv_event){.what = "end",
                                    .campaign = campaign->id,
                                    .name = campaign->spec.name,
                                    .fact = facts,
                                    .facts = CV_COUNT(facts)});
}

void cv_broker_campaign_end(struct cv_broker *broker, struct cv_broker_campaign *campaign, enum cv_end end,
                            const char *why) {
  /* The first end is the one that is archived; a message that crosses it changes nothing. */
  if (campaign->phase == CV_PHASE_ENDED) {
    return;
  }
  /* A stopped campaign keeps the reason of its stop, unless the third-party failed it or a recovery ended it. */
  bool is_failed = end == CV_END_FROZEN || end == CV_END_REFUSED || end == CV_END_RECOVERED;
  bool is_new = campaign->phase < CV_PHASE_STOPPING || (is_failed && end != campaign->end);
  if (is_new) {
    cv_broker_campaign_tell(campaign, end, why);
  }
  cv_broker_campaign_over(broker, campaign, campaign->end, broker->wall_ms);
  campaign->purge = true;
  cv_broker_campaign_mark(broker, campaign);
  cv_broker_campaign_archive(broker, campaign);
  cv_broker_note(broker, NULL, campaign, " ended: %s, %llu tokens, %zu releases", cv_end_text(campaign->end),
                 (unsigned long long)campaign->tokens, campaign->releases);
  broker->figures.ended[campaign->end]++;
  audit_end(broker, campaign);
}
