/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One campaign at the third-party: handles the messages about it. Internal to the core (core.h).
 *
 *   opened --plan n issued--> waiting --accepted--> collecting --all wants released--> step --> plan n + 1 | result
 *
 * If the third-party lost records, the broker sends its recorded plans back. The campaign adopts a recorded plan
 * unchanged, at once if its number is the next, else later from a queue. While the broker is known to have more records
 * than this campaign, the campaign sends neither a plan of its own nor a result. After the end the campaign ignores
 * further messages without an error, since they may have crossed the result.
 *
 * Every function returns CV_OK, CV_ERR_NOMEM (fatal: the process stops), or another error with a line in `why` that
 * states the broker's mistake.
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

struct cv_thirdparty_campaign {
  uint64_t id;
  const char *broker_name;
  cv_digest_fn *digest;
  struct cv_spec spec;
  struct cv_digest spec_digest;
  uint64_t seed;
  struct cv_thirdparty_campaign_row row;
  struct cv_policy *policy;
  struct cv_policy_step step;
  struct cv_standing *standing; /* as last stored, one per arm */
  uint32_t contradictions;      /* arms whose standing contradicts, seen since the start */

  struct cv_neighbours graph;
  struct cv_plan plan; /* number row.plan */
  uint32_t *open_want; /* per arm: 1 + index of its unreleased want, or 0 */
  uint32_t left;       /* wants not released yet */
  uint32_t *plays;     /* per arm: its tokens in the plan */
  struct cv_queued_plan *queue, **queue_end;
  uint64_t queue_last;  /* number of the last plan in the queue */
  size_t *queued_wants; /* of all campaigns of this broker */

  /* Received from the broker on this connection. */
  uint64_t expected_plans, expected_releases;
  enum cv_end stop;
  bool is_stuck; /* the policy cannot go on: the data of an arm are used up */

  bool accepted_unstored; /* the row has an acceptance that is not stored yet */

  /* Messages to send after the next commit. */
  bool due_opened, due_ack, due_plan, due_result;
  struct cv_delta *delta;
  bool is_dirty;
  struct cv_thirdparty_campaign *next_dirty, **dirty; /* the core's list of campaigns with changes or due messages */
  UT_hash_handle hh;
};

/* Sets up a new campaign and makes its first step. Copies `spec`, whose policy must have been checked. */
CV_MUST_USE enum cv_err cv_thirdparty_campaign_create(const struct cv_spec *spec, const struct cv_digest *spec_digest,
                                                      uint64_t seed, struct cv_thirdparty_campaign *campaign,
                                                      struct cv_why *why);
/* Sets up an open campaign from storage; sends nothing. */
CV_MUST_USE enum cv_err cv_thirdparty_campaign_restore(const struct cv_stored_campaign *stored,
                                                       struct cv_thirdparty_campaign *campaign, struct cv_why *why);
void cv_thirdparty_campaign_fini(struct cv_thirdparty_campaign *campaign);

/* The broker opens the campaign, again or for the first time, with its position in the records. */
CV_MUST_USE enum cv_err cv_thirdparty_campaign_open(struct cv_thirdparty_campaign *campaign,
                                                    const struct cv_position *position, enum cv_end stop,
                                                    struct cv_why *why);
/* `limit`: wants that may wait in the queues of one broker. */
CV_MUST_USE enum cv_err cv_thirdparty_campaign_record(struct cv_thirdparty_campaign *campaign,
                                                      const struct cv_plan *plan, size_t limit, struct cv_why *why);
CV_MUST_USE enum cv_err cv_thirdparty_campaign_release(struct cv_thirdparty_campaign *campaign,
                                                       const struct cv_release *release, struct cv_why *why);
CV_MUST_USE enum cv_err cv_thirdparty_campaign_accept(struct cv_thirdparty_campaign *campaign, uint64_t plan,
                                                      struct cv_why *why);
CV_MUST_USE enum cv_err cv_thirdparty_campaign_refuse(struct cv_thirdparty_campaign *campaign,
                                                      const struct cv_rank_refused *refused, struct cv_why *why);
CV_MUST_USE enum cv_err cv_thirdparty_campaign_stop(struct cv_thirdparty_campaign *campaign, enum cv_end reason,
                                                    struct cv_why *why);
CV_MUST_USE enum cv_err cv_thirdparty_campaign_close(struct cv_thirdparty_campaign *campaign);

/* True if the campaign may send its own plan. */
bool cv_thirdparty_campaign_may_ask(const struct cv_thirdparty_campaign *campaign);
/* True if the campaign has all plans and releases that the broker stated on this connection. */
bool cv_thirdparty_campaign_is_level(const struct cv_thirdparty_campaign *campaign);
/* Sets the present standings; *ret has room for all arms. */
void cv_thirdparty_campaign_standings(const struct cv_thirdparty_campaign *campaign, struct cv_standing *ret);

#endif
