/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core with the real store, on virtual time, with a scripted broker and a scripted gateway. Tokens are real shares
 * with real proofs, sealed as a worker seals them. Halves are compared with exact sums and a mechanism of the test's
 * own. Include after cmocka.h.
 *
 * A test may let allocations fail inside the core: then the process has died, no event reaches it any more, and the
 * next turn starts another one with the same database.
 */
#ifndef CV_TESTS_COBROKER_WORLD_H
#define CV_TESTS_COBROKER_WORLD_H

#include "cobroker/campaign.h"
#include "cobroker/conn.h"
#include "cobroker/core.h"
#include "cobroker/session.h"
#include "cobroker/state.h"
#include "cobroker/store.h"
#include "common/base/fingerprint.h"
#include "common/base/grid.h"
#include "common/prio/field.h"
#include "common/prio/shard.h"
#include "common/prio/verify.h"
#include "proto/codec/chain.h"
#include "tests/support/folder.h"
#include "tests/support/mechanism.h"

#ifndef WORLD_BITS
#define WORLD_BITS CV_SPLIT_SCORE
#endif
#ifndef WORLD_ARMS
#define WORLD_ARMS 3
#endif
#ifndef WORLD_PLANS
#define WORLD_PLANS 3
#define WORLD_TAU   12
#endif

enum {
  ARMS = WORLD_ARMS,
  TAU = WORLD_TAU,
  LEAST = 5, /* tokens in a release */
  PLANS = WORLD_PLANS,
  BATCH = 7, /* tokens of a batch */
  BATCHES = 64 * PLANS,
  NOISE_SEED = 9,
  SLOTS = 2,        /* tokens_per_worker */
  EPSILON = 500000, /* of the campaign, micro */
};

static const uint8_t database_of_test[CV_SPLIT_DATABASE_BYTES] = {3, 1, 4, 1, 5};
static const struct cv_hello hello_of_test = {.present = true, .version = CV_WIRE_VERSION};
static const struct cv_duo duo_of_test = {.broker = {{0xb}}, .cobroker = {{0xc}}};

/* The score of a place: a measurement, known to the test. */
static inline uint64_t score_of(uint32_t arm, uint64_t place) {
  return cv_mix64(1 + arm + 1000 * place) % (cv_split_maximum(WORLD_BITS) + 1);
}

/* A token on its way: what the broker has of it. */
struct pending {
  struct cv_share_pending message;
  uint64_t output; /* the broker's output share */
};

struct sent {
  struct pending token[BATCH];
  size_t tokens;
  bool answered;
};

/* The broker's state, which survives every restart of the co-broker. */
struct leader {
  struct cv_digest key_hash;
  uint8_t key[CV_SPLIT_SEED_BYTES];
  bool has_key, opened, over;
  uint64_t plans, batches, booked, closings, closed; /* its own counts */
  bool plan_open;
  struct cv_digest plans_hash, batches_hash, closings_hash, chain[ARMS];
  struct sent sent[BATCHES + 1];
  uint64_t sum[ARMS], filled[ARMS], first[ARMS];
  struct cv_share_close close[ARMS * PLANS + 1];
  uint64_t half[ARMS * PLANS + 1], leader_sum[ARMS * PLANS + 1];
  uint8_t todo[ARMS][PLANS * TAU]; /* places that wait for a token: 1; on the way 2; booked 3 */
  uint64_t answers[CV_ANSWERS];
};

struct world {
  struct folder folder;
  struct cv_cobroker_store *store;
  struct cv_cobroker *core;
  struct cv_cobroker_batch batch;
  struct cv_cobroker_conn *broker, *gateway;
  struct cv_rng_seeded random; /* of keys and sessions */
  uint64_t starts, now_ms, commits, shards;
  struct cv_digest context;
  struct cv_prio prio;
  uint8_t session[CV_SPLIT_SESSION_BYTES], session_key[CV_SPLIT_SEED_BYTES];
  bool has_session;
  uint64_t counter;
  struct leader leader;
  /* What came last. */
  struct cv_share_answers answers;
  uint8_t answer[CV_BATCH_TOKENS];
  struct cv_share_closed half;
  struct cv_share_refused refused;
  char refused_why[256], opened_why[256], ended_why[256], goodbye[256], turned_why[256];
  struct cv_share_end ended;
  struct cv_share_opened opened;
  uint32_t again_ms;
  unsigned got_answers, got_halves, got_plans, got_refused, got_opened, got_ended, got_sessions, got_turned,
      got_goodbyes;
  uint64_t worker_epsilon_micro, journal_bytes;
  uint32_t sessions, kept, campaigns, submits, chunks;
  bool repeat; /* the campaign may ask a worker again */
  struct cv_duo duo;
  char line[512]; /* the last one in the log */
  char event[64]; /* the last one in the audit log */
  void (*starve)(void), (*feed)(void), (*starve_store)(void);
  bool died;
};

/* ---- what the core is given ---- */

/* The same on both ends of a connection: the test's gateway computes it too. */
static inline void key_of(const void *shell, const struct cv_digest *context, uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  struct cv_digest key;
  uintptr_t name = (uintptr_t)shell;
  cv_sha256(&name, sizeof(name), context->bytes, CV_DIGEST_BYTES, &key);
  memcpy(ret, key.bytes, CV_SPLIT_SEED_BYTES);
}

static inline enum cv_err export_key(void *data, void *shell, const struct cv_digest *context,
                                     uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  key_of(shell, context, ret);
  return CV_OK;
}

static inline enum cv_err open_sealed(const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                                      const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                                      const uint8_t sealed[CV_SPLIT_SEALED_BYTES], uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  uint8_t nonce[CV_SPLIT_SEAL_NONCE_BYTES];
  struct cv_key own;
  struct cv_seal *seal;
  memcpy(own.bytes, key, sizeof(own.bytes));
  cv_split_seal_nonce(counter, nonce);
  CV_TRY(cv_seal_new(&own, &seal));
  enum cv_err err = cv_seal_open_at(seal, nonce, bound, CV_SPLIT_BOUND_BYTES, sealed, CV_SPLIT_SEALED_BYTES, ret);
  cv_seal_free(seal);
  return err;
}

/* No allocation fails in here: OpenSSL does not tell a seal that is wrong from memory that is missing. */
static inline enum cv_err open_seed(void *data, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                                    const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                                    const uint8_t sealed[CV_SPLIT_SEALED_BYTES], uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  const struct world *world = data;
  if (world->starve != NULL) {
    world->feed();
  }
  enum cv_err err = open_sealed(key, counter, bound, sealed, ret);
  if (world->starve != NULL) {
    world->starve();
  }
  return err;
}

static inline void keep_line(void *data, const struct cv_note *note) {
  struct world *world = data;
  (void)snprintf(world->line, sizeof(world->line), "%s", note->text);
}

static inline void keep_event(void *data, const struct cv_event *event) {
  struct world *world = data;
  (void)snprintf(world->event, sizeof(world->event), "%s%s", event->what, event->refused != NULL ? " refused" : "");
}

/* ---- allocations ---- */

static inline void starve(const struct world *world) {
  if (world->starve != NULL) {
    world->starve();
  }
}

/* True if the core lives. A core that has died returns the same error from then on, and sends nothing. */
static inline bool lives(struct world *world, enum cv_err err, const struct cv_why *why) {
  if (world->starve != NULL) {
    world->feed();
  }
  if (world->starve == NULL || err != CV_ERR_NOMEM) {
    if (err != CV_OK) {
      fail_msg("%s", why->text);
    }
    return true;
  }
  struct cv_cobroker_out out;
  bool store;
  assert_true(cv_cobroker_is_pending(world->core));
  assert_false(cv_cobroker_next_out(world->core, &out));
  assert_int_equal(cv_cobroker_flush(world->core, 1, 1, &world->batch, &store), CV_ERR_NOMEM);
  world->died = true;
  world->starve = NULL;
  return false;
}

static inline void starve_store(const struct world *world) {
  if (world->starve_store != NULL) {
    world->starve_store();
  }
}

static inline bool store_lives(struct world *world, enum cv_err err, const struct cv_why *why) {
  if (world->starve_store == NULL) {
    if (err != CV_OK) {
      fail_msg("%s", why->text);
    }
    return true;
  }
  world->feed();
  if (err != CV_OK) {
    /* OpenSSL does not tell that memory was missing. */
    bool clear = err == CV_ERR_CRYPTO ? strstr(why->text, "cryptographic") != NULL
                                      : err == CV_ERR_NOMEM && strstr(why->text, "memory") != NULL;
    if (!clear || strchr(why->text, '\n') != NULL) {
      fail_msg("error %d: %s", err, why->text);
    }
    world->starve_store = NULL;
  }
  return err == CV_OK;
}

/* ---- frames ---- */

static inline struct cv_spec spec_of_test(void) {
  struct cv_spec spec = {.name = "test",
                         .arms = ARMS,
                         .policy.name = "scripted",
                         .mechanism.name = "hybrid",
                         .privatizer.name = "none",
                         .epsilon_micro = EPSILON,
                         .tokens_per_worker = SLOTS,
                         .tokens = (uint64_t)PLANS * ARMS * TAU,
                         .brokers = 2,
                         .score_bits = WORLD_BITS};
  assert_int_equal(cv_spec_raise_release_tokens(&spec, LEAST), CV_OK);
  return spec;
}

/* Passes the frame to the core; its error, for a test that expects one. */
static inline enum cv_err try_frame(struct world *world, struct cv_cobroker_conn *conn,
                                    const struct cv_share_frame *frame, struct cv_why *why) {
  return cv_cobroker_on_share(world->core, conn, frame, world->now_ms, world->now_ms, why);
}

static inline void say(struct world *world, struct cv_cobroker_conn *conn, const struct cv_share_frame *frame) {
  struct cv_why why = {.text = ""};
  if (!world->died) {
    starve(world);
    (void)lives(world, try_frame(world, conn, frame, &why), &why);
  }
}

static inline void leader_position(const struct world *world, struct cv_share_position *ret) {
  const struct leader *leader = &world->leader;
  *ret = (struct cv_share_position){.campaign = 1,
                                    .plans = leader->plan_open ? leader->plans : leader->plans,
                                    .batches = leader->batches,
                                    .closings = leader->closings,
                                    .plans_hash = leader->plans_hash,
                                    .batches_hash = leader->batches_hash,
                                    .closings_hash = leader->closings_hash};
}

static inline struct cv_share_open open_of_test(const struct world *world) {
  struct cv_share_open open = {.spec = spec_of_test(), .requester = "r"};
  open.spec.repeat = world->repeat;
  memcpy(open.database, database_of_test, sizeof(open.database));
  leader_position(world, &open.position);
  return open;
}

static inline void say_open(struct world *world, const struct cv_share_open *open) {
  struct cv_share_open own = *open;
  say(world, world->broker, &(struct cv_share_frame){.opens = 1, .open = &own});
}

static inline void enter(struct world *world) {
  uint64_t campaign = 1;
  say(world, world->gateway, &(struct cv_share_frame){.enters = 1, .enter = &campaign});
}

/* Makes a token of the worker for a place, sealed in the present session. */
static inline void make_token(struct world *world, uint64_t plan, uint32_t arm, uint64_t place, uint64_t worker,
                              uint32_t slot, uint64_t score, struct pending *ret) {
  uint8_t rand[CV_PRIO_MAX_RAND_BYTES], share[CV_PRIO_MAX_LEADER_BYTES], seed[CV_PRIO_SEED_BYTES];
  uint8_t bound[CV_SPLIT_BOUND_BYTES], nonce[CV_SPLIT_SEAL_NONCE_BYTES];
  struct cv_rng_seeded bits;
  struct cv_key key;
  struct cv_seal *seal;
  cv_rng_seeded_init(&bits, 77, ++world->shards, arm, place);
  for (size_t i = 0; i < sizeof(rand); i++) {
    rand[i] = (uint8_t)cv_rng_u64(&bits.rng);
  }
  *ret =
      (struct pending){.message = {.token = {.plan = plan, .arm = arm, .place = place, .worker = worker, .slot = slot},
                                   .counter = world->counter++}};
  struct cv_share_pending *message = &ret->message;
  for (size_t i = 0; i < CV_SPLIT_NONCE_BYTES; i++) {
    message->token.nonce[i] = (uint8_t)cv_rng_u64(&bits.rng);
  }
  memcpy(message->session, world->session, sizeof(message->session));
  cv_prio_shard(&world->prio, world->context.bytes, CV_DIGEST_BYTES, score, message->token.nonce, rand, share, seed);
  assert_true(cv_prio_verify_leader(&world->prio, world->leader.key, world->context.bytes, CV_DIGEST_BYTES,
                                    message->token.nonce, share, world->prio.leader_bytes, message->verifier,
                                    &ret->output));
  message->verifiers = (uint32_t)world->prio.verifier_elements;
  cv_split_bound(&world->context, &message->token, bound);
  cv_split_seal_nonce(message->counter, nonce);
  memcpy(key.bytes, world->session_key, sizeof(key.bytes));
  assert_int_equal(cv_seal_new(&key, &seal), CV_OK);
  assert_int_equal(cv_seal_close_at(seal, nonce, bound, sizeof(bound), seed, sizeof(seed), message->sealed), CV_OK);
  cv_seal_free(seal);
}

static inline void say_batch(struct world *world, uint64_t number) {
  struct sent *sent = &world->leader.sent[number];
  struct cv_share_pending token[BATCH];
  for (size_t i = 0; i < sent->tokens; i++) {
    token[i] = sent->token[i].message;
  }
  struct cv_share_batch batch = {.campaign = 1, .number = number, .tokens = sent->tokens, .token = token};
  say(world, world->broker, &(struct cv_share_frame){.batches = 1, .batch = &batch});
}

/* The broker's commit of a batch: its number, and the hash over all of them. Then it is sent. */
static inline void commit_batch(struct world *world, const struct pending *token, size_t n) {
  struct leader *leader = &world->leader;
  struct sent *sent = &leader->sent[++leader->batches];
  struct cv_share_pending message[BATCH];
  assert_true(n <= BATCH && leader->batches <= BATCHES);
  *sent = (struct sent){.tokens = n};
  for (size_t i = 0; i < n; i++) {
    sent->token[i] = token[i];
    message[i] = token[i].message;
  }
  struct cv_share_batch batch = {.campaign = 1, .number = leader->batches, .tokens = n, .token = message};
  assert_int_equal(cv_chain_batch(&leader->batches_hash, &batch, cv_sha256), CV_OK);
  if (!world->died) {
    say_batch(world, leader->batches);
  }
}

static inline void say_plan(struct world *world, uint64_t number, uint32_t tokens) {
  struct cv_want want[ARMS];
  for (uint32_t i = 0; i < ARMS; i++) {
    want[i] = (struct cv_want){.arm = i, .tokens = tokens};
  }
  struct cv_share_plan plan = {.campaign = 1, .plan = {.number = number, .wants = ARMS, .want = want}};
  say(world, world->broker, &(struct cv_share_frame){.plans = 1, .plan = &plan});
}

static inline void say_close(struct world *world, const struct cv_share_close *close) {
  struct cv_share_close own = *close;
  say(world, world->broker, &(struct cv_share_frame){.closes = 1, .close = &own});
}

static inline void say_done(struct world *world, uint64_t number) {
  struct cv_share_number done = {.campaign = 1, .number = number};
  say(world, world->broker, &(struct cv_share_frame){.dones = 1, .done = &done});
}

static inline void say_over(struct world *world, enum cv_end reason) {
  struct cv_share_end over = {.campaign = 1, .reason = reason};
  say(world, world->broker, &(struct cv_share_frame){.overs = 1, .over = &over});
}

/* ---- the broker's and the gateway's script ---- */

/* The closing of an arm's epoch, as the broker commits it. */
static inline struct cv_share_close closing_of(const struct world *world, uint32_t arm) {
  const struct leader *leader = &world->leader;
  return (struct cv_share_close){.campaign = 1,
                                 .number = leader->closings + 1,
                                 .plan = leader->plans,
                                 .plan_hash = leader->plans_hash,
                                 .arm = arm,
                                 .count = leader->filled[arm],
                                 .chain = leader->chain[arm]};
}

static inline void commit_closing(struct world *world, const struct cv_share_close *close) {
  struct leader *leader = &world->leader;
  leader->closings++;
  leader->close[leader->closings] = *close;
  leader->leader_sum[leader->closings] = leader->sum[close->arm];
  cv_chain_close(&leader->closings_hash, close, cv_sha256);
  leader->first[close->arm] += leader->filled[close->arm];
  leader->sum[close->arm] = leader->filled[close->arm] = 0;
  say_close(world, close);
}

static inline void book(struct world *world, const struct cv_share_answers *answers) {
  struct leader *leader = &world->leader;
  struct sent *sent = &leader->sent[answers->number];
  assert_int_equal(answers->answers, sent->tokens);
  if (sent->answered) {
    return;
  }
  sent->answered = true;
  for (size_t i = 0; i < sent->tokens; i++) {
    const struct cv_split_token *token = &sent->token[i].message.token;
    leader->answers[answers->answer[i]]++;
    if (token->arm < ARMS && token->place < PLANS * TAU) { /* a lie may name a place that there is not */
      leader->todo[token->arm][token->place] = answers->answer[i] == CV_ANSWER_ACCEPTED ? 3 : 1;
    }
    if (answers->answer[i] == CV_ANSWER_ACCEPTED) {
      leader->sum[token->arm] =
          cv_field_add(leader->sum[token->arm], cv_field_mul(sent->token[i].output, cv_split_scale(WORLD_BITS)));
      cv_split_chain(&leader->chain[token->arm], token, cv_sha256);
      leader->filled[token->arm]++;
    }
  }
  leader->booked = answers->number;
}

static inline void on_opened(struct world *world, const struct cv_share_opened *opened) {
  struct leader *leader = &world->leader;
  const struct cv_share_position *theirs = &opened->position;
  struct cv_digest hash;
  world->opened = *opened;
  world->got_opened++;
  (void)snprintf(world->opened_why, sizeof(world->opened_why), "%s", opened->refused == NULL ? "" : opened->refused);
  if (opened->refused != NULL || theirs->campaign != 1) { /* the script is of campaign 1 */
    return;
  }
  cv_sha256(opened->key, sizeof(opened->key), "", 0, &hash);
  assert_true(!leader->has_key || cv_digest_is_same(&hash, &leader->key_hash)); /* another key gives scores away */
  leader->has_key = leader->opened = true;
  leader->key_hash = hash;
  memcpy(leader->key, opened->key, sizeof(leader->key));
  assert_true(theirs->batches <= leader->batches && theirs->closings <= leader->closings);
  assert_true(theirs->plans >= leader->plans && theirs->plans <= leader->plans + 1);
}

/* What the other side lacks, after each Opened. */
static inline void resend(struct world *world) {
  struct leader *leader = &world->leader;
  for (uint64_t i = leader->booked + 1; i <= leader->batches; i++) {
    say_batch(world, i);
  }
  for (uint64_t i = leader->closed + 1; i <= leader->closings; i++) {
    say_close(world, &leader->close[i]);
  }
}

static inline void on_broker(struct world *world, const struct cv_share_frame *frame) {
  struct leader *leader = &world->leader;
  for (size_t i = 0; i < frame->opened; i++) {
    on_opened(world, &frame->open_answer[i]);
  }
  for (size_t i = 0; i < frame->plans_opened; i++) {
    world->got_plans++;
    if (frame->plan_opened[i].number == leader->plans + 1) {
      leader->plans++;
      leader->plan_open = true;
    }
  }
  for (size_t i = 0; i < frame->plans_refused; i++) {
    world->refused = frame->plan_refused[i];
    (void)snprintf(world->refused_why, sizeof(world->refused_why), "%s", frame->plan_refused[i].why);
    world->got_refused++;
  }
  for (size_t i = 0; i < frame->answers; i++) {
    world->answers = frame->answer[i];
    memcpy(world->answer, frame->answer[i].answer, frame->answer[i].answers);
    world->got_answers++;
    book(world, &frame->answer[i]);
  }
  for (size_t i = 0; i < frame->closed; i++) {
    uint64_t number = frame->half[i].number;
    world->half = frame->half[i];
    world->got_halves++;
    assert_true(number > leader->closed || leader->half[number] == frame->half[i].half); /* drawn once */
    leader->half[number] = frame->half[i].half;
    leader->closed = number > leader->closed ? number : leader->closed;
  }
  for (size_t i = 0; i < frame->ended; i++) {
    world->ended = frame->end[i];
    (void)snprintf(world->ended_why, sizeof(world->ended_why), "%s", frame->end[i].why);
    world->got_ended++;
    leader->over = true;
  }
}

static inline void on_gateway(struct world *world, const struct cv_share_frame *frame) {
  for (size_t i = 0; i < frame->sessions; i++) {
    const struct cv_share_session *session = &frame->session[i];
    struct cv_digest context;
    cv_split_context(&session->terms.split, &world->duo, session->terms.id, cv_sha256, &context);
    memcpy(world->session, session->id, sizeof(world->session));
    key_of(cv_cobroker_conn_shell(world->gateway), &context, world->session_key);
    world->context = context;
    world->has_session = true;
    world->got_sessions++;
  }
  for (size_t i = 0; i < frame->turned; i++) {
    world->again_ms = frame->turn[i].again_ms;
    (void)snprintf(world->turned_why, sizeof(world->turned_why), "%s", frame->turn[i].why);
    world->got_turned++;
  }
}

/* ---- the process ---- */

static inline struct cv_ring ring_of_test(void) {
  const struct cv_key master = {{42}};
  struct cv_ring ring = {.n = 0};
  assert_int_equal(cv_ring_add(&ring, &master, 0), CV_OK);
  return ring;
}

static inline void stop(struct world *world) {
  cv_cobroker_free(world->core);
  cv_cobroker_store_close(world->store);
  world->core = NULL;
  world->store = NULL;
}

static inline struct cv_cobroker_config config_of_test(struct world *world) {
  return (struct cv_cobroker_config){.broker = "b",
                                     .duo = world->duo,
                                     .limits = {.is_cobroker = true,
                                                .epsilon_micro = 1000000,
                                                .worker_epsilon_micro = world->worker_epsilon_micro,
                                                .release_tokens = LEAST,
                                                .arms = 10,
                                                .campaigns = world->campaigns,
                                                .submits = world->submits,
                                                .kept = world->kept,
                                                .tokens = 1000000,
                                                .chunks = world->chunks},
                                     .sessions = world->sessions,
                                     .digest = cv_sha256,
                                     .noise_seeded = true,
                                     .noise_seed = NOISE_SEED,
                                     .key = &world->random.rng,
                                     .journal_bytes = world->journal_bytes,
                                     .export_key = export_key,
                                     .open_seed = open_seed,
                                     .crypto_data = world,
                                     .note = keep_line,
                                     .note_data = world,
                                     .audit = keep_event,
                                     .audit_data = world};
}

static inline bool load(struct world *world) {
  struct cv_ring ring = ring_of_test();
  struct cv_why why = {.text = ""};
  const struct cv_store_files files = {.database = folder_file(&world->folder, "cobroker.db"),
                                       .anchor = folder_file(&world->folder, "anchor")};
  starve_store(world);
  enum cv_err opened = cv_cobroker_store_open(&files, &ring, &world->store, &why);
  cv_ring_fini(&ring);
  if (!store_lives(world, opened, &why)) {
    return false;
  }
  cv_rng_seeded_init(&world->random, 4, ++world->starts, 0, 0);
  const struct cv_cobroker_config config = config_of_test(world);
  assert_int_equal(cv_cobroker_new(&config, &world->core), CV_OK);
  starve_store(world);
  if (!store_lives(world, cv_cobroker_store_load(world->store, world->core, world->now_ms, world->now_ms, &why),
                   &why)) {
    stop(world);
    return false;
  }
  return true;
}

static const struct cv_identity broker_of_test = {.role = CV_ROLE_BROKER, .name = "b", .key = {{0xb}}};
static const struct cv_identity gateway_of_test = {.role = CV_ROLE_GATEWAY, .name = "1-1000", .first = 1, .last = 1000};

static inline void join(struct world *world, const struct cv_identity *identity, struct cv_cobroker_conn **ret) {
  static uintptr_t shells; /* each connection has another key */
  struct cv_why why = {.text = ""};
  if (!world->died) {
    starve(world);
    (void)lives(world, cv_cobroker_join(world->core, identity, (void *)++shells, ret, &why), &why);
  }
}

static inline void connect_all(struct world *world) {
  world->has_session = false;
  world->counter = 0;
  join(world, &broker_of_test, &world->broker);
  join(world, &gateway_of_test, &world->gateway);
  say(world, world->broker, &(struct cv_share_frame){.hello = hello_of_test});
  say(world, world->gateway, &(struct cv_share_frame){.hello = hello_of_test});
  if (!world->leader.over) {
    struct cv_share_open open = open_of_test(world);
    say_open(world, &open);
    if (world->leader.opened && !world->died) {
      resend(world);
    }
    enter(world);
  }
}

static inline void start(struct world *world) {
  world->died = false;
  if (!load(world)) {
    assert_true(load(world)); /* allocations succeed again */
  }
  connect_all(world);
}

static inline void deliver(struct world *world) {
  struct cv_cobroker_out out;
  while (cv_cobroker_next_out(world->core, &out)) {
    if (out.frame->goodbye != NULL) {
      (void)snprintf(world->goodbye, sizeof(world->goodbye), "%s", out.frame->goodbye);
      world->got_goodbyes++;
    }
    if (out.conn == world->broker) {
      on_broker(world, out.frame);
    } else if (out.conn == world->gateway) {
      on_gateway(world, out.frame);
    }
  }
}

static inline void restart(struct world *world) {
  stop(world);
  start(world);
}

/* How far a turn comes before the process is killed. */
enum until { WHOLE, BEFORE_COMMIT, BEFORE_DELIVERY };

/* Flushes, commits, delivers; a process that has died is started again. */
static inline void turn_until(struct world *world, enum until until) {
  struct cv_why why = {.text = ""};
  bool store = false;
  if (!world->died) {
    starve(world);
    (void)lives(world, cv_cobroker_flush(world->core, world->now_ms, world->now_ms, &world->batch, &store), &why);
  }
  if (world->died || until == BEFORE_COMMIT) {
    restart(world);
    return;
  }
  if (store) {
    starve_store(world);
    if (!store_lives(world, cv_cobroker_store_commit(world->store, &world->batch, &why), &why)) {
      restart(world);
      return;
    }
    world->commits++;
  }
  if (until == BEFORE_DELIVERY) {
    restart(world);
    return;
  }
  cv_cobroker_stored(world->core);
  deliver(world);
}

static inline void turn(struct world *world) {
  turn_until(world, WHOLE);
}

static inline void world_make_starving(struct world *world, void (*core)(void), void (*store)(void),
                                       void (*off)(void)) {
  *world = (struct world){.now_ms = 1000,
                          .worker_epsilon_micro = 4 * EPSILON,
                          .sessions = 10,
                          .kept = 3,
                          .campaigns = 2,
                          .chunks = 100,
                          .duo = duo_of_test,
                          .starve = core,
                          .starve_store = store,
                          .feed = off};
  assert_int_equal(cv_prio_init(&world->prio, WORLD_BITS == CV_SPLIT_BIT ? CV_PRIO_COUNT : CV_PRIO_SUM,
                                cv_split_maximum(WORLD_BITS)),
                   CV_OK);
  folder_make(&world->folder);
  start(world);
}

static inline void world_make(struct world *world) {
  world_make_starving(world, NULL, NULL, NULL);
}

static inline void world_end(struct world *world) {
  stop(world);
  cv_cobroker_batch_fini(&world->batch);
  folder_remove(&world->folder);
}

#endif
