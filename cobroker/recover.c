/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/recover.h"

#include "cobroker/campaign.h"
#include "cobroker/dirty.h"
#include "cobroker/ending.h"
#include "cobroker/state.h"

static void apply(struct cv_cobroker *core, const struct cv_recovery *recovery) {
  struct cv_totals *past = &core->archive.past;
  cv_recover_apply(recovery, &core->accounts, &core->totals);
  past->campaigns = recovery->last > past->campaigns ? recovery->last : past->campaigns;
  core->recovery = *recovery;
  core->recoveries++;
}

enum cv_err cv_cobroker_restore_recovery(struct cv_cobroker *core, uint64_t number, struct cv_reader *row) {
  struct cv_recovery recovery;
  CV_TRY(cv_recovery_read(row, &recovery));
  if (number != core->recoveries + UINT64_C(1)) {
    return CV_ERR_DAMAGED;
  }
  apply(core, &recovery);
  return CV_OK;
}

const struct cv_recovery *cv_cobroker_recovered(const struct cv_cobroker *core) {
  return core->recoveries > 0 ? &core->recovery : NULL;
}

uint64_t cv_cobroker_floor_micro(const struct cv_cobroker *core) {
  return core->accounts.floor_micro;
}

/* ---- what was lost ---- */

static struct cv_recover_known known_of(const struct cv_cobroker_campaign *campaign) {
  return (struct cv_recover_known){.is_known = true,
                                   .releases = campaign->closings,
                                   .plans = campaign->plans,
                                   .closings = campaign->closings,
                                   .batches = campaign->batches,
                                   .tokens = campaign->tokens};
}

/* A record has no counts of plans and batches. */
static struct cv_recover_known known_of_ended(const struct cv_cobroker_ended *ended) {
  return (struct cv_recover_known){.is_known = true,
                                   .is_recovered = ended->end == CV_END_RECOVERED,
                                   .releases = ended->totals.releases,
                                   .plans = UINT64_MAX,
                                   .closings = ended->totals.releases,
                                   .batches = UINT64_MAX,
                                   .tokens = ended->totals.tokens};
}

static void know(void *data, uint64_t id, struct cv_recover_known *ret) {
  struct cv_cobroker *core = data;
  const struct cv_cobroker_campaign *campaign = cv_cobroker_campaign_find(core, id);
  const struct cv_cobroker_ended *ended = cv_cobroker_archive_find(&core->archive, id);
  *ret = campaign != NULL ? known_of(campaign)
         : ended != NULL  ? known_of_ended(ended)
                          : (struct cv_recover_known){.is_old = id <= core->archive.past.campaigns};
}

/* The claim, if it is ahead of this co-broker; else NULL. */
static const struct cv_recover_claim *ahead_of(struct cv_cobroker *core, uint32_t id,
                                               const struct cv_recover_facts *facts) {
  const struct cv_recover_claim *claim = cv_recover_claim_of(facts, id);
  struct cv_recover_known known;
  know(core, id, &known);
  return cv_recover_is_ahead(claim, &known) ? claim : NULL;
}

/* Whether nothing was lost: neither the anchor nor any claim is ahead of this database. */
static bool is_level(struct cv_cobroker *core, const struct cv_recover_facts *facts,
                     const struct cv_recover_lost *lost) {
  for (size_t i = 0; i < facts->claims; i++) {
    struct cv_recover_known known;
    know(core, facts->claim[i].campaign, &known);
    if (known.is_known && cv_recover_is_ahead(&facts->claim[i], &known)) {
      return false;
    }
  }
  return cv_recover_is_level(facts, &core->totals, lost);
}

/* ---- what is charged ---- */

/* Adds to the floor what the open campaign can have cost any worker in the lost time. */
static void bill_campaign(struct cv_cobroker_campaign *campaign, const struct cv_recover_claim *ahead,
                          const struct cv_recover_lost *lost, struct cv_recover_bill *bill) {
  uint64_t left = campaign->spec.tokens - campaign->tokens;
  const struct cv_recover_item item = {.tokens = lost->is_bounded && lost->tokens < left ? lost->tokens : left,
                                       .each = campaign->spec.tokens_per_worker,
                                       .micro = campaign->privacy.cost_micro,
                                       .given = &campaign->slots};
  if (ahead != NULL && ahead->worker_micro > cv_privacy_worker_micro(&campaign->privacy, &campaign->spec)) {
    /* a lost campaign had the same number and cost more */
    bill->floor_micro = cv_ledger_add(bill->floor_micro, ahead->worker_micro);
    return;
  }
  cv_recover_bill_add(bill, &item);
}

/* An ended campaign that a claim is ahead of: it was frozen because this side had lost a part of it. */
static void bill_ended(struct cv_cobroker *core, struct cv_cobroker_ended *ended, const struct cv_recover_claim *ahead,
                       struct cv_recover_bill *bill) {
  uint64_t ours = ended->totals.promised_micro;
  bill->floor_micro = cv_ledger_add(bill->floor_micro, ahead->worker_micro > ours ? ahead->worker_micro : ours);
  core->archive.changed += !ended->changed;
  ended->changed = true;
  ended->end = CV_END_RECOVERED;
}

static void bill_all(struct cv_cobroker *core, const struct cv_recover_facts *facts, const struct cv_recover_lost *lost,
                     struct cv_recover_bill *bill) {
  for (struct cv_cobroker_campaign *each = core->campaigns; each != NULL; each = each->hh.next) {
    bill_campaign(each, ahead_of(core, each->id, facts), lost, bill);
  }
  for (struct cv_cobroker_ended *each = core->archive.all; each != NULL; each = each->hh.next) {
    const struct cv_recover_claim *ahead = ahead_of(core, each->id, facts);
    if (ahead != NULL) {
      bill_ended(core, each, ahead, bill);
    }
  }
}

/* Charges the workers for what the campaigns may have done in the lost time, and ends these campaigns. */
static void settle(struct cv_cobroker *core, const struct cv_recover_facts *facts, const struct cv_recover_lost *lost,
                   struct cv_recovery *recovery) {
  uint64_t limit = core->config.limits.worker_epsilon_micro;
  struct cv_recover_bill bill;
  cv_recover_bill_init(&bill, lost);
  bill_all(core, facts, lost, &bill);
  recovery->floor_micro = cv_recover_bill_floor(&bill, &core->accounts, limit);
  for (struct cv_chunk *chunk = core->accounts.cells.all; chunk != NULL; chunk = chunk->hh.next) {
    uint64_t spared = cv_recover_bill_spare(&bill, &core->accounts, limit, recovery->floor_micro, chunk);
    if (spared > 0) {
      recovery->spared_micro += spared;
      cv_cobroker_dirty_chunk(core, 0, CV_COROW_ACCOUNTS, chunk);
    }
  }
  cv_recover_bill_fini(&bill);
  for (struct cv_cobroker_campaign *each = core->campaigns, *next; each != NULL; each = next) {
    next = each->hh.next;
    recovery->ended++;
    cv_cobroker_end(core, each, CV_END_RECOVERED, "this co-broker was recovered from an older state");
  }
}

bool cv_cobroker_recover(struct cv_cobroker *core, const struct cv_recover_facts *facts, struct cv_recovery *ret) {
  struct cv_recover_lost lost;
  struct cv_recovery recovery;
  cv_recover_find(facts, &core->totals, know, core, &lost);
  if (is_level(core, facts, &lost)) {
    return false;
  }
  cv_recover_begin(facts, &core->totals, &lost, &recovery);
  core->wall_ms = facts->wall_ms;
  settle(core, facts, &lost, &recovery);
  apply(core, &recovery);
  core->commit = cv_recover_commit(facts);
  core->recovery_due = core->changed = true;
  *ret = recovery;
  return true;
}
