/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/rank.h"
#include "tests/unit/codec/codec_test.h"
#include "tests/unit/codec/records.h"

/* The fields of rank.proto's envelope. */
enum { OPENS = 3, RECORDED, RELEASES, ACCEPTED, REFUSED, STOPS, CLOSED, OPENED, ACKS, PLANS, RESULTS };

static void assert_rank_plan_bounded(const struct cv_rank_plan *plan) {
  assert_plan_bounded(&plan->plan);
  assert_standings_bounded(plan->standing, plan->standings);
}

static void assert_orders_bounded(const struct cv_rank_frame *frame) {
  for (size_t i = 0; i < frame->opens; i++) {
    assert_spec_bounded(&frame->open[i].spec);
    assert_in_range(frame->open[i].stop, 0, CV_END_COUNT - 1);
    assert_true(frame->open[i].has_seed || frame->open[i].seed == 0);
  }
  for (size_t i = 0; i < frame->recorded; i++) {
    assert_rank_plan_bounded(&frame->record[i]);
  }
  for (size_t i = 0; i < frame->releases; i++) {
    assert_release_bounded(&frame->release[i].release);
  }
  for (size_t i = 0; i < frame->refused; i++) {
    assert_in_range(frame->refuse[i].reason, 1, CV_END_COUNT - 1);
    assert_true(text_is_bounded(frame->refuse[i].why, CV_WHY_BYTES));
  }
  for (size_t i = 0; i < frame->stops; i++) {
    assert_in_range(frame->stop[i].reason, 1, CV_END_COUNT - 1);
  }
}

static void assert_bounded(const struct cv_rank_frame *frame) {
  assert_orders_bounded(frame);
  for (size_t i = 0; i < frame->opened; i++) {
    const char *refused = frame->answer[i].refused;
    assert_true(refused == NULL || (text_is_bounded(refused, CV_WHY_BYTES) && refused[0] != '\0'));
  }
  for (size_t i = 0; i < frame->plans; i++) {
    assert_in_range(frame->plan[i].plan.wants, 0, CV_ARMS_MAX);
    assert_standings_bounded(frame->plan[i].standing, frame->plan[i].standings);
  }
  for (size_t i = 0; i < frame->results; i++) {
    assert_in_range(frame->result[i].reason, 1, CV_END_COUNT - 1);
    assert_standings_bounded(frame->result[i].standing, frame->result[i].standings);
  }
}

CODEC_TRIES(rank)

/* Encodes and decodes; the encoder checks nothing, so this tests what the decoder refuses. */
static enum cv_err through(const struct cv_rank_frame *in, struct cv_rank_frame *ret) {
  struct cv_buf bytes = {0};
  assert_int_equal(cv_rank_encode(in, &scratch, &bytes), CV_OK);
  enum cv_err err = cv_rank_decode(bytes.data, bytes.len, &arena, ret);
  cv_buf_fini(&bytes);
  return err;
}

static void random_position(struct cv_rng *rng, struct cv_position *ret) {
  ret->campaign = random_u64(rng);
  ret->releases = random_u64(rng);
  ret->plans = random_u64(rng);
  random_bytes(rng, ret->releases_hash.bytes, CV_DIGEST_BYTES);
  random_bytes(rng, ret->plans_hash.bytes, CV_DIGEST_BYTES);
}

static void random_rank_plan(struct cv_rng *rng, struct cv_rank_plan *ret) {
  ret->campaign = random_u64(rng);
  random_plan(rng, &ret->plan);
  random_standings(rng, &ret->standings, &ret->standing);
}

static void random_row(struct cv_rng *rng, struct cv_rank_frame *frame) {
  struct cv_rank_open *open = &frame->open[frame->opens++];
  random_spec(rng, &open->spec);
  random_position(rng, &open->position);
  open->has_seed = cv_rng_below(rng, 2) == 0;
  open->seed = open->has_seed ? random_u64(rng) : 0;
  open->stop = (enum cv_end)cv_rng_below(rng, CV_END_COUNT);
  random_rank_plan(rng, &frame->record[frame->recorded++]);
  struct cv_rank_release *release = &frame->release[frame->releases++];
  release->campaign = random_u64(rng);
  random_release(rng, &release->release);
  frame->accept[frame->accepted++] = (struct cv_rank_number){random_u64(rng), random_u64(rng)};
  frame->refuse[frame->refused++] = (struct cv_rank_refused){.campaign = random_u64(rng),
                                                             .plan = random_u64(rng),
                                                             .reason = (enum cv_end)(1 + cv_rng_below(rng, 8)),
                                                             .why = random_text(rng, CV_WHY_BYTES),
                                                             .asked = random_u64(rng),
                                                             .left = random_u64(rng)};
  frame->stop[frame->stops++] = (struct cv_rank_stop){random_u64(rng), (enum cv_end)(1 + cv_rng_below(rng, 8))};
  frame->close[frame->closed++] = random_u64(rng);
  struct cv_rank_opened *answer = &frame->answer[frame->opened++];
  random_position(rng, &answer->position);
  answer->seed = random_u64(rng);
  const char *refused = random_text(rng, CV_WHY_BYTES);
  if (refused[0] != '\0') {
    answer->refused = refused;
  } else {
    free((void *)(uintptr_t)refused);
  }
  frame->ack[frame->acks++] = (struct cv_rank_number){random_u64(rng), random_u64(rng)};
  random_rank_plan(rng, &frame->plan[frame->plans++]);
  struct cv_rank_result *result = &frame->result[frame->results++];
  result->campaign = random_u64(rng);
  result->reason = (enum cv_end)(1 + cv_rng_below(rng, 8));
  random_standings(rng, &result->standings, &result->standing);
}

enum { ROWS = 3 };

struct made {
  struct cv_rank_frame frame;
  struct cv_rank_open open[ROWS];
  struct cv_rank_plan record[ROWS], plan[ROWS];
  struct cv_rank_release release[ROWS];
  struct cv_rank_number accept[ROWS], ack[ROWS];
  struct cv_rank_refused refuse[ROWS];
  struct cv_rank_stop stop[ROWS];
  uint64_t close[ROWS];
  struct cv_rank_opened answer[ROWS];
  struct cv_rank_result result[ROWS];
};

static struct made *make_frame(uint64_t seed) {
  struct made *made = calloc(1, sizeof(*made));
  assert_non_null(made);
  made->frame =
      (struct cv_rank_frame){.hello = {.present = seed % 2 == 0, .version = CV_WIRE_VERSION, .program = "broker"},
                             .goodbye = seed % 3 == 0 ? "closed" : NULL,
                             .open = made->open,
                             .record = made->record,
                             .release = made->release,
                             .accept = made->accept,
                             .refuse = made->refuse,
                             .stop = made->stop,
                             .close = made->close,
                             .answer = made->answer,
                             .ack = made->ack,
                             .plan = made->plan,
                             .result = made->result};
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, seed, 2, 0, 0);
  for (uint64_t rows = 1 + cv_rng_below(&seeded.rng, ROWS); rows > 0; rows--) {
    random_row(&seeded.rng, &made->frame);
  }
  return made;
}

static void free_frame(struct made *made) {
  for (size_t i = 0; i < made->frame.opens; i++) {
    cv_spec_fini(&made->open[i].spec);
    free(made->record[i].plan.want);
    free(made->record[i].standing);
    free(made->plan[i].plan.want);
    free(made->plan[i].standing);
    free(made->result[i].standing);
    free((void *)(uintptr_t)made->refuse[i].why);
    free((void *)(uintptr_t)made->answer[i].refused);
  }
  free(made);
}

static void assert_rank_plans_equal(const struct cv_rank_plan *a, const struct cv_rank_plan *b) {
  assert_int_equal(a->campaign, b->campaign);
  assert_plans_equal(&a->plan, &b->plan);
  assert_standings_equal(a->standing, a->standings, b->standing, b->standings);
}

static void assert_positions_equal(const struct cv_position *a, const struct cv_position *b) {
  assert_int_equal(a->campaign, b->campaign);
  assert_int_equal(a->releases, b->releases);
  assert_int_equal(a->plans, b->plans);
  assert_memory_equal(&a->releases_hash, &b->releases_hash, sizeof(a->releases_hash));
  assert_memory_equal(&a->plans_hash, &b->plans_hash, sizeof(a->plans_hash));
}

static void assert_from_broker_equal(const struct cv_rank_frame *a, const struct cv_rank_frame *b, size_t i) {
  assert_specs_equal(&a->open[i].spec, &b->open[i].spec);
  assert_positions_equal(&a->open[i].position, &b->open[i].position);
  assert_int_equal(a->open[i].has_seed, b->open[i].has_seed);
  assert_int_equal(a->open[i].seed, b->open[i].seed);
  assert_int_equal(a->open[i].stop, b->open[i].stop);
  assert_rank_plans_equal(&a->record[i], &b->record[i]);
  assert_int_equal(a->release[i].campaign, b->release[i].campaign);
  assert_releases_equal(&a->release[i].release, &b->release[i].release);
  assert_memory_equal(&a->accept[i], &b->accept[i], sizeof(a->accept[i]));
  assert_int_equal(a->refuse[i].campaign, b->refuse[i].campaign);
  assert_int_equal(a->refuse[i].plan, b->refuse[i].plan);
  assert_int_equal(a->refuse[i].reason, b->refuse[i].reason);
  assert_string_equal(a->refuse[i].why, b->refuse[i].why);
  assert_int_equal(a->refuse[i].asked, b->refuse[i].asked);
  assert_int_equal(a->refuse[i].left, b->refuse[i].left);
  assert_int_equal(a->stop[i].campaign, b->stop[i].campaign);
  assert_int_equal(a->stop[i].reason, b->stop[i].reason);
  assert_int_equal(a->close[i], b->close[i]);
}

static void assert_from_thirdparty_equal(const struct cv_rank_frame *a, const struct cv_rank_frame *b, size_t i) {
  assert_positions_equal(&a->answer[i].position, &b->answer[i].position);
  assert_int_equal(a->answer[i].seed, b->answer[i].seed);
  assert_int_equal(a->answer[i].refused == NULL, b->answer[i].refused == NULL);
  if (a->answer[i].refused != NULL) {
    assert_string_equal(a->answer[i].refused, b->answer[i].refused);
  }
  assert_memory_equal(&a->ack[i], &b->ack[i], sizeof(a->ack[i]));
  assert_rank_plans_equal(&a->plan[i], &b->plan[i]);
  assert_int_equal(a->result[i].campaign, b->result[i].campaign);
  assert_int_equal(a->result[i].reason, b->result[i].reason);
  assert_standings_equal(a->result[i].standing, a->result[i].standings, b->result[i].standing, b->result[i].standings);
}

static void random_frames_arrive_and_encode_again_to_the_same(void **state) {
  for (uint64_t seed = 0; seed < 300; seed++) {
    struct made *made = make_frame(seed);
    struct cv_buf first = {0}, second = {0};
    struct cv_rank_frame decoded;
    assert_int_equal(cv_rank_encode(&made->frame, &scratch, &first), CV_OK);
    assert_int_equal(cv_rank_decode(first.data, first.len, &arena, &decoded), CV_OK);
    assert_bounded(&decoded);
    const struct cv_rank_frame *in = &made->frame;
    size_t n = in->opens;
    assert_true(decoded.opens == n && decoded.recorded == n && decoded.releases == n && decoded.accepted == n &&
                decoded.refused == n && decoded.stops == n && decoded.closed == n && decoded.opened == n &&
                decoded.acks == n && decoded.plans == n && decoded.results == n);
    assert_int_equal(decoded.hello.present, in->hello.present);
    assert_int_equal(decoded.goodbye == NULL, in->goodbye == NULL);
    for (size_t i = 0; i < n; i++) {
      assert_from_broker_equal(in, &decoded, i);
      assert_from_thirdparty_equal(in, &decoded, i);
    }
    assert_int_equal(cv_rank_encode(&decoded, &scratch, &second), CV_OK);
    assert_same_and_free(&first, &second);
    free_frame(made);
  }
}

/* Small, with one of everything: each of its bytes is tried with every value. */
static void hostile_bytes_pass_no_bound(void **state) {
  const char *names[2] = {"Roma", "Golden Wok"};
  struct cv_want want[2] = {{.arm = 0, .tokens = 6000}, {.arm = 1, .tokens = 300}};
  struct cv_standing standing = {.arm = 1, .rank_class = 1, .tokens = 6000, .mean = 0.5, .radius = 0.25};
  struct cv_rank_open open = {.spec = {.name = "demo", .arms = 2, .names = names, .tokens = 100, .idle_ms = 30000},
                              .position = {.campaign = 1, .releases = 2, .plans = 1},
                              .has_seed = true,
                              .seed = 77};
  (void)snprintf(open.spec.policy.name, CV_PARAM_TEXT, "ppar");
  assert_int_equal(cv_params_set_number(&open.spec.policy.params, "alpha", 0.1), CV_OK);
  assert_int_equal(cv_params_set_text(&open.spec.policy.params, "radius", "sound"), CV_OK);
  struct cv_rank_plan plan = {
      .campaign = 1, .plan = {.number = 1, .wants = 2, .want = want}, .standings = 1, .standing = &standing};
  struct cv_rank_release release = {.campaign = 1,
                                    .release = {.number = 1,
                                                .plan = 1,
                                                .arm = 1,
                                                .tokens = 6000,
                                                .noisy_sum = -5,
                                                .noise = {.groups = 1, .group = {{.scale = 2, .count = 3}}}}};
  struct cv_rank_refused refuse = {.campaign = 1, .plan = 1, .reason = CV_END_TOKENS, .why = "no", .asked = 9};
  struct cv_rank_stop stop = {.campaign = 1, .reason = CV_END_IDLE};
  struct cv_rank_opened answer = {.position = {.campaign = 1}, .seed = 5, .refused = "alpha is 2"};
  struct cv_rank_result result = {.campaign = 1, .reason = CV_END_COMPLETE, .standings = 1, .standing = &standing};
  struct cv_rank_frame frame = {.opens = 1,
                                .open = &open,
                                .recorded = 1,
                                .record = &plan,
                                .releases = 1,
                                .release = &release,
                                .refused = 1,
                                .refuse = &refuse,
                                .stops = 1,
                                .stop = &stop,
                                .opened = 1,
                                .answer = &answer,
                                .plans = 1,
                                .plan = &plan,
                                .results = 1,
                                .result = &result};
  struct cv_buf bytes = {0};
  assert_int_equal(cv_rank_encode(&frame, &scratch, &bytes), CV_OK);
  assert_int_equal(try_exactly(try_bytes, bytes.data, bytes.len), CV_OK);
  attack(try_bytes, &bytes);
  cv_buf_fini(&bytes);
  attack_with_noise(try_bytes, 2);
}

static void large_frames_stay_in_the_arena(void **state) {
  attack_with_length(try_bytes, CV_LARGE_FRAME_BYTES);
  for (uint32_t field = OPENS; field <= RESULTS; field++) {
    attack_with_empties(try_bytes, 0, field);
  }
  attack_with_empties(try_bytes, RELEASES, 7);
  attack_with_empties(try_bytes, PLANS, 3);
  attack_with_empties(try_bytes, RESULTS, 3);
}

static enum cv_err try_position(uint32_t outer, size_t first_hash, size_t second_hash, size_t seed) {
  static const uint8_t zeros[64] = {0};
  struct cv_buf position = {0}, message = {0}, frame = {0};
  put_blob(&position, 3, zeros, first_hash);
  put_blob(&position, 5, zeros, second_hash);
  if (outer == OPENS) {
    struct cv_buf spec = {0};
    put_number(&spec, 2, 1);
    put_message(&message, 1, &spec);
    put_message(&message, 2, &position);
    put_blob(&message, 3, zeros, seed);
  } else {
    put_message(&message, 1, &position);
    put_blob(&message, 2, zeros, seed);
  }
  put_message(&frame, outer, &message);
  return try_buf(&frame);
}

static void digests_and_seeds_have_their_length(void **state) {
  static const uint32_t outer[] = {OPENS, OPENED};
  for (size_t i = 0; i < CV_COUNT(outer); i++) {
    assert_int_equal(try_position(outer[i], 32, 32, 8), CV_OK);
    assert_int_equal(try_position(outer[i], 31, 32, 8), CV_ERR_FORMAT);
    assert_int_equal(try_position(outer[i], 32, 33, 8), CV_ERR_FORMAT);
    assert_int_equal(try_position(outer[i], 0, 32, 8), CV_ERR_FORMAT);
    assert_int_equal(try_position(outer[i], 32, 32, 7), CV_ERR_FORMAT);
    assert_int_equal(try_position(outer[i], 32, 32, 9), CV_ERR_FORMAT);
  }
  assert_int_equal(try_position(OPENS, 32, 32, 0), CV_OK);
  assert_int_equal(try_position(OPENED, 32, 32, 0), CV_ERR_FORMAT);
}

static void a_seed_is_little_endian(void **state) {
  struct cv_rank_opened answer = {.seed = UINT64_C(0x0102030405060708)};
  struct cv_buf bytes = {0};
  assert_int_equal(cv_rank_encode(&(struct cv_rank_frame){.opened = 1, .answer = &answer}, &scratch, &bytes), CV_OK);
  static const uint8_t seed[] = {0x12, 8, 8, 7, 6, 5, 4, 3, 2, 1};
  assert_non_null(memmem(bytes.data, bytes.len, seed, sizeof(seed)));
  cv_buf_fini(&bytes);
}

static enum cv_err try_empty(uint32_t field) {
  struct cv_buf frame = {0};
  put_blob(&frame, field, NULL, 0);
  return try_buf(&frame);
}

static void missing_parts_are_refused(void **state) {
  assert_int_equal(try_empty(OPENS), CV_ERR_FORMAT);    /* no spec, no position */
  assert_int_equal(try_empty(RECORDED), CV_ERR_FORMAT); /* no plan */
  assert_int_equal(try_empty(RELEASES), CV_ERR_FORMAT); /* number 0 */
  assert_int_equal(try_empty(REFUSED), CV_ERR_FORMAT);  /* no reason */
  assert_int_equal(try_empty(STOPS), CV_ERR_FORMAT);
  assert_int_equal(try_empty(OPENED), CV_ERR_FORMAT);
  assert_int_equal(try_empty(PLANS), CV_OK); /* for the broker to judge */
  assert_int_equal(try_empty(RESULTS), CV_ERR_FORMAT);
  assert_int_equal(try_empty(77), CV_ERR_FORMAT);
  assert_int_equal(try_empty(CLOSED), CV_OK);
}

static enum cv_err try_standing(double mean, double radius, uint32_t arm) {
  struct cv_standing standing = {.arm = arm, .mean = mean, .radius = radius};
  struct cv_rank_result result = {.reason = CV_END_COMPLETE, .standings = 1, .standing = &standing};
  struct cv_rank_frame out;
  return through(&(struct cv_rank_frame){.results = 1, .result = &result}, &out);
}

static enum cv_err try_release(double scale, uint32_t arm, uint64_t number) {
  struct cv_rank_release release = {
      .release = {.number = number, .arm = arm, .noise = {.groups = 1, .group = {{.scale = scale, .count = 1}}}}};
  struct cv_rank_frame out;
  return through(&(struct cv_rank_frame){.releases = 1, .release = &release}, &out);
}

static void numbers_are_in_range(void **state) {
  assert_int_equal(try_standing(-0.5, 2, CV_ARMS_MAX - 1), CV_OK);
  assert_int_equal(try_standing((double)NAN, 2, 0), CV_ERR_FORMAT);
  assert_int_equal(try_standing(0, (double)INFINITY, 0), CV_ERR_FORMAT);
  assert_int_equal(try_standing(0, -1, 0), CV_ERR_FORMAT);
  assert_int_equal(try_standing(0, 1, CV_ARMS_MAX), CV_ERR_FORMAT);
  assert_int_equal(try_release(2, CV_ARMS_MAX - 1, 1), CV_OK);
  assert_int_equal(try_release(2, CV_ARMS_MAX, 1), CV_ERR_FORMAT);
  assert_int_equal(try_release(2, 0, 0), CV_ERR_FORMAT);
  assert_int_equal(try_release(-1, 0, 1), CV_ERR_FORMAT);
  assert_int_equal(try_release((double)NAN, 0, 1), CV_ERR_FORMAT);
}

static enum cv_err try_groups(size_t groups) {
  struct cv_buf release = {0}, frame = {0};
  put_number(&release, 2, 1);
  for (size_t i = 0; i < groups; i++) {
    put_blob(&release, 7, NULL, 0);
  }
  put_message(&frame, RELEASES, &release);
  return try_buf(&frame);
}

static enum cv_err try_names(uint32_t arms, size_t names) {
  struct cv_buf open = {0}, spec = {0}, position = {0}, frame = {0};
  static const uint8_t zeros[32] = {0};
  put_number(&spec, 2, arms);
  for (size_t i = 0; i < names; i++) {
    put_blob(&spec, 3, "x", 1);
  }
  put_blob(&position, 3, zeros, 32);
  put_blob(&position, 5, zeros, 32);
  put_message(&open, 1, &spec);
  put_message(&open, 2, &position);
  put_message(&frame, OPENS, &open);
  return try_buf(&frame);
}

static enum cv_err try_params(size_t params, const char *key, size_t text_bytes) {
  struct cv_buf choice = {0}, spec = {0}, open = {0}, position = {0}, frame = {0};
  static const uint8_t zeros[32] = {0};
  char text[CV_PARAM_TEXT + 1];
  memset(text, 'a', sizeof(text));
  for (size_t i = 0; i < params; i++) {
    char name[64];
    (void)snprintf(name, sizeof(name), "%s%zu", key, i);
    struct cv_buf param = {0};
    put_blob(&param, 1, name, strlen(name));
    put_blob(&param, 3, text, text_bytes);
    put_message(&choice, 2, &param);
  }
  put_message(&spec, 4, &choice);
  put_blob(&position, 3, zeros, 32);
  put_blob(&position, 5, zeros, 32);
  put_message(&open, 1, &spec);
  put_message(&open, 2, &position);
  put_message(&frame, OPENS, &open);
  return try_buf(&frame);
}

static void counts_are_in_range(void **state) {
  assert_int_equal(try_groups(CV_NOISE_GROUPS_MAX), CV_OK);
  assert_int_equal(try_groups(CV_NOISE_GROUPS_MAX + 1), CV_ERR_FORMAT);
  assert_int_equal(try_names(3, 0), CV_OK);
  assert_int_equal(try_names(3, 3), CV_OK);
  assert_int_equal(try_names(3, 2), CV_ERR_FORMAT);
  assert_int_equal(try_names(3, 4), CV_ERR_FORMAT);
  assert_int_equal(try_names(CV_ARMS_MAX + 1, 0), CV_ERR_FORMAT);
  assert_int_equal(try_params(CV_PARAMS_MAX, "k", 3), CV_OK);
  assert_int_equal(try_params(CV_PARAMS_MAX + 1, "k", 3), CV_ERR_FORMAT);
  assert_int_equal(try_params(1, "k", CV_PARAM_TEXT - 1), CV_OK);
  assert_int_equal(try_params(1, "k", CV_PARAM_TEXT), CV_ERR_FORMAT);
  assert_int_equal(try_params(1, "key_that_is_too_long_for_its_field", 1), CV_ERR_FORMAT);
}

static enum cv_err try_name(const char *name) {
  struct cv_buf spec = {0}, open = {0}, position = {0}, frame = {0};
  static const uint8_t zeros[32] = {0};
  put_number(&spec, 2, 1);
  put_blob(&spec, 3, name, strlen(name));
  put_blob(&position, 3, zeros, 32);
  put_blob(&position, 5, zeros, 32);
  put_message(&open, 1, &spec);
  put_message(&open, 2, &position);
  put_message(&frame, OPENS, &open);
  return try_buf(&frame);
}

static void names_of_items_are_bounded(void **state) {
  char name[CV_ITEM_BYTES + 1] = "";
  memset(name, 'n', CV_ITEM_BYTES);
  assert_int_equal(try_name(name), CV_ERR_FORMAT);
  name[255] = '\0';
  assert_int_equal(try_name(name), CV_OK);
  memcpy(name + 253, "\xc3\xa9", 2);
  assert_int_equal(try_name(name), CV_OK);
  name[254] = '\0'; /* inside its last character */
  assert_int_equal(try_name(name), CV_ERR_FORMAT);
  assert_int_equal(try_name("\xff"), CV_ERR_FORMAT);
  assert_int_equal(try_name("a\x1b[2Jb"), CV_ERR_FORMAT);
}

/* As many items as there may be, each with the longest name, a cost, and a place in a plan: it fits one frame, and what
 * is decoded is what was encoded. */
static void the_largest_campaign_fits_a_frame(void **state) {
  static char text[CV_ITEM_BYTES];
  memset(text, 'n', CV_ITEM_BYTES - 1);
  const char **names = calloc(CV_ARMS_MAX, sizeof(*names));
  uint64_t *cost = calloc(CV_ARMS_MAX, sizeof(*cost));
  struct cv_want *want = calloc(CV_ARMS_MAX, sizeof(*want));
  struct cv_standing *standing = calloc(CV_ARMS_MAX, sizeof(*standing));
  assert_true(names != NULL && cost != NULL && want != NULL && standing != NULL);
  for (uint32_t i = 0; i < CV_ARMS_MAX; i++) {
    names[i] = text;
    cost[i] = CV_COST_MAX_MICRO;
    want[i] = (struct cv_want){.arm = i, .tokens = 1 << 24};
    standing[i] = (struct cv_standing){.arm = i, .rank_class = i + 1, .tokens = UINT64_MAX, .mean = .1, .radius = .2};
  }
  struct cv_rank_open open = {.spec = {.name = "n", .arms = CV_ARMS_MAX, .names = names, .cost_micro = cost}};
  struct cv_rank_plan plan[2] = {
      {.plan = {.number = 1, .wants = CV_ARMS_MAX, .want = want}},
      {.plan = {.number = 2, .wants = CV_ARMS_MAX, .want = want}},
  };
  struct cv_rank_frame opens = {.opens = 1, .open = &open, .recorded = 2, .record = plan}, out;
  struct cv_arena large, scratch_large;
  struct cv_buf bytes = {0};
  assert_int_equal(cv_arena_init(&large, CV_LARGE_ARENA_BYTES), CV_OK);
  assert_int_equal(cv_arena_init(&scratch_large, CV_LARGE_ARENA_BYTES), CV_OK);
  assert_int_equal(cv_rank_encode(&opens, &scratch_large, &bytes), CV_OK);
  assert_int_equal(cv_rank_decode(bytes.data, bytes.len, &large, &out), CV_OK);
  assert_string_equal(out.open->spec.names[CV_ARMS_MAX - 1], text);
  assert_int_equal(out.record[1].plan.want[CV_ARMS_MAX - 1].arm, CV_ARMS_MAX - 1);
  cv_buf_clear(&bytes);
  plan[0].standings = CV_ARMS_MAX;
  plan[0].standing = standing;
  struct cv_rank_frame plans = {.plans = 1, .plan = plan};
  assert_int_equal(cv_rank_encode(&plans, &scratch_large, &bytes), CV_OK);
  assert_int_equal(cv_rank_decode(bytes.data, bytes.len, &large, &out), CV_OK);
  assert_int_equal(out.plan->standing[CV_ARMS_MAX - 1].rank_class, CV_ARMS_MAX);
  cv_buf_fini(&bytes);
  cv_arena_fini(&large);
  cv_arena_fini(&scratch_large);
  free(names);
  free(cost);
  free(want);
  free(standing);
}

/* The broker checks a third-party's plan, campaign by campaign; an accepted plan has passed that check. */
static void an_accepted_plan_names_an_arm_once(void **state) {
  struct cv_want want[] = {{.arm = 70, .tokens = 1}, {.arm = 6, .tokens = 2}, {.arm = 70, .tokens = 3}};
  struct cv_rank_plan plan = {.plan = {.number = 1, .wants = 2, .want = want}};
  struct cv_rank_frame asked = {.plans = 1, .plan = &plan}, accepted = {.recorded = 1, .record = &plan}, out;
  assert_int_equal(through(&accepted, &out), CV_OK);
  plan.plan.wants = 3;
  assert_int_equal(through(&accepted, &out), CV_ERR_FORMAT);
  assert_int_equal(through(&asked, &out), CV_OK);
  want[2].arm = CV_ARMS_MAX;
  assert_int_equal(through(&accepted, &out), CV_ERR_FORMAT);
  assert_int_equal(through(&asked, &out), CV_OK);
  assert_int_equal(out.plan->plan.want[2].arm, CV_ARMS_MAX);
  plan.plan.wants = 2;
  plan.plan.number = 0;
  assert_int_equal(through(&accepted, &out), CV_ERR_FORMAT);
  assert_int_equal(through(&asked, &out), CV_OK);
}

static void an_empty_refusal_is_still_one(void **state) {
  struct cv_rank_opened answer = {.refused = ""};
  struct cv_rank_frame out;
  assert_int_equal(through(&(struct cv_rank_frame){.opened = 1, .answer = &answer}, &out), CV_OK);
  assert_non_null(out.answer[0].refused);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_frames_arrive_and_encode_again_to_the_same),
      cmocka_unit_test(hostile_bytes_pass_no_bound),
      cmocka_unit_test(large_frames_stay_in_the_arena),
      cmocka_unit_test(digests_and_seeds_have_their_length),
      cmocka_unit_test(a_seed_is_little_endian),
      cmocka_unit_test(missing_parts_are_refused),
      cmocka_unit_test(numbers_are_in_range),
      cmocka_unit_test(counts_are_in_range),
      cmocka_unit_test(names_of_items_are_bounded),
      cmocka_unit_test(the_largest_campaign_fits_a_frame),
      cmocka_unit_test(an_accepted_plan_names_an_arm_once),
      cmocka_unit_test(an_empty_refusal_is_still_one),
  };
  return cmocka_run_group_tests(tests, make_arenas, drop_arenas);
}
