/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the requester of a campaign with gold items learns of one worker: the numbers of neutral tokens. The worker
 * answers the gold items, then gives a token of each arm. An honest one leaves the numbers as they are; the other one
 * is found, and all of its tokens are neutral.
 */
#include <stdio.h>

#include "broker/gold.h"
#include "common/base/grid.h"
#include "lab/audit/subjects.h"

enum { ARMS = 3, GOLDS = 3 };

/* Every gold item is answered rightly, or every one wrongly. */
static bool is_found(struct cv_broker_gold *gold, bool wrong) {
  struct cv_chunk *chunk;
  CV_REQUIRE(cv_chunks_touch(&gold->workers, 0, &chunk) == CV_OK);
  for (int i = 0; i < GOLDS; i++) {
    (void)cv_broker_gold_add(gold, chunk, 1, wrong);
  }
  return cv_broker_gold_has_found(gold, 1);
}

static enum cv_err sample(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                          int64_t *row) {
  struct cv_gold_item items[GOLDS] = {{.item = 0}, {.item = 2}, {.item = 5}};
  const struct cv_gold terms = {.items = GOLDS,
                                .item = items,
                                .error_micro = 50000,
                                .level_micro = 1000,
                                .share_micro = 500000,
                                .epsilon_micro = (uint32_t)self->epsilon_micro};
  const struct cv_choice none = {.name = "none"};
  struct cv_local law;
  struct cv_broker_gold gold;
  struct cv_rng_seeded seeded;
  CV_TRY(cv_local_init(&none, ARMS, &law, NULL));
  CV_TRY(cv_broker_gold_init(&gold, &terms, ARMS, &law, 1));
  bool found = is_found(&gold, neighbour);
  CV_REQUIRE(found == neighbour);
  cv_rng_seeded_init(&seeded, stream, CV_RNG_NOISE, 0, 0);
  for (uint64_t run = 0; run < runs; run++) {
    for (uint32_t arm = 0; arm < ARMS; arm++) {
      cv_broker_gold_draw_noise(&gold, arm, &seeded.rng);
      gold.neutral[arm] += found;
      *row++ = gold.neutral[arm];
    }
  }
  cv_broker_gold_fini(&gold);
  return CV_OK;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  (void)snprintf(text, CV_AUDIT_TEXT, "neutral tokens of item %u", at + 1);
}

void cv_audit_gold(uint64_t epsilon_micro, struct cv_audit_subject *ret) {
  *ret = (struct cv_audit_subject){
      .is_sound = true,
      .epsilon = ARMS * (double)epsilon_micro / CV_MICRO,
      .share = 4,
      .width = ARMS,
      .series = ARMS,
      .keys = ARMS,
      .key = {0, 1, 2},
      .sample = sample,
      .label = label,
      .epsilon_micro = epsilon_micro,
  };
  (void)snprintf(ret->part, sizeof(ret->part), "gold");
  (void)snprintf(ret->setting, sizeof(ret->setting), "a found worker, %d tokens", ARMS);
}
