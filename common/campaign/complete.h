/* SPDX-License-Identifier: Apache-2.0 */
/* Completes a campaign's spec once its source of scores has been opened. */
#ifndef CV_CAMPAIGN_COMPLETE_H
#define CV_CAMPAIGN_COMPLETE_H

#include "common/campaign/campaign.h"

/* The items of the source; borrowed. */
struct cv_campaign_arms {
  uint32_t arms;
  const char *const *name; /* `arms` of them */
  /* Recruitment: ids and costs of the workers, `arms` of each; otherwise NULL. */
  const uint64_t *worker, *cost_micro;
  uint64_t requests; /* token limit of the source; 0: none */
};

/*
 * Sets the spec's arms (the items that are not gold), their names if they are shared, the workers and costs of a
 * recruitment with the tokens per worker that the budget buys, the edges of the graph, and the numbers of the gold
 * items; then checks the spec and the gold items. Errors are one line.
 */
CV_MUST_USE enum cv_err cv_campaign_complete(struct cv_campaign_file *campaign, const struct cv_campaign_arms *arms,
                                             uint64_t seed, struct cv_why *why);
/*
 * Only the graph part, once the spec's arms are set: checks the section `graph` against them and draws its edges, with
 * `seed` if the section has no seed. Errors are one line.
 */
CV_MUST_USE enum cv_err cv_campaign_graph(struct cv_campaign_file *campaign, uint64_t seed, struct cv_why *why);

#endif
