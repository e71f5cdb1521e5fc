/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was judged goes into the journal, one row per commit and campaign. When the journal has grown long, the chunks
 * and arms that differ from their stored form are written a few at a time, oldest change first, and journal rows older
 * than the oldest unwritten change are deleted. So a restart reads the chunks and replays a short journal.
 */
#include "cobroker/image.h"

#include <string.h>

#include "cobroker/campaign.h"
#include "cobroker/state.h"
#include "cobroker/verdict.h"
#include "common/prio/field.h"

/* ---- rows of a campaign ---- */

static void put_campaign(const struct cv_cobroker_campaign *campaign, struct cv_buf *out) {
  cv_buf_put_bytes(out, campaign->requester, strlen(campaign->requester));
  cv_buf_put(out, campaign->split.database, sizeof(campaign->split.database));
  cv_buf_put(out, campaign->split.key.bytes, CV_DIGEST_BYTES);
  cv_buf_put(out, campaign->context.bytes, CV_DIGEST_BYTES);
  cv_buf_put_u64(out, campaign->deadline_wall_ms);
  cv_spec_encode(&campaign->spec, out);
}

static void put_state(const struct cv_cobroker_campaign *campaign, struct cv_buf *out) {
  cv_buf_put_u64(out, campaign->tokens);
  cv_buf_put_u64(out, campaign->failed);
  cv_buf_put_u64(out, campaign->batches);
  cv_buf_put_u64(out, campaign->done);
  cv_buf_put(out, campaign->batches_hash.bytes, CV_DIGEST_BYTES);
}

static void put_answers(const struct cv_cobroker_answers *answers, struct cv_buf *out) {
  cv_buf_put(out, answers->before.bytes, CV_DIGEST_BYTES);
  cv_buf_put(out, answers->after.bytes, CV_DIGEST_BYTES);
  cv_buf_put_bytes(out, answers->answer, answers->tokens);
}

static void put_arm(const struct cv_cobroker_arm *arm, struct cv_buf *out) {
  cv_buf_put_u64(out, arm->plan);
  cv_buf_put_u64(out, arm->first);
  cv_buf_put_u32(out, arm->want);
  cv_buf_put_u32(out, arm->filled);
  cv_buf_put_u64(out, arm->sum);
  cv_buf_put(out, arm->chain.bytes, CV_DIGEST_BYTES);
  cv_buf_put_u8(out, cv_cobroker_arm_is_spent(arm));
  if (!cv_cobroker_arm_is_spent(arm)) {
    cv_mechanism_save(arm->mechanism, out);
  }
}

enum cv_err cv_cobroker_image_read_arm(struct cv_cobroker_campaign *campaign, uint32_t index, struct cv_reader *in) {
  if (index >= campaign->spec.arms) {
    return CV_ERR_DAMAGED;
  }
  struct cv_cobroker_arm *arm = &campaign->arm[index];
  struct cv_mechanism *mechanism = NULL;
  arm->plan = cv_read_u64(in);
  arm->first = cv_read_u64(in);
  arm->want = cv_read_u32(in);
  arm->filled = cv_read_u32(in);
  arm->sum = cv_read_u64(in);
  const uint8_t *chain = cv_read(in, CV_DIGEST_BYTES);
  uint8_t spent = cv_read_u8(in);
  if (in->failed || spent > 1 || arm->filled > arm->want || arm->want > CV_PLAN_TOKENS_MAX || arm->sum >= CV_FIELD_P) {
    return CV_ERR_DAMAGED;
  }
  memcpy(arm->chain.bytes, chain, CV_DIGEST_BYTES);
  if (spent == 0) {
    CV_TRY(cv_mechanism_load(&campaign->privacy.law, in, &mechanism));
  }
  cv_mechanism_free(arm->mechanism);
  arm->mechanism = mechanism;
  return in->failed ? CV_ERR_DAMAGED : CV_OK;
}

/* Preceded by its length, so that a reader can skip it. */
static void put_sized_arm(const struct cv_cobroker_arm *arm, struct cv_buf *out) {
  size_t at = out->len;
  cv_buf_put_u32(out, 0);
  put_arm(arm, out);
  if (cv_buf_ok(out)) {
    size_t n = out->len - at - 4;
    for (size_t i = 0; i < 4; i++) {
      out->data[at + i] = (uint8_t)(n >> (8 * i));
    }
  }
}

/* ---- the journal ---- */

static void put_entries(const struct cv_buf *journal, struct cv_buf *out) {
  size_t entries = journal->len / sizeof(struct cv_cobroker_entry);
  cv_buf_put_u32(out, (uint32_t)entries);
  for (size_t i = 0; i < entries; i++) {
    struct cv_cobroker_entry entry;
    memcpy(&entry, journal->data + i * sizeof(entry), sizeof(entry));
    cv_buf_put_u64(out, entry.place);
    cv_buf_put_u64(out, entry.worker);
    cv_buf_put_u32(out, entry.arm);
    cv_buf_put_u32(out, entry.slot);
  }
}

/* A journal row: what was judged, the sums of touched arms, changed arms whole; each preceded by its count. */
static void put_journal(const struct cv_cobroker_campaign *campaign, struct cv_buf *out) {
  put_entries(&campaign->journal, out);
  uint32_t touched = 0, changed = 0;
  for (uint32_t i = 0; i < campaign->news_count; i++) {
    const struct cv_cobroker_arm *arm = &campaign->arm[campaign->news[i]];
    touched += arm->touched && !arm->changed;
    changed += arm->changed;
  }
  cv_buf_put_u32(out, touched);
  for (uint32_t i = 0; i < campaign->news_count; i++) {
    const struct cv_cobroker_arm *arm = &campaign->arm[campaign->news[i]];
    if (arm->touched && !arm->changed) {
      cv_buf_put_u32(out, campaign->news[i]);
      cv_buf_put_u32(out, arm->filled);
      cv_buf_put_u64(out, arm->sum);
      cv_buf_put(out, arm->chain.bytes, CV_DIGEST_BYTES);
    }
  }
  cv_buf_put_u32(out, changed);
  for (uint32_t i = 0; i < campaign->news_count; i++) {
    const struct cv_cobroker_arm *arm = &campaign->arm[campaign->news[i]];
    if (arm->changed) {
      cv_buf_put_u32(out, campaign->news[i]);
      put_sized_arm(arm, out);
    }
  }
}

static enum cv_err fill_journal(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                struct cv_cobroker_batch *batch) {
  if (!cv_buf_ok(&campaign->journal)) {
    return CV_ERR_NOMEM;
  }
  if (campaign->journal.len == 0 && campaign->news_count == 0) {
    return CV_OK;
  }
  CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_JOURNAL, campaign->id, batch->commit));
  size_t before = batch->bytes.len;
  put_journal(campaign, &batch->bytes);
  cv_cobroker_batch_shut(batch);
  core->journal_bytes += batch->bytes.len - before;
  cv_buf_clear(&campaign->journal);
  for (uint32_t i = 0; i < campaign->news_count; i++) {
    struct cv_cobroker_arm *arm = &campaign->arm[campaign->news[i]];
    /* Sums in the journal make the arm's stored image old: it has to be written before the row is trimmed. */
    if (arm->touched && !arm->changed && arm->dirty_since == 0) {
      cv_cobroker_dirty_arm(core, campaign, campaign->news[i]);
    }
    arm->touched = arm->changed = arm->listed = false;
  }
  campaign->news_count = 0;
  return CV_OK;
}

/* ---- one campaign ---- */

static enum cv_err fill_fresh(struct cv_cobroker_campaign *campaign, struct cv_cobroker_batch *batch) {
  CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_CAMPAIGN, campaign->id, 0));
  put_campaign(campaign, &batch->bytes);
  cv_cobroker_batch_shut(batch);
  CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_KEY, campaign->id, 0));
  cv_buf_put(&batch->bytes, campaign->key, sizeof(campaign->key));
  cv_cobroker_batch_shut(batch);
  campaign->fresh = false;
  return CV_OK;
}

static enum cv_err fill_ledger(struct cv_cobroker_campaign *campaign, struct cv_cobroker_batch *batch) {
  struct cv_ledger *ledger = &campaign->ledger;
  for (uint32_t i = 0; i < ledger->arms && ledger->changed > 0; i++) {
    if (ledger->arm[i].changed) {
      CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_LEDGER, campaign->id, i));
      cv_ledger_put(ledger, i, &batch->bytes);
      cv_cobroker_batch_shut(batch);
      ledger->arm[i].changed = false;
      ledger->changed--;
    }
  }
  return CV_OK;
}

static enum cv_err fill_plans(struct cv_cobroker_campaign *campaign, struct cv_cobroker_batch *batch) {
  struct cv_buf *news = &campaign->news_plans;
  if (!cv_buf_ok(news)) {
    return CV_ERR_NOMEM;
  }
  for (struct cv_reader in = cv_reader_over(news->data, news->len); cv_reader_has_more(&in);) {
    size_t n = 0;
    uint64_t number = cv_read_u64(&in);
    const uint8_t *row = cv_read_bytes(&in, &n);
    CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_PLAN, campaign->id, number));
    cv_buf_put(&batch->bytes, row, n);
    cv_cobroker_batch_shut(batch);
  }
  cv_buf_clear(news);
  return CV_OK;
}

static enum cv_err fill_closings(struct cv_cobroker_campaign *campaign, struct cv_cobroker_batch *batch) {
  struct cv_buf *news = &campaign->news_closings;
  if (!cv_buf_ok(news)) {
    return CV_ERR_NOMEM;
  }
  size_t n = news->len / CV_COBROKER_CLOSING_BYTES;
  for (size_t i = 0; i < n; i++) {
    CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_CLOSING, campaign->id, campaign->closings - n + i + 1));
    cv_buf_put(&batch->bytes, news->data + i * CV_COBROKER_CLOSING_BYTES, CV_COBROKER_CLOSING_BYTES);
    cv_cobroker_batch_shut(batch);
  }
  cv_buf_clear(news);
  return CV_OK;
}

/* Answers that were given since the last batch are written; those that the broker has booked are deleted. */
static enum cv_err fill_answers(struct cv_cobroker_campaign *campaign, struct cv_cobroker_batch *batch) {
  for (uint64_t n = campaign->stored_done + 1; n <= campaign->done && n <= campaign->stored_batches; n++) {
    CV_TRY(cv_cobroker_batch_add(batch, CV_COOP_DELETE, CV_COROW_ANSWERS, campaign->id, n));
  }
  uint64_t first = campaign->stored_batches > campaign->done ? campaign->stored_batches : campaign->done;
  for (uint64_t n = first + 1; n <= campaign->batches; n++) {
    CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_ANSWERS, campaign->id, n));
    put_answers(cv_cobroker_answers_of(campaign, n), &batch->bytes);
    cv_cobroker_batch_shut(batch);
  }
  campaign->stored_batches = campaign->batches;
  campaign->stored_done = campaign->done;
  return CV_OK;
}

static enum cv_err fill_campaign(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                 struct cv_cobroker_batch *batch) {
  CV_TRY(campaign->fresh ? fill_fresh(campaign, batch) : CV_OK);
  CV_TRY(fill_plans(campaign, batch));
  CV_TRY(fill_ledger(campaign, batch));
  CV_TRY(fill_closings(campaign, batch));
  CV_TRY(fill_answers(campaign, batch));
  CV_TRY(fill_journal(core, campaign, batch));
  if (campaign->changed) {
    CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_STATE, campaign->id, 0));
    put_state(campaign, &batch->bytes);
    cv_cobroker_batch_shut(batch);
    campaign->changed = false;
  }
  return CV_OK;
}

/* ---- folding the journal ---- */

enum { FOLD_COMMITS = 256 };

bool cv_cobroker_places_are_past(const struct cv_cobroker_campaign *campaign, uint64_t chunk) {
  return (chunk + 1) * CV_CHUNK_BITS <= campaign->planned;
}

void cv_cobroker_places_drop(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign) {
  struct cv_chunks *places = &campaign->places;
  for (uint32_t i = 0; i < places->count && cv_cobroker_places_are_past(campaign, places->number[i]);) {
    struct cv_chunk *chunk = cv_chunks_find(places, places->number[i]);
    if (chunk->written == 0) {
      cv_chunks_drop(places, chunk);
    } else {
      cv_cobroker_dirty_chunk(core, campaign->id, CV_COROW_PLACES, chunk);
      i++;
    }
  }
}

static void put_chunk(enum cv_cobroker_row row, const struct cv_chunk *chunk, struct cv_buf *out) {
  if (row != CV_COROW_ACCOUNTS) {
    cv_buf_put(out, chunk->as.bytes, CV_CHUNK_BYTES);
    return;
  }
  for (size_t i = 0; i < CV_CHUNK_CELLS; i++) {
    cv_buf_put_u32(out, chunk->as.cell[i]);
  }
}

static enum cv_err write_arm(const struct cv_cobroker_dirty *dirty, struct cv_cobroker_campaign *campaign,
                             struct cv_cobroker_batch *batch) {
  struct cv_cobroker_arm *arm = &campaign->arm[dirty->number];
  CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_ARM, dirty->campaign, dirty->number));
  put_arm(arm, &batch->bytes);
  cv_cobroker_batch_shut(batch);
  arm->dirty_since = 0;
  return CV_OK;
}

static enum cv_err write_chunk(const struct cv_cobroker_dirty *dirty, struct cv_chunk *chunk,
                               struct cv_cobroker_batch *batch) {
  CV_TRY(cv_cobroker_batch_put(batch, dirty->row, dirty->campaign, dirty->number));
  put_chunk(dirty->row, chunk, &batch->bytes);
  cv_cobroker_batch_shut(batch);
  chunk->written = batch->commit;
  chunk->dirty_since = 0;
  return CV_OK;
}

static enum cv_err write_dirty(struct cv_cobroker *core, const struct cv_cobroker_dirty *dirty,
                               struct cv_cobroker_batch *batch) {
  if (dirty->row == CV_COROW_ACCOUNTS) {
    return write_chunk(dirty, cv_chunks_find(&core->accounts.cells, dirty->number), batch);
  }
  /* Chunks of a campaign that has ended are purged, not written. */
  struct cv_cobroker_campaign *campaign = cv_cobroker_campaign_find(core, dirty->campaign);
  if (campaign == NULL || dirty->row == CV_COROW_ARM) {
    return campaign == NULL ? CV_OK : write_arm(dirty, campaign, batch);
  }
  struct cv_chunks *chunks = dirty->row == CV_COROW_PLACES     ? &campaign->places
                             : dirty->row == CV_COROW_ANSWERED ? &campaign->answered.chunks
                                                               : &campaign->slots;
  struct cv_chunk *chunk = cv_chunks_find(chunks, dirty->number);
  if (chunk == NULL) {
    return CV_OK;
  }
  if (dirty->row == CV_COROW_PLACES && cv_cobroker_places_are_past(campaign, dirty->number)) {
    cv_chunks_drop(chunks, chunk);
    return cv_cobroker_batch_add(batch, CV_COOP_DELETE, CV_COROW_PLACES, dirty->campaign, dirty->number);
  }
  return write_chunk(dirty, chunk, batch);
}

/*
 * Writes some of the changed chunks and arms (all of them before a purge, whose journal rows also hold workers'
 * charges) and deletes journal rows below the oldest remaining change. A round ends when nothing remains that was dirty
 * when the round began.
 */
static enum cv_err fold(struct cv_cobroker *core, struct cv_cobroker_batch *batch, bool all) {
  if (core->fold_until == 0 && core->journal_bytes >= core->config.journal_bytes) {
    core->fold_until = batch->commit;
    core->journal_bytes = 0;
  }
  /* Between rounds nothing is folded: chunks that change often would be written with every commit. */
  if (!all && core->fold_until == 0) {
    return CV_OK;
  }
  /* A round takes some hundred commits, however many arms a plan has changed. */
  size_t most = all ? core->dirt.count : CV_COBROKER_FOLD_CHUNKS + core->dirt.count / FOLD_COMMITS;
  for (size_t i = 0; i < most && core->dirt.count > 0; i++) {
    struct cv_cobroker_dirty dirty = cv_cobroker_dirty_pop(core);
    CV_TRY(write_dirty(core, &dirty, batch));
  }
  /* Everything that changed before this commit is in stored chunks, so older journal rows are not needed. */
  uint64_t oldest = core->dirt.count > 0 ? core->dirt.at[core->dirt.head].since : batch->commit + 1;
  if (oldest > core->fold_until) {
    core->fold_until = 0;
    CV_TRY(cv_cobroker_batch_add(batch, CV_COOP_TRIM, CV_COROW_JOURNAL, 0, oldest));
  }
  return CV_OK;
}

/* ---- ended campaigns ---- */

/* The purge comes before the record: it deletes all rows of the campaign. */
static enum cv_err fill_ended(struct cv_cobroker *core, struct cv_cobroker_batch *batch) {
  struct cv_cobroker_archive *archive = &core->archive;
  for (struct cv_cobroker_ended *ended = archive->all; archive->changed > 0; ended = ended->hh.next) {
    if (ended->changed) {
      CV_TRY(cv_cobroker_batch_add(batch, CV_COOP_PURGE, CV_COROW_ENDED, ended->id, 0));
      CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_ENDED, ended->id, 0));
      cv_cobroker_ended_put(ended, &batch->bytes);
      cv_cobroker_batch_shut(batch);
      ended->changed = false;
      archive->changed--;
    }
  }
  for (size_t i = 0; i < archive->gone_count; i++) {
    CV_TRY(cv_cobroker_batch_add(batch, CV_COOP_PURGE, CV_COROW_ENDED, archive->gone[i], 0));
  }
  archive->gone_count = 0;
  if (archive->past_changed) {
    CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_ENDED, 0, 0));
    cv_cobroker_past_put(archive, &batch->bytes);
    cv_cobroker_batch_shut(batch);
    archive->past_changed = false;
  }
  return CV_OK;
}

static enum cv_err fill_recovery(struct cv_cobroker *core, struct cv_cobroker_batch *batch) {
  if (!core->recovery_due) {
    return CV_OK;
  }
  CV_TRY(cv_cobroker_batch_put(batch, CV_COROW_RECOVERY, 0, core->recoveries));
  cv_recovery_put(&core->recovery, &batch->bytes);
  cv_cobroker_batch_shut(batch);
  core->recovery_due = false;
  return CV_OK;
}

enum cv_err cv_cobroker_image_fill(struct cv_cobroker *core, struct cv_cobroker_batch *batch) {
  for (struct cv_cobroker_campaign *campaign = core->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    CV_TRY(fill_campaign(core, campaign, batch));
  }
  CV_TRY(cv_cobroker_archive_trim(&core->archive, core->config.limits.kept));
  bool whole = core->recovery_due; /* a recovery's charges are not in the journal */
  CV_TRY(fill_recovery(core, batch));
  /* Charges must be in stored chunks before the journal rows that hold them are purged. */
  CV_TRY(fold(core, batch, whole || core->archive.changed + core->archive.gone_count > 0));
  return fill_ended(core, batch);
}
