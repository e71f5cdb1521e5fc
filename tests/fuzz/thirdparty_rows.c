/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign from the third-party's tables, within the ranges that rows.c accepts. Kinds: plan, release, state. */
#include <string.h>

#include "common/crypto/crypto.h"
#include "tests/fuzz/fuzz.h"
#include "thirdparty/core.h"

enum kind { PLAN, RELEASE, STATE, KINDS };
enum { RELEASES = 64 };

static bool read_row(struct cv_reader *in, struct cv_stored_campaign *stored) {
  struct cv_thirdparty_campaign_row *row = &stored->row;
  (void)snprintf(stored->key.broker, sizeof(stored->key.broker), "broker");
  stored->key.campaign = 1;
  stored->seed = 7;
  row->plan = cv_read_u64(in);
  row->state_plan = cv_read_u64(in);
  row->releases = cv_read_u64(in);
  row->accepted = cv_read_u64(in);
  row->decisions = cv_read_u64(in);
  row->end = (enum cv_end)(cv_read_u8(in) % CV_END_COUNT);
  uint8_t flags = cv_read_u8(in);
  row->closed = (flags & 1) != 0;
  row->policy_done = (flags & 2) != 0;
  return !in->failed && cv_spec_decode(in, &stored->spec) == CV_OK && cv_spec_check(&stored->spec, NULL) == CV_OK;
}

static bool read_plan(struct fuzz_record *record, struct cv_stored_campaign *stored) {
  uint32_t most = (uint32_t)(record->n / 8);
  struct cv_plan *plan = &stored->plan;
  if (plan->want != NULL || most > stored->spec.arms) {
    return false;
  }
  plan->number = stored->row.plan;
  plan->want = calloc(stored->spec.arms, sizeof(*plan->want));
  CV_REQUIRE(plan->want != NULL);
  for (uint32_t i = 0; i < most; i++) {
    struct cv_want want = {.arm = cv_read_u32(&record->bytes), .tokens = cv_read_u32(&record->bytes)};
    if (want.arm >= stored->spec.arms || want.tokens == 0) {
      return false;
    }
    plan->want[plan->wants++] = want;
  }
  return true;
}

static bool read_release(struct fuzz_record *record, struct cv_stored_campaign *stored) {
  struct cv_release release = {.number = cv_read_u64(&record->bytes), .plan = cv_read_u64(&record->bytes)};
  release.arm = cv_read_u32(&record->bytes) % CV_ARMS_MAX;
  release.tokens = cv_read_u64(&record->bytes) >> 1;
  release.noisy_sum = (int64_t)cv_read_u64(&record->bytes);
  release.noise.groups = 1;
  release.noise.group[0] = (struct cv_noise_group){.scale = cv_read_f64(&record->bytes), .count = 1};
  if (release.tokens == 0 || release.plan <= stored->row.state_plan || stored->releases == RELEASES) {
    return false;
  }
  stored->release[stored->releases++] = release;
  return true;
}

static bool read_all(struct cv_reader *in, struct cv_stored_campaign *stored) {
  struct fuzz_record record;
  bool good = true;
  stored->release = calloc(RELEASES, sizeof(*stored->release));
  CV_REQUIRE(stored->release != NULL);
  while (good && fuzz_record_next(in, &record)) {
    if (record.kind % KINDS == PLAN) {
      good = read_plan(&record, stored);
    } else if (record.kind % KINDS == RELEASE) {
      good = read_release(&record, stored);
    } else {
      cv_buf_clear(&stored->state);
      cv_buf_put(&stored->state, cv_read(&record.bytes, record.n), record.n);
    }
  }
  return good && (stored->row.plan == 0 || stored->plan.want != NULL);
}

static void try_restore(const struct cv_stored_campaign *stored) {
  struct cv_rng_seeded seeded;
  struct cv_thirdparty *thirdparty;
  struct cv_thirdparty_conn *conn;
  struct cv_thirdparty_batch batch = {0};
  struct cv_thirdparty_out out;
  struct cv_why why = {.text = ""};
  cv_rng_seeded_init(&seeded, 1, 0, 0, 0);
  const struct cv_thirdparty_config setup = {
      .digest = cv_sha256, .rng = &seeded.rng, .program = "fuzz", .limits = CV_THIRDPARTY_DEFAULTS};
  CV_REQUIRE(cv_thirdparty_new(&setup, &thirdparty) == CV_OK);
  if (cv_thirdparty_restore(thirdparty, stored, &why) == CV_OK) {
    CV_REQUIRE(cv_thirdparty_join(thirdparty, "broker", NULL, &conn) == CV_OK);
    CV_REQUIRE(cv_thirdparty_flush(thirdparty, &batch) == CV_OK);
    cv_thirdparty_stored(thirdparty);
    while (cv_thirdparty_next_out(thirdparty, &out)) {
    }
    cv_thirdparty_batch_fini(&batch);
  } else {
    CV_REQUIRE(why.text[0] != '\0');
  }
  cv_thirdparty_free(thirdparty);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct cv_stored_campaign stored = {0};
  struct cv_reader in = cv_reader_over(bytes, n);
  if (read_row(&in, &stored) && read_all(&in, &stored)) {
    try_restore(&stored);
  }
  cv_stored_campaign_fini(&stored);
  return 0;
}
