/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/docket.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

/* How many tokens of one worker wait. */
struct cv_docket_worker {
  uint64_t worker;
  uint32_t count;
  UT_hash_handle hh;
};

static void free_token(struct cv_docket_token *token) {
  if (token != NULL) {
    explicit_bzero(token, sizeof(*token));
    free(token);
  }
}

static void free_batch(struct cv_docket_batch *batch) {
  for (uint32_t i = 0; i < batch->tokens; i++) {
    free_token(batch->token[i]);
  }
  free(batch->token);
  free(batch);
}

void cv_docket_fini(struct cv_docket *docket) {
  HASH_CLEAR(by_place, docket->by_place);
  HASH_CLEAR(by_payer, docket->by_payer);
  CV_TABLE_DRAIN(docket->workers, free);
  for (uint32_t i = 0; i < docket->fresh_count; i++) {
    free_token(docket->fresh[i]);
  }
  free(docket->fresh);
  for (struct cv_docket_batch *batch = docket->first, *next; batch != NULL; batch = next) {
    next = batch->next;
    free_batch(batch);
  }
  *docket = (struct cv_docket){0};
}

/* ---- who holds what ---- */

struct cv_docket_token *cv_docket_at_place(const struct cv_docket *docket, uint64_t place) {
  struct cv_docket_token *token;
  HASH_FIND(by_place, docket->by_place, &place, sizeof(place), token);
  return token;
}

struct cv_docket_token *cv_docket_at_payer(const struct cv_docket *docket, uint64_t payer) {
  struct cv_docket_token *token;
  HASH_FIND(by_payer, docket->by_payer, &payer, sizeof(payer), token);
  return token;
}

static struct cv_docket_worker *find_worker(const struct cv_docket *docket, uint64_t worker) {
  struct cv_docket_worker *found;
  HASH_FIND(hh, docket->workers, &worker, sizeof(worker), found);
  return found;
}

uint32_t cv_docket_of(const struct cv_docket *docket, uint64_t worker) {
  const struct cv_docket_worker *found = find_worker(docket, worker);
  return found == NULL ? 0 : found->count;
}

static enum cv_err count_worker(struct cv_docket *docket, uint64_t worker) {
  struct cv_docket_worker *found = find_worker(docket, worker);
  if (found == NULL) {
    found = calloc(1, sizeof(*found));
    if (found == NULL) {
      return CV_ERR_NOMEM;
    }
    found->worker = worker;
    if (CV_TABLE_ADD(docket->workers, worker, found) != CV_OK) {
      free(found);
      return CV_ERR_NOMEM;
    }
  }
  found->count++;
  return CV_OK;
}

static void uncount_worker(struct cv_docket *docket, uint64_t worker) {
  struct cv_docket_worker *found = find_worker(docket, worker);
  if (--found->count == 0) {
    HASH_DEL(docket->workers, found);
    free(found);
  }
}

/* Lists the token under its place, slot and worker. Without memory it is listed nowhere. */
static enum cv_err list(struct cv_docket *docket, struct cv_docket_token *token) {
  CV_TRY(count_worker(docket, token->sent.token.worker));
  HASH_ADD(by_place, docket->by_place, place, sizeof(token->place), token);
  if (token->by_place.tbl != NULL) {
    HASH_ADD(by_payer, docket->by_payer, payer, sizeof(token->payer), token);
    if (token->by_payer.tbl != NULL) {
      docket->count++;
      return CV_OK;
    }
    HASH_DELETE(by_place, docket->by_place, token);
  }
  uncount_worker(docket, token->sent.token.worker);
  return CV_ERR_NOMEM;
}

void cv_docket_release(struct cv_docket *docket, struct cv_docket_token *token) {
  HASH_DELETE(by_place, docket->by_place, token);
  HASH_DELETE(by_payer, docket->by_payer, token);
  uncount_worker(docket, token->sent.token.worker);
  docket->count--;
}

enum cv_err cv_docket_add(struct cv_docket *docket, const struct cv_docket_token *token) {
  CV_REQUIRE(cv_docket_at_place(docket, token->place) == NULL && cv_docket_at_payer(docket, token->payer) == NULL);
  CV_TRY(CV_ARRAY_ROOM(docket->fresh, (size_t)docket->fresh_count + 1, docket->fresh_cap));
  struct cv_docket_token *copy = malloc(sizeof(*copy));
  if (copy == NULL) {
    return CV_ERR_NOMEM;
  }
  *copy = *token;
  if (list(docket, copy) != CV_OK) {
    free_token(copy);
    return CV_ERR_NOMEM;
  }
  docket->fresh[docket->fresh_count++] = copy;
  return CV_OK;
}

void cv_docket_forget(struct cv_docket *docket, const struct cv_broker_conn *conn) {
  for (struct cv_docket_token *token = docket->by_place; token != NULL; token = token->by_place.next) {
    token->conn = token->conn == conn ? NULL : token->conn;
  }
}

/* ---- batches ---- */

static struct cv_docket_batch *batch_new(uint64_t number, uint32_t tokens) {
  struct cv_docket_batch *batch = calloc(1, sizeof(*batch));
  struct cv_docket_token **token = calloc(tokens, sizeof(struct cv_docket_token *));
  if (batch == NULL || token == NULL) {
    free(batch);
    free(token);
    return NULL;
  }
  *batch = (struct cv_docket_batch){.number = number, .token = token};
  return batch;
}

struct cv_share_batch cv_docket_batch_share(const struct cv_docket_batch *batch, uint32_t campaign,
                                            struct cv_share_pending *room) {
  for (uint32_t i = 0; i < batch->tokens; i++) {
    room[i] = batch->token[i]->sent;
  }
  return (struct cv_share_batch){.campaign = campaign, .number = batch->number, .tokens = batch->tokens, .token = room};
}

/* Continues the chain from `before`. */
static enum cv_err chain(struct cv_docket_batch *batch, const struct cv_digest *before, uint32_t campaign,
                         cv_digest_fn *digest) {
  struct cv_share_pending *room = calloc(batch->tokens, sizeof(*room));
  if (room == NULL) {
    return CV_ERR_NOMEM;
  }
  const struct cv_share_batch share = cv_docket_batch_share(batch, campaign, room);
  batch->hash = *before;
  enum cv_err err = cv_chain_batch(&batch->hash, &share, digest);
  free(room);
  return err;
}

/* Where the next batch is linked; the number and hash of the batch before it. */
static struct cv_docket_batch **end_of(struct cv_docket *docket, uint64_t *ret_number,
                                       const struct cv_digest **ret_hash) {
  struct cv_docket_batch **at = &docket->first;
  *ret_number = docket->settled;
  *ret_hash = &docket->settled_hash;
  for (; *at != NULL; at = &(*at)->next) {
    *ret_number = (*at)->number;
    *ret_hash = &(*at)->hash;
  }
  return at;
}

enum cv_err cv_docket_cut(struct cv_docket *docket, uint32_t campaign, cv_digest_fn *digest) {
  for (uint32_t done = 0; done < docket->fresh_count;) {
    uint64_t number;
    const struct cv_digest *before;
    uint32_t left = docket->fresh_count - done, tokens = left < CV_BATCH_TOKENS ? left : CV_BATCH_TOKENS;
    struct cv_docket_batch **at = end_of(docket, &number, &before);
    struct cv_docket_batch *batch = batch_new(number + 1, tokens);
    if (batch == NULL) {
      return CV_ERR_NOMEM; /* ends the core */
    }
    memcpy(batch->token, docket->fresh + done, tokens * sizeof(struct cv_docket_token *));
    batch->tokens = tokens;
    memset(docket->fresh + done, 0, tokens * sizeof(struct cv_docket_token *));
    *at = batch;
    done += tokens;
    CV_TRY(chain(batch, before, campaign, digest));
  }
  docket->fresh_count = 0;
  return CV_OK;
}

uint64_t cv_docket_last(const struct cv_docket *docket) {
  uint64_t number = docket->settled;
  for (const struct cv_docket_batch *batch = docket->first; batch != NULL; batch = batch->next) {
    number = batch->number;
  }
  return number;
}

struct cv_docket_batch *cv_docket_find(const struct cv_docket *docket, uint64_t number) {
  struct cv_docket_batch *batch = docket->first;
  while (batch != NULL && batch->number != number) {
    batch = batch->next;
  }
  return batch;
}

const struct cv_digest *cv_docket_hash_at(const struct cv_docket *docket, uint64_t number) {
  const struct cv_docket_batch *batch = cv_docket_find(docket, number);
  return batch != NULL ? &batch->hash : number == docket->settled ? &docket->settled_hash : NULL;
}

void cv_docket_drop_first(struct cv_docket *docket) {
  struct cv_docket_batch *batch = docket->first;
  docket->settled = batch->number;
  docket->settled_hash = batch->hash;
  docket->first = batch->next;
  free_batch(batch);
}

/* ---- the stored form ---- */

static void put_token(const struct cv_docket_token *token, struct cv_buf *out) {
  const struct cv_share_pending *sent = &token->sent;
  cv_buf_put_u64(out, sent->token.plan);
  cv_buf_put_u32(out, sent->token.arm);
  cv_buf_put_u64(out, sent->token.place);
  cv_buf_put_u64(out, sent->token.worker);
  cv_buf_put_u32(out, sent->token.slot);
  cv_buf_put(out, sent->token.nonce, sizeof(sent->token.nonce));
  cv_buf_put(out, sent->session, sizeof(sent->session));
  cv_buf_put_u64(out, sent->counter);
  cv_buf_put(out, sent->sealed, sizeof(sent->sealed));
  cv_buf_put_u32(out, sent->verifiers);
  for (uint32_t i = 0; i < sent->verifiers && i < CV_SPLIT_VERIFIERS_MOST; i++) {
    cv_buf_put_u64(out, sent->verifier[i]);
  }
  cv_buf_put_u64(out, token->output);
  cv_buf_put_u64(out, token->question);
}

void cv_docket_batch_put(const struct cv_docket_batch *batch, struct cv_buf *out) {
  cv_buf_put_u32(out, batch->tokens);
  for (uint32_t i = 0; i < batch->tokens; i++) {
    put_token(batch->token[i], out);
  }
}

static void read_bytes(struct cv_reader *in, uint8_t *to, size_t n) {
  const uint8_t *bytes = cv_read(in, n);
  if (bytes != NULL) {
    memcpy(to, bytes, n);
  }
}

static enum cv_err read_token(struct cv_reader *in, struct cv_docket_token **ret) {
  struct cv_docket_token *token = calloc(1, sizeof(*token));
  if (token == NULL) {
    return CV_ERR_NOMEM;
  }
  struct cv_share_pending *sent = &token->sent;
  sent->token.plan = cv_read_u64(in);
  sent->token.arm = cv_read_u32(in);
  sent->token.place = cv_read_u64(in);
  sent->token.worker = cv_read_u64(in);
  sent->token.slot = cv_read_u32(in);
  read_bytes(in, sent->token.nonce, sizeof(sent->token.nonce));
  read_bytes(in, sent->session, sizeof(sent->session));
  sent->counter = cv_read_u64(in);
  read_bytes(in, sent->sealed, sizeof(sent->sealed));
  sent->verifiers = cv_read_u32(in);
  in->failed = in->failed || sent->verifiers == 0 || sent->verifiers > CV_SPLIT_VERIFIERS_MOST;
  for (uint32_t i = 0; !in->failed && i < sent->verifiers; i++) {
    sent->verifier[i] = cv_read_u64(in);
  }
  token->output = cv_read_u64(in);
  token->question = cv_read_u64(in);
  if (in->failed) {
    free_token(token);
    return CV_ERR_DAMAGED;
  }
  *ret = token;
  return CV_OK;
}

enum cv_err cv_docket_batch_read(struct cv_docket *docket, uint64_t number, struct cv_reader *in) {
  uint32_t tokens = cv_read_u32(in);
  struct cv_docket_batch **at = &docket->first;
  if (tokens == 0 || tokens > CV_BATCH_TOKENS) {
    return CV_ERR_DAMAGED;
  }
  while (*at != NULL && (*at)->number < number) {
    at = &(*at)->next;
  }
  if (*at != NULL && (*at)->number == number) {
    return CV_ERR_DAMAGED;
  }
  struct cv_docket_batch *batch = batch_new(number, tokens);
  if (batch == NULL) {
    return CV_ERR_NOMEM;
  }
  batch->is_stored = true;
  batch->next = *at;
  *at = batch;
  for (; batch->tokens < tokens; batch->tokens++) {
    CV_TRY(read_token(in, &batch->token[batch->tokens]));
  }
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}

static bool is_held(const struct cv_docket *docket, const struct cv_docket_token *token) {
  return cv_docket_at_place(docket, token->place) != NULL || cv_docket_at_payer(docket, token->payer) != NULL;
}

enum cv_err cv_docket_settle(struct cv_docket *docket, uint32_t campaign, cv_digest_fn *digest,
                             enum cv_err (*bits)(void *data, struct cv_docket_token *token), void *data) {
  uint64_t number = docket->settled;
  const struct cv_digest *before = &docket->settled_hash;
  for (struct cv_docket_batch *batch = docket->first; batch != NULL; batch = batch->next) {
    if (batch->number != ++number) {
      return CV_ERR_DAMAGED;
    }
    for (uint32_t i = 0; i < batch->tokens; i++) {
      CV_TRY(bits(data, batch->token[i]));
      if (is_held(docket, batch->token[i])) {
        return CV_ERR_DAMAGED;
      }
      CV_TRY(list(docket, batch->token[i]));
    }
    CV_TRY(chain(batch, before, campaign, digest));
    before = &batch->hash;
  }
  return CV_OK;
}
