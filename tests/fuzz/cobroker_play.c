/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/cobroker_play.h"

#include "common/base/grid.h"
#include "common/prio/field.h"
#include "common/prio/shard.h"
#include "common/prio/verify.h"
#include "proto/codec/chain.h"
#include "tests/fuzz/fuzz.h"

static const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION, .program = "fuzz"};

static void say(struct world *world, struct peer *peer, const struct cv_share_frame *frame) {
  struct cv_why why = {.text = ""};
  world_answered(world, peer, cv_cobroker_on_share(world->core, peer->conn, frame, world->now_ms, world->wall_ms, &why),
                 &why);
}

/* Of the broker about a campaign: on a connection on which it is open, or (`rude`) on any. */
static void tell(struct world *world, const struct deal *deal, bool rude, const struct cv_share_frame *frame) {
  struct peer *broker = world_broker(world);
  if (broker != NULL && (deal->told || rude)) {
    say(world, broker, frame);
  }
}

static uint64_t id_of(const struct world *world, const struct deal *deal) {
  return (uint64_t)(deal - world->deal) + 1;
}

static struct deal *pick_deal(struct world *world, struct cv_reader *in) {
  return &world->deal[cv_read_u8(in) % CAMPAIGNS];
}

/* ---- connections ---- */

static void on_join(struct world *world, struct cv_reader *in) {
  uint8_t who = cv_read_u8(in);
  uint64_t before = world->serial;
  world_join(world, (who & 0x7fU) % IDENTITIES);
  for (struct peer *peer = world->peer; peer < world->peer + PEERS; peer++) {
    if (peer->conn != NULL && peer->serial > before && (who & 0x80) == 0) {
      say(world, peer, &(struct cv_share_frame){.hello = hello});
    }
  }
}

static struct peer *pick_peer(struct world *world, struct cv_reader *in) {
  unsigned from = cv_read_u8(in);
  for (unsigned i = 0; i < PEERS; i++) {
    struct peer *peer = &world->peer[(from + i) % PEERS];
    if (peer->conn != NULL) {
      return peer;
    }
  }
  return NULL;
}

static void on_leave(struct world *world, struct cv_reader *in) {
  struct peer *peer = pick_peer(world, in);
  if (peer != NULL) {
    world_leave(world, peer);
  }
}

static void on_enter(struct world *world, struct cv_reader *in) {
  struct peer *peer = pick_peer(world, in);
  uint64_t campaign = cv_read_u8(in) % (CAMPAIGNS + 2);
  if (peer != NULL && peer->who != BROKER) {
    say(world, peer, &(struct cv_share_frame){.enters = 1, .enter = &campaign});
  }
}

/* ---- the broker: campaigns and plans ---- */

/* As the broker completes it. */
static void describe(const struct world *world, struct deal *deal, uint8_t shape) {
  static const char *const mechanisms[] = {"hybrid", "binary", "batch", "hybrid"};
  struct cv_privacy privacy;
  deal->spec = (struct cv_spec){.name = "fuzz",
                                .arms = 1 + (shape & 3U) % ARMS,
                                .policy = {.name = "ppar"},
                                .privatizer = {.name = "none"},
                                .epsilon_micro = 100000U * (1 + (shape >> 2 & 3U)),
                                .tokens_per_worker = (shape & 0x10) != 0 ? 8 : 1,
                                .repeat = (shape & 0x14) == 0x14,
                                .tokens = 300,
                                .brokers = 2,
                                .score_bits = (shape & 0x60) == 0x60 ? CV_SPLIT_BIT : CV_SPLIT_SCORE};
  (void)snprintf(deal->spec.mechanism.name, sizeof(deal->spec.mechanism.name), "%s", mechanisms[shape >> 5 & 3]);
  if ((shape & 0xc0) == 0xc0) {
    (void)snprintf(deal->spec.privatizer.name, sizeof(deal->spec.privatizer.name), "randomized-response");
    deal->spec.score_bits = CV_SPLIT_BIT;
    CV_REQUIRE(cv_params_set_number(&deal->spec.privatizer.params, "epsilon", 1) == CV_OK);
  }
  CV_REQUIRE(cv_privacy_init(&deal->spec, &privacy, NULL) == CV_OK);
  bool is_bit = deal->spec.score_bits == CV_SPLIT_BIT;
  CV_REQUIRE(cv_prio_init(&deal->prio, is_bit ? CV_PRIO_COUNT : CV_PRIO_SUM, cv_split_maximum(deal->spec.score_bits)) ==
             CV_OK);
  deal->database[0] = (uint8_t)id_of(world, deal);
  deal->deadline_ms = (shape & 0x83) == 0x83 ? world->wall_ms + 20000 : 0;
  deal->described = true;
}

static void on_open(struct world *world, struct cv_reader *in) {
  struct deal *deal = pick_deal(world, in);
  uint8_t how = cv_read_u8(in);
  if (!deal->described) {
    describe(world, deal, how);
    how = 0;
  }
  struct cv_share_open open = {.spec = deal->spec, .requester = "alice", .deadline_ms = deal->deadline_ms};
  struct cv_share_position *position = &open.position;
  *position = (struct cv_share_position){.campaign = id_of(world, deal),
                                         .plans = deal->plans,
                                         .batches = deal->batches,
                                         .closings = deal->closings,
                                         .plans_hash = deal->plans_hash,
                                         .batches_hash = deal->batches_hash,
                                         .closings_hash = deal->closings_hash};
  memcpy(open.database, deal->database, sizeof(open.database));
  open.spec.tokens += (how & 0xf8) == 0xf8;
  open.database[3] ^= (how & 0xf8) == 0xf0;
  position->plans += (how & 0xf8) == 0xe8;
  position->batches -= (how & 0xf8) == 0xe0 && position->batches > 0;
  position->closings -= (how & 0xf8) == 0xd8 && position->closings > 0;
  position->plans_hash.bytes[how & 7] ^= (how & 0xf8) == 0xd0;
  position->batches_hash.bytes[how & 7] ^= (how & 0xf8) == 0xc8;
  open.deadline_ms += (how & 0xf8) == 0xc0;
  if ((how & 0xf8) == 0xb8) { /* it has lost everything */
    *position = (struct cv_share_position){.campaign = position->campaign};
  }
  deal->lied = deal->lied || how >= 0xb8 || deal->said != CV_END_NONE || deal->over;
  if (world_broker(world) != NULL) {
    say(world, world_broker(world), &(struct cv_share_frame){.opens = 1, .open = &open});
  }
}

static bool has_open_arm(const struct deal *deal) {
  for (uint32_t i = 0; i < ARMS; i++) {
    if (deal->arm[i].want > 0) {
      return true;
    }
  }
  return false;
}

static void say_plan(struct world *world, const struct deal *deal, const struct cv_plan *plan, bool rude) {
  struct cv_share_plan message = {.campaign = id_of(world, deal), .plan = *plan};
  tell(world, deal, rude, &(struct cv_share_frame){.plans = 1, .plan = &message});
}

/* The next plan; the same again until it is opened; or (0xf0 and above) what contradicts it. */
static void on_plan(struct world *world, struct cv_reader *in) {
  struct deal *deal = pick_deal(world, in);
  uint8_t how = cv_read_u8(in);
  if (!deal->has_key) {
    return;
  }
  if (how >= 0xf0 && deal->plans > 0) {
    struct cv_want other = {.arm = 0, .tokens = 200};
    const struct cv_plan plan = {.number = deal->plans + (how == 0xff), .wants = 1, .want = &other};
    deal->lied = true;
    say_plan(world, deal, &plan, how >= 0xf8);
    return;
  }
  if (!deal->asks) {
    if (has_open_arm(deal)) {
      return;
    }
    deal->asked = (struct cv_plan){.number = deal->plans + 1, .wants = how & 3, .want = deal->want};
    for (uint32_t i = 0; i < deal->asked.wants; i++) {
      uint8_t byte = cv_read_u8(in);
      uint32_t arm = (how & 0x40) != 0 ? (byte >> 5) % ARMS : i; /* one may be named twice, or not be there */
      deal->want[i] = (struct cv_want){.arm = arm, .tokens = byte & 15};
    }
    deal->asks = true;
  }
  say_plan(world, deal, &deal->asked, (how & 0x80) != 0);
}

/* ---- tokens ---- */

static void bend(struct part *part, uint8_t how) {
  struct cv_share_pending *sent = &part->sent;
  part->bent = part->bent || how >= 6;
  sent->verifier[0] = how == 6 ? cv_field_add(sent->verifier[0], 1) : sent->verifier[0];
  sent->sealed[20] ^= how == 7;
  sent->counter += how == 8;
  sent->token.worker += how == 9;
  sent->token.slot += how == 10;
  sent->token.place += how == 11;
  sent->token.arm += how == 12;
  sent->token.nonce[5] ^= how == 13;
  sent->session[0] ^= how == 14;
  sent->token.plan += how == 15;
}

static const struct session *find_session(struct world *world, const struct deal *deal, uint8_t which) {
  for (size_t i = 0; i < SESSIONS; i++) {
    struct session *session = &world->session[(which + i) % SESSIONS];
    if (session->campaign == id_of(world, deal)) {
      return session;
    }
  }
  return NULL;
}

/* A worker's share for the broker, and its verifier; and the helper's seed, sealed. */
static void split(struct world *world, const struct deal *deal, struct part *part, const uint8_t *key) {
  uint8_t rand[CV_PRIO_MAX_RAND_BYTES], share[CV_PRIO_MAX_LEADER_BYTES], seed[CV_PRIO_SEED_BYTES];
  uint8_t bound[CV_SPLIT_BOUND_BYTES];
  struct cv_share_pending *sent = &part->sent;
  struct cv_rng_seeded bits;
  cv_rng_seeded_init(&bits, 77, ++world->shards, 0, 0);
  for (size_t i = 0; i < sizeof(rand); i++) {
    rand[i] = (uint8_t)cv_rng_u64(&bits.rng);
  }
  for (size_t i = 0; i < CV_SPLIT_NONCE_BYTES; i++) {
    sent->token.nonce[i] = (uint8_t)cv_rng_u64(&bits.rng);
  }
  part->score = cv_rng_u64(&bits.rng) % (cv_split_maximum(deal->spec.score_bits) + 1);
  cv_prio_shard(&deal->prio, deal->context.bytes, CV_DIGEST_BYTES, part->score, sent->token.nonce, rand, share, seed);
  sent->verifiers = (uint32_t)deal->prio.verifier_elements;
  CV_REQUIRE(cv_prio_verify_leader(&deal->prio, deal->key, deal->context.bytes, CV_DIGEST_BYTES, sent->token.nonce,
                                   share, deal->prio.leader_bytes, sent->verifier, &part->output));
  cv_split_bound(&deal->context, &sent->token, bound);
  world_seal(key, sent->counter, bound, seed, sent->sealed);
}

static bool find_place(const struct deal *deal, uint8_t from, uint32_t *ret_arm, uint64_t *ret_place) {
  for (uint32_t i = 0; i < ARMS; i++) {
    const struct arm *arm = &deal->arm[(from + i) % ARMS];
    for (uint64_t place = arm->first; place < arm->first + arm->want; place++) {
      if (arm->place[place] == FREE) {
        *ret_arm = (from + i) % ARMS;
        *ret_place = place;
        return true;
      }
    }
  }
  return false;
}

/* The next token for a free place; or, as only a worker does that is not honest, for the place or the slot of another
 * one. False if there is no place. */
enum twin { NO_TWIN, SAME_PLACE, SAME_SLOT };
static bool make_part(struct world *world, struct deal *deal, uint8_t which, const struct part *other, enum twin twin,
                      struct part *ret) {
  static const uint8_t no_key[CV_SPLIT_SEED_BYTES] = {0};
  const struct session *session = find_session(world, deal, which);
  struct cv_split_token *token = &ret->sent.token;
  *ret = (struct part){.last = 0};
  if (!find_place(deal, which >> 4, &token->arm, &token->place)) {
    return false;
  }
  uint64_t payer = deal->payers++, slots = deal->spec.tokens_per_worker;
  token->plan = deal->plans;
  token->slot = twin == SAME_SLOT ? other->sent.token.slot : (uint32_t)(payer % slots);
  token->worker = session == NULL ? 1 : session->first + payer / slots % (session->last - session->first + 1);
  token->worker = twin == SAME_SLOT ? other->sent.token.worker : token->worker;
  token->arm = twin == SAME_PLACE ? other->arm : token->arm;
  token->place = twin == SAME_PLACE ? other->place : token->place;
  ret->arm = token->arm;
  ret->place = token->place;
  if (session != NULL) {
    ret->first = session->first;
    ret->last = session->last;
    ret->sent.counter = world->session[session - world->session].counter++;
    memcpy(ret->sent.session, session->id, sizeof(ret->sent.session));
    ret->bent = session->revoked; /* as little as a changed one may it count */
  }
  split(world, deal, ret, session == NULL ? no_key : session->key);
  deal->arm[token->arm].place[token->place] = UNDERWAY;
  return true;
}

/* Its tokens as a message; `room` for TOKENS of them. */
static struct cv_share_batch message_of(const struct world *world, const struct deal *deal, uint64_t number,
                                        struct cv_share_pending *room) {
  const struct sent *sent = &deal->sent[number];
  for (size_t i = 0; i < sent->parts; i++) {
    room[i] = sent->part[i].sent;
  }
  return (struct cv_share_batch){
      .campaign = id_of(world, deal), .number = number, .tokens = sent->parts, .token = room};
}

static void on_batch(struct world *world, struct cv_reader *in) {
  struct deal *deal = pick_deal(world, in);
  uint8_t n = cv_read_u8(in), which = cv_read_u8(in), how = cv_read_u8(in);
  struct cv_share_pending room[TOKENS];
  if (!deal->has_key || deal->batches == BATCHES || deal->over || deal->said != CV_END_NONE) {
    return;
  }
  struct sent *sent = &deal->sent[deal->batches + 1];
  sent->parts = 0;
  while (sent->parts < 1U + n % TOKENS) {
    enum twin twin = sent->parts == 0 ? NO_TWIN : (enum twin)((how >> 4 & 3) % 3);
    if (!make_part(world, deal, which, &sent->part[0], twin, &sent->part[sent->parts])) {
      break;
    }
    sent->parts++;
  }
  if (sent->parts == 0) {
    return;
  }
  bend(&sent->part[sent->parts - 1], how & 15);
  struct cv_share_batch batch = message_of(world, deal, ++deal->batches, room);
  CV_REQUIRE(cv_chain_batch(&deal->batches_hash, &batch, cv_sha256) == CV_OK);
  tell(world, deal, (how & 0x80) != 0, &(struct cv_share_frame){.batches = 1, .batch = &batch});
}

/* Everything that is not booked, in order, or (0x20, 0x40) that a broker has which lost its last commit; or (0xf0 and
 * above) with something changed, or what is done long ago. */
static void on_resend(struct world *world, struct cv_reader *in) {
  struct deal *deal = pick_deal(world, in);
  uint8_t how = cv_read_u8(in);
  struct cv_share_pending room[TOKENS];
  uint64_t first = how >= 0xf8 ? 1 : (how & 0x20) != 0 ? deal->done + 1 : deal->booked + 1;
  deal->lied = deal->lied || how >= 0xf0;
  for (uint64_t i = first; i <= deal->batches; i++) {
    struct cv_share_batch batch = message_of(world, deal, i, room);
    if ((how & 0xf8) == 0xf0) {
      room[0].sealed[how & 7] ^= 1;
    }
    tell(world, deal, false, &(struct cv_share_frame){.batches = 1, .batch = &batch});
  }
  for (uint64_t i = 1; i <= deal->closings; i++) {
    if ((!deal->closing[i].has_half || (how & 0x40) != 0) && how < 0x80) {
      struct cv_share_close close = deal->closing[i].sent;
      tell(world, deal, false, &(struct cv_share_frame){.closes = 1, .close = &close});
    }
  }
}

static void on_done(struct world *world, struct cv_reader *in) {
  struct deal *deal = pick_deal(world, in);
  uint8_t how = cv_read_u8(in);
  struct cv_share_number done = {.campaign = id_of(world, deal), .number = deal->booked};
  if (how >= 0xf0) {
    done.number = deal->batches + (how & 1);
    deal->lied = deal->lied || done.number != deal->booked;
  }
  deal->done = deal->told ? done.number : deal->done;
  tell(world, deal, false, &(struct cv_share_frame){.dones = 1, .done = &done});
}

/* ---- closings ---- */

/* An arm whose places are all booked; or one whose data are used up. The broker commits it. */
static void close_arm(struct world *world, struct deal *deal, uint32_t index, bool discard) {
  struct arm *arm = &deal->arm[index];
  struct closing *closing = &deal->closing[++deal->closings];
  *closing = (struct closing){.share = {arm->past_share, arm->share}, .exact = {arm->past_exact, arm->exact}};
  closing->sent = (struct cv_share_close){.campaign = id_of(world, deal),
                                          .number = deal->closings,
                                          .plan = deal->plans,
                                          .plan_hash = deal->plans_hash,
                                          .chain = arm->chain,
                                          .arm = index,
                                          .count = arm->filled,
                                          .discard = discard};
  cv_chain_close(&deal->closings_hash, &closing->sent, cv_sha256);
  arm->past_share = cv_field_add(arm->past_share, arm->share);
  arm->past_exact += arm->exact;
  arm->first += arm->filled;
  arm->want = arm->filled = arm->share = arm->exact = 0;
  arm->spent = discard;
  memset(arm->place + arm->first, FREE, PLACES - arm->first);
  struct cv_share_close close = closing->sent;
  tell(world, deal, false, &(struct cv_share_frame){.closes = 1, .close = &close});
}

/* What an honest broker never says about an arm with an open epoch. */
static void lie_about(struct world *world, struct deal *deal, uint32_t index, uint8_t how) {
  const struct arm *arm = &deal->arm[index];
  struct cv_share_close close = {.campaign = id_of(world, deal),
                                 .number = deal->closings + 1,
                                 .plan = deal->plans,
                                 .plan_hash = deal->plans_hash,
                                 .chain = arm->chain,
                                 .arm = index,
                                 .count = arm->want};
  bool is_full = arm->filled == arm->want;
  switch (how & 7) {
    case 0:
      close.count = arm->filled;
      close.chain.bytes[0] ^= is_full;
      break;
    case 1:
      close.chain.bytes[how >> 3] ^= 1;
      break;
    case 2:
      close.plan_hash.bytes[how >> 3] ^= 1;
      break;
    case 3:
      close.arm = (index + 1) % ARMS;
      close.chain.bytes[0] ^= 1;
      break;
    case 4:
      close.number++;
      break;
    case 5:
      close.plan--;
      break;
    default:
      close.chain.bytes[1] ^= is_full;
      break;
  }
  deal->lied = true;
  tell(world, deal, false, &(struct cv_share_frame){.closes = 1, .close = &close});
}

static bool waits_for_tokens(const struct deal *deal, uint32_t index) {
  for (uint64_t place = deal->arm[index].first; place < deal->arm[index].first + deal->arm[index].want; place++) {
    if (deal->arm[index].place[place] == UNDERWAY) {
      return true;
    }
  }
  return false;
}

static void on_close(struct world *world, struct cv_reader *in) {
  struct deal *deal = pick_deal(world, in);
  uint8_t how = cv_read_u8(in);
  uint32_t index = cv_read_u8(in) % ARMS;
  struct arm *arm = &deal->arm[index];
  if (arm->want == 0 || deal->closings == CLOSINGS || deal->over) {
    return;
  }
  if (how >= 0xc0) {
    lie_about(world, deal, index, how);
  } else if (how >= 0xb0 && !waits_for_tokens(deal, index)) {
    close_arm(world, deal, index, true);
  } else if (arm->filled == arm->want) {
    close_arm(world, deal, index, false);
  }
}

static void on_over(struct world *world, struct cv_reader *in) {
  struct deal *deal = pick_deal(world, in);
  uint8_t how = cv_read_u8(in);
  if (deal->said == CV_END_NONE) {
    deal->said = (enum cv_end)(1 + how % (CV_END_COUNT - 1));
  }
  struct cv_share_end over = {.campaign = id_of(world, deal), .reason = deal->said};
  tell(world, deal, how >= 0x80, &(struct cv_share_frame){.overs = 1, .over = &over});
}

/* ---- everything else ---- */

/* The next bytes, as if from the network. */
static void on_raw(struct world *world, struct cv_reader *in) {
  static struct cv_arena arena;
  struct peer *peer = pick_peer(world, in);
  size_t n = cv_read_u8(in), left = (size_t)(in->end - in->at);
  n = n < left ? n : left;
  const uint8_t *bytes = cv_read(in, n);
  struct cv_share_frame frame;
  if (arena.base == NULL) {
    CV_REQUIRE(cv_arena_init(&arena, CV_ARENA_BYTES) == CV_OK);
  }
  if (peer == NULL || bytes == NULL || cv_share_decode(bytes, n, &arena, &frame) != CV_OK) {
    return;
  }
  for (size_t i = 0; i < CAMPAIGNS && peer->who == BROKER; i++) {
    world->deal[i].lied = true;
  }
  say(world, peer, &frame);
}

static void on_time(struct world *world, struct cv_reader *in) {
  uint8_t by = cv_read_u8(in);
  world->now_ms += (by & 0x7fU) * 50U;
  world->wall_ms += (by & 0x80) != 0 ? 3000 : (by & 0x7fU) * 50U;
  cv_cobroker_tick(world->core, world->now_ms, world->wall_ms);
}

static void on_revoke(struct world *world, struct cv_reader *in) {
  world_revoke(world, 1 + cv_read_u8(in) % (IDENTITIES - 1));
}

static void on_renew(struct world *world, struct cv_reader *in) {
  world_renew(world, cv_read_u8(in) & 3);
}

void play_turn(struct world *world) {
  world_flush(world);
  world_store(world);
}

bool play_crash(struct world *world, bool stored) {
  if (world->in_flight && world->stores && stored) {
    disk_commit(&world->disk, &world->batch);
  }
  return world_restart(world);
}

static bool damage(struct world *world, struct cv_reader *in) {
  uint8_t which = cv_read_u8(in), at = cv_read_u8(in), with = cv_read_u8(in);
  if (world->disk.rows == 0) {
    return true;
  }
  struct disk_row *row = &world->disk.row[which % world->disk.rows];
  world->damaged = true;
  if (with == 0) {
    row->bytes.len = row->bytes.len * at / 256;
  } else if (row->bytes.len > 0) {
    row->bytes.data[(at < 128 ? at : row->bytes.len - 1 - (at - 128U)) % row->bytes.len] ^= with;
  }
  return world_restart(world);
}

typedef void event_fn(struct world *world, struct cv_reader *in);
static event_fn *const events[] = {on_join,   on_leave, on_enter, on_open, on_plan, on_batch,
                                   on_resend, on_done,  on_close, on_over, on_raw,  on_time};

bool play_event(struct world *world, struct cv_reader *in) {
  uint8_t what = cv_read_u8(in) % 24;
  if (what < CV_COUNT(events)) {
    events[what](world, in);
    return true;
  }
  switch (what) {
    case 12:
      world_flush(world);
      return true;
    case 13:
      world_store(world);
      return true;
    case 14:
      return play_crash(world, true);
    case 15:
      return play_crash(world, false);
    case 16:
      return damage(world, in);
    case 17:
      on_revoke(world, in);
      return true;
    case 18:
      on_renew(world, in);
      return true;
    default:
      play_turn(world);
      return true;
  }
}
