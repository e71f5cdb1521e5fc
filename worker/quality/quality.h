/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of simulated scores: the score of the token at `place` (its number in the arm's stream, from 0) is a pure
 * function of (seed, arm, place). So gateways need no coordination, and a run with faults has the same scores as one
 * without.
 *
 * A source draws from one law per arm (a model: one file and one row of common/config/rewards.h), takes the rows of a
 * data set (rows.h), or is an adversary, whose gains depend on the campaign's round instead (adversary.h). A source is
 * immutable.
 */
#ifndef CV_QUALITY_H
#define CV_QUALITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/rng.h"
#include "worker/quality/adversary.h"
#include "worker/quality/moment.h"
#include "worker/quality/pairs.h"
#include "worker/quality/rows.h"

/*
 * The law of one arm, as a campaign file states it. For the normal models `mean` and `spread` are the mean and standard
 * deviation before clipping or truncation to [0,1]; for beta `spread` is the concentration a + b.
 */
struct cv_quality_item {
  double mean;   /* in [0,1] */
  double spread; /* its meaning depends on the model; ignored by a model without one */
};

struct cv_quality_model {
  const char *name;
  const char *spread; /* the name of `spread` in messages; NULL: the model has none */
  bool spread_zero;   /* a spread of 0 is valid: the score is the mean */
  /* One score in [0,1]. */
  double (*draw)(const struct cv_quality_item *item, struct cv_rng *rng);
  /* The exact mean of the law. */
  double (*truth)(const struct cv_quality_item *item);
};

/* Find a model by name, or by index, an enum cv_rewards; NULL if there is none. */
const struct cv_quality_model *cv_quality_model_find(const char *name);
const struct cv_quality_model *cv_quality_model_at(size_t index);

struct cv_quality;

/* Makes a source that draws from `model`; copies `item` (one per arm). CV_ERR_INVALID with the arm, counted from 1. */
CV_MUST_USE enum cv_err cv_quality_new(const struct cv_quality_model *model, const struct cv_quality_item *item,
                                       uint32_t arms, uint64_t seed, struct cv_quality **ret, struct cv_why *why);
/*
 * Makes a source over a data set. Takes ownership of `rows`, also on failure. With replacement a place gets a uniformly
 * drawn row of its arm, which must have one; without, the places get the arm's rows in a seeded random order, each row
 * once.
 */
CV_MUST_USE enum cv_err cv_quality_new_rows(struct cv_rows *rows, bool replacement, uint64_t seed,
                                            struct cv_quality **ret, struct cv_why *why);
/* Makes a source of comparisons: the score is 1 if the arm beats the opponent of the moment, else 0. Takes ownership of
 * `pairs`, also on failure. */
CV_MUST_USE enum cv_err cv_quality_new_pairs(struct cv_pairs *pairs, uint64_t seed, struct cv_quality **ret,
                                             struct cv_why *why);
/* The comparisons of such a source; NULL for any other. */
const struct cv_pairs *cv_quality_pairs(const struct cv_quality *quality);
/* Makes a source of an adversary's gains. */
CV_MUST_USE enum cv_err cv_quality_new_adversary(const struct cv_adversary *adversary, struct cv_quality **ret,
                                                 struct cv_why *why);
void cv_quality_free(struct cv_quality *quality);
/* Gives the rows of a data set that are used once each the order of another seed; nothing for any other source. For an
 * owner that shares the source with nobody. */
void cv_quality_reorder(struct cv_quality *quality, uint64_t seed);

/*
 * Sets the score of one token, in grid units, 0 .. CV_GRID; arm < arms. An adversary uses `round` and `switched`, every
 * other source uses `place`. Of comparisons `opponent` may be 0: against one drawn uniformly. CV_ERR_LIMIT without
 * replacement if `place` is past the arm's last row: no row is used twice, so the caller must stop.
 */
CV_MUST_USE enum cv_err cv_quality_score_at(const struct cv_quality *quality, uint32_t arm, const struct cv_moment *at,
                                            int64_t *ret_score);
/* The same if every round pulls this arm: round = place, no switches. */
CV_MUST_USE enum cv_err cv_quality_score(const struct cv_quality *quality, uint32_t arm, uint64_t place,
                                         int64_t *ret_score);
/* The true mean of an arm's scores, in [0,1]; for an adversary the mean gain if all its rounds played the arm. */
double cv_quality_truth(const struct cv_quality *quality, uint32_t arm);

/* For a data set: the number of rows of an arm (0 for any other source), and the row, from 0, that a place gets. */
uint64_t cv_quality_rows(const struct cv_quality *quality, uint32_t arm);
CV_MUST_USE enum cv_err cv_quality_row(const struct cv_quality *quality, uint32_t arm, uint64_t place,
                                       uint64_t *ret_row);

/*
 * For callers that draw scores from a stream of their own. cv_quality_law() returns the law of an arm, NULL for a data
 * set or an adversary. cv_quality_draw() draws one score from that law, or a row of a data set with replacement; false
 * for a source whose scores depend on places or rounds.
 */
const struct cv_quality_model *cv_quality_law(const struct cv_quality *quality, uint32_t arm,
                                              struct cv_quality_item *ret_item);
bool cv_quality_draw(const struct cv_quality *quality, uint32_t arm, struct cv_rng *rng, int64_t *ret_score);

/* The rows of a data set with replacement, whose scores are independent; NULL for any other source. */
const struct cv_rows *cv_quality_drawn_rows(const struct cv_quality *quality);

/* The adversary, or NULL. */
const struct cv_adversary *cv_quality_adversary(const struct cv_quality *quality);

/*
 * Draws item means as in Chen et al. (PPAR, 2022), section VI: N(mean, variance) clipped to [0,1]. Mean i depends only
 * on the seed and i, so a larger count extends an instance.
 */
void cv_quality_draw_instance(uint64_t seed, double mean, double variance, uint32_t count, double *ret_means);

#endif
