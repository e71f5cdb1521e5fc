/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/broker_world.h"

#include <string.h>

#include "broker/core.h"
#include "broker/fetch.h"
#include "broker/state.h"
#include "common/base/grid.h"
#include "proto/codec/chain.h"
#include "tests/fuzz/broker_check.h"
#include "tests/fuzz/broker_co.h"
#include "tests/fuzz/fuzz.h"

const struct cv_identity world_identity[] = {
    {.role = CV_ROLE_GATEWAY, .name = "1-20", .first = 1, .last = 20},
    {.role = CV_ROLE_GATEWAY, .name = "21-40", .first = 21, .last = 40},
    {.role = CV_ROLE_WORKER, .name = "50", .first = 50, .last = 50},
    {.role = CV_ROLE_GATEWAY, .name = "15-25", .first = 15, .last = 25},
    {.role = CV_ROLE_REQUESTER, .name = "alice"},
    {.role = CV_ROLE_REQUESTER, .name = "bob"},
    {.role = CV_ROLE_THIRDPARTY, .name = "t"},
    {.role = CV_ROLE_COBROKER, .name = "c", .key = {{0xc}}},
    {.role = CV_ROLE_COBROKER, .name = "c", .key = {{0xd}}}, /* has another key than the one that is expected */
};

/* Replaces the keyed tag: a ticket that was changed is refused. */
static enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *ret, size_t n) {
  uint64_t hash = 42;
  (void)data;
  for (size_t i = 0; i < bytes_n; i++) {
    hash = cv_mix64(hash ^ ((const uint8_t *)bytes)[i]);
  }
  for (size_t i = 0; i < n; i++) {
    ret[i] = (uint8_t)(cv_mix64(hash + i) >> 7);
  }
  return CV_OK;
}

static void note(void *data, const struct cv_note *note) {
  (void)data;
  CV_REQUIRE(note->peer == NULL || note->peer[0] != '\0');
  fuzz_line(note->text);
}

int64_t world_value(uint64_t campaign, uint32_t arm, uint64_t place) {
  return (int64_t)(cv_mix64(campaign << 48 ^ (uint64_t)arm << 32 ^ place) % (CV_GRID + 1));
}

struct heard *world_heard(struct world *world, uint64_t campaign) {
  return campaign < CAMPAIGNS ? &world->heard[campaign] : NULL;
}

void world_begin(struct world *world, uint8_t settings) {
  static const uint64_t journal_bytes[] = {0, 1, 200, 3000};
  *world = (struct world){.now_ms = 1000, .wall_ms = 1000000};
  cv_rng_seeded_init(&world->noise, 1, CV_RNG_NOISE, 0, 0);
  world->config = (struct cv_broker_config){
      .name = "fuzz",
      .limits = {.epsilon_micro = 1000000,
                 .delta_pico = 500000000000,
                 .trusted_thirdparty = (settings & 16) == 0,
                 .worker_epsilon_micro = (settings & 4) != 0 ? 900000 : 5000000,
                 .release_tokens = 1,
                 .arms = 64,
                 .campaigns = 3,
                 .kept = (settings & 16) != 0 ? 2 : 0,
                 .retention_ms = (settings & 32) != 0 ? 3000 : 0,
                 .tokens = 1000000,
                 .chunks = 64,
                 .lease_ms = LEASE_MS,
                 .queue = (settings & 8) != 0 ? 4 : 64},
      .tagger = {.tag = tag},
      .digest = cv_sha256,
      .duo = {.broker = {{0xb}}, .cobroker = {{0xc}}},
      .database = {1},
      .noise = &world->noise.rng,
      .journal_bytes = journal_bytes[settings & 3],
      .note = note,
  };
  co_begin(world);
  CV_REQUIRE(world_restart(world));
}

void world_end(struct world *world) {
  co_end(world);
  cv_broker_free(world->core);
  cv_broker_batch_fini(&world->batch);
  disk_fini(&world->disk);
  seen_fini(&world->places);
  seen_fini(&world->payers);
}

bool world_restart(struct world *world) {
  cv_broker_free(world->core);
  CV_REQUIRE(cv_broker_new(&world->config, &world->core) == CV_OK);
  memset(world->peer, 0, sizeof(world->peer));
  co_leave(world);
  world->in_flight = false;
  if (disk_load(&world->disk, world->core, world->now_ms, world->wall_ms) != CV_OK) {
    CV_REQUIRE(world->damaged);
    return false;
  }
  broker_check(world->core);
  return true;
}

void world_join(struct world *world, unsigned who) {
  struct cv_why why = {.text = ""};
  for (struct peer *peer = world->peer; peer < world->peer + PEERS; peer++) {
    if (peer->conn == NULL) {
      struct cv_broker_conn *conn;
      if (cv_broker_join(world->core, &world_identity[who], peer, &conn, &why) == CV_OK) {
        CV_REQUIRE(who != PUPPET);
        *peer = (struct peer){.conn = conn, .who = who};
      } else {
        fuzz_line(why.text);
      }
      return;
    }
  }
}

void world_leave(struct world *world, struct peer *peer) {
  if (peer == world->co.peer) {
    co_leave(world);
  }
  cv_broker_leave(world->core, peer->conn);
  peer->conn = NULL;
}

void world_answered(struct world *world, struct peer *peer, enum cv_err err, const struct cv_why *why) {
  if (err != CV_OK) {
    CV_REQUIRE(err != CV_ERR_NOMEM);
    fuzz_line(why->text);
    world_leave(world, peer);
  }
}

/* ---- what the core says ---- */

static void check_assign(struct world *world, struct peer *peer, const struct cv_assign *assign) {
  struct heard *heard = world_heard(world, assign->campaign);
  CV_REQUIRE(cv_identity_vouches_for(&world_identity[peer->who], assign->worker) && assign->arms == 1);
  CV_REQUIRE(assign->campaign >= 32 || (peer->told >> assign->campaign & 1) != 0);
  CV_REQUIRE(heard == NULL || world->damaged || assign->arm.one < heard->items);
  uint32_t came_for = assign->worker < WORKERS ? peer->came_for[assign->worker] : 0;
  bool may_be_gold = heard == NULL || heard->items > heard->arms; /* then no worker chooses its items */
  CV_REQUIRE(may_be_gold || (came_for & (UINT32_C(1) << 31 | UINT32_C(1) << assign->arm.one % 31)) != 0);
  struct assigned *kept = &world->assigned[world->assignments++ % ASSIGNED];
  *kept = (struct assigned){.campaign = assign->campaign, .place = assign->place, .worker = assign->worker};
  kept->arm = assign->arm.one;
  kept->plan = assign->plan;
  kept->slot = assign->slot;
  memcpy(kept->ticket, assign->ticket, sizeof(kept->ticket));
}

/* Within the limit, until a token has gone to a campaign with exact sums: from then on only to that campaign. */
static void check_spent(struct world *world, uint64_t worker, uint64_t micro, uint32_t campaign) {
  uint64_t *spent = &world->spent_micro[worker];
  if (*spent == CV_UNPROTECTED_MICRO) {
    CV_REQUIRE(world->unprotected_in[worker] == campaign);
    return;
  }
  CV_REQUIRE(*spent < world->config.limits.worker_epsilon_micro);
  *spent = micro == CV_UNPROTECTED_MICRO ? micro : *spent + micro;
  world->unprotected_in[worker] = micro == CV_UNPROTECTED_MICRO ? campaign : 0;
  CV_REQUIRE(micro == CV_UNPROTECTED_MICRO || *spent <= world->config.limits.worker_epsilon_micro);
}

/* A place and a payer are counted once, and no worker exceeds its lifetime epsilon. */
static void check_ack(struct world *world, const struct cv_crowd_ack *ack) {
  CV_REQUIRE(ack->verdict > CV_VERDICT_NONE && ack->verdict <= CV_VERDICT_REFUSED);
  CV_REQUIRE((ack->verdict == CV_VERDICT_REFUSED) == (ack->why != NULL));
  struct cv_ticket ticket;
  if (ack->verdict != CV_VERDICT_ACCEPTED || world->damaged) {
    return;
  }
  CV_REQUIRE(cv_ticket_open(ack->ticket, &world->config.tagger, &ticket) == CV_OK && ticket.worker < WORKERS);
  const struct heard *heard = world_heard(world, ticket.campaign);
  bool may_be_gold = heard == NULL || heard->items > heard->arms; /* an answer to a gold item fills no place */
  CV_REQUIRE(may_be_gold || seen_add(&world->places, (uint64_t)ticket.campaign << 56 | (uint64_t)ticket.plan << 36 |
                                                         (uint64_t)ticket.item << 24 | ticket.position));
  CV_REQUIRE(seen_add(&world->payers, (uint64_t)ticket.campaign << 56 | ticket.worker << 16 | ticket.slot));
  check_spent(world, ticket.worker, heard == NULL ? 0 : heard->epsilon_micro, ticket.campaign);
}

static void hear_crowd(struct world *world, struct peer *peer, const struct cv_crowd_frame *frame) {
  CV_REQUIRE(frame->arrives + frame->tokens + frame->declines == 0);
  for (size_t i = 0; i < frame->campaigns; i++) {
    struct heard *heard = world_heard(world, frame->campaign[i].id);
    peer->told |= frame->campaign[i].id < 32 ? 1U << frame->campaign[i].id : 0;
    if (heard != NULL) {
      const struct cv_terms *terms = &frame->campaign[i];
      bool is_exact = strcmp(terms->mechanism.name, "none") == 0 && strcmp(terms->privatizer.name, "none") == 0;
      heard->items = terms->arms;
      heard->terms = terms->split.score_bits != 0 ? *terms : (struct cv_terms){.id = 0};
      heard->epsilon_micro = is_exact ? CV_UNPROTECTED_MICRO : terms->epsilon_micro;
    }
  }
  for (size_t i = 0; i < frame->assigns; i++) {
    check_assign(world, peer, &frame->assign[i]);
  }
  for (size_t i = 0; i < frame->acks; i++) {
    check_ack(world, &frame->ack[i]);
  }
}

/* With the noise of both brokers, which is less than 2^40 here. */
static void check_shares(const struct world *world, uint64_t campaign, const struct heard *heard,
                         const struct cv_release *release) {
  int64_t sum = 0, scale = (int64_t)cv_split_scale(CV_SPLIT_SCORE);
  for (uint64_t i = 0; i < release->tokens; i++) {
    sum += world_value(campaign, release->arm, i) / scale * scale;
  }
  int64_t noise = release->noisy_sum - sum;
  CV_REQUIRE(world->co.lied || !heard->covers_all || (noise < INT64_C(1) << 40 && noise > -(INT64_C(1) << 40)));
}

/* A release that left once leaves again unchanged; without noise it is the sum of the tokens' values. */
static void check_release(const struct world *world, uint64_t campaign, struct heard *heard,
                          const struct cv_release *release) {
  CV_REQUIRE(release->number >= 1 && release->tokens >= 1 && release->noise.groups <= CV_NOISE_GROUPS_MAX);
  if (release->number > RELEASES || world->damaged) {
    return;
  }
  const struct sent sent = {release->plan, release->tokens, release->noisy_sum, release->arm, release->noise.groups};
  struct sent *known = &heard->release[release->number - 1];
  if (release->number <= heard->releases) {
    CV_REQUIRE(memcmp(known, &sent, sizeof(sent)) == 0);
    return;
  }
  CV_REQUIRE(release->number == heard->releases + 1);
  *known = sent;
  heard->releases++;
  int64_t sum = 0;
  bool is_exact = heard->exact && heard->items == heard->arms;
  for (uint64_t i = 0; is_exact && i < release->tokens; i++) {
    sum += world_value(campaign, release->arm, i);
  }
  CV_REQUIRE(!is_exact || sum == release->noisy_sum);
  if (heard->terms.split.score_bits != 0) {
    check_shares(world, campaign, heard, release);
  }
}

static void hear_release(struct world *world, const struct cv_rank_release *message) {
  struct heard *heard = world_heard(world, message->campaign);
  if (heard == NULL) {
    return;
  }
  check_release(world, message->campaign, heard, &message->release);
  if (message->release.number == heard->position.releases + 1) {
    heard->position.releases++;
    cv_chain_release(&heard->position.releases_hash, &message->release, cv_sha256);
  }
}

static void hear_open(struct world *world, const struct cv_rank_open *open) {
  struct heard *heard = world_heard(world, open->position.campaign);
  struct cv_why why;
  CV_REQUIRE(cv_spec_check(&open->spec, &why) == CV_OK);
  if (heard != NULL) {
    heard->opened = true;
    heard->arms = open->spec.arms;
    heard->exact = strcmp(open->spec.mechanism.name, "none") == 0;
    heard->covers_all = strcmp(open->spec.mechanism.name, "hybrid") == 0;
    CV_REQUIRE(heard->items == 0 || world->damaged || heard->items >= heard->arms);
    heard->position.campaign = open->position.campaign;
  }
}

static void hear_rank(struct world *world, const struct cv_rank_frame *frame) {
  CV_REQUIRE(frame->opened + frame->acks + frame->plans + frame->results == 0);
  for (size_t i = 0; i < frame->opens; i++) {
    hear_open(world, &frame->open[i]);
  }
  for (size_t i = 0; i < frame->recorded; i++) {
    struct heard *heard = world_heard(world, frame->record[i].campaign);
    if (heard != NULL && frame->record[i].plan.number == heard->position.plans + 1) {
      heard->position.plans++;
      CV_REQUIRE(cv_chain_plan(&heard->position.plans_hash, &frame->record[i].plan, cv_sha256) == CV_OK);
    }
  }
  for (size_t i = 0; i < frame->releases; i++) {
    hear_release(world, &frame->release[i]);
  }
}

static void check_owner(struct world *world, const struct peer *peer, uint64_t campaign) {
  const struct heard *heard = world_heard(world, campaign);
  if (heard != NULL && heard->owner != NULL && !world->damaged) {
    CV_REQUIRE(strcmp(heard->owner, world_identity[peer->who].name) == 0);
  }
}

static void hear_progress(struct world *world, const struct peer *peer, const struct cv_progress *progress) {
  check_owner(world, peer, progress->campaign);
  CV_REQUIRE(progress->tokens <= progress->tokens_limit && progress->decided <= progress->arms);
}

/* The ledger covers what has left. */
static void hear_statement(struct world *world, const struct peer *peer, const struct cv_statement *statement) {
  struct heard *heard = world_heard(world, statement->campaign);
  uint64_t releases[CV_ARMS_MAX] = {0}, tokens[CV_ARMS_MAX] = {0};
  fuzz_line(statement->guarantee);
  CV_REQUIRE(statement->arms <= CV_ARMS_MAX && statement->lifetime_epsilon_micro > 0);
  if (heard == NULL || statement->campaign == 0 || heard->owner == NULL || world->damaged) {
    return;
  }
  CV_REQUIRE(strcmp(heard->owner, world_identity[peer->who].name) == 0);
  for (uint64_t i = 0; i < heard->releases; i++) {
    const struct sent *sent = &heard->release[i];
    CV_REQUIRE(sent->arm < statement->arms);
    releases[sent->arm]++;
    tokens[sent->arm] = sent->tokens > tokens[sent->arm] ? sent->tokens : tokens[sent->arm];
  }
  for (uint32_t i = 0; i < statement->arms; i++) {
    CV_REQUIRE(statement->account[i].releases >= releases[i] && statement->account[i].tokens >= tokens[i]);
    CV_REQUIRE(releases[i] == 0 || heard->exact || statement->account[i].spent_micro > 0);
  }
}

static void hear_order(struct world *world, const struct peer *peer, const struct cv_order_frame *frame) {
  struct heard *heard;
  switch (frame->kind) {
    case CV_ORDER_ACCEPTED:
      heard = world_heard(world, frame->as.accepted.campaign);
      /* a number is given once, even after a purge */
      CV_REQUIRE(heard == NULL || !heard->numbered || frame->as.accepted.existed || world->damaged);
      if (heard != NULL && heard->owner == NULL) {
        heard->owner = world_identity[peer->who].name;
      }
      if (heard != NULL) {
        heard->numbered = heard->numbered || !frame->as.accepted.existed;
      }
      break;
    case CV_ORDER_PROGRESS:
      hear_progress(world, peer, &frame->as.progress);
      break;
    case CV_ORDER_DESCRIPTION:
      check_owner(world, peer, frame->as.description.campaign);
      break;
    case CV_ORDER_STANDINGS:
      check_owner(world, peer, frame->as.standings.campaign);
      heard = world_heard(world, frame->as.standings.campaign);
      CV_REQUIRE(heard == NULL || !heard->exact || world->damaged);
      break;
    case CV_ORDER_FINISHED:
      hear_progress(world, peer, &frame->as.finished.progress);
      break;
    case CV_ORDER_STATUS_ANSWER:
      for (size_t i = 0; i < frame->as.status.campaigns; i++) {
        hear_progress(world, peer, &frame->as.status.campaign[i]);
      }
      break;
    case CV_ORDER_PART:
      heard = world_heard(world, frame->as.part.campaign);
      CV_REQUIRE(heard == NULL || !heard->exact || frame->as.part.releases == 0 || world->damaged);
      break;
    case CV_ORDER_STATEMENT:
      hear_statement(world, peer, &frame->as.statement);
      break;
    case CV_ORDER_PURGED:
      CV_REQUIRE(frame->as.purged <= world->core->totals.campaigns);
      break;
    case CV_ORDER_ERROR:
      fuzz_line(frame->as.error);
      break;
    default:
      CV_REQUIRE(frame->kind == CV_ORDER_NONE && (frame->hello.present || frame->goodbye != NULL));
  }
}

/* Every output can be encoded and decoded. */
static void check_wire(const struct cv_broker_out *out) {
  static struct cv_arena scratch, arena;
  static struct cv_buf bytes;
  if (scratch.base == NULL) {
    CV_REQUIRE(cv_arena_init(&scratch, CV_ARENA_BYTES) == CV_OK && cv_arena_init(&arena, CV_ARENA_BYTES) == CV_OK);
  }
  union {
    struct cv_crowd_frame crowd;
    struct cv_rank_frame rank;
    struct cv_order_frame order;
    struct cv_share_frame share;
  } back;
  cv_buf_clear(&bytes);
  if (out->schema == CV_SCHEMA_CROWD) {
    enum cv_err err = cv_crowd_encode(out->frame.crowd, &scratch, &bytes);
    CV_REQUIRE(err == CV_ERR_LIMIT || /* the shell splits it */
               (err == CV_OK && cv_crowd_decode(bytes.data, bytes.len, &arena, &back.crowd) == CV_OK));
  } else if (out->schema == CV_SCHEMA_SHARE) {
    CV_REQUIRE(cv_share_encode(out->frame.share, &scratch, &bytes) == CV_OK);
    CV_REQUIRE(cv_share_decode(bytes.data, bytes.len, &arena, &back.share) == CV_OK);
  } else if (out->schema == CV_SCHEMA_RANK) {
    CV_REQUIRE(cv_rank_encode(out->frame.rank, &scratch, &bytes) == CV_OK);
    CV_REQUIRE(cv_rank_decode(bytes.data, bytes.len, &arena, &back.rank) == CV_OK);
  } else {
    CV_REQUIRE(cv_order_encode(out->frame.order, &scratch, &bytes) == CV_OK);
    CV_REQUIRE(cv_order_decode(bytes.data, bytes.len, &arena, &back.order) == CV_OK);
  }
}

/* Undamaged rows are present, whatever was purged around them. */
static void fetch_wanted(struct world *world) {
  uint32_t id;
  if (cv_broker_wanted(world->core, &id)) {
    enum cv_err err = disk_fetch(&world->disk, world->core, id);
    CV_REQUIRE(err == CV_OK || (err == CV_ERR_DAMAGED && world->damaged));
    if (err != CV_OK) {
      cv_broker_fetch_failed(world->core, id, "damaged");
    }
  }
}

void world_flush(struct world *world) {
  if (!world->in_flight) {
    fetch_wanted(world);
    CV_REQUIRE(cv_broker_flush(world->core, world->now_ms, world->wall_ms, &world->batch, &world->stores) == CV_OK);
    world->in_flight = true;
    broker_check(world->core);
  }
}

void world_store(struct world *world) {
  struct cv_broker_out out;
  if (!world->in_flight) {
    return;
  }
  if (world->stores) {
    disk_commit(&world->disk, &world->batch);
  }
  world->in_flight = false;
  cv_broker_stored(world->core);
  while (cv_broker_next_out(world->core, &out)) {
    struct peer *peer = cv_broker_conn_shell(out.conn);
    CV_REQUIRE(peer->conn == out.conn);
    check_wire(&out);
    if (out.schema == CV_SCHEMA_CROWD) {
      hear_crowd(world, peer, out.frame.crowd);
    } else if (out.schema == CV_SCHEMA_SHARE) {
      if (peer == world->co.peer) {
        co_hear(world, out.frame.share);
      }
    } else if (out.schema == CV_SCHEMA_RANK) {
      hear_rank(world, out.frame.rank);
    } else {
      hear_order(world, peer, out.frame.order);
    }
    if (out.close) {
      world_leave(world, peer);
    }
  }
}
