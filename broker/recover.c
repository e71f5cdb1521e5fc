/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/recover.h"

#include <string.h>

#include "broker/campaign.h"
#include "broker/dirty.h"
#include "broker/ending.h"
#include "broker/payer.h"
#include "broker/state.h"

/* More commits than can happen in the lost time: nothing sealed or sent under a lost commit number occurs again. */
#define LEAP (UINT64_C(1) << 32)

/* Applies a recovery to the ledger and totals: now, and again at each start. */
static void apply(struct cv_broker *broker, const struct cv_recovery *recovery) {
  struct cv_totals *totals = &broker->totals;
  cv_accounts_raise(&broker->accounts, recovery->floor_micro);
  broker->accounts.spared_micro = cv_ledger_add(broker->accounts.spared_micro, recovery->spared_micro);
  totals->campaigns = recovery->last > totals->campaigns ? recovery->last : totals->campaigns;
  totals->releases = cv_ledger_add(totals->releases, recovery->added.releases);
  totals->tokens = cv_ledger_add(totals->tokens, recovery->added.tokens);
  totals->promised_micro = cv_ledger_add(totals->promised_micro, recovery->added.promised_micro);
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

static const struct cv_recover_claim *claim_of(const struct cv_recover_facts *facts, uint64_t campaign) {
  for (size_t i = 0; i < facts->claims; i++) {
    if (facts->claim[i].campaign == campaign) {
      return &facts->claim[i];
    }
  }
  return NULL;
}

/* Whether the third-party knows more of the campaign than this broker; false once a recovery has charged for it. */
static bool is_ahead(const struct cv_recover_claim *claim, enum cv_end end, uint64_t releases, uint64_t plans) {
  return claim != NULL && end != CV_END_RECOVERED && (claim->releases > releases || claim->plans > plans);
}

/* The claim, if the third-party is ahead of this broker; else NULL. */
static const struct cv_recover_claim *ahead_of(const struct cv_broker_campaign *campaign,
                                               const struct cv_recover_facts *facts) {
  const struct cv_recover_claim *claim = claim_of(facts, campaign->id);
  return is_ahead(claim, campaign->end, campaign->releases, campaign->plans) ? claim : NULL;
}

static const struct cv_recover_claim *ahead_of_ended(const struct cv_ended *ended,
                                                     const struct cv_recover_facts *facts) {
  const struct cv_recover_claim *claim = claim_of(facts, ended->id);
  const struct cv_progress *progress = &ended->progress;
  return is_ahead(claim, progress->end, progress->releases, progress->plans) ? claim : NULL;
}

bool cv_broker_recover_needs(const struct cv_broker *broker, const struct cv_recover_facts *facts,
                             const struct cv_recover_claim *claim) {
  const struct cv_ended *ended = cv_archive_find(&broker->archive, claim->campaign);
  return ended != NULL && !ended->purged && ahead_of_ended(ended, facts) == claim;
}

/* The difference, or 0 if `ours` is larger. */
static uint64_t beyond(uint64_t theirs, uint64_t ours) {
  return theirs > ours ? theirs - ours : 0;
}

struct lost {
  bool all;        /* no bound is known */
  bool is_bounded; /* `tokens` is a bound: the anchor has it, and no claim contradicts the anchor */
  uint64_t releases, tokens;
  uint64_t promised_micro; /* the most that lost campaigns can have charged one worker */
  uint64_t last;           /* number of the last lost campaign */
};

/* Whether an older anchor was restored, too: it is as old as the database, or its totals are lower than the claims
 * imply. */
static bool is_outdated(struct cv_broker *broker, const struct cv_recover_facts *facts) {
  const struct cv_totals *totals = &facts->anchor.totals;
  uint64_t releases = broker->totals.releases, campaigns = broker->totals.campaigns;
  bool is_ahead = false;
  for (size_t i = 0; i < facts->claims; i++) {
    const struct cv_recover_claim *claim = &facts->claim[i];
    const struct cv_broker_campaign *ours = cv_broker_campaign_find(broker, claim->campaign);
    uint64_t known = ours == NULL ? 0 : ours->releases;
    if (ours == NULL ? claim->campaign > broker->totals.campaigns : ahead_of(ours, facts) != NULL) {
      is_ahead = true;
      releases = cv_ledger_add(releases, beyond(claim->releases, known));
      campaigns = claim->campaign > campaigns ? claim->campaign : campaigns;
    }
  }
  return is_ahead &&
         (facts->anchor.commit <= facts->commit || totals->releases < releases || totals->campaigns < campaigns);
}

/* Derives from anchor and claims what happened in the lost time. */
static struct lost find_lost(struct cv_broker *broker, const struct cv_recover_facts *facts) {
  /* Without an anchor of this history nothing bounds what was lost. */
  const struct cv_totals *totals = &facts->anchor.totals;
  uint64_t claimed = 0;
  struct lost lost = {.all = !facts->is_anchored || !facts->is_same, .last = broker->totals.campaigns};
  lost.is_bounded = !lost.all && !is_outdated(broker, facts);
  for (size_t i = 0; i < facts->claims; i++) {
    const struct cv_recover_claim *claim = &facts->claim[i];
    if (claim->campaign > broker->totals.campaigns && claim->campaign <= UINT32_MAX) {
      claimed = cv_ledger_add(claimed, claim->worker_micro);
      lost.last = claim->campaign > lost.last ? claim->campaign : lost.last;
    }
  }
  /* The anchor and the claims are two lower bounds of what happened: the larger one counts. */
  if (facts->is_anchored) {
    lost.releases = beyond(totals->releases, broker->totals.releases);
    lost.tokens = beyond(totals->tokens, broker->totals.tokens);
    /* An anchor of another database: nothing of what it promised is in the accounts of this one. */
    lost.promised_micro =
        facts->is_same ? beyond(totals->promised_micro, broker->totals.promised_micro) : totals->promised_micro;
    lost.last = totals->campaigns > lost.last && totals->campaigns <= UINT32_MAX ? totals->campaigns : lost.last;
  }
  lost.promised_micro = claimed > lost.promised_micro ? claimed : lost.promised_micro;
  return lost;
}

/* Whether nothing was lost: neither the anchor nor any claim is ahead of this database. */
static bool is_level(const struct cv_broker *broker, const struct cv_recover_facts *facts, const struct lost *lost) {
  if (lost->all || facts->commit < facts->anchor.commit || lost->last > broker->totals.campaigns) {
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

/* The charge to every worker, and what single workers are spared because they cannot have given that much. */
struct bill {
  uint64_t floor_micro;
  struct cv_chunks spared; /* cells like those of the accounts, micro-epsilon */
};

/* At least as many tokens as a campaign can have lost: of one that is open in this copy, or that a claim is ahead of;
 * else 0. */
static uint64_t lost_of(const struct cv_broker_campaign *campaign, const struct cv_recover_claim *ahead,
                        const struct lost *lost) {
  uint64_t left = campaign->spec.tokens - campaign->tokens;
  if (campaign->phase >= CV_PHASE_STOPPING && ahead == NULL && !lost->all) {
    return 0;
  }
  if (campaign->gold.terms.items > 0) { /* no total counts answers to gold items: as many as its workers may give */
    return UINT64_MAX;
  }
  return lost->is_bounded && lost->tokens < left ? lost->tokens : left;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* The most that so many tokens can cost one worker. */
static uint64_t price(const struct cv_broker_campaign *campaign, uint64_t tokens) {
  uint64_t micro, each = cv_broker_campaign_charge(campaign, campaign->shown_most);
  if (cv_privacy_is_unprotected(&campaign->privacy)) {
    return tokens > 0 ? CV_UNPROTECTED_MICRO : 0;
  }
  return __builtin_mul_overflow(each, tokens, &micro) ? UINT64_MAX : micro;
}

/* A worker with accepted tokens has fewer left to give than others: it is spared the difference. */
static void spare_payers(struct bill *bill, struct cv_broker_campaign *campaign, uint64_t tokens) {
  uint64_t each = campaign->spec.tokens_per_worker, last = UINT64_MAX, most = price(campaign, smaller(each, tokens));
  for (const struct cv_chunk *chunk = campaign->payers.all; chunk != NULL; chunk = chunk->hh.next) {
    for (uint64_t bit = 0; bit < CV_CHUNK_BITS; bit++) {
      uint64_t index = chunk->number * CV_CHUNK_BITS + bit, worker = index / each, first = worker * each;
      bool is_set = (chunk->as.bytes[bit / 8] >> (bit % 8) & 1) != 0;
      if (!is_set || worker == last) {
        continue;
      }
      last = worker;
      if (cv_chunks_count(&campaign->payers, first, index - first) > 0) {
        continue; /* not the first used slot: the worker is already handled */
      }
      uint64_t given = cv_chunks_count(&campaign->payers, first, each);
      struct cv_chunk *spared;
      if (cv_chunks_touch(&bill->spared, worker / CV_CHUNK_CELLS, &spared) == CV_OK) {
        cv_accounts_charge(spared, worker, most - price(campaign, smaller(each - given, tokens)));
      }
    }
  }
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
                          const struct cv_recover_claim *ahead, const struct lost *lost, struct bill *bill) {
  uint64_t tokens = lost_of(campaign, ahead, lost), each = campaign->spec.tokens_per_worker;
  uint64_t ours = cv_privacy_worker_micro(&campaign->privacy, &campaign->spec);
  if (ahead != NULL && ahead->worker_micro > ours) { /* a lost campaign had the same number and cost more */
    bill->floor_micro = cv_ledger_add(bill->floor_micro, ahead->worker_micro);
    return;
  }
  if (!is_named(broker, campaign)) {
    bill->floor_micro = cv_ledger_add(bill->floor_micro, price(campaign, smaller(each, tokens)));
    spare_payers(bill, campaign, tokens);
  }
}

/* No worker is charged more than it has left, nor for tokens that it cannot have given. Where the floor charges more
 * than that, the difference is taken off the worker's own cell, which never becomes negative. */
static void spare_accounts(struct cv_broker *broker, struct bill *bill, uint64_t raise_micro,
                           struct cv_recovery *recovery) {
  uint64_t floor = broker->accounts.floor_micro, limit = broker->config.limits.worker_epsilon_micro;
  for (struct cv_chunk *chunk = broker->accounts.cells.all; chunk != NULL; chunk = chunk->hh.next) {
    const struct cv_chunk *spared = cv_chunks_find(&bill->spared, chunk->number);
    bool changed = false;
    for (size_t i = 0; i < CV_CHUNK_CELLS; i++) {
      uint32_t *cell = &chunk->as.cell[i];
      uint64_t asked =
          bill->floor_micro - smaller(bill->floor_micro, spared == NULL ? 0 : smaller(spared->as.cell[i], *cell));
      uint64_t charge = smaller(asked, beyond(limit, cv_ledger_add(floor, *cell)));
      if (*cell > 0 && *cell < UINT32_MAX && charge < raise_micro) {
        *cell -= (uint32_t)(raise_micro - charge);
        recovery->spared_micro += raise_micro - charge;
        changed = true;
      }
    }
    if (changed) {
      cv_dirty_chunk(broker, 0, CV_CHUNK_ACCOUNTS, chunk);
    }
  }
}

/* Charges each worker that the campaign names, limited by tokens, slots, budget and the worker's own account. */
static void charge_named(struct cv_broker *broker, const struct cv_broker_campaign *campaign, uint64_t tokens,
                         uint64_t floor_micro, struct cv_recovery *recovery) {
  const struct cv_spec *spec = &campaign->spec;
  for (uint32_t i = 0; i < spec->arms; i++) {
    uint64_t worker = spec->worker[i], slots = beyond(spec->tokens_per_worker, campaign->payroll.tokens[i]);
    uint64_t bought = (spec->budget_micro - campaign->payroll.paid_micro) / spec->cost_micro[i];
    /* Not NULL: is_named() made it. */
    struct cv_chunk *chunk = cv_chunks_find(&broker->accounts.cells, worker / CV_CHUNK_CELLS);
    uint64_t spent = cv_ledger_add(floor_micro, chunk->as.cell[worker % CV_CHUNK_CELLS]);
    uint64_t charge = smaller(price(campaign, smaller(smaller(slots, bought), tokens)),
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
                            const struct cv_recover_claim *ahead, const struct lost *lost) {
  if (lost->all || ahead != NULL || lost->releases > 0) {
    cv_ledger_write_off(&campaign->ledger);
  }
  cv_broker_campaign_end(broker, campaign, CV_END_RECOVERED);
  campaign->end = CV_END_RECOVERED; /* also of a campaign that was frozen for what is now charged */
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
      cv_archive_mark(&broker->archive, ended);
    }
  }
}

/* Charges the workers for what the campaigns may have done in the lost time, and ends these campaigns. */
static void settle(struct cv_broker *broker, const struct cv_recover_facts *facts, const struct lost *lost,
                   struct cv_recovery *recovery) {
  bool no_tokens = lost->is_bounded && lost->tokens == 0;
  struct bill bill = {.floor_micro = no_tokens ? 0 : lost->promised_micro};
  uint64_t floor = broker->accounts.floor_micro, limit = broker->config.limits.worker_epsilon_micro;
  cv_chunks_init(&bill.spared, UINT32_MAX);
  for (struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    const struct cv_recover_claim *ahead = ahead_of(campaign, facts);
    if (campaign->phase != CV_PHASE_ENDED || ahead != NULL) {
      bill_campaign(broker, campaign, ahead, lost, &bill);
    }
  }
  settle_purged(broker, facts, &bill.floor_micro);
  /* The floor comes first: what workers are spared and what named workers pay depends on it. */
  recovery->floor_micro = smaller(bill.floor_micro, beyond(limit, floor));
  spare_accounts(broker, &bill, recovery->floor_micro, recovery);
  cv_chunks_fini(&bill.spared);
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
  struct lost lost = find_lost(broker, facts);
  if (is_level(broker, facts, &lost)) {
    return false;
  }
  struct cv_recovery recovery = {.wall_ms = facts->wall_ms,
                                 .commit = facts->commit,
                                 .anchored = facts->anchor.commit,
                                 .first = broker->totals.campaigns + 1,
                                 .last = lost.last};
  /* Lets a run that is repeated after a crash recognize that this recovery is stored already (is_done() in
   * repair.c). */
  memcpy(recovery.database, facts->anchor.database, sizeof(recovery.database));
  broker->wall_ms = facts->wall_ms;
  settle(broker, facts, &lost, &recovery);
  /* One more than was lost, so that every copy from before the recovery is behind in every total. */
  recovery.added = (struct cv_totals){.releases = cv_ledger_add(lost.releases, 1),
                                      .tokens = cv_ledger_add(lost.tokens, 1),
                                      .promised_micro = lost.promised_micro};
  apply(broker, &recovery);
  /* Above both numbers, and by the leap: the lost database may have gone on after the anchor that was found. */
  uint64_t most = facts->commit > facts->anchor.commit ? facts->commit : facts->anchor.commit;
  broker->commit = cv_ledger_add(most, LEAP);
  broker->recovery_due = true;
  broker->changed = true;
  *ret = recovery;
  return true;
}
