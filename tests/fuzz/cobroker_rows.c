/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The co-broker's stored rows into a core, in the order in which the store reads them: those in the clear by campaign,
 * kind and number, then the sealed ones, then the journal. A core that accepts them all then runs for a moment.
 *
 * A record is a row: its kind (cobroker/batch.h; 16 and above are sealed), the campaign (low 2 bits of the argument)
 * and its commit (the others), and a number of 8 bytes before the row's own bytes. One of kind 0 has the totals.
 */
#include "cobroker/core.h"
#include "cobroker/restore.h"
#include "common/base/chunks.h"
#include "common/crypto/crypto.h"
#include "tests/fuzz/fuzz.h"

enum { COMMIT = 64 };

static enum cv_err export_key(void *data, void *shell, const struct cv_digest *context,
                              uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  (void)data;
  (void)shell;
  (void)context;
  memset(ret, 1, CV_SPLIT_SEED_BYTES);
  return CV_OK;
}

static enum cv_err open_seed(void *data, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                             const uint8_t bound[CV_SPLIT_BOUND_BYTES], const uint8_t sealed[CV_SPLIT_SEALED_BYTES],
                             uint8_t ret[CV_SPLIT_SEED_BYTES]) {
  (void)data;
  (void)key;
  (void)counter;
  (void)bound;
  memcpy(ret, sealed, CV_SPLIT_SEED_BYTES);
  return CV_OK;
}

static struct cv_cobroker *make(struct cv_rng_seeded *seeded) {
  const struct cv_cobroker_config config = {.broker = "b",
                                            .duo = {.broker = {{0xb}}, .cobroker = {{0xc}}},
                                            .limits = {.epsilon_micro = 1000000,
                                                       .worker_epsilon_micro = 5000000,
                                                       .release_tokens = 1,
                                                       .arms = 64,
                                                       .campaigns = 3,
                                                       .kept = 2,
                                                       .tokens = 1000000,
                                                       .chunks = 64},
                                            .sessions = 8,
                                            .digest = cv_sha256,
                                            .noise = &seeded->rng,
                                            .key = &seeded->rng,
                                            .export_key = export_key,
                                            .open_seed = open_seed};
  struct cv_cobroker *core;
  cv_rng_seeded_init(seeded, 1, CV_RNG_NOISE_COBROKER, 0, 0);
  CV_REQUIRE(cv_cobroker_new(&config, &core) == CV_OK);
  return core;
}

/* The broker comes, and ends some campaigns. */
static void run(struct cv_cobroker *core) {
  static const struct cv_identity broker = {.role = CV_ROLE_BROKER, .name = "b", .key = {{0xb}}};
  struct cv_cobroker_batch batch = {0};
  struct cv_cobroker_conn *conn;
  struct cv_cobroker_out out;
  struct cv_why why = {.text = ""};
  bool store;
  CV_REQUIRE(cv_cobroker_join(core, &broker, NULL, &conn, &why) == CV_OK);
  const struct cv_share_frame hello = {.hello = {.present = true, .version = CV_WIRE_VERSION}};
  CV_REQUIRE(cv_cobroker_on_share(core, conn, &hello, 1000, 1000, &why) == CV_OK);
  for (uint64_t campaign = 1; campaign < 4; campaign++) {
    struct cv_share_end over = {.campaign = campaign, .reason = CV_END_CANCELLED};
    const struct cv_share_frame frame = {.overs = campaign & 1, .over = &over};
    CV_REQUIRE(cv_cobroker_on_share(core, conn, &frame, 1000, 1000, &why) == CV_OK);
    cv_cobroker_tick(core, campaign * 1000, campaign * 1000);
    CV_REQUIRE(cv_cobroker_flush(core, campaign * 1000, campaign * 1000, &batch, &store) == CV_OK);
    CV_REQUIRE(!store || batch.commit > COMMIT);
    cv_cobroker_stored(core);
    while (cv_cobroker_next_out(core, &out)) {
    }
  }
  cv_cobroker_batch_fini(&batch);
}

static struct cv_cobroker_name name_of(const struct fuzz_record *record, uint64_t number) {
  return (struct cv_cobroker_name){.campaign = record->argument & 3,
                                   .kind = record->kind,
                                   .number = number,
                                   .commit = cv_cobroker_row_is_sealed(record->kind) ? record->argument >> 2 : 0};
}

/* A chunk of a table may end early in the input: the rest is zeros. */
static struct cv_reader padded(const struct fuzz_record *record) {
  static uint8_t room[CV_CHUNK_BYTES];
  size_t left = (size_t)(record->bytes.end - record->bytes.at);
  bool is_chunk = record->kind == CV_COROW_PLACES || record->kind == CV_COROW_SLOTS ||
                  record->kind == CV_COROW_ANSWERED || record->kind == CV_COROW_ACCOUNTS;
  if (!is_chunk || left >= sizeof(room)) {
    return record->bytes;
  }
  memset(room, 0, sizeof(room));
  memcpy(room, record->bytes.at, left);
  return cv_reader_over(room, sizeof(room));
}

static unsigned step_of(uint32_t kind) {
  return kind == CV_COROW_JOURNAL ? 2 : cv_cobroker_row_is_sealed(kind);
}

/* Whether the store reads `b` after `a`. */
static bool follows(const struct cv_cobroker_name *a, const struct cv_cobroker_name *b) {
  if (step_of(a->kind) != step_of(b->kind)) {
    return step_of(a->kind) < step_of(b->kind);
  }
  if (a->kind == CV_COROW_JOURNAL && a->number != b->number) {
    return a->number < b->number;
  }
  return a->campaign != b->campaign ? a->campaign < b->campaign
         : a->kind != b->kind       ? a->kind < b->kind
                                    : a->number < b->number;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct cv_rng_seeded seeded;
  struct cv_cobroker *core = make(&seeded);
  struct cv_reader in = cv_reader_over(bytes, n);
  struct fuzz_record record;
  struct cv_totals totals = {0};
  struct cv_cobroker_name last = {0};
  enum cv_err err = CV_OK;
  while (err == CV_OK && fuzz_record_next(&in, &record)) {
    uint64_t number = cv_read_u64(&record.bytes);
    const struct cv_cobroker_name name = name_of(&record, number);
    if (record.kind == 0) {
      totals = (struct cv_totals){.campaigns = number, .releases = cv_read_u64(&record.bytes)};
      totals.tokens = cv_read_u64(&record.bytes);
      totals.promised_micro = cv_read_u64(&record.bytes);
    } else if (!record.bytes.failed && follows(&last, &name)) {
      CV_REQUIRE(cv_cobroker_row_text(name.kind)[0] != '\0');
      struct cv_reader row = padded(&record);
      err = cv_cobroker_restore(core, &name, &row);
      CV_REQUIRE(err != CV_ERR_NOMEM);
      last = name;
    }
  }
  if (err == CV_OK && cv_cobroker_restore_end(core, COMMIT, &totals, 1000, 1000) == CV_OK) {
    run(core);
  }
  cv_cobroker_free(core);
  return 0;
}
