/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/share.h"
#include "tests/unit/codec/shares.h"

/* The fields of share.proto's envelope. */
enum {
  ENTERS = 3,
  SESSIONS,
  TURNED,
  OPENS,
  OPENED,
  PLANS,
  PLANS_OPENED,
  PLANS_REFUSED,
  BATCHES,
  ANSWERS,
  DONES,
  CLOSES,
  CLOSED,
  OVERS,
  ENDED
};

static void assert_answers_bounded(const struct cv_share_frame *frame) {
  for (size_t i = 0; i < frame->opened; i++) {
    const char *refused = frame->open_answer[i].refused;
    assert_true(refused == NULL || (text_is_bounded(refused, CV_WHY_BYTES) && refused[0] != '\0'));
  }
  for (size_t i = 0; i < frame->plans_refused; i++) {
    assert_in_range(frame->plan_refused[i].reason, 1, CV_END_COUNT - 1);
    assert_true(text_is_bounded(frame->plan_refused[i].why, CV_WHY_BYTES));
  }
  for (size_t i = 0; i < frame->answers; i++) {
    assert_in_range(frame->answer[i].answers, 1, CV_BATCH_TOKENS);
    for (size_t j = 0; j < frame->answer[i].answers; j++) {
      assert_in_range(frame->answer[i].answer[j], CV_ANSWER_ACCEPTED, CV_ANSWERS - 1);
    }
  }
  for (size_t i = 0; i < frame->ended; i++) {
    assert_in_range(frame->end[i].reason, 1, CV_END_COUNT - 1);
    assert_true(text_is_bounded(frame->end[i].why, CV_WHY_BYTES));
  }
}

static void assert_bounded(const struct cv_share_frame *frame) {
  for (size_t i = 0; i < frame->sessions; i++) {
    const struct cv_terms *terms = &frame->session[i].terms;
    assert_true(terms->split.score_bits == CV_SPLIT_BIT || terms->split.score_bits == CV_SPLIT_SCORE);
    assert_true(text_is_bounded(terms->name, CV_NAME_BYTES) && text_is_bounded(terms->requester, CV_NAME_BYTES));
  }
  for (size_t i = 0; i < frame->turned; i++) {
    assert_true(text_is_bounded(frame->turn[i].why, CV_WHY_BYTES));
  }
  for (size_t i = 0; i < frame->opens; i++) {
    assert_spec_bounded(&frame->open[i].spec);
    assert_true(text_is_bounded(frame->open[i].requester, CV_NAME_BYTES));
  }
  for (size_t i = 0; i < frame->plans; i++) {
    assert_plan_bounded(&frame->plan[i].plan);
  }
  for (size_t i = 0; i < frame->batches; i++) {
    assert_in_range(frame->batch[i].number, 1, UINT64_MAX);
    assert_in_range(frame->batch[i].tokens, 1, CV_BATCH_TOKENS);
    for (size_t j = 0; j < frame->batch[i].tokens; j++) {
      assert_in_range(frame->batch[i].token[j].token.arm, 0, CV_ARMS_MAX - 1);
      assert_in_range(frame->batch[i].token[j].verifiers, 1, CV_SPLIT_VERIFIERS_MOST);
    }
  }
  for (size_t i = 0; i < frame->closes; i++) {
    assert_in_range(frame->close[i].arm, 0, CV_ARMS_MAX - 1);
  }
  assert_answers_bounded(frame);
}

CODEC_TRIES(share)

static void every_field_arrives(void **state) {
  for (uint64_t seed = 0; seed < 200; seed++) {
    struct cv_rng_seeded seeded;
    cv_rng_seeded_init(&seeded, seed, 1, 0, 0);
    static struct rows rows;
    random_rows(&seeded.rng, seed == 0, ROWS, &rows);
    struct cv_buf first = {0}, second = {0};
    struct cv_share_frame out;
    assert_int_equal(cv_share_encode(&rows.frame, &scratch, &first), CV_OK);
    assert_int_equal(cv_share_decode(first.data, first.len, &arena, &out), CV_OK);
    assert_bounded(&out);
    assert_true(out.hello.present);
    assert_crowd_equal(&rows.frame, &out);
    assert_orders_equal(&rows.frame, &out);
    assert_answers_equal(&rows.frame, &out);
    assert_int_equal(cv_share_encode(&out, &scratch, &second), CV_OK);
    assert_same_and_free(&first, &second);
    free_rows(&rows);
  }
}

/* ---- bytes made by hand ---- */

static const uint8_t zeros[512];

/* The lengths of a pending token's fields, and what else can be wrong with it. */
struct made {
  uint32_t arm;
  size_t nonce, session, sealed, verifier_bytes;
};
#define GOOD_TOKEN                                                                                     \
  (struct made) {                                                                                      \
    .nonce = CV_SPLIT_NONCE_BYTES, .session = CV_SPLIT_SESSION_BYTES, .sealed = CV_SPLIT_SEALED_BYTES, \
    .verifier_bytes = 24                                                                               \
  }

static void put_token(struct cv_buf *batch, struct made made) {
  struct cv_buf token = {0};
  put_number(&token, 2, made.arm);
  put_blob(&token, 6, zeros, made.nonce);
  put_blob(&token, 7, zeros, made.session);
  put_blob(&token, 9, zeros, made.sealed);
  put_blob(&token, 10, zeros, made.verifier_bytes);
  put_message(batch, 3, &token);
}

static enum cv_err try_batch(uint64_t number, size_t tokens, struct made made) {
  struct cv_buf batch = {0}, frame = {0};
  put_number(&batch, 2, number);
  for (size_t i = 0; i < tokens; i++) {
    put_token(&batch, made);
  }
  put_message(&frame, BATCHES, &batch);
  return try_buf(&frame);
}

static void batches_are_in_range(void **state) {
  assert_int_equal(try_batch(1, 1, GOOD_TOKEN), CV_OK);
  assert_int_equal(try_batch(1, CV_BATCH_TOKENS, GOOD_TOKEN), CV_OK);
  assert_int_equal(try_batch(0, 1, GOOD_TOKEN), CV_ERR_FORMAT);
  assert_int_equal(try_batch(1, 0, GOOD_TOKEN), CV_ERR_FORMAT);
  assert_int_equal(try_batch(1, CV_BATCH_TOKENS + 1, GOOD_TOKEN), CV_ERR_FORMAT);
  for (int by = -1; by <= 1; by += 2) {
    struct made made = GOOD_TOKEN;
    made.nonce += (size_t)by;
    assert_int_equal(try_batch(1, 1, made), CV_ERR_FORMAT);
    made = GOOD_TOKEN;
    made.session += (size_t)by;
    assert_int_equal(try_batch(1, 1, made), CV_ERR_FORMAT);
    made = GOOD_TOKEN;
    made.sealed += (size_t)by;
    assert_int_equal(try_batch(1, 1, made), CV_ERR_FORMAT);
  }
  struct made made = GOOD_TOKEN;
  made.arm = CV_ARMS_MAX;
  assert_int_equal(try_batch(1, 1, made), CV_ERR_FORMAT);
  static const size_t verifiers[] = {0, 8, 32, 40};
  for (size_t i = 0; i < CV_COUNT(verifiers); i++) {
    made = GOOD_TOKEN;
    made.verifier_bytes = verifiers[i];
    assert_int_equal(try_batch(1, 1, made), i == 1 || i == 2 ? CV_OK : CV_ERR_FORMAT);
  }
}

static enum cv_err try_answers(uint64_t number, size_t answers, uint64_t answer) {
  struct cv_buf message = {0}, frame = {0};
  put_number(&message, 2, number);
  for (size_t i = 0; i < answers; i++) {
    put_number(&message, 3, answer);
  }
  put_message(&frame, ANSWERS, &message);
  return try_buf(&frame);
}

static void answers_are_in_range(void **state) {
  for (uint64_t answer = 0; answer < 10; answer++) {
    bool known = answer >= CV_ANSWER_ACCEPTED && answer <= CV_ANSWER_SESSION;
    assert_int_equal(try_answers(1, 3, answer), known ? CV_OK : CV_ERR_FORMAT);
  }
  assert_int_equal(try_answers(1, 1, UINT64_MAX), CV_ERR_FORMAT); /* -1 */
  assert_int_equal(try_answers(1, CV_BATCH_TOKENS, 1), CV_OK);
  assert_int_equal(try_answers(1, CV_BATCH_TOKENS + 1, 1), CV_ERR_FORMAT);
  assert_int_equal(try_answers(1, 0, 1), CV_ERR_FORMAT);
  assert_int_equal(try_answers(0, 1, 1), CV_ERR_FORMAT);
}

static void put_position(struct cv_buf *out, uint32_t field, size_t hash_bytes) {
  struct cv_buf position = {0};
  put_blob(&position, 3, zeros, CV_DIGEST_BYTES);
  put_blob(&position, 5, zeros, hash_bytes);
  put_blob(&position, 7, zeros, CV_DIGEST_BYTES);
  put_message(out, field, &position);
}

/* An Open with or without its spec. */
static enum cv_err try_open(bool has_spec, size_t hash_bytes, size_t database_bytes) {
  struct cv_buf open = {0}, spec = {0}, frame = {0};
  put_blob(&spec, 1, "demo", 4);
  if (has_spec) {
    put_message(&open, 1, &spec);
  }
  cv_buf_fini(&spec);
  put_position(&open, 2, hash_bytes);
  put_blob(&open, 3, zeros, database_bytes);
  put_message(&frame, OPENS, &open);
  return try_buf(&frame);
}

static enum cv_err try_opened(bool has_position, size_t key_bytes, const char *refused) {
  struct cv_buf opened = {0}, frame = {0};
  if (has_position) {
    put_position(&opened, 1, CV_DIGEST_BYTES);
  }
  put_blob(&opened, 2, zeros, key_bytes);
  put_blob(&opened, 3, refused, strlen(refused));
  put_message(&frame, OPENED, &opened);
  return try_buf(&frame);
}

static void openings_are_in_range(void **state) {
  assert_int_equal(try_open(true, CV_DIGEST_BYTES, CV_SPLIT_DATABASE_BYTES), CV_OK);
  assert_int_equal(try_open(false, CV_DIGEST_BYTES, CV_SPLIT_DATABASE_BYTES), CV_ERR_FORMAT);
  assert_int_equal(try_open(true, CV_DIGEST_BYTES - 1, CV_SPLIT_DATABASE_BYTES), CV_ERR_FORMAT);
  assert_int_equal(try_open(true, 0, CV_SPLIT_DATABASE_BYTES), CV_ERR_FORMAT);
  assert_int_equal(try_open(true, CV_DIGEST_BYTES, CV_SPLIT_DATABASE_BYTES + 1), CV_ERR_FORMAT);
  assert_int_equal(try_open(true, CV_DIGEST_BYTES, 0), CV_ERR_FORMAT);
  assert_int_equal(try_opened(true, CV_SPLIT_SEED_BYTES, ""), CV_OK);
  assert_int_equal(try_opened(true, 0, "epsilon is over my limit"), CV_OK);
  assert_int_equal(try_opened(true, CV_SPLIT_SEED_BYTES, "no"), CV_ERR_FORMAT); /* a key, or a reason */
  assert_int_equal(try_opened(true, 0, ""), CV_ERR_FORMAT);
  assert_int_equal(try_opened(true, CV_SPLIT_SEED_BYTES + 1, ""), CV_ERR_FORMAT);
  assert_int_equal(try_opened(false, CV_SPLIT_SEED_BYTES, ""), CV_ERR_FORMAT);
  assert_int_equal(try_opened(true, 0, "two\nlines"), CV_ERR_FORMAT);
}

static enum cv_err try_session(uint64_t score_bits, size_t key_bytes, size_t id_bytes) {
  struct cv_buf session = {0}, terms = {0}, split = {0}, frame = {0};
  put_number(&split, 1, score_bits);
  put_blob(&split, 2, zeros, CV_SPLIT_DATABASE_BYTES);
  put_blob(&split, 3, zeros, CV_DIGEST_BYTES);
  put_blob(&split, 4, zeros, key_bytes);
  if (score_bits > 0) {
    put_message(&terms, 13, &split);
  }
  cv_buf_fini(&split);
  put_message(&session, 1, &terms);
  put_blob(&session, 2, zeros, id_bytes);
  put_message(&frame, SESSIONS, &session);
  return try_buf(&frame);
}

static void sessions_are_in_range(void **state) {
  assert_int_equal(try_session(15, CV_DIGEST_BYTES, CV_SPLIT_SESSION_BYTES), CV_OK);
  assert_int_equal(try_session(1, CV_DIGEST_BYTES, CV_SPLIT_SESSION_BYTES), CV_OK);
  assert_int_equal(try_session(14, CV_DIGEST_BYTES, CV_SPLIT_SESSION_BYTES), CV_ERR_FORMAT);
  assert_int_equal(try_session(0, CV_DIGEST_BYTES, CV_SPLIT_SESSION_BYTES), CV_ERR_FORMAT); /* of one broker */
  assert_int_equal(try_session(15, CV_DIGEST_BYTES - 1, CV_SPLIT_SESSION_BYTES), CV_ERR_FORMAT);
  assert_int_equal(try_session(15, CV_DIGEST_BYTES, CV_SPLIT_SESSION_BYTES - 1), CV_ERR_FORMAT);
}

static enum cv_err try_plan(uint64_t number, bool twice, bool standings) {
  struct cv_buf plan = {0}, open = {0}, frame = {0};
  put_number(&plan, 2, number);
  for (int i = 0; i < 2; i++) {
    struct cv_buf want = {0};
    put_number(&want, 1, twice ? 7 : (uint64_t)i);
    put_message(&plan, 3, &want);
  }
  if (standings) {
    put_blob(&plan, 4, NULL, 0);
  }
  put_message(&open, 1, &plan);
  put_message(&frame, PLANS, &open);
  return try_buf(&frame);
}

static enum cv_err try_close(uint64_t number, uint64_t plan, uint64_t arm, size_t chain_bytes) {
  struct cv_buf close = {0}, frame = {0};
  put_number(&close, 2, number);
  put_number(&close, 3, plan);
  put_blob(&close, 4, zeros, CV_DIGEST_BYTES);
  put_number(&close, 5, arm);
  put_blob(&close, 7, zeros, chain_bytes);
  put_message(&frame, CLOSES, &close);
  return try_buf(&frame);
}

/* A message with one number in a field. */
static enum cv_err try_number(uint32_t message, uint32_t field, uint64_t value) {
  struct cv_buf inner = {0}, frame = {0};
  put_number(&inner, field, value);
  put_message(&frame, message, &inner);
  return try_buf(&frame);
}

static void plans_closings_and_ends_are_in_range(void **state) {
  assert_int_equal(try_plan(1, false, false), CV_OK);
  assert_int_equal(try_plan(0, false, false), CV_ERR_FORMAT);
  assert_int_equal(try_plan(1, true, false), CV_ERR_FORMAT);
  assert_int_equal(try_plan(1, false, true), CV_ERR_FORMAT); /* standings are not the co-broker's business */
  assert_int_equal(try_number(PLANS, 9, 9), CV_ERR_FORMAT);  /* no plan */
  assert_int_equal(try_close(1, 1, CV_ARMS_MAX - 1, CV_DIGEST_BYTES), CV_OK);
  assert_int_equal(try_close(0, 1, 0, CV_DIGEST_BYTES), CV_ERR_FORMAT);
  assert_int_equal(try_close(1, 0, 0, CV_DIGEST_BYTES), CV_ERR_FORMAT);
  assert_int_equal(try_close(1, 1, CV_ARMS_MAX, CV_DIGEST_BYTES), CV_ERR_FORMAT);
  assert_int_equal(try_close(1, 1, 0, 0), CV_ERR_FORMAT);
  assert_int_equal(try_number(CLOSED, 2, 1), CV_OK);
  assert_int_equal(try_number(CLOSED, 2, 0), CV_ERR_FORMAT);
  for (uint32_t message = OVERS; message <= ENDED; message++) {
    assert_int_equal(try_number(message, 2, CV_END_CANCELLED), CV_OK);
    assert_int_equal(try_number(message, 2, CV_END_NONE), CV_ERR_FORMAT);
    assert_int_equal(try_number(message, 2, CV_END_COUNT), CV_ERR_FORMAT);
  }
  assert_int_equal(try_number(PLANS_REFUSED, 3, CV_END_TOKENS), CV_OK);
  assert_int_equal(try_number(PLANS_REFUSED, 3, CV_END_NONE), CV_ERR_FORMAT);
  struct cv_buf empty = {0}, unknown = {0};
  assert_int_equal(try_buf(&empty), CV_ERR_FORMAT);
  put_number(&unknown, 999, 1);
  assert_int_equal(try_buf(&unknown), CV_ERR_FORMAT);
}

/* What any other implementation of protobuf sends and expects. */
static void bytes_are_protobuf(void **state) {
  struct cv_share_pending pending = {.token = {.plan = 3, .arm = 19, .place = 300, .worker = 7, .slot = 2},
                                     .counter = 9,
                                     .verifiers = 2,
                                     .verifier = {1, UINT64_MAX}};
  memset(pending.token.nonce, 0xaa, sizeof(pending.token.nonce));
  memset(pending.session, 0xbb, sizeof(pending.session));
  memset(pending.sealed, 0xcc, sizeof(pending.sealed));
  struct cv_share_batch batch = {.campaign = 5, .number = 1, .tokens = 1, .token = &pending};
  struct cv_buf token = {0}, message = {0}, want = {0}, bytes = {0};
  static const uint8_t fixed[] = {1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255};
  const uint64_t number[] = {3, 19, 300, 7, 2};
  for (uint32_t i = 0; i < CV_COUNT(number); i++) {
    put_number(&token, i + 1, number[i]);
  }
  put_blob(&token, 6, pending.token.nonce, sizeof(pending.token.nonce));
  put_blob(&token, 7, pending.session, sizeof(pending.session));
  put_number(&token, 8, 9);
  put_blob(&token, 9, pending.sealed, sizeof(pending.sealed));
  put_blob(&token, 10, fixed, sizeof(fixed));
  put_number(&message, 1, 5);
  put_number(&message, 2, 1);
  put_message(&message, 3, &token);
  put_message(&want, BATCHES, &message);
  assert_int_equal(cv_share_encode(&(struct cv_share_frame){.batches = 1, .batch = &batch}, &scratch, &bytes), CV_OK);
  assert_same_and_free(&bytes, &want);
}

static void hostile_bytes_pass_no_bound(void **state) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, 3, 1, 0, 0);
  static struct rows rows;
  random_rows(&seeded.rng, 1, 1, &rows);
  /* Without what is in other schemas, too, and is damaged in their tests. */
  cv_spec_fini(&rows.open[0].spec);
  rows.open[0].spec.arms = 1;
  rows.session[0].terms.privatizer = rows.session[0].terms.mechanism = (struct cv_choice){0};
  rows.batch[0].tokens = rows.answer[0].answers = 2;
  rows.token[0][1] = rows.token[0][0];
  rows.verdict[0][1] = CV_ANSWER_PROOF;
  struct cv_buf bytes = {0};
  assert_int_equal(cv_share_encode(&rows.frame, &scratch, &bytes), CV_OK);
  attack(try_bytes, &bytes);
  cv_buf_fini(&bytes);
  free_rows(&rows);
  attack_with_noise(try_bytes, 1);
}

static void large_frames_stay_in_the_arena(void **state) {
  attack_with_length(try_bytes, CV_LARGE_FRAME_BYTES);
  for (uint32_t field = ENTERS; field <= ENDED; field++) {
    attack_with_empties(try_bytes, 0, field);
  }
  attack_with_empties(try_bytes, BATCHES, 3);
  attack_with_empties(try_bytes, 0, 999); /* unknown */
}

/* ---- the wire ---- */

/* As many tokens as a batch may have, every number as long as it can be. */
static struct cv_share_batch *full_batch(void) {
  static struct cv_share_pending token[CV_BATCH_TOKENS];
  static struct cv_share_batch batch = {
      .campaign = UINT64_MAX, .number = UINT64_MAX, .tokens = CV_BATCH_TOKENS, .token = token};
  memset(token, 0xff, sizeof(token));
  for (size_t i = 0; i < CV_BATCH_TOKENS; i++) {
    token[i].token.arm = CV_ARMS_MAX - 1;
    token[i].verifiers = CV_SPLIT_VERIFIERS_MOST;
  }
  return &batch;
}

static void a_full_batch_fits_into_a_frame(void **state) {
  struct cv_buf bytes = {0};
  struct cv_share_frame out, frame = {.hello = {.present = true, .version = UINT32_MAX, .program = "crowdveil-broker"},
                                      .batches = 1,
                                      .batch = full_batch()};
  assert_int_equal(cv_share_encode(&frame, &scratch, &bytes), CV_OK);
  assert_in_range(bytes.len, 1, CV_FRAME_BYTES);
  assert_int_equal(cv_share_decode(bytes.data, bytes.len, &arena, &out), CV_OK);
  assert_batches_equal(&out.batch[0], full_batch());
  cv_buf_fini(&bytes);
}

/* Cuts the frame up; returns the number of parts. Only the first has the hello, and only the last the goodbye. */
static size_t cut_up(struct cv_share_frame *rest, size_t *largest) {
  size_t parts = 0;
  *largest = 0;
  for (bool more = true; more; parts++) {
    struct cv_share_frame part;
    struct cv_buf bytes = {0};
    more = CV_SHARE_WIRE.cut(rest, &part);
    assert_int_equal(CV_SHARE_WIRE.encode(&part, &scratch, &bytes), CV_OK);
    *largest = bytes.len > *largest ? bytes.len : *largest;
    assert_true(part.hello.present == (parts == 0));
    assert_true((part.goodbye != NULL) == !more);
    cv_buf_fini(&bytes);
  }
  return parts;
}

static void a_large_frame_is_cut(void **state) {
  enum { MANY = 5000, BATCHES_SENT = 5 };
  static uint64_t enters[MANY];
  static struct cv_share_number dones[MANY];
  static struct cv_share_closed halves[MANY];
  static struct cv_share_end ends[MANY];
  struct cv_share_batch batch[BATCHES_SENT];
  for (size_t i = 0; i < BATCHES_SENT; i++) {
    batch[i] = *full_batch();
    batch[i].tokens = i < 2 ? 700 : CV_BATCH_TOKENS; /* the first two would be a little too long for one frame */
  }
  char why[CV_WHY_BYTES];
  memset(why, 'w', sizeof(why) - 1);
  why[sizeof(why) - 1] = '\0';
  for (size_t i = 0; i < MANY; i++) {
    enters[i] = UINT64_MAX - i;
    dones[i] = (struct cv_share_number){.campaign = UINT64_MAX, .number = UINT64_MAX};
    halves[i] = (struct cv_share_closed){.campaign = UINT64_MAX, .number = UINT64_MAX, .half = UINT64_MAX};
    ends[i] = (struct cv_share_end){.campaign = UINT64_MAX, .reason = CV_END_FROZEN, .why = why};
  }
  struct cv_share_frame frame = {.hello = {.present = true, .version = 1, .program = "p"},
                                 .goodbye = "over",
                                 .enters = MANY,
                                 .enter = enters,
                                 .batches = BATCHES_SENT,
                                 .batch = batch,
                                 .dones = MANY,
                                 .done = dones,
                                 .closed = MANY,
                                 .half = halves,
                                 .ended = MANY,
                                 .end = ends};
  size_t largest, parts = cut_up(&frame, &largest);
  assert_in_range(parts, BATCHES_SENT + 5, 30);
  assert_in_range(largest, 100 * 1024, CV_FRAME_BYTES);
}

/* What one frame would say, in that order: a plan never overtakes its campaign, nor a closing the batch before it. */
static void parts_keep_the_order(void **state) {
  struct cv_share_batch batch[2] = {*full_batch(), *full_batch()};
  static struct cv_want wants[20000];
  for (uint32_t i = 0; i < CV_COUNT(wants); i++) {
    wants[i] = (struct cv_want){.arm = i, .tokens = 1};
  }
  struct cv_share_plan plan[2] = {{.campaign = 1, .plan = {.number = 1, .wants = CV_COUNT(wants), .want = wants}},
                                  {.campaign = 2, .plan = {.number = 1, .wants = 1, .want = wants}}};
  struct cv_share_open open[2] = {{.spec = {.arms = 1}}, {.spec = {.arms = 2}}};
  struct cv_share_close close[1] = {{.number = 1, .plan = 1}};
  struct cv_share_frame part, rest = {.opens = 2,
                                      .open = open,
                                      .plans = 2,
                                      .plan = plan,
                                      .batches = 2,
                                      .batch = batch,
                                      .closes = 1,
                                      .close = close};
  assert_true(CV_SHARE_WIRE.cut(&rest, &part));
  assert_true(part.opens == 1 && part.open[0].spec.arms == 1 && part.plans + part.batches + part.closes == 0);
  assert_true(CV_SHARE_WIRE.cut(&rest, &part));
  assert_true(part.opens == 1 && part.open[0].spec.arms == 2 && part.plans + part.batches + part.closes == 0);
  assert_true(CV_SHARE_WIRE.cut(&rest, &part));
  assert_true(part.opens == 0 && part.plans == 1 && part.plan[0].campaign == 1 && part.batches + part.closes == 0);
  assert_true(CV_SHARE_WIRE.cut(&rest, &part));
  assert_true(part.plans == 1 && part.plan[0].campaign == 2 && part.batches == 1 && part.closes == 0);
  assert_false(CV_SHARE_WIRE.cut(&rest, &part));
  assert_true(part.plans == 0 && part.batches == 1 && part.closes == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_field_arrives),
      cmocka_unit_test(bytes_are_protobuf),
      cmocka_unit_test(batches_are_in_range),
      cmocka_unit_test(answers_are_in_range),
      cmocka_unit_test(openings_are_in_range),
      cmocka_unit_test(sessions_are_in_range),
      cmocka_unit_test(plans_closings_and_ends_are_in_range),
      cmocka_unit_test(hostile_bytes_pass_no_bound),
      cmocka_unit_test(large_frames_stay_in_the_arena),
      cmocka_unit_test(a_full_batch_fits_into_a_frame),
      cmocka_unit_test(a_large_frame_is_cut),
      cmocka_unit_test(parts_keep_the_order),
  };
  return cmocka_run_group_tests(tests, make_arenas, drop_arenas);
}
