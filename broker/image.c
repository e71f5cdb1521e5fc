/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the core's changed state into a batch, and reads arms back.
 *
 * Accepted places and payers go into the journal, one row per commit and campaign. When the journal has grown long, the
 * chunks and arms that differ from their stored form are written a few at a time, oldest change first, and journal rows
 * older than the oldest unwritten change are deleted. So a restart reads the chunks and replays a short journal.
 */
#include "broker/image.h"

#include <string.h>

#include "broker/campaign.h"
#include "broker/dirty.h"
#include "broker/ended.h"
#include "broker/places.h"
#include "broker/state.h"
#include "broker/two.h"
#include "common/prio/field.h"

/* ---- rows ---- */

static void put_campaign(const struct cv_broker_campaign *campaign, struct cv_buf *out) {
  cv_buf_put_bytes(out, campaign->requester, strlen(campaign->requester));
  cv_buf_put(out, campaign->client_key, sizeof(campaign->client_key));
  cv_buf_put_u64(out, campaign->submitted_wall_ms);
  cv_buf_put_u64(out, campaign->deadline_wall_ms);
  cv_spec_encode(&campaign->spec, out);
  if (campaign->gold.terms.items > 0) {
    cv_gold_encode(&campaign->gold.terms, out);
  }
}

static void put_state(const struct cv_broker_campaign *campaign, struct cv_buf *out) {
  cv_buf_put_u32(out, campaign->phase);
  cv_buf_put_u32(out, campaign->end);
  cv_buf_put_u8(out, campaign->has_seed);
  cv_buf_put_u64(out, campaign->seed);
  cv_buf_put_u64(out, campaign->tokens);
  cv_buf_put_u64(out, campaign->ended_wall_ms);
  /* With arms the payments follow from their images; once those are purged, only this row has them. */
  if (campaign->arm == NULL && cv_payroll_is_kept(&campaign->payroll)) {
    cv_payroll_put(&campaign->payroll, out);
  }
  cv_buf_put_bytes(out, campaign->thirdparty, strlen(campaign->thirdparty));
  if (campaign->two != NULL) {
    cv_buf_put_u8(out, campaign->two->is_known);
    cv_buf_put(out, campaign->two->split.key.bytes, sizeof(campaign->two->split.key.bytes));
  }
  for (uint32_t i = 0; campaign->arm == NULL && campaign->gold.neutral != NULL && i < campaign->spec.arms; i++) {
    cv_buf_put_u64(out, (uint64_t)campaign->gold.neutral[i]);
  }
  if (campaign->why[0] != '\0') {
    cv_buf_put_bytes(out, campaign->why, strlen(campaign->why));
  }
}

/* Arm and tokens of each want; in a campaign of pairs its opponent, too. */
static void put_plan(const struct cv_plan *plan, bool pairs, struct cv_buf *out) {
  cv_buf_put_u32(out, plan->wants);
  for (uint32_t i = 0; i < plan->wants; i++) {
    cv_buf_put_u32(out, plan->want[i].arm);
    cv_buf_put_u32(out, plan->want[i].tokens);
    if (pairs) {
      cv_buf_put_u32(out, plan->want[i].opponent);
    }
  }
}

static void put_release(const struct cv_broker_release *row, struct cv_buf *out) {
  cv_buf_put_u64(out, row->plan);
  cv_buf_put_u32(out, row->arm);
  cv_buf_put_u32(out, row->nth);
  cv_buf_put_u64(out, row->tokens);
  cv_buf_put_u64(out, (uint64_t)row->noisy_sum);
  if (row->wanted > 0) { /* the arm's last one */
    cv_buf_put_u64(out, row->wanted);
    cv_buf_put_u64(out, row->given);
  }
}

static void put_standings(const struct cv_broker_campaign *campaign, struct cv_buf *out) {
  cv_buf_put_u32(out, campaign->spec.arms);
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    const struct cv_standing *standing = &campaign->standing[i];
    cv_buf_put_u32(out, standing->rank_class);
    cv_buf_put_u64(out, standing->tokens);
    cv_buf_put_f64(out, standing->mean);
    cv_buf_put_f64(out, standing->radius);
    cv_buf_put_u32(out, standing->rank_last);
    cv_buf_put_u8(out, (uint8_t)(standing->held | (standing->contradicts ? CV_STANDING_CONTRADICTS : 0)));
  }
}

/* The open epoch's sum, with two brokers the chain of its tokens, and with gold items the number of the arm's neutral
 * tokens. */
static void put_sum(const struct cv_broker_campaign *campaign, uint32_t index, struct cv_buf *out) {
  const struct cv_arm *arm = &campaign->arm[index];
  cv_buf_put_u64(out, (uint64_t)arm->sum);
  if (campaign->two != NULL) {
    cv_buf_put(out, arm->chain.bytes, sizeof(arm->chain.bytes));
  }
  if (campaign->gold.neutral != NULL) {
    cv_buf_put_u64(out, (uint64_t)campaign->gold.neutral[index]);
  }
}

enum cv_err cv_image_read_sum(const struct cv_broker_campaign *campaign, struct cv_reader *in, struct cv_arm_sum *ret) {
  ret->sum = (int64_t)cv_read_u64(in);
  const uint8_t *chain = campaign->two == NULL ? NULL : cv_read(in, sizeof(ret->chain.bytes));
  if (chain != NULL) {
    memcpy(ret->chain.bytes, chain, sizeof(ret->chain.bytes));
  }
  ret->neutral = campaign->gold.neutral == NULL ? 0 : (int64_t)cv_read_u64(in);
  return in->failed || (campaign->two != NULL && (uint64_t)ret->sum >= CV_FIELD_P) ? CV_ERR_DAMAGED : CV_OK;
}

void cv_image_set_sum(struct cv_broker_campaign *campaign, uint32_t index, const struct cv_arm_sum *sum) {
  struct cv_arm *arm = &campaign->arm[index];
  arm->sum = sum->sum;
  if (campaign->two != NULL) {
    arm->chain = sum->chain;
  }
  if (campaign->gold.neutral != NULL) {
    campaign->gold.neutral[index] = sum->neutral;
  }
}

static void put_arm(const struct cv_broker_campaign *campaign, uint32_t index, struct cv_buf *out) {
  const struct cv_arm *arm = &campaign->arm[index];
  cv_buf_put_u64(out, arm->plan);
  cv_buf_put_u64(out, arm->first);
  cv_buf_put_u32(out, arm->want);
  cv_buf_put_u32(out, arm->filled);
  put_sum(campaign, index, out);
  cv_mechanism_save(arm->mechanism, out);
}

enum cv_err cv_image_read_arm(struct cv_broker_campaign *campaign, uint32_t index, struct cv_reader *in) {
  if (index >= campaign->spec.arms || campaign->arm == NULL) {
    return CV_ERR_DAMAGED;
  }
  struct cv_arm *arm = &campaign->arm[index];
  struct cv_mechanism *mechanism;
  struct cv_arm_sum sum;
  arm->plan = cv_read_u64(in);
  arm->first = cv_read_u64(in);
  arm->want = cv_read_u32(in);
  arm->filled = cv_read_u32(in);
  CV_TRY(cv_image_read_sum(campaign, in, &sum));
  cv_image_set_sum(campaign, index, &sum);
  /* Loaded beside the old one, which a damaged row leaves in place. */
  CV_TRY(cv_mechanism_load(&campaign->privacy.law, in, &mechanism));
  cv_mechanism_free(arm->mechanism);
  arm->mechanism = mechanism;
  return in->failed || arm->filled > arm->want || arm->want > CV_PLAN_TOKENS_MAX ? CV_ERR_DAMAGED : CV_OK;
}

/* Preceded by its length, so that a reader can skip it. */
static void put_sized_arm(const struct cv_broker_campaign *campaign, uint32_t index, struct cv_buf *out) {
  size_t at = out->len;
  cv_buf_put_u32(out, 0);
  put_arm(campaign, index, out);
  if (cv_buf_ok(out)) {
    size_t n = out->len - at - 4;
    for (size_t i = 0; i < 4; i++) {
      out->data[at + i] = (uint8_t)(n >> (8 * i));
    }
  }
}

enum { ARM_BITS = 26 };
_Static_assert(CV_VALUES_MAX <= 64 && CV_ARMS_MAX + 2 <= 1 << ARM_BITS, "an arm and the arms shown fit 32 bits");

uint32_t cv_entry_pack(const struct cv_entry *entry) {
  return entry->arm | (entry->shown - 1) << ARM_BITS;
}

uint32_t cv_entry_arm(uint32_t packed) {
  return packed & ((UINT32_C(1) << ARM_BITS) - 1);
}

uint32_t cv_entry_shown(uint32_t packed) {
  return (packed >> ARM_BITS) + 1;
}

bool cv_entry_has_question(const struct cv_broker_campaign *campaign) {
  return campaign->spec.pairs && campaign->answered.questions > 0;
}

/*
 * A journal row: accepted tokens (count, then index, worker, arm and number of arms shown (image.h), slot each, and of
 * pairs the question; of others (struct cv_entry) the question in place of the index), sums of touched arms (count,
 * then arm, filled and sum (put_sum()) each), changed arms whole (count, then arm and image each).
 */
static void put_journal(struct cv_broker_campaign *campaign, struct cv_buf *out) {
  size_t entries = campaign->journal.len / sizeof(struct cv_entry);
  cv_buf_put_u32(out, (uint32_t)entries);
  for (size_t i = 0; i < entries; i++) {
    struct cv_entry entry;
    memcpy(&entry, campaign->journal.data + i * sizeof(entry), sizeof(entry));
    bool has_place = entry.arm < campaign->spec.arms;
    cv_buf_put_u64(out, has_place || campaign->answered.questions == 0 ? entry.index : entry.question);
    cv_buf_put_u64(out, entry.worker);
    cv_buf_put_u32(out, cv_entry_pack(&entry));
    cv_buf_put_u32(out, entry.slot);
    if (has_place && cv_entry_has_question(campaign)) {
      cv_buf_put_u64(out, entry.question);
    }
  }
  uint32_t touched = 0, changed = 0;
  for (uint32_t i = 0; i < campaign->news_count; i++) {
    const struct cv_arm *arm = &campaign->arm[campaign->news[i]];
    touched += arm->touched && !arm->changed;
    changed += arm->changed;
  }
  cv_buf_put_u32(out, touched);
  for (uint32_t i = 0; i < campaign->news_count; i++) {
    const struct cv_arm *arm = &campaign->arm[campaign->news[i]];
    if (arm->touched && !arm->changed) {
      cv_buf_put_u32(out, campaign->news[i]);
      cv_buf_put_u32(out, arm->filled);
      put_sum(campaign, campaign->news[i], out);
    }
  }
  cv_buf_put_u32(out, changed);
  for (uint32_t i = 0; i < campaign->news_count; i++) {
    const struct cv_arm *arm = &campaign->arm[campaign->news[i]];
    if (arm->changed) {
      cv_buf_put_u32(out, campaign->news[i]);
      put_sized_arm(campaign, campaign->news[i], out);
    }
  }
}

static bool journal_has_news(const struct cv_broker_campaign *campaign) {
  return campaign->arm != NULL && (campaign->journal.len > 0 || campaign->news_count > 0);
}

static enum cv_err fill_journal(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                struct cv_broker_batch *batch) {
  if (!cv_buf_ok(&campaign->journal)) {
    return CV_ERR_NOMEM;
  }
  if (!journal_has_news(campaign)) {
    return CV_OK;
  }
  CV_TRY(cv_broker_batch_open(batch, CV_OP_JOURNAL, campaign->id, batch->commit));
  size_t before = batch->bytes.len;
  put_journal(campaign, &batch->bytes);
  cv_broker_batch_shut(batch);
  broker->journal_bytes += batch->bytes.len - before;
  cv_buf_clear(&campaign->journal);
  for (uint32_t i = 0; i < campaign->news_count; i++) {
    struct cv_arm *arm = &campaign->arm[campaign->news[i]];
    /* Sums in the journal make the arm's stored image old: it has to be written before the row is trimmed. */
    if (arm->touched && !arm->changed && arm->dirty_since == 0) {
      cv_dirty_arm(broker, campaign, campaign->news[i]);
    }
    arm->touched = arm->changed = arm->listed = false;
  }
  campaign->news_count = 0;
  return CV_OK;
}

static enum cv_err fill_ledger(struct cv_broker_campaign *campaign, struct cv_broker_batch *batch) {
  struct cv_ledger *ledger = &campaign->ledger;
  for (uint32_t i = 0; i < ledger->arms && ledger->changed > 0; i++) {
    if (ledger->arm[i].changed) {
      CV_TRY(cv_broker_batch_open(batch, CV_OP_LEDGER, campaign->id, i));
      cv_ledger_put(ledger, i, &batch->bytes);
      cv_broker_batch_shut(batch);
      ledger->arm[i].changed = false;
      ledger->changed--;
    }
  }
  return CV_OK;
}

static enum cv_err fill_history(struct cv_broker_campaign *campaign, struct cv_broker_batch *batch) {
  for (; campaign->stored_plans < campaign->plans; campaign->stored_plans++) {
    const struct cv_plan *plan = &campaign->plan[campaign->stored_plans];
    CV_TRY(cv_broker_batch_open(batch, CV_OP_PLAN, campaign->id, plan->number));
    put_plan(plan, campaign->spec.pairs, &batch->bytes);
    cv_broker_batch_shut(batch);
  }
  for (; campaign->stored_releases < campaign->releases; campaign->stored_releases++) {
    const struct cv_broker_release *row = &campaign->release[campaign->stored_releases];
    CV_TRY(cv_broker_batch_open(batch, CV_OP_RELEASE, campaign->id, row->number));
    put_release(row, &batch->bytes);
    cv_broker_batch_shut(batch);
  }
  if (campaign->standings_changed) {
    CV_TRY(cv_broker_batch_open(batch, CV_OP_STANDINGS, campaign->id, 0));
    put_standings(campaign, &batch->bytes);
    cv_broker_batch_shut(batch);
    campaign->standings_changed = false;
  }
  return CV_OK;
}

static enum cv_err fill_campaign(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                 struct cv_broker_batch *batch) {
  if (campaign->fresh) {
    CV_TRY(cv_broker_batch_open(batch, CV_OP_CAMPAIGN, campaign->id, 0));
    put_campaign(campaign, &batch->bytes);
    cv_broker_batch_shut(batch);
    campaign->fresh = false;
  }
  CV_TRY(fill_ledger(campaign, batch));
  CV_TRY(fill_history(campaign, batch));
  CV_TRY(fill_journal(broker, campaign, batch));
  CV_TRY(cv_two_fill(campaign, batch));
  if (campaign->changed) {
    CV_TRY(cv_broker_batch_open(batch, CV_OP_STATE, campaign->id, 0));
    put_state(campaign, &batch->bytes);
    cv_broker_batch_shut(batch);
    campaign->changed = false;
  }
  /* Its last rows are in this batch: once that is stored, the campaign may leave the memory. */
  campaign->settled = campaign->phase == CV_PHASE_ENDED;
  return CV_OK;
}

/* ---- folding the journal ---- */

enum { FOLD_COMMITS = 256 };

static struct cv_chunk *dirty_chunk(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                    const struct cv_dirty *dirty) {
  switch (dirty->kind) {
    case CV_CHUNK_ACCOUNTS:
      return cv_chunks_find(&broker->accounts.cells, dirty->number);
    case CV_CHUNK_PLACES:
      return cv_chunks_find(&campaign->places, dirty->number);
    case CV_CHUNK_GOLD:
      return cv_chunks_find(&campaign->gold.workers, dirty->number);
    case CV_CHUNK_ANSWERED:
      return cv_chunks_find(&campaign->answered.chunks, dirty->number);
    default:
      return cv_chunks_find(&campaign->payers, dirty->number);
  }
}

static void put_chunk(const struct cv_dirty *dirty, const struct cv_chunk *chunk, struct cv_buf *out) {
  if (!cv_kind_has_cells(dirty->kind)) {
    cv_buf_put(out, chunk->as.bytes, CV_CHUNK_BYTES);
    return;
  }
  for (size_t i = 0; i < CV_CHUNK_CELLS; i++) {
    cv_buf_put_u32(out, chunk->as.cell[i]);
  }
}

static enum cv_err write_dirty(struct cv_broker *broker, const struct cv_dirty *dirty, struct cv_broker_batch *batch) {
  /* Accounts belong to no campaign. Chunks of a campaign that has stopped are purged, not written. */
  struct cv_broker_campaign *campaign = NULL;
  if (dirty->kind != CV_CHUNK_ACCOUNTS) {
    campaign = cv_broker_campaign_find(broker, dirty->campaign);
    if (campaign == NULL || campaign->arm == NULL) {
      return CV_OK;
    }
  }
  if (dirty->kind == CV_CHUNK_ARM) {
    CV_TRY(cv_broker_batch_open(batch, CV_OP_CHUNK, dirty->campaign, dirty->number));
    put_arm(campaign, dirty->number, &batch->bytes);
    campaign->arm[dirty->number].dirty_since = 0;
  } else {
    struct cv_chunk *chunk = dirty_chunk(broker, campaign, dirty);
    if (chunk == NULL) {
      return CV_OK;
    }
    bool past = dirty->kind == CV_CHUNK_PLACES && cv_places_are_past(campaign, dirty->number);
    CV_TRY(cv_broker_batch_open(batch, past ? CV_OP_UNCHUNK : CV_OP_CHUNK, dirty->campaign, dirty->number));
    if (past) {
      cv_chunks_drop(&campaign->places, chunk);
    } else {
      put_chunk(dirty, chunk, &batch->bytes);
      chunk->written = batch->commit;
      chunk->dirty_since = 0;
    }
  }
  batch->op[batch->ops - 1].chunk = dirty->kind;
  cv_broker_batch_shut(batch);
  return CV_OK;
}

/*
 * Writes some of the changed chunks and arms (all of them before a purge, whose journal rows also hold workers'
 * charges) and deletes journal rows below the oldest remaining change. A round ends when nothing remains that was dirty
 * when the round began.
 */
static enum cv_err fold(struct cv_broker *broker, struct cv_broker_batch *batch, bool all) {
  if (broker->fold_until == 0 && broker->journal_bytes >= broker->config.journal_bytes) {
    broker->fold_until = batch->commit;
    broker->journal_bytes = 0;
  }
  /* Between rounds nothing is folded: chunks that change often would be written with every commit. */
  if (!all && broker->fold_until == 0) {
    return CV_OK;
  }
  /* A round takes some hundred commits, however many arms a plan has changed. */
  size_t most = all ? broker->dirty_count : CV_FOLD_CHUNKS + broker->dirty_count / FOLD_COMMITS;
  for (size_t i = 0; i < most && broker->dirty_count > 0; i++) {
    struct cv_dirty dirty = cv_dirty_pop(broker);
    CV_TRY(write_dirty(broker, &dirty, batch));
  }
  /* Everything that changed before this commit is in stored chunks, so older journal rows are not needed. */
  uint64_t oldest = broker->dirty_count > 0 ? broker->dirty[broker->dirty_head].since : batch->commit + 1;
  if (oldest > broker->fold_until) {
    broker->fold_until = 0;
    CV_TRY(cv_broker_batch_open(batch, CV_OP_TRIM, 0, oldest));
    cv_broker_batch_shut(batch);
  }
  return CV_OK;
}

static enum cv_err fill_purges(struct cv_broker *broker, struct cv_broker_batch *batch) {
  for (struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    if (campaign->purge) {
      CV_TRY(cv_broker_batch_open(batch, CV_OP_PURGE, campaign->id, 0));
      cv_broker_batch_shut(batch);
      campaign->purge = false;
    }
  }
  return CV_OK;
}

enum cv_err cv_image_fill(struct cv_broker *broker, struct cv_broker_batch *batch) {
  bool purge = false, whole = broker->recovery_due; /* a recovery's charges are not in the journal */
  for (struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    CV_TRY(fill_campaign(broker, campaign, batch));
    purge = purge || campaign->purge;
  }
  if (broker->recovery_due) {
    CV_TRY(cv_broker_batch_open(batch, CV_OP_RECOVERY, 0, broker->recoveries));
    cv_recovery_put(&broker->recovery, &batch->bytes);
    cv_broker_batch_shut(batch);
    broker->recovery_due = false;
  }
  /* Charges must be in stored chunks before the journal rows that hold them are purged. */
  CV_TRY(fold(broker, batch, purge || whole));
  CV_TRY(purge ? fill_purges(broker, batch) : CV_OK);
  return cv_ended_fill(broker, batch);
}
