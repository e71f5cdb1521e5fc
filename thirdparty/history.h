/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of one campaign, for the page: what each plan's releases changed. Pure. It takes the batches that have
 * been stored (batch.h), in order from the first, so it holds nothing that the database does not hold.
 *
 * Step n is what the third-party made of the releases of plan n; step 0 comes before any release and has the standing
 * of every arm. The last one may have the releases of a plan that did not end.
 *
 * Memory is bounded: at most CV_HISTORY_STEPS_MAX steps with CV_HISTORY_STANDINGS_MAX standings. When either is
 * reached, each two neighbouring steps become one, and so do later ones; it has the later standing of each arm and all
 * decisions of both. At most CV_HISTORY_DECISIONS_MAX decisions are kept, the first ones. Together at most 12 MB for a
 * campaign; 20 items with a thousand steps take 1 MB.
 *
 * The noise part of an interval's radius is the policy's own where it has one (cv_standing.noise). Else it is the
 * radius times the share of noise in the variance of the last release's mean score,
 *   N/(N + T/4), N = (2 sum of b_i^2 + 2 T b^2 + T (1 - s^2)/4)/s^2
 * with T tokens, b_i the scales of the release's noises, b that of the privatizer's Laplace noise in a token (0: none;
 * then tokens lie in [0, 1]) and s the slope of the mean token: T/4 is the largest variance of T scores, T/(4 s^2)
 * that of T bits by which they are told.
 */
#ifndef CV_THIRDPARTY_HISTORY_H
#define CV_THIRDPARTY_HISTORY_H

#include "common/base/local.h"
#include "common/base/neighbours.h"
#include "thirdparty/batch.h"

enum { CV_HISTORY_STEPS_MAX = 2000, CV_HISTORY_STANDINGS_MAX = 1 << 17, CV_HISTORY_DECISIONS_MAX = 1 << 15 };
/* The time of a step that is not known. */
#define CV_HISTORY_NO_TIME UINT64_MAX

struct cv_history_step {
  uint64_t number;                  /* of the plan */
  uint32_t covers;                  /* so many steps became this one */
  uint64_t at_ms;                   /* since step 0; CV_HISTORY_NO_TIME: not known */
  uint64_t tokens, asked, releases; /* so far: tokens in releases, tokens asked for by plans, releases */
  struct cv_standing *standing;     /* of arms that changed, by arm; owned */
  uint32_t standings;
  struct cv_stored_decision *decision; /* owned */
  uint32_t decisions;
};

struct cv_history {
  struct cv_spec spec;
  struct cv_thirdparty_campaign_row row; /* as last stored */
  uint64_t state;                        /* grows with each change of row.end or row.note; from 1 */
  struct cv_history_step *step;          /* in order; owned */
  size_t steps, cap;
  unsigned every;           /* so many steps become one */
  struct cv_standing *last; /* of each arm; the noise is its part as shown */
  /* private */
  size_t standings, decisions;
  bool has_first;
  uint64_t first_ms;
  uint64_t tokens, asked_before, asked, releases;
  uint64_t plan;              /* the plan that releases belong to */
  uint32_t *plays;            /* of each arm in that plan */
  bool *seen;                 /* of each arm; scratch, false between calls */
  struct cv_release *release; /* the last one of each arm; number 0: none */
  struct cv_neighbours graph;
  struct cv_local local;
};

/* Copies the spec. CV_ERR_NOMEM, or the reason why the spec cannot be read. */
CV_MUST_USE enum cv_err cv_history_new(const struct cv_spec *spec, struct cv_history **ret);
void cv_history_free(struct cv_history *history);

/* Takes what one batch changed in this campaign. `now_ms`: CV_HISTORY_NO_TIME if the batch was stored before. Only
 * CV_ERR_NOMEM, which leaves the history incomplete: free it. */
CV_MUST_USE enum cv_err cv_history_take(struct cv_history *history, const struct cv_delta *delta, uint64_t now_ms);

/* The first step after number `after`, of all if not `has_after`; NULL if there is none. */
const struct cv_history_step *cv_history_after(const struct cv_history *history, bool has_after, uint64_t after);

#endif
