/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovering a broker whose database has gone back to an older copy, or was lost: what it has forgotten is charged as
 * if the worst had happened, the campaigns that were open end, and what was said in the forgotten time is void. Pure.
 *
 * What is known of the forgotten time, of which there may be both, one or none:
 * - the anchor's totals: how many campaigns, releases and tokens there have been, and how much epsilon all campaigns
 *   together can have cost one worker;
 * - a third-party's claims: which campaigns it knows, and how many of their releases and plans.
 *
 * What is charged:
 * - each arm of a campaign that was open, and may have had releases since, all that it has left;
 * - every worker, by way of the floor, for each campaign that was open as many tokens as it can have given: no more
 *   than a worker may, than the campaign's limit leaves, and than the anchor says were lost, if nothing says that the
 *   anchor went back as well; and, if there were any, what the campaigns can cost it that were opened since. Of a
 *   recruitment only those whom it names, and for what its budget buys of them;
 * - nobody for tokens of which the copy knows that it had given them, nor more than its account had left.
 */
#ifndef CV_BROKER_RECOVER_H
#define CV_BROKER_RECOVER_H

#include "broker/anchor.h"
#include "broker/core.h"

/* What a third-party knows of a campaign. */
struct cv_recover_claim {
  uint64_t campaign, releases, plans;
  uint64_t worker_micro; /* what the campaign can cost a worker */
};

struct cv_recover_facts {
  bool is_anchored; /* `anchor` is there */
  bool is_same;     /* and of this database and its history */
  struct cv_anchor_mark anchor;
  uint64_t commit; /* of the database */
  const struct cv_recover_claim *claim;
  size_t claims;
  uint64_t wall_ms;
};

/* One row of the table of recoveries. */
struct cv_recovery {
  uint64_t wall_ms;
  uint64_t commit;                        /* of the database that was recovered */
  uint8_t database[CV_DATABASE_ID_BYTES]; /* the anchor's; zeros without one */
  uint64_t anchored;                      /* commit of the anchor */
  uint64_t first, last;                   /* campaigns that are forgotten; first > last: none */
  uint64_t ended;                         /* campaigns that were open */
  uint64_t floor_micro;                   /* charged to every worker */
  uint64_t spared_micro;                  /* taken off single accounts, which that is too much for; all together */
  uint64_t named;                         /* workers that were charged by name */
  struct cv_totals added;                 /* to the totals that follow from the other rows */
};

/* Whether the campaign that the claim is about, which has ended, must be fetched first: what it released is written
 * off. */
bool cv_broker_recover_needs(const struct cv_broker *broker, const struct cv_recover_facts *facts,
                             const struct cv_recover_claim *claim);
/*
 * Between cv_broker_restore_end() and the first event. False if there is nothing to recover, and nothing has changed;
 * else the core's next batch holds the recovery, and its commit lies far above any that can have been.
 */
bool cv_broker_recover(struct cv_broker *broker, const struct cv_recover_facts *facts, struct cv_recovery *ret);

/* What all recoveries together have charged to every worker. */
uint64_t cv_broker_floor_micro(const struct cv_broker *broker);
/* The last recovery stored; NULL if there was none. */
const struct cv_recovery *cv_broker_recovered(const struct cv_broker *broker);

/* The stored form. CV_ERR_DAMAGED. */
void cv_recovery_put(const struct cv_recovery *recovery, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_recovery_read(struct cv_reader *row, struct cv_recovery *ret);

#endif
