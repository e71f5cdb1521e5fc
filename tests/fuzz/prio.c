/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker sends to two brokers. The input is an instance, a measurement, a nonce and a helper's seed, then a
 * leader's share: as it is, or (kind, bit 7) as the difference from an honest one. A share that is accepted counts at
 * most as much as a measurement may; without a difference it counts what was measured; with one it is refused.
 */
#include "common/prio/field.h"
#include "common/prio/shard.h"
#include "common/prio/verify.h"
#include "tests/fuzz/fuzz.h"

enum { LEADER_END = 8 * 320, VERIFIER_END = 4 };

static const uint8_t key[CV_PRIO_SEED_BYTES] = {1}, ctx[32] = {2};

struct input {
  struct cv_prio prio;
  bool differs; /* from an honest share, by `share` */
  uint64_t measurement;
  const uint8_t *nonce, *seed, *share;
  size_t n;
};

static bool read_input(const uint8_t *bytes, size_t n, struct input *ret) {
  struct cv_reader in = cv_reader_over(bytes, n);
  uint8_t kind = cv_read_u8(&in);
  uint64_t max = cv_read_u64(&in), measurement = cv_read_u64(&in);
  ret->nonce = cv_read(&in, CV_PRIO_NONCE_BYTES);
  ret->seed = cv_read(&in, CV_PRIO_SEED_BYTES);
  if (in.failed || cv_prio_init(&ret->prio, (kind & 1) != 0 ? CV_PRIO_COUNT : CV_PRIO_SUM, max) != CV_OK) {
    return false;
  }
  ret->differs = (kind & 0x80) != 0;
  ret->measurement = max == UINT64_MAX ? measurement : measurement % (max + 1);
  ret->share = in.at;
  ret->n = (size_t)(in.end - in.at);
  return true;
}

static bool all_elements(const uint64_t *element, size_t n) {
  bool all = true;
  for (size_t i = 0; i < n; i++) {
    all &= element[i] < CV_FIELD_P;
  }
  return all;
}

/* Whether a leader's share and the helper's pass; *ret_total is then what they count. */
static bool judge(const struct input *in, const uint8_t *share, size_t n, uint64_t *ret_total) {
  uint64_t verifier[2][VERIFIER_END], output[2], decoded[LEADER_END / 8];
  const struct cv_prio *p = &in->prio;
  bool is_share = n == p->leader_bytes && cv_field_decode(share, n / CV_FIELD_BYTES, decoded);
  bool verified = cv_prio_verify_leader(p, key, ctx, sizeof(ctx), in->nonce, share, n, verifier[0], &output[0]);
  CV_REQUIRE(verified == is_share);
  if (!verified) {
    return false;
  }
  CV_REQUIRE(cv_prio_verify_helper(p, key, ctx, sizeof(ctx), in->nonce, in->seed, verifier[1], &output[1]));
  for (int i = 0; i < 2; i++) {
    CV_REQUIRE(all_elements(verifier[i], p->verifier_elements) && all_elements(&output[i], 1));
  }
  *ret_total = cv_field_add(output[0], output[1]);
  return cv_prio_accepts(p, verifier[0], verifier[1]);
}

static void check_difference(const struct input *in) {
  uint8_t rand[CV_PRIO_MAX_RAND_BYTES] = {0}, leader[LEADER_END], helper[CV_PRIO_SEED_BYTES], differs = 0;
  uint64_t total = 0;
  memcpy(rand, in->seed, CV_PRIO_SEED_BYTES);
  cv_prio_shard(&in->prio, ctx, sizeof(ctx), in->measurement, in->nonce, rand, leader, helper);
  for (size_t i = 0; i < in->n && i < in->prio.leader_bytes; i++) {
    leader[i] ^= in->share[i];
    differs |= in->share[i];
  }
  CV_REQUIRE(judge(in, leader, in->prio.leader_bytes, &total) == (differs == 0));
  CV_REQUIRE(differs != 0 || total == in->measurement);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct input in;
  uint64_t total = 0;
  if (!read_input(bytes, n, &in)) {
    return 0;
  }
  if (in.differs) {
    check_difference(&in);
  } else if (judge(&in, in.share, in.n, &total)) {
    CV_REQUIRE(total <= in.prio.max);
  }
  return 0;
}
