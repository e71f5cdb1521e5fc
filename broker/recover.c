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
                             recovery->added.tokens, recovery->added.promised_micro};
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
                              &recovery.added.tokens, &recovery.added.promised_micro};
  const uint8_t *database = cv_read(row, sizeof(recovery.database));
  for (size_t i = 0; i < CV_COUNT(fields); i++) {
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

/* ---- what was forgotten ---- */

static const struct cv_recover_claim *claim_of(const struct cv_recover_facts *facts, uint64_t campaign) {
  for (size_t i = 0; i < facts->claims; i++) {
    if (facts->claim[i].campaign == campaign) {
      return &facts->claim[i];
    }
  }
  return NULL;
}

/* The claim, if the third-party knows more of the campaign than we do; once that is charged, it stays so: NULL. */
static const struct cv_recover_claim *ahead_of(const struct cv_campaign *campaign,
                                               const struct cv_recover_facts *facts) {
  const struct cv_recover_claim *claim = claim_of(facts, campaign->id);
  bool ahead = claim != NULL && campaign->end != CV_END_RECOVERED &&
               (claim->releases > campaign->releases || claim->plans > campaign->plans);
  return ahead ? claim : NULL;
}

static uint64_t beyond(uint64_t theirs, uint64_t ours) {
  return theirs > ours ? theirs - ours : 0;
}

struct lost {
  bool all; /* nothing bounds it */
  uint64_t releases, tokens;
  uint64_t promised_micro; /* by campaigns that are forgotten */
  uint64_t last;           /* of these */
};

static struct lost find_lost(const struct cv_broker *broker, const struct cv_recover_facts *facts) {
  const struct cv_totals *totals = &facts->anchor.totals;
  uint64_t claimed = 0;
  struct lost lost = {.all = !facts->is_anchored || !facts->is_same, .last = broker->totals.campaigns};
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
  return true;
}

/* Ends the campaign, charges what it may have cost; *floor_micro grows by what it can have cost a worker. */
static void settle_campaign(struct cv_broker *broker, struct cv_campaign *campaign,
                            const struct cv_recover_claim *ahead, const struct lost *lost, uint64_t *floor_micro) {
  if (lost->all || ahead != NULL || lost->releases > 0) {
    cv_ledger_write_off(&campaign->ledger);
  }
  if (lost->all || ahead != NULL || lost->tokens > 0) {
    uint64_t ours = cv_privacy_worker_micro(&campaign->privacy, &campaign->spec);
    bool theirs = ahead != NULL && ahead->worker_micro > ours; /* another campaign had that number */
    *floor_micro = cv_ledger_add(*floor_micro, theirs ? ahead->worker_micro : ours);
  }
  cv_campaign_end(broker, campaign, CV_END_RECOVERED);
  campaign->end = CV_END_RECOVERED; /* it may have been frozen for what is charged now */
  broker->sweep = true;
  cv_campaign_mark(broker, campaign);
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
                                 .last = lost.last,
                                 .floor_micro = lost.promised_micro};
  memcpy(recovery.database, facts->anchor.database, sizeof(recovery.database));
  broker->wall_ms = facts->wall_ms;
  for (struct cv_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    const struct cv_recover_claim *ahead = ahead_of(campaign, facts);
    bool open = campaign->phase != CV_PHASE_ENDED;
    recovery.ended += open;
    if (open || ahead != NULL) {
      settle_campaign(broker, campaign, ahead, &lost, &recovery.floor_micro);
    }
  }
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
