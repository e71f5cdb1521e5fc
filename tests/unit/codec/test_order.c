/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/order.h"
#include "tests/unit/codec/codec_test.h"
#include "tests/unit/codec/records.h"

/* The fields of order.proto's envelope. */
enum {
  SUBMIT = 3,
  WATCH,
  CANCEL,
  EXPORT,
  STATUS,
  ACCEPTED,
  PROGRESS,
  FINISHED,
  PART,
  STATUS_ANSWER,
  ERROR,
  LEDGER,
  STATEMENT,
  DESCRIPTION
};

static void assert_progress_bounded(const struct cv_progress *progress) {
  assert_true(text_is_bounded(progress->name, CV_NAME_BYTES));
  assert_in_range(progress->end, 0, CV_END_COUNT - 1);
  assert_in_range(progress->arms, 0, CV_ARMS_MAX);
  assert_in_range(progress->decided, 0, progress->arms);
}

static void assert_part_bounded(const struct cv_part *part) {
  if (part->first) {
    assert_spec_bounded(&part->spec);
    assert_progress_bounded(&part->progress);
  }
  for (size_t i = 0; i < part->plans; i++) {
    assert_plan_bounded(&part->plan[i]);
  }
  for (size_t i = 0; i < part->releases; i++) {
    assert_release_bounded(&part->release[i]);
  }
  assert_standings_bounded(part->standing, part->standings);
}

static void assert_statement_bounded(const struct cv_statement *statement) {
  assert_true(text_is_bounded(statement->name, CV_NAME_BYTES));
  assert_true(text_is_bounded(statement->mechanism, CV_PARAM_TEXT));
  assert_true(text_is_bounded(statement->privatizer, CV_PARAM_TEXT));
  assert_true(text_is_bounded(statement->guarantee, CV_WHY_BYTES));
  assert_in_range(statement->end, 0, CV_END_COUNT - 1);
  assert_in_range(statement->arms, 0, CV_ARMS_MAX);
  for (uint32_t i = 0; i < statement->arms; i++) {
    assert_true(statement->account[i].lost_micro <= statement->account[i].spent_micro);
  }
}

static void assert_bounded(const struct cv_order_frame *frame) {
  assert_true(frame->kind != CV_ORDER_NONE || frame->hello.present || frame->goodbye != NULL);
  switch (frame->kind) {
    case CV_ORDER_SUBMIT:
      assert_spec_bounded(&frame->as.submit.spec);
      assert_true(frame->as.submit.gold.items <= CV_GOLD_MAX);
      break;
    case CV_ORDER_PROGRESS:
      assert_progress_bounded(&frame->as.progress);
      break;
    case CV_ORDER_DESCRIPTION:
      assert_spec_bounded(&frame->as.description.spec);
      break;
    case CV_ORDER_STANDINGS:
      assert_standings_bounded(frame->as.standings.standing, frame->as.standings.standings);
      break;
    case CV_ORDER_FINISHED:
      assert_progress_bounded(&frame->as.finished.progress);
      assert_standings_bounded(frame->as.finished.standing, frame->as.finished.standings);
      break;
    case CV_ORDER_PART:
      assert_part_bounded(&frame->as.part);
      break;
    case CV_ORDER_STATUS_ANSWER:
      assert_true(text_is_bounded(frame->as.status.broker, CV_NAME_BYTES));
      for (size_t i = 0; i < frame->as.status.campaigns; i++) {
        assert_progress_bounded(&frame->as.status.campaign[i]);
      }
      break;
    case CV_ORDER_LEDGER:
      if (frame->as.ledger.has_plan) {
        assert_spec_bounded(&frame->as.ledger.plan);
      }
      break;
    case CV_ORDER_STATEMENT:
      assert_statement_bounded(&frame->as.statement);
      break;
    case CV_ORDER_ERROR:
      assert_true(text_is_bounded(frame->as.error, CV_WHY_BYTES));
      break;
    default:
      assert_in_range(frame->kind, CV_ORDER_NONE, CV_ORDER_STANDINGS);
      break;
  }
}

CODEC_TRIES(order)

static void random_progress(struct cv_rng *rng, struct cv_progress *ret) {
  uint32_t arms = (uint32_t)cv_rng_below(rng, CV_ARMS_MAX + 1);
  *ret = (struct cv_progress){.campaign = random_u64(rng),
                              .tokens = random_u64(rng),
                              .tokens_limit = random_u64(rng),
                              .releases = random_u64(rng),
                              .plans = random_u64(rng),
                              .elapsed_ms = random_u64(rng),
                              .arms = arms,
                              .decided = (uint32_t)cv_rng_below(rng, arms + 1),
                              .classes = (uint32_t)cv_rng_below(rng, arms + 1),
                              .epsilon_spent_micro = random_u64(rng),
                              .workers = random_u32(rng),
                              .end = (enum cv_end)cv_rng_below(rng, CV_END_COUNT),
                              .thirdparty_connected = cv_rng_below(rng, 2) == 0,
                              .waits_for_cobroker = cv_rng_below(rng, 2) == 0,
                              .cobroker_connected = cv_rng_below(rng, 2) == 0};
  random_name(rng, ret->name, sizeof(ret->name));
  random_name(rng, ret->waits_for, sizeof(ret->waits_for));
}

enum { ROWS = 5 };

struct made {
  struct cv_order_frame frame;
  struct cv_plan plan[ROWS];
  struct cv_release release[ROWS];
  struct cv_progress progress[ROWS];
  struct cv_account account[ROWS];
  int64_t neutral[ROWS];
  char why[CV_WHY_BYTES];
};

static void random_part(struct cv_rng *rng, struct made *made) {
  struct cv_part *part = &made->frame.as.part;
  *part = (struct cv_part){.campaign = random_u64(rng),
                           .first = cv_rng_below(rng, 2) == 0,
                           .plans = cv_rng_below(rng, ROWS + 1),
                           .releases = cv_rng_below(rng, ROWS + 1),
                           .plan = made->plan,
                           .release = made->release,
                           .last = cv_rng_below(rng, 2) == 0};
  if (part->first) {
    random_spec(rng, &part->spec);
    part->seed = random_u64(rng);
    random_progress(rng, &part->progress);
  }
  for (size_t i = 0; i < part->plans; i++) {
    random_plan(rng, &made->plan[i]);
  }
  for (size_t i = 0; i < part->releases; i++) {
    random_release(rng, &made->release[i]);
  }
  random_standings(rng, &part->standings, &part->standing);
  part->neutrals = (uint32_t)cv_rng_below(rng, ROWS + 1);
  part->neutral = made->neutral;
  part->neutral_epsilon_micro = part->neutrals > 0 ? 1 + cv_rng_below(rng, CV_GOLD_EPSILON_MAX) : 0;
  for (size_t i = 0; i < ROWS; i++) {
    made->neutral[i] = (int64_t)cv_rng_u64(rng);
  }
}

static void random_statement(struct cv_rng *rng, struct made *made) {
  struct cv_statement *statement = &made->frame.as.statement;
  *statement = (struct cv_statement){.campaign = random_u64(rng),
                                     .mechanism = "hybrid",
                                     .privatizer = "none",
                                     .guarantee = "event level",
                                     .is_exact = cv_rng_below(rng, 2) == 0,
                                     .epsilon_micro = random_u64(rng),
                                     .worker_epsilon_micro = random_u64(rng),
                                     .lifetime_epsilon_micro = random_u64(rng),
                                     .floor_micro = random_u64(rng),
                                     .delta_pico = random_u64(rng),
                                     .tokens_per_worker = random_u32(rng),
                                     .end = (enum cv_end)cv_rng_below(rng, CV_END_COUNT),
                                     .arms = (uint32_t)cv_rng_below(rng, ROWS + 1),
                                     .account = made->account};
  random_name(rng, statement->name, sizeof(statement->name));
  for (size_t i = 0; i < ROWS; i++) {
    uint64_t spent = random_u64(rng);
    made->account[i] = (struct cv_account){
        .spent_micro = spent, .lost_micro = spent / 2, .releases = random_u64(rng), .tokens = random_u64(rng)};
  }
}

static void random_gold(struct cv_rng *rng, struct cv_gold *ret) {
  *ret = (struct cv_gold){.items = (uint32_t)cv_rng_below(rng, 4)};
  if (ret->items > 0) {
    ret->item = calloc(ret->items, sizeof(*ret->item));
    assert_non_null(ret->item);
    ret->tolerance = (int64_t)cv_rng_below(rng, 1 << 20);
    ret->error_micro = (uint32_t)cv_rng_u64(rng);
    ret->level_micro = (uint32_t)cv_rng_u64(rng);
    ret->share_micro = (uint32_t)cv_rng_u64(rng);
    ret->epsilon_micro = (uint32_t)cv_rng_below(rng, CV_GOLD_EPSILON_MAX + 1);
  }
  for (uint32_t i = 0; i < ret->items; i++) {
    ret->item[i] =
        (struct cv_gold_item){.item = (uint32_t)cv_rng_u64(rng), .answer = (int64_t)cv_rng_below(rng, 1 << 21)};
  }
}

static void assert_same_gold(const struct cv_gold *a, const struct cv_gold *b) {
  assert_int_equal(a->items, b->items);
  for (uint32_t i = 0; i < a->items; i++) {
    assert_int_equal(a->item[i].item, b->item[i].item);
    assert_int_equal(a->item[i].answer, b->item[i].answer);
  }
  assert_int_equal(a->tolerance, b->tolerance);
  assert_int_equal(a->error_micro, b->error_micro);
  assert_int_equal(a->level_micro, b->level_micro);
  assert_int_equal(a->share_micro, b->share_micro);
  assert_int_equal(a->epsilon_micro, b->epsilon_micro);
}

static struct made *make_frame(uint64_t seed) {
  struct made *made = calloc(1, sizeof(*made));
  assert_non_null(made);
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, seed, 3, 0, 0);
  struct cv_rng *rng = &seeded.rng;
  struct cv_order_frame *frame = &made->frame;
  frame->kind = (enum cv_order_kind)(1 + seed % CV_ORDER_STANDINGS);
  switch (frame->kind) {
    case CV_ORDER_SUBMIT:
      random_bytes(rng, frame->as.submit.client_key, CV_CLIENT_KEY_BYTES);
      random_spec(rng, &frame->as.submit.spec);
      random_gold(rng, &frame->as.submit.gold);
      break;
    case CV_ORDER_ACCEPTED:
      frame->as.accepted.campaign = random_u64(rng);
      frame->as.accepted.existed = cv_rng_below(rng, 2) == 0;
      break;
    case CV_ORDER_PROGRESS:
      random_progress(rng, &frame->as.progress);
      break;
    case CV_ORDER_WATCH:
      frame->as.watch.campaign = random_u64(rng);
      frame->as.watch.describe = cv_rng_below(rng, 2) == 0;
      frame->as.watch.standings = cv_rng_below(rng, 2) == 0;
      break;
    case CV_ORDER_STANDINGS:
      frame->as.standings.campaign = random_u64(rng);
      random_standings(rng, &frame->as.standings.standings, &frame->as.standings.standing);
      break;
    case CV_ORDER_DESCRIPTION:
      frame->as.description.campaign = random_u64(rng);
      random_spec(rng, &frame->as.description.spec);
      break;
    case CV_ORDER_FINISHED:
      random_progress(rng, &frame->as.finished.progress);
      random_standings(rng, &frame->as.finished.standings, &frame->as.finished.standing);
      break;
    case CV_ORDER_PART:
      random_part(rng, made);
      break;
    case CV_ORDER_STATUS_ANSWER:
      frame->as.status = (struct cv_status){.campaigns = ROWS,
                                            .campaign = made->progress,
                                            .broker = "broker one",
                                            .uptime_ms = random_u64(rng),
                                            .term = random_u64(rng)};
      for (size_t i = 0; i < ROWS; i++) {
        random_progress(rng, &made->progress[i]);
      }
      break;
    case CV_ORDER_LEDGER:
      frame->as.ledger.campaign = random_u64(rng);
      frame->as.ledger.has_plan = cv_rng_below(rng, 2) == 0;
      if (frame->as.ledger.has_plan) {
        random_spec(rng, &frame->as.ledger.plan);
        random_gold(rng, &frame->as.ledger.gold);
      }
      break;
    case CV_ORDER_STATEMENT:
      random_statement(rng, made);
      break;
    case CV_ORDER_ERROR:
      random_name(rng, made->why, sizeof(made->why));
      frame->as.error = made->why;
      break;
    default:
      frame->as.campaign = frame->kind == CV_ORDER_STATUS ? 0 : random_u64(rng);
      break;
  }
  return made;
}

static void free_frame(struct made *made) {
  struct cv_order_frame *frame = &made->frame;
  if (frame->kind == CV_ORDER_SUBMIT) {
    cv_spec_fini(&frame->as.submit.spec);
    free(frame->as.submit.gold.item);
  } else if (frame->kind == CV_ORDER_LEDGER && frame->as.ledger.has_plan) {
    cv_spec_fini(&frame->as.ledger.plan);
    free(frame->as.ledger.gold.item);
  } else if (frame->kind == CV_ORDER_DESCRIPTION) {
    cv_spec_fini(&frame->as.description.spec);
  } else if (frame->kind == CV_ORDER_STANDINGS) {
    free(frame->as.standings.standing);
  } else if (frame->kind == CV_ORDER_FINISHED) {
    free(frame->as.finished.standing);
  } else if (frame->kind == CV_ORDER_PART) {
    cv_spec_fini(&frame->as.part.spec);
    free(frame->as.part.standing);
    for (size_t i = 0; i < ROWS; i++) {
      free(made->plan[i].want);
    }
  }
  free(made);
}

static void assert_progress_equal(const struct cv_progress *a, const struct cv_progress *b) {
  assert_string_equal(a->name, b->name);
  assert_string_equal(a->waits_for, b->waits_for);
  assert_true(a->campaign == b->campaign && a->tokens == b->tokens && a->tokens_limit == b->tokens_limit);
  assert_true(a->releases == b->releases && a->plans == b->plans && a->elapsed_ms == b->elapsed_ms);
  assert_true(a->arms == b->arms && a->decided == b->decided && a->classes == b->classes);
  assert_true(a->epsilon_spent_micro == b->epsilon_spent_micro && a->workers == b->workers && a->end == b->end);
  assert_int_equal(a->thirdparty_connected, b->thirdparty_connected);
  assert_int_equal(a->waits_for_cobroker, b->waits_for_cobroker);
  assert_int_equal(a->cobroker_connected, b->cobroker_connected);
}

static void assert_parts_equal(const struct cv_part *a, const struct cv_part *b) {
  assert_int_equal(a->campaign, b->campaign);
  assert_int_equal(a->last, b->last);
  assert_int_equal(a->first, b->first);
  if (a->first) {
    assert_specs_equal(&a->spec, &b->spec);
    assert_int_equal(a->seed, b->seed);
    assert_progress_equal(&a->progress, &b->progress);
  }
  assert_int_equal(a->plans, b->plans);
  for (size_t i = 0; i < a->plans; i++) {
    assert_plans_equal(&a->plan[i], &b->plan[i]);
  }
  assert_int_equal(a->releases, b->releases);
  for (size_t i = 0; i < a->releases; i++) {
    assert_releases_equal(&a->release[i], &b->release[i]);
  }
  assert_int_equal(a->neutrals, b->neutrals);
  for (uint32_t i = 0; i < a->neutrals; i++) {
    assert_true(a->neutral[i] == b->neutral[i]);
  }
  assert_true(a->neutral_epsilon_micro == b->neutral_epsilon_micro);
  assert_standings_equal(a->standing, a->standings, b->standing, b->standings);
}

static void assert_statements_equal(const struct cv_statement *a, const struct cv_statement *b) {
  assert_string_equal(a->name, b->name);
  assert_string_equal(a->mechanism, b->mechanism);
  assert_string_equal(a->privatizer, b->privatizer);
  assert_string_equal(a->guarantee, b->guarantee);
  assert_true(a->campaign == b->campaign && a->is_exact == b->is_exact && a->epsilon_micro == b->epsilon_micro);
  assert_true(a->worker_epsilon_micro == b->worker_epsilon_micro && a->floor_micro == b->floor_micro);
  assert_true(a->delta_pico == b->delta_pico);
  assert_true(a->lifetime_epsilon_micro == b->lifetime_epsilon_micro && a->end == b->end);
  assert_int_equal(a->tokens_per_worker, b->tokens_per_worker);
  assert_int_equal(a->arms, b->arms);
  assert_memory_equal(a->account, b->account, a->arms * sizeof(*a->account));
}

static void assert_frames_equal(const struct cv_order_frame *a, const struct cv_order_frame *b) {
  assert_int_equal(a->kind, b->kind);
  switch (a->kind) {
    case CV_ORDER_SUBMIT:
      assert_memory_equal(a->as.submit.client_key, b->as.submit.client_key, CV_CLIENT_KEY_BYTES);
      assert_same_gold(&a->as.submit.gold, &b->as.submit.gold);
      assert_specs_equal(&a->as.submit.spec, &b->as.submit.spec);
      break;
    case CV_ORDER_LEDGER:
      assert_int_equal(a->as.ledger.campaign, b->as.ledger.campaign);
      assert_int_equal(a->as.ledger.has_plan, b->as.ledger.has_plan);
      if (a->as.ledger.has_plan) {
        assert_specs_equal(&a->as.ledger.plan, &b->as.ledger.plan);
        assert_same_gold(&a->as.ledger.gold, &b->as.ledger.gold);
      }
      break;
    case CV_ORDER_STATEMENT:
      assert_statements_equal(&a->as.statement, &b->as.statement);
      break;
    case CV_ORDER_ACCEPTED:
      assert_int_equal(a->as.accepted.campaign, b->as.accepted.campaign);
      assert_int_equal(a->as.accepted.existed, b->as.accepted.existed);
      break;
    case CV_ORDER_PROGRESS:
      assert_progress_equal(&a->as.progress, &b->as.progress);
      break;
    case CV_ORDER_WATCH:
      assert_int_equal(a->as.watch.campaign, b->as.watch.campaign);
      assert_int_equal(a->as.watch.describe, b->as.watch.describe);
      assert_int_equal(a->as.watch.standings, b->as.watch.standings);
      break;
    case CV_ORDER_STANDINGS:
      assert_int_equal(a->as.standings.campaign, b->as.standings.campaign);
      assert_standings_equal(a->as.standings.standing, a->as.standings.standings, b->as.standings.standing,
                             b->as.standings.standings);
      break;
    case CV_ORDER_DESCRIPTION:
      assert_int_equal(a->as.description.campaign, b->as.description.campaign);
      assert_specs_equal(&a->as.description.spec, &b->as.description.spec);
      break;
    case CV_ORDER_FINISHED:
      assert_progress_equal(&a->as.finished.progress, &b->as.finished.progress);
      assert_standings_equal(a->as.finished.standing, a->as.finished.standings, b->as.finished.standing,
                             b->as.finished.standings);
      break;
    case CV_ORDER_PART:
      assert_parts_equal(&a->as.part, &b->as.part);
      break;
    case CV_ORDER_STATUS_ANSWER:
      assert_int_equal(a->as.status.campaigns, b->as.status.campaigns);
      for (size_t i = 0; i < ROWS; i++) {
        assert_progress_equal(&a->as.status.campaign[i], &b->as.status.campaign[i]);
      }
      assert_string_equal(a->as.status.broker, b->as.status.broker);
      assert_int_equal(a->as.status.uptime_ms, b->as.status.uptime_ms);
      assert_int_equal(a->as.status.term, b->as.status.term);
      break;
    case CV_ORDER_ERROR:
      assert_string_equal(a->as.error, b->as.error);
      break;
    default:
      assert_int_equal(a->as.campaign, b->as.campaign);
      break;
  }
}

static void random_frames_arrive_and_encode_again_to_the_same(void **state) {
  for (uint64_t seed = 0; seed < 660; seed++) {
    struct made *made = make_frame(seed);
    struct cv_buf first = {0}, second = {0};
    struct cv_order_frame decoded;
    assert_int_equal(cv_order_encode(&made->frame, &scratch, &first), CV_OK);
    assert_int_equal(cv_order_decode(first.data, first.len, &arena, &decoded), CV_OK);
    assert_bounded(&decoded);
    assert_frames_equal(&made->frame, &decoded);
    assert_int_equal(cv_order_encode(&decoded, &scratch, &second), CV_OK);
    assert_same_and_free(&first, &second);
    free_frame(made);
  }
}

/* One frame of every kind, with small random contents. */
static void hostile_bytes_pass_no_bound(void **state) {
  for (uint64_t kind = 0; kind < CV_ORDER_STANDINGS; kind++) {
    struct cv_buf smallest = {0};
    for (uint64_t i = 0; i < 40; i++) {
      struct made *made = make_frame(kind + i * CV_ORDER_STANDINGS);
      struct cv_buf bytes = {0};
      assert_int_equal(cv_order_encode(&made->frame, &scratch, &bytes), CV_OK);
      if (smallest.len == 0 || bytes.len < smallest.len) {
        cv_buf_fini(&smallest);
        smallest = bytes;
      } else {
        cv_buf_fini(&bytes);
      }
      free_frame(made);
    }
    attack(try_bytes, &smallest);
    cv_buf_fini(&smallest);
  }
  attack_with_noise(try_bytes, 3);
}

static void large_frames_stay_in_the_arena(void **state) {
  attack_with_length(try_bytes, CV_LARGE_FRAME_BYTES);
  attack_with_empties(try_bytes, PART, 5);
  attack_with_empties(try_bytes, PART, 6);
  attack_with_empties(try_bytes, PART, 7);
  attack_with_empties(try_bytes, FINISHED, 2);
  attack_with_empties(try_bytes, STATUS_ANSWER, 1);
  attack_with_empties(try_bytes, 0, STATUS);
}

static void a_frame_has_one_message(void **state) {
  struct cv_buf two = {0}, none = {0}, hello = {0};
  assert_int_equal(try_exactly(try_bytes, (const uint8_t *)"", 0), CV_ERR_FORMAT);
  put_blob(&two, WATCH, NULL, 0);
  put_blob(&two, CANCEL, NULL, 0);
  assert_int_equal(try_buf(&two), CV_ERR_FORMAT);
  put_blob(&none, 99, "newer", 5);
  assert_int_equal(try_buf(&none), CV_ERR_FORMAT);
  put_blob(&hello, 1, NULL, 0);
  assert_int_equal(try_buf(&hello), CV_OK);
}

static enum cv_err try_key(size_t n) {
  static const uint8_t zeros[32] = {0};
  struct cv_buf spec = {0}, submit = {0}, frame = {0};
  put_number(&spec, 2, 3);
  put_blob(&submit, 1, zeros, n);
  put_message(&submit, 2, &spec);
  put_message(&frame, SUBMIT, &submit);
  return try_buf(&frame);
}

static void a_submit_has_a_key_and_a_spec(void **state) {
  assert_int_equal(try_key(CV_CLIENT_KEY_BYTES), CV_OK);
  assert_int_equal(try_key(CV_CLIENT_KEY_BYTES - 1), CV_ERR_FORMAT);
  assert_int_equal(try_key(CV_CLIENT_KEY_BYTES + 1), CV_ERR_FORMAT);
  static const uint8_t zeros[CV_CLIENT_KEY_BYTES] = {0};
  struct cv_buf submit = {0}, frame = {0};
  put_blob(&submit, 1, zeros, sizeof(zeros));
  put_message(&frame, SUBMIT, &submit);
  assert_int_equal(try_buf(&frame), CV_ERR_FORMAT);
}

static void a_description_has_a_spec(void **state) {
  struct cv_buf spec = {0}, full = {0}, bare = {0}, first = {0}, second = {0};
  put_number(&spec, 2, 3);
  put_number(&full, 1, 7);
  put_message(&full, 2, &spec);
  put_message(&first, DESCRIPTION, &full);
  assert_int_equal(try_buf(&first), CV_OK);
  put_number(&bare, 1, 7);
  put_message(&second, DESCRIPTION, &bare);
  assert_int_equal(try_buf(&second), CV_ERR_FORMAT);
}

/* A part with spec, seed and progress, or without some of them. */
static enum cv_err try_part(bool has_spec, size_t seed, bool has_progress, uint64_t plan_of) {
  static const uint8_t zeros[16] = {0};
  struct cv_buf part = {0}, plan = {0}, frame = {0};
  put_number(&part, 1, 7);
  if (has_spec) {
    put_blob(&part, 2, NULL, 0);
  }
  put_blob(&part, 3, zeros, seed);
  if (has_progress) {
    put_blob(&part, 4, NULL, 0);
  }
  put_number(&plan, 1, plan_of);
  put_number(&plan, 2, 1);
  put_message(&part, 5, &plan);
  put_message(&frame, PART, &part);
  return try_buf(&frame);
}

static void a_part_is_the_first_or_not(void **state) {
  assert_int_equal(try_part(true, 8, true, 7), CV_OK);
  assert_int_equal(try_part(false, 0, false, 7), CV_OK);
  assert_int_equal(try_part(true, 0, true, 7), CV_ERR_FORMAT);
  assert_int_equal(try_part(true, 8, false, 7), CV_ERR_FORMAT);
  assert_int_equal(try_part(false, 8, false, 7), CV_ERR_FORMAT);
  assert_int_equal(try_part(false, 0, true, 7), CV_ERR_FORMAT);
  assert_int_equal(try_part(false, 0, false, 8), CV_ERR_FORMAT); /* a plan of another campaign */
}

static enum cv_err try_progress(uint32_t field, uint64_t value) {
  struct cv_buf progress = {0}, frame = {0};
  put_number(&progress, field, value);
  put_message(&frame, PROGRESS, &progress);
  return try_buf(&frame);
}

static void progress_is_in_range(void **state) {
  assert_int_equal(try_progress(8, CV_ARMS_MAX), CV_OK);
  assert_int_equal(try_progress(8, CV_ARMS_MAX + 1), CV_ERR_FORMAT);
  assert_int_equal(try_progress(9, 1), CV_ERR_FORMAT); /* more decided than there are */
  assert_int_equal(try_progress(13, CV_END_COUNT - 1), CV_OK);
  assert_int_equal(try_progress(13, CV_END_COUNT), CV_ERR_FORMAT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_frames_arrive_and_encode_again_to_the_same),
      cmocka_unit_test(hostile_bytes_pass_no_bound),
      cmocka_unit_test(large_frames_stay_in_the_arena),
      cmocka_unit_test(a_frame_has_one_message),
      cmocka_unit_test(a_submit_has_a_key_and_a_spec),
      cmocka_unit_test(a_description_has_a_spec),
      cmocka_unit_test(a_part_is_the_first_or_not),
      cmocka_unit_test(progress_is_in_range),
  };
  return cmocka_run_group_tests(tests, make_arenas, drop_arenas);
}
