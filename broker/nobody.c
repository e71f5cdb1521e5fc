/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/nobody.h"

#include <string.h>

#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/payer.h"
#include "broker/state.h"
#include "broker/workers.h"
#include "common/base/text.h"

enum { LOOK_MS = 500, WORKERS_MOST = 1 << 16 /* looked at; of more nobody says */ };

static bool has_declined(const struct cv_broker_conn *conn, const struct cv_broker_campaign *campaign) {
  const struct cv_dealing *dealing = cv_dealings_find(&conn->workers->dealings, campaign->id);
  return dealing != NULL && dealing->declined;
}

/* Counts the connection's workers; false if one of them may give a token, or there are too many. */
static bool count(struct cv_broker *broker, struct cv_broker_campaign *campaign, const struct cv_identity *identity,
                  struct cv_nobody *ret) {
  if (identity->last - identity->first >= WORKERS_MOST - ret->given - ret->spent) {
    return false;
  }
  for (uint64_t worker = identity->first; worker <= identity->last; worker++) {
    uint64_t from = cv_broker_campaign_payer_bit(campaign, worker, 0);
    uint64_t end = from + campaign->spec.tokens_per_worker;
    if (cv_chunks_unset(&campaign->payers, from, end) == end) {
      ret->given++;
    } else if (cv_broker_campaign_can_pay(broker, campaign, worker, 1) == CV_PAYS_NEVER) {
      ret->spent++;
    } else {
      return false;
    }
  }
  return true;
}

void cv_broker_nobody_look(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  struct cv_nobody found = {.looked_ms = broker->now_ms};
  /* A hired worker has no such limit. */
  if (campaign->phase != CV_PHASE_RUNNING || campaign->open_arms == 0 || campaign->spec.worker != NULL ||
      broker->now_ms < campaign->nobody.looked_ms + LOOK_MS) {
    return;
  }
  campaign->nobody = (struct cv_nobody){.looked_ms = broker->now_ms};
  for (const struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    if (conn->workers == NULL || conn->close_due || has_declined(conn, campaign)) {
      continue;
    }
    if (!count(broker, campaign, &conn->identity, &found)) {
      return;
    }
    found.connections++;
  }
  campaign->nobody = found;
}

static void say(const struct cv_broker_campaign *campaign, char ret[CV_DECLINED_BYTES]) {
  const struct cv_nobody *nobody = &campaign->nobody;
  unsigned long long all = nobody->given + nobody->spent, spent = nobody->spent;
  if (spent == 0) {
    cv_text_print(ret, CV_DECLINED_BYTES, "tokens_per_worker: each of %llu workers has given %u; expected others", all,
                  campaign->spec.tokens_per_worker);
  } else {
    cv_text_print(ret, CV_DECLINED_BYTES,
                  "worker_epsilon: %llu of %llu workers have spent theirs at the broker; expected others", spent, all);
  }
}

void cv_broker_nobody_tell(const struct cv_broker_campaign *campaign, struct cv_progress *ret) {
  if (campaign->nobody.connections == 0 || campaign->end == CV_END_COMPLETE) {
    return;
  }
  uint32_t rest = ret->declineds < CV_DECLINED_SHOWN ? ret->declineds : CV_DECLINED_SHOWN - 1;
  memmove(&ret->declined[1], &ret->declined[0], rest * sizeof(ret->declined[0]));
  ret->declineds = rest + 1;
  ret->declined[0].connections = campaign->nobody.connections;
  ret->declined_all += campaign->nobody.connections;
  say(campaign, ret->declined[0].why);
}
