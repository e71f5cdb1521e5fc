/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole campaigns, one after the other, in one process: workers' scores in at one end, the third-party's view out at
 * the other, through the deployed cores of worker and broker. The third-party follows a script: `rounds` plans of `tau`
 * tokens of every arm, in each campaign.
 */
#ifndef CV_LAB_AUDIT_PIPELINE_H
#define CV_LAB_AUDIT_PIPELINE_H

#include "common/base/rng.h"
#include "common/base/spec.h"

struct cv_pipeline {
  const struct cv_spec *spec; /* arms, privacy; its token limit must be arms x rounds x tau */
  uint32_t campaigns, rounds, tau;
  /* The score of the place-th token of an arm, counted from 0 over all rounds of a campaign, these counted from 0. */
  int64_t (*score)(const void *data, uint32_t campaign, uint32_t arm, uint64_t place);
  const void *data;
  struct cv_rng *noise, *privatizer;
};

/*
 * All that the third-party is sent: view[(campaign * rounds + round) * arms + arm] is a noisy sum, and
 * view[campaigns * rounds * arms] a digest of everything else in its frames, in their order. CV_ERR_STATE if a campaign
 * got stuck.
 */
CV_MUST_USE enum cv_err cv_pipeline_run(const struct cv_pipeline *pipeline, int64_t *view, struct cv_why *why);

#endif
