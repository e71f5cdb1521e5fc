/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilds the core's state from stored rows. A row that does not fit is CV_ERR_DAMAGED; the daemon then does not
 * start. */
#include "broker/restore.h"

#include <math.h>
#include <string.h>

#include "broker/campaign.h"
#include "broker/dirty.h"
#include "broker/ending.h"
#include "broker/epoch.h"
#include "broker/image.h"
#include "broker/payer.h"
#include "broker/places.h"
#include "broker/question.h"
#include "broker/shown.h"
#include "broker/state.h"
#include "broker/talk.h"
#include "broker/two.h"
#include "common/base/party.h"

static enum cv_err damaged_unless(bool good) {
  return good ? CV_OK : CV_ERR_DAMAGED;
}

enum cv_err cv_broker_restore_ended(struct cv_broker *broker, uint32_t id, struct cv_reader *row) {
  return cv_archive_read(&broker->archive, id, row);
}

/* The gold items at the end of a campaign's row, if it has any. */
static enum cv_err read_gold(struct cv_reader *row, const struct cv_spec *spec, struct cv_gold *ret) {
  if (cv_reader_done(row)) {
    return CV_OK;
  }
  struct cv_gold gold;
  enum cv_err err = cv_gold_decode(row, &gold);
  if (err != CV_OK) {
    return err == CV_ERR_NOMEM ? err : CV_ERR_DAMAGED;
  }
  if (!cv_reader_done(row) || cv_gold_check(&gold, spec, NULL) != CV_OK) {
    cv_gold_fini(&gold);
    return CV_ERR_DAMAGED;
  }
  *ret = gold;
  return CV_OK;
}

enum cv_err cv_broker_restore_campaign(struct cv_broker *broker, uint32_t id, struct cv_reader *row) {
  char requester[CV_NAME_BYTES];
  cv_read_text(row, requester, sizeof(requester));
  const uint8_t *client_key = cv_read(row, CV_CLIENT_KEY_BYTES);
  uint64_t submitted = cv_read_u64(row);
  uint64_t deadline = cv_read_u64(row);
  struct cv_spec spec;
  enum cv_err err = row->failed || requester[0] == '\0' ? CV_ERR_DAMAGED : cv_spec_decode(row, &spec);
  if (err != CV_OK) {
    return err == CV_ERR_NOMEM ? err : CV_ERR_DAMAGED;
  }
  struct cv_broker_campaign *campaign = NULL;
  struct cv_gold gold = {0};
  /* The operator's present limits apply to new campaigns, not to those already accepted. */
  const struct cv_gate_limits none = {.epsilon_micro = UINT64_MAX,
                                      .delta_pico = UINT64_MAX,
                                      .arms = CV_ARMS_MAX,
                                      .tokens = UINT64_MAX,
                                      .trusted_thirdparty = true,
                                      .unsafe_mechanisms = true};
  err = damaged_unless(cv_gate_spec(&spec, &none, NULL) == CV_OK && cv_broker_campaign_find(broker, id) == NULL);
  if (err == CV_OK) {
    err = read_gold(row, &spec, &gold);
  }
  if (err == CV_OK) {
    err = cv_broker_campaign_new(broker, id, &spec, &gold, &campaign);
  }
  cv_gold_fini(&gold);
  cv_spec_fini(&spec);
  CV_TRY(err);
  memcpy(campaign->requester, requester, sizeof(requester));
  memcpy(campaign->client_key, client_key, CV_CLIENT_KEY_BYTES);
  /* Until every accepted token is restored. */
  campaign->payers.most = campaign->gold.workers.most = campaign->answered.chunks.most = UINT32_MAX;
  campaign->submitted_wall_ms = submitted;
  campaign->deadline_wall_ms = deadline;
  return damaged_unless(cv_reader_done(row));
}

/* Empty: the campaign belongs to the first third-party that opens it. */
static enum cv_err read_thirdparty(struct cv_reader *row, char ret[CV_NAME_BYTES]) {
  char text[CV_NAME_BYTES];
  cv_read_text(row, text, sizeof(text));
  CV_TRY(damaged_unless(!row->failed && (text[0] == '\0' || cv_party_is_valid(text))));
  memcpy(ret, text, sizeof(text));
  return CV_OK;
}

/* The hash of the verify key of a campaign with two brokers. */
static enum cv_err read_key_hash(struct cv_reader *row, struct cv_broker_two *two) {
  uint8_t is_known = cv_read_u8(row);
  const uint8_t *hash = cv_read(row, sizeof(two->split.key.bytes));
  CV_TRY(damaged_unless(hash != NULL && is_known <= 1));
  two->is_known = is_known == 1;
  memcpy(two->split.key.bytes, hash, sizeof(two->split.key.bytes));
  return CV_OK;
}

enum cv_err cv_broker_restore_state(struct cv_broker *broker, uint32_t id, struct cv_reader *row) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  uint32_t phase = cv_read_u32(row);
  uint32_t end = cv_read_u32(row);
  bool has_seed = cv_read_u8(row) != 0;
  uint64_t seed = cv_read_u64(row);
  uint64_t tokens = cv_read_u64(row);
  uint64_t ended = cv_read_u64(row);
  if (campaign == NULL || phase > CV_PHASE_ENDED || end >= CV_END_COUNT || tokens > campaign->spec.tokens) {
    return CV_ERR_DAMAGED;
  }
  if (phase >= CV_PHASE_STOPPING && cv_payroll_is_kept(&campaign->payroll)) {
    /* While a campaign runs, payments follow from its arms instead; see settle_payments(). */
    CV_TRY(cv_payroll_read(&campaign->payroll, &campaign->spec, row));
  }
  CV_TRY(read_thirdparty(row, campaign->thirdparty));
  CV_TRY(campaign->two == NULL ? CV_OK : read_key_hash(row, campaign->two));
  for (uint32_t i = 0; phase >= CV_PHASE_STOPPING && campaign->gold.neutral != NULL && i < campaign->spec.arms; i++) {
    campaign->gold.neutral[i] = (int64_t)cv_read_u64(row);
  }
  if (row->at < row->end) { /* a complete campaign has none */
    cv_read_text(row, campaign->why, sizeof(campaign->why));
  }
  CV_TRY(damaged_unless(cv_reader_done(row) && (phase >= CV_PHASE_STOPPING || campaign->why[0] == '\0')));
  if (phase == CV_PHASE_STOPPING) {
    /* Both free the arms. The commit of the stop purged chunks and journal, so a row of either that is still found is
     * refused as damage. */
    struct cv_why why;
    (void)cv_fail(&why, CV_OK, "%s", campaign->why);
    cv_broker_campaign_stop(broker, campaign, (enum cv_end)end, why.text[0] == '\0' ? NULL : why.text);
  } else if (phase == CV_PHASE_ENDED) {
    CV_TRY(damaged_unless(end != CV_END_NONE));
    cv_broker_campaign_over(broker, campaign, (enum cv_end)end, ended);
  } else {
    campaign->phase = (enum cv_broker_phase)phase;
    campaign->end = (enum cv_end)end;
  }
  campaign->has_seed = has_seed;
  campaign->seed = seed;
  campaign->tokens = tokens;
  return CV_OK;
}

/* Every arm is valid and named once, and asks for at most as many tokens as a plan may. */
static bool plan_fits(const struct cv_broker_campaign *campaign, const struct cv_plan *plan) {
  uint8_t seen[CV_ARMS_MAX / 8] = {0};
  for (uint32_t i = 0; i < plan->wants; i++) {
    const struct cv_want *want = &plan->want[i];
    if (want->arm >= campaign->spec.arms || (seen[want->arm / 8] >> want->arm % 8 & 1) != 0 ||
        !cv_want_opponent_fits(want, campaign->spec.pairs, campaign->spec.arms) || want->tokens > CV_PLAN_TOKENS_MAX ||
        (want->tokens == 0 && campaign->spec.edges == 0)) {
      return false;
    }
    seen[want->arm / 8] |= (uint8_t)(1U << want->arm % 8);
  }
  return true;
}

enum cv_err cv_broker_restore_plan(struct cv_broker *broker, uint32_t id, struct cv_reader *row) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  uint32_t wants = cv_read_u32(row);
  if (campaign == NULL || wants == 0 || wants > campaign->spec.arms) {
    return CV_ERR_DAMAGED;
  }
  /* Plans and releases are numbered by their order: a missing row is detected by the checks in settle(). */
  struct cv_want *want = calloc(wants, sizeof(*want));
  if (want == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < wants; i++) {
    want[i].arm = cv_read_u32(row);
    want[i].tokens = cv_read_u32(row);
    want[i].opponent = campaign->spec.pairs ? cv_read_u32(row) : 0;
  }
  const struct cv_plan plan = {.number = campaign->plans + 1, .wants = wants, .want = want};
  enum cv_err err = damaged_unless(cv_reader_done(row) && plan_fits(campaign, &plan));
  if (err == CV_OK) {
    err = cv_epoch_add_plan(broker, campaign, &plan);
  }
  free(want);
  return err;
}

enum cv_err cv_broker_restore_release(struct cv_broker *broker, uint32_t id, struct cv_reader *row) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  struct cv_broker_release release = {.plan = cv_read_u64(row), .arm = cv_read_u32(row), .nth = cv_read_u32(row)};
  release.tokens = cv_read_u64(row);
  release.noisy_sum = (int64_t)cv_read_u64(row);
  bool is_last = row->at < row->end;
  if (is_last) {
    release.wanted = cv_read_u64(row);
    release.given = cv_read_u64(row);
  }
  if (campaign == NULL || !cv_reader_done(row) || release.arm >= campaign->spec.arms ||
      release.nth > campaign->privacy.law.horizon || (is_last && release.given >= release.wanted)) {
    return CV_ERR_DAMAGED;
  }
  /* Only the last release of an arm may be empty. */
  bool is_empty = release.nth == 0;
  CV_TRY(damaged_unless(!is_empty || (is_last && release.tokens == 0 && release.noisy_sum == 0)));
  release.number = campaign->releases + 1;
  return cv_epoch_add_release(broker, campaign, &release);
}

enum cv_err cv_broker_restore_ledger(struct cv_broker *broker, uint32_t id, struct cv_reader *row) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  return campaign == NULL ? CV_ERR_DAMAGED : cv_ledger_read(&campaign->ledger, row);
}

enum cv_err cv_broker_restore_standings(struct cv_broker *broker, uint32_t id, struct cv_reader *row) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  if (campaign == NULL || cv_read_u32(row) != campaign->spec.arms) {
    return CV_ERR_DAMAGED;
  }
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    struct cv_standing *standing = &campaign->standing[i];
    standing->rank_class = cv_read_u32(row);
    standing->tokens = cv_read_u64(row);
    standing->mean = cv_read_f64(row);
    standing->radius = cv_read_f64(row);
    standing->rank_last = cv_read_u32(row);
    unsigned held = cv_read_u8(row);
    standing->held = (enum cv_held)(held & ~(unsigned)CV_STANDING_CONTRADICTS);
    standing->contradicts = (held & CV_STANDING_CONTRADICTS) != 0;
    CV_TRY(damaged_unless(isfinite(standing->mean) && isfinite(standing->radius) && standing->radius >= 0 &&
                          cv_standing_is_plausible(standing, campaign->spec.arms)));
  }
  campaign->has_standings = true;
  return damaged_unless(cv_reader_done(row));
}

static enum cv_err restore_bytes(struct cv_chunk *chunk, enum cv_kind kind, struct cv_reader *bytes) {
  if (cv_kind_has_cells(kind)) {
    for (size_t i = 0; i < CV_CHUNK_CELLS; i++) {
      chunk->as.cell[i] = cv_read_u32(bytes);
    }
  } else {
    const uint8_t *from = cv_read(bytes, CV_CHUNK_BYTES);
    if (from != NULL) {
      memcpy(chunk->as.bytes, from, CV_CHUNK_BYTES);
    }
  }
  return damaged_unless(cv_reader_done(bytes));
}

enum cv_err cv_broker_restore_chunk(struct cv_broker *broker, uint32_t id, enum cv_kind kind, uint64_t number,
                                    uint64_t commit, struct cv_reader *bytes) {
  struct cv_broker_campaign *campaign = id == 0 ? NULL : cv_broker_campaign_find(broker, id);
  /* Accounts belong to no campaign; all other chunks to one that still runs. */
  if ((kind == CV_CHUNK_ACCOUNTS) != (id == 0) || (id != 0 && (campaign == NULL || campaign->arm == NULL))) {
    return CV_ERR_DAMAGED;
  }
  if (kind == CV_CHUNK_ARM) {
    CV_TRY(damaged_unless(number < campaign->spec.arms));
    CV_TRY(cv_image_read_arm(campaign, (uint32_t)number, bytes));
    campaign->arm[number].written = commit;
    return damaged_unless(cv_reader_done(bytes));
  }
  if (kind >= CV_CHUNK_TWO && kind <= CV_CHUNK_CLOSING) {
    return cv_two_restore(campaign, kind, number, bytes);
  }
  CV_TRY(damaged_unless(kind != CV_CHUNK_PLACES || number <= campaign->rounds / CV_CHUNK_BITS));
  struct cv_chunks *chunks = kind == CV_CHUNK_ACCOUNTS   ? &broker->accounts.cells
                             : kind == CV_CHUNK_PLACES   ? &campaign->places
                             : kind == CV_CHUNK_GOLD     ? &campaign->gold.workers
                             : kind == CV_CHUNK_ANSWERED ? &campaign->answered.chunks
                                                         : &campaign->payers;
  struct cv_chunk *chunk;
  CV_TRY(cv_chunks_touch(chunks, number, &chunk));
  chunk->written = commit;
  return restore_bytes(chunk, kind, bytes);
}

/* An answer to a gold item: repeated only if the worker's cell was stored before the entry. */
static enum cv_err replay_gold(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint64_t commit,
                               const struct cv_entry *entry) {
  struct cv_chunk *answers;
  CV_TRY(damaged_unless(campaign->gold.terms.items > 0 && entry->arm - campaign->spec.arms <= 1 && entry->index == 0));
  CV_TRY(cv_chunks_touch(&campaign->gold.workers, entry->worker / CV_CHUNK_CELLS, &answers));
  if (commit > answers->written) {
    (void)cv_broker_gold_add(&campaign->gold, answers, entry->worker, entry->arm > campaign->spec.arms);
    cv_dirty_chunk(broker, campaign->id, CV_CHUNK_GOLD, answers);
  }
  return CV_OK;
}

static enum cv_err replay_place(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                const struct cv_entry *entry) {
  struct cv_chunk *place;
  CV_TRY(damaged_unless(entry->index < campaign->rounds));
  CV_TRY(cv_chunks_set(&campaign->places, entry->index, &place));
  cv_dirty_chunk(broker, campaign->id, CV_CHUNK_PLACES, place);
  return CV_OK;
}

static enum cv_err replay_answered(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                   const struct cv_entry *entry) {
  struct cv_answered *answered = &campaign->answered;
  struct cv_chunk *chunk;
  if (answered->questions == 0) {
    return CV_OK;
  }
  CV_TRY(damaged_unless(entry->question < answered->questions));
  CV_TRY(cv_answered_touch(answered, entry->worker, entry->slot, entry->question, &chunk));
  cv_answered_set(answered, chunk, entry->worker, entry->slot, entry->question);
  cv_dirty_chunk(broker, campaign->id, CV_CHUNK_ANSWERED, chunk);
  return CV_OK;
}

/* A slot that was used up for nothing. */
static enum cv_err replay_spoiled(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                  const struct cv_entry *entry) {
  struct cv_chunk *payer;
  CV_TRY(damaged_unless(entry->arm == campaign->spec.arms && entry->index == 0));
  CV_TRY(cv_chunks_set(&campaign->payers, cv_broker_campaign_payer_bit(campaign, entry->worker, entry->slot), &payer));
  cv_dirty_chunk(broker, campaign->id, CV_CHUNK_PAYERS, payer);
  return CV_OK;
}

/* Repeats what accepting the token did. Setting a bit twice is harmless; the charge is repeated only if the account's
 * chunk was stored before the entry. */
static enum cv_err replay_entry(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint64_t commit,
                                const struct cv_entry *entry) {
  if (entry->slot >= campaign->spec.tokens_per_worker || entry->worker >= CV_WORKER_ID_END ||
      entry->shown > campaign->shown_most) {
    return CV_ERR_DAMAGED;
  }
  CV_TRY(replay_answered(broker, campaign, entry));
  if (campaign->two != NULL && entry->arm >= campaign->spec.arms) {
    return replay_spoiled(broker, campaign, entry);
  }
  struct cv_chunk *account, *payer;
  uint64_t payer_bit = cv_broker_campaign_payer_bit(campaign, entry->worker, entry->slot);
  /* The same chunks change as when the token was accepted; they are dirty until written again. */
  CV_TRY(cv_chunks_touch(&broker->accounts.cells, entry->worker / CV_CHUNK_CELLS, &account));
  CV_TRY(entry->arm < campaign->spec.arms ? replay_place(broker, campaign, entry)
                                          : replay_gold(broker, campaign, commit, entry));
  CV_TRY(cv_chunks_set(&campaign->payers, payer_bit, &payer));
  cv_dirty_chunk(broker, campaign->id, CV_CHUNK_PAYERS, payer);
  if (commit > account->written) {
    cv_accounts_charge(account, entry->worker, cv_broker_campaign_charge(campaign, entry->shown));
    cv_dirty_chunk(broker, 0, CV_CHUNK_ACCOUNTS, account);
  }
  return CV_OK;
}

/* Partial sums are absolute values: an arm's image stored after the row already includes them. */
static enum cv_err replay_sums(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint64_t commit,
                               struct cv_reader *bytes) {
  uint32_t touched = cv_read_u32(bytes);
  for (uint32_t i = 0; i < touched && !bytes->failed; i++) {
    uint32_t index = cv_read_u32(bytes);
    uint32_t filled = cv_read_u32(bytes);
    struct cv_arm_sum sum;
    CV_TRY(cv_image_read_sum(campaign, bytes, &sum));
    CV_TRY(damaged_unless(index < campaign->spec.arms));
    struct cv_arm *arm = &campaign->arm[index];
    if (commit > arm->written) {
      CV_TRY(damaged_unless(filled <= arm->want));
      arm->filled = filled;
      cv_image_set_sum(campaign, index, &sum);
      cv_dirty_arm(broker, campaign, index);
    }
  }
  return CV_OK;
}

static enum cv_err replay_arms(struct cv_broker *broker, struct cv_broker_campaign *campaign, uint64_t commit,
                               struct cv_reader *bytes) {
  /* Images of arms that changed in other ways than by tokens, as of this commit. */
  uint32_t changed = cv_read_u32(bytes);
  for (uint32_t i = 0; i < changed && !bytes->failed; i++) {
    size_t n = 0;
    uint32_t index = cv_read_u32(bytes);
    const uint8_t *image = cv_read_bytes(bytes, &n);
    CV_TRY(damaged_unless(image != NULL && index < campaign->spec.arms));
    if (commit > campaign->arm[index].written) {
      struct cv_reader in = cv_reader_over(image, n);
      CV_TRY(cv_image_read_arm(campaign, index, &in));
      CV_TRY(damaged_unless(cv_reader_done(&in)));
      cv_dirty_arm(broker, campaign, index);
    }
  }
  return CV_OK;
}

static struct cv_entry read_entry(const struct cv_broker_campaign *campaign, struct cv_reader *bytes) {
  struct cv_entry entry = {.index = cv_read_u64(bytes), .worker = cv_read_u64(bytes)};
  uint32_t arm = cv_read_u32(bytes);
  entry.arm = cv_entry_arm(arm);
  entry.shown = cv_entry_shown(arm);
  entry.slot = cv_read_u32(bytes);
  if (entry.arm >= campaign->spec.arms && campaign->answered.questions > 0) {
    entry.question = entry.index;
    entry.index = 0;
  } else if (entry.arm < campaign->spec.arms) {
    entry.question =
        cv_entry_has_question(campaign) ? cv_read_u64(bytes) : cv_broker_question_number(campaign, entry.arm, 0);
  }
  return entry;
}

enum cv_err cv_broker_restore_journal(struct cv_broker *broker, uint32_t id, uint64_t commit, struct cv_reader *bytes) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  if (campaign == NULL || campaign->arm == NULL) {
    return CV_ERR_DAMAGED;
  }
  broker->commit = commit; /* replayed changes are dirty since this commit */
  broker->journal_bytes += (uint64_t)(bytes->end - bytes->at);
  uint32_t entries = cv_read_u32(bytes);
  for (uint32_t i = 0; i < entries && !bytes->failed; i++) {
    struct cv_entry entry = read_entry(campaign, bytes);
    if (!bytes->failed) {
      CV_TRY(replay_entry(broker, campaign, commit, &entry));
    }
  }
  /* Sums before images: an image of the same commit is newer than the sums. */
  CV_TRY(replay_sums(broker, campaign, commit, bytes));
  CV_TRY(replay_arms(broker, campaign, commit, bytes));
  return damaged_unless(cv_reader_done(bytes));
}

/* The number of bits set in all chunks. */
static uint64_t bits_set(const struct cv_chunks *chunks) {
  uint64_t bits = 0;
  for (const struct cv_chunk *chunk = chunks->all; chunk != NULL; chunk = chunk->hh.next) {
    for (size_t i = 0; i < CV_CHUNK_BYTES; i++) {
      bits += (uint64_t)__builtin_popcount(chunk->as.bytes[i]);
    }
  }
  return bits;
}

/* The arm's image agrees with itself and with its filled places. */
static enum cv_err check_arm(struct cv_broker_campaign *campaign, uint32_t index) {
  const struct cv_arm *arm = &campaign->arm[index];
  /* The token that completes an epoch closes it in the same commit, so a stored epoch still lacks one. Its noise is
   * stored with the plan and is never drawn again. */
  bool is_open = arm->plan != 0;
  CV_TRY(damaged_unless(is_open ? arm->plan <= campaign->plans && arm->seen < arm->expected && arm->mechanism->drawn
                                : arm->want == 0));
  uint64_t filled = cv_chunks_count(&campaign->places, cv_place_bit(arm, 0), arm->want);
  return damaged_unless(filled == arm->filled);
}

/* The releases, and with two brokers behind them the closings, which are releases without the other half. */
static size_t rows_of(const struct cv_broker_campaign *campaign) {
  return campaign->releases + (campaign->two == NULL ? 0 : campaign->two->closings);
}

static const struct cv_broker_release *row_at(const struct cv_broker_campaign *campaign, size_t i) {
  return i < campaign->releases ? &campaign->release[i] : &campaign->two->closing[i - campaign->releases].row;
}

/* The arms' images agree with the releases, and every arm of the last plan is either open or released. */
static enum cv_err check_history(struct cv_broker_campaign *campaign) {
  uint64_t releases = 0;
  uint32_t *made = calloc(campaign->spec.arms, sizeof(*made));
  bool agree = true;
  if (made == NULL) {
    return CV_ERR_NOMEM;
  }
  for (size_t i = 0; i < rows_of(campaign); i++) {
    const struct cv_broker_release *row = row_at(campaign, i);
    agree = agree && row->tokens <= campaign->arm[row->arm].before && (row->nth == 0 || row->nth == ++made[row->arm]);
    if (row->wanted > 0) { /* nothing follows the arm's last release */
      struct cv_arm *arm = &campaign->arm[row->arm];
      agree = agree && !arm->is_spent && arm->plan == 0 && row->given == arm->first;
      arm->is_spent = true;
    }
    releases += row->plan == campaign->plans;
  }
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    agree = agree && campaign->arm[i].mechanism->releases == made[i];
  }
  free(made);
  CV_TRY(damaged_unless(agree));
  /* The next plan comes only after all releases of the one before, so only the last plan can have open epochs. */
  const struct cv_plan *last = campaign->plans > 0 ? &campaign->plan[campaign->plans - 1] : NULL;
  return damaged_unless(releases + campaign->open_arms == (last == NULL ? 0 : last->wants));
}

/* The spending in the arms' accounts covers the releases, and the account has room for each open epoch's release. */
static enum cv_err check_ledger(const struct cv_broker_campaign *campaign) {
  const struct cv_ledger *ledger = &campaign->ledger;
  for (size_t i = 0; i < rows_of(campaign); i++) {
    const struct cv_broker_release *row = row_at(campaign, i);
    const struct cv_ledger_arm *arm = &ledger->arm[row->arm];
    CV_TRY(damaged_unless(arm->spent_micro - arm->lost_micro >= cv_broker_campaign_cost(campaign, row->nth)));
  }
  for (uint32_t i = 0; campaign->arm != NULL && i < campaign->spec.arms; i++) {
    if (campaign->arm[i].plan != 0) {
      CV_TRY(damaged_unless(cv_ledger_ask(ledger, i, cv_epoch_price(campaign, i), NULL) == CV_OK));
    }
  }
  return CV_OK;
}

/* Pays for the accepted tokens of an arm; the budget must cover these and the tokens still to come. */
static enum cv_err settle_payments(struct cv_broker_campaign *campaign, uint32_t index) {
  const struct cv_spec *spec = &campaign->spec;
  const struct cv_arm *arm = &campaign->arm[index];
  if (spec->cost_micro == NULL) {
    return CV_OK;
  }
  uint64_t left = (spec->budget_micro - campaign->payroll.paid_micro) / spec->cost_micro[index];
  CV_TRY(damaged_unless(arm->first + arm->want <= left));
  cv_payroll_pay(&campaign->payroll, spec, index, arm->first + arm->filled);
  return CV_OK;
}

/* Derives the counts from the arms' images and checks them against all other rows, so that a missing row is detected.
 * */
static enum cv_err settle(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  campaign->tokens = campaign->news_count = 0;
  cv_epoch_number_rounds(campaign);
  cv_shown_restore(campaign);
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    struct cv_arm *arm = &campaign->arm[i];
    arm->changed = arm->touched = arm->listed = false;
    arm->next = 0;
    uint64_t left = campaign->spec.tokens - campaign->tokens - campaign->reserved;
    /* Each arm may use only what the arms before it leave of the campaign's token limit. */
    CV_TRY(damaged_unless(arm->want <= left && arm->first <= left - arm->want));
    CV_TRY(check_arm(campaign, i));
    CV_TRY(settle_payments(campaign, i));
    campaign->tokens += arm->first + arm->filled;
    campaign->reserved += arm->want - arm->filled;
    campaign->open_arms += arm->plan != 0;
    cv_urn_add(&campaign->urn, i, arm->want);
  }
  /* One used slot per token: the payers' bits, the arms' counts and the answers to gold items come from different
   * rows. */
  uint64_t spoiled = campaign->two == NULL ? 0 : campaign->two->spoiled;
  CV_TRY(damaged_unless(bits_set(&campaign->payers) ==
                        campaign->tokens + cv_broker_gold_answers(&campaign->gold) + spoiled));
  CV_TRY(campaign->two == NULL ? CV_OK : cv_two_settle(broker, campaign));
  return check_history(campaign);
}

/* ---- ended campaigns ---- */

/* Whether the rows that were read are those that the record summarizes. */
static bool agrees(const struct cv_broker_campaign *campaign, const struct cv_ended *ended) {
  const struct cv_progress *progress = &ended->progress;
  return campaign->phase == CV_PHASE_ENDED && !ended->purged && campaign->end == progress->end &&
         campaign->tokens == progress->tokens && campaign->releases == progress->releases &&
         campaign->plans == progress->plans && campaign->spec.arms == progress->arms &&
         strcmp(campaign->requester, ended->owner->name) == 0;
}

enum cv_err cv_broker_restore_whole(struct cv_broker *broker, uint32_t id) {
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  const struct cv_ended *ended = cv_archive_find(&broker->archive, id);
  CV_TRY(damaged_unless(campaign != NULL));
  /* The rows just read are stored already: nothing of them belongs into the next batch. */
  campaign->stored_plans = campaign->plans;
  campaign->stored_releases = campaign->releases;
  campaign->fresh = campaign->changed = campaign->standings_changed = campaign->purge = false;
  if (ended != NULL) {
    CV_TRY(damaged_unless(agrees(campaign, ended)));
    /* Everything is stored and reported already; the campaign only serves requests. */
    campaign->settled = campaign->fetched = campaign->done_told = true;
    return check_ledger(campaign);
  }
  CV_TRY(damaged_unless(campaign->phase != CV_PHASE_ENDED)); /* its record was stored with its end */
  return broker->failed ? CV_ERR_NOMEM : CV_OK;
}

/* ---- the whole core ---- */

/* Whether the totals that follow from the rows equal those stored with the last commit. */
static bool is_same(const struct cv_totals *a, const struct cv_totals *b) {
  return a->campaigns == b->campaigns && a->releases == b->releases && a->tokens == b->tokens &&
         a->promised_micro == b->promised_micro;
}

/* The number of unlimited accounts, and the sum of all cells. */
static uint64_t count_unprotected(const struct cv_accounts *accounts, uint64_t *ret_held) {
  uint64_t held = 0, unprotected = 0;
  for (const struct cv_chunk *chunk = accounts->cells.all; chunk != NULL; chunk = chunk->hh.next) {
    for (size_t i = 0; i < CV_CHUNK_CELLS; i++) {
      held += chunk->as.cell[i];
      unprotected += chunk->as.cell[i] == UINT32_MAX;
    }
  }
  *ret_held = held;
  return unprotected;
}

/* Whether the workers' accounts hold at least what the counted tokens cost (one score each), and whether there are
 * enough unlimited accounts: each worker of a campaign that sends exact sums has one, and gives to no other such
 * campaign. */
static bool are_accounts_whole(const struct cv_broker *broker) {
  uint64_t held, least, givers = 0, unprotected = count_unprotected(&broker->accounts, &held);
  struct cv_totals ended;
  cv_archive_totals(&broker->archive, &ended, &least);
  for (const struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    uint64_t cost, each = campaign->spec.tokens_per_worker;
    if (cv_privacy_is_unprotected(&campaign->privacy)) {
      givers += campaign->tokens / each + (campaign->tokens % each > 0);
      continue;
    }
    if (__builtin_mul_overflow(cv_broker_campaign_charge(campaign, 1), campaign->tokens, &cost)) {
      cost = UINT64_MAX;
    }
    least = cv_ledger_add(least, cost);
  }
  return cv_ledger_add(held, broker->accounts.spared_micro) >= least && unprotected >= givers;
}

/* Adds ended and open campaigns to the totals; restored recoveries have already added theirs. */
static void count_totals(struct cv_broker *broker) {
  struct cv_totals ended, *totals = &broker->totals;
  uint64_t cost_micro;
  cv_archive_totals(&broker->archive, &ended, &cost_micro);
  totals->campaigns = ended.campaigns > totals->campaigns ? ended.campaigns : totals->campaigns;
  totals->releases = cv_ledger_add(totals->releases, ended.releases);
  totals->tokens = cv_ledger_add(totals->tokens, ended.tokens);
  totals->promised_micro = cv_ledger_add(totals->promised_micro, ended.promised_micro);
  for (const struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    cv_broker_campaign_count(broker, campaign);
    totals->releases = cv_ledger_add(totals->releases, campaign->releases);
    totals->tokens = cv_ledger_add(totals->tokens, campaign->tokens);
  }
}

enum cv_err cv_broker_restore_end(struct cv_broker *broker, uint64_t commit, const struct cv_totals *totals,
                                  uint64_t now_ms, uint64_t wall_ms) {
  broker->commit = commit + 1;
  broker->started_ms = broker->parted_ms = broker->now_ms = broker->ticked_ms = now_ms;
  broker->wall_ms = wall_ms;
  for (struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    /* What restoring set is stored already, and time that passed before the start is not idle time. */
    campaign->purge = false;
    campaign->active_ms = now_ms;
    /* From here on the limit counts again; a table that is larger already only stops growing. */
    campaign->payers.most = campaign->gold.workers.most = broker->config.limits.chunks;
    campaign->answered.chunks.most = broker->config.limits.chunks;
    if (campaign->deadline_wall_ms != 0) {
      /* If the wall clock went back while the broker was stopped, the campaign still gets no more than its full time.
       * */
      uint64_t left = campaign->deadline_wall_ms > wall_ms ? campaign->deadline_wall_ms - wall_ms : 0;
      campaign->deadline_ms = now_ms + (left < campaign->spec.deadline_ms ? left : campaign->spec.deadline_ms);
    }
    if (campaign->arm != NULL) {
      CV_TRY(settle(broker, campaign));
    }
    CV_TRY(check_ledger(campaign));
  }
  count_totals(broker);
  cv_accounts_count(&broker->accounts, broker->config.limits.worker_epsilon_micro);
  /* For rows of ended campaigns the totals and accounts are the only rows to be checked against. */
  CV_TRY(damaged_unless(totals == NULL || (is_same(totals, &broker->totals) && are_accounts_whole(broker))));
  broker->changed = broker->archive.leaving != NULL; /* deletions that a shutdown interrupted are due */
  /* Restoring is silent; from here on changes are reported. */
  broker->said = broker->quiet = false;
  return cv_unless_failed(&broker->failed, CV_OK, NULL);
}
