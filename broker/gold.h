/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gold items of a running campaign (common/base/gold.h): their place among the items that workers know, and each
 * worker's account of answers to them. The tokens of a worker that the test has found go on to fill places, with
 * neutral values: so other workers' places do not depend on what it answered, the campaign's guarantee covers its
 * answers to gold items like its other tokens, and it does not learn that it was found.
 *
 * Items are numbered as workers know them; arms as the third-party does. Here a gold item is an arm from `arms` on.
 */
#ifndef CV_BROKER_GOLD_H
#define CV_BROKER_GOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/chunks.h"
#include "common/base/gold.h"

#define CV_BROKER_ARM_NONE UINT32_MAX

struct cv_broker_gold {
  struct cv_gold terms;     /* no items: the campaign has no gold items, and items are arms */
  uint32_t arms;            /* that are not gold */
  uint32_t *item, *arm;     /* item[arm] and arm[item], arms + terms.items of each; owned; NULL without gold items */
  double error;             /* the largest probability of an honest wrong answer */
  uint64_t asked;           /* assignments, of arms, too: their numbers tell workers nothing; not stored */
  struct cv_chunks workers; /* a cell each: found << 31 | answers << 16 | wrong answers */
  int64_t *neutral;         /* of each arm the number of neutral tokens, and its noise; owned; NULL if not counted */
};

/* Copies the terms, which cv_gold_check() accepted. `most` chunks for the workers' cells. The numbers of neutral tokens
 * are 0, without noise. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_broker_gold_init(struct cv_broker_gold *gold, const struct cv_gold *terms, uint32_t arms,
                                            const struct cv_local *law, uint32_t most);
void cv_broker_gold_fini(struct cv_broker_gold *gold);
/* For a new campaign: draws the noise of an arm's number of neutral tokens, before there is one. */
void cv_broker_gold_draw_noise(struct cv_broker_gold *gold, uint32_t arm, struct cv_rng *rng);
/* Frees the workers' answers. */
void cv_broker_gold_free_secrets(struct cv_broker_gold *gold);

/* The number of items that workers know. */
uint32_t cv_broker_gold_items(const struct cv_broker_gold *gold);
uint32_t cv_broker_gold_item_of(const struct cv_broker_gold *gold, uint32_t arm);
/* CV_BROKER_ARM_NONE if there is no such item. */
uint32_t cv_broker_gold_arm_of(const struct cv_broker_gold *gold, uint32_t item);

/* Draws whether an assignment asks a gold item. */
bool cv_broker_gold_is_due(const struct cv_broker_gold *gold, struct cv_rng *rng);
/* Whether the test has found the worker. */
bool cv_broker_gold_has_found(struct cv_broker_gold *gold, uint64_t worker);
/* Adds an answer to the worker's cell; true if the test finds the worker by it. A worker that is found stays found. */
bool cv_broker_gold_add(const struct cv_broker_gold *gold, struct cv_chunk *chunk, uint64_t worker, bool wrong);
/* The number of answers of all workers. */
uint64_t cv_broker_gold_answers(const struct cv_broker_gold *gold);

#endif
