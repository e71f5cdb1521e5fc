/* SPDX-License-Identifier: Apache-2.0 */
/* What callers of the library rely on; tests/vectors has the bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "common/base/rng.h"
#include "common/prio/field.h"
#include "common/prio/shard.h"
#include "common/prio/verify.h"

enum { TOKENS = 300 };

static const uint8_t ctx[32] = "a campaign, two brokers";

struct token {
  uint8_t nonce[CV_PRIO_NONCE_BYTES], rand[CV_PRIO_MAX_RAND_BYTES];
  uint8_t leader[CV_PRIO_MAX_LEADER_BYTES], helper[CV_PRIO_SEED_BYTES];
};

/* What both brokers have after a token. */
struct judged {
  bool accepted;
  uint64_t verifier[2][CV_PRIO_MAX_VERIFIER_ELEMENTS], output[2];
};

static struct cv_rng_seeded rng;
static uint8_t key[CV_PRIO_SEED_BYTES];

static void fill(uint8_t *bytes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    bytes[i] = (uint8_t)cv_rng_u64(&rng.rng);
  }
}

static int start(void **state) {
  cv_rng_seeded_init(&rng, 3, CV_RNG_NOISE, 0, 0);
  fill(key, sizeof(key));
  return 0;
}

static struct token split(const struct cv_prio *p, uint64_t measurement) {
  struct token t;
  fill(t.nonce, sizeof(t.nonce));
  fill(t.rand, sizeof(t.rand));
  cv_prio_shard(p, ctx, sizeof(ctx), measurement, t.nonce, t.rand, t.leader, t.helper);
  return t;
}

/* As two brokers that have these contexts, keys and nonces. */
static struct judged judge(const struct cv_prio *p, const struct token *t, const uint8_t *helper_key,
                           const uint8_t *helper_ctx, const uint8_t *helper_nonce) {
  struct judged j;
  assert_true(cv_prio_verify_leader(p, key, ctx, sizeof(ctx), t->nonce, t->leader, p->leader_bytes, j.verifier[0],
                                    &j.output[0]));
  assert_true(cv_prio_verify_helper(p, helper_key, helper_ctx, sizeof(ctx), helper_nonce, t->helper, j.verifier[1],
                                    &j.output[1]));
  j.accepted = cv_prio_accepts(p, j.verifier[0], j.verifier[1]);
  return j;
}

static struct judged judge_honestly(const struct cv_prio *p, const struct token *t) {
  return judge(p, t, key, ctx, t->nonce);
}

static void check_sums(enum cv_prio_circuit circuit, uint64_t max) {
  struct cv_prio p;
  uint64_t half[2] = {0, 0}, total = 0;
  assert_int_equal(cv_prio_init(&p, circuit, max), CV_OK);
  for (int i = 0; i < TOKENS; i++) {
    uint64_t measurement = cv_rng_below(&rng.rng, max + 1);
    struct token t = split(&p, measurement);
    struct judged j = judge_honestly(&p, &t);
    assert_true(j.accepted);
    assert_int_equal(cv_field_add(j.output[0], j.output[1]), measurement);
    half[0] = cv_field_add(half[0], j.output[0]);
    half[1] = cv_field_add(half[1], j.output[1]);
    total += measurement;
  }
  assert_int_not_equal(half[0], total);
  assert_int_not_equal(half[1], total);
  int64_t sum = 0; /* with noise, in steps of a broker's grid */
  uint64_t noisy = cv_field_add(cv_field_mul(half[0], 64), cv_field_of_int(-1000000007));
  noisy = cv_field_add(noisy, cv_field_add(cv_field_mul(half[1], 64), cv_field_of_int(-31)));
  assert_true(cv_field_lift(noisy, &sum));
  assert_int_equal(sum, (int64_t)total * 64 - 1000000007 - 31);
}

static void test_sums(void **state) {
  check_sums(CV_PRIO_SUM, CV_PRIO_MAX_MEASUREMENT);
  check_sums(CV_PRIO_COUNT, 1);
  check_sums(CV_PRIO_SUM, 1);
  check_sums(CV_PRIO_SUM, 1000);
}

/* The constants for callers' arrays hold for both instances of a campaign. */
static void test_lengths(void **state) {
  struct cv_prio sum, count;
  assert_int_equal(cv_prio_init(&sum, CV_PRIO_SUM, CV_PRIO_MAX_MEASUREMENT), CV_OK);
  assert_int_equal(cv_prio_init(&count, CV_PRIO_COUNT, 1), CV_OK);
  assert_int_equal(sum.leader_bytes, CV_PRIO_MAX_LEADER_BYTES);
  assert_int_equal(sum.leader_bytes, 8 * CV_PRIO_MAX_LEADER_ELEMENTS);
  assert_int_equal(sum.verifier_elements, 3);
  assert_int_equal(sum.rand_bytes, CV_PRIO_MAX_RAND_BYTES);
  assert_int_equal(count.leader_bytes, 48);
  assert_int_equal(count.verifier_elements, CV_PRIO_MAX_VERIFIER_ELEMENTS);
  assert_int_equal(count.verifier_bytes, CV_PRIO_MAX_VERIFIER_BYTES);
  assert_int_equal(count.rand_bytes, CV_PRIO_MAX_RAND_BYTES);
}

static void test_limits(void **state) {
  struct cv_prio p = {.max = 7};
  assert_int_equal(cv_prio_init(&p, CV_PRIO_SUM, 0), CV_ERR_LIMIT);
  assert_int_equal(cv_prio_init(&p, CV_PRIO_SUM, CV_FIELD_P), CV_ERR_LIMIT);
  assert_int_equal(cv_prio_init(&p, CV_PRIO_COUNT, 2), CV_ERR_LIMIT);
  assert_int_equal(cv_prio_init_shares(&p, CV_PRIO_COUNT, 1, 1), CV_ERR_LIMIT);
  assert_int_equal(cv_prio_init_shares(&p, CV_PRIO_COUNT, 1, 256), CV_ERR_LIMIT);
  assert_int_equal(p.max, 7);
  assert_int_equal(cv_prio_init(&p, CV_PRIO_SUM, CV_FIELD_P - 1), CV_OK);
}

/* Brokers that do not agree on the key, the context or the nonce accept nothing. */
static void test_other_terms(void **state) {
  struct cv_prio p;
  uint8_t other_key[CV_PRIO_SEED_BYTES], other_ctx[sizeof(ctx)], other_nonce[CV_PRIO_NONCE_BYTES];
  assert_int_equal(cv_prio_init(&p, CV_PRIO_SUM, CV_PRIO_MAX_MEASUREMENT), CV_OK);
  struct token t = split(&p, 77);
  memcpy(other_key, key, sizeof(key));
  memcpy(other_ctx, ctx, sizeof(ctx));
  memcpy(other_nonce, t.nonce, sizeof(other_nonce));
  other_key[31] ^= 1;
  other_ctx[31] ^= 1;
  other_nonce[15] ^= 1;
  assert_true(judge(&p, &t, key, ctx, t.nonce).accepted);
  assert_false(judge(&p, &t, other_key, ctx, t.nonce).accepted);
  assert_false(judge(&p, &t, key, other_ctx, t.nonce).accepted);
  assert_false(judge(&p, &t, key, ctx, other_nonce).accepted);
}

/* Any single flipped bit of either share, or of a verifier share, is found. */
static void test_flipped_bits(void **state) {
  struct cv_prio p;
  assert_int_equal(cv_prio_init(&p, CV_PRIO_SUM, CV_PRIO_MAX_MEASUREMENT), CV_OK);
  struct token t = split(&p, 9999);
  struct judged honest = judge_honestly(&p, &t);
  for (size_t bit = 0; bit < 8 * sizeof(t.leader); bit++) {
    struct token wrong = t;
    uint64_t verifier[CV_PRIO_MAX_VERIFIER_ELEMENTS], output = 0;
    wrong.leader[bit / 8] ^= (uint8_t)(1 << bit % 8);
    assert_false(cv_prio_verify_leader(&p, key, ctx, sizeof(ctx), t.nonce, wrong.leader, sizeof(wrong.leader), verifier,
                                       &output) &&
                 cv_prio_accepts(&p, verifier, honest.verifier[1]));
  }
  for (size_t bit = 0; bit < 8 * sizeof(t.helper); bit++) {
    struct token wrong = t;
    wrong.helper[bit / 8] ^= (uint8_t)(1 << bit % 8);
    assert_false(judge_honestly(&p, &wrong).accepted);
  }
  for (size_t i = 0; i < p.verifier_elements; i++) {
    struct judged wrong = honest;
    wrong.verifier[1][i] = cv_field_add(wrong.verifier[1][i], 1);
    assert_false(cv_prio_accepts(&p, wrong.verifier[0], wrong.verifier[1]));
    wrong = honest; /* the same numbers modulo p, but no elements */
    uint64_t small = UINT64_MAX - CV_FIELD_P;
    wrong.verifier[0][i] = small;
    wrong.verifier[1][i] = cv_field_sub(cv_field_add(honest.verifier[0][i], honest.verifier[1][i]), small);
    assert_true(cv_prio_accepts(&p, wrong.verifier[0], wrong.verifier[1]));
    wrong.verifier[0][i] += CV_FIELD_P;
    assert_false(cv_prio_accepts(&p, wrong.verifier[0], wrong.verifier[1]));
    assert_false(cv_prio_accepts(&p, wrong.verifier[1], wrong.verifier[0]));
  }
}

/* What is no share is refused, and leaves what the caller had. */
static void test_malformed(void **state) {
  struct cv_prio p;
  uint64_t verifier[CV_PRIO_MAX_VERIFIER_ELEMENTS] = {7, 7, 7, 7}, output = 7;
  const uint64_t kept[CV_PRIO_MAX_VERIFIER_ELEMENTS] = {7, 7, 7, 7};
  uint8_t share[CV_PRIO_MAX_LEADER_BYTES + 8] = {0};
  assert_int_equal(cv_prio_init(&p, CV_PRIO_SUM, CV_PRIO_MAX_MEASUREMENT), CV_OK);
  struct token t = split(&p, 1);
  memcpy(share, t.leader, sizeof(t.leader));
  for (size_t length = 0; length <= sizeof(share); length++) {
    assert_int_equal(cv_prio_verify_leader(&p, key, ctx, sizeof(ctx), t.nonce, share, length, verifier, &output),
                     length == p.leader_bytes);
    assert_true(length == p.leader_bytes || length > p.leader_bytes || (output == 7 && verifier[0] == 7));
  }
  memcpy(verifier, kept, sizeof(kept));
  output = 7;
  for (size_t i = 0; i < CV_PRIO_MAX_LEADER_ELEMENTS; i++) {
    const uint64_t above[] = {CV_FIELD_P, UINT64_MAX};
    for (size_t j = 0; j < CV_COUNT(above); j++) {
      memcpy(share, t.leader, sizeof(t.leader));
      cv_field_encode(&above[j], 1, share + 8 * i);
      assert_false(cv_prio_verify_leader(&p, key, ctx, sizeof(ctx), t.nonce, share, p.leader_bytes, verifier, &output));
    }
  }
  assert_memory_equal(verifier, kept, sizeof(kept));
  assert_int_equal(output, 7);
}

/* The helper's half does not depend on the score, and no element of the leader's comes twice when the same score is
 * split again. */
static void test_halves(void **state) {
  struct cv_prio p;
  assert_int_equal(cv_prio_init(&p, CV_PRIO_SUM, CV_PRIO_MAX_MEASUREMENT), CV_OK);
  struct token a = split(&p, 0), b = a;
  cv_prio_shard(&p, ctx, sizeof(ctx), CV_PRIO_MAX_MEASUREMENT, b.nonce, b.rand, b.leader, b.helper);
  assert_memory_equal(a.helper, b.helper, sizeof(a.helper));
  assert_memory_not_equal(a.leader, b.leader, sizeof(a.leader));
  struct token c = split(&p, 0);
  for (size_t i = 0; i < CV_PRIO_MAX_LEADER_ELEMENTS; i++) {
    assert_memory_not_equal(a.leader + 8 * i, c.leader + 8 * i, 8);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums),        cmocka_unit_test(test_lengths),      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_other_terms), cmocka_unit_test(test_flipped_bits), cmocka_unit_test(test_malformed),
      cmocka_unit_test(test_halves),
  };
  return cmocka_run_group_tests(tests, start, NULL);
}
