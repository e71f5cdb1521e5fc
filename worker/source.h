/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a campaign file's `items` section comes to: scores, the items' names, the truth. Workers score with it; the
 * requester learns the number of arms, and the truth that a result is measured against. Both get the same from the same
 * file and seed.
 */
#ifndef CV_WORKER_SOURCE_H
#define CV_WORKER_SOURCE_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/base/spec.h"
#include "common/config/campaign.h"
#include "worker/quality/persons.h"
#include "worker/quality/quality.h"

struct cv_score_source {
  struct cv_quality *quality; /* cv_quality_truth() is the truth */
  uint32_t items;             /* item i is arm i */
  struct cv_label *name;      /* `items` of them */
  /* Of workers that can be hired, else NULL; `items` of them each. */
  uint64_t *worker, *cost_micro;
  struct cv_persons persons; /* of a data file with a column of them: who has which rows; else empty */
  uint64_t requests;         /* a taxi file's trips, all of which are to be done; else 0 */
};

/*
 * `seed` is that of the instance and the scores. Reads the data file of a csv section. Errors are one line with file
 * and line. Rows without replacement must last a round: an item with fewer rows than the policy's tokens_per_round (if
 * the campaign states it) is refused.
 */
CV_MUST_USE enum cv_err cv_score_source_init(struct cv_score_source *ret, const struct cv_campaign_file *campaign,
                                             uint64_t seed, struct cv_why *why);
void cv_score_source_fini(struct cv_score_source *source);

#endif
