/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classes that each arm of a ranking can be in, among all arms, when all that is known is an interval for each
 * mean. Pure. Where the intervals hold at once with probability 1 - delta, every arm is in its span with that
 * probability.
 *
 * The class of an arm is 1 + the fewest intervals of length alpha that cover the means more than alpha above its own:
 * the greedy classes of ranking.h are such a cover from the top. So it only falls if means are taken away.
 *
 *   first  exact. Each arm that is surely above must be covered, wherever its mean lies: the fewest points y with
 *          y - alpha <= high and low <= y for every such arm, found greedily from the top.
 *   last   an upper bound. By levels: level k is what can be left for class k. The highest of its means is at most H,
 *          so what falls to the next level is below H - alpha, the arm of that highest mean below the next highest
 *          minus alpha; an arm whose low is not can be in no class after k. By number: each class above an arm has a
 *          best arm of its own, more than alpha above the arm, in a level of that arm; no more can be matched.
 *
 * So the spans are never wider than what the rule by interval of ranking.h decides from the same intervals.
 */
#ifndef CV_THIRDPARTY_SPANS_H
#define CV_THIRDPARTY_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct cv_span {
  uint32_t first, last; /* from 1, first <= last <= arms */
};

/* The caller sets `low` and `high`, low <= high; the rest is found. */
struct cv_spans {
  uint32_t arms;
  double *low, *high;
  struct cv_span *span;
  /* Scratch: arms by low and by high, highest first; the last level and the highest possible mean in it of each arm;
   * the arms of a level; and the matching of arms to levels. */
  uint32_t *by_low, *by_high, *exit, *level, *parent, *slot;
  double *most, *lead;
};

/* CV_ERR_NOMEM, with nothing to free. */
CV_MUST_USE enum cv_err cv_spans_init(uint32_t arms, struct cv_spans *ret);
void cv_spans_fini(struct cv_spans *self);
/* Sets `span`. O(K (log K + number of levels, at most a thousand)). */
void cv_spans_find(struct cv_spans *self, double alpha);

#endif
