/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gold items: items whose answer the requester knows. The broker asks them among the other items, so that a worker who
 * does not answer as honest workers do is found. Only requester and broker know which items they are: a worker cannot
 * tell them from other items, and the third-party does not learn that they exist.
 *
 * Workers know all items by their numbers; the arms are the items that are not gold, numbered in the same order.
 *
 * The test. An answer of an honest worker is wrong with a probability of at most q (cv_gold_error), whatever it
 * answered before. Then for every p > q the product of p/q over its wrong answers and of (1 - p)/(1 - q) over the
 * others is a nonnegative supermartingale that starts at 1, and so is the average over several p. By Ville's inequality
 * it ever reaches 1/level with a probability of at most `level`: a worker is found when it does, however many answers
 * it gives and whenever one looks. People repeat their mistakes: asked twice about one item, the second answer would be
 * wrong with probability 1 if the first is. So each worker is asked about each gold item once.
 *
 * A found worker's tokens count as neutral ones, which say nothing: they pull the mean of their item towards 1/2. How
 * many there are of each item the requester learns at the end, with noise: each number is off by a discrete Laplace of
 * scale 1/epsilon. Of a worker's n answers at most n numbers change, by 1 each, so that each token costs its worker
 * `epsilon` beside what the campaign's releases cost.
 */
#ifndef CV_BASE_GOLD_H
#define CV_BASE_GOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/local.h"
#include "common/base/rng.h"
#include "common/base/spec.h"

enum {
  CV_GOLD_MAX = 256,
  CV_GOLD_ERROR_MAX = 499999, /* millionths */
  CV_GOLD_LEVEL_MAX = 500000,
  CV_GOLD_SHARE_MAX = 500000,
  CV_GOLD_EPSILON_MAX = 20000000, /* millionths */
  CV_GOLD_TOKENS_MAX = 32767,     /* tokens of a worker, in a campaign with gold items */
};

struct cv_gold_item {
  uint32_t item;  /* its number among all items, from 0 */
  int64_t answer; /* the known score: 0 .. CV_GRID */
};

struct cv_gold {
  uint32_t items;            /* 0: none; at most CV_GOLD_MAX */
  struct cv_gold_item *item; /* in ascending order, each once; owned */
  int64_t tolerance;         /* a score farther from the known one is wrong: 0 .. CV_GRID - 1 */
  uint32_t error_micro;      /* the largest probability that an honest worker's score is wrong, from 1 */
  uint32_t level_micro;      /* the largest probability that an honest worker is found, from 1 */
  uint32_t share_micro;      /* of a worker's assignments that ask a gold item, from 1 */
  uint32_t epsilon_micro;    /* of the numbers of neutral tokens; 0: nobody learns them */
};

void cv_gold_fini(struct cv_gold *gold);
/* Makes a deep copy in uninitialised storage. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_gold_copy(const struct cv_gold *from, struct cv_gold *ret_to);
/*
 * Whether a campaign with this spec, whose arms do not include the gold items, can have them: no recruitment, no graph
 * and no second broker, tokens between 0 and 1 that all items privatize alike, and answers that tell an honest worker
 * from others. CV_ERR_INVALID and CV_ERR_NOT_FOUND with a line.
 */
CV_MUST_USE enum cv_err cv_gold_check(const struct cv_gold *gold, const struct cv_spec *spec, struct cv_why *why);
/* For a new campaign: the same, and whether each gold item is asked of a worker once, and enough of them to find one
 * whose answers are all wrong. */
CV_MUST_USE enum cv_err cv_gold_check_new(const struct cv_gold *gold, const struct cv_spec *spec, struct cv_why *why);

/* Whether a token is a wrong answer to the gold item: a score beyond the tolerance, or the bit that the known score
 * makes less probable. */
bool cv_gold_is_wrong(const struct cv_gold *gold, const struct cv_local *law, uint32_t index, int64_t token);
/* The largest probability of a wrong answer of an honest worker, over all gold items. */
double cv_gold_error(const struct cv_gold *gold, const struct cv_local *law);
/* Whether the test finds a worker with so many answers, of which `wrong` are wrong. */
bool cv_gold_finds(double error, double level, uint32_t answers, uint32_t wrong);
/* The expected number of gold items among so many assignments of a worker, each of which is asked once. */
double cv_gold_expected(const struct cv_gold *gold, uint32_t assignments);
/* A token that says nothing: the score 1/2, or a bit drawn as for that score. */
int64_t cv_gold_neutral(const struct cv_local *law, struct cv_rng *rng);

/* The stored form, little-endian. Decoding accepts only what encoding produces; the result is unchecked. */
void cv_gold_encode(const struct cv_gold *gold, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_gold_decode(struct cv_reader *in, struct cv_gold *ret);

#endif
