/* SPDX-License-Identifier: Apache-2.0 */
/* The expected values were computed from the layouts of docs/protocol.md with Python's struct and hashlib. */
#include "common/base/split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/crypto/crypto.h"

static void count_up(uint8_t *bytes, size_t n, unsigned from) {
  for (size_t i = 0; i < n; i++) {
    bytes[i] = (uint8_t)(from + i);
  }
}

static void assert_hex(const uint8_t *bytes, size_t n, const char *want) {
  char text[2 * CV_SPLIT_BOUND_BYTES + 1];
  assert_int_equal(strlen(want), 2 * n);
  for (size_t i = 0; i < n; i++) {
    (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
  }
  assert_string_equal(text, want);
}

static struct cv_split sample(uint32_t score_bits) {
  struct cv_split split = {.score_bits = score_bits};
  count_up(split.database, sizeof(split.database), 200);
  count_up(split.spec.bytes, sizeof(split.spec.bytes), 64);
  count_up(split.key.bytes, sizeof(split.key.bytes), 96);
  return split;
}

static struct cv_duo sample_duo(void) {
  struct cv_duo duo;
  count_up(duo.broker.bytes, sizeof(duo.broker.bytes), 0);
  count_up(duo.cobroker.bytes, sizeof(duo.cobroker.bytes), 32);
  return duo;
}

static struct cv_split_token sample_token(void) {
  struct cv_split_token token = {.plan = 3, .arm = 19, .place = 5999, .worker = (UINT64_C(1) << 40) + 7, .slot = 2};
  count_up(token.nonce, sizeof(token.nonce), 240);
  return token;
}

static struct cv_digest context_of(const struct cv_split *split, const struct cv_duo *duo, uint64_t campaign) {
  struct cv_digest context;
  cv_split_context(split, duo, campaign, cv_sha256, &context);
  return context;
}

static void the_context_is_that_of_the_protocol(void **state) {
  const struct cv_duo duo = sample_duo();
  const struct cv_split score = sample(CV_SPLIT_SCORE), bit = sample(CV_SPLIT_BIT);
  struct cv_digest context = context_of(&score, &duo, 7);
  assert_hex(context.bytes, 32, "605725c338d9062c879fd051623b3a2ee1737a5c914e7671d56fe1efe6007b7c");
  context = context_of(&bit, &duo, 7);
  assert_hex(context.bytes, 32, "72c5cb2a3365efa46df80d55a964bbe37360b5ab389a7f18898eab545cbe8baa");
}

/* A share must not be verified as one of anything else. */
static void every_part_changes_the_context(void **state) {
  const struct cv_duo duo = sample_duo();
  const struct cv_split split = sample(CV_SPLIT_SCORE);
  const struct cv_digest context = context_of(&split, &duo, 7);
  struct cv_digest other = context_of(&split, &duo, 8);
  assert_memory_not_equal(&context, &other, sizeof(other));
  const struct cv_duo swapped = {.broker = duo.cobroker, .cobroker = duo.broker};
  other = context_of(&split, &swapped, 7);
  assert_memory_not_equal(&context, &other, sizeof(other));
  for (unsigned part = 0; part < 3; part++) {
    struct cv_split changed = split;
    uint8_t *last[] = {&changed.database[CV_SPLIT_DATABASE_BYTES - 1], &changed.spec.bytes[31], &changed.key.bytes[31]};
    *last[part] ^= 1;
    other = context_of(&changed, &duo, 7);
    assert_memory_not_equal(&context, &other, sizeof(other));
  }
}

static void a_seed_is_bound_to_its_place(void **state) {
  const struct cv_duo duo = sample_duo();
  const struct cv_split split = sample(CV_SPLIT_SCORE);
  const struct cv_digest context = context_of(&split, &duo, 7);
  const struct cv_split_token token = sample_token();
  uint8_t bound[CV_SPLIT_BOUND_BYTES];
  cv_split_bound(&context, &token, bound);
  assert_hex(bound, sizeof(bound),
             "605725c338d9062c879fd051623b3a2ee1737a5c914e7671d56fe1efe6007b7c0300000000000000130000006f17000000000000"
             "070000000001000002000000f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
}

static void the_counter_is_the_end_of_the_nonce(void **state) {
  uint8_t nonce[CV_SPLIT_SEAL_NONCE_BYTES];
  cv_split_seal_nonce(0, nonce);
  assert_hex(nonce, sizeof(nonce), "000000000000000000000000");
  cv_split_seal_nonce(UINT64_C(0x0102030405060708), nonce);
  assert_hex(nonce, sizeof(nonce), "000000000102030405060708");
  cv_split_seal_nonce(UINT64_MAX, nonce);
  assert_hex(nonce, sizeof(nonce), "00000000ffffffffffffffff");
}

static void an_epochs_tokens_chain(void **state) {
  struct cv_digest hash;
  memset(&hash, 1, sizeof(hash));
  struct cv_split_token token = sample_token();
  cv_split_chain(&hash, &token, cv_sha256);
  assert_hex(hash.bytes, 32, "f7998d97d3e7e0f9c9cac7ade7a32240f5b7570c6a9ba53169e8b5cf4e75a23c");
  token = (struct cv_split_token){.worker = 1};
  cv_split_chain(&hash, &token, cv_sha256);
  assert_hex(hash.bytes, 32, "ae32fbc0b0408590c2babe3a692f78e38d16502cd42a248bedff26d9a6382e26");
}

/* A score of 1 counts CV_GRID in a sum, whatever its bits. */
static void scores_are_on_the_grid(void **state) {
  assert_int_equal(cv_split_maximum(CV_SPLIT_BIT), 1);
  assert_int_equal(cv_split_maximum(CV_SPLIT_SCORE), 16384);
  for (int tokens_are_bits = 0; tokens_are_bits < 2; tokens_are_bits++) {
    uint32_t bits = cv_split_bits_of(tokens_are_bits != 0);
    assert_int_equal(bits, tokens_are_bits ? 1 : 15);
    assert_int_equal(cv_split_maximum(bits) * cv_split_scale(bits), CV_GRID);
  }
}

static void the_specs_digest_is_of_its_stored_form(void **state) {
  const struct cv_spec spec = {.name = "demo", .arms = 3, .brokers = 2, .score_bits = 15};
  struct cv_buf stored = {0};
  struct cv_digest digest, want;
  cv_spec_encode(&spec, &stored);
  cv_sha256(stored.data, stored.len, NULL, 0, &want);
  assert_int_equal(cv_split_spec(&spec, cv_sha256, &digest), CV_OK);
  assert_memory_equal(&digest, &want, sizeof(want));
  cv_buf_fini(&stored);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_context_is_that_of_the_protocol),
      cmocka_unit_test(every_part_changes_the_context),
      cmocka_unit_test(a_seed_is_bound_to_its_place),
      cmocka_unit_test(the_counter_is_the_end_of_the_nonce),
      cmocka_unit_test(an_epochs_tokens_chain),
      cmocka_unit_test(scores_are_on_the_grid),
      cmocka_unit_test(the_specs_digest_is_of_its_stored_form),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
