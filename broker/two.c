/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/two.h"

#include <stdlib.h>
#include <string.h>

#include "broker/payer.h"
#include "broker/places.h"
#include "broker/question.h"
#include "broker/sharing.h"
#include "broker/state.h"
#include "common/base/array.h"
#include "common/prio/field.h"

enum cv_err cv_two_new(const struct cv_spec *spec, const struct cv_broker *broker, struct cv_broker_two **ret) {
  struct cv_broker_two *two = calloc(1, sizeof(*two));
  if (two == NULL) {
    return CV_ERR_NOMEM;
  }
  enum cv_prio_circuit circuit = spec->score_bits == CV_SPLIT_BIT ? CV_PRIO_COUNT : CV_PRIO_SUM;
  two->split.score_bits = spec->score_bits;
  memcpy(two->split.database, broker->config.database, sizeof(two->split.database));
  enum cv_err err = cv_prio_init(&two->prio, circuit, cv_split_maximum(spec->score_bits));
  err = err == CV_OK ? cv_split_spec(spec, broker->config.digest, &two->split.spec) : err;
  if (err != CV_OK) {
    free(two);
    return err;
  }
  *ret = two;
  return CV_OK;
}

void cv_two_free_secrets(struct cv_broker_two *two) {
  if (two == NULL) {
    return;
  }
  explicit_bzero(two->key, sizeof(two->key));
  two->has_key = false;
  cv_docket_fini(&two->docket);
  cv_offers_fini(&two->spent);
  cv_two_drop_plan(two);
  free(two->closing);
  two->closing = NULL;
  two->closings = two->closings_cap = 0;
  two->changed = false;
}

void cv_two_free(struct cv_broker_two *two) {
  cv_two_free_secrets(two);
  free(two);
}

/* ---- the key ---- */

static struct cv_digest digest_of(const struct cv_broker *broker, const uint8_t key[CV_SPLIT_SEED_BYTES]) {
  struct cv_digest digest;
  broker->config.digest(key, CV_SPLIT_SEED_BYTES, "", 0, &digest);
  return digest;
}

static struct cv_digest context_of(const struct cv_broker *broker, const struct cv_broker_campaign *campaign) {
  struct cv_digest context;
  cv_split_context(&campaign->two->split, &broker->config.duo, campaign->id, broker->config.digest, &context);
  return context;
}

bool cv_two_is_ours(const struct cv_broker *broker, const struct cv_broker_campaign *campaign) {
  struct cv_digest context = context_of(broker, campaign);
  return !campaign->two->has_key || cv_digest_is_same(&context, &campaign->two->context);
}

bool cv_two_take_key(const struct cv_broker *broker, struct cv_broker_campaign *campaign,
                     const uint8_t key[CV_SPLIT_SEED_BYTES]) {
  struct cv_broker_two *two = campaign->two;
  struct cv_digest hash = digest_of(broker, key);
  if (two->is_known) {
    return cv_digest_is_same(&hash, &two->split.key) && cv_two_is_ours(broker, campaign);
  }
  two->is_known = two->has_key = two->changed = true;
  two->split.key = hash;
  memcpy(two->key, key, sizeof(two->key));
  two->context = context_of(broker, campaign);
  return true;
}

/* ---- questions ---- */

bool cv_two_may_assign(const struct cv_broker_campaign *campaign) {
  const struct cv_broker_two *two = campaign->two;
  return two == NULL || (two->has_key && two->link.opened && two->docket.count + (uint64_t)two->leased < CV_DOCKET_MAX);
}

bool cv_two_waits(const struct cv_broker_campaign *campaign) {
  const struct cv_broker_two *two = campaign->two;
  return two != NULL && (!two->link.opened || two->docket.count > 0);
}

bool cv_two_leave_place(const struct cv_broker_campaign *campaign, uint64_t place) {
  struct cv_docket_token *token = campaign->two == NULL ? NULL : cv_docket_at_place(&campaign->two->docket, place);
  if (token != NULL) {
    token->has_place = true;
  }
  return token != NULL;
}

bool cv_two_holds_payer(const struct cv_broker_campaign *campaign, uint64_t payer) {
  return campaign->two != NULL && cv_docket_at_payer(&campaign->two->docket, payer) != NULL;
}

bool cv_two_leave_payer(const struct cv_broker_campaign *campaign, uint64_t payer) {
  struct cv_docket_token *token = campaign->two == NULL ? NULL : cv_docket_at_payer(&campaign->two->docket, payer);
  if (token != NULL) {
    token->has_slot = true;
  }
  return token != NULL;
}

bool cv_two_holds_arm(const struct cv_broker_campaign *campaign, uint32_t arm) {
  const struct cv_docket_token *token = campaign->two == NULL ? NULL : campaign->two->docket.by_place;
  while (token != NULL && token->sent.token.arm != arm) {
    token = token->by_place.next;
  }
  return token != NULL;
}

enum cv_err cv_two_spend(struct cv_broker_two *two, uint64_t worker) {
  if (two->spent_count == CV_DOCKET_MAX || cv_offers_has(&two->spent, worker)) {
    return CV_OK;
  }
  two->spent_count++;
  return cv_offers_set(&two->spent, worker);
}

bool cv_two_is_spent(const struct cv_broker_campaign *campaign, uint64_t worker) {
  return campaign->two != NULL && cv_offers_has(&campaign->two->spent, worker);
}

uint64_t cv_two_waiting_micro(const struct cv_broker *broker, uint64_t worker) {
  uint64_t waiting = 0;
  for (const struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    uint32_t tokens = campaign->two == NULL ? 0 : cv_docket_of(&campaign->two->docket, worker);
    for (uint32_t i = 0; i < tokens; i++) { /* at most tokens_per_worker, and sums saturate */
      waiting = cv_ledger_add(waiting, cv_broker_campaign_charge(campaign, 1));
    }
  }
  return waiting;
}

/* ---- plan and closings ---- */

enum cv_err cv_two_keep_plan(struct cv_broker_two *two, const struct cv_plan *plan) {
  struct cv_plan copy;
  CV_TRY(cv_plan_copy(plan, &copy));
  cv_two_drop_plan(two);
  two->plan = copy;
  two->link.plan_sent = false;
  return CV_OK;
}

void cv_two_drop_plan(struct cv_broker_two *two) {
  free(two->plan.want);
  two->plan = (struct cv_plan){0};
}

uint64_t cv_two_closed(const struct cv_broker_campaign *campaign) {
  return campaign->releases + campaign->two->closings;
}

const struct cv_digest *cv_two_hash_at(const struct cv_broker_campaign *campaign, uint64_t number) {
  const struct cv_broker_two *two = campaign->two;
  if (number < campaign->releases || number > cv_two_closed(campaign)) {
    return NULL;
  }
  return number == campaign->releases ? &two->closed_hash : &two->closing[number - campaign->releases - 1].hash;
}

enum cv_err cv_two_cut(struct cv_broker *broker) {
  for (struct cv_broker_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    if (campaign->two != NULL) {
      CV_TRY(cv_docket_cut(&campaign->two->docket, campaign->id, broker->config.digest));
    }
  }
  return CV_OK;
}

enum cv_err cv_two_close(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                         const struct cv_broker_release *row, uint64_t count, bool discard) {
  struct cv_broker_two *two = campaign->two;
  CV_TRY(CV_ARRAY_ROOM(two->closing, two->closings + 1, two->closings_cap));
  struct cv_two_closing closing = {.row = *row, .hash = *cv_two_hash_at(campaign, cv_two_closed(campaign))};
  closing.close = (struct cv_share_close){.campaign = campaign->id,
                                          .number = row->number,
                                          .plan = row->plan,
                                          .plan_hash = campaign->plans_hash,
                                          .chain = campaign->arm[row->arm].chain,
                                          .arm = row->arm,
                                          .count = count,
                                          .discard = discard};
  cv_chain_close(&closing.hash, &closing.close, broker->config.digest);
  two->closing[two->closings++] = closing;
  return CV_OK;
}

struct cv_two_closing cv_two_take_closing(struct cv_broker_campaign *campaign) {
  struct cv_broker_two *two = campaign->two;
  struct cv_two_closing first = two->closing[0];
  two->closed_hash = first.hash;
  two->changed = true;
  memmove(two->closing, two->closing + 1, --two->closings * sizeof(*two->closing));
  return first;
}

/* ---- the stored form ---- */

static void put_digest(const struct cv_digest *digest, struct cv_buf *out) {
  cv_buf_put(out, digest->bytes, sizeof(digest->bytes));
}

static void put_two(const struct cv_broker_two *two, struct cv_buf *out) {
  cv_buf_put(out, two->key, sizeof(two->key));
  put_digest(&two->context, out);
  cv_buf_put_u64(out, two->docket.settled);
  put_digest(&two->docket.settled_hash, out);
  put_digest(&two->closed_hash, out);
  cv_buf_put_u64(out, two->spoiled);
}

static void put_closing(const struct cv_two_closing *closing, struct cv_buf *out) {
  const struct cv_share_close *close = &closing->close;
  const struct cv_broker_release *row = &closing->row;
  cv_buf_put_u64(out, close->plan);
  put_digest(&close->plan_hash, out);
  put_digest(&close->chain, out);
  cv_buf_put_u32(out, close->arm);
  cv_buf_put_u64(out, close->count);
  cv_buf_put_u8(out, close->discard);
  cv_buf_put_u32(out, row->nth);
  cv_buf_put_u64(out, row->tokens);
  cv_buf_put_u64(out, (uint64_t)row->noisy_sum);
  cv_buf_put_u64(out, row->wanted);
  cv_buf_put_u64(out, row->given);
}

/* Opens an operation on one of the campaign's chunks. */
static enum cv_err open_chunk(struct cv_broker_batch *batch, enum cv_op_kind op, uint32_t campaign, enum cv_kind kind,
                              uint64_t number) {
  CV_TRY(cv_broker_batch_open(batch, op, campaign, number));
  batch->op[batch->ops - 1].chunk = kind;
  return CV_OK;
}

static enum cv_err fill_erased(struct cv_broker_campaign *campaign, struct cv_broker_batch *batch) {
  struct cv_broker_two *two = campaign->two;
  while (two->erased_batches < two->docket.settled) {
    CV_TRY(open_chunk(batch, CV_OP_UNCHUNK, campaign->id, CV_CHUNK_PENDING, ++two->erased_batches));
    cv_broker_batch_shut(batch);
  }
  while (two->erased_closings < campaign->releases) {
    CV_TRY(open_chunk(batch, CV_OP_UNCHUNK, campaign->id, CV_CHUNK_CLOSING, ++two->erased_closings));
    cv_broker_batch_shut(batch);
  }
  return CV_OK;
}

enum cv_err cv_two_fill(struct cv_broker_campaign *campaign, struct cv_broker_batch *batch) {
  struct cv_broker_two *two = campaign->two;
  if (two == NULL || campaign->arm == NULL) { /* purged */
    return CV_OK;
  }
  for (struct cv_docket_batch *each = two->docket.first; each != NULL; each = each->next) {
    if (!each->is_stored) {
      CV_TRY(open_chunk(batch, CV_OP_CHUNK, campaign->id, CV_CHUNK_PENDING, each->number));
      cv_docket_batch_put(each, &batch->bytes);
      cv_broker_batch_shut(batch);
      each->is_stored = true;
    }
  }
  for (size_t i = 0; i < two->closings; i++) {
    if (!two->closing[i].is_stored) {
      CV_TRY(open_chunk(batch, CV_OP_CHUNK, campaign->id, CV_CHUNK_CLOSING, two->closing[i].close.number));
      put_closing(&two->closing[i], &batch->bytes);
      cv_broker_batch_shut(batch);
      two->closing[i].is_stored = true;
    }
  }
  CV_TRY(fill_erased(campaign, batch));
  if (two->changed) {
    CV_TRY(open_chunk(batch, CV_OP_CHUNK, campaign->id, CV_CHUNK_TWO, 0));
    put_two(two, &batch->bytes);
    cv_broker_batch_shut(batch);
    two->changed = false;
  }
  return CV_OK;
}

/* ---- reading it back ---- */

static enum cv_err damaged_unless(bool good) {
  return good ? CV_OK : CV_ERR_DAMAGED;
}

static void read_bytes(struct cv_reader *in, uint8_t *to, size_t n) {
  const uint8_t *bytes = cv_read(in, n);
  if (bytes != NULL) {
    memcpy(to, bytes, n);
  }
}

static enum cv_err read_two(struct cv_broker_two *two, struct cv_reader *in) {
  read_bytes(in, two->key, sizeof(two->key));
  read_bytes(in, two->context.bytes, sizeof(two->context.bytes));
  two->docket.settled = cv_read_u64(in);
  read_bytes(in, two->docket.settled_hash.bytes, sizeof(two->docket.settled_hash.bytes));
  read_bytes(in, two->closed_hash.bytes, sizeof(two->closed_hash.bytes));
  two->spoiled = cv_read_u64(in);
  two->has_key = true;
  return damaged_unless(cv_reader_done(in));
}

/* Where a closing with that number belongs among those that were read. */
static size_t find_room(const struct cv_broker_two *two, uint64_t number) {
  size_t at = two->closings;
  while (at > 0 && two->closing[at - 1].close.number > number) {
    at--;
  }
  return at;
}

static enum cv_err read_closing(struct cv_broker_campaign *campaign, uint64_t number, struct cv_reader *in) {
  struct cv_broker_two *two = campaign->two;
  struct cv_two_closing closing = {.is_stored = true};
  struct cv_share_close *close = &closing.close;
  *close = (struct cv_share_close){.campaign = campaign->id, .number = number, .plan = cv_read_u64(in)};
  read_bytes(in, close->plan_hash.bytes, sizeof(close->plan_hash.bytes));
  read_bytes(in, close->chain.bytes, sizeof(close->chain.bytes));
  close->arm = cv_read_u32(in);
  close->count = cv_read_u64(in);
  close->discard = cv_read_u8(in) != 0;
  closing.row =
      (struct cv_broker_release){.number = number, .plan = close->plan, .arm = close->arm, .nth = cv_read_u32(in)};
  closing.row.tokens = cv_read_u64(in);
  closing.row.noisy_sum = (int64_t)cv_read_u64(in);
  closing.row.wanted = cv_read_u64(in);
  closing.row.given = cv_read_u64(in);
  bool fits = closing.row.arm < campaign->spec.arms && closing.row.nth <= campaign->privacy.law.horizon &&
              (uint64_t)closing.row.noisy_sum < CV_FIELD_P && close->discard == (closing.row.nth == 0);
  CV_TRY(damaged_unless(cv_reader_done(in) && fits));
  CV_TRY(CV_ARRAY_ROOM(two->closing, two->closings + 1, two->closings_cap));
  size_t at = find_room(two, number);
  memmove(two->closing + at + 1, two->closing + at, (two->closings++ - at) * sizeof(*two->closing));
  two->closing[at] = closing;
  return CV_OK;
}

enum cv_err cv_two_restore(struct cv_broker_campaign *campaign, enum cv_kind kind, uint64_t number,
                           struct cv_reader *in) {
  CV_TRY(damaged_unless(campaign->two != NULL));
  switch (kind) {
    case CV_CHUNK_TWO:
      return number == 0 ? read_two(campaign->two, in) : CV_ERR_DAMAGED;
    case CV_CHUNK_PENDING:
      return cv_docket_batch_read(&campaign->two->docket, number, in);
    default:
      return read_closing(campaign, number, in);
  }
}

struct settling {
  struct cv_broker *broker;
  struct cv_broker_campaign *campaign;
};

/* The place and slot of a token that was read: of an open epoch, and free. */
static enum cv_err find_bits(void *data, struct cv_docket_token *token) {
  const struct settling *settling = data;
  struct cv_broker_campaign *campaign = settling->campaign;
  const struct cv_split_token *sent = &token->sent.token;
  CV_TRY(damaged_unless(sent->arm < campaign->spec.arms && sent->slot < campaign->spec.tokens_per_worker &&
                        sent->worker < CV_WORKER_ID_END && token->output < CV_FIELD_P &&
                        token->sent.verifiers == campaign->two->prio.verifier_elements));
  const struct cv_arm *arm = &campaign->arm[sent->arm];
  CV_TRY(damaged_unless(arm->plan != 0 && arm->plan == sent->plan && sent->place >= arm->first &&
                        sent->place - arm->first < arm->want));
  token->position = (uint32_t)(sent->place - arm->first);
  token->place = cv_place_bit(arm, token->position);
  token->payer = cv_broker_campaign_payer_bit(campaign, sent->worker, sent->slot);
  CV_TRY(damaged_unless(!cv_chunks_bit(&campaign->places, token->place) &&
                        !cv_chunks_bit(&campaign->payers, token->payer) &&
                        (campaign->answered.questions == 0 || token->question < campaign->answered.questions) &&
                        cv_broker_question_is_new(campaign, sent->worker, token->question)));
  CV_TRY(cv_broker_question_begin(campaign, sent->worker, token->question));
  /* As when it arrived: the slot is not offered, and counting the token cannot fail. */
  CV_TRY(cv_offers_set(&campaign->offered, token->payer));
  token->has_slot = true;
  return cv_sharing_prepare(settling->broker, campaign, token);
}

static enum cv_err settle_closings(const struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  struct cv_broker_two *two = campaign->two;
  struct cv_digest hash = two->closed_hash;
  for (size_t i = 0; i < two->closings; i++) {
    struct cv_two_closing *closing = &two->closing[i];
    /* Only the last plan's arms are closed and not yet released. */
    CV_TRY(damaged_unless(closing->close.number == campaign->releases + i + 1 &&
                          closing->close.plan == campaign->plans &&
                          cv_digest_is_same(&closing->close.plan_hash, &campaign->plans_hash) &&
                          campaign->arm[closing->row.arm].plan == 0));
    cv_chain_close(&hash, &closing->close, broker->config.digest);
    closing->hash = hash;
  }
  return CV_OK;
}

enum cv_err cv_two_settle(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  struct cv_broker_two *two = campaign->two;
  struct settling settling = {.broker = broker, .campaign = campaign};
  CV_TRY(damaged_unless(two->has_key == two->is_known &&
                        (two->has_key || (campaign->plans == 0 && two->docket.first == NULL))));
  struct cv_digest hash = two->has_key ? digest_of(broker, two->key) : two->split.key;
  CV_TRY(damaged_unless(cv_digest_is_same(&hash, &two->split.key)));
  two->erased_batches = two->docket.settled;
  two->erased_closings = campaign->releases;
  CV_TRY(settle_closings(broker, campaign));
  return cv_docket_settle(&two->docket, campaign->id, broker->config.digest, find_bits, &settling);
}
