/* SPDX-License-Identifier: Apache-2.0 */
/* The expected values were computed from the layouts of docs/protocol.md with Python's struct and hashlib. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/base/spec.h"
#include "common/crypto/crypto.h"
#include "proto/codec/chain.h"
#include "proto/codec/share.h"

static void assert_hash(const struct cv_digest *hash, const char *want) {
  char text[2 * CV_DIGEST_BYTES + 1];
  for (size_t i = 0; i < CV_DIGEST_BYTES; i++) {
    (void)snprintf(text + 2 * i, 3, "%02x", hash->bytes[i]);
  }
  assert_string_equal(text, want);
}

static void releases_chain(void **state) {
  struct cv_digest hash = {0};
  struct cv_release release = {.number = 1,
                               .plan = 1,
                               .arm = 19,
                               .tokens = 6000,
                               .noisy_sum = -123456789,
                               .noise = {.groups = 1, .group = {{.scale = 2, .count = 1}}}};
  cv_chain_release(&hash, &release, cv_sha256);
  assert_hash(&hash, "54caf87e1a2ca510e9aac28ec80bb46b6297aab7c268c6834259f33aeb2f0260");
  release = (struct cv_release){.number = 2,
                                .plan = 1,
                                .arm = 0,
                                .tokens = 12000,
                                .noisy_sum = (INT64_C(1) << 40) + 3,
                                .noise = {.groups = 2, .group = {{.scale = 2, .count = 3}, {.scale = .5, .count = 7}}}};
  cv_chain_release(&hash, &release, cv_sha256);
  assert_hash(&hash, "276ca12f93245cb3b45a6214977827938e62c775255446e468dd75e3191813ed");
  release = (struct cv_release){.number = 3, .plan = 2, .arm = 7, .tokens = 1};
  cv_chain_release(&hash, &release, cv_sha256);
  assert_hash(&hash, "352308a9d77de7551174a33e67f1e2bba9b3f22593e206d27f7a7b4d5fd7cd28");
  release = (struct cv_release){.number = 4, .plan = 2, .arm = 3, .last = true};
  cv_chain_release(&hash, &release, cv_sha256);
  assert_hash(&hash, "2cc789cb383bef8ce95a040f2c7729fe69e8ffeb8ea2be12c1a22d4d60f14207");
}

static void plans_chain(void **state) {
  struct cv_digest hash = {0};
  static struct cv_want want[CV_ARMS_MAX] = {{.arm = 0, .tokens = 6000}, {.arm = 19, .tokens = 6000}};
  struct cv_plan plan = {.number = 1, .wants = 2, .want = want};
  assert_int_equal(cv_chain_plan(&hash, &plan, cv_sha256), CV_OK);
  assert_hash(&hash, "71f9bca67cd016bfb32e0ac608f84a32b10f8718d201c68ee60d59ad73639bce");
  plan = (struct cv_plan){.number = 2};
  assert_int_equal(cv_chain_plan(&hash, &plan, cv_sha256), CV_OK);
  assert_hash(&hash, "c1652ca2a92aeb4492c7dd9e3ace21653822419211484b7f4a4a23819469bda9");
  for (uint32_t i = 0; i < CV_ARMS_MAX; i++) {
    want[i] = (struct cv_want){.arm = i, .tokens = i + 1};
  }
  plan = (struct cv_plan){.number = 3, .wants = CV_ARMS_MAX, .want = want};
  assert_int_equal(cv_chain_plan(&hash, &plan, cv_sha256), CV_OK);
  assert_hash(&hash, "51bb54c149e0e64a8fa55de5d96bc2071f243476805ba038b9dc802416956eae");
}

static void opponents_count_where_there_are_any(void **state) {
  struct cv_digest hash = {0};
  struct cv_want want[] = {{.arm = 0, .tokens = 6000}, {.arm = 19, .tokens = 6000, .opponent = 5}};
  const struct cv_plan plan = {.number = 1, .wants = 2, .want = want};
  assert_int_equal(cv_chain_plan(&hash, &plan, cv_sha256), CV_OK);
  assert_hash(&hash, "a730c46c5de5908c315fe0f76d43022ce849d9631b2ed2e60358f41cd9f62f58");
}

static void unused_groups_do_not_count(void **state) {
  struct cv_digest a = {0}, b = {0};
  struct cv_release release = {.number = 1, .noise = {.groups = 1, .group = {{.scale = 2, .count = 1}}}};
  cv_chain_release(&a, &release, cv_sha256);
  release.noise.group[1] = (struct cv_noise_group){.scale = 9, .count = 9};
  cv_chain_release(&b, &release, cv_sha256);
  assert_memory_equal(&a, &b, sizeof(a));
}

static void count_up(void *to, size_t n, unsigned from) {
  for (size_t i = 0; i < n; i++) {
    ((uint8_t *)to)[i] = (uint8_t)(from + i);
  }
}

static void batches_chain(void **state) {
  struct cv_digest hash = {0};
  struct cv_share_pending token[2] = {
      {.token = {.plan = 3, .arm = 19, .place = 5999, .worker = (UINT64_C(1) << 40) + 7, .slot = 2},
       .counter = 9,
       .verifiers = 3,
       .verifier = {1, UINT64_C(1) << 63, UINT64_MAX - UINT32_MAX}},
      {.token = {.plan = 3, .worker = 1}, .counter = 10, .verifiers = 1, .verifier = {5}}};
  count_up(token[0].token.nonce, sizeof(token[0].token.nonce), 240);
  for (size_t i = 0; i < 2; i++) {
    count_up(token[i].session, sizeof(token[i].session), 0);
    count_up(token[i].sealed, sizeof(token[i].sealed), 0);
  }
  struct cv_share_batch batch = {.campaign = 5, .number = 1, .tokens = 2, .token = token};
  assert_int_equal(cv_chain_batch(&hash, &batch, cv_sha256), CV_OK);
  assert_hash(&hash, "87b86202f850ec9a1effec0a001607af2616c346947084181c4e1a19ead98c5b");
  struct cv_share_pending last = {
      .token = {.plan = 4, .arm = 1, .place = 2, .worker = 3, .slot = 4}, .verifiers = 4, .verifier = {7, 8, 9, 10}};
  count_up(last.token.nonce, sizeof(last.token.nonce), 240);
  batch = (struct cv_share_batch){.campaign = 5, .number = 2, .tokens = 1, .token = &last};
  assert_int_equal(cv_chain_batch(&hash, &batch, cv_sha256), CV_OK);
  assert_hash(&hash, "45950200fd00bbfe2a138c49982f520e8f4ffc5ac6ad88a7cd5a9758baf84f6d");
}

static void closings_chain(void **state) {
  struct cv_digest hash = {0};
  struct cv_share_close close = {.campaign = 5, .number = 1, .plan = 3, .arm = 19, .count = 6000};
  count_up(&close.plan_hash, sizeof(close.plan_hash), 0);
  count_up(&close.chain, sizeof(close.chain), 32);
  cv_chain_close(&hash, &close, cv_sha256);
  assert_hash(&hash, "87025e4e5cb754b4121104fda6e56f5d60b6bf6e4aa211853ba92bd50c0fe8da");
  close.number = 2;
  close.arm = 0;
  close.count = 17;
  close.discard = true;
  cv_chain_close(&hash, &close, cv_sha256);
  assert_hash(&hash, "8ac0b52f4a348383c528f5a3d94ae36c2a3dbf9c0509379f901b8523c816e9c5");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(releases_chain),
      cmocka_unit_test(plans_chain),
      cmocka_unit_test(opponents_count_where_there_are_any),
      cmocka_unit_test(unused_groups_do_not_count),
      cmocka_unit_test(batches_chain),
      cmocka_unit_test(closings_chain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
