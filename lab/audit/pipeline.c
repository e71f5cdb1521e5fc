/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything runs in one thread with a simulated clock, so that a run is cheap: an audit needs many thousands of them.
 * Frames go from core to core without the wire; the third-party is a script, since its decisions are post-processing.
 */
#include "lab/audit/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "broker/core.h"
#include "broker/restore.h"
#include "cobroker/core.h"
#include "cobroker/restore.h"
#include "common/crypto/crypto.h"
#include "worker/core.h"

/* A broker's lie may stop the campaign: the run ends that many turns later. */
enum { TURNS_MAX = 100000, TURNS_AFTER_LIE = 20, LEASE_MS = 1000, TURN_MS = 1, SESSIONS = 4, OPEN_MAX = 8 };

struct run {
  const struct cv_pipeline *pipeline;
  struct cv_mac *mac;
  struct cv_broker *broker;
  struct cv_worker *pool;
  struct cv_broker_conn *gateway, *thirdparty, *requester;
  struct cv_broker_batch batch;
  uint64_t now_ms;
  /* With two brokers. */
  struct cv_cobroker *cobroker;
  struct cv_broker_conn *other;              /* the broker's connection to the co-broker */
  struct cv_cobroker_conn *leader, *workers; /* the co-broker's to the broker and to the workers */
  struct cv_cobroker_batch co_batch;
  struct cv_rng_seeded fresh, co_fresh; /* of shares; of the verify key and of sessions */
  struct cv_session_ops session;
  uint64_t seed, lied;
  /* State of the scripted third-party. */
  int64_t *view;
  uint64_t plans, releases;
  struct cv_position position;
  uint32_t campaign; /* from 0 */
  bool done;
  struct cv_work work;
  /* Of workers that are asked. */
  struct cv_asker asker;
  size_t questions;
  struct {
    uint64_t number;
    int64_t score;
  } open[OPEN_MAX];
};

static enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *to, size_t n) {
  return cv_mac_tag(data, bytes, bytes_n, to, n);
}

static enum cv_err score(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  const struct run *run = data;
  *ret_score = run->pipeline->score(run->pipeline->data, run->campaign, arm, at->place);
  return CV_OK;
}

/* A connection starts with Hello; later frames must not repeat it. */
static const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION};

static bool is_recruitment(const struct cv_pipeline *pipeline) {
  return pipeline->spec->cost_micro != NULL;
}

static bool is_asked(const struct cv_pipeline *pipeline) {
  return pipeline->answer != NULL;
}

/* The arms in a plan. */
static uint32_t arms_of(const struct cv_pipeline *pipeline) {
  return is_asked(pipeline) ? 1 : pipeline->spec->arms;
}

/* The tokens of each arm in a plan. */
static uint32_t wanted(const struct cv_pipeline *pipeline, uint64_t plan) {
  return is_recruitment(pipeline) && plan > 2 ? pipeline->tau << (plan - 2) : pipeline->tau;
}

static bool is_two(const struct cv_pipeline *pipeline) {
  return pipeline->spec->brokers == 2;
}

/* With two brokers some more: tokens that a lie spoils are given by others. */
static uint64_t last_worker(const struct cv_pipeline *pipeline) {
  if (is_asked(pipeline)) {
    return (uint64_t)pipeline->rounds * pipeline->tau;
  }
  return pipeline->spec->tokens * (is_two(pipeline) ? 2 : 1);
}

/* The index of the digest in the view. */
static size_t digest_at(const struct cv_pipeline *pipeline) {
  return (size_t)pipeline->campaigns * pipeline->rounds * pipeline->spec->arms;
}

static const struct cv_duo duo = {.broker = {{0xb}}, .cobroker = {{0xc}}};

static struct cv_gate_limits limits_of(const struct cv_pipeline *pipeline) {
  return (struct cv_gate_limits){.epsilon_micro = UINT64_MAX,
                                 .delta_pico = UINT64_MAX,
                                 .worker_epsilon_micro = UINT32_MAX,
                                 .release_tokens = 1,
                                 .arms = pipeline->spec->arms,
                                 .campaigns = pipeline->campaigns,
                                 .tokens = pipeline->spec->tokens,
                                 .chunks = 1000,
                                 .lease_ms = LEASE_MS,
                                 .queue = 1000};
}

static enum cv_err make_broker(struct run *run) {
  const struct cv_broker_config config = {
      .name = "audit",
      .limits = limits_of(run->pipeline),
      .tagger = {.tag = tag, .data = run->mac},
      .digest = cv_sha256,
      .duo = duo,
      .noise = run->pipeline->noise,
      .noise_seeded = run->pipeline->seeded,
      .noise_seed = run->seed,
  };
  CV_TRY(cv_broker_new(&config, &run->broker));
  return cv_broker_restore_end(run->broker, 0, NULL, run->now_ms, run->now_ms);
}

/* ---- the co-broker and its sessions ---- */

/* The key of the one connection between workers and co-broker: both ends compute it. */
static void session_key(const struct cv_digest *context, struct cv_key *ret) {
  struct cv_digest key;
  cv_sha256("session", 7, context->bytes, CV_DIGEST_BYTES, &key);
  memcpy(ret->bytes, key.bytes, sizeof(ret->bytes));
}

static enum cv_err session_open(void *data, const struct cv_digest *context, void **ret) {
  struct run *run = data;
  struct cv_key key;
  struct cv_seal *seal;
  session_key(context, &key);
  CV_TRY(cv_seal_new(&key, &seal));
  cv_insider_session(run->pipeline->insider, context, key.bytes);
  *ret = seal;
  return CV_OK;
}

static enum cv_err session_seal(void *data, void *key, uint64_t counter, const uint8_t bound[CV_SPLIT_BOUND_BYTES],
                                const uint8_t seed[CV_SPLIT_SEED_BYTES], uint8_t ret[CV_SPLIT_SEALED_BYTES]) {
  uint8_t nonce[CV_SPLIT_SEAL_NONCE_BYTES];
  cv_split_seal_nonce(counter, nonce);
  return cv_seal_close_at(key, nonce, bound, CV_SPLIT_BOUND_BYTES, seed, CV_SPLIT_SEED_BYTES, ret);
}

static void session_close(void *data, void *key) {
  cv_seal_free(key);
}

static enum cv_err export_key(void *data, void *shell, const struct cv_digest *context,
                              uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  struct cv_key key;
  session_key(context, &key);
  memcpy(ret, key.bytes, CV_SPLIT_SEED_BYTES);
  return CV_OK;
}

static enum cv_err open_seed(void *data, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                             const uint8_t bound[CV_SPLIT_BOUND_BYTES], const uint8_t sealed[CV_SPLIT_SEALED_BYTES],
                             uint8_t ret[CV_SPLIT_SEED_BYTES]) {
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

static enum cv_err make_cobroker(struct run *run) {
  const struct cv_cobroker_config config = {
      .broker = "audit",
      .duo = duo,
      .limits = limits_of(run->pipeline),
      .sessions = SESSIONS,
      .digest = cv_sha256,
      .noise = run->pipeline->noise,
      .noise_seeded = run->pipeline->seeded,
      .noise_seed = run->seed,
      .key = &run->co_fresh.rng,
      .export_key = export_key,
      .open_seed = open_seed,
  };
  CV_TRY(cv_cobroker_new(&config, &run->cobroker));
  return cv_cobroker_restore_end(run->cobroker, 0, &(struct cv_totals){0}, run->now_ms, run->now_ms);
}

/* What is never seeded elsewhere follows from the noise's generator here, so that a run can be repeated. */
static enum cv_err make_second(struct run *run) {
  uint64_t seed = cv_rng_u64(run->pipeline->noise);
  run->seed = cv_mix64(seed);
  cv_rng_seeded_init(&run->fresh, seed, CV_RNG_ROUNDING, 0, 0);
  cv_rng_seeded_init(&run->co_fresh, seed, CV_RNG_ROUNDING, 1, 0);
  run->session = (struct cv_session_ops){.digest = cv_sha256,
                                         .fresh = &run->fresh.rng,
                                         .open = session_open,
                                         .seal = session_seal,
                                         .close = session_close,
                                         .data = run};
  run->pipeline->insider->fresh = &run->co_fresh.rng;
  return make_cobroker(run);
}

/* ---- the pool ---- */

static void open_question(void *data, const struct cv_question *question) {
  struct run *run = data;
  CV_REQUIRE(run->questions < OPEN_MAX);
  run->open[run->questions].number = question->number;
  run->open[run->questions++].score = run->pipeline->answer(run->pipeline->data, question->worker, question->arm);
}

static void withdraw(void *data, uint64_t question, enum cv_withdrawn why) {
}

static void told(void *data, uint64_t question, enum cv_verdict verdict) {
}

static enum cv_err answer_questions(struct run *run, struct cv_why *why) {
  for (size_t i = 0; i < run->questions; i++) {
    const struct cv_score_answer answer = {.value = run->open[i].score};
    CV_TRY(cv_worker_answer(run->pool, run->open[i].number, &answer, why));
  }
  run->questions = 0;
  return CV_OK;
}

/* A frame of the broker. */
static enum cv_err tell_pool(struct run *run, const struct cv_crowd_frame *frame, struct cv_why *why) {
  struct cv_crowd_frame bent = *frame;
  struct cv_terms terms;
  if (is_asked(run->pipeline) && frame->campaigns == 1) {
    terms = frame->campaign[0];
    terms.repeat = true;
    bent.campaign = &terms;
  }
  CV_TRY(cv_worker_on_crowd(run->pool, &bent, run->now_ms, why));
  return answer_questions(run, why);
}

static enum cv_err make_pool(struct run *run, struct cv_why *why) {
  const struct cv_spec *spec = run->pipeline->spec;
  run->work = (struct cv_work){
      .campaign = spec->name, .arms = spec->arms, .hires = is_recruitment(run->pipeline), .score = score, .data = run};
  run->asker = (struct cv_asker){.ask = open_question, .withdraw = withdraw, .told = told, .data = run};
  const struct cv_worker_config config = {
      .first = 1,
      .last = last_worker(run->pipeline),
      .concurrency = is_asked(run->pipeline) ? 1 : 64,
      .accept = {.requesters = "r",
                 .privatizers = spec->privatizer.name,
                 .mechanisms = spec->mechanism.name,
                 .epsilon_micro = UINT64_MAX,
                 .delta_pico = UINT64_MAX,
                 .pair = &duo,
                 .pairs = is_two(run->pipeline) ? 1 : 0},
      .work = &run->work,
      .works = 1,
      .asker = is_asked(run->pipeline) ? &run->asker : NULL,
      .rng = run->pipeline->privatizer,
      .session = is_two(run->pipeline) ? &run->session : NULL,
  };
  return cv_worker_new(&config, &run->pool, why);
}

static enum cv_err submit(struct run *run, struct cv_why *why) {
  struct cv_order_frame order = {.kind = CV_ORDER_SUBMIT};
  order.hello = run->campaign == 0 ? hello : (struct cv_hello){0};
  order.as.submit = (struct cv_submit){.client_key = {(uint8_t)(run->campaign + 1)}, .spec = *run->pipeline->spec};
  run->plans = run->releases = 0;
  return cv_broker_on_order(run->broker, run->requester, &order, run->now_ms, run->now_ms, why);
}

static enum cv_err join_cobroker(struct run *run, struct cv_why *why) {
  const struct cv_identity cobroker = {.role = CV_ROLE_COBROKER, .name = "c", .key = duo.cobroker};
  return cv_broker_join(run->broker, &cobroker, NULL, &run->other, why);
}

static enum cv_err join_second(struct run *run, const struct cv_identity *gateway, struct cv_why *why) {
  const struct cv_identity broker = {.role = CV_ROLE_BROKER, .name = "audit", .key = duo.broker};
  CV_TRY(join_cobroker(run, why));
  CV_TRY(cv_cobroker_join(run->cobroker, &broker, NULL, &run->leader, why));
  return cv_cobroker_join(run->cobroker, gateway, NULL, &run->workers, why);
}

static enum cv_err join_all(struct run *run, struct cv_why *why) {
  struct cv_identity gateway = {.role = CV_ROLE_GATEWAY, .first = 1, .last = last_worker(run->pipeline)};
  const struct cv_identity thirdparty = {.role = CV_ROLE_THIRDPARTY, .name = "t"};
  const struct cv_identity requester = {.role = CV_ROLE_REQUESTER, .name = "r"};
  CV_TRY(cv_broker_join(run->broker, &thirdparty, NULL, &run->thirdparty, why));
  CV_TRY(cv_broker_join(run->broker, &gateway, NULL, &run->gateway, why));
  CV_TRY(cv_broker_join(run->broker, &requester, NULL, &run->requester, why));
  CV_TRY(cv_broker_on_rank(run->broker, run->thirdparty, &(struct cv_rank_frame){.hello = hello}, run->now_ms, why));
  CV_TRY(is_two(run->pipeline) ? join_second(run, &gateway, why) : CV_OK);
  CV_TRY(submit(run, why));
  cv_worker_join(run->pool, &duo.broker, run->now_ms);
  if (is_two(run->pipeline)) {
    cv_worker_join_co(run->pool, &duo.cobroker);
  }
  return CV_OK;
}

/* ---- the third-party's script ---- */

/* Ends the script: reports a result, so that the broker closes the campaign; on_rank() then submits the next one. */
static enum cv_err finish(struct run *run, struct cv_why *why) {
  uint32_t arms = run->pipeline->spec->arms;
  if (run->campaign + 1 == run->pipeline->campaigns) {
    run->done = true; /* closing the last campaign would only add turns */
    return CV_OK;
  }
  struct cv_standing *standing = calloc(arms, sizeof(*standing));
  if (standing == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < arms; i++) {
    standing[i].arm = i;
  }
  struct cv_rank_result result = {
      .campaign = run->position.campaign, .reason = CV_END_COMPLETE, .standings = arms, .standing = standing};
  enum cv_err err = cv_broker_on_rank(run->broker, run->thirdparty,
                                      &(struct cv_rank_frame){.results = 1, .result = &result}, run->now_ms, why);
  free(standing);
  return err;
}

static enum cv_err next_plan(struct run *run, struct cv_why *why) {
  const struct cv_pipeline *pipeline = run->pipeline;
  uint32_t arms = arms_of(pipeline);
  if (run->plans == pipeline->rounds) {
    return finish(run, why);
  }
  struct cv_want *want = calloc(arms, sizeof(*want));
  if (want == NULL) {
    return CV_ERR_NOMEM;
  }
  run->plans++;
  for (uint32_t i = 0; i < arms; i++) {
    want[i] = (struct cv_want){.arm = i, .tokens = wanted(pipeline, run->plans)};
  }
  struct cv_rank_plan plan = {.campaign = run->position.campaign,
                              .plan = {.number = run->plans, .wants = arms, .want = want}};
  enum cv_err err = cv_broker_on_rank(run->broker, run->thirdparty, &(struct cv_rank_frame){.plans = 1, .plan = &plan},
                                      run->now_ms, why);
  free(want);
  return err;
}

/* The digest covers everything but the noisy sums: if a count, an order or a noise description depended on a score, the
 * digests of the two neighbours would differ in distribution. */
static void see(struct run *run, const void *bytes, size_t n) {
  int64_t *digest = &run->view[digest_at(run->pipeline)];
  uint64_t seen = (uint64_t)*digest;
  for (size_t i = 0; i < n; i++) {
    seen = cv_mix64(seen + ((const uint8_t *)bytes)[i] + 1);
  }
  *digest = (int64_t)seen;
}

static enum cv_err on_release(struct run *run, const struct cv_release *release, struct cv_why *why) {
  uint32_t arms = run->pipeline->spec->arms;
  if (release->plan == 0 || release->plan > run->pipeline->rounds || release->arm >= arms) {
    return cv_fail(why, CV_ERR_STATE, "release %llu is not part of the script", (unsigned long long)release->number);
  }
  run->view[(run->campaign * run->pipeline->rounds + release->plan - 1) * arms + release->arm] = release->noisy_sum;
  if (is_two(run->pipeline)) {
    cv_insider_on_release(run->pipeline->insider, release);
  }
  see(run, &release->number, sizeof(release->number));
  see(run, &release->plan, sizeof(release->plan));
  see(run, &release->arm, sizeof(release->arm));
  see(run, &release->tokens, sizeof(release->tokens));
  for (uint32_t i = 0; i < release->noise.groups; i++) {
    see(run, &release->noise.group[i].scale, sizeof(release->noise.group[i].scale));
    see(run, &release->noise.group[i].count, sizeof(release->noise.group[i].count));
  }
  struct cv_rank_number ack = {.campaign = run->position.campaign, .number = release->number};
  CV_TRY(cv_broker_on_rank(run->broker, run->thirdparty, &(struct cv_rank_frame){.acks = 1, .ack = &ack}, run->now_ms,
                           why));
  return ++run->releases == run->plans * arms_of(run->pipeline) ? next_plan(run, why) : CV_OK;
}

static enum cv_err on_rank(struct run *run, const struct cv_rank_frame *frame, struct cv_why *why) {
  see(run, &frame->opens, sizeof(frame->opens));
  see(run, &frame->accepted, sizeof(frame->accepted));
  see(run, &frame->releases, sizeof(frame->releases));
  for (size_t i = 0; i < frame->opens; i++) {
    run->position = (struct cv_position){.campaign = frame->open[i].position.campaign};
    struct cv_rank_opened opened = {.position = run->position, .seed = 1};
    CV_TRY(cv_broker_on_rank(run->broker, run->thirdparty, &(struct cv_rank_frame){.opened = 1, .answer = &opened},
                             run->now_ms, why));
    CV_TRY(next_plan(run, why));
  }
  for (size_t i = 0; i < frame->releases; i++) {
    CV_TRY(on_release(run, &frame->release[i].release, why));
  }
  bool lied = is_two(run->pipeline) && run->pipeline->insider->lied;
  if (frame->refused + frame->stops + frame->closed == 0 || run->done || lied) {
    return CV_OK;
  }
  if (frame->closed == 0 || run->releases < run->pipeline->rounds * (uint64_t)arms_of(run->pipeline)) {
    return cv_fail(why, CV_ERR_STATE, "the broker ended the campaign before the end of the script");
  }
  run->campaign++;
  return submit(run, why);
}

/* ---- the line between both brokers ---- */

static enum cv_err tell_cobroker(struct run *run, const struct cv_share_frame *frame, struct cv_why *why) {
  struct cv_share_frame told;
  struct cv_insider *insider = run->pipeline->insider;
  uint64_t now_ms = run->now_ms;
  CV_TRY(cv_insider_on_broker(insider, frame, &told));
  if (!insider->is_cobroker || !cv_insider_is_alone(insider)) {
    return cv_cobroker_on_share(run->cobroker, run->leader, &told, now_ms, now_ms, why);
  }
  cv_insider_answer(insider, frame, &told);
  return told.hello.present || told.opened > 0 ? cv_broker_on_share(run->broker, run->other, &told, now_ms, now_ms, why)
                                               : CV_OK;
}

static enum cv_err tell_broker(struct run *run, const struct cv_share_frame *frame, struct cv_why *why) {
  struct cv_share_frame told;
  struct cv_insider *insider = run->pipeline->insider;
  bool was_alone = cv_insider_is_alone(insider);
  CV_TRY(cv_insider_on_cobroker(insider, frame, &told));
  if (cv_insider_is_alone(insider) && !insider->is_cobroker) {
    return tell_cobroker(run, &(struct cv_share_frame){0}, why);
  }
  if (was_alone) {
    return CV_OK;
  }
  CV_TRY(cv_broker_on_share(run->broker, run->other, &told, run->now_ms, run->now_ms, why));
  if (cv_insider_is_alone(insider)) { /* it breaks the connection, and will answer itself on the next one */
    cv_broker_leave(run->broker, run->other);
    return join_cobroker(run, why);
  }
  return CV_OK;
}

static enum cv_err deliver_shares(struct run *run, struct cv_why *why) {
  struct cv_cobroker_out out;
  while (cv_cobroker_next_out(run->cobroker, &out)) {
    if (out.close) {
      return cv_fail(why, CV_ERR_STATE, "the co-broker closed a connection");
    }
    CV_TRY(out.conn == run->leader ? tell_broker(run, out.frame, why)
                                   : cv_worker_on_share(run->pool, out.frame, run->now_ms, why));
  }
  return CV_OK;
}

static enum cv_err turn_second(struct run *run, struct cv_why *why) {
  const struct cv_insider *insider = run->pipeline->insider;
  struct cv_share_frame frame;
  bool store;
  if (cv_worker_flush_share(run->pool, run->now_ms, &frame)) {
    CV_TRY(cv_cobroker_on_share(run->cobroker, run->workers, &frame, run->now_ms, run->now_ms, why));
  }
  cv_cobroker_tick(run->cobroker, run->now_ms, run->now_ms);
  CV_TRY(cv_cobroker_flush(run->cobroker, run->now_ms, run->now_ms, &run->co_batch, &store));
  cv_cobroker_stored(run->cobroker);
  CV_TRY(deliver_shares(run, why));
  run->lied += insider->lied;
  run->done = run->done || cv_insider_is_done(insider) || run->lied > TURNS_AFTER_LIE;
  return CV_OK;
}

/* ---- turns ---- */

static enum cv_err deliver(struct run *run, struct cv_why *why) {
  struct cv_broker_out out;
  while (cv_broker_next_out(run->broker, &out)) {
    if (out.close) {
      return cv_fail(why, CV_ERR_STATE, "the broker closed a connection");
    }
    if (out.schema == CV_SCHEMA_RANK) {
      CV_TRY(on_rank(run, out.frame.rank, why));
    } else if (out.schema == CV_SCHEMA_CROWD) {
      CV_TRY(tell_pool(run, out.frame.crowd, why));
    } else if (out.schema == CV_SCHEMA_SHARE) {
      CV_TRY(tell_cobroker(run, out.frame.share, why));
    } else if (out.frame.order->kind == CV_ORDER_ERROR) {
      return cv_fail(why, CV_ERR_DENIED, "%s", out.frame.order->as.error);
    }
  }
  return CV_OK;
}

static enum cv_err turn(struct run *run, struct cv_why *why) {
  struct cv_crowd_frame frame;
  bool store;
  run->now_ms += TURN_MS;
  if (cv_worker_flush(run->pool, run->now_ms, &frame)) {
    CV_TRY(is_two(run->pipeline) ? cv_insider_on_crowd(run->pipeline->insider, &frame) : CV_OK);
    CV_TRY(cv_broker_on_crowd(run->broker, run->gateway, &frame, run->now_ms, run->now_ms, why));
  }
  cv_broker_tick(run->broker, run->now_ms, run->now_ms);
  CV_TRY(cv_broker_flush(run->broker, run->now_ms, run->now_ms, &run->batch, &store));
  cv_broker_stored(run->broker); /* there is no disk: every batch counts as stored at once */
  CV_TRY(deliver(run, why));
  return is_two(run->pipeline) ? turn_second(run, why) : CV_OK;
}

static enum cv_err run_all(struct run *run, struct cv_why *why) {
  const struct cv_key key = {{1}};
  CV_TRY(cv_mac_new(&key, &run->mac));
  CV_TRY(is_two(run->pipeline) ? make_second(run) : CV_OK);
  CV_TRY(make_broker(run));
  CV_TRY(make_pool(run, why));
  CV_TRY(join_all(run, why));
  for (int i = 0; !run->done; i++) {
    if (i == TURNS_MAX) {
      return cv_fail(why, CV_ERR_STATE, "the pipeline stopped: %llu releases after %d turns",
                     (unsigned long long)run->releases, TURNS_MAX);
    }
    CV_TRY(turn(run, why));
  }
  return CV_OK;
}

enum cv_err cv_pipeline_run(const struct cv_pipeline *pipeline, int64_t *view, struct cv_why *why) {
  struct run run = {.pipeline = pipeline, .view = view, .now_ms = 1000};
  cv_why_set(why, "out of memory");
  memset(view, 0, (digest_at(pipeline) + 1) * sizeof(*view));
  enum cv_err err = run_all(&run, why);
  cv_worker_free(run.pool);
  cv_cobroker_free(run.cobroker);
  cv_cobroker_batch_fini(&run.co_batch);
  cv_broker_free(run.broker);
  cv_mac_free(run.mac);
  cv_broker_batch_fini(&run.batch);
  return err;
}
