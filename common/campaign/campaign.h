/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The campaign file (YAML): one schema for every command. Each reader uses its part: workers and the requester use
 * `items` (the source of scores), broker and third-party use the spec, the lab uses `experiment`
 * (lab/experiment/experiment.h).
 */
#ifndef CV_CAMPAIGN_CAMPAIGN_H
#define CV_CAMPAIGN_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/spec.h"
#include "common/campaign/gold.h"
#include "common/campaign/graph.h"
#include "common/campaign/items.h"

struct cv_yaml;

/* The word for a policy or a mechanism that is chosen before the campaign is submitted (simulate/choose.h). */
static inline bool cv_campaign_is_auto(const struct cv_choice *choice) {
  return strcmp(choice->name, "auto") == 0;
}

struct cv_campaign_file {
  char *path;
  /*
   * Before the source has been opened (cv_campaign_complete): for a data file arms is 0, else it counts the gold items,
   * too; names is NULL unless share_names is set; a recruitment has its budget, but no costs and workers yet.
   */
  struct cv_spec spec;
  bool share_names;
  struct cv_items items;
  struct cv_graph graph;
  struct cv_golds gold;
  uint32_t policy_line, privacy_line;
};

/*
 * Reads and checks a campaign file. Errors are one line `FILE:LINE:COLUMN: what is wrong; expected WHAT`. The policy's
 * parameters are stored unchecked, with their positions; a program that links the policy table checks them
 * (cv_policy_check).
 */
CV_MUST_USE enum cv_err cv_campaign_load(const char *path, struct cv_campaign_file *ret, struct cv_why *why);
/* The same for a parsed file (document.h). */
CV_MUST_USE enum cv_err cv_campaign_read(struct cv_yaml *yaml, struct cv_campaign_file *ret, struct cv_why *why);
void cv_campaign_fini(struct cv_campaign_file *campaign);

#endif
