/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the binary seeds of the corpora from real encodings: fuzz-seeds FOLDER makes FOLDER/HARNESS/seed-NAME. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "broker/archive.h"
#include "broker/recover.h"
#include "deploy/launcher/export.h"
#include "deploy/launcher/result_json.h"
#include "proto/codec/crowd.h"
#include "proto/codec/order.h"
#include "proto/codec/rank.h"
#include "proto/codec/share.h"
#include "tests/fuzz/cobroker_play.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/mechanism.h"
#include "thirdparty/policy/policy.h"

static const char *folder;
static struct cv_arena arena;

static void save(const char *harness, const char *name, struct cv_buf *buf) {
  char path[1024];
  CV_REQUIRE(cv_buf_ok(buf));
  (void)snprintf(path, sizeof(path), "%s/%s", folder, harness);
  (void)mkdir(path, 0777);
  (void)snprintf(path, sizeof(path), "%s/%s/seed-%s", folder, harness, name);
  FILE *file = fopen(path, "wb");
  CV_REQUIRE(file != NULL && fwrite(buf->data, 1, buf->len, file) == buf->len && fclose(file) == 0);
  cv_buf_fini(buf);
}

static void put_record(struct cv_buf *out, uint8_t kind, uint8_t argument, struct cv_buf *bytes) {
  cv_buf_put_u8(out, kind);
  cv_buf_put_u8(out, argument);
  cv_buf_put_u8(out, (uint8_t)bytes->len);
  cv_buf_put_u8(out, (uint8_t)(bytes->len >> 8));
  cv_buf_put(out, bytes->data, bytes->len);
  cv_buf_fini(bytes);
}

static struct cv_spec make_spec(void) {
  struct cv_spec spec = {.name = "fuzz",
                         .arms = 4,
                         .epsilon_micro = 250000,
                         .tokens_per_worker = 2,
                         .tokens = 100000,
                         .deadline_ms = 3600000,
                         .idle_ms = 30000,
                         .policy = {.name = "ppar"},
                         .mechanism = {.name = "hybrid"},
                         .privatizer = {.name = "none"}};
  CV_REQUIRE(cv_params_set_number(&spec.policy.params, "alpha", 0.1) == CV_OK);
  CV_REQUIRE(cv_params_set_number(&spec.policy.params, "tokens_per_round", 1000) == CV_OK);
  CV_REQUIRE(cv_params_set_text(&spec.policy.params, "settled", "hold") == CV_OK);
  return spec;
}

static struct cv_want wants[] = {{0, 1000}, {1, 1000}, {2, 1000}, {3, 1000}};
static struct cv_standing standings[] = {
    {.arm = 0, .rank_class = 1, .tokens = 1000, .mean = 0.8, .radius = 0.1},
    {.arm = 1, .rank_class = 0, .tokens = 1000, .mean = 0.3, .radius = 0.1},
    {.arm = 2, .rank_class = 1, .rank_last = 2, .held = CV_HELD_BOUNDARY, .tokens = 1000, .mean = 0.7, .radius = 0.01}};
static const struct cv_plan plan = {.number = 1, .wants = 4, .want = wants};
static const struct cv_release release = {.number = 1,
                                          .plan = 1,
                                          .arm = 2,
                                          .tokens = 1000,
                                          .noisy_sum = 734003200,
                                          .noise = {.groups = 1, .group = {{2, 1}}}};

static struct cv_terms make_split_terms(void) {
  return (struct cv_terms){.id = 1,
                           .name = "fuzz",
                           .requester = "alice",
                           .privatizer = {.name = "none"},
                           .mechanism = {.name = "hybrid"},
                           .epsilon_micro = 250000,
                           .tokens_per_worker = 1,
                           .arms = 4,
                           .lease_ms = 5000,
                           .split = {.score_bits = CV_SPLIT_SCORE, .database = {1}, .spec = {{2}}, .key = {{3}}}};
}

static void crowd(void) {
  uint64_t workers[] = {1, 17, 500000};
  int64_t value = 1 << 20;
  uint32_t wishes[] = {0, CV_WISH_NONE, 7};
  struct cv_arrive arrive = {.workers = 3, .worker = workers, .wish = wishes, .credit = 64};
  struct cv_token token = {.ticket = {1}, .values = 1, .value = &value};
  struct cv_terms terms = make_split_terms();
  terms.split = (struct cv_split){.score_bits = 0};
  struct cv_assign assign = {
      .campaign = 1, .worker = 17, .ticket = {2}, .arms = 1, .arm.one = 3, .place = 9, .round = 30, .switched = 300};
  struct cv_crowd_ack ack = {.ticket = {3}, .verdict = CV_VERDICT_REFUSED, .why = "late"};
  struct cv_backoff backoff = {.workers = 2, .worker = workers, .delay_ms = 100, .why = "wait", .campaign = 1};
  struct cv_decline decline[] = {{.campaign = 1, .why = "epsilon"}, {.why = "limit", .has_ticket = true}};
  struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION, .program = "fuzz"};
  struct cv_crowd_frame up = {.hello = hello,
                              .arrives = 1,
                              .arrive = &arrive,
                              .tokens = 1,
                              .token = &token,
                              .declines = CV_COUNT(decline),
                              .decline = decline};
  struct cv_crowd_frame down = {.goodbye = "bye",
                                .campaigns = 1,
                                .campaign = &terms,
                                .assigns = 1,
                                .assign = &assign,
                                .acks = 1,
                                .ack = &ack,
                                .backoffs = 1,
                                .backoff = &backoff,
                                .dones = 1,
                                .done = workers};
  struct cv_buf a = {0}, b = {0};
  CV_REQUIRE(cv_crowd_encode(&up, &arena, &a) == CV_OK && cv_crowd_encode(&down, &arena, &b) == CV_OK);
  save("crowd", "up", &a);
  save("crowd", "down", &b);
  terms.pairs = true;
  assign.opponent = 2;
  struct cv_crowd_frame pairs = {.campaigns = 1, .campaign = &terms, .assigns = 1, .assign = &assign};
  struct cv_buf c = {0};
  CV_REQUIRE(cv_crowd_encode(&pairs, &arena, &c) == CV_OK);
  save("crowd", "pairs", &c);
  const uint32_t arms[] = {0, 3};
  struct cv_decline used_up[] = {{.why = "used up", .has_ticket = true, .used_up = true},
                                 {.why = "used up", .campaign = 1, .used_up = true, .arms = 2, .arm = arms}};
  struct cv_crowd_frame spent = {.declines = CV_COUNT(used_up), .decline = used_up};
  struct cv_buf d = {0};
  CV_REQUIRE(cv_crowd_encode(&spent, &arena, &d) == CV_OK);
  save("crowd", "used-up", &d);
}

static struct cv_spec make_split_spec(void) {
  struct cv_spec spec = make_spec();
  spec.brokers = 2;
  spec.score_bits = CV_SPLIT_SCORE;
  return spec;
}

static void crowd_of_two(void) {
  static const uint8_t leader[CV_SPLIT_LEADER_MOST] = {9};
  static const struct cv_token_share share = {
      .nonce = {4}, .leader_bytes = sizeof(leader), .leader = leader, .session = {5}, .counter = 6, .sealed = {7}};
  struct cv_terms terms = make_split_terms();
  struct cv_token token = {.ticket = {1}, .share = &share};
  struct cv_assign assign = {.campaign = 1,
                             .worker = 17,
                             .ticket = {2},
                             .arms = 1,
                             .arm.one = 3,
                             .place = 9,
                             .round = 30,
                             .plan = 2,
                             .slot = 1};
  struct cv_crowd_frame frame = {
      .campaigns = 1, .campaign = &terms, .tokens = 1, .token = &token, .assigns = 1, .assign = &assign};
  struct cv_buf out = {0};
  CV_REQUIRE(cv_crowd_encode(&frame, &arena, &out) == CV_OK);
  save("crowd", "two-brokers", &out);
}

static void share_with_workers(void) {
  uint64_t campaigns[] = {1, 300};
  struct cv_share_session session = {.terms = make_split_terms(), .id = {8}};
  struct cv_share_turned turned = {.campaign = 2, .why = "not open yet", .again_ms = 500};
  struct cv_share_frame frame = {.hello = {.present = true, .version = CV_WIRE_VERSION, .program = "fuzz"},
                                 .enters = 2,
                                 .enter = campaigns,
                                 .sessions = 1,
                                 .session = &session,
                                 .turned = 1,
                                 .turn = &turned};
  struct cv_buf out = {0};
  CV_REQUIRE(cv_share_encode(&frame, &arena, &out) == CV_OK);
  save("share", "workers", &out);
}

static void share_down(void) {
  struct cv_share_pending token[] = {{.token = {.plan = 1, .arm = 3, .place = 9, .worker = 17, .slot = 1},
                                      .counter = 1,
                                      .verifiers = 3,
                                      .verifier = {1, 2, UINT64_MAX}},
                                     {.token = {.plan = 1, .worker = 18}, .verifiers = 1}};
  struct cv_share_open open = {
      .spec = make_split_spec(), .position = {.campaign = 1, .plans = 1}, .requester = "alice", .deadline_ms = 1};
  struct cv_share_plan opened = {.campaign = 1, .plan = plan};
  struct cv_share_batch batch = {.campaign = 1, .number = 1, .tokens = CV_COUNT(token), .token = token};
  struct cv_share_number done = {.campaign = 1, .number = 1};
  struct cv_share_close close[] = {{.campaign = 1, .number = 1, .plan = 1, .arm = 3, .count = 1000},
                                   {.campaign = 1, .number = 2, .plan = 1, .discard = true}};
  struct cv_share_end over = {.campaign = 1, .reason = CV_END_CANCELLED};
  struct cv_share_frame frame = {.opens = 1,
                                 .open = &open,
                                 .plans = 1,
                                 .plan = &opened,
                                 .batches = 1,
                                 .batch = &batch,
                                 .dones = 1,
                                 .done = &done,
                                 .closes = CV_COUNT(close),
                                 .close = close,
                                 .overs = 1,
                                 .over = &over};
  struct cv_buf out = {0};
  CV_REQUIRE(cv_share_encode(&frame, &arena, &out) == CV_OK);
  save("share", "down", &out);
}

static void share_up(void) {
  uint8_t verdict[] = {CV_ANSWER_ACCEPTED, CV_ANSWER_PROOF, CV_ANSWER_PLACE, CV_ANSWER_WORKER, CV_ANSWER_SESSION};
  struct cv_share_opened opened[] = {{.position = {.campaign = 1, .batches = 1}, .key = {7}},
                                     {.position = {.campaign = 2}, .refused = "epsilon"}};
  struct cv_share_number plan_opened = {.campaign = 1, .number = 1};
  struct cv_share_refused refused = {.campaign = 1, .plan = 2, .reason = CV_END_TOKENS, .why = "none left", .asked = 5};
  struct cv_share_answers answers = {.campaign = 1, .number = 1, .answers = CV_COUNT(verdict), .answer = verdict};
  struct cv_share_closed closed = {.campaign = 1, .number = 1, .half = UINT64_MAX - UINT32_MAX};
  struct cv_share_end ended = {.campaign = 1, .reason = CV_END_FROZEN, .why = "another key"};
  struct cv_share_frame frame = {.goodbye = "bye",
                                 .opened = CV_COUNT(opened),
                                 .open_answer = opened,
                                 .plans_opened = 1,
                                 .plan_opened = &plan_opened,
                                 .plans_refused = 1,
                                 .plan_refused = &refused,
                                 .answers = 1,
                                 .answer = &answers,
                                 .closed = 1,
                                 .half = &closed,
                                 .ended = 1,
                                 .end = &ended};
  struct cv_buf out = {0};
  CV_REQUIRE(cv_share_encode(&frame, &arena, &out) == CV_OK);
  save("share", "up", &out);
}

static void rank(void) {
  struct cv_rank_open open = {.spec = make_spec(), .position = {.campaign = 1}, .has_seed = true, .seed = 9};
  struct cv_rank_plan record = {.campaign = 1, .plan = plan, .standings = CV_COUNT(standings), .standing = standings};
  struct cv_rank_plan bare = {.campaign = 1, .plan = plan};
  struct cv_rank_release sent[] = {{.campaign = 1, .release = release},
                                   {.campaign = 1, .release = {.number = 2, .plan = 1, .arm = 1, .last = true}}};
  struct cv_rank_number number = {.campaign = 1, .number = 1};
  struct cv_rank_refused refused = {.campaign = 1, .plan = 1, .reason = CV_END_TOKENS, .why = "none left", .asked = 5};
  struct cv_rank_stop stop = {.campaign = 1, .reason = CV_END_CANCELLED};
  struct cv_rank_opened opened = {.position = {.campaign = 1}, .seed = 9};
  struct cv_rank_result result = {
      .campaign = 1, .reason = CV_END_COMPLETE, .standings = CV_COUNT(standings), .standing = standings};
  uint64_t closed = 1;
  struct cv_rank_frame down = {.opens = 1,
                               .open = &open,
                               .recorded = 1,
                               .record = &bare,
                               .releases = CV_COUNT(sent),
                               .release = sent,
                               .accepted = 1,
                               .accept = &number,
                               .refused = 1,
                               .refuse = &refused,
                               .stops = 1,
                               .stop = &stop,
                               .closed = 1,
                               .close = &closed};
  struct cv_rank_frame up = {.opened = 1,
                             .answer = &opened,
                             .acks = 1,
                             .ack = &number,
                             .plans = 1,
                             .plan = &record,
                             .results = 1,
                             .result = &result};
  struct cv_buf a = {0}, b = {0};
  CV_REQUIRE(cv_rank_encode(&down, &arena, &a) == CV_OK && cv_rank_encode(&up, &arena, &b) == CV_OK);
  save("rank", "down", &a);
  save("rank", "up", &b);
}

static void order(void) {
  struct cv_gold_item known[] = {{.item = 1, .answer = 1 << 20}, {.item = 3}};
  const struct cv_gold gold = {.items = 2,
                               .item = known,
                               .tolerance = 1 << 18,
                               .error_micro = 100000,
                               .level_micro = 1000,
                               .share_micro = 100000,
                               .epsilon_micro = 50000};
  struct cv_plan plans[] = {plan};
  struct cv_release releases[] = {release};
  int64_t neutral[] = {-4, 71, 0, 9};
  struct cv_progress progress = {.campaign = 1, .name = "fuzz", .tokens = 5, .tokens_limit = 10, .arms = 4};
  struct cv_account accounts[] = {{125000, 0, 1, 1000}, {250000, 125000, 1, 1000}};
  struct cv_order_frame frames[] = {
      {.kind = CV_ORDER_SUBMIT, .as.submit = {.client_key = {1}, .spec = make_spec()}},
      {.kind = CV_ORDER_WATCH, .as.watch = {.campaign = 1, .describe = true, .standings = true}},
      {.kind = CV_ORDER_CANCEL, .as.campaign = 1},
      {.kind = CV_ORDER_EXPORT, .as.campaign = 1},
      {.kind = CV_ORDER_STATUS},
      {.kind = CV_ORDER_ACCEPTED, .as.accepted = {.campaign = 1, .existed = true}},
      {.kind = CV_ORDER_PROGRESS, .as.progress = progress},
      {.kind = CV_ORDER_FINISHED,
       .as.finished = {.progress = progress, .standings = CV_COUNT(standings), .standing = standings}},
      {.kind = CV_ORDER_PART,
       .as.part = {.campaign = 1,
                   .first = true,
                   .spec = make_spec(),
                   .seed = 9,
                   .progress = progress,
                   .plans = 1,
                   .plan = plans,
                   .releases = 1,
                   .release = releases,
                   .standings = CV_COUNT(standings),
                   .standing = standings,
                   .last = true}},
      {.kind = CV_ORDER_STATUS_ANSWER, .as.status = {.campaigns = 1, .campaign = &progress, .broker = "b", .term = 2}},
      {.kind = CV_ORDER_ERROR, .as.error = "no"},
      {.kind = CV_ORDER_LEDGER, .as.ledger = {.has_plan = true, .plan = make_spec(), .gold = gold}},
      {.kind = CV_ORDER_STATEMENT,
       .as.statement = {.campaign = 1,
                        .name = "fuzz",
                        .mechanism = "hybrid",
                        .privatizer = "none",
                        .guarantee = "event level",
                        .epsilon_micro = 250000,
                        .arms = 2,
                        .account = accounts}},
      {.kind = CV_ORDER_DESCRIPTION, .as.description = {.campaign = 1, .spec = make_spec()}},
      {.kind = CV_ORDER_PURGE, .as.campaign = 1},
      {.kind = CV_ORDER_PURGED, .as.purged = 2},
      {.kind = CV_ORDER_STANDINGS,
       .as.standings = {.campaign = 1, .standings = CV_COUNT(standings), .standing = standings}},
      {.kind = CV_ORDER_SUBMIT, .as.submit = {.client_key = {2}, .spec = make_spec(), .gold = gold}},
      {.kind = CV_ORDER_PART,
       .as.part = {.campaign = 1, .neutrals = 4, .neutral = neutral, .neutral_epsilon_micro = 9}},
  };
  for (size_t i = 0; i < CV_COUNT(frames); i++) {
    struct cv_buf out = {0};
    char name[16];
    (void)snprintf(name, sizeof(name), "%zu", i);
    CV_REQUIRE(cv_order_encode(&frames[i], &arena, &out) == CV_OK);
    save("order", name, &out);
  }
}

static void mechanism_state(const char *name, unsigned releases, struct cv_buf *out) {
  struct cv_rng_seeded seeded;
  const struct cv_mechanism_law law = mechanism_law(name, 250000, 100);
  struct cv_mechanism *mechanism = mechanism_new(&law);
  cv_rng_seeded_init(&seeded, 1, CV_RNG_NOISE, 0, 0);
  for (unsigned i = 0; i < releases; i++) {
    cv_mechanism_draw(mechanism, &seeded.rng);
    (void)cv_mechanism_release(mechanism, 1 << 20);
  }
  cv_mechanism_draw(mechanism, &seeded.rng);
  cv_mechanism_save(mechanism, out);
  cv_mechanism_free(mechanism);
}

static void mechanism(void) {
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    const char *name = cv_mechanism_at(i)->traits->name;
    struct cv_buf state = {0};
    cv_buf_put_u8(&state, (uint8_t)i);
    mechanism_state(name, 6, &state);
    save("mechanism", name, &state);
  }
}

static void policy_state(struct cv_buf *out) {
  struct cv_spec spec = make_spec();
  const struct cv_param *bad;
  struct cv_policy *policy;
  struct cv_policy_step step = {0};
  CV_REQUIRE(cv_policy_check(&spec.policy, &bad, NULL) == CV_OK && cv_policy_new(&spec, 9, &policy) == CV_OK);
  CV_REQUIRE(cv_policy_step(policy, 1, &step) == CV_OK);
  cv_policy_apply(policy, &release);
  cv_policy_save(policy, out);
  cv_policy_step_fini(&step);
  cv_policy_free(policy);
}

/* A campaign of pairs whose plan names opponents. */
static void rank_of_pairs(void) {
  static struct cv_want named[] = {{0, 100, 2}, {3, 100, 2}};
  struct cv_rank_open open = {.spec = make_spec(), .position = {.campaign = 1}};
  struct cv_rank_plan record = {.campaign = 1, .plan = {.number = 1, .wants = 2, .want = named}};
  struct cv_rank_frame frame = {.opens = 1, .open = &open, .recorded = 1, .record = &record};
  struct cv_buf out = {0};
  open.spec.pairs = true;
  CV_REQUIRE(cv_rank_encode(&frame, &arena, &out) == CV_OK);
  save("rank", "pairs", &out);
}

/* The state of a bandit's or a recruitment's policy after a first round of all arms. */
static void state_after_a_round(const char *name) {
  static uint64_t costs[] = {1000000, 2000000, 500000, 1000000};
  struct cv_spec spec = {.arms = 4,
                         .tokens_per_worker = 1,
                         .tokens = 100000,
                         .mechanism = {.name = "none"},
                         .privatizer = {.name = "none"}};
  const struct cv_param *bad;
  struct cv_policy *policy;
  struct cv_buf out = {0};
  (void)snprintf(spec.policy.name, sizeof(spec.policy.name), "%s", name);
  spec.pairs = cv_policy_find(name)->duels;
  if (cv_policy_find(name)->kind == CV_POLICY_RECRUITMENT) {
    spec.cost_micro = costs;
    spec.budget_micro = UINT64_C(1) << 40;
  }
  CV_REQUIRE(cv_policy_check(&spec.policy, &bad, NULL) == CV_OK && cv_policy_new(&spec, 9, &policy) == CV_OK);
  struct cv_policy_step step = {0};
  CV_REQUIRE(!spec.pairs || cv_policy_step(policy, 1, &step) == CV_OK); /* it names opponents before any release */
  cv_policy_step_fini(&step);
  for (uint32_t arm = 0; arm < spec.arms; arm++) {
    const struct cv_release first = {.number = arm + 1, .plan = 1, .arm = arm, .tokens = 1, .noisy_sum = arm << 18};
    cv_policy_apply(policy, &first);
  }
  cv_policy_save(policy, &out);
  cv_policy_free(policy);
  save("policy", name, &out);
}

static void put_arm(struct cv_buf *out, uint64_t number) {
  cv_buf_put_u64(out, number);
  cv_buf_put_u64(out, 1000);
  cv_buf_put_u32(out, number == 0 ? 0 : 1000);
  cv_buf_put_u32(out, number == 0 ? 0 : 5);
  cv_buf_put_u64(out, 3 << 20);
  mechanism_state("hybrid", 1, out);
}

static void put_state(struct cv_buf *out, uint32_t phase, uint32_t end) {
  struct cv_buf row = {0};
  cv_buf_put_u32(&row, phase);
  cv_buf_put_u32(&row, end);
  cv_buf_put_u8(&row, 1);
  for (int i = 0; i < 3; i++) {
    cv_buf_put_u64(&row, 9);
  }
  put_record(out, 6, 0, &row);
}

/* A campaign, its plan, its first release and its standings. */
static void put_history(struct cv_buf *out) {
  struct cv_spec spec = make_spec();
  struct cv_buf row = {0};
  cv_buf_put_bytes(&row, "alice", 5);
  cv_buf_put(&row, "0123456789abcdef", CV_CLIENT_KEY_BYTES);
  cv_buf_put_u64(&row, 500);
  cv_buf_put_u64(&row, 5000);
  cv_spec_encode(&spec, &row);
  put_record(out, 0, 0, &row);
  cv_buf_put_u32(&row, plan.wants);
  for (uint32_t i = 0; i < plan.wants; i++) {
    cv_buf_put_u32(&row, wants[i].arm);
    cv_buf_put_u32(&row, wants[i].tokens);
  }
  put_record(out, 1, 0, &row);
  cv_buf_put_u64(&row, 1);
  cv_buf_put_u32(&row, 2);
  cv_buf_put_u32(&row, 1);
  cv_buf_put_u64(&row, 1000);
  cv_buf_put_u64(&row, 734003200);
  put_record(out, 2, 0, &row);
  cv_buf_put_u32(&row, 2);
  cv_buf_put_u64(&row, 125000);
  cv_buf_put_u64(&row, 0);
  put_record(out, 3, 0, &row);
  cv_buf_put_u32(&row, spec.arms);
  for (uint32_t i = 0; i < spec.arms; i++) {
    cv_buf_put_u32(&row, i % 2);
    cv_buf_put_u64(&row, 1000);
    cv_buf_put_f64(&row, 0.5);
    cv_buf_put_f64(&row, 0.1);
  }
  put_record(out, 5, 0, &row);
}

static void put_recovery(struct cv_buf *out, struct cv_buf *row) {
  const struct cv_recovery recovery = {
      .wall_ms = 600, .commit = 7, .anchored = 9, .first = 3, .last = 4, .ended = 1, .floor_micro = 500000};
  cv_recovery_put(&recovery, row);
  put_record(out, 4, 0, row);
}

/* Campaigns that have ended, purged or not, and forgotten ones. */
static void put_records(struct cv_buf *out, struct cv_buf *row) {
  const struct cv_past past = {.count = 2, .cost_micro = 9, .totals = {.campaigns = 2, .releases = 4, .tokens = 8}};
  cv_past_put(&past, row);
  put_record(out, 9, 0, row);
  for (uint8_t i = 1; i < 4; i++) {
    struct cv_owner owner = {.name = "alice"};
    struct cv_ended ended = {.owner = &owner,
                             .client_key = {i},
                             .progress = {.name = "fuzz",
                                          .tokens = 60,
                                          .tokens_limit = 100,
                                          .releases = 600,
                                          .plans = 3,
                                          .arms = 2,
                                          .decided = 1,
                                          .classes = 1,
                                          .end = i == 1 ? CV_END_REFUSED : CV_END_CANCELLED,
                                          .why = "co-broker: no"},
                             .ended_wall_ms = 1000U * i,
                             .purged = i > 1,
                             .is_clean = i > 2};
    cv_ended_put(&ended, row);
    put_record(out, 9, (uint8_t)(i << 1), row);
  }
}

static void broker_rows(void) {
  struct cv_buf running = {0}, ended = {0}, records = {0}, row = {0}, arm = {0};
  put_history(&running);
  put_state(&running, 1, 0);
  put_recovery(&running, &row);
  cv_buf_put_u64(&row, 0);
  put_arm(&row, 1);
  put_record(&running, 7, 2 << 1, &row);
  cv_buf_put_u64(&row, 0);
  for (int i = 0; i < 512; i++) {
    cv_buf_put_u64(&row, i == 0 ? 31 : 0);
  }
  put_record(&running, 7, 0, &row);
  cv_buf_put_u32(&row, 1);
  cv_buf_put_u64(&row, 1005);
  cv_buf_put_u64(&row, 17);
  cv_buf_put_u32(&row, 0);
  cv_buf_put_u32(&row, 1);
  cv_buf_put_u32(&row, 1);
  cv_buf_put_u32(&row, 0);
  cv_buf_put_u32(&row, 6);
  cv_buf_put_u64(&row, 4 << 20);
  cv_buf_put_u32(&row, 1);
  cv_buf_put_u32(&row, 1);
  put_arm(&arm, 1);
  cv_buf_put_bytes(&row, arm.data, arm.len);
  cv_buf_fini(&arm);
  put_record(&running, 8, 0x50, &row);
  save("broker_rows", "running", &running);
  put_history(&ended);
  put_state(&ended, 3, CV_END_COMPLETE);
  save("broker_rows", "ended", &ended);
  put_records(&records, &row);
  save("broker_rows", "records", &records);
}

static void thirdparty_rows(void) {
  struct cv_spec spec = make_spec();
  const struct cv_param *bad;
  struct cv_buf out = {0}, row = {0};
  CV_REQUIRE(cv_policy_check(&spec.policy, &bad, NULL) == CV_OK);
  const uint64_t numbers[] = {1, 0, 1, 1, 0};
  for (size_t i = 0; i < CV_COUNT(numbers); i++) {
    cv_buf_put_u64(&out, numbers[i]);
  }
  cv_buf_put_u8(&out, 0);
  cv_buf_put_u8(&out, 0);
  cv_spec_encode(&spec, &out);
  for (uint32_t i = 0; i < plan.wants; i++) {
    cv_buf_put_u32(&row, wants[i].arm);
    cv_buf_put_u32(&row, wants[i].tokens);
  }
  put_record(&out, 0, 0, &row);
  cv_buf_put_u64(&row, 1);
  cv_buf_put_u64(&row, 1);
  cv_buf_put_u32(&row, 2);
  cv_buf_put_u64(&row, 2000);
  cv_buf_put_u64(&row, 734003200);
  cv_buf_put_f64(&row, 2);
  put_record(&out, 1, 0, &row);
  policy_state(&row);
  put_record(&out, 2, 0, &row);
  save("thirdparty_rows", "waiting", &out);
}

static void export_file(void) {
  struct cv_plan plans[] = {plan};
  struct cv_release releases[] = {release};
  const struct cv_export all = {.campaign = 1,
                                .begun = true,
                                .complete = true,
                                .spec = make_spec(),
                                .seed = 9,
                                .progress = {.campaign = 1, .name = "fuzz", .arms = 4},
                                .plan = plans,
                                .plans = 1,
                                .release = releases,
                                .releases = 1,
                                .standing = standings,
                                .standings = CV_COUNT(standings)};
  struct cv_buf out = {0};
  char *text = NULL;
  size_t n = 0;
  FILE *to = open_memstream(&text, &n);
  CV_REQUIRE(to != NULL && cv_export_write_json(&all, to) == CV_OK && fclose(to) == 0);
  cv_buf_put(&out, text, n);
  free(text);
  save("export", "one", &out);
}

/* A result of each kind: with the truth, without it, and of a policy that does not rank. */
static void result_files(void) {
  static const double means[] = {0.8, 0.3, 0.3, 0.1};
  static const char *const names[] = {"truth", "plain", "pulls"};
  const struct cv_spec spec = make_spec();
  for (size_t i = 0; i < CV_COUNT(names); i++) {
    const struct cv_finished finished = {
        .progress = {.campaign = 1, .name = "fuzz", .arms = 4, .tokens = 4000, .plans = 2, .elapsed_ms = 500},
        .standings = CV_COUNT(standings),
        .standing = standings};
    const struct cv_outcome_known known = {
        .kind = i == 2 ? CV_POLICY_BANDIT : CV_POLICY_RANKING, .spec = &spec, .mean = i == 0 ? means : NULL};
    struct cv_outcome outcome;
    struct cv_buf out = {0};
    CV_REQUIRE(cv_outcome_init(&outcome, &finished, &known) == CV_OK);
    if (i == 0) { /* with what it bears */
      struct cv_policy_lies *lies = calloc(4, sizeof(*lies));
      CV_REQUIRE(lies != NULL);
      lies[0] = (struct cv_policy_lies){.safe = 12, .turn = 345};
      outcome.lies = (struct cv_lies){.of_arm = lies, .arms = 4, .least = lies[0], .tokens_per_worker = 1};
    }
    json_t *result = cv_result_json(&outcome, "ppar");
    char *text = json_dumps(result, JSON_REAL_PRECISION(10));
    CV_REQUIRE(text != NULL);
    cv_buf_put(&out, text, strlen(text));
    free(text);
    json_decref(result);
    cv_outcome_fini(&outcome);
    save("compared", names[i], &out);
  }
}

/* Packed files of a few lines: whole, cut, and of two parts. */
static void packed_files(void) {
  static const char rows[] = "item,score\nroma,4\nroma,5\ncasa,1\n";
  uint8_t bytes[256];
  struct cv_buf whole = {0}, cut = {0}, twice = {0}, zstd = {0};
  z_stream stream = {0};
  union {
    const char *text;
    Bytef *bytes;
  } in = {.text = rows};
  CV_REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = in.bytes;
  stream.avail_in = sizeof(rows) - 1;
  stream.next_out = bytes;
  stream.avail_out = sizeof(bytes);
  CV_REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  cv_buf_put_u8(&whole, 0);
  cv_buf_put(&whole, bytes, stream.total_out);
  cv_buf_put(&twice, whole.data, whole.len);
  cv_buf_put(&twice, bytes, stream.total_out);
  cv_buf_put(&cut, whole.data, whole.len - 9);
  CV_REQUIRE(deflateEnd(&stream) == Z_OK);
  size_t n = ZSTD_compress(bytes, sizeof(bytes), rows, sizeof(rows) - 1, 3);
  cv_buf_put_u8(&zstd, 1);
  cv_buf_put(&zstd, bytes, ZSTD_isError(n) ? 0 : n);
  save("packed", "gzip", &whole);
  save("packed", "cut", &cut);
  save("packed", "twice", &twice);
  save("packed", "zstd", &zstd);
}

/* A database for the harness `query`, with the view that it asks for. */
static void database(void) {
  sqlite3 *db;
  sqlite3_int64 n;
  struct cv_buf out = {0};
  CV_REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
  CV_REQUIRE(sqlite3_exec(db,
                          "PRAGMA page_size = 512; CREATE TABLE rating (item TEXT, score REAL, who TEXT);"
                          "INSERT INTO rating VALUES ('roma', 4, 'x'), ('casa', 1, 'y'), ('roma', NULL, 'y');"
                          "CREATE VIEW good AS SELECT upper(item) AS item, score, who FROM rating;",
                          NULL, NULL, NULL) == SQLITE_OK);
  unsigned char *image = sqlite3_serialize(db, "main", &n, 0);
  CV_REQUIRE(image != NULL);
  cv_buf_put_u8(&out, 1 | 8);
  cv_buf_put(&out, image, (size_t)n);
  sqlite3_free(image);
  CV_REQUIRE(sqlite3_close(db) == SQLITE_OK);
  save("query", "database", &out);
}

/* ---- a co-broker's campaign, event by event (cobroker_play.h) ---- */

static const uint8_t bits[] = {
    0,                            /* settings */
    0, 0, 0, 1, 3,  0,  0x61, 20, /* broker and gateway join; the broker opens campaign 1, of one arm; a turn */
    2, 1, 1, 4, 0,  1,  5,    20, /* the gateway enters; plan 1: five tokens */
    5, 0, 2, 0, 0,  20, 5,    0,  1,  0, 0,  20, /* two batches: three tokens, two tokens */
    8, 0, 0, 0, 20, 7,  0,    0,  20,            /* the arm is closed; all batches are done */
    4, 0, 1, 3, 20, 5,  0,    1,  0,  6, 20,     /* plan 2; two tokens, one of them with a proof that fails */
};
static const uint8_t scores[] = {
    1,                                               /* the journal is folded at once */
    0, 0, 0, 1,  0,  2, 3, 0, 0x12, 3,  1, 0x10, 20, /* two gateways; campaign 1 of three arms, campaign 2 of one */
    2, 1, 1, 2,  2,  1, 2, 2, 2,    4,  0, 3,    4,  5, 6, 20, /* plan 1: four, five and six tokens */
    4, 1, 1, 9,  5,  0, 7, 0, 0,    20, 5, 0,    6,  1, 0, 20, 8,  0, 0, 0, 8, 0, 0, 1,  8,
    0, 0, 2, 20, 14, 0, 0, 0, 2,    20, 3, 0,    0,  3, 1, 0,  20, 6, 0, 0, 6, 1, 0, 20, /* a crash; everything again */
};
static const uint8_t over[] = {
    16, /* one record is kept */
    0,  0, 3, 0, 0, 3, 1, 0x64, 3, 2, 3, 20, 4, 0, 1, 4, 4, 1, 1, 5, 20, 9, 0, 4, 20, 9, 1, 5, 20,
};

static void dump(const struct disk *disk, const char *name) {
  struct cv_buf out = {0}, row = {0};
  cv_buf_put_u64(&row, disk->totals.campaigns);
  cv_buf_put_u64(&row, disk->totals.releases);
  cv_buf_put_u64(&row, disk->totals.tokens);
  cv_buf_put_u64(&row, disk->totals.promised_micro);
  put_record(&out, 0, 0, &row);
  for (int step = 0; step < 3; step++) {
    for (size_t i = 0; i < disk->rows; i++) {
      const struct disk_row *each = &disk->row[i];
      if (step != (each->kind == CV_COROW_JOURNAL ? 2 : cv_cobroker_row_is_sealed(each->kind))) {
        continue;
      }
      size_t n = each->bytes.len;
      while (n > 0 && each->bytes.data[n - 1] == 0 && each->bytes.len == CV_CHUNK_BYTES) {
        n--; /* the harness fills a chunk up */
      }
      cv_buf_put_u64(&row, each->number);
      cv_buf_put(&row, each->bytes.data, n);
      put_record(&out, (uint8_t)each->kind, (uint8_t)(each->campaign | each->made << 2), &row);
    }
  }
  save("cobroker_rows", name, &out);
}

static void cobroker(const char *name, const uint8_t *script, size_t n) {
  static struct world world; /* large */
  struct cv_reader in = cv_reader_over(script, n);
  struct cv_buf out = {0};
  world_begin(&world, cv_read_u8(&in));
  while (in.at < in.end) {
    CV_REQUIRE(play_event(&world, &in));
  }
  dump(&world.disk, name);
  world_end(&world);
  cv_buf_put(&out, script, n);
  save("cobroker_events", name, &out);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    (void)fprintf(stderr, "usage: fuzz-seeds FOLDER\n");
    return 2;
  }
  folder = argv[1];
  CV_REQUIRE(cv_arena_init(&arena, CV_ARENA_BYTES) == CV_OK);
  struct cv_spec spec = make_spec();
  struct cv_buf out = {0};
  cv_spec_encode(&spec, &out);
  save("spec", "plain", &out);
  spec = make_split_spec();
  cv_spec_encode(&spec, &out);
  save("spec", "two-brokers", &out);
  policy_state(&out);
  save("policy", "one", &out);
  state_after_a_round("klucb-cf");
  state_after_a_round("pair-sort");
  state_after_a_round("graph-ucb");
  state_after_a_round("best-arm");
  state_after_a_round("adap-tt");
  state_after_a_round("exp3");
  state_after_a_round("tsallis-inf");
  state_after_a_round("dpf");
  state_after_a_round("dpu");
  crowd();
  crowd_of_two();
  share_with_workers();
  share_down();
  share_up();
  rank();
  rank_of_pairs();
  order();
  mechanism();
  broker_rows();
  cobroker("bits", bits, sizeof(bits));
  cobroker("scores", scores, sizeof(scores));
  cobroker("over", over, sizeof(over));
  thirdparty_rows();
  export_file();
  result_files();
  packed_files();
  database();
  cv_arena_fini(&arena);
  return 0;
}
