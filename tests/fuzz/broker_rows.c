/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's stored rows into a core, in the order in which the store reads them: kinds in ascending order (`place`),
 * and each campaign complete before the rows of no campaign. A core that accepts them all then runs for a moment.
 */
#include "broker/core.h"
#include "broker/recover.h"
#include "broker/restore.h"

#include <string.h>

#include "common/crypto/crypto.h"
#include "tests/fuzz/fuzz.h"

enum kind { CAMPAIGN, PLAN, RELEASE, LEDGER, RECOVERY, STANDINGS, STATE, CHUNK, JOURNAL, ENDED, KINDS };
static const uint8_t place[KINDS] = {[CAMPAIGN] = 1, [PLAN] = 2,     [RELEASE] = 3, [LEDGER] = 4, [STANDINGS] = 5,
                                     [STATE] = 6,    [RECOVERY] = 7, [CHUNK] = 8,   [JOURNAL] = 9};

static enum cv_err tag(void *data, const void *bytes, size_t bytes_n, uint8_t *ret, size_t n) {
  memset(ret, 0, n);
  return CV_OK;
}

static struct cv_broker *make(struct cv_rng_seeded *seeded) {
  struct cv_broker_config config = {.name = "fuzz",
                                    .limits = {.epsilon_micro = 10000000,
                                               .worker_epsilon_micro = 100000000,
                                               .release_tokens = 1,
                                               .arms = 64,
                                               .campaigns = 4,
                                               .tokens = 1000000,
                                               .chunks = 64,
                                               .lease_ms = 5000,
                                               .queue = 16},
                                    .tagger = {.tag = tag},
                                    .digest = cv_sha256,
                                    .noise = &seeded->rng};
  struct cv_broker *broker;
  cv_rng_seeded_init(seeded, 1, CV_RNG_NOISE, 0, 0);
  CV_REQUIRE(cv_broker_new(&config, &broker) == CV_OK);
  return broker;
}

static enum cv_err feed(struct cv_broker *broker, struct fuzz_record *record) {
  uint32_t campaign = 1U + (record->argument & 1);
  uint64_t commit = record->argument >> 4;
  switch ((enum kind)record->kind) {
    case CAMPAIGN:
      return cv_broker_restore_campaign(broker, campaign, &record->bytes);
    case PLAN:
      return cv_broker_restore_plan(broker, campaign, &record->bytes);
    case RELEASE:
      return cv_broker_restore_release(broker, campaign, &record->bytes);
    case LEDGER:
      return cv_broker_restore_ledger(broker, campaign, &record->bytes);
    case RECOVERY:
      return cv_broker_restore_recovery(broker, 1U + (record->argument >> 1), &record->bytes);
    case STANDINGS:
      return cv_broker_restore_standings(broker, campaign, &record->bytes);
    case STATE:
      return cv_broker_restore_state(broker, campaign, &record->bytes);
    case CHUNK: {
      enum cv_kind kind = (enum cv_kind)(1 + (record->argument >> 1 & 3));
      uint64_t number = cv_read_u64(&record->bytes);
      return cv_broker_restore_chunk(broker, kind == CV_CHUNK_ACCOUNTS ? 0 : campaign, kind, number, commit,
                                     &record->bytes);
    }
    case JOURNAL:
      return cv_broker_restore_journal(broker, campaign, commit, &record->bytes);
    case ENDED:
      return cv_broker_restore_ended(broker, record->argument >> 1 & 3, &record->bytes);
    default:
      return CV_ERR_DAMAGED;
  }
}

static enum cv_err make_whole(struct cv_broker *broker, unsigned known) {
  for (uint32_t campaign = 1; campaign <= 2; campaign++) {
    CV_TRY((known >> (campaign - 1) & 1) != 0 ? cv_broker_restore_whole(broker, campaign) : CV_OK);
  }
  return CV_OK;
}

static void run(struct cv_broker *broker) {
  struct cv_broker_batch batch = {0};
  struct cv_broker_out out;
  bool store;
  for (uint64_t now = 1000; now < 4000; now += 1000) {
    cv_broker_tick(broker, now, now);
    CV_REQUIRE(cv_broker_flush(broker, now, now, &batch, &store) == CV_OK);
    cv_broker_stored(broker);
    while (cv_broker_next_out(broker, &out)) {
    }
  }
  cv_broker_batch_fini(&batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct cv_rng_seeded seeded;
  struct cv_broker *broker = make(&seeded);
  struct cv_reader in = cv_reader_over(bytes, n);
  struct fuzz_record record;
  uint8_t last = 0;
  unsigned known = 0; /* the numbers are keys in the tables */
  enum cv_err err = CV_OK;
  while (err == CV_OK && fuzz_record_next(&in, &record)) {
    record.kind %= KINDS;
    unsigned bit = 1U << (record.argument & 1) << (record.kind == STATE ? 2 : record.kind == STANDINGS ? 4 : 0);
    bool is_key = record.kind == CAMPAIGN || record.kind == STATE || record.kind == STANDINGS;
    if (place[record.kind] < last || (is_key && (known & bit) != 0)) {
      continue;
    }
    if (last <= place[STATE] && place[record.kind] > place[STATE]) {
      err = make_whole(broker, known);
    }
    last = place[record.kind];
    known |= is_key ? bit : 0;
    err = err == CV_OK ? feed(broker, &record) : err;
  }
  if (err == CV_OK && last <= place[STATE]) {
    err = make_whole(broker, known);
  }
  if (err == CV_OK && cv_broker_restore_end(broker, 20, NULL, 1000, 1000) == CV_OK) {
    run(broker);
  }
  cv_broker_free(broker);
  return 0;
}
