/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/gold.h"

#include <stdlib.h>

#include "common/base/grid.h"
#include "common/noise/dlaplace.h"

/* A cell: whether the worker is found, its answers, the wrong ones of them. */
enum { WRONG = 1, ANSWER = 1 << 16, COUNT = CV_GOLD_TOKENS_MAX };
#define FOUND (UINT32_C(1) << 31)

/* Arms and gold items in the order of the items. */
static void number_items(struct cv_broker_gold *gold) {
  uint32_t known = 0;
  for (uint32_t item = 0; item < gold->arms + gold->terms.items; item++) {
    bool is_gold = known < gold->terms.items && gold->terms.item[known].item == item;
    uint32_t arm = is_gold ? gold->arms + known : item - known;
    gold->arm[item] = arm;
    gold->item[arm] = item;
    known += is_gold;
  }
}

enum cv_err cv_broker_gold_init(struct cv_broker_gold *gold, const struct cv_gold *terms, uint32_t arms,
                                const struct cv_local *law, uint32_t most) {
  struct cv_broker_gold made = {.arms = arms};
  CV_TRY(cv_gold_copy(terms, &made.terms));
  cv_chunks_init(&made.workers, most);
  if (terms->items > 0) {
    made.item = calloc(arms + terms->items, sizeof(*made.item));
    made.arm = calloc(arms + terms->items, sizeof(*made.arm));
    made.neutral = terms->epsilon_micro == 0 ? NULL : calloc(arms, sizeof(*made.neutral));
    if (made.item == NULL || made.arm == NULL || (made.neutral == NULL && terms->epsilon_micro > 0)) {
      cv_broker_gold_fini(&made);
      return CV_ERR_NOMEM;
    }
    made.error = cv_gold_error(terms, law);
    number_items(&made);
  }
  *gold = made;
  return CV_OK;
}

void cv_broker_gold_fini(struct cv_broker_gold *gold) {
  cv_broker_gold_free_secrets(gold);
  cv_gold_fini(&gold->terms);
  free(gold->item);
  free(gold->arm);
  free(gold->neutral);
  *gold = (struct cv_broker_gold){0};
}

void cv_broker_gold_draw_noise(struct cv_broker_gold *gold, uint32_t arm, struct cv_rng *rng) {
  struct cv_dlaplace law;
  CV_REQUIRE(cv_dlaplace_init(&law, CV_MICRO, gold->terms.epsilon_micro) == CV_OK);
  gold->neutral[arm] = cv_dlaplace_draw(&law, rng);
}

void cv_broker_gold_free_secrets(struct cv_broker_gold *gold) {
  cv_chunks_fini(&gold->workers);
}

uint32_t cv_broker_gold_items(const struct cv_broker_gold *gold) {
  return gold->arms + gold->terms.items;
}

uint32_t cv_broker_gold_item_of(const struct cv_broker_gold *gold, uint32_t arm) {
  return gold->item == NULL ? arm : gold->item[arm];
}

uint32_t cv_broker_gold_arm_of(const struct cv_broker_gold *gold, uint32_t item) {
  return item >= cv_broker_gold_items(gold) ? CV_BROKER_ARM_NONE : gold->arm == NULL ? item : gold->arm[item];
}

bool cv_broker_gold_is_due(const struct cv_broker_gold *gold, struct cv_rng *rng) {
  return gold->terms.items > 0 && cv_rng_below(rng, CV_MICRO) < gold->terms.share_micro;
}

bool cv_broker_gold_has_found(struct cv_broker_gold *gold, uint64_t worker) {
  const struct cv_chunk *chunk =
      gold->terms.items == 0 ? NULL : cv_chunks_find(&gold->workers, worker / CV_CHUNK_CELLS);
  return chunk != NULL && (chunk->as.cell[worker % CV_CHUNK_CELLS] & FOUND) != 0;
}

bool cv_broker_gold_add(const struct cv_broker_gold *gold, struct cv_chunk *chunk, uint64_t worker, bool wrong) {
  uint32_t *cell = &chunk->as.cell[worker % CV_CHUNK_CELLS];
  *cell += wrong ? ANSWER + WRONG : ANSWER;
  if ((*cell & FOUND) != 0 ||
      !cv_gold_finds(gold->error, gold->terms.level_micro / 1e6, *cell / ANSWER & COUNT, *cell & COUNT)) {
    return false;
  }
  *cell |= FOUND;
  return true;
}

uint64_t cv_broker_gold_answers(const struct cv_broker_gold *gold) {
  uint64_t answers = 0;
  for (const struct cv_chunk *chunk = gold->workers.all; chunk != NULL; chunk = chunk->hh.next) {
    for (size_t i = 0; i < CV_CHUNK_CELLS; i++) {
      answers += chunk->as.cell[i] / ANSWER & COUNT;
    }
  }
  return answers;
}
