/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/broker_co.h"

#include <string.h>

#include "common/base/grid.h"
#include "common/prio/field.h"
#include "common/prio/shard.h"
#include "tests/fuzz/fuzz.h"

/* ---- what its core is given: keys are not looked at, a seal shows the seed ---- */

static enum cv_err export_key(void *data, void *shell, const struct cv_digest *context,
                              uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  (void)data;
  (void)shell;
  memcpy(ret, context->bytes, CV_SPLIT_SEED_BYTES);
  return CV_OK;
}

static void seal(const uint8_t bound[CV_SPLIT_BOUND_BYTES], const uint8_t seed[CV_SPLIT_SEED_BYTES],
                 uint8_t ret[CV_SPLIT_SEALED_BYTES]) {
  struct cv_digest tag;
  cv_sha256(bound, CV_SPLIT_BOUND_BYTES, seed, CV_SPLIT_SEED_BYTES, &tag);
  memcpy(ret, seed, CV_SPLIT_SEED_BYTES);
  memcpy(ret + CV_SPLIT_SEED_BYTES, tag.bytes, CV_SPLIT_SEALED_BYTES - CV_SPLIT_SEED_BYTES);
}

static enum cv_err open_seed(void *data, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                             const uint8_t bound[CV_SPLIT_BOUND_BYTES], const uint8_t sealed[CV_SPLIT_SEALED_BYTES],
                             uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  uint8_t again[CV_SPLIT_SEALED_BYTES];
  (void)data;
  (void)key;
  (void)counter;
  seal(bound, sealed, again);
  memcpy(ret, sealed, CV_SPLIT_SEED_BYTES);
  return memcmp(again, sealed, sizeof(again)) == 0 ? CV_OK : CV_ERR_DAMAGED;
}

/* ---- the process ---- */

/* One gateway for all workers: those of the broker overlap. */
static void join_crowd(struct world *world) {
  static const struct cv_identity crowd = {.role = CV_ROLE_GATEWAY, .name = "1-63", .first = 1, .last = WORKERS - 1};
  static const struct cv_share_frame frame = {
      .hello = {.present = true, .version = CV_WIRE_VERSION, .program = "fuzz"}};
  struct co *co = &world->co;
  struct cv_why why = {.text = ""};
  CV_REQUIRE(cv_cobroker_join(co->core, &crowd, NULL, &co->crowd, &why) == CV_OK);
  CV_REQUIRE(cv_cobroker_on_share(co->core, co->crowd, &frame, world->now_ms, world->wall_ms, &why) == CV_OK);
  memset(co->session, 0, sizeof(co->session));
  memset(co->has_session, 0, sizeof(co->has_session));
}

void co_begin(struct world *world) {
  struct co *co = &world->co;
  const struct cv_cobroker_config config = {.broker = "fuzz",
                                            .duo = world->config.duo,
                                            .limits = world->config.limits,
                                            .sessions = 256,
                                            .digest = cv_sha256,
                                            .noise = &co->random.rng,
                                            .key = &co->random.rng,
                                            .export_key = export_key,
                                            .open_seed = open_seed};
  struct cv_totals none = {0};
  cv_rng_seeded_init(&co->random, 3, CV_RNG_NOISE_COBROKER, ++co->lives, 0);
  CV_REQUIRE(cv_cobroker_new(&config, &co->core) == CV_OK);
  CV_REQUIRE(cv_cobroker_restore_end(co->core, 0, &none, world->now_ms, world->wall_ms) == CV_OK);
  join_crowd(world);
}

void co_end(struct world *world) {
  cv_cobroker_free(world->co.core);
  cv_cobroker_batch_fini(&world->co.batch);
}

void co_lose(struct world *world) {
  co_leave(world);
  cv_cobroker_free(world->co.core);
  world->co.lied = true;
  co_begin(world);
}

void co_join(struct world *world, struct peer *peer) {
  struct co *co = &world->co;
  struct cv_why why = {.text = ""};
  const struct cv_identity broker = {.role = CV_ROLE_BROKER, .name = "fuzz", .key = world->config.duo.broker};
  co_leave(world);
  CV_REQUIRE(cv_cobroker_join(co->core, &broker, NULL, &co->broker, &why) == CV_OK);
  co->peer = peer;
}

void co_leave(struct world *world) {
  if (world->co.broker != NULL) {
    cv_cobroker_leave(world->co.core, world->co.broker);
    world->co.broker = NULL;
  }
  world->co.peer = NULL;
}

void co_hear(struct world *world, const struct cv_share_frame *frame) {
  struct co *co = &world->co;
  struct cv_why why = {.text = ""};
  if (co->broker != NULL &&
      cv_cobroker_on_share(co->core, co->broker, frame, world->now_ms, world->wall_ms, &why) != CV_OK) {
    CV_REQUIRE(co->lied || world->damaged);
    fuzz_line(why.text);
    co_leave(world);
  }
}

/* ---- what it says ---- */

/* Changes what is there to be changed. */
static void bend(struct cv_share_frame *frame, uint8_t how) {
  static uint64_t number;
  static struct cv_share_end end;
  switch (how % 12) {
    case 0:
      frame->answers += frame->answers > 0 ? -1U : 0;
      break;
    case 1:
      frame->closed += frame->closed > 0 ? -1U : 0;
      break;
    case 2:
      for (size_t i = 0; i < frame->opened; i++) {
        frame->open_answer[i].key[how >> 4] ^= 1;
      }
      break;
    case 3:
      for (size_t i = 0; i < frame->opened; i++) {
        frame->open_answer[i].position.batches++;
      }
      break;
    case 4:
      for (size_t i = 0; i < frame->opened; i++) {
        frame->open_answer[i].position.plans_hash.bytes[how >> 4] ^= 1;
      }
      break;
    case 5:
      for (size_t i = 0; i < frame->answers; i++) {
        frame->answer[i].answer[0] = (uint8_t)(CV_ANSWER_ACCEPTED + (how >> 4) % (CV_ANSWERS - 1));
      }
      break;
    case 6:
      for (size_t i = 0; i < frame->answers; i++) {
        frame->answer[i].answers -= frame->answer[i].answers > 1;
        frame->answer[i].number += how >> 7;
      }
      break;
    case 7:
      for (size_t i = 0; i < frame->closed; i++) {
        frame->half[i].half = (how & 16) != 0 ? UINT64_MAX : cv_field_add(frame->half[i].half, CV_FIELD_P / 2);
      }
      break;
    case 8:
      for (size_t i = 0; i < frame->closed; i++) {
        frame->half[i].number++;
      }
      break;
    case 9:
      for (size_t i = 0; i < frame->plans_opened; i++) {
        frame->plan_opened[i].number += (how & 16) != 0 ? 1 : -1U;
      }
      break;
    case 10:
      end = (struct cv_share_end){.campaign = 1 + (how >> 4) % 4, .reason = CV_END_FROZEN, .why = "because"};
      *frame = (struct cv_share_frame){.hello = frame->hello, .ended = 1, .end = &end};
      break;
    default: /* what only a worker sends */
      frame->enters = 1;
      frame->enter = &number;
      break;
  }
}

/* To the broker; false once that has closed the connection. */
static bool say(struct world *world, const struct cv_share_frame *frame) {
  struct peer *peer = world->co.peer;
  struct cv_why why = {.text = ""};
  if (peer == NULL) {
    return false;
  }
  enum cv_err err = cv_broker_on_share(world->core, peer->conn, frame, world->now_ms, world->wall_ms, &why);
  CV_REQUIRE(err == CV_OK || world->co.lied || world->damaged);
  world_answered(world, peer, err, &why);
  return err == CV_OK;
}

static void hear_crowd(struct world *world, const struct cv_share_frame *frame) {
  for (size_t i = 0; i < frame->sessions; i++) {
    const struct cv_share_session *session = &frame->session[i];
    if (session->terms.id < CAMPAIGNS) {
      world->co.has_session[session->terms.id] = true;
      memcpy(world->co.session[session->terms.id], session->id, CV_SPLIT_SESSION_BYTES);
    }
  }
}

void co_turn(struct world *world, uint8_t how) {
  struct co *co = &world->co;
  struct cv_cobroker_out out;
  bool store, linked = true;
  CV_REQUIRE(cv_cobroker_flush(co->core, world->now_ms, world->wall_ms, &co->batch, &store) == CV_OK);
  cv_cobroker_stored(co->core);
  co->lied = co->lied || how >= 0x80;
  while (cv_cobroker_next_out(co->core, &out)) {
    struct cv_share_frame frame = *out.frame;
    if (out.conn == co->crowd) {
      hear_crowd(world, &frame);
      continue;
    }
    if (how >= 0x80) {
      bend(&frame, how & 0x7f);
    }
    linked = linked && out.conn == co->broker && say(world, &frame);
    if (out.close) {
      cv_cobroker_leave(co->core, out.conn);
      if (out.conn == co->broker) {
        co->broker = NULL;
        co_leave(world);
      }
    }
  }
  if (!linked) {
    co_leave(world);
  }
}

/* ---- workers ---- */

static void enter(struct world *world, uint64_t campaign) {
  struct co *co = &world->co;
  struct cv_why why = {.text = ""};
  const struct cv_share_frame frame = {.enters = 1, .enter = &campaign};
  if (cv_cobroker_on_share(co->core, co->crowd, &frame, world->now_ms, world->wall_ms, &why) != CV_OK) {
    fuzz_line(why.text); /* its session of this campaign is over, and wants another connection */
    cv_cobroker_leave(co->core, co->crowd);
    join_crowd(world);
  }
}

bool co_split(struct world *world, const struct cv_terms *terms, const struct cv_split_token *token, int64_t value,
              uint8_t leader[CV_SPLIT_LEADER_MOST], struct cv_token_share *ret) {
  struct co *co = &world->co;
  uint8_t rand[CV_PRIO_MAX_RAND_BYTES], seed[CV_PRIO_SEED_BYTES], bound[CV_SPLIT_BOUND_BYTES];
  struct cv_split_token own = *token;
  struct cv_rng_seeded bits;
  struct cv_digest context;
  struct cv_prio prio;
  if (terms->id >= CAMPAIGNS || !co->has_session[terms->id]) {
    enter(world, terms->id);
    return false;
  }
  cv_rng_seeded_init(&bits, 77, ++co->shards, 0, 0);
  for (size_t i = 0; i < sizeof(rand); i++) {
    rand[i] = (uint8_t)cv_rng_u64(&bits.rng);
  }
  for (size_t i = 0; i < CV_SPLIT_NONCE_BYTES; i++) {
    own.nonce[i] = (uint8_t)cv_rng_u64(&bits.rng);
  }
  CV_REQUIRE(cv_prio_init(&prio, CV_PRIO_SUM, cv_split_maximum(CV_SPLIT_SCORE)) == CV_OK);
  cv_split_context(&terms->split, &world->config.duo, terms->id, cv_sha256, &context);
  cv_prio_shard(&prio, context.bytes, CV_DIGEST_BYTES, (uint64_t)value / cv_split_scale(CV_SPLIT_SCORE), own.nonce,
                rand, leader, seed);
  cv_split_bound(&context, &own, bound);
  *ret = (struct cv_token_share){.leader_bytes = prio.leader_bytes, .leader = leader, .counter = co->shards};
  seal(bound, seed, ret->sealed);
  memcpy(ret->nonce, own.nonce, sizeof(ret->nonce));
  memcpy(ret->session, co->session[terms->id], sizeof(ret->session));
  return true;
}
