/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery of a broker or a co-broker whose database was restored from an older copy, or was lost. The lost time is
 * charged as if the worst had happened, open campaigns end, and what was sent in the lost time becomes void. This part
 * is what both have: what was lost, and what it can have cost a worker. Pure.
 *
 * Sources of knowledge about the lost time, of which all, some or none may exist:
 * - the anchor's totals: the numbers of campaigns, releases and tokens, and the most epsilon that all campaigns
 *   together can have cost one worker;
 * - claims of others: the campaigns that they know, and how much of each this side must have had. A broker can have
 *   those of the third-party and of the co-broker, a co-broker those of the broker.
 *
 * Charges, beside those of arms:
 * - every worker, through the floor: for each campaign that was open, as many tokens as the worker can have given. That
 *   is at most tokens_per_worker, what the campaign's limit leaves, and what the anchor counts as lost, unless there is
 *   evidence that an older anchor was restored, too. If tokens were lost, also what campaigns opened since can have
 *   cost it;
 * - no worker for tokens that the copy already counts, and no worker more than its account has left.
 */
#ifndef CV_BROKER_BOTH_RECOVER_H
#define CV_BROKER_BOTH_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/both/ledger.h"
#include "broker/both/mark.h"
#include "broker/both/recovery.h"
#include "common/base/chunks.h"

/* What another party knows of a campaign: at least so much of it this side had stored. */
struct cv_recover_claim {
  uint64_t campaign, releases, plans;
  uint64_t closings, batches, tokens; /* of a campaign with two brokers, else 0 */
  uint64_t worker_micro;              /* what the campaign can cost a worker */
};

/* The same of this side's copy. */
struct cv_recover_known {
  bool is_known;     /* the campaign is there, open or read back */
  bool is_old;       /* else: it may have been there, and nothing is known of it any more */
  bool is_recovered; /* a recovery has ended it, and charged all that it can have cost */
  uint64_t releases, plans, closings, batches, tokens;
};

struct cv_recover_facts {
  bool is_anchored; /* `anchor` is set */
  bool is_same;     /* the anchor is of the database and of its history */
  struct cv_anchor_mark anchor;
  uint64_t commit;                     /* of the database */
  const struct cv_anchor_place *taken; /* anchors that `anchor` is made from, of a shared database */
  size_t takens;
  const struct cv_recover_claim *claim;
  size_t claims; /* one of a campaign */
  uint64_t wall_ms;
};

/* Claims, one of a campaign. */
struct cv_recover_claims {
  struct cv_recover_claim *claim; /* owned */
  size_t n, cap;
};
/* Adds a claim to the list: of two about the same campaign the larger figures count. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_recover_claims_add(struct cv_recover_claims *claims, const struct cv_recover_claim *claim);
void cv_recover_claims_fini(struct cv_recover_claims *claims);

/* The claim about a campaign; NULL if there is none. */
const struct cv_recover_claim *cv_recover_claim_of(const struct cv_recover_facts *facts, uint64_t campaign);
/* Whether the claim, which may be NULL, knows more of its campaign than this side. */
bool cv_recover_is_ahead(const struct cv_recover_claim *claim, const struct cv_recover_known *known);

/* ---- what was lost ---- */

struct cv_recover_lost {
  bool all;        /* no bound is known */
  bool is_bounded; /* `tokens` is a bound: the anchor has it, and no claim contradicts the anchor */
  uint64_t releases, tokens;
  uint64_t promised_micro; /* the most that lost campaigns can have charged one worker */
  uint64_t last;           /* number of the last campaign, lost ones included */
  bool has_claimed;        /* a claim is about a lost campaign */
};

/* Says what this side knows of a campaign. */
typedef void cv_recover_know_fn(void *data, uint64_t campaign, struct cv_recover_known *ret);
/* Derives from anchor and claims what happened in the lost time; `ours` are the copy's totals. */
void cv_recover_find(const struct cv_recover_facts *facts, const struct cv_totals *ours, cv_recover_know_fn *know,
                     void *data, struct cv_recover_lost *ret);
/* Whether neither the anchor nor a claim about an unknown campaign is ahead of the copy. */
bool cv_recover_is_level(const struct cv_recover_facts *facts, const struct cv_totals *ours,
                         const struct cv_recover_lost *lost);
/* The recovery of what was lost, without the charges that depend on campaigns. One more than was lost is added to each
 * total, so that every copy from before the recovery is behind. */
void cv_recover_begin(const struct cv_recover_facts *facts, const struct cv_totals *ours,
                      const struct cv_recover_lost *lost, struct cv_recovery *ret);
/* The number of the recovery's commit: more above every one before than commits can happen in the lost time, so that
 * nothing sealed or sent under a lost number occurs again. */
uint64_t cv_recover_commit(const struct cv_recover_facts *facts);
/* Applies a recovery to accounts and totals: when it is made, and again at each start. */
void cv_recover_apply(const struct cv_recovery *recovery, struct cv_accounts *accounts, struct cv_totals *totals);

/* ---- what is charged ---- */

/* A campaign that can have cost its workers something in the lost time. */
struct cv_recover_item {
  uint64_t tokens;         /* at least as many as it can have lost */
  uint64_t each;           /* tokens_per_worker */
  uint64_t micro;          /* the charge of a token */
  bool is_unprotected;     /* a worker that gives a token is charged CV_UNPROTECTED_MICRO */
  struct cv_chunks *given; /* bits: worker * each + slot, of tokens that the copy counts */
};
/* The most that so many tokens of it can cost one worker. */
uint64_t cv_recover_price(const struct cv_recover_item *item, uint64_t tokens);

/* The charge to every worker, and what single workers are spared because they cannot have given that much. */
struct cv_recover_bill {
  uint64_t floor_micro;
  struct cv_chunks spared; /* cells like those of the accounts, micro-epsilon */
};
/* Begins with what lost campaigns can have charged. */
void cv_recover_bill_init(struct cv_recover_bill *bill, const struct cv_recover_lost *lost);
void cv_recover_bill_fini(struct cv_recover_bill *bill);
/* Adds to the floor what the campaign can have cost any worker. A worker with counted tokens has fewer left to give: it
 * is spared the difference. */
void cv_recover_bill_add(struct cv_recover_bill *bill, const struct cv_recover_item *item);
/* What the floor rises by: no account is charged beyond the limit. */
uint64_t cv_recover_bill_floor(const struct cv_recover_bill *bill, const struct cv_accounts *accounts,
                               uint64_t limit_micro);
/*
 * Takes off the cells of a chunk of accounts what a floor that rises by `raise_micro` charges their workers beyond what
 * they have left, or for tokens that they cannot have given; no cell becomes negative. The accounts still have the
 * floor of before. Returns the sum.
 */
uint64_t cv_recover_bill_spare(struct cv_recover_bill *bill, const struct cv_accounts *accounts, uint64_t limit_micro,
                               uint64_t raise_micro, struct cv_chunk *chunk);

#endif
