/* SPDX-License-Identifier: Apache-2.0 */
/* The campaigns of one worker pool: the terms that the broker sent, and the tokens that each worker has given. */
#ifndef CV_WORKER_CAMPAIGN_H
#define CV_WORKER_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/codec/crowd.h"
#include "worker/once.h"
#include "worker/privatizer/privatizer.h"
#include "worker/session.h"

struct cv_work;

enum { CV_WORKER_CAMPAIGNS_MAX = 64 };

struct cv_worker_campaign {
  struct cv_terms terms;
  const struct cv_work *work;       /* source of its scores, unless declined; borrowed */
  struct cv_privatizer *privatizer; /* owned; NULL: declined */
  struct cv_digest broker;          /* key of the broker that told the terms, with two brokers */
  struct cv_session *session;       /* with two brokers; owned; NULL: one broker, or declined from the start */
  uint32_t *given;                  /* per worker: tokens, or CV_GIVEN_NEVER; owned; NULL: declined from the start */
  bool gave;                        /* a token was made */
  uint64_t able;                    /* the worker, from 0, that was found last to have another token for it */
  struct cv_once once;              /* the questions that its workers have answered; none: they may be repeated */
  uint64_t *taken;                  /* per arm: rows of a part that have left; owned; NULL: no part */
  bool *spent;                      /* per arm: this connection has no more scores of it; owned; NULL: of none */
  bool done;                        /* the broker sent Done: it takes no more tokens */
  bool told;                        /* the broker sent its terms on this connection */
  char declined[CV_WHY_BYTES];      /* why the pool declined it */
};

/* Replaces a count of tokens: the worker gives no more tokens. */
#define CV_GIVEN_NEVER UINT32_MAX

struct cv_worker_campaigns {
  struct cv_worker_campaign entry[CV_WORKER_CAMPAIGNS_MAX];
  uint32_t count;
};

void cv_worker_campaigns_fini(struct cv_worker_campaigns *campaigns);
/* NULL if the broker has not sent the campaign's terms. */
struct cv_worker_campaign *cv_worker_campaigns_find(struct cv_worker_campaigns *campaigns, uint64_t id);
/*
 * Adds a campaign, or replaces its terms. `work` is the source of its scores, NULL if there is none. The entry has no
 * privatizer yet. The counts of given tokens and of rows, the answered questions and the session survive new terms.
 * Returns NULL if CV_WORKER_CAMPAIGNS_MAX campaigns are live.
 */
struct cv_worker_campaign *cv_worker_campaigns_tell(struct cv_worker_campaigns *campaigns, const struct cv_terms *terms,
                                                    const struct cv_work *work);
/* Call when the connection closes: clears `told`, since the broker may not send a finished campaign again, and what the
 * broker has heard about used up data, which it forgets. */
void cv_worker_campaigns_untell(struct cv_worker_campaigns *campaigns);

/* True if the pool may send tokens for this campaign: not done and not declined. */
bool cv_worker_campaign_is_live(const struct cv_worker_campaign *campaign);
bool cv_worker_campaigns_any_live(const struct cv_worker_campaigns *campaigns);
/* Remembers that this connection has no more scores of the arm; *ret_first: it was not known. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_campaign_spend(struct cv_worker_campaign *campaign, uint32_t arm, bool *ret_first);
/* Stops all tokens for this campaign and stores the reason; the counts of given tokens stay. */
void cv_worker_campaign_decline(struct cv_worker_campaign *campaign, const char *reason);

#endif
