/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/recover.h"

#include "broker/campaign.h"
#include "broker/dirty.h"
#include "broker/ending.h"
#include "broker/payer.h"
#include "broker/state.h"
#include "broker/two.h"
#include "common/base/text.h"

static void apply(struct cv_broker *broker, const struct cv_recovery *recovery) {
  cv_recover_apply(recovery, &broker->accounts, &broker->totals);
  broker->recovery = *recovery;
  broker->recoveries++;
}

enum cv_err cv_broker_restore_recovery(struct cv_broker *broker, uint32_t number, struct cv_reader *row) {
  struct cv_recovery recovery;
  CV_TRY(cv_recovery_read(row, &recovery));
  if (number != broker->recoveries + 1) {
    return CV_ERR_DAMAGED;
  }
  apply(broker, &recovery);
  return CV_OK;
}

const struct cv_recovery *cv_broker_recovered(const struct cv_broker *broker) {
  return broker->recoveries > 0 ? &broker->recovery : NULL;
}

uint64_t cv_broker_floor_micro(const struct cv_broker *broker) {
  return broker->accounts.floor_micro;
}

/* ---- what was lost ---- */

/* Tokens of a campaign that has ended: no claim is ahead of them, since the last ones of a campaign with two brokers
 * may count at the co-broker only, unless one of the two has frozen it because the other one had lost some. */
static uint64_t tokens_of(enum cv_end end, uint64_t tokens) {
  return end == CV_END_FROZEN ? tokens : UINT64_MAX;
}

/* What this broker knows of a campaign in memory. With two brokers its closings and batches are here until it stops; a
 * copy in which it has stopped can have lost none. */
static struct cv_recover_known known_of(const struct cv_broker_campaign *campaign) {
  struct cv_recover_known known = {.is_known = true,
                                   .is_recovered = campaign->end == CV_END_RECOVERED,
                                   .releases = campaign->releases,
                                   .plans = campaign->plans,
                                   .closings = UINT64_MAX,
                                   .batches = UINT64_MAX,
                                   .tokens = tokens_of(campaign->end, campaign->tokens)};
  if (campaign->two != NULL && campaign->phase < CV_PHASE_STOPPING) {
    known.closings = cv_two_closed(campaign);
    known.batches = cv_docket_last(&campaign->two->docket);
    known.tokens = campaign->tokens;
  }
  return known;
}

static void know(void *data, uint64_t id, struct cv_recover_known *ret) {
  struct cv_broker *broker = data;
  const struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  *ret = campaign == NULL ? (struct cv_recover_known){.is_old = id <= broker->totals.campaigns} : known_of(campaign);
}

/* The claim, if it is ahead of this broker; else NULL. */
static const struct cv_recover_claim *ahead_of(const struct cv_broker_campaign *campaign,
                                               const struct cv_recover_facts *facts) {
  const struct cv_recover_claim *claim = cv_recover_claim_of(facts, campaign->id);
  struct cv_recover_known known = known_of(campaign);
  return cv_recover_is_ahead(claim, &known) ? claim : NULL;
}

static const struct cv_recover_claim *ahead_of_ended(const struct cv_ended *ended,
                                                     const struct cv_recover_facts *facts) {
  const struct cv_progress *progress = &ended->progress;
  const struct cv_recover_claim *claim = cv_recover_claim_of(facts, ended->id);
  const struct cv_recover_known known = {.is_known = true,
                                         .is_recovered = progress->end == CV_END_RECOVERED,
                                         .releases = progress->releases,
                                         .plans = progress->plans,
                                         .closings = UINT64_MAX,
                                         .batches = UINT64_MAX,
                                         .tokens = tokens_of(progress->end, progress->tokens)};
  return cv_recover_is_ahead(claim, &known) ? claim : NULL;
}

bool cv_broker_recover_needs(const struct cv_broker *broker, const struct cv_recover_facts *facts,
                             const struct cv_recover_claim *claim) {
  const struct cv_ended *ended = cv_archive_find(&broker->archive, claim->campaign);
  return ended != NULL && !ended->purged && ahead_of_ended(ended, facts) == claim;
}

/* Whether nothing was lost: neither the anchor nor any claim is ahead of this database. */
static bool is_level(const struct cv_broker *broker, const struct cv_recover_facts *facts,
                     const struct cv_recover_lost *lost) {
  if (!cv_recover_is_level(facts, &broker->totals, lost)) {
    return false;
  }
  for (const struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    if (ahead_of(campaign, facts) != NULL) {
      return false;
    }
  }
  for (const struct cv_ended *ended = broker->archive.all; ended != NULL; ended = ended->hh.next) {
    if (ahead_of_ended(ended, facts) != NULL) {
      return false;
    }
  }
  return true;
}

/* ---- what is charged ---- */

static uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* The difference, or 0 if `ours` is larger. */
static uint64_t beyond(uint64_t theirs, uint64_t ours) {
  return theirs > ours ? theirs - ours : 0;
}

/* At least as many tokens as a campaign can have lost: of one that is open in this copy, or that a claim is ahead of;
 * else 0. */
static uint64_t lost_of(const struct cv_broker_campaign *campaign, const struct cv_recover_claim *ahead,
                        const struct cv_recover_lost *lost) {
  uint64_t left = campaign->spec.tokens - campaign->tokens;
  if (campaign->phase >= CV_PHASE_STOPPING && ahead == NULL && !lost->all) {
    return 0;
  }
  if (campaign->gold.terms.items > 0) { /* no total counts answers to gold items: as many as its workers may give */
    return UINT64_MAX;
  }
  return lost->is_bounded && lost->tokens < left ? lost->tokens : left;
}

static struct cv_recover_item item_of(struct cv_broker_campaign *campaign, uint64_t tokens) {
  return (struct cv_recover_item){.tokens = tokens,
                                  .each = campaign->spec.tokens_per_worker,
                                  .micro = cv_broker_campaign_charge(campaign, campaign->shown_most),
                                  .is_unprotected = cv_privacy_is_unprotected(&campaign->privacy),
                                  .given = &campaign->payers};
}

/* Whether a recruitment names the workers that can have given tokens, and each of them has an account or gets one. */
static bool is_named(struct cv_broker *broker, const struct cv_broker_campaign *campaign) {
  bool named = cv_payroll_is_kept(&campaign->payroll);
  for (uint32_t i = 0; named && i < campaign->spec.arms; i++) {
    struct cv_chunk *chunk;
    named = cv_chunks_touch(&broker->accounts.cells, campaign->spec.worker[i] / CV_CHUNK_CELLS, &chunk) == CV_OK;
  }
  return named;
}

/* Adds to the floor what a campaign can have cost any worker in the lost time. */
static void bill_campaign(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                          const struct cv_recover_claim *ahead, const struct cv_recover_lost *lost,
                          struct cv_recover_bill *bill) {
  uint64_t ours = cv_privacy_worker_micro(&campaign->privacy, &campaign->spec);
  if (ahead != NULL && ahead->worker_micro > ours) { /* a lost campaign had the same number and cost more */
    bill->floor_micro = cv_ledger_add(bill->floor_micro, ahead->worker_micro);
    return;
  }
  if (!is_named(broker, campaign)) {
    const struct cv_recover_item item = item_of(campaign, lost_of(campaign, ahead, lost));
    cv_recover_bill_add(bill, &item);
  }
}

static void spare_accounts(struct cv_broker *broker, struct cv_recover_bill *bill, struct cv_recovery *recovery) {
  uint64_t limit = broker->config.limits.worker_epsilon_micro;
  for (struct cv_chunk *chunk = broker->accounts.cells.all; chunk != NULL; chunk = chunk->hh.next) {
    uint64_t spared = cv_recover_bill_spare(bill, &broker->accounts, limit, recovery->floor_micro, chunk);
    if (spared > 0) {
      recovery->spared_micro += spared;
      cv_dirty_chunk(broker, 0, CV_CHUNK_ACCOUNTS, chunk);
    }
  }
}

/* Charges each worker that the campaign names, limited by tokens, slots, budget and the worker's own account. */
static void charge_named(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint64_t tokens,
                         uint64_t floor_micro, struct cv_recovery *recovery) {
  const struct cv_spec *spec = &campaign->spec;
  const struct cv_recover_item item = item_of(campaign, tokens);
  for (uint32_t i = 0; i < spec->arms; i++) {
    uint64_t worker = spec->worker[i], slots = beyond(spec->tokens_per_worker, campaign->payroll.tokens[i]);
    uint64_t bought = (spec->budget_micro - campaign->payroll.paid_micro) / spec->cost_micro[i];
    /* Not NULL: is_named() made it. */
    struct cv_chunk *chunk = cv_chunks_find(&broker->accounts.cells, worker / CV_CHUNK_CELLS);
    uint64_t spent = cv_ledger_add(floor_micro, chunk->as.cell[worker % CV_CHUNK_CELLS]);
    uint64_t charge = smaller(cv_recover_price(&item, smaller(smaller(slots, bought), tokens)),
                              beyond(broker->config.limits.worker_epsilon_micro, spent));
    if (charge > 0) {
      cv_accounts_charge(chunk, worker, charge);
      cv_dirty_chunk(broker, 0, CV_CHUNK_ACCOUNTS, chunk);
      recovery->named++;
    }
  }
}

/* Ends the campaign; charges its arms as if all possible releases had been made. */
static void settle_campaign(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                            const struct cv_recover_claim *ahead, const struct cv_recover_lost *lost) {
  if (lost->all || ahead != NULL || lost->releases > 0) {
    cv_ledger_write_off(&campaign->ledger);
  }
  cv_broker_campaign_end(broker, campaign, CV_END_RECOVERED, NULL);
  cv_broker_campaign_tell(campaign, CV_END_RECOVERED,
                          NULL); /* also of a campaign that was frozen for what is now charged */
  cv_broker_campaign_mark(broker, campaign);
  cv_broker_campaign_archive(broker, campaign);
}

/* The most that a worker may have been charged; the claim's figure if a lost campaign had the same number. */
static uint64_t charge_for(const struct cv_recover_claim *ahead, uint64_t ours) {
  return ahead->worker_micro > ours ? ahead->worker_micro : ours;
}

/* A purged campaign has no accounts of arms to write off; workers are charged as for any other campaign. */
static void settle_purged(struct cv_broker *broker, const struct cv_recover_facts *facts, uint64_t *floor_micro) {
  for (struct cv_ended *ended = broker->archive.all; ended != NULL; ended = ended->hh.next) {
    const struct cv_recover_claim *ahead = ended->purged ? ahead_of_ended(ended, facts) : NULL;
    if (ahead != NULL) {
      *floor_micro = cv_ledger_add(*floor_micro, charge_for(ahead, ended->worker_micro));
      ended->progress.end = CV_END_RECOVERED;
      cv_text_print(ended->progress.why, sizeof(ended->progress.why), "%s", cv_end_usual_why(CV_END_RECOVERED));
      cv_archive_mark(&broker->archive, ended);
    }
  }
}

/* Charges the workers for what the campaigns may have done in the lost time, and ends these campaigns. */
static void settle(struct cv_broker *broker, const struct cv_recover_facts *facts, const struct cv_recover_lost *lost,
                   struct cv_recovery *recovery) {
  struct cv_recover_bill bill;
  uint64_t floor = broker->accounts.floor_micro;
  cv_recover_bill_init(&bill, lost);
  for (struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    const struct cv_recover_claim *ahead = ahead_of(campaign, facts);
    if (campaign->phase != CV_PHASE_ENDED || ahead != NULL) {
      bill_campaign(broker, campaign, ahead, lost, &bill);
    }
  }
  settle_purged(broker, facts, &bill.floor_micro);
  /* The floor comes first: what workers are spared and what named workers pay depends on it. */
  recovery->floor_micro = cv_recover_bill_floor(&bill, &broker->accounts, broker->config.limits.worker_epsilon_micro);
  spare_accounts(broker, &bill, recovery);
  cv_recover_bill_fini(&bill);
  for (struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    const struct cv_recover_claim *ahead = ahead_of(campaign, facts);
    bool open = campaign->phase != CV_PHASE_ENDED;
    recovery->ended += open;
    if (open || ahead != NULL) {
      if (is_named(broker, campaign)) {
        charge_named(broker, campaign, lost_of(campaign, ahead, lost), floor + recovery->floor_micro, recovery);
      }
      settle_campaign(broker, campaign, ahead, lost);
    }
  }
}

bool cv_broker_recover(struct cv_broker *broker, const struct cv_recover_facts *facts, struct cv_recovery *ret) {
  struct cv_recover_lost lost;
  struct cv_recovery recovery;
  cv_recover_find(facts, &broker->totals, know, broker, &lost);
  if (is_level(broker, facts, &lost)) {
    return false;
  }
  cv_recover_begin(facts, &broker->totals, &lost, &recovery);
  broker->wall_ms = facts->wall_ms;
  settle(broker, facts, &lost, &recovery);
  apply(broker, &recovery);
  broker->commit = cv_recover_commit(facts);
  broker->recovery_due = true;
  broker->changed = true;
  *ret = recovery;
  return true;
}
