/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One campaign at the third-party: what the core (core.h) does with the messages about it. Internal to the core.
 *
 *   opened --plan n issued--> waiting --accepted--> collecting --all wants released--> step --> plan n + 1 | result
 *
 * A plan that the broker recorded (resync after we lost something) is adopted as it is, at once if its number is the
 * next, else from a queue when its turn comes. While the broker is known to have more than we do, neither a plan of
 * ours nor a result leaves. After the end nothing is applied any more and nothing that comes is an error: messages
 * cross.
 *
 * Every function returns CV_OK, CV_ERR_NOMEM (fatal: the process gives up), or another error with a line in `why` that
 * says what the broker did wrong.
 */
#ifndef CV_THIRDPARTY_CAMPAIGN_H
#define CV_THIRDPARTY_CAMPAIGN_H

#include "common/base/digest.h"
#include "common/base/neighbours.h"
#include "common/base/table.h"
#include "proto/codec/rank.h"
#include "thirdparty/batch.h"
#include "thirdparty/policy/policy.h"

struct cv_queued_plan {
  struct cv_queued_plan *next;
  struct cv_plan plan;
};

struct cv_campaign {
  uint64_t id;
  const char *broker_name;
  cv_digest_fn *digest;
  struct cv_spec spec;
  struct cv_digest spec_digest;
  uint64_t seed;
  struct cv_campaign_row row;
  struct cv_policy *policy;
  struct cv_policy_step step;
  struct cv_standing *standing; /* as last stored, one per arm */

  struct cv_neighbours graph;
  struct cv_plan plan; /* number row.plan */
  uint32_t *open_want; /* per arm: 1 + index of its want that is not released yet, or 0 */
  uint32_t left;       /* wants not released yet */
  uint32_t *plays;     /* per arm: its tokens in the plan */
  struct cv_queued_plan *queue, **queue_end;
  uint64_t queue_last;  /* number of the last plan in the queue */
  size_t *queued_wants; /* of all campaigns of this broker */

  /* What the broker said on this connection. */
  uint64_t expected_plans, expected_releases;
  enum cv_end stop;

  bool accepted_unstored; /* the row says more than what is stored */

  /* What has to leave with the next commit. */
  bool due_opened, due_ack, due_plan, due_result;
  struct cv_delta *delta;
  bool is_dirty;
  struct cv_campaign *next_dirty, **dirty; /* the core's list of campaigns with something due or changed */
  UT_hash_handle hh;
};

/* A new campaign with its first step made. `spec` is copied; its policy has been checked. */
CV_MUST_USE enum cv_err cv_campaign_create(const struct cv_spec *spec, const struct cv_digest *spec_digest,
                                           uint64_t seed, struct cv_campaign *campaign, struct cv_why *why);
/* One from storage that is not closed, without a word to anyone. */
CV_MUST_USE enum cv_err cv_campaign_restore(const struct cv_stored_campaign *stored, struct cv_campaign *campaign,
                                            struct cv_why *why);
void cv_campaign_fini(struct cv_campaign *campaign);

/* The broker is back, with its position. */
CV_MUST_USE enum cv_err cv_campaign_open(struct cv_campaign *campaign, const struct cv_position *position,
                                         enum cv_end stop, struct cv_why *why);
/* `limit`: wants that may wait in the queues of one broker. */
CV_MUST_USE enum cv_err cv_campaign_record(struct cv_campaign *campaign, const struct cv_plan *plan, size_t limit,
                                           struct cv_why *why);
CV_MUST_USE enum cv_err cv_campaign_release(struct cv_campaign *campaign, const struct cv_release *release,
                                            struct cv_why *why);
CV_MUST_USE enum cv_err cv_campaign_accept(struct cv_campaign *campaign, uint64_t plan, struct cv_why *why);
CV_MUST_USE enum cv_err cv_campaign_refuse(struct cv_campaign *campaign, const struct cv_rank_refused *refused,
                                           struct cv_why *why);
CV_MUST_USE enum cv_err cv_campaign_stop(struct cv_campaign *campaign, enum cv_end reason, struct cv_why *why);
CV_MUST_USE enum cv_err cv_campaign_close(struct cv_campaign *campaign);

/* True if a plan of ours may leave. */
bool cv_campaign_may_ask(const struct cv_campaign *campaign);
/* True if all that the broker said it has is here. */
bool cv_campaign_is_level(const struct cv_campaign *campaign);
/* Room for all arms; where they stand now. */
void cv_campaign_standings(const struct cv_campaign *campaign, struct cv_standing *ret);

#endif
