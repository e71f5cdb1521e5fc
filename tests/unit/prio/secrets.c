/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prio3 on secrets that memcheck takes for uninitialised: measurements, randomness, seeds, shares, verify keys and
 * elements. Under valgrind every branch and every index that depends on one is an error, but for the bits that
 * cv_prio_public() declares public. The argument is what to do: "prio", or a fault that has to be found:
 * "branch" or "index".
 */
#include <stdio.h>
#include <string.h>
#include <valgrind/memcheck.h>

#include "common/prio/aggregate.h"
#include "common/prio/shard.h"
#include "common/prio/verify.h"
#include "common/prio/xof.h"

enum { LEADER_END = 8 * 320, HELPERS = 2, VERIFIER_END = 4 };

static const uint8_t ctx[] = "crowdveil test vector", nonce[CV_PRIO_NONCE_BYTES] = {1};

static void hide(void *secret, size_t n) {
  (void)VALGRIND_MAKE_MEM_UNDEFINED(secret, n);
}

/* Whether memcheck still takes a number for a secret. */
static bool is_hidden(uint64_t number) {
  uint64_t bits = 0;
  return RUNNING_ON_VALGRIND == 0 || (VALGRIND_GET_VBITS(&number, &bits, sizeof(bits)) == 1 && bits != 0);
}

static void fill(uint8_t *bytes, size_t n, uint8_t from) {
  for (size_t i = 0; i < n; i++) {
    bytes[i] = (uint8_t)(from + 7 * i);
  }
  hide(bytes, n);
}

struct secrets {
  struct cv_prio prio;
  uint8_t rand[CV_PRIO_SEED_BYTES * (HELPERS + 1)], key[CV_PRIO_SEED_BYTES];
  uint8_t leader[LEADER_END], helper[CV_PRIO_SEED_BYTES * HELPERS];
  uint64_t verifier[HELPERS + 1][VERIFIER_END], output[HELPERS + 1];
};

/* Splits a measurement, and adds `change` to the leader's first element. */
static void split(struct secrets *s, uint64_t measurement, uint64_t change) {
  uint64_t first = 0;
  hide(&measurement, sizeof(measurement));
  cv_prio_shard(&s->prio, ctx, sizeof(ctx) - 1, measurement, nonce, s->rand, s->leader, s->helper);
  CV_REQUIRE(cv_field_decode(s->leader, 1, &first));
  first = cv_field_add(first, change);
  cv_field_encode(&first, 1, s->leader);
}

static void verify(struct secrets *s) {
  CV_REQUIRE(cv_prio_verify_leader(&s->prio, s->key, ctx, sizeof(ctx) - 1, nonce, s->leader, s->prio.leader_bytes,
                                   s->verifier[0], &s->output[0]));
  for (unsigned i = 1; i < s->prio.shares; i++) {
    CV_REQUIRE(cv_prio_verify_helper_of(&s->prio, i, s->key, ctx, sizeof(ctx) - 1, nonce,
                                        s->helper + CV_PRIO_SEED_BYTES * (i - 1), s->verifier[i], &s->output[i]));
  }
}

/* The sum of all output shares, as bytes and back; it is public now. */
static uint64_t aggregate(const struct secrets *s) {
  uint8_t bytes[CV_PRIO_AGGREGATE_BYTES];
  uint64_t total = 0, decoded = 0;
  for (unsigned i = 0; i < s->prio.shares; i++) {
    CV_REQUIRE(is_hidden(s->output[i]));
    cv_prio_aggregate_encode(s->output[i], bytes);
    CV_REQUIRE(cv_prio_aggregate_decode(bytes, sizeof(bytes), &decoded));
    total = cv_field_add(total, decoded);
  }
  (void)VALGRIND_MAKE_MEM_DEFINED(&total, sizeof(total));
  return total;
}

static void judge(const struct secrets *s, bool expected) {
  uint64_t sum[VERIFIER_END] = {0};
  for (unsigned i = 0; i < s->prio.shares; i++) {
    for (size_t j = 0; j < s->prio.verifier_elements; j++) {
      sum[j] = cv_field_add(sum[j], s->verifier[i][j]);
    }
  }
  CV_REQUIRE(cv_prio_decides(&s->prio, sum) == expected);
  CV_REQUIRE(s->prio.shares != 2 || cv_prio_accepts(&s->prio, s->verifier[0], s->verifier[1]) == expected);
}

/* `number` is 0, or the end of a helper's seed whose expansion has a number of p or above. */
static void run(enum cv_prio_circuit circuit, uint64_t max, unsigned shares, uint64_t measurement, uint64_t change,
                uint64_t number) {
  struct secrets s;
  CV_REQUIRE(cv_prio_init_shares(&s.prio, circuit, max, shares) == CV_OK);
  fill(s.rand, sizeof(s.rand), (uint8_t)max);
  fill(s.key, sizeof(s.key), 99);
  if (number != 0) {
    memset(s.rand, 0, CV_PRIO_SEED_BYTES);
    memcpy(s.rand, "redrawn", strlen("redrawn"));
    cv_field_encode(&number, 1, s.rand + CV_PRIO_SEED_BYTES - CV_FIELD_BYTES);
    hide(s.rand, CV_PRIO_SEED_BYTES);
  }
  split(&s, measurement, change);
  verify(&s);
  judge(&s, change == 0);
  CV_REQUIRE(aggregate(&s) == measurement + change);
}

/* A leader's share with a number that is no element. */
static void run_malformed(void) {
  struct cv_prio p;
  uint8_t leader[CV_PRIO_MAX_LEADER_BYTES], key[CV_PRIO_SEED_BYTES];
  uint64_t verifier[VERIFIER_END], output = 0;
  CV_REQUIRE(cv_prio_init(&p, CV_PRIO_SUM, CV_PRIO_MAX_MEASUREMENT) == CV_OK);
  memset(leader, 0xff, sizeof(leader));
  hide(leader, sizeof(leader));
  fill(key, sizeof(key), 1);
  CV_REQUIRE(!cv_prio_verify_leader(&p, key, ctx, sizeof(ctx) - 1, nonce, leader, sizeof(leader), verifier, &output));
}

/* What a broker does with output shares: scales them, adds its noise. */
static void run_field(void) {
  uint64_t a = CV_FIELD_P - 1, b = 3, lifted_from = 0;
  int64_t noise = -5, lifted = 0;
  hide(&a, sizeof(a));
  hide(&b, sizeof(b));
  hide(&noise, sizeof(noise));
  uint64_t x = cv_field_add(cv_field_mul(a, 64), cv_field_of_int(noise));
  x = cv_field_sub(cv_field_neg(x), cv_field_inv(cv_field_pow(b, 20)));
  CV_REQUIRE(is_hidden(x));
  lifted_from = cv_field_add(a, cv_field_of_int(noise));
  CV_REQUIRE(cv_field_lift(lifted_from, &lifted) && is_hidden((uint64_t)lifted));
}

static void run_all(void) {
  static const uint64_t values[] = {0, 1, 127, 128, 255};
  const uint64_t max = CV_PRIO_MAX_MEASUREMENT;
  for (size_t i = 0; i < CV_COUNT(values); i++) {
    run(CV_PRIO_SUM, 255, 2, values[i], 0, 0);
  }
  run(CV_PRIO_COUNT, 1, 2, 0, 0, 0);
  run(CV_PRIO_COUNT, 1, 3, 1, 0, 0);
  run(CV_PRIO_SUM, 1, 2, 1, 0, 0);
  run(CV_PRIO_SUM, max, 2, max, 0, 0);
  run(CV_PRIO_SUM, max, 3, 12345, 0, 0);
  run(CV_PRIO_SUM, max, 2, 5, 1, 0);
  run(CV_PRIO_SUM, UINT64_C(1) << 62, 2, 1, 0, 0);
  run(CV_PRIO_SUM, max, 2, 777, 0, 629193177);
  run(CV_PRIO_SUM, max, 2, 777, 0, 46820823);
  run_malformed();
  run_field();
}

/* Faults: field operations as one would write them in a hurry. */

static uint64_t __attribute__((noinline)) add_with_branch(uint64_t a, uint64_t b) {
  static volatile int taken;
  uint64_t sum = a + b;
  if (sum < a || sum >= CV_FIELD_P) {
    taken++;
    sum -= CV_FIELD_P;
  }
  return sum;
}

static uint64_t __attribute__((noinline)) bit_from_table(uint64_t measurement) {
  static volatile uint64_t table[256];
  return table[measurement & 255] ^ measurement;
}

/* 0 if the fault is known. */
static int plant(const char *fault) {
  uint64_t secret = 5;
  hide(&secret, sizeof(secret));
  if (strcmp(fault, "branch") == 0) {
    secret = add_with_branch(secret, 7);
  } else if (strcmp(fault, "index") == 0) {
    secret = bit_from_table(secret);
  } else {
    return 2;
  }
  return is_hidden(secret) ? 0 : 3;
}

int main(int argc, char **argv) {
  const char *what = argc == 2 ? argv[1] : "";
  if (strcmp(what, "prio") != 0) {
    return plant(what);
  }
  run_all();
  return 0;
}
