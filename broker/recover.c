/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/recover.h"

#include <string.h>

#include "broker/state.h"

/* Nobody makes so many commits in between: what was sealed or said under a forgotten number is never met again. */
#define LEAP (UINT64_C(1) << 32)

void cv_recovery_put(const struct cv_recovery *recovery, struct cv_buf *out) {
  const uint64_t fields[] = {recovery->wall_ms,      recovery->commit,
                             recovery->anchored,     recovery->first,
                             recovery->last,         recovery->ended,
                             recovery->floor_micro,  recovery->added.releases,
                             recovery->added.tokens, recovery->added.promised_micro,
                             recovery->spared_micro, recovery->named};
  cv_buf_put(out, recovery->database, sizeof(recovery->database));
  for (size_t i = 0; i < CV_COUNT(fields); i++) {
    cv_buf_put_u64(out, fields[i]);
  }
}

enum cv_err cv_recovery_read(struct cv_reader *row, struct cv_recovery *ret) {
  struct cv_recovery recovery = {0};
  uint64_t *const fields[] = {&recovery.wall_ms,      &recovery.commit,
                              &recovery.anchored,     &recovery.first,
                              &recovery.last,         &recovery.ended,
                              &recovery.floor_micro,  &recovery.added.releases,
                              &recovery.added.tokens, &recovery.added.promised_micro,
                              &recovery.spared_micro, &recovery.named};
  enum { OF_BEFORE = CV_COUNT(fields) - 2 }; /* what a row of version 0.1.0 has: it spared nobody */
  const uint8_t *database = cv_read(row, sizeof(recovery.database));
  for (size_t i = 0; i < CV_COUNT(fields) && !(i == OF_BEFORE && cv_reader_done(row)); i++) {
    *fields[i] = cv_read_u64(row);
  }
  if (database == NULL || !cv_reader_done(row) || recovery.last > UINT32_MAX) {
    return CV_ERR_DAMAGED;
  }
  memcpy(recovery.database, database, sizeof(recovery.database));
  *ret = recovery;
  return CV_OK;
}

/* What a recovery does to the books, now and at each start. */
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

/* ---- what was forgotten ---- */

static const struct cv_recover_claim *claim_of(const struct cv_recover_facts *facts, uint64_t campaign) {
  for (size_t i = 0; i < facts->claims; i++) {
    if (facts->claim[i].campaign == campaign) {
      return &facts->claim[i];
    }
  }
  return NULL;
}

/* Whether the third-party knows more of the campaign than we do; once that is charged, it stays so: no. */
static bool is_ahead(const struct cv_recover_claim *claim, enum cv_end end, uint64_t releases, uint64_t plans) {
  return claim != NULL && end != CV_END_RECOVERED && (claim->releases > releases || claim->plans > plans);
}

/* The claim that is; NULL: there is none. */
static const struct cv_recover_claim *ahead_of(const struct cv_campaign *campaign,
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

static uint64_t beyond(uint64_t theirs, uint64_t ours) {
  return theirs > ours ? theirs - ours : 0;
}

struct lost {
  bool all;        /* nothing bounds it */
  bool is_bounded; /* tokens: the anchor says how many there were, and nobody contradicts it */
  uint64_t releases, tokens;
  uint64_t promised_micro; /* by campaigns that are forgotten */
  uint64_t last;           /* of these */
};

/* An anchor that is as old as the database, or knows less than the third-party, went back as well. */
static bool is_outdated(struct cv_broker *broker, const struct cv_recover_facts *facts) {
  const struct cv_totals *totals = &facts->anchor.totals;
  uint64_t releases = broker->totals.releases, campaigns = broker->totals.campaigns;
  bool is_ahead = false;
  for (size_t i = 0; i < facts->claims; i++) {
    const struct cv_recover_claim *claim = &facts->claim[i];
    const struct cv_campaign *ours = cv_campaign_find(broker, claim->campaign);
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

static struct lost find_lost(struct cv_broker *broker, const struct cv_recover_facts *facts) {
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
  if (facts->is_anchored) {
    lost.releases = beyond(totals->releases, broker->totals.releases);
    lost.tokens = beyond(totals->tokens, broker->totals.tokens);
    /* With the anchor of another database all that it promised is on nobody's account here. */
    lost.promised_micro =
        facts->is_same ? beyond(totals->promised_micro, broker->totals.promised_micro) : totals->promised_micro;
    lost.last = totals->campaigns > lost.last && totals->campaigns <= UINT32_MAX ? totals->campaigns : lost.last;
  }
  lost.promised_micro = claimed > lost.promised_micro ? claimed : lost.promised_micro;
  return lost;
}

static bool is_level(const struct cv_broker *broker, const struct cv_recover_facts *facts, const struct lost *lost) {
  if (lost->all || facts->commit < facts->anchor.commit || lost->last > broker->totals.campaigns) {
    return false;
  }
  for (const struct cv_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
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

/* ---- what it is charged as ---- */

/* What everybody pays, and by whom of those with an account it cannot all have been given. */
struct bill {
  uint64_t floor_micro;
  struct cv_chunks spared; /* cells like those of the accounts, micro-epsilon */
};

/* Tokens of a campaign that is not over in this copy, or which the third-party knows more of; 0: none can be lost. */
static uint64_t lost_of(const struct cv_campaign *campaign, const struct cv_recover_claim *ahead,
                        const struct lost *lost) {
  uint64_t left = campaign->spec.tokens - campaign->tokens;
  if (campaign->phase >= CV_PHASE_STOPPING && ahead == NULL && !lost->all) {
    return 0;
  }
  return lost->is_bounded && lost->tokens < left ? lost->tokens : left;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* Of so many tokens at the most. */
static uint64_t price(const struct cv_campaign *campaign, uint64_t tokens) {
  uint64_t micro, each = cv_campaign_charge(campaign, campaign->shown_most);
  if (cv_privacy_is_unprotected(&campaign->privacy)) {
    return tokens > 0 ? CV_UNPROTECTED_MICRO : 0;
  }
  return __builtin_mul_overflow(each, tokens, &micro) ? UINT64_MAX : micro;
}

/* Who has given some of its tokens can have given fewer since than somebody who has not. */
static void spare_payers(struct bill *bill, struct cv_campaign *campaign, uint64_t tokens) {
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
        continue; /* its first one counts for all */
      }
      uint64_t given = cv_chunks_count(&campaign->payers, first, each);
      struct cv_chunk *spared;
      if (cv_chunks_touch(&bill->spared, worker / CV_CHUNK_CELLS, &spared) == CV_OK) {
        cv_accounts_charge(spared, worker, most - price(campaign, smaller(each - given, tokens)));
      }
    }
  }
}

/* A recruitment names who can have given: there they have accounts already, or get them; false if they cannot. */
static bool is_named(struct cv_broker *broker, const struct cv_campaign *campaign) {
  bool named = cv_payroll_is_kept(&campaign->payroll);
  for (uint32_t i = 0; named && i < campaign->spec.arms; i++) {
    struct cv_chunk *chunk;
    named = cv_chunks_touch(&broker->accounts.cells, campaign->spec.worker[i] / CV_CHUNK_CELLS, &chunk) == CV_OK;
  }
  return named;
}

static void bill_campaign(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_recover_claim *ahead,
                          const struct lost *lost, struct bill *bill) {
  uint64_t tokens = lost_of(campaign, ahead, lost), each = campaign->spec.tokens_per_worker;
  uint64_t ours = cv_privacy_worker_micro(&campaign->privacy, &campaign->spec);
  if (ahead != NULL && ahead->worker_micro > ours) { /* another campaign had that number */
    bill->floor_micro = cv_ledger_add(bill->floor_micro, ahead->worker_micro);
    return;
  }
  if (!is_named(broker, campaign)) {
    bill->floor_micro = cv_ledger_add(bill->floor_micro, price(campaign, smaller(each, tokens)));
    spare_payers(bill, campaign, tokens);
  }
}

/* Nobody is charged more than it has left, nor for what it cannot have given: a floor that is more than that comes off
 * its own cell, which is never below. */
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

/* Each of those whom the campaign names, as far as tokens, slots, its budget and their own accounts go. */
static void charge_named(struct cv_broker *broker, const struct cv_campaign *campaign, uint64_t tokens,
                         uint64_t floor_micro, struct cv_recovery *recovery) {
  const struct cv_spec *spec = &campaign->spec;
  for (uint32_t i = 0; i < spec->arms; i++) {
    uint64_t worker = spec->worker[i], slots = beyond(spec->tokens_per_worker, campaign->payroll.tokens[i]);
    uint64_t bought = (spec->budget_micro - campaign->payroll.paid_micro) / spec->cost_micro[i];
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

/* Ends the campaign; its releases are charged as if all of them had been. */
static void settle_campaign(struct cv_broker *broker, struct cv_campaign *campaign,
                            const struct cv_recover_claim *ahead, const struct lost *lost) {
  if (lost->all || ahead != NULL || lost->releases > 0) {
    cv_ledger_write_off(&campaign->ledger);
  }
  cv_campaign_end(broker, campaign, CV_END_RECOVERED);
  campaign->end = CV_END_RECOVERED; /* it may have been frozen for what is charged now */
  cv_campaign_mark(broker, campaign);
  cv_campaign_archive(broker, campaign);
}

/* What a worker may have been charged; it is the third-party's figure if another campaign had that number. */
static uint64_t charge_for(const struct cv_recover_claim *ahead, uint64_t ours) {
  return ahead->worker_micro > ours ? ahead->worker_micro : ours;
}

/* Of a campaign that was purged there are no accounts of arms to write off; workers are charged all the same. */
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

/* Charges the workers for what the campaigns may have had since, and ends these. */
static void settle(struct cv_broker *broker, const struct cv_recover_facts *facts, const struct lost *lost,
                   struct cv_recovery *recovery) {
  bool no_tokens = lost->is_bounded && lost->tokens == 0;
  struct bill bill = {.floor_micro = no_tokens ? 0 : lost->promised_micro};
  uint64_t floor = broker->accounts.floor_micro, limit = broker->config.limits.worker_epsilon_micro;
  cv_chunks_init(&bill.spared, UINT32_MAX);
  for (struct cv_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    const struct cv_recover_claim *ahead = ahead_of(campaign, facts);
    if (campaign->phase != CV_PHASE_ENDED || ahead != NULL) {
      bill_campaign(broker, campaign, ahead, lost, &bill);
    }
  }
  settle_purged(broker, facts, &bill.floor_micro);
  recovery->floor_micro = smaller(bill.floor_micro, beyond(limit, floor));
  spare_accounts(broker, &bill, recovery->floor_micro, recovery);
  cv_chunks_fini(&bill.spared);
  for (struct cv_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
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
  memcpy(recovery.database, facts->anchor.database, sizeof(recovery.database));
  broker->wall_ms = facts->wall_ms;
  settle(broker, facts, &lost, &recovery);
  /* One more than was: a copy from before is behind in every respect, however little was lost. */
  recovery.added = (struct cv_totals){.releases = cv_ledger_add(lost.releases, 1),
                                      .tokens = cv_ledger_add(lost.tokens, 1),
                                      .promised_micro = lost.promised_micro};
  apply(broker, &recovery);
  uint64_t most = facts->commit > facts->anchor.commit ? facts->commit : facts->anchor.commit;
  broker->commit = cv_ledger_add(most, LEAP);
  broker->recovery_due = true;
  broker->changed = true;
  *ret = recovery;
  return true;
}
