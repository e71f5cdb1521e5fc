/* SPDX-License-Identifier: Apache-2.0 */
/* Stored rows that no broker writes: a core refuses to load them, at once. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <string.h>

#include "broker/both/gate.h"
#include "broker/both/kinds.h"
#include "broker/campaign.h"
#include "broker/core.h"
#include "broker/restore.h"
#include "broker/state.h"
#include "common/crypto/crypto.h"
#include "tests/fuzz/broker_disk.h"
#include "tests/support/mechanism.h"

enum { ARMS = 2, TAU = 10, NOW = 1000 };
/* In an arm's image. */
enum { FIRST_AT = 8, WANT_AT = 16, MECHANISM_AT = 32 };

static enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *ret, size_t n) {
  memset(ret, 0, n);
  return CV_OK;
}

struct stage {
  struct cv_rng_seeded noise;
  struct cv_broker *core;
  struct disk disk;
};

static void boot(struct stage *stage) {
  const struct cv_broker_config config = {.name = "b",
                                          .limits = {.epsilon_micro = 1000000,
                                                     .delta_pico = 500000000000,
                                                     .trusted_thirdparty = true,
                                                     .worker_epsilon_micro = 1000000,
                                                     .release_tokens = 1,
                                                     .arms = 10,
                                                     .campaigns = 2,
                                                     .tokens = 1000000,
                                                     .chunks = 100,
                                                     .lease_ms = 1000,
                                                     .queue = 100},
                                          .tagger = {.tag = tag},
                                          .digest = cv_sha256,
                                          .noise = &stage->noise.rng};
  assert_int_equal(cv_broker_new(&config, &stage->core), CV_OK);
}

static void turn(struct stage *stage) {
  struct cv_broker_batch batch = {0};
  struct cv_broker_out out;
  bool store;
  assert_int_equal(cv_broker_flush(stage->core, NOW, NOW, &batch, &store), CV_OK);
  if (store) {
    disk_commit(&stage->disk, &batch);
  }
  cv_broker_stored(stage->core);
  while (cv_broker_next_out(stage->core, &out)) {
  }
  cv_broker_batch_fini(&batch);
}

static struct cv_spec spec_of_test(void) {
  return (struct cv_spec){.name = "test",
                          .arms = ARMS,
                          .policy.name = "scripted",
                          .mechanism.name = "hybrid",
                          .privatizer.name = "none",
                          .epsilon_micro = 500000,
                          .tokens_per_worker = 1,
                          .tokens = (uint64_t)3 * ARMS * TAU};
}

/* A stored campaign with an open epoch of TAU tokens in each arm. */
static void setup_with(struct stage *stage, const struct cv_spec *spec) {
  const struct cv_identity requester = {.role = CV_ROLE_REQUESTER, .name = "r"};
  const struct cv_identity thirdparty = {.role = CV_ROLE_THIRDPARTY, .name = "t"};
  const struct cv_hello hello = {.present = true, .version = CV_WIRE_VERSION};
  struct cv_broker_conn *order, *rank;
  struct cv_why why;
  *stage = (struct stage){.core = NULL};
  cv_rng_seeded_init(&stage->noise, 1, CV_RNG_NOISE, 0, 0);
  boot(stage);
  assert_int_equal(cv_broker_restore_end(stage->core, 0, NULL, NOW, NOW), CV_OK);
  assert_int_equal(cv_broker_join(stage->core, &requester, NULL, &order, &why), CV_OK);
  assert_int_equal(cv_broker_join(stage->core, &thirdparty, NULL, &rank, &why), CV_OK);
  struct cv_order_frame submit = {.hello = hello, .kind = CV_ORDER_SUBMIT};
  submit.as.submit.spec = *spec;
  assert_int_equal(cv_broker_on_order(stage->core, order, &submit, NOW, NOW, &why), CV_OK);
  assert_int_equal(cv_broker_on_rank(stage->core, rank, &(struct cv_rank_frame){.hello = hello}, NOW, &why), CV_OK);
  turn(stage);
  struct cv_rank_opened opened = {.position.campaign = 1};
  struct cv_want want[ARMS] = {{0, TAU}, {1, TAU}};
  struct cv_standing standing[ARMS] = {{.arm = 0, .mean = 0.5, .radius = 0.25}, {.arm = 1}};
  struct cv_rank_plan plan = {
      .campaign = 1, .plan = {.number = 1, .wants = ARMS, .want = want}, .standings = ARMS, .standing = standing};
  const struct cv_rank_frame frame = {.opened = 1, .answer = &opened, .plans = 1, .plan = &plan};
  assert_int_equal(cv_broker_on_rank(stage->core, rank, &frame, NOW, &why), CV_OK);
  turn(stage);
}

static void setup(struct stage *stage) {
  const struct cv_spec spec = spec_of_test();
  setup_with(stage, &spec);
}

static void teardown(struct stage *stage) {
  cv_broker_free(stage->core);
  disk_fini(&stage->disk);
}

/* The last row of a kind. */
static struct disk_row *row_of(struct stage *stage, enum cv_op_kind kind) {
  for (size_t i = stage->disk.rows; i-- > 0;) {
    if (stage->disk.row[i].op.kind == kind) {
      return &stage->disk.row[i];
    }
  }
  fail_msg("no row of kind %d", kind);
  return NULL;
}

/* Where the image of the last arm begins: after the row's counts and the image of the first arm. */
static uint8_t *last_arm(struct stage *stage, size_t *ret_n) {
  struct disk_row *row = row_of(stage, CV_OP_JOURNAL);
  struct cv_reader in = cv_reader_over(row->bytes.data, row->bytes.len);
  assert_int_equal(cv_read_u32(&in), 0); /* tokens */
  assert_int_equal(cv_read_u32(&in), 0); /* sums */
  assert_int_equal(cv_read_u32(&in), ARMS);
  const uint8_t *image = NULL;
  for (uint32_t i = 0; i < ARMS; i++) {
    assert_int_equal(cv_read_u32(&in), i);
    image = cv_read_bytes(&in, ret_n);
  }
  assert_non_null(image);
  return row->bytes.data + (image - row->bytes.data);
}

static enum cv_err load(struct stage *stage) {
  cv_broker_free(stage->core);
  boot(stage);
  return disk_load(&stage->disk, stage->core, NOW, NOW);
}

static void test_what_was_stored_comes_back(void **state) {
  struct stage stage;
  setup(&stage);
  assert_int_equal(load(&stage), CV_OK);
  teardown(&stage);
}

/* Names that no party can have, and a name that is cut off. */
static void test_the_third_party_of_a_campaign(void **state) {
  struct stage stage;
  setup(&stage);
  struct cv_buf *bytes = &row_of(&stage, CV_OP_STATE)->bytes;
  assert_int_equal(load(&stage), CV_OK);
  assert_string_equal(stage.core->campaigns->thirdparty, "t");
  static const char bad[] = {'/', '\0', '\n', (char)0xff};
  for (size_t i = 0; i < sizeof(bad); i++) {
    bytes->data[bytes->len - 1] = (uint8_t)bad[i];
    assert_int_equal(load(&stage), CV_ERR_DAMAGED);
  }
  bytes->data[bytes->len - 1] = 't';
  bytes->len--;
  assert_int_equal(load(&stage), CV_ERR_DAMAGED);
  teardown(&stage);
}

static void test_an_epoch_longer_than_any_plan_is_refused(void **state) {
  struct stage stage;
  size_t n;
  setup(&stage);
  memset(last_arm(&stage, &n) + WANT_AT, 0xff, 4);
  assert_int_equal(load(&stage), CV_ERR_DAMAGED); /* and without counting four thousand million places */
  teardown(&stage);
}

static void test_more_tokens_than_the_campaigns_limit_are_refused(void **state) {
  for (uint8_t extra = 1; extra < 3; extra++) {
    struct stage stage;
    size_t n;
    setup(&stage);
    last_arm(&stage, &n)[WANT_AT] = (uint8_t)(TAU * (2 * ARMS + 1) + extra - 1); /* one place reaches the limit */
    assert_int_equal(load(&stage), extra == 1 ? CV_OK : CV_ERR_DAMAGED);
    teardown(&stage);
    setup(&stage);
    memset(last_arm(&stage, &n) + FIRST_AT, 0xff, 8);
    assert_int_equal(load(&stage), CV_ERR_DAMAGED);
    teardown(&stage);
  }
}

/* Its release would leave without noise. */
static void test_an_open_epoch_without_noise_is_refused(void **state) {
  const struct cv_mechanism_law law = mechanism_law("hybrid", 500000, 100);
  struct cv_mechanism *fresh = mechanism_new(&law);
  struct cv_buf state_bytes = {0};
  struct stage stage;
  size_t n;
  setup(&stage);
  cv_mechanism_save(fresh, &state_bytes);
  uint8_t *image = last_arm(&stage, &n);
  size_t length = MECHANISM_AT + state_bytes.len;
  assert_true(length < n && length < 256);
  memcpy(image + MECHANISM_AT, state_bytes.data, state_bytes.len);
  image[-4] = (uint8_t)length;
  row_of(&stage, CV_OP_JOURNAL)->bytes.len -= n - length;
  assert_int_equal(load(&stage), CV_ERR_DAMAGED);
  cv_buf_fini(&state_bytes);
  cv_mechanism_free(fresh);
  teardown(&stage);
}

/* They would be counted as those of an arm that does not exist. */
static void test_places_outside_all_arms_are_refused(void **state) {
  struct stage stage;
  setup(&stage);
  struct disk_row *row = row_of(&stage, CV_OP_JOURNAL);
  struct cv_buf longer = {0};
  cv_buf_put_u32(&longer, 1);
  cv_buf_put_u64(&longer, UINT64_C(1) << 50); /* a round that no plan has */
  cv_buf_put_u64(&longer, 7);
  cv_buf_put_u32(&longer, 0);
  cv_buf_put_u32(&longer, 0);
  cv_buf_put(&longer, row->bytes.data + 4, row->bytes.len - 4);
  cv_buf_fini(&row->bytes);
  row->bytes = longer;
  assert_int_equal(load(&stage), CV_ERR_DAMAGED);
  teardown(&stage);

  const uint8_t none[CV_CHUNK_BYTES] = {0};
  setup(&stage);
  for (uint64_t number = 0; number <= 1; number++) { /* all rounds of the plan are in the first chunk */
    struct cv_reader in = cv_reader_over(none, sizeof(none));
    assert_int_equal(cv_broker_restore_chunk(stage.core, 1, CV_CHUNK_PLACES, number, 1, &in),
                     number == 0 ? CV_OK : CV_ERR_DAMAGED);
  }
  teardown(&stage);
}

/* The third-party and the requester would close the connection because of them, every time. */
static void test_a_plan_with_arms_that_are_not_is_refused(void **state) {
  static const struct {
    size_t at; /* in the row: wants, then arm and tokens each */
    uint8_t value;
  } change[] = {{4, ARMS}, {5, 1}, {4, 1 /* both of them */}, {8, 0}, {11, 2}};
  for (size_t i = 0; i < CV_COUNT(change); i++) {
    struct stage stage;
    setup(&stage);
    row_of(&stage, CV_OP_PLAN)->bytes.data[change[i].at] = change[i].value;
    assert_int_equal(load(&stage), CV_ERR_DAMAGED);
    teardown(&stage);
  }
}

static void test_standings_that_are_no_numbers_are_refused(void **state) {
  static const struct {
    size_t at; /* in the row: arms, then class, tokens, mean and radius each */
    uint8_t value;
  } change[] = {{0, ARMS + 1}, {4, ARMS + 1}, {4 + 4 + 8 + 7, 0x7f}, {4 + 4 + 8 + 8 + 7, 0xbf}};
  for (size_t i = 0; i < CV_COUNT(change); i++) {
    struct stage stage;
    setup(&stage);
    uint8_t *row = row_of(&stage, CV_OP_STANDINGS)->bytes.data;
    row[change[i].at] = change[i].value;
    row[change[i].at - (change[i].value == 0x7f)] |= change[i].value == 0x7f ? 0xf0 : 0; /* not a number */
    assert_int_equal(load(&stage), CV_ERR_DAMAGED);
    teardown(&stage);
  }
}

/* A lower limit applies to new campaigns; a campaign that was accepted with a higher limit is loaded. */
static void test_a_lower_limit_of_chunks_keeps_what_there_is(void **state) {
  enum { MANY = 150 /* above the limit of 100 */ };
  static const uint8_t empty[CV_CHUNK_BYTES];
  struct stage stage;
  struct cv_broker_batch batch = {.commit = 0};
  struct cv_chunk *chunk;
  setup(&stage);
  batch.commit = stage.disk.commit + 1;
  for (uint64_t i = 0; i < MANY; i++) {
    assert_int_equal(cv_broker_batch_open(&batch, CV_OP_CHUNK, 1, i), CV_OK);
    batch.op[batch.ops - 1].chunk = CV_CHUNK_PAYERS;
    cv_buf_put(&batch.bytes, empty, sizeof(empty));
    cv_broker_batch_shut(&batch);
  }
  disk_commit(&stage.disk, &batch);
  cv_broker_batch_fini(&batch);
  assert_int_equal(load(&stage), CV_OK);
  struct cv_broker_campaign *campaign = stage.core->campaigns;
  assert_int_equal(campaign->payers.count, MANY);
  assert_int_equal(cv_chunks_touch(&campaign->payers, MANY - 1, &chunk), CV_OK);
  assert_int_equal(cv_chunks_touch(&campaign->payers, MANY, &chunk), CV_ERR_LIMIT);
  teardown(&stage);
}

/* Standings that are not stored yet are stored, even if a message without standings comes first. */
static void test_standings_wait_for_their_commit(void **state) {
  struct stage stage;
  struct cv_why why;
  setup(&stage);
  struct cv_broker_campaign *campaign = stage.core->campaigns;
  const struct cv_standing standing = {.arm = 1, .rank_class = 2, .tokens = 5, .mean = .75, .radius = .125};
  assert_int_equal(cv_broker_campaign_set_standings(stage.core, campaign, &standing, 1, &why), CV_OK);
  assert_int_equal(cv_broker_campaign_set_standings(stage.core, campaign, NULL, 0, &why), CV_OK);
  turn(&stage);
  assert_int_equal(load(&stage), CV_OK);
  assert_int_equal(stage.core->campaigns->standing[1].rank_class, 2);
  teardown(&stage);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_was_stored_comes_back),
      cmocka_unit_test(test_the_third_party_of_a_campaign),
      cmocka_unit_test(test_an_epoch_longer_than_any_plan_is_refused),
      cmocka_unit_test(test_more_tokens_than_the_campaigns_limit_are_refused),
      cmocka_unit_test(test_an_open_epoch_without_noise_is_refused),
      cmocka_unit_test(test_places_outside_all_arms_are_refused),
      cmocka_unit_test(test_a_plan_with_arms_that_are_not_is_refused),
      cmocka_unit_test(test_standings_that_are_no_numbers_are_refused),
      cmocka_unit_test(test_a_lower_limit_of_chunks_keeps_what_there_is),
      cmocka_unit_test(test_standings_wait_for_their_commit),
  };
  return cmocka_run_group_tests_name("restore", tests, NULL, NULL);
}
