/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "cobroker/campaign.h"
#include "cobroker/conn.h"
#include "cobroker/ending.h"
#include "cobroker/session.h"
#include "cobroker/state.h"
#include "cobroker/talk.h"
#include "common/base/array.h"
#include "common/base/fingerprint.h"
#include "common/prio/field.h"
#include "common/prio/verify.h"

/* ---- kept answers ---- */

enum cv_err cv_cobroker_answers_keep(struct cv_cobroker_campaign *campaign, const struct cv_cobroker_answers *answers) {
  if (CV_ARRAY_RING_ROOM(campaign->undone, campaign->undone_head, campaign->undone_count, campaign->undone_cap) !=
      CV_OK) {
    free(answers->answer);
    return CV_ERR_NOMEM;
  }
  campaign->undone[(campaign->undone_head + campaign->undone_count++) % campaign->undone_cap] = *answers;
  campaign->undone_tokens += answers->tokens;
  return CV_OK;
}

const struct cv_cobroker_answers *cv_cobroker_answers_of(const struct cv_cobroker_campaign *campaign, uint64_t n) {
  CV_REQUIRE(n > campaign->done && n <= campaign->batches);
  return &campaign->undone[(campaign->undone_head + (n - campaign->done - 1)) % campaign->undone_cap];
}

static void forget_first(struct cv_cobroker_campaign *campaign) {
  struct cv_cobroker_answers *first = &campaign->undone[campaign->undone_head];
  campaign->undone_tokens -= first->tokens;
  free(first->answer);
  *first = (struct cv_cobroker_answers){0};
  campaign->undone_head = (campaign->undone_head + 1) % campaign->undone_cap;
  campaign->undone_count--;
  campaign->done++;
}

enum cv_err cv_cobroker_done(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, uint64_t number,
                             struct cv_why *why) {
  if (number > campaign->batches) {
    return cv_fail(why, CV_ERR_STATE, "campaign %u: batch %llu is done; expected at most %llu", campaign->id,
                   (unsigned long long)number, (unsigned long long)campaign->batches);
  }
  while (campaign->done < number) {
    forget_first(campaign);
    cv_cobroker_campaign_mark(core, campaign);
  }
  return CV_OK;
}

/* ---- one token ---- */

/* A token whose seal has opened. */
struct given {
  const struct cv_share_pending *pending;
  const struct cv_cobroker_session *session;
  uint8_t seed[CV_SPLIT_SEED_BYTES];
};

static enum cv_err open_seal(struct cv_cobroker *core, const struct cv_cobroker_campaign *campaign,
                             struct given *given) {
  uint8_t bound[CV_SPLIT_BOUND_BYTES];
  const struct cv_share_pending *pending = given->pending;
  cv_split_bound(&campaign->context, &pending->token, bound);
  return core->config.open_seed(core->config.crypto_data, given->session->key, pending->counter, bound, pending->sealed,
                                given->seed);
}

/* The bit of a token's place, if the place is one of an open epoch. */
static bool find_place(const struct cv_cobroker_campaign *campaign, const struct cv_split_token *token,
                       uint64_t *ret_bit) {
  const struct cv_cobroker_arm *arm = token->arm < campaign->spec.arms ? &campaign->arm[token->arm] : NULL;
  if (arm == NULL || arm->plan == 0 || arm->plan != token->plan || token->place < arm->first ||
      token->place - arm->first >= arm->want) {
    return false;
  }
  *ret_bit = arm->round + (token->place - arm->first);
  return true;
}

/* Whether there is a place and a slot for the token, both are free, and its worker has not answered about the arm. */
static bool is_free(struct cv_cobroker_campaign *campaign, const struct cv_split_token *token, uint64_t *ret_place) {
  return token->slot < campaign->spec.tokens_per_worker && find_place(campaign, token, ret_place) &&
         !cv_chunks_bit(&campaign->places, *ret_place) &&
         !cv_chunks_bit(&campaign->slots, cv_cobroker_campaign_slot(campaign, token->worker, token->slot)) &&
         !cv_answered_has(&campaign->answered, token->worker, token->arm);
}

/* Whether a range of workers may use one more chunk of the tables, so that no certificate fills them alone. */
static bool has_room(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                     const struct cv_identity *identity, const struct cv_split_token *token) {
  uint64_t worker = token->worker, slot = cv_cobroker_campaign_slot(campaign, worker, token->slot);
  uint64_t first = cv_cobroker_campaign_slot(campaign, identity->first, 0);
  uint64_t last = cv_cobroker_campaign_slot(campaign, identity->last, campaign->spec.tokens_per_worker - 1);
  return cv_chunks_has_room(&core->accounts.cells, worker / CV_CHUNK_CELLS, identity->first / CV_CHUNK_CELLS,
                            identity->last / CV_CHUNK_CELLS) &&
         cv_chunks_has_room(&campaign->slots, slot / CV_CHUNK_BITS, first / CV_CHUNK_BITS, last / CV_CHUNK_BITS) &&
         cv_answered_has_room(&campaign->answered, worker, token->slot, token->arm, identity->first, identity->last);
}

static bool can_pay(struct cv_cobroker *core, const struct cv_cobroker_campaign *campaign, uint64_t worker) {
  uint64_t spent = cv_accounts_spent(&core->accounts, worker);
  return cv_ledger_add(spent, campaign->privacy.cost_micro) <= core->config.limits.worker_epsilon_micro;
}

/* The chunks that a token changes, made before any bit is set, so that an error changes nothing. */
struct chunks {
  struct cv_chunk *place, *slot, *account, *asked; /* asked: NULL if no questions are recorded */
};

static enum cv_err touch(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                         const struct cv_split_token *token, uint64_t place, struct chunks *ret) {
  uint64_t slot = cv_cobroker_campaign_slot(campaign, token->worker, token->slot);
  CV_TRY(cv_chunks_touch(&campaign->places, place / CV_CHUNK_BITS, &ret->place));
  CV_TRY(cv_chunks_touch(&core->accounts.cells, token->worker / CV_CHUNK_CELLS, &ret->account));
  CV_TRY(cv_answered_touch(&campaign->answered, token->worker, token->slot, token->arm, &ret->asked));
  return cv_chunks_touch(&campaign->slots, slot / CV_CHUNK_BITS, &ret->slot);
}

/* Records what was taken. A failed append is found when the batch is filled, and ends the core before anything is
 * answered. */
static void note_entry(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                       const struct cv_cobroker_entry *entry) {
  cv_buf_put(&campaign->journal, entry, sizeof(*entry));
  cv_cobroker_campaign_mark(core, campaign);
}

/* Takes the slot and the question. */
static enum cv_err take_slot(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                             const struct cv_split_token *token, const struct chunks *chunks) {
  struct cv_chunk *slot;
  CV_TRY(cv_chunks_set(&campaign->slots, cv_cobroker_campaign_slot(campaign, token->worker, token->slot), &slot));
  cv_cobroker_dirty_chunk(core, campaign->id, CV_COROW_SLOTS, slot);
  if (chunks->asked != NULL) {
    cv_answered_set(&campaign->answered, chunks->asked, token->worker, token->slot, token->arm);
    cv_cobroker_dirty_chunk(core, campaign->id, CV_COROW_ANSWERED, chunks->asked);
  }
  return CV_OK;
}

/* A proof that fails uses slot and question up; the place is free for another worker. */
static enum cv_err count_failed(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                const struct cv_split_token *token, const struct chunks *chunks) {
  CV_TRY(take_slot(core, campaign, token, chunks));
  campaign->failed++;
  const struct cv_cobroker_entry entry = {
      .place = token->arm, .worker = token->worker, .arm = CV_COBROKER_ARM_NONE, .slot = token->slot};
  note_entry(core, campaign, &entry);
  return CV_OK;
}

static enum cv_err count(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                         const struct cv_split_token *token, uint64_t place, const struct chunks *chunks,
                         uint64_t output) {
  struct cv_cobroker_arm *arm = &campaign->arm[token->arm];
  struct cv_chunk *places;
  CV_TRY(cv_chunks_set(&campaign->places, place, &places));
  CV_TRY(take_slot(core, campaign, token, chunks));
  cv_cobroker_dirty_chunk(core, campaign->id, CV_COROW_PLACES, places);
  cv_accounts_pay(&core->accounts, chunks->account, token->worker, campaign->privacy.cost_micro);
  cv_cobroker_dirty_chunk(core, 0, CV_COROW_ACCOUNTS, chunks->account);
  uint64_t scaled = cv_field_mul(output, cv_split_scale(campaign->split.score_bits));
  arm->sum = cv_field_add(arm->sum, scaled);
  cv_split_chain(&arm->chain, token, core->config.digest);
  arm->filled++;
  arm->touched = true;
  cv_cobroker_campaign_list(campaign, token->arm);
  campaign->tokens++;
  core->totals.tokens++;
  note_entry(
      core, campaign,
      &(struct cv_cobroker_entry){.place = place, .worker = token->worker, .arm = token->arm, .slot = token->slot});
  return CV_OK;
}

/* This co-broker's verifier share exists only here: it is neither kept nor sent. */
static bool is_accepted(const struct cv_cobroker_campaign *campaign, const struct given *given, uint64_t *ret_output) {
  uint64_t verifier[CV_PRIO_MAX_VERIFIER_ELEMENTS] = {0}, output = 0;
  const struct cv_share_pending *pending = given->pending;
  bool good = cv_prio_verify_helper(&campaign->prio, campaign->key, campaign->context.bytes, CV_DIGEST_BYTES,
                                    pending->token.nonce, given->seed, verifier, &output) &&
              cv_prio_accepts(&campaign->prio, pending->verifier, verifier);
  explicit_bzero(verifier, sizeof(verifier));
  *ret_output = output;
  return good;
}

/* Judges a token whose seal has opened, and takes what it takes. */
static enum cv_err weigh(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, const struct given *given,
                         enum cv_share_answer *ret) {
  const struct cv_split_token *token = &given->pending->token;
  struct chunks chunks;
  uint64_t place, output = 0;
  if (!is_free(campaign, token, &place)) {
    *ret = CV_ANSWER_PLACE;
    return CV_OK;
  }
  *ret = CV_ANSWER_WORKER;
  if (!can_pay(core, campaign, token->worker) || !has_room(core, campaign, &given->session->identity, token)) {
    return CV_OK;
  }
  enum cv_err err = touch(core, campaign, token, place, &chunks);
  if (err != CV_OK) {
    return err == CV_ERR_LIMIT ? CV_OK : err;
  }
  bool good = is_accepted(campaign, given, &output);
  *ret = good ? CV_ANSWER_ACCEPTED : CV_ANSWER_PROOF;
  err = good ? count(core, campaign, token, place, &chunks, output) : count_failed(core, campaign, token, &chunks);
  explicit_bzero(&output, sizeof(output));
  return err;
}

static enum cv_err judge(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                         const struct cv_share_pending *pending, enum cv_share_answer *ret) {
  struct given given = {.pending = pending};
  given.session = cv_cobroker_session_find(core, campaign, pending->session, pending->token.worker);
  if (given.session == NULL) {
    *ret = CV_ANSWER_SESSION;
    return CV_OK;
  }
  enum cv_err err = open_seal(core, campaign, &given);
  if (err == CV_ERR_DAMAGED) { /* whose token this is, nobody knows: it takes nothing */
    *ret = CV_ANSWER_PROOF;
    return CV_OK;
  }
  /* Any other failure ends the core: the batch may be half counted, and is judged again after a restart. */
  err = err == CV_OK ? weigh(core, campaign, &given, ret) : CV_ERR_NOMEM;
  explicit_bzero(given.seed, sizeof(given.seed));
  return err;
}

/* ---- a batch ---- */

/* The broker's verifier shares must be elements, as many as the proof has: anything else is no worker's fault. */
static enum cv_err check_verifiers(const struct cv_cobroker_campaign *campaign, const struct cv_share_batch *batch,
                                   struct cv_why *why) {
  for (size_t i = 0; i < batch->tokens; i++) {
    const struct cv_share_pending *pending = &batch->token[i];
    bool good = pending->verifiers == campaign->prio.verifier_elements;
    for (uint32_t j = 0; good && j < pending->verifiers; j++) {
      good = pending->verifier[j] < CV_FIELD_P;
    }
    if (!good) {
      return cv_fail(why, CV_ERR_FORMAT,
                     "campaign %u: the verifier share of token %zu of batch %llu is none; expected %zu field elements",
                     campaign->id, i + 1, (unsigned long long)batch->number, campaign->prio.verifier_elements);
    }
  }
  return CV_OK;
}

static enum cv_err say(struct cv_cobroker *core, const struct cv_cobroker_campaign *campaign, uint64_t number) {
  const struct cv_cobroker_answers *answers = cv_cobroker_answers_of(campaign, number);
  core->said = true;
  return cv_cobroker_say_answers(
      &core->broker->gather,
      &(struct cv_share_answers){
          .campaign = campaign->id, .number = number, .answers = answers->tokens, .answer = answers->answer});
}

/* A batch that is known: the same again gets the same answers. */
static enum cv_err repeat(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                          const struct cv_share_batch *batch) {
  unsigned long long number = batch->number;
  if (batch->number <= campaign->done) {
    cv_cobroker_freeze(core, campaign, "the broker sends batch %llu again, which it said to have booked", number);
    return CV_OK;
  }
  const struct cv_cobroker_answers *answers = cv_cobroker_answers_of(campaign, batch->number);
  struct cv_digest hash = answers->before;
  CV_TRY(cv_chain_batch(&hash, batch, core->config.digest));
  if (!cv_digest_is_same(&hash, &answers->after)) {
    cv_cobroker_freeze(core, campaign, "the broker sends another batch %llu than before", number);
    return CV_OK;
  }
  core->figures.repeated++;
  return say(core, campaign, batch->number);
}

static enum cv_err judge_all(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                             const struct cv_share_batch *batch, uint8_t *answer) {
  for (size_t i = 0; i < batch->tokens; i++) {
    enum cv_share_answer one = CV_ANSWER_NONE;
    CV_TRY(judge(core, campaign, &batch->token[i], &one));
    answer[i] = (uint8_t)one;
    core->figures.answers[one]++;
  }
  core->gathered += batch->tokens;
  core->figures.batches++;
  return CV_OK;
}

static enum cv_err judge_batch(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                               const struct cv_share_batch *batch) {
  struct cv_cobroker_answers answers = {
      .before = campaign->batches_hash, .after = campaign->batches_hash, .tokens = (uint16_t)batch->tokens};
  CV_TRY(cv_chain_batch(&answers.after, batch, core->config.digest));
  answers.answer = malloc(batch->tokens);
  enum cv_err err = answers.answer == NULL ? CV_ERR_NOMEM : judge_all(core, campaign, batch, answers.answer);
  if (err != CV_OK) {
    free(answers.answer);
    return err;
  }
  CV_TRY(cv_cobroker_answers_keep(campaign, &answers));
  campaign->batches++;
  campaign->batches_hash = answers.after;
  cv_cobroker_campaign_mark(core, campaign);
  return say(core, campaign, batch->number);
}

enum cv_err cv_cobroker_batch(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                              const struct cv_share_batch *batch, struct cv_why *why) {
  if (batch->number == 0 || batch->number > campaign->batches + 1) {
    return cv_fail(why, CV_ERR_STATE, "campaign %u: batch %llu; expected at most %llu", campaign->id,
                   (unsigned long long)batch->number, (unsigned long long)campaign->batches + 1);
  }
  if (batch->number <= campaign->batches) {
    return repeat(core, campaign, batch);
  }
  if (batch->tokens == 0 || batch->tokens > CV_BATCH_TOKENS ||
      campaign->undone_tokens + batch->tokens > CV_COBROKER_UNDONE_TOKENS) {
    return cv_fail(why, CV_ERR_LIMIT,
                   "campaign %u: batch %llu has %zu tokens after %llu that are not done; expected 1 to %d, and at most "
                   "%d together",
                   campaign->id, (unsigned long long)batch->number, batch->tokens,
                   (unsigned long long)campaign->undone_tokens, CV_BATCH_TOKENS, CV_COBROKER_UNDONE_TOKENS);
  }
  CV_TRY(check_verifiers(campaign, batch, why));
  return judge_batch(core, campaign, batch);
}
