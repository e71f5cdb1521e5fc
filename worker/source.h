/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates the `items` section of a campaign file: scores, item names and true means. Workers take scores from it; the
 * requester takes the number of arms, and the true means for comparison with a result. The same file and seed give both
 * the same values.
 */
#ifndef CV_WORKER_SOURCE_H
#define CV_WORKER_SOURCE_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/base/spec.h"
#include "common/campaign/campaign.h"
#include "worker/data.h"
#include "worker/quality/persons.h"
#include "worker/quality/quality.h"

struct cv_score_source {
  struct cv_quality *quality; /* cv_quality_truth() is the truth; see cv_score_source_needs_means() */
  uint32_t items;             /* item i is arm i */
  const char **name;          /* `items` of them (names.h), owned */
  /* Ids and costs of workers for hire, `items` each; NULL if the items are not for hire. */
  uint64_t *worker, *cost_micro;
  struct cv_persons persons;  /* the rows by person, for a data file with a worker column; else empty */
  struct cv_scale scale;      /* of a data file's scores; else empty */
  uint64_t print;             /* fingerprint of a data file; else 0 */
  struct cv_data_notes notes; /* what to say about a data file; else empty */
  uint64_t requests;          /* the number of trips in a taxi file, all to be served; else 0 */
};

/*
 * `seed` seeds the instance and the scores. Reads the data file, if the section names one. Errors are one line with
 * file and line.
 */
CV_MUST_USE enum cv_err cv_score_source_init(struct cv_score_source *ret, const struct cv_campaign_file *campaign,
                                             uint64_t seed, struct cv_why *why);
/* Items without means have some in `quality`, which nobody must use: CV_ERR_INVALID with one line for such items. */
CV_MUST_USE enum cv_err cv_score_source_needs_means(const struct cv_campaign_file *campaign, struct cv_why *why);
void cv_score_source_fini(struct cv_score_source *source);

#endif
