/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where simulated scores come from: the score of the token at `place` (its number in the arm's stream, from 0) is a
 * pure function of (seed, arm, place). So any number of gateways need no coordination, and a run with faults gives the
 * same scores as one without.
 *
 * A source draws from a law per arm (a model: one file and one row of the table), takes the rows of a data set
 * (rows.h), or is an adversary, whose gains are a function of the campaign's round instead (adversary.h). A source is
 * immutable once made.
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
#include "worker/quality/rows.h"

/*
 * The law of one arm, as a campaign writes it. For the normals `mean` is that of the normal before it is clipped or
 * truncated to [0,1] and `spread` its standard deviation; for beta `spread` is the concentration a + b.
 */
struct cv_quality_item {
  double mean;   /* in [0,1] */
  double spread; /* what the model says; ignored by a model without one */
};

struct cv_quality_model {
  const char *name;
  const char *spread; /* what `spread` is called in messages; NULL: the model has none */
  bool spread_zero;   /* a spread of 0 makes sense: the score is the mean */
  /* One score in [0,1]. */
  double (*draw)(const struct cv_quality_item *item, struct cv_rng *rng);
  /* The exact mean of the law. */
  double (*truth)(const struct cv_quality_item *item);
};

/* By name, NULL if there is none; and by index, NULL past the end. */
const struct cv_quality_model *cv_quality_model_find(const char *name);
const struct cv_quality_model *cv_quality_model_at(size_t index);

struct cv_quality;

/* A source that draws from `model`; `item` (one per arm) is copied. CV_ERR_INVALID names the arm, counted from 1. */
CV_MUST_USE enum cv_err cv_quality_new(const struct cv_quality_model *model, const struct cv_quality_item *item,
                                       uint32_t arms, uint64_t seed, struct cv_quality **ret, struct cv_why *why);
/*
 * A source over a data set. Takes `rows` (also on failure). With replacement a place gets a row of its arm drawn
 * uniformly; without, the arm's rows in a seeded random order, each once. Each arm has at least one row.
 */
CV_MUST_USE enum cv_err cv_quality_new_rows(struct cv_rows *rows, bool replacement, uint64_t seed,
                                            struct cv_quality **ret, struct cv_why *why);
/* A source of an adversary's gains. */
CV_MUST_USE enum cv_err cv_quality_new_adversary(const struct cv_adversary *adversary, struct cv_quality **ret,
                                                 struct cv_why *why);
void cv_quality_free(struct cv_quality *quality);

/*
 * The score of one token, in grid units, 0 .. CV_GRID; arm < arms. An adversary looks at the round and at whether it
 * switched, every other source at the place alone. CV_ERR_LIMIT: rows without replacement, and `place` is
 * past the arm's last row. No row is ever used twice; whoever asks beyond the data has to stop.
 */
CV_MUST_USE enum cv_err cv_quality_score_at(const struct cv_quality *quality, uint32_t arm, const struct cv_moment *at,
                                            int64_t *ret_score);
/* The same where nothing else is pulled: the place is the round, and it never switched. */
CV_MUST_USE enum cv_err cv_quality_score(const struct cv_quality *quality, uint32_t arm, uint64_t place,
                                         int64_t *ret_score);
/* The true mean of an arm's scores, in [0,1]; of an adversary's that over all its rounds, if it were played at each. */
double cv_quality_truth(const struct cv_quality *quality, uint32_t arm);

/* Of a data set: how many rows an arm has, 0 of any other source; and which of them, from 0, a place gets, as above. */
uint64_t cv_quality_rows(const struct cv_quality *quality, uint32_t arm);
CV_MUST_USE enum cv_err cv_quality_row(const struct cv_quality *quality, uint32_t arm, uint64_t place,
                                       uint64_t *ret_row);

/*
 * For whoever draws scores from a stream of his own: the law that an arm's scores are drawn from, NULL if there is none
 * (a data set, an adversary); and one score by it, or a row of a data set with replacement. False: this source has no
 * scores but those of places and rounds.
 */
const struct cv_quality_model *cv_quality_law(const struct cv_quality *quality, uint32_t arm,
                                              struct cv_quality_item *ret_item);
bool cv_quality_draw(const struct cv_quality *quality, uint32_t arm, struct cv_rng *rng, int64_t *ret_score);

/* The adversary, or NULL. */
const struct cv_adversary *cv_quality_adversary(const struct cv_quality *quality);

/*
 * Item means as paper 000 draws them (section 6): N(mean, variance) clipped to [0,1]. Mean i depends on the seed and i
 * alone, so that more items extend an instance.
 */
void cv_quality_draw_instance(uint64_t seed, double mean, double variance, uint32_t count, double *ret_means);

#endif
