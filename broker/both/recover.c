/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/recover.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/spec.h"

#define LEAP (UINT64_C(1) << 32)

static uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* The difference, or 0 if `ours` is larger. */
static uint64_t beyond(uint64_t theirs, uint64_t ours) {
  return theirs > ours ? theirs - ours : 0;
}

/* ---- claims ---- */

enum cv_err cv_recover_claims_add(struct cv_recover_claims *claims, const struct cv_recover_claim *claim) {
  for (size_t i = 0; i < claims->n; i++) {
    struct cv_recover_claim *own = &claims->claim[i];
    if (own->campaign == claim->campaign) {
      own->releases = larger(own->releases, claim->releases);
      own->plans = larger(own->plans, claim->plans);
      own->closings = larger(own->closings, claim->closings);
      own->batches = larger(own->batches, claim->batches);
      own->tokens = larger(own->tokens, claim->tokens);
      own->worker_micro = larger(own->worker_micro, claim->worker_micro);
      return CV_OK;
    }
  }
  CV_TRY(CV_ARRAY_ROOM(claims->claim, claims->n + 1, claims->cap));
  claims->claim[claims->n++] = *claim;
  return CV_OK;
}

void cv_recover_claims_fini(struct cv_recover_claims *claims) {
  free(claims->claim);
  *claims = (struct cv_recover_claims){0};
}

const struct cv_recover_claim *cv_recover_claim_of(const struct cv_recover_facts *facts, uint64_t campaign) {
  for (size_t i = 0; i < facts->claims; i++) {
    if (facts->claim[i].campaign == campaign) {
      return &facts->claim[i];
    }
  }
  return NULL;
}

bool cv_recover_is_ahead(const struct cv_recover_claim *claim, const struct cv_recover_known *known) {
  return claim != NULL && !known->is_recovered &&
         (claim->releases > known->releases || claim->plans > known->plans || claim->closings > known->closings ||
          claim->batches > known->batches || claim->tokens > known->tokens);
}

/* ---- what was lost ---- */

static struct cv_recover_known known_of(cv_recover_know_fn *know, void *data, uint64_t campaign) {
  struct cv_recover_known known = {.is_known = false};
  know(data, campaign, &known);
  return known;
}

/* Whether an older anchor was restored, too: it is as old as the database, or its totals are lower than the claims
 * imply. */
static bool is_outdated(const struct cv_recover_facts *facts, const struct cv_totals *ours, cv_recover_know_fn *know,
                        void *data) {
  const struct cv_totals *totals = &facts->anchor.totals;
  uint64_t releases = ours->releases, tokens = ours->tokens, campaigns = ours->campaigns;
  bool is_ahead = false;
  for (size_t i = 0; i < facts->claims; i++) {
    const struct cv_recover_claim *claim = &facts->claim[i];
    struct cv_recover_known known = known_of(know, data, claim->campaign);
    if (known.is_known ? cv_recover_is_ahead(claim, &known) : !known.is_old) {
      is_ahead = true;
      releases = cv_ledger_add(releases, beyond(claim->releases, known.releases));
      tokens = cv_ledger_add(tokens, beyond(claim->tokens, known.tokens));
      campaigns = larger(campaigns, claim->campaign);
    }
  }
  return is_ahead && (facts->anchor.commit <= facts->commit || totals->releases < releases || totals->tokens < tokens ||
                      totals->campaigns < campaigns);
}

void cv_recover_find(const struct cv_recover_facts *facts, const struct cv_totals *ours, cv_recover_know_fn *know,
                     void *data, struct cv_recover_lost *ret) {
  /* Without an anchor of this history nothing bounds what was lost. */
  const struct cv_totals *totals = &facts->anchor.totals;
  uint64_t claimed = 0;
  struct cv_recover_lost lost = {.all = !facts->is_anchored || !facts->is_same, .last = ours->campaigns};
  lost.is_bounded = !lost.all && !is_outdated(facts, ours, know, data);
  for (size_t i = 0; i < facts->claims; i++) {
    const struct cv_recover_claim *claim = &facts->claim[i];
    struct cv_recover_known known = known_of(know, data, claim->campaign);
    if (!known.is_known && !known.is_old && claim->campaign <= UINT32_MAX) {
      lost.has_claimed = true;
      claimed = cv_ledger_add(claimed, claim->worker_micro);
      lost.last = larger(lost.last, claim->campaign);
    }
  }
  /* The anchor and the claims are two lower bounds of what happened: the larger one counts. */
  if (facts->is_anchored) {
    lost.releases = beyond(totals->releases, ours->releases);
    lost.tokens = beyond(totals->tokens, ours->tokens);
    /* An anchor of another database: nothing of what it promised is in the accounts of this one. */
    lost.promised_micro =
        facts->is_same ? beyond(totals->promised_micro, ours->promised_micro) : totals->promised_micro;
    lost.last = totals->campaigns > lost.last && totals->campaigns <= UINT32_MAX ? totals->campaigns : lost.last;
  }
  lost.promised_micro = larger(lost.promised_micro, claimed);
  *ret = lost;
}

bool cv_recover_is_level(const struct cv_recover_facts *facts, const struct cv_totals *ours,
                         const struct cv_recover_lost *lost) {
  return !lost->all && facts->commit >= facts->anchor.commit && lost->last <= ours->campaigns && !lost->has_claimed;
}

void cv_recover_begin(const struct cv_recover_facts *facts, const struct cv_totals *ours,
                      const struct cv_recover_lost *lost, struct cv_recovery *ret) {
  *ret = (struct cv_recovery){.wall_ms = facts->wall_ms,
                              .commit = facts->commit,
                              .anchored = facts->anchor.commit,
                              .first = ours->campaigns + 1,
                              .last = lost->last};
  ret->added = (struct cv_totals){.releases = cv_ledger_add(lost->releases, 1),
                                  .tokens = cv_ledger_add(lost->tokens, 1),
                                  .promised_micro = lost->promised_micro};
  /* Lets a run that is repeated after a crash recognize that this recovery is stored already (repair.c). */
  memcpy(ret->database, facts->anchor.database, sizeof(ret->database));
  for (size_t i = 0; i < facts->takens; i++) {
    ret->taken[ret->takens++] = facts->taken[i];
  }
}

uint64_t cv_recover_commit(const struct cv_recover_facts *facts) {
  /* Above both numbers: the lost database may have gone on after the anchor that was found. */
  return cv_ledger_add(larger(facts->commit, facts->anchor.commit), LEAP);
}

void cv_recover_apply(const struct cv_recovery *recovery, struct cv_accounts *accounts, struct cv_totals *totals) {
  cv_accounts_raise(accounts, recovery->floor_micro);
  accounts->spared_micro = cv_ledger_add(accounts->spared_micro, recovery->spared_micro);
  totals->campaigns = larger(totals->campaigns, recovery->last);
  totals->releases = cv_ledger_add(totals->releases, recovery->added.releases);
  totals->tokens = cv_ledger_add(totals->tokens, recovery->added.tokens);
  totals->promised_micro = cv_ledger_add(totals->promised_micro, recovery->added.promised_micro);
}

/* ---- what is charged ---- */

uint64_t cv_recover_price(const struct cv_recover_item *item, uint64_t tokens) {
  uint64_t micro;
  if (item->is_unprotected) {
    return tokens > 0 ? CV_UNPROTECTED_MICRO : 0;
  }
  return __builtin_mul_overflow(item->micro, tokens, &micro) ? UINT64_MAX : micro;
}

void cv_recover_bill_init(struct cv_recover_bill *bill, const struct cv_recover_lost *lost) {
  bool no_tokens = lost->is_bounded && lost->tokens == 0;
  *bill = (struct cv_recover_bill){.floor_micro = no_tokens ? 0 : lost->promised_micro};
  cv_chunks_init(&bill->spared, UINT32_MAX);
}

void cv_recover_bill_fini(struct cv_recover_bill *bill) {
  cv_chunks_fini(&bill->spared);
}

static void spare_givers(struct cv_recover_bill *bill, const struct cv_recover_item *item) {
  uint64_t each = item->each, last = UINT64_MAX, most = cv_recover_price(item, smaller(each, item->tokens));
  for (const struct cv_chunk *chunk = item->given->all; chunk != NULL; chunk = chunk->hh.next) {
    for (uint64_t bit = 0; bit < CV_CHUNK_BITS; bit++) {
      uint64_t index = chunk->number * CV_CHUNK_BITS + bit, worker = index / each, first = worker * each;
      bool is_set = (chunk->as.bytes[bit / 8] >> (bit % 8) & 1) != 0;
      if (!is_set || worker == last) {
        continue;
      }
      last = worker;
      if (cv_chunks_count(item->given, first, index - first) > 0) {
        continue; /* not the first used slot: the worker is already handled */
      }
      uint64_t given = cv_chunks_count(item->given, first, each);
      struct cv_chunk *spared;
      if (cv_chunks_touch(&bill->spared, worker / CV_CHUNK_CELLS, &spared) == CV_OK) {
        cv_accounts_charge(spared, worker, most - cv_recover_price(item, smaller(each - given, item->tokens)));
      }
    }
  }
}

void cv_recover_bill_add(struct cv_recover_bill *bill, const struct cv_recover_item *item) {
  bill->floor_micro = cv_ledger_add(bill->floor_micro, cv_recover_price(item, smaller(item->each, item->tokens)));
  spare_givers(bill, item);
}

uint64_t cv_recover_bill_floor(const struct cv_recover_bill *bill, const struct cv_accounts *accounts,
                               uint64_t limit_micro) {
  return smaller(bill->floor_micro, beyond(limit_micro, accounts->floor_micro));
}

uint64_t cv_recover_bill_spare(struct cv_recover_bill *bill, const struct cv_accounts *accounts, uint64_t limit_micro,
                               uint64_t raise_micro, struct cv_chunk *chunk) {
  const struct cv_chunk *spared = cv_chunks_find(&bill->spared, chunk->number);
  uint64_t sum = 0;
  for (size_t i = 0; i < CV_CHUNK_CELLS; i++) {
    uint32_t *cell = &chunk->as.cell[i];
    uint64_t asked =
        bill->floor_micro - smaller(bill->floor_micro, spared == NULL ? 0 : smaller(spared->as.cell[i], *cell));
    uint64_t charge = smaller(asked, beyond(limit_micro, cv_ledger_add(accounts->floor_micro, *cell)));
    if (*cell > 0 && *cell < UINT32_MAX && charge < raise_micro) {
      *cell -= (uint32_t)(raise_micro - charge);
      sum += raise_micro - charge;
    }
  }
  return sum;
}
