/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs whole campaigns, one after the other, in one process, through the deployed cores of worker and broker: from the
 * workers' scores to the third-party's view. The third-party follows a script: in each campaign it sends `rounds` plans
 * with `tau` tokens of every arm. In a recruitment each plan from the third on has twice as many as the one before, all
 * of an arm from the same worker.
 */
#ifndef CV_LAB_AUDIT_PIPELINE_H
#define CV_LAB_AUDIT_PIPELINE_H

#include "common/base/rng.h"
#include "common/base/spec.h"
#include "lab/audit/insider.h"

struct cv_pipeline {
  const struct cv_spec *spec; /* arms, privacy; its token limit is the number of tokens of all plans */
  uint32_t campaigns, rounds, tau;
  /* The score of a token; `place` is its number among the arm's tokens of the campaign. All counted from 0. */
  int64_t (*score)(const void *data, uint32_t campaign, uint32_t arm, uint64_t place);
  /* Set in place of `score`: what a worker says of an arm, whenever it is asked. All plans are for arm 0 then, and as
   * many workers as tokens come one after the other, whoever answered first. They believe that the campaign repeats
   * questions: that a worker answers once is up to the brokers. */
  int64_t (*answer)(const void *data, uint64_t worker, uint32_t arm);
  const void *data;
  struct cv_rng *noise, *privatizer;
  /* With two brokers: one of them as an adversary, on the line between both. There is one campaign. */
  struct cv_insider *insider;
  bool seeded; /* the brokers' noise is a function of a seed that both have, as in test runs */
};

/*
 * Sets `view` to all that the broker sends to the third-party: view[(campaign * rounds + round) * arms + arm] is a
 * noisy sum, and view[campaigns * rounds * arms] a digest of everything else in its frames, in order. CV_ERR_STATE if a
 * campaign makes no progress. A broker that has lied ends the run: what it did not see is 0.
 */
CV_MUST_USE enum cv_err cv_pipeline_run(const struct cv_pipeline *pipeline, int64_t *view, struct cv_why *why);

#endif
