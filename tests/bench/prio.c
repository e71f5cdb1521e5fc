/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prio3 on one core: tokens that each of the two brokers checks, and that a worker splits. A broker's part of a token
 * is one verify_leader or one verify_helper; every token has its own nonce, as in a campaign.
 */
#include <string.h>

#include "bench.h"
#include "common/base/rng.h"
#include "common/prio/field.h"
#include "common/prio/shard.h"
#include "common/prio/verify.h"

enum { TOKENS = 1 << 12, PASSES = 16 };

struct token {
  uint64_t measurement;
  uint8_t nonce[CV_PRIO_NONCE_BYTES], rand[CV_PRIO_MAX_RAND_BYTES];
  uint8_t leader[CV_PRIO_MAX_LEADER_BYTES], helper[CV_PRIO_SEED_BYTES];
  uint64_t verifier[2][CV_PRIO_MAX_VERIFIER_ELEMENTS];
};

struct work {
  struct cv_prio prio;
  uint8_t ctx[32], key[CV_PRIO_SEED_BYTES];
  struct token token[TOKENS];
};

static void fill(struct cv_rng *rng, uint8_t *bytes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    bytes[i] = (uint8_t)cv_rng_u64(rng);
  }
}

static uint64_t shard(void *arg) {
  struct work *work = arg;
  for (int i = 0; i < TOKENS * PASSES; i++) {
    struct token *t = &work->token[i % TOKENS];
    cv_prio_shard(&work->prio, work->ctx, sizeof(work->ctx), t->measurement, t->nonce, t->rand, t->leader, t->helper);
  }
  return work->token[0].leader[0];
}

static uint64_t verify_leader(void *arg) {
  struct work *work = arg;
  uint64_t output = 0, sum = 0;
  for (int i = 0; i < TOKENS * PASSES; i++) {
    struct token *t = &work->token[i % TOKENS];
    CV_REQUIRE(cv_prio_verify_leader(&work->prio, work->key, work->ctx, sizeof(work->ctx), t->nonce, t->leader,
                                     work->prio.leader_bytes, t->verifier[0], &output));
    sum = cv_field_add(sum, output);
  }
  return sum;
}

static uint64_t verify_helper(void *arg) {
  struct work *work = arg;
  uint64_t output = 0, sum = 0;
  for (int i = 0; i < TOKENS * PASSES; i++) {
    struct token *t = &work->token[i % TOKENS];
    CV_REQUIRE(cv_prio_verify_helper(&work->prio, work->key, work->ctx, sizeof(work->ctx), t->nonce, t->helper,
                                     t->verifier[1], &output));
    sum = cv_field_add(sum, output);
  }
  return sum;
}

static uint64_t accepts(void *arg) {
  struct work *work = arg;
  for (int i = 0; i < TOKENS * PASSES; i++) {
    struct token *t = &work->token[i % TOKENS];
    CV_REQUIRE(cv_prio_accepts(&work->prio, t->verifier[0], t->verifier[1]));
  }
  return 0;
}

static void measure(struct work *work, const char *name, enum cv_prio_circuit circuit, uint64_t max) {
  static const struct {
    const char *name;
    uint64_t (*run)(void *);
  } parts[] = {
      {"shard", shard}, {"verify_leader", verify_leader}, {"verify_helper", verify_helper}, {"accepts", accepts}};
  CV_REQUIRE(cv_prio_init(&work->prio, circuit, max) == CV_OK);
  for (int i = 0; i < TOKENS; i++) {
    work->token[i].measurement = (uint64_t)i * 4099 % (max + 1);
  }
  for (size_t i = 0; i < CV_COUNT(parts); i++) {
    char what[64];
    (void)snprintf(what, sizeof(what), "%s %s", name, parts[i].name);
    cv_bench(what, "tokens", (double)TOKENS * PASSES, parts[i].run, work);
  }
}

int main(void) {
  static struct work work;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 1, CV_RNG_NOISE, 0, 0);
  fill(&rng.rng, work.ctx, sizeof(work.ctx));
  fill(&rng.rng, work.key, sizeof(work.key));
  for (int i = 0; i < TOKENS; i++) {
    fill(&rng.rng, work.token[i].nonce, sizeof(work.token[i].nonce));
    fill(&rng.rng, work.token[i].rand, sizeof(work.token[i].rand));
  }
  measure(&work, "Prio3Sum 2^14", CV_PRIO_SUM, CV_PRIO_MAX_MEASUREMENT);
  measure(&work, "Prio3Count", CV_PRIO_COUNT, 1);
  return 0;
}
