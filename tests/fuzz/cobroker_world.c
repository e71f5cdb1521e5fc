/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/cobroker_world.h"

#include <string.h>

#include "cobroker/state.h"
#include "common/base/grid.h"
#include "common/prio/field.h"
#include "common/prio/verify.h"
#include "proto/codec/chain.h"
#include "tests/fuzz/fuzz.h"

enum { UNTIL_MS = 1060000 /* when the certificate of the last gateway ends; the world begins a minute before */ };

const struct cv_identity world_identity[IDENTITIES] = {
    {.role = CV_ROLE_BROKER, .name = "b", .key = {{0xb}}},
    {.role = CV_ROLE_GATEWAY, .name = "1-20", .first = 1, .last = 20, .serial = "1"},
    {.role = CV_ROLE_GATEWAY, .name = "21-40", .first = 21, .last = 40, .serial = "2"},
    {.role = CV_ROLE_WORKER, .name = "50", .first = 50, .last = 50, .serial = "3"},
    {.role = CV_ROLE_GATEWAY, .name = "15-25", .first = 15, .last = 25, .serial = "4"},
    {.role = CV_ROLE_GATEWAY, .name = "41-49", .first = 41, .last = 49, .serial = "5", .until_ms = UNTIL_MS},
    {.role = CV_ROLE_BROKER, .name = "other", .key = {{0xd}}},
};

/* ---- what the core is given ---- */

static enum cv_err export_key(void *data, void *shell, const struct cv_digest *context,
                              uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  const struct peer *peer = shell;
  struct cv_digest key;
  (void)data;
  cv_sha256(&peer->serial, sizeof(peer->serial), context->bytes, CV_DIGEST_BYTES, &key);
  memcpy(ret, key.bytes, CV_SPLIT_SEED_BYTES);
  return CV_OK;
}

/* Replaces AES-GCM: a keystream, and a tag over all that is bound. */
static void keystream(const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter, struct cv_digest *ret) {
  cv_sha256(key, CV_SPLIT_SEED_BYTES, &counter, sizeof(counter), ret);
}

static void tag(const struct cv_digest *stream, const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                const uint8_t seed[CV_SPLIT_SEED_BYTES], struct cv_digest *ret) {
  cv_sha256(stream->bytes, CV_DIGEST_BYTES, seed, CV_SPLIT_SEED_BYTES, ret);
  cv_digest_extend(ret, bound, CV_SPLIT_BOUND_BYTES, cv_sha256);
}

void world_seal(const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter, const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                const uint8_t seed[CV_SPLIT_SEED_BYTES], uint8_t ret[CV_SPLIT_SEALED_BYTES]) {
  struct cv_digest stream, end;
  keystream(key, counter, &stream);
  tag(&stream, bound, seed, &end);
  for (size_t i = 0; i < CV_SPLIT_SEED_BYTES; i++) {
    ret[i] = seed[i] ^ stream.bytes[i];
  }
  memcpy(ret + CV_SPLIT_SEED_BYTES, end.bytes, CV_SPLIT_SEALED_BYTES - CV_SPLIT_SEED_BYTES);
}

static enum cv_err open_seed(void *data, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                             const uint8_t bound[CV_SPLIT_BOUND_BYTES], const uint8_t sealed[CV_SPLIT_SEALED_BYTES],
                             uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  struct cv_digest stream;
  uint8_t again[CV_SPLIT_SEALED_BYTES];
  (void)data;
  keystream(key, counter, &stream);
  for (size_t i = 0; i < CV_SPLIT_SEED_BYTES; i++) {
    ret[i] = sealed[i] ^ stream.bytes[i];
  }
  world_seal(key, counter, bound, ret, again);
  return memcmp(again, sealed, sizeof(again)) == 0 ? CV_OK : CV_ERR_DAMAGED;
}

static void note(void *data, const struct cv_note *note) {
  (void)data;
  CV_REQUIRE(note->peer == NULL || note->peer[0] != '\0');
  fuzz_line(note->text);
}

/* ---- the process ---- */

void world_begin(struct world *world, uint8_t settings) {
  static const uint64_t journal_bytes[] = {0, 1, 200, 3000};
  memset(world, 0, sizeof(*world));
  world->now_ms = 1000;
  world->wall_ms = UNTIL_MS - 60000;
  cv_rng_seeded_init(&world->noise, 1, CV_RNG_NOISE_COBROKER, 0, 0);
  cv_rng_seeded_init(&world->key, 2, 0, 0, 0);
  world->config = (struct cv_cobroker_config){
      .broker = "b",
      .duo = {.broker = {{0xb}}, .cobroker = {{0xc}}},
      .limits = {.epsilon_micro = 1000000,
                 .worker_epsilon_micro = (settings & 4) != 0 ? 900000 : 5000000,
                 .release_tokens = 1,
                 .arms = 64,
                 .campaigns = (settings & 8) != 0 ? 1 : CAMPAIGNS,
                 .kept = (settings & 16) != 0 ? 1 : 4,
                 .tokens = 1000000,
                 .chunks = 64},
      .sessions = (settings & 32) != 0 ? 2 : 8,
      .digest = cv_sha256,
      .noise = &world->noise.rng,
      .key = &world->key.rng,
      .journal_bytes = journal_bytes[settings & 3],
      .export_key = export_key,
      .open_seed = open_seed,
      .note = note,
  };
  CV_REQUIRE(world_restart(world));
}

void world_end(struct world *world) {
  cv_cobroker_free(world->core);
  cv_cobroker_batch_fini(&world->batch);
  disk_fini(&world->disk);
  seen_fini(&world->places);
  seen_fini(&world->slots);
  seen_fini(&world->questions);
  for (size_t i = 0; i < CAMPAIGNS; i++) {
    cv_spec_fini(&world->deal[i].spec);
  }
}

static void untold(struct world *world) {
  for (size_t i = 0; i < CAMPAIGNS; i++) {
    world->deal[i].told = false;
  }
}

bool world_restart(struct world *world) {
  cv_cobroker_free(world->core);
  CV_REQUIRE(cv_cobroker_new(&world->config, &world->core) == CV_OK);
  memset(world->peer, 0, sizeof(world->peer));
  untold(world);
  world->in_flight = false;
  if (disk_load(&world->disk, world->core, world->now_ms, world->wall_ms) != CV_OK) {
    CV_REQUIRE(world->damaged);
    return false;
  }
  return true;
}

struct peer *world_broker(struct world *world) {
  for (struct peer *peer = world->peer; peer < world->peer + PEERS; peer++) {
    if (peer->conn != NULL && world->core->broker == peer->conn) {
      return peer;
    }
  }
  return NULL;
}

void world_join(struct world *world, unsigned who) {
  struct cv_why why = {.text = ""};
  for (struct peer *peer = world->peer; peer < world->peer + PEERS; peer++) {
    if (peer->conn == NULL) {
      struct cv_cobroker_conn *conn;
      *peer = (struct peer){.who = who, .serial = ++world->serial};
      if (cv_cobroker_join(world->core, &world_identity[who], peer, &conn, &why) == CV_OK) {
        CV_REQUIRE(who != STRANGER);
        peer->conn = conn;
        if (who == BROKER) {
          untold(world);
        }
      } else {
        fuzz_line(why.text);
      }
      return;
    }
  }
}

void world_leave(struct world *world, struct peer *peer) {
  if (peer == world_broker(world)) {
    untold(world);
  }
  cv_cobroker_leave(world->core, peer->conn);
  peer->conn = NULL;
}

/* The certificate with this serial number is revoked. */
static bool is_revoked(const void *data, const char *serial) {
  return strcmp(data, serial) == 0;
}

void world_revoke(struct world *world, unsigned who) {
  const struct cv_cobroker_revoked revoked = {.has = is_revoked, .data = world_identity[who].serial};
  cv_cobroker_revoke(world->core, &revoked);
  for (size_t i = 0; i < SESSIONS; i++) {
    world->session[i].revoked = world->session[i].revoked || world->session[i].who == who;
  }
}

void world_renew(struct world *world, uint8_t key) {
  struct cv_digest *own = &world->config.duo.cobroker;
  const struct cv_digest other = {{0xc, key}};
  bool is_other = !cv_digest_is_same(&other, own);
  *own = other;
  CV_REQUIRE(cv_cobroker_renew(world->core, own) == is_other);
  for (size_t i = 0; is_other && i < CAMPAIGNS; i++) {
    world->deal[i].rekeyed = world->deal[i].rekeyed || world->deal[i].described;
  }
}

void world_answered(struct world *world, struct peer *peer, enum cv_err err, const struct cv_why *why) {
  if (err != CV_OK) {
    CV_REQUIRE(err != CV_ERR_NOMEM);
    fuzz_line(why->text);
    world_leave(world, peer);
  }
}

/* ---- what the core says to the broker ---- */

static struct deal *deal_of(struct world *world, uint64_t campaign) {
  return campaign >= 1 && campaign <= CAMPAIGNS ? &world->deal[campaign - 1] : NULL;
}

/* A number has one verify key, for ever. */
static void hear_opened(struct world *world, const struct cv_share_opened *opened) {
  struct deal *deal = deal_of(world, opened->position.campaign);
  struct cv_split split = {0};
  if (opened->refused != NULL) {
    fuzz_line(opened->refused);
    return;
  }
  if (deal == NULL || world->damaged) {
    return;
  }
  CV_REQUIRE(!deal->over && (!deal->has_key || memcmp(deal->key, opened->key, sizeof(deal->key)) == 0));
  deal->told = true;
  if (!deal->has_key && deal->described) {
    deal->has_key = true;
    memcpy(deal->key, opened->key, sizeof(deal->key));
    split.score_bits = deal->spec.score_bits;
    memcpy(split.database, deal->database, sizeof(split.database));
    CV_REQUIRE(cv_split_spec(&deal->spec, cv_sha256, &split.spec) == CV_OK);
    cv_sha256(deal->key, sizeof(deal->key), "", 0, &split.key);
    cv_split_context(&split, &world->config.duo, opened->position.campaign, cv_sha256, &deal->context);
  }
  CV_REQUIRE(deal->lied || (opened->position.batches <= deal->batches && opened->position.batches >= deal->booked));
  CV_REQUIRE(deal->lied || (opened->position.closings <= deal->closings && opened->position.plans >= deal->plans &&
                            opened->position.plans <= deal->plans + deal->asks));
}

static void hear_plan(struct world *world, const struct cv_share_number *opened) {
  struct deal *deal = deal_of(world, opened->campaign);
  if (deal == NULL || world->damaged || !deal->asks || opened->number != deal->asked.number) {
    CV_REQUIRE(world->damaged || deal == NULL || deal->lied || opened->number == deal->plans);
    return;
  }
  CV_REQUIRE(!deal->over);
  deal->asks = false;
  deal->plans++;
  CV_REQUIRE(cv_chain_plan(&deal->plans_hash, &deal->asked, cv_sha256) == CV_OK);
  for (uint32_t i = 0; i < deal->asked.wants; i++) {
    struct arm *arm = &deal->arm[deal->want[i].arm];
    arm->want = deal->want[i].tokens;
    arm->chain = deal->plans_hash;
  }
}

static void hear_refused(struct world *world, const struct cv_share_refused *refused) {
  struct deal *deal = deal_of(world, refused->campaign);
  fuzz_line(refused->why);
  CV_REQUIRE(refused->reason != CV_END_NONE && refused->reason < CV_END_COUNT);
  if (deal != NULL && deal->asks && refused->plan == deal->asked.number) {
    deal->asks = false;
  }
}

static void book(struct world *world, struct deal *deal, const struct part *part, enum cv_share_answer answer) {
  const struct cv_split_token *token = &part->sent.token;
  uint64_t campaign = (uint64_t)(deal - world->deal) + 1, scale = cv_split_scale(deal->spec.score_bits);
  struct arm *arm = &deal->arm[part->arm];
  if (answer != CV_ANSWER_ACCEPTED) {
    arm->place[part->place] = arm->place[part->place] == UNDERWAY ? FREE : arm->place[part->place];
    return;
  }
  CV_REQUIRE(!part->bent && token->worker >= part->first && token->worker <= part->last);
  CV_REQUIRE(token->place >= arm->first && token->place < arm->first + arm->want);
  CV_REQUIRE(seen_add(&world->places, campaign << 56 | (uint64_t)(token->arm + 1) << 40 | token->place));
  CV_REQUIRE(seen_add(&world->slots, campaign << 56 | token->worker << 16 | token->slot));
  CV_REQUIRE(deal->spec.repeat || seen_add(&world->questions, campaign << 56 | token->worker << 16 | token->arm));
  arm->place[token->place] = BOOKED;
  arm->share = cv_field_add(arm->share, cv_field_mul(part->output, scale));
  arm->exact += part->score * scale;
  arm->filled++;
  cv_split_chain(&arm->chain, token, cv_sha256);
}

/* The same batch gets the same answers. A token counts if its session's gateway sealed it as it is, for a place of an
 * open epoch, and neither place nor slot counted before, nor its worker's answer to that question. */
static void hear_answers(struct world *world, const struct cv_share_answers *answers) {
  struct deal *deal = deal_of(world, answers->campaign);
  for (size_t i = 0; i < answers->answers; i++) {
    CV_REQUIRE(answers->answer[i] > CV_ANSWER_NONE && answers->answer[i] < CV_ANSWERS);
  }
  if (deal == NULL || world->damaged) {
    return;
  }
  CV_REQUIRE(!deal->over);
  if (answers->number > deal->batches) { /* only a frame of raw bytes has such a batch */
    CV_REQUIRE(deal->lied);
    return;
  }
  struct sent *sent = &deal->sent[answers->number];
  CV_REQUIRE(answers->answers == sent->parts || deal->lied);
  if (sent->answered || answers->answers != sent->parts) {
    CV_REQUIRE(answers->answers != sent->parts || memcmp(sent->answer, answers->answer, sent->parts) == 0);
    return;
  }
  CV_REQUIRE(answers->number == deal->booked + 1);
  sent->answered = true;
  deal->booked = answers->number;
  memcpy(sent->answer, answers->answer, sent->parts);
  for (size_t i = 0; i < sent->parts; i++) {
    book(world, deal, &sent->part[i], (enum cv_share_answer)answers->answer[i]);
  }
}

/* Whether both brokers' shares of the sum differ from the exact one by what can be noise. */
static bool is_noise(uint64_t half, uint64_t share, uint64_t exact) {
  int64_t lifted;
  if (!cv_field_lift(cv_field_add(half, share), &lifted)) {
    return false;
  }
  lifted -= (int64_t)exact;
  return lifted < INT64_C(1) << 40 && lifted > -(INT64_C(1) << 40);
}

/* A half is of a closing that an honest broker has committed, over the tokens that it has booked; always the same. */
static void hear_closed(struct world *world, const struct cv_share_closed *closed) {
  struct deal *deal = deal_of(world, closed->campaign);
  if (deal == NULL || world->damaged) {
    return;
  }
  CV_REQUIRE(!deal->over && closed->half < CV_FIELD_P && closed->number >= 1 && closed->number <= deal->closings);
  struct closing *closing = &deal->closing[closed->number];
  CV_REQUIRE(!closing->has_half || closing->half == closed->half);
  closing->has_half = true;
  closing->half = closed->half;
  if (closing->sent.discard) {
    CV_REQUIRE(closed->half == 0);
    return;
  }
  uint64_t share = cv_field_add(closing->share[0], closing->share[1]), exact = closing->exact[0] + closing->exact[1];
  CV_REQUIRE(is_noise(closed->half, share, exact) || is_noise(closed->half, closing->share[0], closing->exact[0]) ||
             is_noise(closed->half, closing->share[1], closing->exact[1]));
}

/* A campaign whose broker is honest never freezes, unless the co-broker's key is another one. */
static void hear_ended(struct world *world, const struct cv_share_end *ended) {
  struct deal *deal = deal_of(world, ended->campaign);
  CV_REQUIRE(ended->reason != CV_END_NONE && ended->reason < CV_END_COUNT);
  if (ended->why[0] != '\0') {
    fuzz_line(ended->why);
  }
  if (deal == NULL || world->damaged) {
    return;
  }
  CV_REQUIRE(deal->lied || deal->rekeyed || ended->reason == deal->said ||
             (ended->reason == CV_END_DEADLINE && deal->deadline_ms != 0));
  /* A campaign of which the broker says that it is over before it opens it has not ended. */
  bool was_open = deal->has_key && strcmp(ended->why, "the campaign was not open") != 0;
  deal->over = deal->over || was_open;
}

static void hear_broker(struct world *world, const struct cv_share_frame *frame) {
  CV_REQUIRE(frame->sessions + frame->turned == 0);
  for (size_t i = 0; i < frame->opened; i++) {
    hear_opened(world, &frame->open_answer[i]);
  }
  for (size_t i = 0; i < frame->plans_opened; i++) {
    hear_plan(world, &frame->plan_opened[i]);
  }
  for (size_t i = 0; i < frame->plans_refused; i++) {
    hear_refused(world, &frame->plan_refused[i]);
  }
  for (size_t i = 0; i < frame->answers; i++) {
    hear_answers(world, &frame->answer[i]);
  }
  for (size_t i = 0; i < frame->closed; i++) {
    hear_closed(world, &frame->half[i]);
  }
  for (size_t i = 0; i < frame->ended; i++) {
    hear_ended(world, &frame->end[i]);
  }
}

/* ---- what it says to workers ---- */

static void hear_session(struct world *world, struct peer *peer, const struct cv_share_session *heard) {
  const struct cv_terms *terms = &heard->terms;
  const struct deal *deal = deal_of(world, terms->id);
  const struct cv_identity *identity = &world_identity[peer->who];
  struct cv_digest context;
  cv_split_context(&terms->split, &world->config.duo, terms->id, cv_sha256, &context);
  bool knows = deal != NULL && deal->has_key && !deal->lied && !deal->rekeyed && !world->damaged;
  CV_REQUIRE(!knows || (!deal->over && cv_digest_is_same(&context, &deal->context)));
  for (size_t i = 0; i < SESSIONS; i++) {
    if (memcmp(world->session[i].id, heard->id, sizeof(heard->id)) == 0) {
      CV_REQUIRE(!world->session[i].revoked);
      return; /* asked for again: its counters go on */
    }
  }
  struct session *session = &world->session[world->sessions++ % SESSIONS];
  *session =
      (struct session){.campaign = terms->id, .who = peer->who, .first = identity->first, .last = identity->last};
  memcpy(session->id, heard->id, sizeof(session->id));
  CV_REQUIRE(export_key(NULL, peer, &context, session->key) == CV_OK);
}

static void hear_crowd(struct world *world, struct peer *peer, const struct cv_share_frame *frame) {
  CV_REQUIRE(
      frame->opened + frame->plans_opened + frame->plans_refused + frame->answers + frame->closed + frame->ended == 0);
  for (size_t i = 0; i < frame->sessions; i++) {
    hear_session(world, peer, &frame->session[i]);
  }
  for (size_t i = 0; i < frame->turned; i++) {
    fuzz_line(frame->turn[i].why);
  }
}

/* ---- batches and outputs ---- */

/* Every output can be encoded and decoded. */
static void check_wire(const struct cv_share_frame *frame) {
  static struct cv_arena scratch, arena;
  static struct cv_buf bytes;
  struct cv_share_frame back;
  if (scratch.base == NULL) {
    CV_REQUIRE(cv_arena_init(&scratch, CV_ARENA_BYTES) == CV_OK && cv_arena_init(&arena, CV_ARENA_BYTES) == CV_OK);
  }
  cv_buf_clear(&bytes);
  CV_REQUIRE(cv_share_encode(frame, &scratch, &bytes) == CV_OK);
  CV_REQUIRE(cv_share_decode(bytes.data, bytes.len, &arena, &back) == CV_OK);
}

void world_flush(struct world *world) {
  if (!world->in_flight) {
    CV_REQUIRE(cv_cobroker_flush(world->core, world->now_ms, world->wall_ms, &world->batch, &world->stores) == CV_OK);
    world->in_flight = true;
  }
}

void world_store(struct world *world) {
  struct cv_cobroker_out out;
  if (!world->in_flight) {
    return;
  }
  if (world->stores) {
    disk_commit(&world->disk, &world->batch);
  }
  world->in_flight = false;
  cv_cobroker_stored(world->core);
  while (cv_cobroker_next_out(world->core, &out)) {
    struct peer *peer = cv_cobroker_conn_shell(out.conn);
    CV_REQUIRE(peer->conn == out.conn);
    check_wire(out.frame);
    if (peer == world_broker(world)) {
      hear_broker(world, out.frame);
    } else if (peer->who != BROKER) { /* the broker does not listen to a connection that it has replaced */
      hear_crowd(world, peer, out.frame);
    }
    if (out.close) {
      world_leave(world, peer);
    }
  }
}
