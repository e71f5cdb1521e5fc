/* SPDX-License-Identifier: Apache-2.0 */
/* A row that does not fit is CV_ERR_DAMAGED; the daemon then does not start. */
#include "cobroker/restore.h"

#include "common/base/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include "cobroker/campaign.h"
#include "cobroker/closing.h"
#include "cobroker/dirty.h"
#include "cobroker/ending.h"
#include "cobroker/image.h"
#include "cobroker/opening.h"
#include "cobroker/plan.h"
#include "cobroker/recover.h"
#include "cobroker/state.h"
#include "cobroker/verdict.h"
#include "common/prio/field.h"

static enum cv_err damaged_unless(bool good) {
  return good ? CV_OK : CV_ERR_DAMAGED;
}

static enum cv_err nomem_or_damaged(enum cv_err err) {
  return err == CV_OK || err == CV_ERR_NOMEM ? err : CV_ERR_DAMAGED;
}

static void take(struct cv_reader *row, void *to, size_t n) {
  const uint8_t *from = cv_read(row, n);
  if (from != NULL) {
    memcpy(to, from, n);
  }
}

/* ---- rows in the clear ---- */

static enum cv_err new_campaign(struct cv_cobroker *core, uint32_t id, const struct cv_spec *spec,
                                const uint8_t database[CV_SPLIT_DATABASE_BYTES], const struct cv_digest *key,
                                struct cv_cobroker_campaign **ret) {
  bool is_new = cv_cobroker_campaign_find(core, id) == NULL && cv_cobroker_archive_find(&core->archive, id) == NULL;
  CV_TRY(damaged_unless(is_new && id != 0));
  /* The operator's present limits apply to new campaigns, not to those already open. */
  CV_TRY(nomem_or_damaged(cv_cobroker_check_spec(spec, &CV_COBROKER_NO_LIMITS, NULL)));
  return nomem_or_damaged(cv_cobroker_campaign_new(core, id, spec, database, key, ret));
}

static enum cv_err take_campaign(struct cv_cobroker *core, const struct cv_cobroker_name *name, struct cv_reader *row) {
  char requester[CV_NAME_BYTES];
  uint8_t database[CV_SPLIT_DATABASE_BYTES] = {0};
  struct cv_digest key = {0}, context = {0};
  struct cv_spec spec;
  struct cv_cobroker_campaign *campaign = NULL;
  cv_read_text(row, requester, sizeof(requester));
  take(row, database, sizeof(database));
  take(row, key.bytes, CV_DIGEST_BYTES);
  take(row, context.bytes, CV_DIGEST_BYTES);
  uint64_t deadline = cv_read_u64(row);
  CV_TRY(damaged_unless(!row->failed));
  CV_TRY(nomem_or_damaged(cv_spec_decode(row, &spec)));
  enum cv_err err = new_campaign(core, name->campaign, &spec, database, &key, &campaign);
  cv_spec_fini(&spec);
  CV_TRY(err);
  memcpy(campaign->requester, requester, sizeof(requester));
  campaign->context = context; /* if it differs from what the keys of today give, the campaign ends (settle()) */
  campaign->deadline_wall_ms = deadline;
  campaign->slots.most = campaign->answered.chunks.most = UINT32_MAX; /* until everything is restored */
  return damaged_unless(cv_reader_done(row));
}

static enum cv_err take_plan(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                             const struct cv_cobroker_name *name, struct cv_reader *row) {
  uint32_t wants = cv_read_u32(row);
  CV_TRY(damaged_unless(wants > 0 && wants <= campaign->spec.arms && name->number == campaign->plans + 1));
  struct cv_want *want = calloc(wants, sizeof(*want));
  if (want == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < wants; i++) {
    want[i].arm = cv_read_u32(row);
    want[i].tokens = cv_read_u32(row);
    want[i].opponent = cv_read_u32(row);
  }
  const struct cv_plan plan = {.number = name->number, .wants = wants, .want = want};
  enum cv_err err = damaged_unless(cv_reader_done(row) && cv_cobroker_plan_fits(campaign, &plan));
  err = err == CV_OK ? cv_cobroker_plan_add(core, campaign, &plan) : err;
  free(want);
  return err;
}

static enum cv_err take_state(struct cv_cobroker_campaign *campaign, struct cv_reader *row) {
  campaign->tokens = cv_read_u64(row);
  campaign->failed = cv_read_u64(row);
  campaign->batches = cv_read_u64(row);
  campaign->done = cv_read_u64(row);
  take(row, campaign->batches_hash.bytes, CV_DIGEST_BYTES);
  return damaged_unless(cv_reader_done(row) && campaign->tokens <= campaign->spec.tokens &&
                        campaign->done <= campaign->batches);
}

/* ---- sealed rows ---- */

static enum cv_err take_key(struct cv_cobroker_campaign *campaign, struct cv_reader *row) {
  take(row, campaign->key, sizeof(campaign->key));
  return damaged_unless(cv_reader_done(row));
}

static enum cv_err take_arm(struct cv_cobroker_campaign *campaign, const struct cv_cobroker_name *name,
                            struct cv_reader *row) {
  CV_TRY(damaged_unless(name->number < campaign->spec.arms));
  CV_TRY(cv_cobroker_image_read_arm(campaign, (uint32_t)name->number, row));
  campaign->arm[name->number].written = name->commit;
  return damaged_unless(cv_reader_done(row));
}

static enum cv_err take_chunk(struct cv_chunks *chunks, const struct cv_cobroker_name *name, struct cv_reader *row) {
  struct cv_chunk *chunk;
  CV_TRY(nomem_or_damaged(cv_chunks_touch(chunks, name->number, &chunk)));
  chunk->written = name->commit;
  if (name->kind == CV_COROW_ACCOUNTS) {
    for (size_t i = 0; i < CV_CHUNK_CELLS; i++) {
      chunk->as.cell[i] = cv_read_u32(row);
    }
  } else {
    take(row, chunk->as.bytes, CV_CHUNK_BYTES);
  }
  return damaged_unless(cv_reader_done(row));
}

static enum cv_err take_asked(struct cv_cobroker_campaign *campaign, const struct cv_cobroker_name *name,
                              struct cv_reader *row) {
  CV_TRY(damaged_unless(campaign->answered.questions > 0));
  return take_chunk(&campaign->answered.chunks, name, row);
}

static enum cv_err take_closing(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                const struct cv_cobroker_name *name, struct cv_reader *row) {
  struct cv_share_close close;
  uint64_t half;
  CV_TRY(damaged_unless(name->number == campaign->closings + 1));
  CV_TRY(cv_cobroker_closing_read(campaign, row, &close, &half));
  return cv_cobroker_closing_add(core, campaign, &close, half);
}

/* The first kept answers are those after the last batch that is done; each begins where the one before ends. */
static enum cv_err take_answers(struct cv_cobroker_campaign *campaign, const struct cv_cobroker_name *name,
                                struct cv_reader *row) {
  struct cv_cobroker_answers answers = {.tokens = 0};
  size_t n = 0;
  take(row, answers.before.bytes, CV_DIGEST_BYTES);
  take(row, answers.after.bytes, CV_DIGEST_BYTES);
  const uint8_t *answer = cv_read_bytes(row, &n);
  bool good = cv_reader_done(row) && n > 0 && n <= CV_BATCH_TOKENS &&
              name->number == campaign->done + campaign->undone_count + 1 && name->number <= campaign->batches;
  for (size_t i = 0; good && i < n; i++) {
    good = answer[i] > CV_ANSWER_NONE && answer[i] < CV_ANSWERS;
  }
  if (good && campaign->undone_count > 0) {
    const struct cv_cobroker_answers *last = cv_cobroker_answers_of(campaign, name->number - 1);
    good = cv_digest_is_same(&last->after, &answers.before);
  }
  CV_TRY(damaged_unless(good));
  answers.tokens = (uint16_t)n;
  answers.answer = malloc(n);
  if (answers.answer == NULL) {
    return CV_ERR_NOMEM;
  }
  memcpy(answers.answer, answer, n);
  return cv_cobroker_answers_keep(campaign, &answers);
}

/* ---- the journal ---- */

static enum cv_err replay_asked(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                const struct cv_cobroker_entry *entry) {
  struct cv_answered *answered = &campaign->answered;
  uint64_t question = entry->arm == CV_COBROKER_ARM_NONE ? entry->place : entry->arm;
  struct cv_chunk *chunk;
  CV_TRY(damaged_unless(question < campaign->spec.arms));
  if (answered->questions == 0) {
    return CV_OK;
  }
  CV_TRY(nomem_or_damaged(cv_answered_touch(answered, entry->worker, entry->slot, question, &chunk)));
  cv_answered_set(answered, chunk, entry->worker, entry->slot, question);
  cv_cobroker_dirty_chunk(core, campaign->id, CV_COROW_ANSWERED, chunk);
  return CV_OK;
}

/* Repeats what judging the token did. Setting a bit twice is harmless; the charge is repeated only if the account's
 * chunk was stored before the entry. */
static enum cv_err replay_entry(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, uint64_t commit,
                                const struct cv_cobroker_entry *entry) {
  struct cv_chunk *account, *place, *slot;
  CV_TRY(damaged_unless(entry->slot < campaign->spec.tokens_per_worker && entry->worker < CV_WORKER_ID_END));
  CV_TRY(nomem_or_damaged(
      cv_chunks_set(&campaign->slots, cv_cobroker_campaign_slot(campaign, entry->worker, entry->slot), &slot)));
  cv_cobroker_dirty_chunk(core, campaign->id, CV_COROW_SLOTS, slot);
  CV_TRY(replay_asked(core, campaign, entry));
  if (entry->arm == CV_COBROKER_ARM_NONE) {
    return CV_OK;
  }
  CV_TRY(damaged_unless(entry->place < campaign->rounds));
  CV_TRY(nomem_or_damaged(cv_chunks_set(&campaign->places, entry->place, &place)));
  cv_cobroker_dirty_chunk(core, campaign->id, CV_COROW_PLACES, place);
  CV_TRY(nomem_or_damaged(cv_chunks_touch(&core->accounts.cells, entry->worker / CV_CHUNK_CELLS, &account)));
  if (commit > account->written) {
    cv_accounts_charge(account, entry->worker, campaign->privacy.cost_micro);
    cv_cobroker_dirty_chunk(core, 0, CV_COROW_ACCOUNTS, account);
  }
  return CV_OK;
}

static enum cv_err replay_entries(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, uint64_t commit,
                                  struct cv_reader *row) {
  uint32_t entries = cv_read_u32(row);
  for (uint32_t i = 0; i < entries && !row->failed; i++) {
    struct cv_cobroker_entry entry;
    entry.place = cv_read_u64(row);
    entry.worker = cv_read_u64(row);
    entry.arm = cv_read_u32(row);
    entry.slot = cv_read_u32(row);
    CV_TRY(damaged_unless(!row->failed));
    CV_TRY(replay_entry(core, campaign, commit, &entry));
  }
  return CV_OK;
}

/* Sums are absolute values: an arm's image stored after the row already includes them. */
static enum cv_err replay_sums(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, uint64_t commit,
                               struct cv_reader *row) {
  uint32_t touched = cv_read_u32(row);
  for (uint32_t i = 0; i < touched && !row->failed; i++) {
    struct cv_digest chain = {0};
    uint32_t index = cv_read_u32(row), filled = cv_read_u32(row);
    uint64_t sum = cv_read_u64(row);
    take(row, chain.bytes, CV_DIGEST_BYTES);
    CV_TRY(damaged_unless(!row->failed && index < campaign->spec.arms && sum < CV_FIELD_P));
    struct cv_cobroker_arm *arm = &campaign->arm[index];
    if (commit > arm->written) {
      CV_TRY(damaged_unless(filled <= arm->want));
      arm->filled = filled;
      arm->sum = sum;
      arm->chain = chain;
      cv_cobroker_dirty_arm(core, campaign, index);
    }
  }
  return CV_OK;
}

static enum cv_err replay_arms(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, uint64_t commit,
                               struct cv_reader *row) {
  uint32_t changed = cv_read_u32(row);
  for (uint32_t i = 0; i < changed && !row->failed; i++) {
    size_t n = 0;
    uint32_t index = cv_read_u32(row);
    const uint8_t *image = cv_read_bytes(row, &n);
    CV_TRY(damaged_unless(image != NULL && index < campaign->spec.arms));
    if (commit > campaign->arm[index].written) {
      struct cv_reader in = cv_reader_over(image, n);
      CV_TRY(cv_cobroker_image_read_arm(campaign, index, &in));
      CV_TRY(damaged_unless(cv_reader_done(&in)));
      cv_cobroker_dirty_arm(core, campaign, index);
    }
  }
  return CV_OK;
}

static enum cv_err take_journal(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                const struct cv_cobroker_name *name, struct cv_reader *row) {
  uint64_t now = core->commit;
  core->commit = name->commit; /* what the row changes is dirty since then */
  enum cv_err err = replay_entries(core, campaign, name->commit, row);
  err = err == CV_OK ? replay_sums(core, campaign, name->commit, row) : err;
  err = err == CV_OK ? replay_arms(core, campaign, name->commit, row) : err;
  core->commit = now;
  core->journal_bytes += (uint64_t)(row->end - row->at);
  return err == CV_OK ? damaged_unless(cv_reader_done(row)) : err;
}

/* ---- any row ---- */

static enum cv_err take_ended(struct cv_cobroker *core, const struct cv_cobroker_name *name, struct cv_reader *row) {
  return name->campaign == 0 ? cv_cobroker_past_read(&core->archive, row)
                             : cv_cobroker_ended_read(&core->archive, name->campaign, row);
}

static enum cv_err take_of(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                           const struct cv_cobroker_name *name, struct cv_reader *row) {
  switch (name->kind) {
    case CV_COROW_PLAN:
      return take_plan(core, campaign, name, row);
    case CV_COROW_LEDGER:
      return cv_ledger_read(&campaign->ledger, row);
    case CV_COROW_STATE:
      return take_state(campaign, row);
    case CV_COROW_KEY:
      return take_key(campaign, row);
    case CV_COROW_ARM:
      return take_arm(campaign, name, row);
    case CV_COROW_PLACES:
      return take_chunk(&campaign->places, name, row);
    case CV_COROW_SLOTS:
      return take_chunk(&campaign->slots, name, row);
    case CV_COROW_ANSWERED:
      return take_asked(campaign, name, row);
    case CV_COROW_CLOSING:
      return take_closing(core, campaign, name, row);
    case CV_COROW_ANSWERS:
      return take_answers(campaign, name, row);
    case CV_COROW_JOURNAL:
      return take_journal(core, campaign, name, row);
    default:
      return CV_ERR_DAMAGED;
  }
}

enum cv_err cv_cobroker_restore(struct cv_cobroker *core, const struct cv_cobroker_name *name, struct cv_reader *row) {
  if (name->kind == CV_COROW_CAMPAIGN) {
    return take_campaign(core, name, row);
  }
  if (name->kind == CV_COROW_ENDED) {
    return take_ended(core, name, row);
  }
  if (name->kind == CV_COROW_RECOVERY) {
    return name->campaign == 0 ? cv_cobroker_restore_recovery(core, name->number, row) : CV_ERR_DAMAGED;
  }
  if (name->kind == CV_COROW_ACCOUNTS) {
    return name->campaign == 0 ? take_chunk(&core->accounts.cells, name, row) : CV_ERR_DAMAGED;
  }
  struct cv_cobroker_campaign *campaign = cv_cobroker_campaign_find(core, name->campaign);
  return campaign == NULL ? CV_ERR_DAMAGED : take_of(core, campaign, name, row);
}

const char *cv_cobroker_row_text(uint32_t kind) {
  static const char *const text[] = {[CV_COROW_CAMPAIGN] = "description",
                                     [CV_COROW_PLAN] = "plan",
                                     [CV_COROW_LEDGER] = "account",
                                     [CV_COROW_STATE] = "state",
                                     [CV_COROW_ENDED] = "record",
                                     [CV_COROW_RECOVERY] = "recovery",
                                     [CV_COROW_KEY] = "verify key",
                                     [CV_COROW_ARM] = "arm",
                                     [CV_COROW_PLACES] = "chunk of places",
                                     [CV_COROW_SLOTS] = "chunk of slots",
                                     [CV_COROW_CLOSING] = "closing",
                                     [CV_COROW_ANSWERS] = "batch's answers",
                                     [CV_COROW_ACCOUNTS] = "chunk of accounts",
                                     [CV_COROW_JOURNAL] = "journal row",
                                     [CV_COROW_ANSWERED] = "chunk of questions"};
  return kind < CV_COUNT(text) && text[kind] != NULL ? text[kind] : "row of an unknown kind";
}

/* ---- the end ---- */

static uint64_t bits_set(const struct cv_chunks *chunks) {
  uint64_t bits = 0;
  for (const struct cv_chunk *chunk = chunks->all; chunk != NULL; chunk = chunk->hh.next) {
    for (size_t i = 0; i < CV_CHUNK_BYTES; i++) {
      bits += (uint64_t)__builtin_popcount(chunk->as.bytes[i]);
    }
  }
  return bits;
}

/* The arm's image agrees with itself, with its filled places and with its account. An open epoch has its noise, which
 * was stored with the plan and is never drawn again. */
static enum cv_err check_arm(struct cv_cobroker_campaign *campaign, uint32_t index) {
  const struct cv_cobroker_arm *arm = &campaign->arm[index];
  const struct cv_ledger *ledger = &campaign->ledger;
  if (arm->plan == 0) {
    CV_TRY(damaged_unless(arm->want == 0 && arm->filled == 0));
  } else {
    CV_TRY(damaged_unless(arm->plan == campaign->plans && !cv_cobroker_arm_is_spent(arm) && arm->mechanism->drawn));
    CV_TRY(damaged_unless(cv_chunks_count(&campaign->places, arm->round, arm->want) == arm->filled));
    CV_TRY(damaged_unless(cv_ledger_ask(ledger, index, cv_cobroker_campaign_price(campaign, index), NULL) == CV_OK));
  }
  uint64_t releases = cv_cobroker_arm_is_spent(arm) ? 0 : arm->mechanism->releases;
  const struct cv_ledger_arm *account = &ledger->arm[index];
  uint64_t covered = cv_privacy_spent_micro(&campaign->privacy, releases);
  return damaged_unless(account->spent_micro - account->lost_micro >= covered);
}

/* The hash over the kept answers ends with the one over all batches, and none is missing. */
static enum cv_err check_batches(const struct cv_cobroker_campaign *campaign) {
  CV_TRY(damaged_unless(campaign->undone_count == campaign->batches - campaign->done));
  if (campaign->undone_count == 0) {
    return CV_OK;
  }
  const struct cv_cobroker_answers *last = cv_cobroker_answers_of(campaign, campaign->batches);
  return damaged_unless(cv_digest_is_same(&last->after, &campaign->batches_hash));
}

/* The next plan comes only after all closings of the one before, so only the last plan can have open epochs. */
static enum cv_err check_history(const struct cv_cobroker_campaign *campaign) {
  uint64_t releases = 0, spent = 0;
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    const struct cv_cobroker_arm *arm = &campaign->arm[i];
    releases += cv_cobroker_arm_is_spent(arm) ? 0 : arm->mechanism->releases;
    spent += cv_cobroker_arm_is_spent(arm);
  }
  /* A spent arm has one closing more than releases, and its releases are gone with its mechanism. */
  CV_TRY(damaged_unless(releases + spent <= campaign->closings && (spent > 0 || releases == campaign->closings)));
  return damaged_unless(campaign->closed + campaign->open_arms == (campaign->plans == 0 ? 0 : campaign->last.wants));
}

/* The key may be missing altogether. */
static enum cv_err check_key(const struct cv_cobroker *core, const struct cv_cobroker_campaign *campaign) {
  struct cv_digest hash;
  core->config.digest(campaign->key, sizeof(campaign->key), "", 0, &hash);
  return damaged_unless(cv_digest_is_same(&hash, &campaign->split.key));
}

/* Each token, and each failed proof, has taken one slot and one question: these come from different rows. */
static enum cv_err check_taken(const struct cv_cobroker_campaign *campaign) {
  uint64_t taken = cv_ledger_add(campaign->tokens, campaign->failed);
  bool has_questions = campaign->answered.questions > 0;
  return damaged_unless(bits_set(&campaign->slots) == taken &&
                        (!has_questions || cv_answered_count(&campaign->answered) == taken));
}

static enum cv_err check_campaign(const struct cv_cobroker *core, struct cv_cobroker_campaign *campaign) {
  uint64_t tokens = 0;
  CV_TRY(check_key(core, campaign));
  cv_cobroker_plan_number(campaign);
  campaign->news_count = 0;
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    struct cv_cobroker_arm *arm = &campaign->arm[i];
    arm->touched = arm->changed = arm->listed = false;
    CV_TRY(check_arm(campaign, i));
    uint64_t left = campaign->spec.tokens - tokens;
    CV_TRY(damaged_unless(arm->filled <= left && arm->first <= left - arm->filled));
    tokens += arm->first + arm->filled;
    campaign->open_arms += arm->plan != 0;
  }
  CV_TRY(damaged_unless(tokens == campaign->tokens));
  CV_TRY(check_taken(campaign));
  CV_TRY(check_batches(campaign));
  return check_history(campaign);
}

/* The counts of before, and the times of now. */
static void settle(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign) {
  uint64_t wall_ms = core->wall_ms, end_ms = campaign->deadline_wall_ms;
  campaign->stored_batches = campaign->batches;
  campaign->stored_done = campaign->done;
  campaign->fresh = campaign->changed = false;
  campaign->slots.most = campaign->answered.chunks.most = core->config.limits.chunks;
  if (end_ms != 0) {
    /* If the wall clock went back meanwhile, the campaign still gets no more than its full time. */
    uint64_t left = end_ms > wall_ms ? end_ms - wall_ms : 0, most = campaign->spec.deadline_ms;
    campaign->deadline_ms = core->now_ms + (most != 0 && most < left ? most : left);
  }
}

static void add(struct cv_totals *to, const struct cv_totals *more) {
  to->campaigns = more->campaigns > to->campaigns ? more->campaigns : to->campaigns;
  to->releases = cv_ledger_add(to->releases, more->releases);
  to->tokens = cv_ledger_add(to->tokens, more->tokens);
  to->promised_micro = cv_ledger_add(to->promised_micro, more->promised_micro);
}

/* Adds all campaigns to the totals; restored recoveries have already added theirs. Returns the cost of their tokens. */
static uint64_t count_totals(struct cv_cobroker *core) {
  struct cv_totals ended;
  uint64_t cost_micro;
  cv_cobroker_archive_totals(&core->archive, &ended, &cost_micro);
  add(&core->totals, &ended);
  for (const struct cv_cobroker_campaign *each = core->campaigns; each != NULL; each = each->hh.next) {
    struct cv_totals totals;
    uint64_t own_micro;
    cv_cobroker_campaign_totals(each, &totals, &own_micro);
    add(&core->totals, &totals);
    cost_micro = cv_ledger_add(cost_micro, own_micro);
  }
  return cost_micro;
}

/* Whether the workers' accounts hold at least what the counted tokens cost. A cell that is full may hold less. */
static bool are_accounts_whole(const struct cv_accounts *accounts, uint64_t cost_micro) {
  uint64_t held = 0;
  for (const struct cv_chunk *chunk = accounts->cells.all; chunk != NULL; chunk = chunk->hh.next) {
    for (size_t i = 0; i < CV_CHUNK_CELLS; i++) {
      if (chunk->as.cell[i] == UINT32_MAX) {
        return true;
      }
      held += chunk->as.cell[i];
    }
  }
  return cv_ledger_add(held, accounts->spared_micro) >= cost_micro;
}

static bool is_same(const struct cv_totals *a, const struct cv_totals *b) {
  return a->campaigns == b->campaigns && a->releases == b->releases && a->tokens == b->tokens &&
         a->promised_micro == b->promised_micro;
}

enum cv_err cv_cobroker_restore_end(struct cv_cobroker *core, uint64_t commit, const struct cv_totals *totals,
                                    uint64_t now_ms, uint64_t wall_ms) {
  core->commit = commit + 1;
  core->now_ms = now_ms;
  core->wall_ms = wall_ms;
  for (struct cv_cobroker_campaign *each = core->campaigns; each != NULL; each = each->hh.next) {
    CV_TRY(check_campaign(core, each));
    settle(core, each);
  }
  uint64_t cost_micro = count_totals(core);
  cv_accounts_count(&core->accounts, core->config.limits.worker_epsilon_micro);
  CV_TRY(damaged_unless(is_same(totals, &core->totals) && are_accounts_whole(&core->accounts, cost_micro)));
  core->changed = false;
  core->said = core->quiet = false; /* from here on changes are reported */
  if (!core->examines) {
    cv_cobroker_end_strangers(core);
  }
  return cv_unless_failed(&core->failed, CV_OK, NULL);
}
