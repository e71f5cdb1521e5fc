/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/crowd.h"
#include "tests/unit/codec/codec_test.h"

/* The fields of crowd.proto's envelope. */
enum { HELLO = 1, GOODBYE, ARRIVES, TOKENS, DECLINES, CAMPAIGNS, ASSIGNS, ACKS, BACKOFFS, DONES };

static void assert_bounded(const struct cv_crowd_frame *frame) {
  assert_true(frame->hello.present || frame->goodbye != NULL || frame->arrives > 0 || frame->tokens > 0 ||
              frame->declines > 0 || frame->campaigns > 0 || frame->assigns > 0 || frame->acks > 0 ||
              frame->backoffs > 0 || frame->dones > 0);
  assert_true(!frame->hello.present || text_is_bounded(frame->hello.program, CV_NAME_BYTES));
  assert_true(frame->goodbye == NULL || text_is_bounded(frame->goodbye, CV_WHY_BYTES));
  for (size_t i = 0; i < frame->tokens; i++) {
    const struct cv_token *token = &frame->token[i];
    assert_in_range(token->values, token->share == NULL, token->share == NULL ? CV_VALUES_MAX : 0);
    assert_true(token->share == NULL ||
                (token->share->leader_bytes >= 1 && token->share->leader_bytes <= CV_SPLIT_LEADER_MOST));
  }
  for (size_t i = 0; i < frame->declines; i++) {
    assert_true(text_is_bounded(frame->decline[i].why, CV_WHY_BYTES));
  }
  for (size_t i = 0; i < frame->campaigns; i++) {
    assert_true(text_is_bounded(frame->campaign[i].name, CV_NAME_BYTES));
    assert_true(choice_is_bounded(&frame->campaign[i].privatizer));
    assert_true(choice_is_bounded(&frame->campaign[i].mechanism));
    assert_in_range(frame->campaign[i].arms, 0, CV_ARMS_MAX);
  }
  for (size_t i = 0; i < frame->assigns; i++) {
    const struct cv_assign *assign = &frame->assign[i];
    assert_in_range(assign->arms, 1, CV_VALUES_MAX);
    for (uint32_t j = 0; j < assign->arms; j++) {
      assert_in_range(assign->arms == 1 ? assign->arm.one : assign->arm.many[j], 0, CV_ARMS_MAX - 1);
    }
  }
  for (size_t i = 0; i < frame->acks; i++) {
    assert_in_range(frame->ack[i].verdict, CV_VERDICT_ACCEPTED, CV_VERDICT_REFUSED);
    assert_true(text_is_bounded(frame->ack[i].why, CV_WHY_BYTES));
  }
  for (size_t i = 0; i < frame->backoffs; i++) {
    assert_true(text_is_bounded(frame->backoff[i].why, CV_WHY_BYTES));
  }
}

CODEC_TRIES(crowd)

/* One of everything, every field set. */
static const struct cv_crowd_frame *sample(void) {
  static const uint64_t workers[] = {1, 300, UINT64_MAX};
  static const int64_t values[] = {0, -1, INT64_MIN, INT64_MAX, 1 << 20};
  static const uint32_t arms[] = {4, 0, CV_ARMS_MAX - 1};
  static const uint32_t wishes[] = {7, CV_WISH_NONE, 0};
  static struct cv_arrive arrive = {.workers = 3, .worker = workers, .wish = wishes, .credit = 512};
  static struct cv_token token = {.ticket = "ticket of a token", .values = 5, .value = values};
  static const uint8_t leader[CV_SPLIT_LEADER_MOST] = "the leader's share";
  static const struct cv_token_share share = {.nonce = "nonce of sixteen",
                                              .leader_bytes = sizeof(leader),
                                              .leader = leader,
                                              .session = "session of sixte",
                                              .counter = UINT64_MAX,
                                              .sealed = "the helper's seed and the tag"};
  static struct cv_token tokens[2];
  tokens[0] = token;
  tokens[1] = (struct cv_token){.ticket = "ticket of a share", .share = &share};
  static struct cv_decline decline[2] = {{.campaign = 8, .why = "epsilon 4 is above my 1"},
                                         {.why = "over my limit", .has_ticket = true, .ticket = "declined"}};
  static struct cv_terms campaign = {.id = 9,
                                     .name = "caf\xc3\xa9s",
                                     .requester = "alice",
                                     .epsilon_micro = 250000,
                                     .tokens_per_worker = 2,
                                     .arms = 20,
                                     .pairs = true,
                                     .scale = {.low = -2.5, .high = 1e300},
                                     .lease_ms = 300000,
                                     .split = {.score_bits = 15, .database = {1}, .spec = {{2}}, .key = {{3}}}};
  static struct cv_assign assign[2] = {
      {.campaign = 9,
       .worker = 300,
       .ticket = "one arm",
       .arms = 1,
       .arm.one = 19,
       .place = 5999,
       .round = 77000,
       .switched = 1000,
       .opponent = 4,
       .plan = UINT64_MAX,
       .slot = UINT32_MAX},
      {.campaign = 9, .worker = 301, .ticket = "many arms", .arms = 3, .arm.many = arms, .place = 1},
  };
  static struct cv_crowd_ack ack = {.ticket = "ticket of an ack", .verdict = CV_VERDICT_REFUSED, .why = "no such arm"};
  static struct cv_backoff backoff = {
      .workers = 2, .worker = workers, .delay_ms = 1500, .why = "nothing to do", .campaign = 9};
  static uint64_t done[] = {9, 0};
  static struct cv_crowd_frame frame = {.hello = {.present = true, .version = CV_WIRE_VERSION, .program = "worker 0.1"},
                                        .goodbye = "too many frames",
                                        .arrives = 1,
                                        .tokens = 2,
                                        .declines = 2,
                                        .campaigns = 1,
                                        .assigns = 2,
                                        .acks = 1,
                                        .backoffs = 1,
                                        .dones = 2,
                                        .arrive = &arrive,
                                        .token = tokens,
                                        .decline = decline,
                                        .campaign = &campaign,
                                        .assign = assign,
                                        .ack = &ack,
                                        .backoff = &backoff,
                                        .done = done};
  (void)snprintf(campaign.privatizer.name, CV_PARAM_TEXT, "randomized-response");
  assert_int_equal(cv_params_set_number(&campaign.privatizer.params, "epsilon", 1.5), CV_OK);
  assert_int_equal(cv_params_set_text(&campaign.privatizer.params, "rule", "printed"), CV_OK);
  (void)snprintf(campaign.mechanism.name, CV_PARAM_TEXT, "hybrid");
  return &frame;
}

static void assert_assigns_equal(const struct cv_assign *a, const struct cv_assign *b) {
  assert_int_equal(a->campaign, b->campaign);
  assert_int_equal(a->worker, b->worker);
  assert_int_equal(a->place, b->place);
  assert_int_equal(a->round, b->round);
  assert_int_equal(a->switched, b->switched);
  assert_int_equal(a->opponent, b->opponent);
  assert_true(a->plan == b->plan && a->slot == b->slot);
  assert_memory_equal(a->ticket, b->ticket, CV_TICKET_BYTES);
  assert_int_equal(a->arms, b->arms);
  if (a->arms == 1) {
    assert_int_equal(a->arm.one, b->arm.one);
  } else {
    assert_memory_equal(a->arm.many, b->arm.many, a->arms * sizeof(uint32_t));
  }
}

static void assert_shares_equal(const struct cv_token_share *a, const struct cv_token_share *b) {
  assert_non_null(a);
  assert_memory_equal(a->nonce, b->nonce, CV_SPLIT_NONCE_BYTES);
  assert_int_equal(a->leader_bytes, b->leader_bytes);
  assert_memory_equal(a->leader, b->leader, a->leader_bytes);
  assert_memory_equal(a->session, b->session, CV_SPLIT_SESSION_BYTES);
  assert_true(a->counter == b->counter);
  assert_memory_equal(a->sealed, b->sealed, CV_SPLIT_SEALED_BYTES);
}

static void every_field_arrives(void **state) {
  const struct cv_crowd_frame *in = sample();
  struct cv_buf bytes = {0};
  struct cv_crowd_frame out;
  assert_int_equal(cv_crowd_encode(in, &scratch, &bytes), CV_OK);
  assert_int_equal(cv_crowd_decode(bytes.data, bytes.len, &arena, &out), CV_OK);
  assert_true(out.hello.present);
  assert_string_equal(out.campaign[0].requester, "alice");
  assert_int_equal(out.hello.version, CV_WIRE_VERSION);
  assert_string_equal(out.hello.program, "worker 0.1");
  assert_string_equal(out.goodbye, "too many frames");
  assert_int_equal(out.arrives, 1);
  assert_int_equal(out.arrive[0].credit, 512);
  assert_int_equal(out.arrive[0].workers, 3);
  assert_memory_equal(out.arrive[0].worker, in->arrive[0].worker, 3 * sizeof(uint64_t));
  assert_memory_equal(out.arrive[0].wish, in->arrive[0].wish, 3 * sizeof(uint32_t));
  assert_int_equal(out.tokens, 2);
  assert_memory_equal(out.token[0].ticket, in->token[0].ticket, CV_TICKET_BYTES);
  assert_int_equal(out.token[0].values, 5);
  assert_memory_equal(out.token[0].value, in->token[0].value, 5 * sizeof(int64_t));
  assert_null(out.token[0].share);
  assert_shares_equal(out.token[1].share, in->token[1].share);
  assert_int_equal(out.token[1].values, 0);
  assert_int_equal(out.declines, 2);
  assert_int_equal(out.decline[0].campaign, 8);
  assert_false(out.decline[0].has_ticket);
  assert_true(out.decline[1].has_ticket && out.decline[1].campaign == 0);
  assert_memory_equal(out.decline[1].ticket, in->decline[1].ticket, CV_TICKET_BYTES);
  assert_string_equal(out.decline[0].why, in->decline[0].why);
  assert_int_equal(out.campaigns, 1);
  assert_int_equal(out.campaign[0].id, 9);
  assert_string_equal(out.campaign[0].name, in->campaign[0].name);
  assert_choices_equal(&out.campaign[0].privatizer, &in->campaign[0].privatizer);
  assert_choices_equal(&out.campaign[0].mechanism, &in->campaign[0].mechanism);
  assert_int_equal(out.campaign[0].epsilon_micro, 250000);
  assert_int_equal(out.campaign[0].tokens_per_worker, 2);
  assert_int_equal(out.campaign[0].lease_ms, 300000);
  assert_int_equal(out.campaign[0].arms, 20);
  assert_true(out.campaign[0].pairs);
  assert_true(cv_scale_is_same(&out.campaign[0].scale, &in->campaign[0].scale));
  assert_int_equal(out.campaign[0].split.score_bits, 15);
  assert_memory_equal(out.campaign[0].split.database, in->campaign[0].split.database, CV_SPLIT_DATABASE_BYTES);
  assert_memory_equal(&out.campaign[0].split.spec, &in->campaign[0].split.spec, CV_DIGEST_BYTES);
  assert_memory_equal(&out.campaign[0].split.key, &in->campaign[0].split.key, CV_DIGEST_BYTES);
  assert_int_equal(out.assigns, 2);
  assert_assigns_equal(&out.assign[0], &in->assign[0]);
  assert_assigns_equal(&out.assign[1], &in->assign[1]);
  assert_int_equal(out.acks, 1);
  assert_memory_equal(out.ack[0].ticket, in->ack[0].ticket, CV_TICKET_BYTES);
  assert_int_equal(out.ack[0].verdict, CV_VERDICT_REFUSED);
  assert_string_equal(out.ack[0].why, "no such arm");
  assert_int_equal(out.backoffs, 1);
  assert_int_equal(out.backoff[0].workers, 2);
  assert_memory_equal(out.backoff[0].worker, in->backoff[0].worker, 2 * sizeof(uint64_t));
  assert_int_equal(out.backoff[0].delay_ms, 1500);
  assert_int_equal(out.backoff[0].campaign, 9);
  assert_string_equal(out.backoff[0].why, "nothing to do");
  assert_int_equal(out.dones, 2);
  assert_int_equal(out.done[0], 9);
  assert_int_equal(out.done[1], 0);
  cv_buf_fini(&bytes);
}

/* What any other implementation of protobuf sends and expects. */
static void bytes_are_protobuf(void **state) {
  uint8_t ticket[CV_TICKET_BYTES];
  memset(ticket, 0xab, sizeof(ticket));
  static const uint8_t values[] = {0x80, 0x80, 0x80, 0x01, 0x01}; /* zigzag of 2^20 and of -1 */
  struct cv_buf token = {0}, want = {0}, bytes = {0};
  put_blob(&token, 1, ticket, sizeof(ticket));
  put_blob(&token, 2, values, sizeof(values));
  put_message(&want, TOKENS, &token);
  static const int64_t sent[] = {1 << 20, -1};
  struct cv_token row = {.values = 2, .value = sent};
  memcpy(row.ticket, ticket, sizeof(ticket));
  struct cv_crowd_frame frame = {.tokens = 1, .token = &row};
  assert_int_equal(cv_crowd_encode(&frame, &scratch, &bytes), CV_OK);
  assert_int_equal(bytes.len, want.len);
  assert_memory_equal(bytes.data, want.data, want.len);
  cv_buf_fini(&bytes);
  cv_buf_fini(&want);
}

static void encode_appends(void **state) {
  struct cv_buf bytes = {0};
  cv_buf_put(&bytes, "head", 4);
  assert_int_equal(cv_crowd_encode(&(struct cv_crowd_frame){.goodbye = "x"}, &scratch, &bytes), CV_OK);
  assert_int_equal(bytes.len, 4 + 5);
  assert_memory_equal(bytes.data, "head\x12\x03\x0a\x01x", 9);
  cv_buf_fini(&bytes);
}

static void random_row(struct cv_rng *rng, struct cv_crowd_frame *frame, uint64_t *workers, int64_t *values,
                       uint32_t *arms) {
  frame->arrive[frame->arrives++] =
      (struct cv_arrive){.workers = cv_rng_below(rng, 100), .worker = workers, .credit = random_u32(rng)};
  struct cv_token *token = &frame->token[frame->tokens++];
  static const uint8_t leader[CV_SPLIT_LEADER_MOST] = {7};
  static struct cv_token_share share = {.leader = leader};
  share.leader_bytes = 1 + cv_rng_below(rng, CV_SPLIT_LEADER_MOST);
  share.counter = random_u64(rng);
  *token = cv_rng_below(rng, 2) == 0
               ? (struct cv_token){.share = &share}
               : (struct cv_token){.values = 1 + cv_rng_below(rng, CV_VALUES_MAX), .value = values};
  random_bytes(rng, token->ticket, CV_TICKET_BYTES);
  struct cv_decline *decline = &frame->decline[frame->declines++];
  *decline = (struct cv_decline){.why = random_text(rng, CV_WHY_BYTES), .has_ticket = random_u64(rng) % 2 == 0};
  if (decline->has_ticket) {
    random_bytes(rng, decline->ticket, CV_TICKET_BYTES);
  } else {
    decline->campaign = random_u64(rng);
  }
  struct cv_terms *terms = &frame->campaign[frame->campaigns++];
  *terms = (struct cv_terms){.id = random_u64(rng),
                             .epsilon_micro = random_u64(rng),
                             .tokens_per_worker = random_u32(rng),
                             .arms = (uint32_t)cv_rng_below(rng, CV_ARMS_MAX + 1),
                             .lease_ms = random_u32(rng) | 1};
  random_scale(rng, &terms->scale);
  random_name(rng, terms->name, sizeof(terms->name));
  random_name(rng, terms->requester, sizeof(terms->requester));
  random_choice(rng, &terms->privatizer);
  random_choice(rng, &terms->mechanism);
  struct cv_assign *assign = &frame->assign[frame->assigns++];
  *assign = (struct cv_assign){.campaign = random_u64(rng),
                               .worker = random_u64(rng),
                               .arms = 1 + (uint32_t)cv_rng_below(rng, CV_VALUES_MAX),
                               .place = random_u64(rng),
                               .round = random_u64(rng),
                               .switched = (uint32_t)random_u64(rng)};
  random_bytes(rng, assign->ticket, CV_TICKET_BYTES);
  if (assign->arms == 1) {
    assign->arm.one = arms[0];
  } else {
    assign->arm.many = arms;
  }
  struct cv_crowd_ack *ack = &frame->ack[frame->acks++];
  *ack = (struct cv_crowd_ack){.verdict = (enum cv_verdict)(1 + cv_rng_below(rng, 4)),
                               .why = random_text(rng, CV_WHY_BYTES)};
  random_bytes(rng, ack->ticket, CV_TICKET_BYTES);
  frame->backoff[frame->backoffs++] = (struct cv_backoff){.workers = cv_rng_below(rng, 100),
                                                          .worker = workers,
                                                          .delay_ms = random_u32(rng),
                                                          .why = random_text(rng, CV_WHY_BYTES),
                                                          .campaign = random_u64(rng)};
  frame->done[frame->dones++] = random_u64(rng);
}

static void random_frames_encode_again_to_the_same(void **state) {
  enum { ROWS = 4 };
  for (uint64_t seed = 0; seed < 300; seed++) {
    struct cv_rng_seeded seeded;
    cv_rng_seeded_init(&seeded, seed, 1, 0, 0);
    struct cv_rng *rng = &seeded.rng;
    uint64_t workers[100];
    int64_t values[CV_VALUES_MAX];
    uint32_t arms[CV_VALUES_MAX];
    for (size_t i = 0; i < 100; i++) {
      workers[i] = random_u64(rng);
    }
    for (size_t i = 0; i < CV_VALUES_MAX; i++) {
      values[i] = (int64_t)random_u64(rng);
      arms[i] = (uint32_t)cv_rng_below(rng, CV_ARMS_MAX);
    }
    struct cv_crowd_frame frame = {.arrive = (struct cv_arrive[ROWS]){0},
                                   .token = (struct cv_token[ROWS]){0},
                                   .decline = (struct cv_decline[ROWS]){0},
                                   .campaign = (struct cv_terms[ROWS]){0},
                                   .assign = (struct cv_assign[ROWS]){0},
                                   .ack = (struct cv_crowd_ack[ROWS]){0},
                                   .backoff = (struct cv_backoff[ROWS]){0},
                                   .done = (uint64_t[ROWS]){0}};
    for (uint64_t rows = 1 + cv_rng_below(rng, ROWS); rows > 0; rows--) {
      random_row(rng, &frame, workers, values, arms);
    }
    struct cv_buf first = {0}, second = {0};
    struct cv_crowd_frame decoded;
    assert_int_equal(cv_crowd_encode(&frame, &scratch, &first), CV_OK);
    assert_int_equal(cv_crowd_decode(first.data, first.len, &arena, &decoded), CV_OK);
    assert_bounded(&decoded);
    assert_int_equal(cv_crowd_encode(&decoded, &scratch, &second), CV_OK);
    assert_same_and_free(&first, &second);
    for (size_t i = 0; i < frame.declines; i++) {
      free((void *)(uintptr_t)frame.decline[i].why);
      free((void *)(uintptr_t)frame.ack[i].why);
      free((void *)(uintptr_t)frame.backoff[i].why);
    }
  }
}

static void hostile_bytes_pass_no_bound(void **state) {
  struct cv_buf bytes = {0};
  assert_int_equal(cv_crowd_encode(sample(), &scratch, &bytes), CV_OK);
  attack(try_bytes, &bytes);
  cv_buf_fini(&bytes);
  attack_with_noise(try_bytes, 1);
}

static void large_frames_stay_in_the_arena(void **state) {
  attack_with_length(try_bytes, CV_FRAME_BYTES);
  for (uint32_t field = ARRIVES; field <= DONES; field++) {
    attack_with_empties(try_bytes, 0, field);
  }
  attack_with_empties(try_bytes, 0, 999); /* unknown */
  attack_with_empties(try_bytes, HELLO, 999);
}

static void a_small_arena_is_a_limit(void **state) {
  struct cv_buf bytes = {0};
  struct cv_arena small;
  struct cv_crowd_frame frame;
  assert_int_equal(cv_crowd_encode(sample(), &scratch, &bytes), CV_OK);
  bool fitted = false;
  for (size_t size = 16; !fitted; size += 16) {
    assert_int_equal(cv_arena_init(&small, size), CV_OK);
    enum cv_err err = cv_crowd_decode(bytes.data, bytes.len, &small, &frame);
    fitted = err == CV_OK;
    assert_true(fitted || err == CV_ERR_LIMIT);
    cv_arena_fini(&small);
    assert_true(size < CV_ARENA_BYTES);
  }
  cv_buf_fini(&bytes);
}

static void too_much_to_send_is_a_limit(void **state) {
  enum { ROWS = 5000 };
  static struct cv_token tokens[ROWS];
  static const int64_t value = 7;
  for (size_t i = 0; i < ROWS; i++) {
    tokens[i] = (struct cv_token){.values = 1, .value = &value};
  }
  struct cv_buf bytes = {0};
  struct cv_crowd_frame frame = {.tokens = ROWS, .token = tokens};
  assert_int_equal(cv_crowd_encode(&frame, &scratch, &bytes), CV_ERR_LIMIT);
  assert_int_equal(bytes.len, 0);
  struct cv_arena small;
  assert_int_equal(cv_arena_init(&small, 4096), CV_OK);
  frame.tokens = 1000;
  assert_int_equal(cv_crowd_encode(&frame, &small, &bytes), CV_ERR_LIMIT);
  assert_int_equal(bytes.len, 0);
  cv_arena_fini(&small);
}

static void texts_are_bounded(void **state) {
  char text[CV_WHY_BYTES + 1];
  for (size_t n = CV_WHY_BYTES - 1; n <= CV_WHY_BYTES; n++) {
    struct cv_buf goodbye = {0}, frame = {0};
    memset(text, 'a', n);
    put_blob(&goodbye, 1, text, n);
    put_message(&frame, GOODBYE, &goodbye);
    assert_int_equal(try_buf(&frame), n < CV_WHY_BYTES ? CV_OK : CV_ERR_FORMAT);
  }
  static const char *const bad[] = {"\n",
                                    "\x1b[2J",
                                    "\x7f",
                                    "\xff",
                                    "\xc3",
                                    "\xc0\xaf",
                                    "\xc2\x85",
                                    "\xed\xa0\x80",
                                    "\xe0\x9f\xbf",
                                    "\xf4\x90\x80\x80",
                                    "\xf0\x8f\xbf\xbf"};
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_buf goodbye = {0}, frame = {0};
    put_blob(&goodbye, 1, bad[i], strlen(bad[i]));
    put_message(&frame, GOODBYE, &goodbye);
    assert_int_equal(try_buf(&frame), CV_ERR_FORMAT);
  }
}

static void a_reason_is_cut_and_cleaned_to_be_sent(void **state) {
  char text[400];
  memset(text, 'b', sizeof(text) - 1);
  text[sizeof(text) - 1] = '\0';
  memcpy(text, "a\nb", 3);
  struct cv_buf bytes = {0};
  struct cv_crowd_frame out;
  assert_int_equal(cv_crowd_encode(&(struct cv_crowd_frame){.goodbye = text}, &scratch, &bytes), CV_OK);
  assert_int_equal(cv_crowd_decode(bytes.data, bytes.len, &arena, &out), CV_OK);
  assert_int_equal(strlen(out.goodbye), CV_WHY_BYTES - 1);
  assert_memory_equal(out.goodbye, "a?b", 3);
  cv_buf_fini(&bytes);
}

static enum cv_err try_token(size_t ticket_bytes, size_t values) {
  uint8_t zeros[CV_TICKET_BYTES + CV_VALUES_MAX + 1] = {0};
  struct cv_buf token = {0}, frame = {0};
  put_blob(&token, 1, zeros, ticket_bytes);
  put_blob(&token, 2, zeros, values);
  put_message(&frame, TOKENS, &token);
  return try_buf(&frame);
}

static enum cv_err try_assign(size_t ticket_bytes, size_t arms, uint32_t arm) {
  uint8_t zeros[CV_TICKET_BYTES + 1] = {0};
  struct cv_buf assign = {0}, frame = {0};
  put_blob(&assign, 3, zeros, ticket_bytes);
  for (size_t i = 0; i < arms; i++) {
    put_number(&assign, 4, arm);
  }
  put_message(&frame, ASSIGNS, &assign);
  return try_buf(&frame);
}

static enum cv_err try_ack(size_t ticket_bytes, uint64_t verdict) {
  uint8_t zeros[CV_TICKET_BYTES + 1] = {0};
  struct cv_buf ack = {0}, frame = {0};
  put_blob(&ack, 1, zeros, ticket_bytes);
  put_number(&ack, 2, verdict);
  put_message(&frame, ACKS, &ack);
  return try_buf(&frame);
}

static enum cv_err try_decline(size_t ticket_bytes, uint64_t campaign) {
  uint8_t zeros[CV_TICKET_BYTES + 1] = {0};
  struct cv_buf decline = {0}, frame = {0};
  put_number(&decline, 1, campaign);
  put_blob(&decline, 3, zeros, ticket_bytes);
  put_message(&frame, DECLINES, &decline);
  return try_buf(&frame);
}

/* A share of these lengths, beside so many values. */
static enum cv_err try_share(size_t values, size_t nonce, size_t leader, size_t session, size_t sealed) {
  static const uint8_t zeros[CV_SPLIT_LEADER_MOST + 1];
  struct cv_buf token = {0}, share = {0}, frame = {0};
  put_blob(&token, 1, zeros, CV_TICKET_BYTES);
  put_blob(&token, 2, zeros, values);
  put_blob(&share, 1, zeros, nonce);
  put_blob(&share, 2, zeros, leader);
  put_blob(&share, 3, zeros, session);
  put_blob(&share, 5, zeros, sealed);
  put_message(&token, 3, &share);
  put_message(&frame, TOKENS, &token);
  return try_buf(&frame);
}

static void shares_have_one_length(void **state) {
  assert_int_equal(try_share(0, 16, 1, 16, 48), CV_OK);
  assert_int_equal(try_share(0, 16, CV_SPLIT_LEADER_MOST, 16, 48), CV_OK);
  assert_int_equal(try_share(1, 16, 40, 16, 48), CV_ERR_FORMAT); /* a score beside the share that hides it */
  assert_int_equal(try_share(0, 16, 0, 16, 48), CV_ERR_FORMAT);
  assert_int_equal(try_share(0, 16, CV_SPLIT_LEADER_MOST + 1, 16, 48), CV_ERR_FORMAT);
  for (size_t off = 0; off < 3; off += 2) {
    assert_int_equal(try_share(0, 15 + off, 40, 16, 48), CV_ERR_FORMAT);
    assert_int_equal(try_share(0, 16, 40, 15 + off, 48), CV_ERR_FORMAT);
    assert_int_equal(try_share(0, 16, 40, 16, 47 + off), CV_ERR_FORMAT);
  }
}

/* Tokens with the longest shares, as many as one flush of a gateway may send: each part fits into a frame. */
static void shares_are_cut_to_frames(void **state) {
  enum { MANY = 3000 };
  static struct cv_token tokens[MANY];
  static const uint8_t leader[CV_SPLIT_LEADER_MOST];
  static struct cv_token_share share = {.leader_bytes = sizeof(leader), .leader = leader, .counter = UINT64_MAX};
  for (size_t i = 0; i < MANY; i++) {
    tokens[i] = (struct cv_token){.share = &share};
  }
  struct cv_crowd_frame part, rest = {.tokens = MANY, .token = tokens};
  size_t sent = 0;
  for (bool more = true; more;) {
    struct cv_buf bytes = {0};
    more = CV_CROWD_WIRE.cut(&rest, &part);
    assert_true(part.tokens > 0);
    sent += part.tokens;
    assert_int_equal(CV_CROWD_WIRE.encode(&part, &scratch, &bytes), CV_OK);
    cv_buf_fini(&bytes);
  }
  assert_int_equal(sent, MANY);
}

static void fields_are_in_range(void **state) {
  assert_int_equal(try_decline(0, 7), CV_OK);
  assert_int_equal(try_decline(CV_TICKET_BYTES, 0), CV_OK);
  assert_int_equal(try_decline(CV_TICKET_BYTES, 7), CV_ERR_FORMAT); /* one or the other */
  assert_int_equal(try_decline(CV_TICKET_BYTES - 1, 0), CV_ERR_FORMAT);
  assert_int_equal(try_decline(CV_TICKET_BYTES + 1, 0), CV_ERR_FORMAT);
  assert_int_equal(try_token(CV_TICKET_BYTES, 1), CV_OK);
  assert_int_equal(try_token(CV_TICKET_BYTES, CV_VALUES_MAX), CV_OK);
  assert_int_equal(try_token(CV_TICKET_BYTES, CV_VALUES_MAX + 1), CV_ERR_FORMAT);
  assert_int_equal(try_token(CV_TICKET_BYTES, 0), CV_ERR_FORMAT);
  assert_int_equal(try_token(CV_TICKET_BYTES - 1, 1), CV_ERR_FORMAT);
  assert_int_equal(try_token(CV_TICKET_BYTES + 1, 1), CV_ERR_FORMAT);
  assert_int_equal(try_token(0, 1), CV_ERR_FORMAT);
  assert_int_equal(try_assign(CV_TICKET_BYTES, 1, CV_ARMS_MAX - 1), CV_OK);
  assert_int_equal(try_assign(CV_TICKET_BYTES, 1, CV_ARMS_MAX), CV_ERR_FORMAT);
  assert_int_equal(try_assign(CV_TICKET_BYTES, 0, 0), CV_ERR_FORMAT);
  assert_int_equal(try_assign(CV_TICKET_BYTES, CV_VALUES_MAX, 0), CV_OK);
  assert_int_equal(try_assign(CV_TICKET_BYTES, CV_VALUES_MAX + 1, 0), CV_ERR_FORMAT);
  assert_int_equal(try_assign(CV_TICKET_BYTES + 1, 1, 0), CV_ERR_FORMAT);
  assert_int_equal(try_ack(CV_TICKET_BYTES, 1), CV_OK);
  assert_int_equal(try_ack(CV_TICKET_BYTES, 4), CV_OK);
  assert_int_equal(try_ack(CV_TICKET_BYTES, 0), CV_ERR_FORMAT);
  assert_int_equal(try_ack(CV_TICKET_BYTES, 5), CV_ERR_FORMAT);
  assert_int_equal(try_ack(CV_TICKET_BYTES, UINT64_MAX), CV_ERR_FORMAT);
  assert_int_equal(try_ack(CV_TICKET_BYTES - 1, 1), CV_ERR_FORMAT);
}

static void nothing_known_is_no_envelope(void **state) {
  struct cv_buf unknown = {0}, mixed = {0}, done = {0};
  assert_int_equal(try_exactly(try_bytes, (const uint8_t *)"", 0), CV_ERR_FORMAT);
  put_number(&unknown, 77, 5);
  assert_int_equal(try_buf(&unknown), CV_ERR_FORMAT);
  put_number(&done, 1, 5);
  put_blob(&done, 9, "newer", 5);
  put_message(&mixed, DONES, &done);
  put_number(&mixed, 77, 5);
  assert_int_equal(try_buf(&mixed), CV_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_field_arrives),
      cmocka_unit_test(bytes_are_protobuf),
      cmocka_unit_test(encode_appends),
      cmocka_unit_test(random_frames_encode_again_to_the_same),
      cmocka_unit_test(hostile_bytes_pass_no_bound),
      cmocka_unit_test(large_frames_stay_in_the_arena),
      cmocka_unit_test(a_small_arena_is_a_limit),
      cmocka_unit_test(too_much_to_send_is_a_limit),
      cmocka_unit_test(texts_are_bounded),
      cmocka_unit_test(a_reason_is_cut_and_cleaned_to_be_sent),
      cmocka_unit_test(fields_are_in_range),
      cmocka_unit_test(shares_have_one_length),
      cmocka_unit_test(shares_are_cut_to_frames),
      cmocka_unit_test(nothing_known_is_no_envelope),
  };
  return cmocka_run_group_tests(tests, make_arenas, drop_arenas);
}
