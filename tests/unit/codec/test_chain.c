/* SPDX-License-Identifier: Apache-2.0 */
/* The expected values were computed from the layouts of docs/protocol.md with Python's struct and hashlib. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/crypto/crypto.h"
#include "proto/codec/rank.h"

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(releases_chain),
      cmocka_unit_test(plans_chain),
      cmocka_unit_test(opponents_count_where_there_are_any),
      cmocka_unit_test(unused_groups_do_not_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
